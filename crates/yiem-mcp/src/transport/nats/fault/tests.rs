//! Wordings of brokers and of the client library.

use super::*;
use crate::error::Reached;
use std::io;

#[test]
fn a_refused_permission_is_read_from_the_brokers_words() {
    let publish =
        Denied::read(r#"Permissions Violation for Publish to "mcp.secret""#).expect("read");
    assert_eq!(
        (publish.publish, publish.subject.as_str()),
        (true, "mcp.secret")
    );
    assert!(publish.explains("mcp.secret", "_INBOX.a"));
    assert!(!publish.explains("mcp.other", "_INBOX.a"));

    let inbox =
        Denied::read(r#"'Permissions Violation for Subscription to "_INBOX.a.7"'"#).expect("read");
    assert_eq!(
        (inbox.publish, inbox.subject.as_str()),
        (false, "_INBOX.a.7")
    );
    assert!(inbox.explains("mcp.anything", "_INBOX.a"));
    assert!(!inbox.explains("mcp.anything", "_INBOX.b"));

    let queue = Denied::read(r#"permissions violation for subscription to "a.b" using queue "q""#)
        .expect("read");
    assert_eq!(queue.subject, "a.b");
    for text in [
        "",
        "Authorization Violation",
        "Permissions Violation for Publish",
        "maximum payload violation",
    ] {
        assert_eq!(Denied::read(text), None, "{text}");
    }
}

#[test]
fn each_failure_to_connect_says_what_to_do_and_was_not_sent() {
    let cases = [
        (ConnectErrorKind::Io, "no NATS server at nats://h:1"),
        (ConnectErrorKind::Dns, "has no address"),
        (ConnectErrorKind::TimedOut, "did not answer in time"),
        (ConnectErrorKind::Tls, "no TLS connection"),
        (
            ConnectErrorKind::AuthorizationViolation,
            "refused the credentials",
        ),
        (ConnectErrorKind::Authentication, "cannot be used"),
        (ConnectErrorKind::ServerParse, "no address of a NATS server"),
        (ConnectErrorKind::MaxReconnects, "no NATS server at"),
    ];
    for (kind, words) in cases {
        let error = of_connect(kind, "nats://h:1", io::Error::other("the cause"));
        assert!(error.to_string().contains(words), "{kind:?}: {error}");
        assert_eq!(error.reached(), Reached::NotSent, "{kind:?}");
        assert!(
            std::error::Error::source(&error).is_some(),
            "{kind:?} keeps its source"
        );
    }
    let certificate = of_connect(
        ConnectErrorKind::Io,
        "tls://h:1",
        io::Error::other("invalid peer certificate: UnknownIssuer"),
    );
    assert!(
        certificate.to_string().contains("no TLS connection"),
        "{certificate}"
    );
}

#[test]
fn only_refused_credentials_are_not_worth_a_retry() {
    let retryable = |kind| of_connect(kind, "nats://h:1", io::Error::other("x")).is_retryable();
    assert!(retryable(ConnectErrorKind::Io) && retryable(ConnectErrorKind::TimedOut));
    assert!(
        !retryable(ConnectErrorKind::AuthorizationViolation)
            && !retryable(ConnectErrorKind::ServerParse)
    );
}

#[test]
fn sizes_and_subject_are_in_the_words() {
    let large = too_large("the request", 1_048_600, 1_048_576);
    assert!(
        large.to_string().contains("1048600") && large.to_string().contains("1048576"),
        "{large}"
    );
    assert_eq!(large.reached(), Reached::NotSent);
    let nobody = no_server("mcp.weather");
    assert!(
        nobody.to_string().contains("no server on mcp.weather"),
        "{nobody}"
    );
    assert!(nobody.is_retryable());
}
