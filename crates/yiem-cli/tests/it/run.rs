//! `yiem run` against a server.

use std::io::{Read, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::command::{Running, call, finish, yiem};
use crate::model_server::{Answer, ModelServer, text, tool_call};

const KEY: &str = "sk-canary-0123456789";

fn run(server: &ModelServer, more: &[&str]) -> Vec<String> {
    let args = ["run", "--base-url", &server.base_url, "--model", "m"];
    args.iter()
        .chain(more)
        .map(|arg| (*arg).to_owned())
        .collect()
}

#[test]
fn a_reply_is_streamed_and_printed() {
    let server = ModelServer::start([text("Hello there.")]);
    let done = call(run(&server, &["--system", "Be brief.", "Say", "hello"])).with_code(0);
    assert_eq!(done.out, "Hello there.\n");
    assert_eq!(done.err, "");
    let asked = server.asked();
    assert_eq!(asked.path, "/v1/chat/completions");
    assert_eq!(asked.body["model"], "m");
    assert_eq!(asked.body["stream"], true);
    assert_eq!(
        asked.body["messages"][0],
        json!({"role": "system", "content": "Be brief."})
    );
    assert_eq!(asked.last_text(), "Say hello");
    assert_eq!(asked.header("authorization"), None);
}

#[test]
fn of_a_reply_that_begins_anew_only_what_counts_is_printed() {
    let piece = |choice: u32, text: &str| json!({"choices": [{"index": choice, "delta": {"content": text}}]});
    let server = ModelServer::start([Answer::Stream(vec![
        piece(1, "An alternative"),
        piece(0, "The reply."),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
    ])]);
    let done = call(run(&server, &["hi"])).with_code(0);
    // Nobody saw the piece that does not count, so nothing is said of it.
    assert_eq!((done.out.as_str(), done.err.as_str()), ("The reply.\n", ""));
}

#[test]
fn a_key_is_sent_and_never_shown() {
    let server = ModelServer::start([
        text("hello"),
        Answer::Json(
            401,
            json!({"error": {"message": format!("bad key {KEY}"), "code": "invalid_api_key"}}),
        ),
    ]);
    for (code, more) in [(0, &["-v", "hi"][..]), (1, &["-v", "hi"])] {
        let mut command = yiem(run(&server, more));
        command.env("OPENAI_API_KEY", KEY);
        let done = finish(command).with_code(code);
        assert_eq!(
            server.asked().header("authorization"),
            Some(&*format!("Bearer {KEY}"))
        );
        assert!(!(done.out.clone() + &done.err).contains(KEY), "{done:?}");
        if code == 1 {
            assert!(done.only_line().contains("OPENAI_API_KEY"), "{done:?}");
        }
    }
    let mut command = yiem(run(&server, &["--api-key-env", "MY_KEY", "hi"]));
    command.env("MY_KEY", KEY).env("OPENAI_API_KEY", "another");
    let done = finish(command).with_code(1);
    assert_eq!(
        server.asked().header("authorization"),
        Some(&*format!("Bearer {KEY}"))
    );
    assert!(done.only_line().contains("MY_KEY"), "{done:?}");
}

#[test]
fn tools_are_called_and_their_results_go_back() {
    let server = ModelServer::start([
        tool_call("c1", "getWeather", r#"{"city":"Tokyo"}"#),
        text("Sunny it is."),
    ]);
    let yiem_itself = format!("demo=stdio:{} serve --stdio", env!("CARGO_BIN_EXE_yiem"));
    let done = call(run(
        &server,
        &["-v", "--mcp", &yiem_itself, "weather in Tokyo?"],
    ))
    .with_code(0);
    assert_eq!(done.out, "Sunny it is.\n");
    assert!(done.err.contains("✓ getWeather"), "{}", done.err);
    let first = server.asked();
    let offered: Vec<&str> = first.body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["function"]["name"].as_str().unwrap())
        .collect();
    assert!(
        offered.contains(&"getWeather") && offered.contains(&"getTime"),
        "{offered:?}"
    );
    let second = server.asked();
    let last = second.body["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(last["role"], "tool");
    assert_eq!(last["tool_call_id"], "c1");
    assert!(
        second.last_text().contains("Weather in Tokyo: Sunny, 22°C"),
        "{}",
        second.last_text()
    );
}

#[test]
fn bad_calls_are_answered_and_the_run_goes_on() {
    let yiem_itself = format!("demo=stdio:{} serve --stdio", env!("CARGO_BIN_EXE_yiem"));
    for (call_name, arguments, told) in [
        ("no_such_tool", "{}", "no_such_tool"),
        ("getWeather", "{\"city\": ", "could not be read"),
        ("getWeather", "{}", "Missing required arguments: city"),
        (
            "getTime",
            "{}",
            "provide at least one of 'timezone' or 'city'",
        ),
    ] {
        let server = ModelServer::start([tool_call("c1", call_name, arguments), text("I see.")]);
        let done = call(run(&server, &["--mcp", &yiem_itself, "go"])).with_code(0);
        assert_eq!(done.out, "I see.\n");
        server.asked();
        let answer = server.asked().last_text();
        assert!(answer.contains(told), "{call_name}{arguments}: {answer}");
    }
}

#[test]
fn a_refused_connection_is_one_line_that_says_what_to_do() {
    // Nobody listens at a port that was just given back.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let address = format!("http://127.0.0.1:{port}/v1");
    let done = call(["run", "--base-url", &address, "--model", "m", "hi"]).with_code(1);
    let line = done.only_line();
    assert!(
        line.contains(&address) && line.contains("--base-url"),
        "{line}"
    );
    assert_eq!(done.out, "");
}

#[test]
fn a_server_that_dies_is_one_line() {
    let server = ModelServer::start([Answer::Dies(vec![
        json!({"choices": [{"index": 0, "delta": {"content": "Let me "}}]}),
    ])]);
    let done = call(run(&server, &["hi"])).with_code(1);
    assert!(done.only_line().contains("the model failed"), "{done:?}");
}

#[test]
fn a_server_that_refuses_is_one_line() {
    for (status, body, told) in [
        (
            404,
            json!({"error": {"message": "no such model m"}}),
            "--model",
        ),
        (
            400,
            json!({"error": {"message": "unknown field strict"}}),
            "unknown field strict",
        ),
    ] {
        let server = ModelServer::start([Answer::Json(status, body)]);
        let done = call(run(&server, &["hi"])).with_code(1);
        assert!(done.only_line().contains(told), "{done:?}");
        server.asked();
        assert!(server.was_left_alone(), "a refusal is not tried again");
    }
}

#[test]
fn a_run_that_does_not_end_is_ended() {
    let server = ModelServer::start([tool_call("c1", "nothing", "{}")]);
    let done = call(run(&server, &["--max-turns", "2", "go"])).with_code(1);
    assert!(done.only_line().contains("--max-turns"), "{done:?}");
    server.asked();
    server.asked();
    assert!(server.was_left_alone());
}

#[test]
fn json_lines_are_the_events() {
    let server = ModelServer::start([text("Hello there.")]);
    let done = call(run(&server, &["--json", "hi"])).with_code(0);
    let events: Vec<Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.first(), Some(&"agentStart"));
    assert_eq!(kinds.last(), Some(&"agentEnd"));
    let text: String = events
        .iter()
        .filter_map(|event| event["delta"]["text"].as_str())
        .collect();
    assert_eq!(text, "Hello there.");
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], at);
        assert!(event["runId"].is_string());
    }
    let failing = ModelServer::start([Answer::Json(401, json!({"error": {"message": "no"}}))]);
    let done = call(run(&failing, &["--json", "hi"])).with_code(1);
    done.only_line();
    let last: Value = serde_json::from_str(done.out.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["type"], &last["reason"]),
        (&json!("agentEnd"), &json!("failed"))
    );
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    for args in [
        &["run", "hi"][..],
        &["run", "--json", "hi"],
        &["tools"],
        &["call", "getWeather", r#"{"city":"Oslo"}"#],
        &["chat"],
    ] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let mut command = yiem(args);
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"hi\n").unwrap();
        drop(writer);
        command.stdin(reader).stdout(full).stderr(Stdio::piped());
        let done = command.output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{args:?}: {said}");
        let told = said.matches("standard output could not be written").count();
        assert_eq!(told, 1, "{args:?}: {said}");
    }
}

#[test]
fn the_user_can_end_it() {
    for signal in ["INT", "TERM"] {
        let server = ModelServer::start([Answer::Silence]);
        let running = Running::start(yiem(run(&server, &["hi"])));
        server.asked();
        running.signal(signal);
        let done = running.wait().with_code(130);
        assert_eq!((done.out.as_str(), done.err.as_str()), ("", ""));
    }
}

#[test]
fn whoever_stops_reading_is_no_failure() {
    let many: String = "words and more words ".repeat(20_000);
    let server = ModelServer::start([text(&many)]);
    let mut command = yiem(run(&server, &["--json", "go"]));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut first = [0; 10];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    drop(out);
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
}

#[test]
fn a_session_goes_on_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.jsonl");
    let file = file.to_str().unwrap();
    let server = ModelServer::start([text("Noted."), text("Blue.")]);
    call(run(&server, &["--session", file, "My colour is blue."])).with_code(0);
    call(run(&server, &["--session", file, "What is it?"])).with_code(0);
    server.asked();
    let second = server.asked();
    let said: Vec<String> = second.body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(said, ["My colour is blue.", "Noted.", "What is it?"]);
    let done = call(run(&server, &["--session", "/nowhere/at/all", "hi"])).with_code(2);
    assert!(done.only_line().contains("--session"), "{done:?}");
}

#[test]
fn wrong_use_is_told() {
    let server = ModelServer::start([text("never")]);
    for (more, told) in [
        (
            &["--api-key-env", "YIEM_TEST_NOT_SET", "hi"][..],
            "YIEM_TEST_NOT_SET",
        ),
        (&["--compat", "nonsense", "hi"], "nonsense"),
        (&["--mcp", "nonsense", "hi"], "NAME=stdio:COMMAND"),
        (
            &["--mcp-config", "/nowhere/at/all", "hi"],
            "/nowhere/at/all",
        ),
        (&["--system", "@/nowhere/at/all", "hi"], "/nowhere/at/all"),
        (&["--allow-write-tools", "hi"], "--tools"),
        (&[""], "empty"),
    ] {
        let done = call(run(&server, more)).with_code(2);
        assert!(done.only_line().contains(told), "{done:?}");
    }
    call(["run"]).with_code(2);
    call(["nonsense"]).with_code(2);
    assert!(server.was_left_alone());
}
