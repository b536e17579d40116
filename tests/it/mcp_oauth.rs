//! OAuth from the first refusal to the restart: a person is asked once, and what was had is kept.

use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use yiem::{SystemEnv, async_trait};
use yiem_mcp::{
    CallOptions, Consent, FileTokenStore, McpClient, McpError, McpServer, OAuthConfig, TokenStore,
};

/// An MCP server and its authorization server in one, on loopback: it takes the token that it gave last.
struct Guarded {
    address: String,
    /// What was asked for, in order: verb and path.
    seen: Arc<Mutex<Vec<String>>>,
    given: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Guarded {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (seen, given) = (Arc::default(), Arc::default());
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
                ));
            }
        });
        Self {
            address,
            seen,
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
        let (status, more, answer) = answer(&first, &head, &body, &base, &given);
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
        return (
            200,
            none,
            json!({"issuer": base, "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"], "grant_types_supported": ["authorization_code", "refresh_token"]}),
        );
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
