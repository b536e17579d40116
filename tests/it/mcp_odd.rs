//! Neighbours of the usual faults: what a server can send that nobody thought of. Raw bytes, whole agent runs:
//! the agent goes on, the message names server and cause, nothing waits for ever (M-5, M-7, M-8).

use super::mcp_faults::{process, run};
use serde_json::json;
use std::time::Duration;
use yiem::mcp::McpServer;
use yiem::tools::Discovery;
use yiem::{Agent, SystemEnv};
use yiem_mcp::{CallOptions, DialectChoice, McpClient};
use yiem_test::server::{Act, FakeMcpServer};
use yiem_test::{ManualEnv, Reply, ScriptedModel};

mod http;
mod more;

const FINE: &str = r#"{"id":$id,"result":{"content":[{"type":"text","text":"fine"}]}}"#;
/// The time for silence, where silence is what comes.
const SHORT: Duration = Duration::from_millis(400);

/// For how long a server may be silent whose answer has these words: not for long where it is never to answer,
/// and else for longer than the slowest machine needs.
fn patience(words: &str) -> Duration {
    if words.starts_with("no answer within") {
        SHORT
    } else {
        Duration::from_secs(60)
    }
}

fn answering(acts: Vec<Act>) -> FakeMcpServer {
    FakeMcpServer::legacy().tool("t").on("tools/call", acts)
}

fn wire(text: &str) -> Act {
    Act::Wire(text.to_owned())
}

/// What comes of the acts of a process, which should have these words: the text that the model reads, and
/// whether it is an error.
async fn over_pipe(acts: Vec<Act>, words: &str) -> (String, bool) {
    let called = run(process(&answering(acts)).call_timeout(patience(words))).await;
    (called.text, called.is_error)
}

#[tokio::test]
async fn odd_framing_over_pipes_is_read_or_ends_in_time() {
    let utf16: Vec<u8> =
        r#"{"id":2,"result":{}}"#.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (acts, is_error, words) in [
        // The framing of other systems.
        (vec![wire(&format!("\u{feff}{FINE}\n"))], false, "fine"),
        (vec![wire(&format!("{FINE}\r\n"))], false, "fine"),
        (vec![wire(&format!("\r\n\r\n\t \n{FINE}\n"))], false, "fine"),
        (
            vec![wire("Content-Length: 66\r\n\r\n"), Act::raw(FINE)],
            false,
            "fine",
        ),
        (vec![Act::Drip(format!("{FINE}\n"), 1)], false, "fine"),
        (vec![Act::bytes(b"\0\0\0\n"), Act::raw(FINE)], false, "fine"),
        (
            vec![Act::bytes(b"\xff\xfe\xfd\n"), Act::raw(FINE)],
            false,
            "fine",
        ),
        (
            vec![Act::bytes(&utf16), wire("\n"), Act::raw(FINE)],
            false,
            "fine",
        ),
        // Half a frame, and then nothing, or the end.
        (
            vec![wire(r#"{"jsonrpc":"2.0","id":"#), Act::Hang],
            true,
            "no answer within 400 ms",
        ),
        (
            vec![wire(r#"{"jsonrpc":"2.0","id":"#), Act::Exit(3)],
            true,
            "exit status 3",
        ),
        (
            vec![wire(r#"{"id":$id,"result":{"content":[{"ty"#), Act::Exit(0)],
            true,
            "no valid JSON",
        ),
        (
            vec![
                wire(r#"{"id":$id,"result":{"content":[{"type":"text","text":"fine"}]}}"#),
                Act::Exit(0),
            ],
            false,
            "fine",
        ),
        (
            vec![Act::raw(r#"{"id":99999,"result":{}}"#), Act::Hang],
            true,
            "no answer within 400 ms",
        ),
        (
            vec![
                Act::raw("[]"),
                Act::raw("[[]]"),
                Act::raw("[[1],null]"),
                Act::Hang,
            ],
            true,
            "no answer within 400 ms",
        ),
    ] {
        let (text, failed) = over_pipe(acts.clone(), words).await;
        assert!(text.contains(words), "{acts:?}: {text}");
        assert_eq!(failed, is_error, "{acts:?}: {text}");
        assert!(!failed || text.contains("`odd`"), "{acts:?}: {text}");
    }
}

#[tokio::test]
async fn a_timeout_tells_of_lines_that_were_no_messages() {
    let utf16: Vec<u8> = "{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (acts, words) in [
        (vec![Act::raw("Listening on stdio")], "Listening on stdio"),
        (vec![Act::bytes(&utf16), wire("\n")], "no message"),
    ] {
        let env = ManualEnv::new();
        let script = FakeMcpServer::legacy()
            .tool("t")
            .on("tools/call:t", acts.iter().cloned().chain([Act::Hang]))
            .on("tools/call:u", [Act::raw(FINE)]);
        let server = process(&script).name("odd").call_timeout(SHORT);
        let client = McpClient::new(server, env.shared()).unwrap();
        let silent = client.call("t", json!({}), CallOptions::default());
        // What answers this was said after all that.
        let later = async {
            let later = client.call("u", json!({}), CallOptions::default()).await;
            env.advance(SHORT);
            later.unwrap()
        };
        let both = async { tokio::join!(silent, later) };
        let (silent, _) = tokio::time::timeout(Duration::from_secs(100), both)
            .await
            .expect("it ends");
        let told = silent.unwrap_err().to_string();
        assert!(told.contains(words) && told.contains("`odd`"), "{told}");
        assert!(told.contains("no answer within 400 ms"), "{told}");
    }
}

#[tokio::test]
async fn odd_messages_over_pipes_are_answers_refusals_or_told() {
    let deep = |depth: usize| {
        format!(
            r#"{{"id":$id,"result":{}{}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    let twice = format!("{FINE}\n{}", FINE.replace("fine", "second"));
    for (raw, is_error, words) in [
        // Versions and ids.
        (FINE.replace("{\"id\"", r#"{"jsonrpc":"3.0","id""#), false, "fine"),
        (FINE.replace("{\"id\"", r#"{"jsonrpc":null,"id""#), false, "fine"),
        (FINE.replace("{\"id\"", r#"{"jsonrpc":["2.0"],"id""#), false, "fine"),
        (FINE.replace("$id", r#"" $id ""#), false, "fine"),
        (FINE.replace("$id", "$id.0"), false, "fine"),
        (FINE.replace("$id", "-$id"), true, "no answer within"),
        (FINE.replace("$id", "[$id]"), true, "no answer within"),
        (FINE.replace("$id", "null"), true, "no answer within"),
        // The first of two answers counts; the last of two keys.
        (twice, false, "fine"),
        (FINE.replace("{\"id\"", r#"{"id":"other","id""#), false, "fine"),
        // Results that are none.
        (r#"{"id":$id,"result":null}"#.into(), false, "(no tool output)"),
        (r#"{"id":$id,"result":{}}"#.into(), false, "(no tool output)"),
        (r#"{"id":$id,"result":[]}"#.into(), false, "(no tool output)"),
        (r#"{"id":$id,"result":""}"#.into(), false, ""),
        (r#"{"id":$id,"result":7}"#.into(), false, "7"),
        (r#"{"id":$id,"result":{"content":null}}"#.into(), false, "(no tool output)"),
        (r#"{"id":$id,"result":{"content":"bare"}}"#.into(), false, "bare"),
        (r#"{"id":$id,"result":{"content":[null,7,"x",{},{"type":9},{"type":"text"},{"type":"text","text":5}]}}"#.into(), false, "x"),
        (r#"{"id":$id,"result":{"content":[{"type":"text","text":"no"}],"isError":"TRUE"}}"#.into(), true, "no"),
        (r#"{"id":$id}"#.into(), true, "neither result nor error"),
        (deep(50), false, "["),
        (deep(30_000), true, "no valid JSON"),
        // Errors that are hardly any.
        (r#"{"id":$id,"error":{}}"#.into(), true, "no message"),
        (r#"{"id":$id,"error":{"message":"no code"}}"#.into(), true, "no code"),
        (r#"{"id":$id,"error":{"code":"E_BUSY","message":"later"}}"#.into(), true, "E_BUSY: later"),
        (r#"{"id":$id,"error":{"code":-32000.0,"message":"later"}}"#.into(), true, "-32000"),
        (r#"{"id":$id,"error":{"code":1e300,"message":"later"}}"#.into(), true, "later"),
        (r#"{"id":$id,"error":42}"#.into(), true, "42"),
        (r#"{"id":$id,"error":[]}"#.into(), true, "[]"),
        (r#"{"id":$id,"error":true}"#.into(), true, "true"),
        (r#"{"id":$id,"error":{"code":1,"message":{"de":"kaputt"}}}"#.into(), true, "kaputt"),
        (r#"{"id":$id,"error":{"code":1,"message":"gone"},"result":{"content":[]}}"#.into(), true, "gone"),
        // Batches.
        (format!(r#"[{{"id":"x","result":{{}}}},{FINE},17]"#), false, "fine"),
        (format!(r#"[{FINE},{{"method":"notifications/progress","params":{{"progressToken":$id}}}}]"#), false, "fine"),
    ] {
        let (text, failed) = over_pipe(vec![Act::raw(raw.clone())], words).await;
        let raw = raw.chars().take(120).collect::<String>();
        assert!(text.contains(words), "{raw}: {text}");
        assert_eq!(failed, is_error, "{raw}: {text}");
    }
}

#[tokio::test]
async fn odd_progress_is_no_harm() {
    for params in [
        r#"{"progressToken":$id,"progress":-1}"#,
        r#"{"progressToken":$id,"progress":1e308,"total":-5}"#,
        r#"{"progressToken":$id,"progress":"half","total":null,"message":7}"#,
        r#"{"progressToken":$id}"#,
        r#"{"progressToken":null,"progress":1}"#,
        r#"{"progressToken":[$id],"progress":1}"#,
        r#"{"progressToken":"$id","progress":2}"#,
        r#"{"progress":1}"#,
        "null",
        "[1,2]",
        r#""text""#,
    ] {
        let note =
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#);
        let acts = [&note, &note, &FINE.to_owned()].map(|text| Act::raw(text.clone()));
        let (text, _) = over_pipe(acts.into(), "fine").await;
        assert_eq!(text, "fine", "{note}");
    }
}

#[tokio::test]
async fn a_server_that_asks_without_end_is_answered_and_holds_up_nothing() {
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let elicit =
        r#"{"jsonrpc":"2.0","id":$id,"method":"elicitation/create","params":{"message":"?"}}"#;
    let acts = vec![
        Act::Flood(5_000, ping.into()),
        Act::Flood(500, elicit.into()),
        Act::Flood(
            500,
            r#"{"jsonrpc":"2.0","id":{"no":1},"method":"ping"}"#.into(),
        ),
        Act::Flood(
            500,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.into(),
        ),
        Act::raw(FINE),
    ];
    let (text, _) = over_pipe(acts, "fine").await;
    assert_eq!(text, "fine");
}

/// The tools that an agent is offered by such a list, and what its first run says.
async fn listing(result: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
    let script = FakeMcpServer::legacy().tool("x").on(
        "tools/list",
        [Act::raw(format!(r#"{{"id":$id,{result}}}"#))],
    );
    let client = McpClient::new(process(&script).name("odd"), SystemEnv::shared()).unwrap();
    let listing = tokio::time::timeout(Duration::from_secs(100), client.tools())
        .await
        .expect("it ends");
    match listing {
        Ok(listing) => (
            listing.tools.iter().map(|tool| tool.name.clone()).collect(),
            listing
                .rejected
                .iter()
                .map(|bad| format!("{}: {}", bad.name, bad.reason))
                .collect(),
            listing.warnings.clone(),
        ),
        Err(error) => (Vec::new(), Vec::new(), vec![error.to_string()]),
    }
}

#[tokio::test]
async fn odd_lists_give_what_can_be_used_and_say_what_cannot() {
    let good = r#"{"name":"good","inputSchema":{"type":"object"}}"#;
    for (list, tools, told) in [
        (
            format!(r#""result":{{"tools":[{good}],"nextCursor":null}}"#),
            1,
            "",
        ),
        (
            format!(r#""result":{{"tools":[{good},null,7,"x",[],{{}}]}}"#),
            1,
            "name",
        ),
        (
            format!(r#""result":{{"tools":[{good},{{"name":"","inputSchema":{{}}}}]}}"#),
            1,
            "name",
        ),
        (
            format!(r#""result":{{"tools":[{good},{{"name":7,"inputSchema":{{}}}}]}}"#),
            1,
            "name",
        ),
        (
            format!(r#""result":{{"tools":[{good},{{"name":"bad","inputSchema":"object"}}]}}"#),
            1,
            "bad",
        ),
        (
            format!(r#""result":{{"tools":[{good},{{"name":"bad","inputSchema":null}}]}}"#),
            1,
            "bad",
        ),
        (
            format!(r#""result":{{"tools":[{good},{good}]}}"#),
            1,
            "twice",
        ),
        (r#""result":{"tools":{}}"#.into(), 0, "`odd`"),
        (r#""result":{"tools":"none"}"#.into(), 0, "`odd`"),
        (r#""result":null"#.into(), 0, "`odd`"),
        (r#""result":[]"#.into(), 0, "`odd`"),
        (
            r#""error":{"code":-32601,"message":"Method not found"}"#.into(),
            0,
            "Method not found",
        ),
        // Cursors that lead nowhere: the same one for ever, of any kind.
        (
            format!(r#""result":{{"tools":[{good}],"nextCursor":"again"}}"#),
            1,
            "came twice",
        ),
        (
            format!(r#""result":{{"tools":[{good}],"nextCursor":""}}"#),
            1,
            "empty cursor",
        ),
        (
            format!(r#""result":{{"tools":[{good}],"nextCursor":7}}"#),
            1,
            "came twice",
        ),
        (
            format!(r#""result":{{"tools":[{good}],"nextCursor":{{"page":2}}}}"#),
            1,
            "came twice",
        ),
        (
            format!(r#""result":{{"tools":[{good}],"nextCursor":false}}"#),
            1,
            "came twice",
        ),
        (
            format!(
                r#""result":{{"tools":[{good}],"nextCursor":"{}"}}"#,
                "c".repeat(100_000)
            ),
            1,
            "came twice",
        ),
    ] {
        let (names, rejected, warnings) = listing(&list).await;
        let said = format!("{rejected:?} {warnings:?}");
        let list: String = list.chars().take(120).collect();
        assert_eq!(names.len(), tools, "{list}: {said}");
        assert!(said.contains(told), "{list}: {said}");
        assert!(
            said.len() < 2_000,
            "what is told is bounded: {} bytes",
            said.len()
        );
    }
}

#[tokio::test]
async fn odd_openings_are_open_or_told_with_the_servers_name() {
    let mut told = Vec::new();
    for (acts, opens, words) in [
        (
            vec![Act::raw(
                r#"{"id":$id,"result":{"protocolVersion":"2025-11-25"}}"#,
            )],
            true,
            "",
        ),
        (
            vec![Act::raw(
                r#"{"id":$id,"result":{"protocolVersion":"2025-11-25","capabilities":null,"serverInfo":7}}"#,
            )],
            true,
            "",
        ),
        (
            vec![Act::raw(
                r#"{"id":$id,"result":{"protocolVersion":"2025-11-25","capabilities":[]}}"#,
            )],
            true,
            "",
        ),
        (
            vec![Act::raw(
                r#"{"id":$id,"result":{"protocolVersion":"1900-01-01","capabilities":{}}}"#,
            )],
            false,
            "1900-01-01",
        ),
        (
            vec![Act::raw(
                r#"{"id":$id,"result":{"protocolVersion":20251125,"capabilities":{}}}"#,
            )],
            false,
            "20251125",
        ),
        (
            vec![Act::raw(
                r#"{"id":$id,"result":{"capabilities":{"tools":{}}}}"#,
            )],
            true,
            "",
        ),
        (
            vec![Act::raw(r#"{"id":$id,"result":null}"#)],
            false,
            "`odd`",
        ),
        (
            vec![Act::raw(r#"{"id":$id,"result":"hello"}"#)],
            false,
            "`odd`",
        ),
        (
            vec![Act::raw(
                r#"{"id":$id,"error":{"code":-32603,"message":"no licence"}}"#,
            )],
            false,
            "no licence",
        ),
        (
            vec![Act::Stderr("no database".into()), Act::Exit(9)],
            false,
            "no database",
        ),
        (
            vec![Act::raw("Usage: server [OPTIONS]"), Act::Exit(2)],
            false,
            "Usage: server",
        ),
        (vec![Act::Hang], false, "not connected within"),
    ] {
        let script = FakeMcpServer::legacy()
            .tool("t")
            .on("initialize", acts.clone())
            .on("tools/call", [Act::raw(FINE)]);
        let mut server = process(&script).name("odd").dialect(DialectChoice::Legacy);
        if words.starts_with("not connected within") {
            server = server.connect_timeout(SHORT);
        }
        let client = McpClient::new(server, SystemEnv::shared()).unwrap();
        let call = client.call("t", json!({}), CallOptions::default());
        let called = tokio::time::timeout(Duration::from_secs(100), call)
            .await
            .expect("it ends");
        let said = called
            .as_ref()
            .err()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert_eq!(called.is_ok(), opens, "{acts:?}: {said}");
        assert!(said.contains(words), "{acts:?}: {said}");
        told.push(said);
    }
    assert!(
        told.iter()
            .all(|said| said.is_empty() || said.contains("`odd`")),
        "{told:#?}"
    );
}

#[tokio::test]
async fn one_odd_server_takes_none_of_the_others_with_it() {
    let odd: Vec<McpServer> = [
        vec![Act::Exit(1)],
        vec![Act::bytes([0xff; 4096]), Act::Hang],
        vec![Act::Flood(2_000, "noise".into()), Act::Kill],
        vec![Act::CloseOutput],
    ]
    .into_iter()
    .enumerate()
    .map(|(at, acts)| {
        let script = FakeMcpServer::legacy().first(acts).tool("t");
        process(&script)
            .name(format!("odd{at}"))
            .connect_timeout(Duration::from_secs(2))
    })
    .collect();
    let good = process(&answering(vec![Act::raw(FINE)]))
        .name("good")
        .required(true);
    let model = ScriptedModel::new([Reply::call("t", json!({})), Reply::say("done")]);
    let agent = odd
        .into_iter()
        .fold(Agent::builder(model), |agent, server| agent.mcp(server));
    let agent = agent.mcp(good).discovery(Discovery::Eager).build().unwrap();
    let outcome = tokio::time::timeout(Duration::from_secs(100), agent.prompt("go")).await;
    let outcome = outcome.expect("it ends").unwrap();
    assert_eq!(outcome.text(), "done");
    let result = outcome.messages().find_map(|message| match &**message {
        yiem::Message::ToolResult(result) => Some(result.content[0].to_plain_text()),
        _ => None,
    });
    assert_eq!(result.as_deref(), Some("fine"));
}
