//! The gateway over HTTP and over two pipes, with raw bytes and with the client.

use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream,
};
use tokio::net::TcpStream;
use yiem_core::{
    SystemEnv, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ValidArgs, async_trait,
};
use yiem_mcp::{Drained, Gateway, GatewayBuilder, GatewayHttpConfig, McpErrorKind, McpServer};

/// `echo` gives back its text; `steps` tells of progress; `hang` never ends, and says when it was dropped.
struct TestTool {
    definition: Arc<ToolDefinition>,
    dropped: Arc<tokio::sync::Notify>,
    begun: Arc<tokio::sync::Notify>,
}

struct TellDrop(Arc<tokio::sync::Notify>);

impl Drop for TellDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait]
impl Tool for TestTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }
    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        match self.definition.name.as_str() {
            "hang" => {
                let _tell = TellDrop(Arc::clone(&self.dropped));
                self.begun.notify_one();
                std::future::pending().await
            }
            "steps" => {
                for step in 1..=3 {
                    context
                        .progress(json!({"progress": step, "total": 3}))
                        .await;
                }
            }
            _ => {}
        }
        Ok(ToolOutput::text(
            args.get("text").and_then(Value::as_str).unwrap_or_default(),
        ))
    }
}

struct Signs {
    begun: Arc<tokio::sync::Notify>,
    dropped: Arc<tokio::sync::Notify>,
}

fn builder() -> (GatewayBuilder, Signs) {
    let (begun, dropped) = (
        Arc::new(tokio::sync::Notify::new()),
        Arc::new(tokio::sync::Notify::new()),
    );
    let tool = |name: &str| {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        TestTool {
            definition: Arc::new(ToolDefinition::new(name, "", schema)),
            dropped: Arc::clone(&dropped),
            begun: Arc::clone(&begun),
        }
    };
    let builder = Gateway::builder(SystemEnv::shared())
        .name("test")
        .tools(["echo", "steps"].map(|name| Arc::new(tool(name)) as Arc<dyn Tool>))
        .tool(tool("hang"));
    (builder, Signs { begun, dropped })
}

async fn over_http(
    change: impl FnOnce(GatewayHttpConfig) -> GatewayHttpConfig,
) -> (Gateway, SocketAddr, Signs) {
    let (builder, signs) = builder();
    let config = change(GatewayHttpConfig::new("127.0.0.1:0".parse().unwrap()));
    let gateway = builder.http(config).start().await.unwrap();
    let address = gateway.http_addresses()[0];
    (gateway, address, signs)
}

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(100), work)
        .await
        .expect("it never ended")
}

/// A request as raw bytes on a connection of its own; the answer's head and body.
async fn raw(
    address: SocketAddr,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut head = format!(
        "{method} /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream
        .write_all(format!("{head}\r\n{body}").as_bytes())
        .await
        .unwrap();
    let mut bytes = Vec::new();
    soon(stream.read_to_end(&mut bytes)).await.unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_ascii_lowercase(), body.to_owned())
}

const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");

fn call(id: i64, tool: &str, meta: &Value) -> String {
    let mut params = json!({"name": tool, "arguments": {"text": "hi"}});
    if !meta.is_null() {
        params["_meta"] = meta.clone();
    }
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

fn modern_meta() -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 9})
}

const MODERN: [(&str, &str); 3] = [
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    BOTH,
];

#[tokio::test]
async fn an_answer_alone_is_json_and_one_with_progress_before_it_a_stream() {
    let (_gateway, address, _) = over_http(|config| config).await;
    let (status, head, body) = raw(address, "POST", &[BOTH], &call(1, "echo", &Value::Null)).await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: application/json"), "{head}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (&answer["id"], &answer["result"]["content"][0]["text"]),
        (&json!(1), &json!("hi"))
    );

    let asked = call(2, "steps", &json!({"progressToken": "t"}));
    let (status, head, body) = raw(address, "POST", &[BOTH], &asked).await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    let messages: Vec<Value> = body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let steps: Vec<_> = messages
        .iter()
        .map(|message| message["params"]["progress"].clone())
        .collect();
    assert_eq!(steps, [json!(1), json!(2), json!(3), Value::Null], "{body}");
    assert_eq!(messages[3]["result"]["content"][0]["text"], "hi");

    // One that takes no stream gets the answer alone.
    let (_, head, body) = raw(address, "POST", &[("accept", "application/json")], &asked).await;
    assert!(
        head.contains("content-type: application/json") && body.contains("\"result\""),
        "{head} {body}"
    );
}

#[tokio::test]
async fn a_modern_request_is_held_to_its_headers() {
    let (_gateway, address, _) = over_http(|config| config).await;
    let body = call(1, "echo", &modern_meta());
    let named = [&MODERN[..], &[("mcp-name", "echo")]].concat();
    let (status, _, answer) = raw(address, "POST", &named, &body).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(
        (status, &answer["result"]["resultType"]),
        (200, &json!("complete"))
    );
    let (status, _, answer) = raw(address, "POST", &MODERN, &body).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(
        (status, &answer["error"]["code"], &answer["id"]),
        (400, &json!(-32020), &json!(1))
    );
    let unknown =
        json!({"jsonrpc": "2.0", "id": 3, "method": "x/y", "params": {"_meta": modern_meta()}})
            .to_string();
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "x/y"),
        BOTH,
    ];
    let (status, _, answer) = raw(address, "POST", &headers, &unknown).await;
    assert_eq!(status, 404);
    assert!(answer.contains("-32601"), "{answer}");
}

#[tokio::test]
async fn a_legacy_session_begins_is_needed_and_ends() {
    let (_gateway, address, _) = over_http(|config| config).await;
    let open = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let (status, head, body) = raw(address, "POST", &[BOTH], &open.to_string()).await;
    assert_eq!(status, 200);
    assert!(body.contains("2025-06-18"), "{body}");
    let session = head
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .expect("a session")
        .to_owned();
    let own = [
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-06-18"),
        BOTH,
    ];
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let (status, _, body) = raw(address, "POST", &own, note).await;
    assert_eq!((status, body.as_str()), (202, ""));
    assert_eq!(
        raw(address, "POST", &own, &call(1, "echo", &Value::Null))
            .await
            .0,
        200
    );
    assert_eq!(raw(address, "DELETE", &own, "").await.0, 200);
    assert_eq!(
        raw(address, "POST", &own, &call(2, "echo", &Value::Null))
            .await
            .0,
        404
    );
    assert_eq!(raw(address, "DELETE", &own, "").await.0, 404);
}

#[tokio::test]
async fn what_is_no_request_is_refused_with_its_status() {
    let (_gateway, address, _) = over_http(|config| config.max_body(2_000)).await;
    let fine = call(1, "echo", &Value::Null);
    let large = call(1, &"x".repeat(3_000), &Value::Null);
    for (method, headers, body, expected) in [
        ("GET", vec![BOTH], "", 405),
        ("PUT", vec![BOTH], fine.as_str(), 405),
        ("POST", vec![BOTH], "{broken", 400),
        ("POST", vec![BOTH], "17", 400),
        ("POST", vec![BOTH], "", 400),
        ("POST", vec![("accept", "text/html")], &fine, 406),
        (
            "POST",
            vec![BOTH, ("content-type", "text/plain")],
            &fine,
            415,
        ),
        (
            "POST",
            vec![BOTH, ("mcp-protocol-version", "1999-12-31")],
            &fine,
            400,
        ),
        (
            "POST",
            vec![BOTH, ("mcp-session-id", "nobody's")],
            &fine,
            404,
        ),
        (
            "POST",
            vec![BOTH, ("origin", "https://evil.example")],
            &fine,
            403,
        ),
        ("POST", vec![BOTH], &large, 413),
        (
            "POST",
            vec![BOTH],
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            202,
        ),
        ("POST", vec![BOTH], &fine, 200),
    ] {
        let (status, _, answer) = raw(address, method, &headers, body).await;
        assert_eq!(status, expected, "{method} {headers:?} {body}: {answer}");
    }
}

#[tokio::test]
async fn a_token_is_wanted_from_everyone() {
    let (_gateway, address, _) = over_http(|config| config.bearer_token("sesame")).await;
    let body = call(1, "echo", &Value::Null);
    let (status, head, answer) = raw(address, "POST", &[BOTH], &body).await;
    assert_eq!(status, 401);
    assert!(
        head.contains("www-authenticate: bearer") && !answer.contains("sesame"),
        "{head}"
    );
    assert_eq!(
        raw(
            address,
            "POST",
            &[BOTH, ("authorization", "Bearer sesame")],
            &body
        )
        .await
        .0,
        200
    );
}

#[tokio::test]
async fn a_list_of_messages_is_answered_with_a_list() {
    let (_gateway, address, _) = over_http(|config| config).await;
    let batch = format!(
        r#"[{},{},{{"jsonrpc":"2.0","method":"notifications/initialized"}},17]"#,
        call(1, "echo", &Value::Null),
        call(2, "nope", &Value::Null)
    );
    let (status, _, body) = raw(address, "POST", &[BOTH], &batch).await;
    assert_eq!(status, 200);
    let answers: Vec<Value> = serde_json::from_str(&body).unwrap();
    assert_eq!(answers.len(), 3, "{body}");
    let of = |id: i64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert!(
        of(1)["result"].is_object() && of(2)["error"].is_object(),
        "{body}"
    );
}

/// Sends a request and leaves before its answer.
async fn leave_early(address: SocketAddr, headers: &[(&str, &str)], body: &str, signs: &Signs) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream
        .write_all(format!("{head}\r\n{body}").as_bytes())
        .await
        .unwrap();
    soon(signs.begun.notified()).await;
}

#[tokio::test]
async fn a_modern_caller_that_leaves_cancels_and_a_legacy_one_does_not() {
    let (gateway, address, signs) = over_http(|config| config).await;
    let named = [&MODERN[..], &[("mcp-name", "hang")]].concat();
    leave_early(address, &named, &call(1, "hang", &modern_meta()), &signs).await;
    soon(signs.dropped.notified()).await;
    soon(async {
        while gateway.running_calls() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;

    leave_early(address, &[BOTH], &call(2, "hang", &Value::Null), &signs).await;
    // The connection is gone, which was seen before other callers came and went; the call is not.
    for id in 3..13 {
        raw(address, "POST", &[BOTH], &call(id, "echo", &Value::Null)).await;
    }
    assert_eq!(gateway.running_calls(), 1);
    drop(gateway);
    soon(signs.dropped.notified()).await;
}

#[tokio::test]
async fn what_is_behind_a_gateway_is_reached_and_its_results_go_on_as_they_came() {
    let gateway = Gateway::builder(SystemEnv::shared())
        .server(McpServer::closure(|method, params| async move {
            match method.as_str() {
                "tools/list" => json!({"result": {"tools": [{"name": "up", "inputSchema": {"type": "object"}}]}}),
                _ => json!({"result": {"content": [{"type": "text", "text": params["name"]}], "odd": true}}),
            }
        }))
        .http(GatewayHttpConfig::new("127.0.0.1:0".parse().unwrap()))
        .start()
        .await
        .unwrap();
    let (status, _, body) = raw(
        gateway.http_addresses()[0],
        "POST",
        &[BOTH],
        &call(1, "up", &Value::Null),
    )
    .await;
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (status, &answer["result"]["content"][0]["text"]),
        (200, &json!("up"))
    );
    assert_eq!(
        answer["result"]["odd"], true,
        "what is not known goes on as it came"
    );
}

#[cfg(feature = "http")]
#[tokio::test]
async fn yiems_own_client_speaks_the_newest_revision_with_it() {
    use yiem_mcp::{CallOptions, McpClient};
    let (gateway, address, _) = over_http(|config| config).await;
    let server = McpServer::from_spec(&format!("up=http://{address}/mcp")).unwrap();
    let client = McpClient::new(server, SystemEnv::shared()).unwrap();
    assert_eq!(soon(client.tools()).await.unwrap().tools.len(), 3);
    assert_eq!(client.dialect().unwrap().to_string(), "2026-07-28");
    let outcome = soon(client.call("echo", json!({"text": "x"}), CallOptions::default()))
        .await
        .unwrap();
    assert_eq!(outcome.content[0].as_text(), Some("x"));
    client.close().await;
    assert_eq!(soon(gateway.drain()).await, Drained::default());
}

#[tokio::test]
async fn draining_lets_a_call_end_and_refuses_new_connections() {
    let (begin, signs) = builder();
    let gateway = begin
        .drain_time(Duration::from_millis(300))
        .http(GatewayHttpConfig::new("127.0.0.1:0".parse().unwrap()))
        .start()
        .await
        .unwrap();
    let address = gateway.http_addresses()[0];
    let body = call(1, "hang", &Value::Null);
    let asking = raw(address, "POST", &[BOTH], &body);
    let draining = async {
        soon(signs.begun.notified()).await;
        soon(gateway.drain()).await
    };
    let ((status, _, body), drained) = tokio::join!(asking, draining);
    // It never ends by itself, so it was cut off, and its caller was told.
    assert_eq!((status, drained.cut, drained.finished), (200, 1, 0));
    assert!(
        body.contains("the gateway ended before the call did"),
        "{body}"
    );
    soon(signs.dropped.notified()).await;
    assert!(
        TcpStream::connect(address).await.is_err(),
        "nobody listens any more"
    );
}

/// The other end of a gateway on pipes.
struct Pipe {
    lines: tokio::io::Lines<BufReader<tokio::io::ReadHalf<DuplexStream>>>,
    input: tokio::io::WriteHalf<DuplexStream>,
}

impl Pipe {
    async fn open() -> (Gateway, Self, Signs) {
        let (builder, signs) = builder();
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        let gateway = builder.pipes(input, output).start().await.unwrap();
        let (output, input) = tokio::io::split(ours);
        (
            gateway,
            Self {
                lines: BufReader::new(output).lines(),
                input,
            },
            signs,
        )
    }

    async fn say(&mut self, line: &str) {
        self.input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn hear(&mut self) -> Value {
        let line = soon(self.lines.next_line()).await.unwrap().expect("a line");
        serde_json::from_str(&line).unwrap()
    }
}

#[tokio::test]
async fn over_pipes_calls_run_beside_each_other_and_can_be_cancelled() {
    let (gateway, mut pipe, signs) = Pipe::open().await;
    pipe.say(&call(1, "hang", &Value::Null)).await;
    soon(signs.begun.notified()).await;
    pipe.say(&call(2, "steps", &json!({"progressToken": "t"})))
        .await;
    for step in 1..=3 {
        assert_eq!(pipe.hear().await["params"]["progress"], step);
    }
    assert_eq!(pipe.hear().await["id"], 2);
    pipe.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    soon(signs.dropped.notified()).await;
    pipe.say("this is no JSON").await;
    assert_eq!(pipe.hear().await["error"]["code"], -32700);
    pipe.say(r#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#)
        .await;
    assert_eq!(
        pipe.hear().await,
        json!({"jsonrpc": "2.0", "id": "last", "result": {}})
    );
    assert_eq!(gateway.running_calls(), 0);
}

#[tokio::test]
async fn the_end_of_the_input_ends_a_gateway_on_pipes_after_its_last_answer() {
    let (gateway, mut pipe, _) = Pipe::open().await;
    pipe.say(&call(1, "echo", &Value::Null)).await;
    pipe.input.shutdown().await.unwrap();
    assert_eq!(pipe.hear().await["id"], 1);
    assert!(
        soon(pipe.lines.next_line()).await.unwrap().is_none(),
        "and then the end"
    );
    soon(gateway.ended()).await;
}

#[tokio::test]
async fn a_gateway_that_cannot_begin_says_why() {
    let (builder, _) = builder();
    let error = builder.start().await.unwrap_err();
    assert!(
        matches!(error.kind(), McpErrorKind::Config(_)) && error.to_string().contains("no place"),
        "{error}"
    );
    let (_gateway, address, _) = over_http(|config| config).await;
    let (builder, _) = self::builder();
    let error = builder
        .http(GatewayHttpConfig::new(address))
        .start()
        .await
        .unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    let dead = McpServer::stdio("/does/not/exist", Vec::<String>::new()).name("dead");
    let config = GatewayHttpConfig::new("127.0.0.1:0".parse().unwrap());
    let error = Gateway::builder(SystemEnv::shared())
        .server(dead)
        .http(config)
        .start()
        .await
        .unwrap_err();
    assert!(error.to_string().contains("`dead`"), "{error}");
}
