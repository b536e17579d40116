//! Odd servers, continued: answers that nobody asked for, wrong ends of pipes, streams that mislead.

use super::super::mcp_faults::{process, run};
use super::{FINE, answering, patience, wire};
use serde_json::{Value, json};
use std::time::Duration;
use yiem::SystemEnv;
use yiem::mcp::McpServer;
use yiem_mcp::{CallOptions, McpClient, McpErrorKind};
use yiem_test::server::{Act, FakeHttpServer, FakeMcpServer};

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(100), work)
        .await
        .expect("it ends")
}

#[tokio::test]
async fn answers_before_their_questions_and_odd_takings_back_are_no_harm() {
    let ahead = (1..40)
        .map(|id| Act::raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"ahead"}}],"tools":"ahead"}}}}"#)));
    let script = FakeMcpServer::legacy()
        .first(ahead.clone())
        .tool("t")
        .on("tools/call", [Act::raw(FINE)]);
    // Whatever it takes for the answer to what: it is told or read, in time, and the next try is right.
    let client = McpClient::new(process(&script).name("odd"), SystemEnv::shared()).unwrap();
    let first = within(client.call("t", json!({}), CallOptions::default())).await;
    if let Err(error) = first {
        assert!(error.to_string().contains("`odd`"), "{error}");
    }

    for params in [
        r#"{"requestId":$id}"#,
        r#"{"requestId":"$id","reason":"odd"}"#,
        r#"{"requestId":null}"#,
        r#"{"requestId":{"a":1}}"#,
        r#"{"requestId":99999}"#,
        "{}",
        "null",
        "[]",
        r#""text""#,
    ] {
        let note =
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#);
        let acts = vec![Act::raw(note.clone()), Act::raw(note), Act::raw(FINE)];
        let called = run(process(&answering(acts))).await;
        assert_eq!(called.text, "fine", "{params}");
    }
}

#[tokio::test]
async fn an_answer_goes_to_the_call_that_it_names_though_others_wait() {
    // The second request answers the first as well, twice, and itself at last.
    let script = FakeMcpServer::legacy()
        .tool("t")
        .once("tools/call", [Act::Gather(3)])
        .once("tools/call", [Act::Gather(3)])
        .on(
            "tools/call",
            [
                Act::raw(
                    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"whose?"}}"#,
                ),
                Act::raw(r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"whose?"}}"#),
                Act::raw(r#"{"jsonrpc":"2.0","id":null,"result":{"content":[]}}"#),
                Act::Gather(3),
            ],
        );
    let client = McpClient::new(process(&script).name("odd"), SystemEnv::shared()).unwrap();
    let call = |text: &'static str| {
        let client = client.clone();
        async move {
            let outcome = client.call("t", json!({"text": text}), CallOptions::default());
            within(outcome).await.unwrap().content[0]
                .as_text()
                .unwrap()
                .to_owned()
        }
    };
    let answers = tokio::join!(call("a"), call("b"), call("c"));
    assert_eq!(answers, ("a".into(), "b".into(), "c".into()));
}

#[tokio::test]
async fn a_server_that_reads_no_more_is_told_and_started_anew() {
    let script = r#"
        while read -r line; do
          id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
          case "$line" in
            *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}' ;;
            *'"deaf"'*) exec 0<&-; echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"'$$'"}]}}'; sleep 600 ;;
            *'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"'$$'"}]}}' ;;
            *'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"Method not found"}}' ;;
          esac
        done"#;
    let server = McpServer::stdio("sh", ["-c", script]).name("odd");
    let client = McpClient::new(server, SystemEnv::shared()).unwrap();
    let mut processes = Vec::new();
    for tool in ["deaf", "t", "t"] {
        let called = within(client.call(tool, json!({}), CallOptions::default())).await;
        processes.push(called.unwrap().content[0].as_text().unwrap().to_owned());
    }
    assert_ne!(
        processes[0], processes[1],
        "what was not sent is sent to a new one"
    );
    assert_eq!(processes[1], processes[2]);
    client.close().await;
}

#[tokio::test]
async fn a_line_without_end_is_bounded_and_told() {
    let cap = 32 << 10;
    let script = FakeMcpServer::legacy().tool("t").on(
        "tools/call",
        [
            wire(r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":""#),
            wire(&"x".repeat(80 << 10)),
            wire("\n"),
            Act::Hang,
        ],
    );
    let config =
        yiem_mcp::StdioConfig::new(env!("CARGO_BIN_EXE_fake-mcp-server"), [script.to_json()]);
    let transport = yiem_mcp::StdioTransport::new(config.max_message(cap), SystemEnv::shared());
    let server = McpServer::transport(transport).name("odd");
    let client = McpClient::new(server, SystemEnv::shared()).unwrap();
    let error = within(client.call("t", json!({}), CallOptions::default())).await;
    let error = error.unwrap_err();
    assert!(
        matches!(error.kind(), McpErrorKind::TooLarge { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn streams_that_mislead_are_read_or_told_in_time() {
    let sse = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let answer = |id: &str, text: &str| {
        format!(
            "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n\n"
        )
    };
    for (body, is_error, words) in [
        // Another call's answer comes on this call's stream first.
        (
            format!("{sse}\r\n{}{}", answer("99999", "not mine"), answer("$id", "fine")),
            false,
            "fine",
        ),
        (
            format!("{sse}\r\n{}{}", answer("\"x\"", "not mine"), answer("\"$id\"", "fine")),
            false,
            "fine",
        ),
        // Nothing else ever comes: then it is that one.
        (format!("{sse}\r\n{}", answer("99999", "alone")), false, "alone"),
        (
            format!(
                "{sse}\r\ndata: {{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{{\"code\":-32700,\"message\":\"whose?\"}}}}\n\n"
            ),
            true,
            "whose?",
        ),
        // Comments alone, and the end.
        (format!("{sse}\r\n{}", ": ping\n\n".repeat(100)), true, "`odd`"),
        (format!("{sse}\r\n"), true, "`odd`"),
        // Cut in the middle of an event, of a chunk, of a character.
        (
            format!(
                "{sse}Transfer-Encoding: chunked\r\n\r\n{}",
                chunk("data: {\"jsonrpc\":\"2.0\",\"id\":$id,\"res")
            ),
            true,
            "broke off",
        ),
        (
            format!("{sse}\r\ndata: {{\"jsonrpc\":\"2.0\",\"id\":$id,\"res"),
            true,
            "`odd`",
        ),
        (
            format!("{sse}Transfer-Encoding: chunked\r\n\r\n40\r\ndata: {{\"id\":"),
            true,
            "broke off",
        ),
        // A page where an answer was to be.
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<!doctype html><title>Log in</title>"
                .to_owned(),
            true,
            "Log in",
        ),
        (
            "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\n\r\n<html>upstream is down</html>"
                .to_owned(),
            true,
            "upstream is down",
        ),
    ] {
        for script in [FakeMcpServer::modern(), FakeMcpServer::legacy()] {
            let script = script.tool("t").on("tools/call", [wire(&body)]);
            let server = FakeHttpServer::start(script).await;
            let way = McpServer::http(server.url()).call_timeout(patience(words));
            let called = run(way).await;
            assert!(called.text.contains(words), "{body}: {}", called.text);
            assert_eq!(called.is_error, is_error, "{body}: {}", called.text);
            assert!(!is_error || called.text.contains("`odd`"), "{}", called.text);
        }
    }
}

#[tokio::test]
async fn a_stream_of_its_own_that_ends_at_once_is_not_opened_in_a_loop() {
    let sse = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: 0\n\n";
    let script = FakeMcpServer::legacy()
        .tool("t")
        .on("GET", [wire(sse)])
        .on("tools/call", [Act::Sleep(1_000), Act::raw(FINE)]);
    let server = FakeHttpServer::start(script).await;
    let called = run(McpServer::http(server.url())).await;
    assert_eq!(called.text, "fine");
    let opened = server
        .requests()
        .iter()
        .filter(|request| request["verb"] == "GET")
        .count();
    assert!((2..30).contains(&opened), "{opened} times in a second");
}

#[tokio::test]
async fn a_list_that_changes_whenever_it_is_read_is_read_once_a_turn() {
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let list = json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]});
    let script = FakeMcpServer::legacy()
        .tool("t")
        .on(
            "tools/list",
            [Act::raw(changed), Act::Reply(list), Act::raw(changed)],
        )
        .on("tools/call", [Act::Sleep(300), Act::Seen]);
    let called = run(process(&script)).await;
    let seen: Vec<Value> = serde_json::from_str(&called.text).unwrap();
    let lists = seen
        .iter()
        .filter(|message| message["method"] == "tools/list")
        .count();
    assert!((1..=5).contains(&lists), "{lists}");
}
