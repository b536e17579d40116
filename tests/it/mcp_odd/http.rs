//! Odd answers over HTTP, of both eras and of the older transport.

use super::super::mcp_faults::run;
use super::{FINE, answering, patience, wire};
use serde_json::{Value, json};
use std::time::Duration;
use yiem::SystemEnv;
use yiem::mcp::McpServer;
use yiem_mcp::{CallOptions, McpClient};
use yiem_test::server::{Act, FakeHttpServer, FakeMcpServer, FakeSseServer};

fn head(status: &str, headers: &str, body: &str) -> Act {
    wire(&format!("HTTP/1.1 {status}\r\n{headers}\r\n{body}"))
}

fn typed(kind: &str, body: &str) -> Act {
    let headers = vec![("Content-Type".to_owned(), kind.to_owned())];
    Act::Http(200, headers, body.to_owned())
}

#[tokio::test]
async fn odd_http_is_read_or_told_in_time() {
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let sse = "Content-Type: text/event-stream\r\n";
    let chunked = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n";
    let length = |body: &str| {
        format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        )
    };
    // The id is not known here: such bodies stand without one, and count by the way that they come.
    let bare = r#"{"result":{"content":[{"type":"text","text":"fine"}]}}"#;
    let half = bare.len() / 2;
    let utf16: Vec<u8> = bare.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut utf16_answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", utf16.len()).into_bytes();
    utf16_answer.extend(utf16);
    for (acts, is_error, words) in [
        // Content types in any case, or none, or another.
        (
            vec![typed("Application/JSON; Charset=\"UTF-8\"", FINE)],
            false,
            "fine",
        ),
        (
            vec![typed(
                "TEXT/Event-Stream ;charset=utf-8",
                &format!("data: {FINE}\n\n"),
            )],
            false,
            "fine",
        ),
        (vec![typed("text/plain", FINE)], false, "fine"),
        (vec![typed("application/octet-stream", FINE)], false, "fine"),
        (
            vec![typed("application/json", &format!("\u{feff}{FINE}"))],
            false,
            "fine",
        ),
        (vec![typed("text/event-stream", FINE)], false, "fine"),
        // An answer beside a status that wants none.
        (vec![Act::Http(202, vec![], FINE.into())], false, "fine"),
        (vec![Act::Http(201, vec![], FINE.into())], false, "fine"),
        (vec![head("204 No Content", "", "")], true, "204"),
        (vec![head("304 Not Modified", "", "")], true, "304"),
        (
            vec![Act::Http(
                500,
                vec![],
                r#"{"id":$id,"error":{"code":-32603,"message":"boom"}}"#.into(),
            )],
            true,
            "boom",
        ),
        (vec![Act::Http(500, vec![], FINE.into())], true, "500"),
        (
            vec![Act::Http(418, vec![], "teapot".into())],
            true,
            "teapot",
        ),
        (
            vec![head("999 Odd", "Content-Length: 0\r\n", "")],
            true,
            "`odd`",
        ),
        // Chunks.
        (
            vec![head(
                "200 OK",
                chunked,
                &format!("{}{}0\r\n\r\n", chunk(&bare[..half]), chunk(&bare[half..])),
            )],
            false,
            "fine",
        ),
        (
            vec![head("200 OK", chunked, &chunk(&bare[..half]))],
            true,
            "broke off",
        ),
        (
            vec![head("200 OK", chunked, "ffff\r\n{\"id\"")],
            true,
            "broke off",
        ),
        (
            vec![head("200 OK", chunked, "zz\r\nnonsense")],
            true,
            "`odd`",
        ),
        (
            vec![head("200 OK", chunked, &chunk(&bare[..half])), Act::Hang],
            true,
            "no answer within 400 ms",
        ),
        // Lengths.
        (
            vec![head(
                "200 OK",
                "Content-Length: 5\r\nContent-Length: 50\r\n",
                bare,
            )],
            true,
            "`odd`",
        ),
        (
            vec![head("200 OK", "Content-Length: -5\r\n", bare)],
            true,
            "`odd`",
        ),
        (
            vec![head(
                "200 OK",
                "Content-Length: 99999999999999999999999\r\n",
                bare,
            )],
            true,
            "`odd`",
        ),
        (
            vec![head("200 OK", &length(&bare[..half]), bare)],
            true,
            "`odd`",
        ),
        (
            vec![head("200 OK", "Content-Type: application/json\r\n", bare)],
            false,
            "fine",
        ),
        // Heads.
        (
            vec![head(
                "200 OK",
                &format!("X-Large: {}\r\n{}", "x".repeat(4 << 20), length(bare)),
                bare,
            )],
            true,
            "`odd`",
        ),
        (
            vec![head(
                "200 OK",
                &format!("{}{}", "X-Many: x\r\n".repeat(5_000), length(bare)),
                bare,
            )],
            true,
            "`odd`",
        ),
        (
            vec![head(
                "200 OK",
                &format!("X-Nul: \0\r\n{}", length(bare)),
                bare,
            )],
            true,
            "`odd`",
        ),
        (vec![wire("hello, I am no web server\r\n")], true, "`odd`"),
        (
            vec![
                wire("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n"),
                head("200 OK", &length(bare), bare),
            ],
            false,
            "fine",
        ),
        (
            vec![Act::Drip("HTTP/1.1 200 OK\r\nContent-Type: app".into(), 30)],
            true,
            "no answer within 400 ms",
        ),
        // Encodings that nobody asked for.
        (
            vec![head(
                "200 OK",
                "Content-Encoding: gzip\r\nContent-Length: 4\r\n",
                "\u{1f}abc",
            )],
            true,
            "`odd`",
        ),
        (vec![Act::bytes(&utf16_answer)], true, "`odd`"),
        // Streams.
        (
            vec![head("200 OK", sse, &format!("\u{feff}data: {bare}\n\n"))],
            false,
            "fine",
        ),
        (
            vec![head("200 OK", sse, &format!("data: {bare}\r\r"))],
            false,
            "fine",
        ),
        (
            vec![head(
                "200 OK",
                sse,
                &format!("data: {}\ndata: {}\n\n", &bare[..10], &bare[10..]),
            )],
            false,
            "fine",
        ),
        (
            vec![head(
                "200 OK",
                sse,
                &format!(
                    "event: other\ndata: {bare}\n\nevent: message\ndata:{}\n\n",
                    bare.replace("fine", "right")
                ),
            )],
            false,
            "right",
        ),
        (
            vec![
                head("200 OK", sse, "data: {\"method\"\n\ndata: nonsense\n\n"),
                Act::Hang,
            ],
            true,
            "no answer within 400 ms",
        ),
        (
            vec![
                head(
                    "200 OK",
                    sse,
                    "retry: 99999999999999999999\nid: \0\nretry: -1\n\n",
                ),
                Act::Hang,
            ],
            true,
            "no answer within 400 ms",
        ),
        (
            vec![
                head("200 OK", sse, &": nothing\n\n".repeat(50_000)),
                Act::Hang,
            ],
            true,
            "no answer within 400 ms",
        ),
        (
            vec![head(
                "200 OK",
                sse,
                &format!("data: {bare}\n\ndata: {}\n\n", bare.replace("fine", "late")),
            )],
            false,
            "fine",
        ),
        // Redirects that lead around.
        (
            vec![Act::Http(
                307,
                vec![("Location".into(), "/mcp".into())],
                String::new(),
            )],
            true,
            "redirects",
        ),
        (
            vec![Act::Http(
                307,
                vec![("Location".into(), "ftp://h/".into())],
                String::new(),
            )],
            true,
            "`odd`",
        ),
        (
            vec![Act::Http(
                307,
                vec![("Location".into(), "http://".into())],
                String::new(),
            )],
            true,
            "`odd`",
        ),
        (vec![Act::Http(307, vec![], String::new())], true, "307"),
        // Ways to prove oneself that are none.
        (vec![Act::Http(407, vec![], String::new())], true, "407"),
        (
            vec![Act::Http(
                401,
                vec![(
                    "WWW-Authenticate".into(),
                    "Bearer resource_metadata=\"".into(),
                )],
                String::new(),
            )],
            true,
            "401",
        ),
    ] {
        for modern in [true, false] {
            let script = if modern {
                FakeMcpServer::modern()
            } else {
                FakeMcpServer::legacy()
            };
            let script = script.tool("t").on("tools/call", acts.clone());
            let server = FakeHttpServer::start(script).await;
            let way = McpServer::http(server.url());
            let called = run(way.call_timeout(patience(words))).await;
            let acts = format!("{acts:?}").chars().take(300).collect::<String>();
            assert!(called.text.contains(words), "{acts}: {}", called.text);
            assert_eq!(called.is_error, is_error, "{acts}: {}", called.text);
            assert!(
                !is_error || called.text.contains("`odd`"),
                "{acts}: {}",
                called.text
            );
            assert!(
                called.text.len() < 4_000,
                "{acts}: {} bytes",
                called.text.len()
            );
            let waited = called.text.contains("no answer within");
            assert_eq!(waited, words.starts_with("no answer within"), "{acts}");
        }
    }
}

#[tokio::test]
async fn a_session_id_that_changes_in_mid_session_is_not_taken() {
    let with_session = |session: &str, body: &str| {
        let headers = vec![
            ("Mcp-Session-Id".to_owned(), session.to_owned()),
            ("Content-Type".to_owned(), "application/json".to_owned()),
        ];
        Act::Http(200, headers, body.to_owned())
    };
    let opened =
        r#"{"id":$id,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}"#;
    let script = FakeMcpServer::legacy()
        .tool("t")
        .on("initialize", [with_session("first", opened)])
        .on("tools/call", [with_session("other", FINE)]);
    let server = FakeHttpServer::start(script).await;
    let client = McpClient::new(McpServer::http(server.url()), SystemEnv::shared()).unwrap();
    for _ in 0..3 {
        client
            .call("t", json!({}), CallOptions::default())
            .await
            .unwrap();
    }
    let sessions: Vec<Value> = server
        .requests()
        .iter()
        .filter(|request| request["body"]["method"] == "tools/call")
        .map(|request| request["headers"]["mcp-session-id"].clone())
        .collect();
    assert_eq!(sessions, ["first", "first", "first"]);
}

#[tokio::test]
async fn a_stream_that_breaks_after_an_id_is_read_on_for_so_long_and_no_longer() {
    let sse = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let broken = wire(&format!("{sse}id: e-1\nretry: 1\ndata:\n\n"));
    // It goes on where it broke off.
    let script = FakeMcpServer::legacy()
        .tool("t")
        .once("GET", [Act::Http(405, vec![], String::new())])
        .on("GET", [wire(&format!("{sse}id: e-2\ndata: {{\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"fine\"}}]}}}}\n\n"))])
        .on("tools/call", [broken.clone()]);
    let server = FakeHttpServer::start(script).await;
    let called = run(McpServer::http(server.url())).await;
    assert_eq!(called.text, "fine");
    let asked = server.requests();
    assert!(
        asked
            .iter()
            .any(|request| request["headers"]["last-event-id"] == "e-1"),
        "{asked:?}"
    );
    // It never goes on, or never to an end.
    for again in [
        Act::Http(405, vec![], String::new()),
        Act::Http(404, vec![], String::new()),
        broken.clone(),
        Act::Exit(0),
    ] {
        let script = FakeMcpServer::legacy()
            .tool("t")
            .once("GET", [Act::Http(405, vec![], String::new())])
            .on("GET", [again.clone()])
            .on("tools/call", [broken.clone()]);
        let server = FakeHttpServer::start(script).await;
        let called = run(McpServer::http(server.url()).call_timeout(Duration::from_secs(5))).await;
        assert!(
            called.is_error && called.text.contains("`odd`"),
            "{again:?}: {}",
            called.text
        );
        let calls = server.requests();
        let calls = calls
            .iter()
            .filter(|request| request["body"]["method"] == "tools/call")
            .count();
        assert_eq!(calls, 1, "it may have run: {again:?}");
    }
}

#[tokio::test]
async fn the_older_transport_with_odd_streams_is_read_or_told_in_time() {
    for (acts, is_error, words) in [
        (vec![Act::raw(FINE)], false, "fine"),
        (
            vec![
                wire("data: nonsense\n\n: comment\n\nevent: other\ndata: x\n\n"),
                Act::raw(FINE),
            ],
            false,
            "fine",
        ),
        (
            vec![
                wire("data: {\"id\":$id,\"result\":"),
                wire("{\"content\":\"x\"}}\n\n"),
            ],
            false,
            "x",
        ),
        (vec![Act::Hang], true, "no answer within 400 ms"),
        (vec![Act::Exit(0)], true, "closed its stream"),
        (
            vec![wire("data: {\"id\":$id,"), Act::Exit(0)],
            true,
            "closed its stream",
        ),
        (vec![Act::Http(500, vec![], "boom".into())], true, "boom"),
        (
            vec![Act::Http(404, vec![], "no such session".into())],
            true,
            "`odd`",
        ),
        (
            vec![Act::raw(
                r#"{"id":$id,"error":{"code":-32000,"message":"no"}}"#,
            )],
            true,
            "no",
        ),
        (
            vec![
                wire("event: endpoint\ndata: http://elsewhere.invalid/\n\n"),
                Act::raw(FINE),
            ],
            false,
            "fine",
        ),
    ] {
        for at_once in [true, false] {
            let server = FakeSseServer::start(answering(acts.clone())).await;
            let mut way = McpServer::http(server.url());
            if at_once {
                way = way.old_sse();
            }
            let called = run(way.call_timeout(patience(words))).await;
            assert!(called.text.contains(words), "{acts:?}: {}", called.text);
            assert_eq!(called.is_error, is_error, "{acts:?}: {}", called.text);
            let waited = called.text.contains("no answer within");
            assert_eq!(waited, words.starts_with("no answer within"), "{acts:?}");
            assert!(
                !is_error || called.text.contains("`odd`"),
                "{acts:?}: {}",
                called.text
            );
        }
    }
}
