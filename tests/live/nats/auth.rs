//! Who may connect, and over what.

use super::broker::{Broker, responder_at};
use super::{client, client_of, echo};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair as CertificateKey};
use serde_json::{Value, json};
use std::path::Path;
use yiem_mcp::{McpError, McpErrorKind, NatsAuth, NatsConfig};

fn refused(outcome: Result<String, McpError>) -> String {
    let error = outcome.expect_err("it must not be let in");
    assert!(
        matches!(error.kind(), McpErrorKind::Unauthorized(_)),
        "{error}"
    );
    error.to_string()
}

#[tokio::test]
async fn a_token_lets_in_and_a_wrong_one_is_told_at_once_without_showing_it() {
    let Some(servers) = yiem_tests::live("nats: token") else {
        return;
    };
    let broker = Broker::with_config(&servers, r#"authorization { token: "sesame" }"#);
    let _server = responder_at(
        &servers,
        &broker.address(),
        "mcp.w",
        "plain",
        Some("sesame"),
    )
    .await;
    let config = |token: &str| {
        NatsConfig::new([broker.address()], "mcp.w").with_auth(NatsAuth::Token(token.into()))
    };
    assert_eq!(
        echo(&client_of(config("sesame")), "in")
            .await
            .expect("an answer"),
        "in"
    );
    // In the address it is a token as well.
    let url = format!("nats://sesame@127.0.0.1:{}/mcp.w", broker.port);
    assert_eq!(echo(&client(&url), "in").await.expect("an answer"), "in");
    for wrong in [
        config("open-up"),
        NatsConfig::new([broker.address()], "mcp.w"),
    ] {
        let words = refused(echo(&client_of(wrong), "x").await);
        assert!(
            words.contains("refused the credentials") && !words.contains("open-up"),
            "{words}"
        );
    }
}

#[tokio::test]
async fn user_and_password_let_in() {
    let Some(servers) = yiem_tests::live("nats: user") else {
        return;
    };
    let broker = Broker::with_config(
        &servers,
        r#"authorization { users: [ { user: server, password: s }, { user: bob, password: "p@ss" } ] }"#,
    );
    let servers_own = format!("nats://server:s@127.0.0.1:{}", broker.port);
    let url = format!("nats://bob:p%40ss@127.0.0.1:{}", broker.port);
    let _server = responder_at(&servers, &servers_own, "mcp.w", "plain", None).await;
    assert_eq!(
        echo(&client(&format!("{url}/mcp.w")), "in")
            .await
            .expect("an answer"),
        "in"
    );
    let wrong = format!("nats://bob:wrong@127.0.0.1:{}/mcp.w", broker.port);
    let words = refused(echo(&client(&wrong), "x").await);
    assert!(!words.contains("wrong"), "{words}");
}

#[tokio::test]
async fn an_nkey_lets_in() {
    let Some(servers) = yiem_tests::live("nats: nkey") else {
        return;
    };
    let (ours, other) = (KeyPair::new_user(), KeyPair::new_user());
    let lines = format!(
        "authorization {{ users: [ {{ nkey: {} }}, {{ user: server, password: s }} ] }}",
        ours.public_key()
    );
    let broker = Broker::with_config(&servers, &lines);
    let url = format!("nats://server:s@127.0.0.1:{}", broker.port);
    let _server = responder_at(&servers, &url, "mcp.w", "plain", None).await;
    let with = |key: &KeyPair| {
        let seed = key.seed().expect("a seed");
        client_of(NatsConfig::new([broker.address()], "mcp.w").with_auth(NatsAuth::Nkey(seed)))
    };
    assert_eq!(echo(&with(&ours), "in").await.expect("an answer"), "in");
    refused(echo(&with(&other), "x").await);
    let broken =
        NatsConfig::new([broker.address()], "mcp.w").with_auth(NatsAuth::Nkey("SUNOTASEED".into()));
    let words = refused(echo(&client_of(broken), "x").await);
    assert!(!words.contains("SUNOTASEED"), "{words}");
}

/// A JWT as NATS has it.
fn jwt(issuer: &KeyPair, subject: &KeyPair, name: &str, claims: Value) -> String {
    let header = json!({"typ": "JWT", "alg": "ed25519-nkey"});
    let body = json!({"jti": name, "iat": 1_700_000_000, "iss": issuer.public_key(), "sub": subject.public_key(),
        "name": name, "nats": claims});
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(&body));
    let signature = issuer.sign(signed.as_bytes()).expect("a signature");
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn credentials(jwt: &str, seed: &str) -> String {
    format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
}

#[tokio::test]
async fn a_credentials_file_lets_in() {
    let Some(servers) = yiem_tests::live("nats: credentials file") else {
        return;
    };
    let (operator, account, user) = (
        KeyPair::new_operator(),
        KeyPair::new_account(),
        KeyPair::new_user(),
    );
    let unlimited = json!({"subs": -1, "data": -1, "payload": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1, "wildcards": true});
    let operator_jwt = jwt(
        &operator,
        &operator,
        "o",
        json!({"type": "operator", "version": 2}),
    );
    let account_jwt = jwt(
        &operator,
        &account,
        "a",
        json!({"type": "account", "version": 2, "limits": unlimited}),
    );
    let user_jwt = jwt(
        &account,
        &user,
        "u",
        json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1}),
    );
    let lines = format!(
        "operator: \"{operator_jwt}\"\nresolver: MEMORY\nresolver_preload: {{ {}: \"{account_jwt}\" }}",
        account.public_key()
    );
    let broker = Broker::with_config(&servers, &lines);
    let file = broker.folder.path().join("my agent.creds");
    std::fs::write(&file, credentials(&user_jwt, &user.seed().expect("a seed"))).expect("written");
    let encoded = file.to_str().expect("a path").replace(' ', "%20");
    let client = client(&broker.url(&format!("mcp.w?creds={encoded}")));
    // Nobody serves here; to be told so, one must be let in.
    let error = echo(&client, "x").await.expect_err("nobody");
    assert!(matches!(error.kind(), McpErrorKind::NoServer(_)), "{error}");

    let stranger = KeyPair::new_user();
    let forged = jwt(&stranger, &user, "u", json!({"type": "user", "version": 2}));
    let auth = NatsAuth::Credentials(credentials(&forged, &user.seed().expect("a seed")));
    refused(
        echo(
            &client_of(NatsConfig::new([broker.address()], "mcp.w").with_auth(auth)),
            "x",
        )
        .await,
    );

    let missing = super::client(&broker.url("mcp.w?creds=/does/not/exist"));
    let error = echo(&missing, "x").await.expect_err("no file");
    assert!(
        matches!(error.kind(), McpErrorKind::Config(_))
            && error.to_string().contains("/does/not/exist"),
        "{error}"
    );
}

/// An authority and a certificate of it for 127.0.0.1, as PEM files.
fn certificates(folder: &Path) {
    let authority_key = CertificateKey::generate().expect("a key");
    let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_certificate = authority
        .self_signed(&authority_key)
        .expect("a certificate");
    let issuer = Issuer::new(authority, authority_key);
    let key = CertificateKey::generate().expect("a key");
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])
        .expect("parameters")
        .signed_by(&key, &issuer)
        .expect("a certificate");
    let write =
        |name: &str, text: String| std::fs::write(folder.join(name), text).expect("written");
    write("ca.pem", authority_certificate.pem());
    write("cert.pem", certificate.pem());
    write("key.pem", key.serialize_pem());
}

#[tokio::test]
async fn tls_with_an_authority_of_ones_own() {
    let Some(servers) = yiem_tests::live("nats: TLS") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    certificates(folder.path());
    let path = |name: &str| {
        folder
            .path()
            .join(name)
            .to_str()
            .expect("a path")
            .to_owned()
    };
    let tls = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true, timeout: 5 }}",
        path("cert.pem"),
        path("key.pem"),
        path("ca.pem")
    );
    let broker = Broker::with_config(&servers, &tls);
    let options = format!(
        "ca={}&cert={}&key={}",
        path("ca.pem"),
        path("cert.pem"),
        path("key.pem")
    );
    let client = client(&format!("tls://127.0.0.1:{}/mcp.w?{options}", broker.port));
    // Nobody serves here; to be told so, the connection must stand.
    let error = echo(&client, "x").await.expect_err("nobody");
    assert!(matches!(error.kind(), McpErrorKind::NoServer(_)), "{error}");

    // A stranger's authority is not trusted, and a server without TLS is not spoken to.
    let strangers = tempfile::tempdir().expect("a folder");
    certificates(strangers.path());
    let stranger = strangers.path().join("ca.pem");
    let wrong = NatsConfig::new([format!("tls://127.0.0.1:{}", broker.port)], "mcp.w")
        .with_ca_file(stranger);
    let error = echo(&client_of(wrong), "x").await.expect_err("not trusted");
    assert!(
        matches!(error.kind(), McpErrorKind::Unreachable(_)) && error.to_string().contains("TLS"),
        "{error}"
    );
    let plain = Broker::start(&servers);
    let config = NatsConfig::new([plain.address()], "mcp.w").with_tls_required();
    let error = echo(&client_of(config), "x").await.expect_err("no TLS");
    assert!(
        matches!(error.kind(), McpErrorKind::Unreachable(_)),
        "{error}"
    );
}

#[tokio::test]
async fn inboxes_can_have_another_beginning() {
    let Some(servers) = yiem_tests::live("nats: inbox prefix") else {
        return;
    };
    let broker = Broker::with_config(
        &servers,
        r#"authorization { users: [ { user: server, password: s },
             { user: a, password: a, permissions: { publish: ["mcp.w"], subscribe: ["_AGENT_A.>"] } } ] }"#,
    );
    let at = |user: &str| format!("nats://{user}@127.0.0.1:{}", broker.port);
    let _server = responder_at(&servers, &at("server:s"), "mcp.w", "plain", None).await;
    let client = client(&format!("{}/mcp.w?inbox=_AGENT_A", at("a:a")));
    assert_eq!(echo(&client, "in").await.expect("an answer"), "in");
}
