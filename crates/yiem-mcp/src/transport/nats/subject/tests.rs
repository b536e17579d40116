//! Subjects, as tables.

use super::*;

fn of(subject: &str, style: SubjectStyle, method: &str) -> String {
    Subjects::new(subject, style)
        .expect("a good subject")
        .of(method)
}

#[test]
fn a_fixed_subject_takes_every_method() {
    for method in ["tools/list", "tools/call", "notifications/cancelled"] {
        assert_eq!(
            of("mcp.weather", SubjectStyle::Fixed, method),
            "mcp.weather"
        );
    }
    let subjects = Subjects::new("mcp.weather", SubjectStyle::Fixed).expect("good");
    assert_eq!(subjects.for_requests(), "mcp.weather");
}

#[test]
fn by_method_the_slash_becomes_a_dot() {
    let by_method = SubjectStyle::ByMethod;
    assert_eq!(
        of("acme.weather", by_method, "tools/list"),
        "acme.v1.server.weather.tools.list"
    );
    assert_eq!(
        of("a.b.weather", by_method, "server/discover"),
        "a.b.v1.server.weather.server.discover"
    );
    assert_eq!(
        of("weather", by_method, "ping"),
        "mcp.v1.server.weather.ping"
    );
    assert_eq!(
        of(
            "acme.v1.server.weather",
            by_method,
            "notifications/cancelled"
        ),
        "acme.v1.server.weather.notifications.cancelled"
    );
    let subjects = Subjects::new("acme.weather", by_method).expect("good");
    assert_eq!(subjects.for_requests(), "acme.v1.server.weather.>");
}

#[test]
fn a_method_can_never_leave_its_place() {
    let by_method = SubjectStyle::ByMethod;
    assert_eq!(of("w", by_method, "a//b"), "mcp.v1.server.w.a.b");
    assert_eq!(of("w", by_method, "*/>"), "mcp.v1.server.w._._");
    assert_eq!(of("w", by_method, "x y\n"), "mcp.v1.server.w.x_y_");
    assert_eq!(of("w", by_method, ""), "mcp.v1.server.w._");
}

#[test]
fn what_cannot_be_published_to_is_refused() {
    for subject in ["", "a b", "a..b", ".a", "a.", "a.*", "a.>", "a\nb"] {
        for style in [SubjectStyle::Fixed, SubjectStyle::ByMethod] {
            assert!(Subjects::new(subject, style).is_err(), "{subject:?}");
        }
    }
    assert!(Subjects::by_method("mcp", "a.b").is_err());
}

#[test]
fn cancellations_within_a_group_do_not_reach_its_requests() {
    for style in [SubjectStyle::Fixed, SubjectStyle::ByMethod] {
        let subjects = Subjects::new("acme.weather", style).expect("good");
        let requests = subjects.for_requests();
        let gossip = subjects.for_gossip();
        let reached = match requests.strip_suffix('>') {
            Some(head) => gossip.starts_with(head),
            None => gossip == requests,
        };
        assert!(!reached, "{gossip} is within {requests}");
    }
}
