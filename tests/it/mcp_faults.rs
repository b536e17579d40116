//! Every kind of broken MCP server, from raw bytes that no type of ours wrote, through whole agent runs:
//! the agent goes on, the message names server and cause, no call waits for ever.

use serde_json::{Value, json};
use std::time::Duration;
use yiem::mcp::McpServer;
use yiem::{Agent, AgentEvent, EventKind, Message};
use yiem_test::server::{Act, FakeHttpServer, FakeMcpServer};
use yiem_test::{ManualEnv, Reply, ScriptedModel};

/// The server process of a script.
pub(crate) fn process(script: &FakeMcpServer) -> McpServer {
    McpServer::stdio(env!("CARGO_BIN_EXE_fake-mcp-server"), [script.to_json()])
}

/// What became of one call in an agent run.
pub(crate) struct Called {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    details: Value,
    model: ScriptedModel,
    events: Vec<AgentEvent>,
}

/// Runs an agent that calls the tool `t` once and then says "done", with a deadline for it all.
pub(crate) async fn run(server: McpServer) -> Called {
    run_calling(server, "t", json!({})).await
}

async fn run_calling(server: McpServer, tool: &str, arguments: Value) -> Called {
    let model = ScriptedModel::new([Reply::call(tool, arguments), Reply::say("done")]);
    let events = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = std::sync::Arc::clone(&events);
    let agent = Agent::builder(model.clone())
        .mcp(server.name("odd").required(true))
        .discovery(yiem::tools::Discovery::Eager)
        .listener(move |event: &AgentEvent| noted.lock().unwrap().push(event.clone()))
        .build()
        .unwrap();
    let outcome = tokio::time::timeout(Duration::from_secs(100), agent.prompt("go"))
        .await
        .expect("no call waits for ever")
        .unwrap();
    assert_eq!(outcome.text(), "done", "the agent goes on: {outcome:?}");
    let result = outcome
        .messages()
        .find_map(|message| match &**message {
            Message::ToolResult(result) => Some(result.clone()),
            _ => None,
        })
        .expect("the call has a result");
    let text: Vec<String> = result
        .content
        .iter()
        .map(yiem::Content::to_plain_text)
        .collect();
    let events = events.lock().unwrap().clone();
    Called {
        text: text.join("\n"),
        is_error: result.is_error,
        details: result.details.clone(),
        model,
        events,
    }
}

/// A legacy server with the tool `t`, which answers with this line.
fn answering(raw: &str) -> FakeMcpServer {
    FakeMcpServer::legacy()
        .tool("t")
        .on("tools/call", [Act::raw(raw)])
}

const GOOD: &str = r#""result":{"content":[{"type":"text","text":"fine"}]}"#;

#[tokio::test]
async fn an_answer_that_is_slightly_off_is_an_answer() {
    for raw in [
        format!(r#"{{"id":$id,{GOOD}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":$id,{GOOD},"error":null}}"#),
        format!(r#"{{"jsonrpc":"1.0","id":"$id",{GOOD},"method":"tools/call"}}"#),
        format!(r#"   {{"jsonrpc":2,"id":$id.0,{GOOD},"extra":[]}}  "#),
        format!("[{{\"id\":$id,{GOOD}}}]"),
        format!("{{\"method\":\"notifications/x\"}}\n\n  \nstray text\n{{\"id\":$id,{GOOD}}}"),
    ] {
        let called = run(process(&answering(&raw))).await;
        assert_eq!(
            (called.text.as_str(), called.is_error),
            ("fine", false),
            "{raw}"
        );
    }
}

#[tokio::test]
async fn a_refusal_is_readable_and_keeps_code_and_data() {
    for (raw, code, text) in [
        (
            r#"{"id":$id,"error":{"code":-32602,"message":"no such city","data":{"field":"city"}}}"#,
            -32602,
            "no such city",
        ),
        (
            r#"{"id":$id,"error":{"code":"-32000","message":"busy"}}"#,
            -32000,
            "busy",
        ),
        (r#"{"id":$id,"error":"it broke"}"#, 0, "it broke"),
        (
            r#"{"id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
            -32700,
            "Parse error",
        ),
    ] {
        let called = run(process(&answering(raw))).await;
        assert!(
            called.is_error && called.text.contains(text) && called.text.contains("`odd`"),
            "{raw}: {}",
            called.text
        );
        assert_eq!(called.details["mcpError"]["code"], code, "{raw}");
    }
}

#[tokio::test]
async fn a_tool_that_says_it_failed_is_an_error_result_with_its_own_words() {
    let raw =
        r#"{"id":$id,"result":{"content":[{"type":"text","text":"disk full"}],"isError":true}}"#;
    let called = run(process(&answering(raw))).await;
    assert_eq!((called.text.as_str(), called.is_error), ("disk full", true));
    let end = called.events.iter().find_map(|event| match &event.kind {
        EventKind::ToolExecutionEnd { is_error, .. } => Some(*is_error),
        _ => None,
    });
    assert_eq!(end, Some(true));
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_an_error_at_once() {
    for raw in [
        r#"{"id":$id}"#,
        r#"{"id":$id,"result":{"content":[{"type":"te"#,
        r#"{"jsonrpc":"2.0","id":$id,oops}"#,
    ] {
        let called = run(process(&answering(raw))).await;
        assert!(called.is_error, "{raw}: {}", called.text);
        assert!(
            called.text.contains("`odd`") && called.text.contains("cannot be read"),
            "{raw}: {}",
            called.text
        );
    }
}

#[tokio::test]
async fn a_result_of_any_shape_is_shown() {
    for (result, text) in [
        (r#"{"content":[]}"#, "(no tool output)"),
        (r#"{}"#, "(no tool output)"),
        ("null", "(no tool output)"),
        (r#"{"content":"bare"}"#, "bare"),
        (
            r#"{"content":[],"structuredContent":{"a":[1]}}"#,
            r#"{"a":[1]}"#,
        ),
        (
            r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1}}"#,
            "x",
        ),
        (
            r#"{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":"y"}]}"#,
            "[image: image/png, 3 bytes]\ny",
        ),
        (
            r#"{"content":[{"type":"hologram"},7,{"type":"text","text":"z"}]}"#,
            "[content of kind hologram]\n[content of an unknown kind]\nz",
        ),
        (
            r#"{"content":[{"type":"resource_link","uri":"file:///a","name":"a"}]}"#,
            "[resource: file:///a]",
        ),
        (
            r#"{"content":[{"type":"resource","resource":{"uri":"a:b","text":"inside"}}]}"#,
            "inside",
        ),
    ] {
        let called = run(process(&answering(&format!(
            r#"{{"id":$id,"result":{result}}}"#
        ))))
        .await;
        assert_eq!(
            (called.text.as_str(), called.is_error),
            (text, false),
            "{result}"
        );
    }
}

#[tokio::test]
async fn bad_bytes_inside_texts_cost_only_themselves() {
    use base64::Engine as _;
    let bytes = b"{\"id\":3,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"caf\xe9 \\ud83d\x01\"}]}}\n";
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    let script = FakeMcpServer::legacy()
        .tool("t")
        .on(
            "server/discover",
            [Act::raw(
                r#"{"id":$id,"error":{"code":-32601,"message":"no"}}"#,
            )],
        )
        .on(
            "tools/call",
            [Act::Bytes(encoded), Act::text("the id was another")],
        );
    let called = run(process(&script)).await;
    assert!(
        called.text.starts_with("caf\u{fffd} \u{fffd}") || called.text == "the id was another",
        "{}",
        called.text
    );
    assert!(!called.is_error);
}

#[tokio::test]
async fn a_huge_answer_is_a_typed_error_and_the_next_one_comes() {
    let script = FakeMcpServer::legacy()
        .tool("t")
        .once("tools/call", [Act::Huge(40 << 20)]);
    let called = run(process(&script)).await;
    assert!(
        called.is_error && called.text.contains("too large") && called.text.contains("33554432"),
        "{}",
        called.text
    );
}

#[tokio::test]
async fn a_server_that_dies_is_told_with_status_and_last_words() {
    for (acts, words) in [
        (
            vec![Act::Stderr("out of cheese".into()), Act::Exit(3)],
            vec!["exit status 3", "out of cheese"],
        ),
        (vec![Act::Kill], vec!["signal 9"]),
        (
            vec![Act::raw("half a line"), Act::Exit(1)],
            vec!["exit status 1"],
        ),
        (vec![Act::CloseOutput], vec!["exit status 0"]),
    ] {
        let script = FakeMcpServer::legacy()
            .tool("t")
            .on("tools/call", acts.clone());
        let called = run(process(&script)).await;
        assert!(
            called.is_error && called.text.contains("`odd`"),
            "{acts:?}: {}",
            called.text
        );
        for word in words {
            assert!(called.text.contains(word), "{acts:?}: {}", called.text);
        }
    }
}

const BEGUN: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$id,"progress":0}}"#;

#[tokio::test]
async fn a_mute_server_ends_in_a_timeout_and_is_told_so() {
    let script = FakeMcpServer::legacy()
        .tool("t")
        .tool("u")
        .on("tools/call:t", [Act::raw(BEGUN), Act::Hang])
        .on("tools/call:u", [Act::Seen]);
    // The time passes once the server has the call.
    let env = ManualEnv::new();
    let clock = env.clone();
    let model = ScriptedModel::new([
        Reply::call("t", json!({})),
        Reply::call("u", json!({})),
        Reply::say("done"),
    ]);
    let agent = Agent::builder(model)
        .mcp(
            process(&script)
                .name("odd")
                .required(true)
                .call_timeout(Duration::from_millis(200)),
        )
        .discovery(yiem::tools::Discovery::Eager)
        .env(env.shared())
        .listener(move |event: &AgentEvent| {
            if matches!(event.kind, EventKind::ToolExecutionUpdate { .. }) {
                clock.advance(Duration::from_millis(200));
            }
        })
        .build()
        .unwrap();
    let outcome = tokio::time::timeout(Duration::from_secs(100), agent.prompt("go"))
        .await
        .expect("no call waits for ever")
        .unwrap();
    let results: Vec<String> = outcome
        .messages()
        .filter_map(|message| match &**message {
            Message::ToolResult(result) => Some(result.content[0].to_plain_text()),
            _ => None,
        })
        .collect();
    assert!(
        results[0].contains("`odd`") && results[0].contains("no answer within 200 ms"),
        "{}",
        results[0]
    );
    assert!(
        results[1].contains("notifications/cancelled"),
        "{}",
        results[1]
    );
}

#[tokio::test]
async fn text_on_standard_output_is_skipped_and_never_answered() {
    let script = FakeMcpServer::legacy()
        .tool("t")
        .first([Act::raw(
            "Starting server…\n> node index.js\n{\"level\":30,\"msg\":\"up\"}\n\"quoted\"\n42\n[]",
        )])
        .on("tools/call", [Act::raw("DEBUG calling {tool}"), Act::Seen]);
    let called = run(process(&script)).await;
    assert!(!called.is_error);
    let seen: Vec<Value> = serde_json::from_str(&called.text).unwrap();
    assert!(
        seen.iter().all(|message| message.get("method").is_some()),
        "nothing was answered: {}",
        called.text
    );
}

#[tokio::test]
async fn a_flood_of_notifications_and_strays_does_not_hold_up_the_answer() {
    let script = FakeMcpServer::legacy().tool("t").on("tools/call", [
        Act::Flood(20_000, r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#.into()),
        Act::Flood(20_000, r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$id,"progress":1}}"#.into()),
        Act::Flood(1_000, "noise".into()),
        Act::Flood(1_000, r#"{"jsonrpc":"2.0","id":987654,"result":{}}"#.into()),
        Act::text("through"),
    ]);
    assert_eq!(run(process(&script)).await.text, "through");
}

#[tokio::test]
async fn a_legacy_servers_own_requests_are_answered() {
    let script = FakeMcpServer::legacy().tool("t").on("tools/call", [
        Act::raw(r#"{"jsonrpc":"2.0","id":"p1","method":"ping"}"#),
        Act::raw(r#"{"jsonrpc":"2.0","id":901,"method":"sampling/createMessage","params":{}}"#),
        Act::raw(r#"{"jsonrpc":"2.0","id":902,"method":"roots/list"}"#),
        Act::raw(r#"{"jsonrpc":"2.0","id":903,"method":"elicitation/create","params":{"message":"?","requestedSchema":{}}}"#),
        Act::raw(r#"{"jsonrpc":"2.0","id":904,"method":"no/such"}"#),
        Act::raw(r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"asked"}]}}"#),
    ]).tool("u").on("tools/call:u", [Act::Seen]);
    let script = FakeMcpServer {
        rules: script.rules.into_iter().rev().collect(),
        ..script
    };
    let model = ScriptedModel::new([
        Reply::call("t", json!({})),
        Reply::call("u", json!({})),
        Reply::say("done"),
    ]);
    let agent = Agent::builder(model)
        .mcp(process(&script).name("odd").required(true))
        .discovery(yiem::tools::Discovery::Eager)
        .build()
        .unwrap();
    let outcome = agent.prompt("go").await.unwrap();
    let mut text = outcome.messages().filter_map(|message| match &**message {
        Message::ToolResult(result) => Some(result.content[0].to_plain_text()),
        _ => None,
    });
    let seen: Vec<Value> = serde_json::from_str(&text.next_back().unwrap()).unwrap();
    let answer = |id: Value| {
        seen.iter()
            .find(|message| message["id"] == id && message.get("method").is_none())
            .unwrap_or_else(|| panic!("{id} was not answered: {seen:?}"))
    };
    assert_eq!(answer(json!("p1"))["result"], json!({}));
    assert_eq!(answer(json!(901))["error"]["code"], -32601);
    assert_eq!(answer(json!(902))["error"]["code"], -32601);
    assert_eq!(answer(json!(903))["result"]["action"], "decline");
    assert_eq!(answer(json!(904))["error"]["code"], -32601);
}

#[tokio::test]
async fn a_server_that_cannot_be_loaded_is_named_and_the_others_work() {
    let dead = FakeMcpServer::legacy().first([Act::Stderr("no licence".into()), Act::Exit(7)]);
    let model = ScriptedModel::new([Reply::call("t", json!({})), Reply::say("done")]);
    let agent = Agent::builder(model.clone())
        .mcp(process(&dead).name("dead"))
        .mcp(process(&answering(&format!(r#"{{"id":$id,{GOOD}}}"#))).name("alive"))
        .discovery(yiem::tools::Discovery::Eager)
        .build()
        .unwrap();
    let outcome = tokio::time::timeout(Duration::from_secs(100), agent.prompt("go"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(outcome.text(), "done");
    let required = Agent::builder(ScriptedModel::new([Reply::say("done")]))
        .mcp(process(&dead).name("dead").required(true))
        .build()
        .unwrap();
    let failed = tokio::time::timeout(Duration::from_secs(100), required.prompt("go"))
        .await
        .unwrap();
    let told = match failed {
        Err(error) => format!("{error:?}"),
        Ok(outcome) => outcome.ok().map_or_else(
            |error| format!("{error:?}"),
            |outcome| format!("{outcome:?}"),
        ),
    };
    assert!(
        told.contains("dead") && told.contains("exit status 7"),
        "{told}"
    );
}

#[tokio::test]
async fn odd_http_answers_are_told_apart() {
    let json_type = || vec![("Content-Type".to_owned(), "application/json".to_owned())];
    let good = format!(r#"{{"id":$id,{GOOD}}}"#);
    for (acts, text, is_error) in [
        (vec![Act::events([r#"{"method":"notifications/x"}"#, &good])], "fine", false),
        (vec![Act::Http(200, vec![], good.clone())], "fine", false),
        (vec![Act::Http(200, json_type(), format!("data: {good}"))], "fine", false),
        (vec![Act::Wire(format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: message\r\ndata: {good}"))], "fine", false),
        (vec![Act::Http(502, vec![], "<html>bad gateway</html>".into())], "HTTP status 502", true),
        (vec![Act::Http(429, json_type(), r#"{"id":$id,"error":{"code":-32029,"message":"slow down"}}"#.into())], "slow down", true),
        (vec![Act::Http(200, vec![], "<html>login</html>".into())], "<html>login</html>", true),
        (vec![Act::Http(200, json_type(), String::new())], "empty body", true),
        (vec![Act::Http(202, vec![], String::new())], "empty body", true),
        (vec![Act::events([r#"{"method":"notifications/x"}"#])], "before the answer", true),
        (vec![Act::Http(302, vec![("Location".to_owned(), "http://example.invalid/".to_owned())], String::new())], "redirects", true),
        (vec![Act::Wire("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"id\":".into())], "broke off", true),
        (vec![Act::Exit(0)], "`odd`", true),
        (vec![Act::Http(401, vec![], String::new())], "401", true),
    ] {
        let script = FakeMcpServer::modern().tool("t").on("tools/call", acts.clone());
        let server = FakeHttpServer::start(script).await;
        let called = run(McpServer::http(server.url())).await;
        assert_eq!(called.is_error, is_error, "{acts:?}: {}", called.text);
        assert!(called.text.contains(text), "{acts:?}: {}", called.text);
    }
}

#[tokio::test]
async fn a_body_that_never_comes_is_covered_by_the_timeout() {
    for acts in [
        vec![Act::Hang],
        vec![
            Act::Wire(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"
                    .into(),
            ),
            Act::Hang,
        ],
        vec![
            Act::Wire(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: still here\n\n".into(),
            ),
            Act::Hang,
        ],
    ] {
        let script = FakeMcpServer::modern().tool("t").on("tools/call", acts);
        let server = FakeHttpServer::start(script).await;
        let called =
            run(McpServer::http(server.url()).call_timeout(Duration::from_millis(200))).await;
        assert!(
            called.text.contains("no answer within 200 ms"),
            "{}",
            called.text
        );
    }
}

#[tokio::test]
async fn a_forgotten_session_is_opened_again_without_its_id_and_the_call_made_once() {
    let open = |session: &str| {
        let body = r#"{"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}"#;
        let headers = vec![
            ("Mcp-Session-Id".to_owned(), session.to_owned()),
            ("Content-Type".to_owned(), "application/json".to_owned()),
        ];
        vec![Act::Http(200, headers, body.into())]
    };
    let script = FakeMcpServer::legacy()
        .tool("t")
        .once("initialize", open("first"))
        .once("initialize", open("second"))
        .once("tools/call", [Act::Http(404, vec![], String::new())])
        .on("tools/call", [Act::text("fine")]);
    let server = FakeHttpServer::start(script).await;
    let called = run(McpServer::http(server.url())).await;
    assert_eq!(called.text, "fine");
    let requests = server.requests();
    let opened: Vec<_> = requests
        .iter()
        .filter(|request| request["body"]["method"] == "initialize")
        .collect();
    assert!(
        opened
            .iter()
            .all(|request| request["headers"].get("mcp-session-id").is_none())
    );
    let calls: Vec<_> = requests
        .iter()
        .filter(|request| request["body"]["method"] == "tools/call")
        .map(|request| {
            request["headers"]["mcp-session-id"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(calls, ["first", "second"]);
    assert!(called.model.take_breaches().is_empty());
}
