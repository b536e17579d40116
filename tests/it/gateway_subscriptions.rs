//! What a gateway declares, subscribes to and lets go of for its callers: only what holds, and for as long as
//! somebody wants it. Raw bytes on the callers' side, real processes behind (M-10).

use super::mcp_faults::process;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use yiem::{SystemEnv, async_trait};
use yiem_mcp::{
    CallOptions, DialectChoice, Elicit, Elicitation, ElicitationAnswer, Gateway, GatewayHttpConfig,
    McpClient, McpEvent, McpServer,
};
use yiem_test::server::{Act, FakeMcpServer};

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work)
        .await
        .expect("nothing waits for ever")
}

fn script() -> FakeMcpServer {
    let change =
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"r:1"}}"#;
    let visit = json!({"method": "elicitation/create", "params": {"mode": "url", "message": "Go", "url": "https://h.example/x", "elicitationId": "e1"}});
    ["change", "seen", "visit", "refuse", "done"]
        .into_iter()
        .fold(FakeMcpServer::legacy(), FakeMcpServer::tool)
        .on("resources/subscribe", [Act::Reply(json!({}))])
        .on("resources/unsubscribe", [Act::Reply(json!({}))])
        .on("tools/call:change", [Act::raw(change), Act::text("changed")])
        .on("tools/call:seen", [Act::Seen])
        .on("tools/call:visit", [Act::Ask(visit)])
        .on("tools/call:refuse", [Act::raw(r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32042,"message":"visit first","data":{"elicitations":[{"mode":"url","message":"Go","url":"https://h.example/y","elicitationId":"e2"}]}}}"#)])
        .on("tools/call:done", [
            Act::raw(r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}"#),
            Act::raw(r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e2"}}"#),
            Act::raw(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#),
            Act::text("done"),
        ])
}

async fn over_http(
    config: impl FnOnce(GatewayHttpConfig) -> GatewayHttpConfig,
) -> (Gateway, String) {
    let http = config(GatewayHttpConfig::new("127.0.0.1:0".parse().unwrap()));
    let gateway = Gateway::builder(SystemEnv::shared())
        .server(process(&script()))
        .http(http)
        .start();
    let gateway = within(gateway).await.unwrap();
    let url = format!("http://{}/mcp", gateway.http_addresses()[0]);
    (gateway, url)
}

/// Posts a message; the session that was opened by it, and the answer's body.
async fn post(url: &str, session: Option<&str>, body: &Value) -> (Option<String>, Value) {
    let http = reqwest::Client::builder()
        .tls_backend_preconfigured(yiem_tls::client_config())
        .build()
        .unwrap();
    let mut request = http
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(body.to_string());
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let response = within(request.send()).await.unwrap();
    let opened = response.headers().get("mcp-session-id");
    let opened = opened.map(|id| id.to_str().unwrap().to_owned());
    let text = within(response.text()).await.unwrap();
    (
        opened,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

fn open() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}})
}

fn call(id: u64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

/// The methods of the messages about subscriptions that reached the server.
fn about_subscriptions(answer: &Value) -> Vec<String> {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    let seen: Vec<Value> = serde_json::from_str(text).unwrap();
    let methods = seen.iter().filter_map(|message| message["method"].as_str());
    methods
        .filter_map(|name| name.strip_prefix("resources/"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn changes_are_declared_only_to_callers_that_can_be_told_of_them() {
    let (_told, url) = over_http(|config| config).await;
    let (session, answer) = post(&url, None, &open()).await;
    assert!(session.is_some());
    let declared = &answer["result"]["capabilities"];
    assert_eq!(
        declared["resources"],
        json!({"listChanged": true, "subscribe": true})
    );
    assert_eq!(declared["tools"], json!({"listChanged": true}));

    let (_untold, url) = over_http(|config| config.sessions(false)).await;
    let (session, answer) = post(&url, None, &open()).await;
    assert_eq!(session, None);
    let declared = &answer["result"]["capabilities"];
    assert_eq!(declared["resources"], json!({}), "{declared}");
    assert_eq!(declared["tools"], json!({}), "{declared}");
    // As it says: a subscription is refused, with the way that there is.
    let subscribe = json!({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": "r:1"}});
    let (_, refused) = post(&url, None, &subscribe).await;
    let words = refused["error"]["message"].as_str().unwrap();
    assert!(words.contains("subscriptions/listen"), "{refused}");
}

#[tokio::test]
async fn the_server_is_told_when_the_last_session_that_wanted_a_resource_ends() {
    let (_gateway, url) = over_http(|config| config).await;
    let mut sessions = Vec::new();
    for id in 2..4 {
        let (session, _) = post(&url, None, &open()).await;
        let session = session.unwrap();
        let subscribe = json!({"jsonrpc": "2.0", "id": id, "method": "resources/subscribe", "params": {"uri": "r:1"}});
        let (_, answer) = post(&url, Some(&session), &subscribe).await;
        assert_eq!(answer["result"], json!({}), "{answer}");
        sessions.push(session);
    }
    let (witness, _) = post(&url, None, &open()).await;
    let witness = witness.unwrap();
    let http = reqwest::Client::builder()
        .tls_backend_preconfigured(yiem_tls::client_config())
        .build()
        .unwrap();
    for (ended, session) in sessions.iter().enumerate() {
        let (_, seen) = post(&url, Some(&witness), &call(9, "seen")).await;
        assert_eq!(
            about_subscriptions(&seen),
            ["subscribe", "subscribe"],
            "{ended}"
        );
        let ending = http.delete(&url).header("mcp-session-id", session).send();
        assert_eq!(within(ending).await.unwrap().status().as_u16(), 200);
    }
    within(async {
        loop {
            let (_, seen) = post(&url, Some(&witness), &call(9, "seen")).await;
            let about = about_subscriptions(&seen);
            if about.len() > 2 {
                return assert_eq!(about, ["subscribe", "subscribe", "unsubscribe"]);
            }
        }
    })
    .await;
}

/// A gateway on pipes, spoken to by lines.
struct Piped {
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Piped {
    fn start(script: &FakeMcpServer) -> Self {
        Self::behind(&[], script)
    }

    /// With another gateway between, which speaks as a modern server.
    fn behind_a_modern_one(script: &FakeMcpServer) -> Self {
        let between = [env!("CARGO_BIN_EXE_mcp-gateway"), "--stdio", "--"];
        Self::behind(&between, script)
    }

    fn behind(between: &[&str], script: &FakeMcpServer) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mcp-gateway"))
            .args(["--stdio", "--"])
            .args(between)
            .arg(env!("CARGO_BIN_EXE_fake-mcp-server"))
            .arg(script.to_json())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            _child: child,
        }
    }

    async fn says(&mut self, message: Value) {
        let line = format!("{message}\n");
        within(self.input.write_all(line.as_bytes())).await.unwrap();
    }

    /// The messages up to the answer to that request, which is the last.
    async fn hears_until(&mut self, id: u64) -> Vec<Value> {
        let mut heard = Vec::new();
        loop {
            let line = within(self.lines.next_line())
                .await
                .unwrap()
                .expect("a line");
            let message: Value = serde_json::from_str(&line).unwrap();
            let ends = message["id"] == id && message.get("method").is_none();
            heard.push(message);
            if ends {
                return heard;
            }
        }
    }

    async fn hears_of(&mut self, method: &str) -> Value {
        loop {
            let line = within(self.lines.next_line())
                .await
                .unwrap()
                .expect("a line");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"] == method {
                return message;
            }
        }
    }
}

fn modern(mut message: Value) -> Value {
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    message
}

/// Whose updates of the resource came: the listeners' ids.
fn updates(heard: &[Value]) -> Vec<Value> {
    heard
        .iter()
        .filter(|message| message["method"] == "notifications/resources/updated")
        .map(|message| message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone())
        .collect()
}

#[tokio::test]
async fn of_two_listeners_that_share_a_resource_each_ends_for_itself() {
    let mut gateway = Piped::start(&script());
    for id in [1, 2] {
        let listen = json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen",
            "params": {"notifications": {"resourceSubscriptions": ["r:1"]}}});
        gateway.says(modern(listen)).await;
        let granted = gateway
            .hears_of("notifications/subscriptions/acknowledged")
            .await;
        let granted = &granted["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(*granted, json!(["r:1"]));
    }
    gateway.says(modern(call(10, "change"))).await;
    let mut heard = gateway.hears_until(10).await;
    while updates(&heard).len() < 2 {
        gateway.says(modern(call(11, "seen"))).await;
        heard.extend(gateway.hears_until(11).await);
    }
    let mut both = updates(&heard);
    both.sort_by_key(Value::as_u64);
    assert_eq!(both, [json!(1), json!(2)]);

    for (ended, left) in [(1, vec![json!(2)]), (2, vec![])] {
        let over = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ended}});
        gateway.says(over).await;
        gateway.says(modern(call(20, "change"))).await;
        let mut heard = gateway.hears_until(20).await;
        // Two rounds later, what was to come has come.
        let mut about = Vec::new();
        within(async {
            let mut rounds = 0;
            while rounds < 2 || (left.is_empty() && about.len() < 3) {
                rounds += 1;
                gateway.says(modern(call(21, "seen"))).await;
                let more = gateway.hears_until(21).await;
                about = about_subscriptions(more.last().unwrap());
                heard.extend(more);
            }
        })
        .await;
        assert_eq!(updates(&heard), left, "after the end of {ended}");
        let told = ["subscribe", "subscribe", "unsubscribe"];
        assert_eq!(about, told[..2 + usize::from(left.is_empty())]);
    }
}

/// What the server takes for subscribed, as it was told.
fn subscribed(answer: &Value) -> BTreeSet<String> {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    let seen: Vec<Value> = serde_json::from_str(text).unwrap();
    let mut subscribed = BTreeSet::new();
    for message in &seen {
        let uri = message["params"]["uri"].as_str().unwrap_or_default();
        match message["method"].as_str() {
            Some("resources/subscribe") => _ = subscribed.insert(uri.to_owned()),
            Some("resources/unsubscribe") => _ = subscribed.remove(uri),
            _ => {}
        }
    }
    subscribed
}

/// Calls `seen` until these are subscribed to at the server.
async fn until_subscribed(gateway: &mut Piped, call: fn(Value) -> Value, wanted: &[&str]) {
    within(async {
        loop {
            gateway.says(call(self::call(90, "seen"))).await;
            let heard = gateway.hears_until(90).await;
            if subscribed(heard.last().unwrap()).iter().eq(wanted) {
                return;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn resources_of_a_modern_server_are_listened_for_by_one_request() {
    let mut gateway = Piped::behind_a_modern_one(&script());
    let listen = |id: u64, uris: &[&str]| {
        modern(
            json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen",
            "params": {"notifications": {"resourceSubscriptions": uris}}}),
        )
    };
    let over = |id: u64| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    let acknowledged = "notifications/subscriptions/acknowledged";
    for (id, uris) in [(1, &["r:1"][..]), (2, &["r:1", "r:2"])] {
        gateway.says(listen(id, uris)).await;
        let granted = gateway.hears_of(acknowledged).await;
        let granted = &granted["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(*granted, json!(uris));
    }
    // The server between has one listener, whose second request is there before the first ends.
    gateway.says(modern(call(10, "change"))).await;
    let mut heard = Vec::new();
    within(async {
        while BTreeSet::from_iter(updates(&heard).iter().map(Value::to_string)).len() < 2 {
            gateway.says(modern(call(11, "seen"))).await;
            heard.extend(gateway.hears_until(11).await);
        }
    })
    .await;
    until_subscribed(&mut gateway, modern, &["r:1", "r:2"]).await;
    // One that wants less, and then nobody: the server behind all hears of it.
    gateway.says(over(2)).await;
    until_subscribed(&mut gateway, modern, &["r:1"]).await;
    gateway.says(over(1)).await;
    until_subscribed(&mut gateway, modern, &[]).await;
    // Once more after that.
    gateway.says(listen(3, &["r:1"])).await;
    gateway.hears_of(acknowledged).await;
    gateway.says(modern(call(12, "change"))).await;
    let told = gateway.hears_of("notifications/resources/updated").await;
    assert_eq!(told["params"]["uri"], "r:1");
}

#[tokio::test]
async fn a_legacy_caller_subscribes_to_a_resource_of_a_modern_server() {
    let mut gateway = Piped::behind_a_modern_one(&script());
    gateway.says(open()).await;
    let opened = gateway.hears_until(1).await;
    let declared = &opened.last().unwrap()["result"]["capabilities"]["resources"];
    assert_eq!(declared["subscribe"], true);
    let about = |id: u64, name: &str| json!({"jsonrpc": "2.0", "id": id, "method": name, "params": {"uri": "r:1"}});
    gateway.says(about(2, "resources/subscribe")).await;
    let answer = gateway.hears_until(2).await;
    assert_eq!(answer.last().unwrap()["result"], json!({}), "{answer:?}");
    gateway.says(call(3, "change")).await;
    let told = gateway.hears_of("notifications/resources/updated").await;
    assert_eq!(told["params"]["uri"], "r:1");
    gateway.says(about(4, "resources/unsubscribe")).await;
    gateway.hears_until(4).await;
    until_subscribed(&mut gateway, |call| call, &[]).await;
}

#[tokio::test]
async fn a_modern_server_that_does_not_tell_of_a_resource_refuses_its_subscription() {
    let acknowledged = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["r:1"]},"_meta":{"io.modelcontextprotocol/subscriptionId":$id}}}"#;
    let discovery = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "resources": {"subscribe": true}}});
    let some = FakeMcpServer::modern()
        .on("server/discover", [Act::Reply(discovery.clone())])
        .on("subscriptions/listen", [Act::raw(acknowledged)]);
    let none = FakeMcpServer::modern()
        .on("server/discover", [Act::Reply(discovery)])
        .on(
            "subscriptions/listen",
            [Act::raw(
                r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32601,"message":"Method not found"}}"#,
            )],
        );
    for (server, uri, granted) in [
        (&some, "r:1", true),
        (&some, "r:2", false),
        (&none, "r:1", false),
    ] {
        let mut gateway = Piped::start(server);
        gateway.says(open()).await;
        gateway.hears_until(1).await;
        let subscribe = json!({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": uri}});
        gateway.says(subscribe).await;
        let answer = gateway.hears_until(2).await;
        let answer = answer.last().unwrap();
        assert_eq!(answer.get("result").is_some(), granted, "{answer}");
        if !granted {
            let words = answer["error"]["message"].as_str().unwrap();
            assert!(words.contains("does not tell of changes"), "{answer}");
        }
    }
}

struct Visitor;

#[async_trait]
impl Elicit for Visitor {
    async fn elicit(&self, _: Elicitation) -> ElicitationAnswer {
        ElicitationAnswer::Decline
    }
}

#[tokio::test]
async fn the_end_of_a_visit_is_told_to_whom_it_was_asked_of_and_to_nobody_else() {
    let (_gateway, url) = over_http(|config| config).await;
    let client = || {
        let server = McpServer::http(&url)
            .dialect(DialectChoice::Legacy)
            .elicit(std::sync::Arc::new(Visitor));
        McpClient::new(server, SystemEnv::shared()).unwrap()
    };
    let [visits, refused, other] = [client(), client(), client()];
    for (client, tool) in [(&visits, "visit"), (&refused, "refuse"), (&other, "seen")] {
        let called = within(client.call(tool, json!({}), CallOptions::default())).await;
        assert_eq!(called.is_err(), tool == "refuse");
    }
    let told = [vec!["e1"], vec!["e2"], vec![]];
    let mut all = [visits.events(), refused.events(), other.events()];
    let mut heard: [BTreeSet<String>; 3] = Default::default();
    for (events, heard) in all.iter_mut().zip(&mut heard) {
        // The stream on which a client is told may not be open yet: then there is another round.
        let rounds = async {
            loop {
                let done = other.call("done", json!({}), CallOptions::default());
                within(done).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let hearing = async {
            let mut marks = 0;
            // The first mark may be that of a round whose beginning was missed.
            while marks < 2 {
                match within(events.recv()).await {
                    Ok(McpEvent::ElicitationComplete(params)) => {
                        heard.insert(params["elicitationId"].as_str().unwrap().to_owned());
                    }
                    Ok(McpEvent::ToolsChanged) => marks += 1,
                    _ => {}
                }
            }
        };
        tokio::select! {
            () = rounds => {}
            () = hearing => {}
        }
    }
    for (heard, told) in heard.iter().zip(&told) {
        assert!(heard.iter().eq(told), "{heard:?}: {told:?}");
    }
}

#[tokio::test]
async fn a_question_that_is_taken_back_while_its_call_is_held_is_not_asked_again() {
    let ask = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object"}}}"#;
    let back = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}"#;
    let script = FakeMcpServer::legacy()
        .tool("t")
        .once("tools/call", [Act::raw(ask), Act::Gather(2)])
        .on("tools/call", [Act::raw(back), Act::Gather(2)]);
    let mut gateway = Piped::start(&script);
    let able = |id: u64, text: &str, state: Option<&Value>| {
        let mut message = modern(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "t", "arguments": {"text": text}}}));
        let params = &mut message["params"];
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
        if let Some(state) = state {
            params["requestState"] = state.clone();
        }
        message
    };
    gateway.says(able(1, "first", None)).await;
    let asked = gateway.hears_until(1).await.pop().unwrap();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    gateway.says(able(2, "second", None)).await;
    let second = gateway.hears_until(2).await.pop().unwrap();
    assert_eq!(second["result"]["content"][0]["text"], "second");
    // It comes back without an answer, and none is wanted any more.
    let state = &asked["result"]["requestState"];
    gateway.says(able(3, "first", Some(state))).await;
    let first = gateway.hears_until(3).await.pop().unwrap();
    assert_eq!(first["result"]["content"][0]["text"], "first", "{first}");
}
