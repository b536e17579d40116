//! OAuth from the first refusal to the restart: a person is asked once, and what was had is kept.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use yiem::{Env as _, SystemEnv, async_trait};
use yiem_mcp::{
    CallOptions, ClientKey, Consent, FileTokenStore, McpClient, McpError, McpErrorKind, McpServer,
    OAuthConfig, TokenStore,
};
use yiem_test::ManualEnv;

/// An MCP server and its authorization server in one, on loopback: it takes the token that it gave last.
struct Guarded {
    address: String,
    /// What was asked for, in order: verb and path.
    seen: Arc<Mutex<Vec<String>>>,
    /// What came to the token endpoint.
    forms: Arc<Mutex<Vec<String>>>,
    given: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

/// What the server says and does besides, as a value that each connection has.
#[derive(Clone, Default)]
struct Ways {
    /// Fields of the authorization server's metadata; null takes one away.
    metadata: Value,
    /// The token endpoint's answer, with its status; none gives a token.
    refusal: Option<(u16, Value)>,
    forms: Arc<Mutex<Vec<String>>>,
}

impl Guarded {
    async fn start() -> Self {
        Self::start_with(Ways::default()).await
    }

    async fn start_with(ways: Ways) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (seen, given) = (Arc::default(), Arc::default());
        let forms = Arc::clone(&ways.forms);
        let mut tasks = JoinSet::new();
        let (base, noted, count) = (address.clone(), Arc::clone(&seen), Arc::clone(&given));
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(
                    stream,
                    base.clone(),
                    Arc::clone(&noted),
                    Arc::clone(&count),
                    ways.clone(),
                ));
            }
        });
        Self {
            address,
            seen,
            forms,
            given,
            _tasks: tasks,
        }
    }

    fn asked_for(&self, what: &str) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|path| path.contains(what)).count()
    }

    /// The tokens that were given are worth nothing from now on.
    fn forget(&self) {
        self.given.fetch_add(100, Ordering::SeqCst);
    }
}

async fn serve(
    mut stream: TcpStream,
    base: String,
    seen: Arc<Mutex<Vec<String>>>,
    given: Arc<AtomicUsize>,
    ways: Ways,
) {
    let mut buffer = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if matches!(stream.read_buf(&mut buffer).await, Ok(0) | Err(_)) {
                return;
            }
        };
        let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
            .unwrap_or(0);
        while buffer.len() < end + length {
            if matches!(stream.read_buf(&mut buffer).await, Ok(0) | Err(_)) {
                return;
            }
        }
        let body = String::from_utf8_lossy(&buffer[end..end + length]).into_owned();
        buffer.drain(..end + length);
        let first = head.lines().next().unwrap_or_default().to_owned();
        seen.lock().unwrap().push(first.clone());
        let (status, more, answer) = answer(&first, &head, &body, &base, &given, &ways);
        let answer = answer.to_string();
        let text = format!(
            "HTTP/1.1 {status} S\r\nContent-Type: application/json\r\n{more}Content-Length: {}\r\n\r\n{answer}",
            answer.len()
        );
        if stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn answer(
    first: &str,
    head: &str,
    body: &str,
    base: &str,
    given: &AtomicUsize,
    ways: &Ways,
) -> (u16, String, Value) {
    let path = first.split(' ').nth(1).unwrap_or_default();
    let none = String::new();
    if path.starts_with("/.well-known/oauth-protected-resource") {
        return (
            200,
            none,
            json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}),
        );
    }
    if path.starts_with("/.well-known/") {
        let mut metadata = json!({"issuer": base, "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"], "grant_types_supported": ["authorization_code", "refresh_token"]});
        for (key, value) in ways.metadata.as_object().into_iter().flatten() {
            metadata[key] = value.clone();
        }
        let fields = metadata.as_object_mut().expect("an object");
        fields.retain(|_, value| !value.is_null());
        return (200, none, metadata);
    }
    match path {
        "/register" => {
            let redirects =
                serde_json::from_str::<Value>(body).unwrap_or_default()["redirect_uris"].clone();
            (
                201,
                none,
                json!({"client_id": "registered", "redirect_uris": redirects, "token_endpoint_auth_method": "none"}),
            )
        }
        "/token" => {
            ways.forms.lock().unwrap().push(body.to_owned());
            if let Some((status, answer)) = &ways.refusal {
                let mut answer = answer.clone();
                if answer["error_description"] == "echo" {
                    let form = reqwest::Url::parse(&format!("http://x/?{body}")).unwrap();
                    let sent: String = form.query_pairs().map(|(_, value)| value).collect();
                    answer["error_description"] = sent.into();
                }
                return (*status, none, answer);
            }
            let number = given.fetch_add(1, Ordering::SeqCst) + 1;
            (
                200,
                none,
                json!({"access_token": format!("token-{number}"), "token_type": "Bearer", "expires_in": 3600}),
            )
        }
        _ => {
            let token = format!(
                "authorization: bearer token-{}\r\n",
                given.load(Ordering::SeqCst)
            );
            if !head.contains(&token) {
                let metadata = format!("{base}/.well-known/oauth-protected-resource/mcp");
                return (
                    401,
                    format!("WWW-Authenticate: Bearer resource_metadata=\"{metadata}\"\r\n"),
                    Value::Null,
                );
            }
            let message: Value = serde_json::from_str(body).unwrap_or_default();
            let result = match message["method"].as_str() {
                Some("server/discover") => {
                    json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"})
                }
                _ => json!({"content": [{"type": "text", "text": "in"}], "resultType": "complete"}),
            };
            (
                200,
                none,
                json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
            )
        }
    }
}

/// A person who agrees at once.
#[derive(Default)]
struct Agrees(AtomicUsize);

#[async_trait]
impl Consent for Agrees {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:9/callback".into()
    }
    async fn ask(&self, url: &str) -> Result<String, McpError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let url = reqwest::Url::parse(url).expect("an address");
        let state = url.query_pairs().find(|(key, _)| key == "state");
        let state = state.expect("a state").1.into_owned();
        let mut back = reqwest::Url::parse(&self.redirect_uri()).unwrap();
        back.query_pairs_mut()
            .append_pair("code", "c")
            .append_pair("state", &state);
        Ok(back.into())
    }
}

async fn call(server: &Guarded, config: OAuthConfig) -> Result<String, McpError> {
    let way = McpServer::http(format!("{}/mcp", server.address))
        .name("guarded")
        .oauth(config);
    let client = McpClient::new(way, SystemEnv::shared()).unwrap();
    let called = client.call("t", json!({}), CallOptions::default());
    let outcome = tokio::time::timeout(Duration::from_secs(100), called)
        .await
        .expect("it ends")?;
    Ok(outcome.content[0].to_plain_text())
}

#[tokio::test]
async fn a_person_is_asked_once_and_not_again_at_the_next_start() {
    let server = Guarded::start().await;
    let folder = tempfile::tempdir().unwrap();
    let store = || Arc::new(FileTokenStore::new(folder.path().join("tokens")));
    let person = Arc::new(Agrees::default());
    let config = || OAuthConfig::new(Arc::clone(&person) as _);
    let asked = || person.0.load(Ordering::SeqCst);

    // In memory, a second start is a second question.
    for start in 1..=2 {
        assert_eq!(call(&server, config()).await.unwrap(), "in");
        assert_eq!(asked(), start);
    }
    // In a file, only the first is.
    for _ in 0..3 {
        assert_eq!(
            call(&server, config().token_store(store())).await.unwrap(),
            "in"
        );
        assert_eq!(asked(), 3);
    }
    assert_eq!(server.asked_for("/register"), 3);
    // One that the server takes no more is had anew, and kept.
    server.forget();
    for _ in 0..2 {
        assert_eq!(
            call(&server, config().token_store(store())).await.unwrap(),
            "in"
        );
        assert_eq!(asked(), 4);
    }
    // A file that cannot be used costs a question, and nothing else.
    let file = std::fs::read_dir(folder.path().join("tokens"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    std::fs::write(file.path(), "{half").unwrap();
    assert_eq!(
        call(&server, config().token_store(store())).await.unwrap(),
        "in"
    );
    assert_eq!(asked(), 5);
}

#[tokio::test]
async fn a_server_with_a_token_of_its_own_asks_nobody() {
    let server = Guarded::start().await;
    let person = Arc::new(Agrees::default());
    let way = McpServer::http(format!("{}/mcp", server.address))
        .bearer("wrong")
        .oauth(OAuthConfig::new(Arc::clone(&person) as _));
    let client = McpClient::new(way.name("guarded"), SystemEnv::shared()).unwrap();
    let error = client
        .call("t", json!({}), CallOptions::default())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("401"), "{error}");
    assert!(!error.to_string().contains("wrong"), "{error}");
    assert_eq!(person.0.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_store_that_fails_is_told_and_no_secret_with_it() {
    struct Broken;
    #[async_trait]
    impl TokenStore for Broken {
        async fn load(&self, _: &str) -> Result<Option<String>, McpError> {
            Ok(None)
        }
        async fn save(&self, _: &str, _: &str) -> Result<(), McpError> {
            Err(McpError::not_sent("the keyring is locked"))
        }
        async fn clear(&self, _: &str) -> Result<(), McpError> {
            Ok(())
        }
    }
    let server = Guarded::start().await;
    let config = OAuthConfig::new(Arc::new(Agrees::default())).token_store(Arc::new(Broken));
    let error = call(&server, config).await.unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("`guarded`") && said.contains("keyring is locked"),
        "{said}"
    );
    assert!(!said.contains("token-1"), "{said}");
}

/// A key that is in no other place.
const PEM: &str = include_str!("../../crates/yiem-mcp/tests/fixtures/keys/p256.pem");

fn keyed() -> OAuthConfig {
    let key = ClientKey::from_pem(PEM).expect("a key").key_id("k1");
    OAuthConfig::client_credentials_with_key("agent", key)
}

fn by_key() -> Ways {
    Ways {
        metadata: json!({"token_endpoint_auth_methods_supported": ["private_key_jwt"],
            "token_endpoint_auth_signing_alg_values_supported": ["RS256", "ES256"]}),
        ..Ways::default()
    }
}

/// The fields of a form, and header and claims of the statement in it.
fn statement(form: &str) -> (Vec<(String, String)>, Value, Value) {
    let url = reqwest::Url::parse(&format!("http://x/?{form}")).unwrap();
    let fields: Vec<(String, String)> = url
        .query_pairs()
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .collect();
    let assertion = fields.iter().find(|(key, _)| key == "client_assertion");
    let parts: Vec<Value> = assertion
        .expect("a statement")
        .1
        .split('.')
        .take(2)
        .map(|part| {
            let bytes = BASE64_URL_SAFE_NO_PAD.decode(part).expect("base64");
            serde_json::from_slice(&bytes).expect("JSON")
        })
        .collect();
    (fields, parts[0].clone(), parts[1].clone())
}

#[tokio::test]
async fn a_client_with_a_key_signs_who_it_is_and_sends_no_secret() {
    let server = Guarded::start_with(by_key()).await;
    let clock = ManualEnv::new();
    clock.advance(Duration::from_millis(999));
    let second = clock.now().as_millis() / 1000;
    let config = keyed().scopes(["a", "b"]).env(clock.shared());
    assert_eq!(call(&server, config).await.unwrap(), "in");
    let forms = server.forms.lock().unwrap().clone();
    let (fields, header, claims) = statement(&forms[0]);
    assert_eq!(header, json!({"alg": "ES256", "typ": "JWT", "kid": "k1"}));
    // Meant for this server alone, and for a minute.
    assert_eq!(claims["aud"], server.address.as_str());
    assert_eq!(
        (&claims["iss"], &claims["sub"]),
        (&json!("agent"), &json!("agent"))
    );
    assert_eq!(claims["iat"], second);
    assert_eq!(claims["exp"], second + 60);
    assert!(!claims["jti"].as_str().unwrap().is_empty());
    let others: Vec<_> = fields
        .iter()
        .filter(|(key, _)| key != "client_assertion")
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let resource = format!("{}/mcp", server.address);
    assert_eq!(
        others,
        [
            ("grant_type", "client_credentials"),
            (
                "client_assertion_type",
                "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            ),
            ("resource", resource.as_str()),
            ("scope", "a b"),
        ]
    );
}

#[tokio::test]
async fn a_client_with_a_key_has_its_token_anew_with_another_statement() {
    let server = Guarded::start_with(by_key()).await;
    let way = McpServer::http(format!("{}/mcp", server.address)).oauth(keyed());
    let client = McpClient::new(way.name("guarded"), SystemEnv::shared()).unwrap();
    let called = async || {
        let called = client.call("t", json!({}), CallOptions::default());
        let outcome = tokio::time::timeout(Duration::from_secs(100), called).await;
        outcome
            .expect("it ends")
            .map(|done| done.content[0].to_plain_text())
    };
    for _ in 0..2 {
        assert_eq!(called().await.unwrap(), "in");
        assert_eq!(server.asked_for("/token"), 1);
    }
    server.forget();
    assert_eq!(called().await.unwrap(), "in");
    let forms = server.forms.lock().unwrap().clone();
    let ids: Vec<Value> = forms
        .iter()
        .map(|form| statement(form).2["jti"].clone())
        .collect();
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn a_client_with_a_key_keeps_its_token_for_the_next_start() {
    let server = Guarded::start_with(by_key()).await;
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let store = Arc::new(FileTokenStore::new(folder.path()));
        assert_eq!(
            call(&server, keyed().token_store(store)).await.unwrap(),
            "in"
        );
        assert_eq!(server.asked_for("/token"), 1);
    }
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let kept = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(kept.contains("token-1") && !kept.contains("eyJ"), "{kept}");
    }
}

#[tokio::test]
async fn why_a_client_with_a_key_has_no_token_is_told_without_what_it_signed() {
    let with = |change: fn(&mut Ways)| {
        let mut ways = by_key();
        change(&mut ways);
        ways
    };
    for (ways, says) in [
        (
            with(|ways| {
                ways.metadata["token_endpoint_auth_methods_supported"] =
                    json!(["client_secret_post"])
            }),
            "takes no client by its key (private_key_jwt); it takes client_secret_post",
        ),
        (
            with(|ways| {
                ways.metadata["token_endpoint_auth_signing_alg_values_supported"] = json!(["RS256"])
            }),
            "it takes RS256, the key makes ES256",
        ),
        (
            with(|ways| ways.metadata["token_endpoint"] = json!("http://example.com/token")),
            "is not https",
        ),
        (
            with(|ways| ways.metadata["token_endpoint"] = json!("http://127.0.0.1:9/token")),
            "was not reached for a token",
        ),
        (
            with(|ways| {
                ways.refusal = Some((
                    401,
                    json!({"error": "invalid_client", "error_description": "unknown key"}),
                ))
            }),
            "(HTTP status 401, invalid_client): unknown key",
        ),
        (
            with(|ways| {
                ways.refusal = Some((
                    400,
                    json!({"error": "invalid_request", "error_description": "echo"}),
                ))
            }),
            "(HTTP status 400, invalid_request): client_credentials",
        ),
        (
            with(|ways| ways.refusal = Some((302, Value::Null))),
            "HTTP status 302, it does not say why",
        ),
        (
            with(|ways| ways.refusal = Some((200, json!({"access_token": 5})))),
            "status 200 and no token",
        ),
    ] {
        let server = Guarded::start_with(ways).await;
        let error = call(&server, keyed()).await.unwrap_err();
        let said = format!("{error} {error:?}");
        assert!(said.contains(says), "{says}: {said}");
        assert!(
            matches!(error.kind(), McpErrorKind::Unauthorized(_)),
            "{said}"
        );
        assert!(!said.contains("eyJ") && !said.contains("MIGH"), "{said}");
    }
}
