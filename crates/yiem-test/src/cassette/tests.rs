use yiem_core::{History, Message, Timestamp};

use super::redaction::REDACTED;
use super::*;
use crate::model::{Reply, ScriptedModel};

fn request(text: &str, at: i64) -> ChatRequest {
    let mut messages = History::new();
    messages.push(Message::user(text, Timestamp::from_millis(at)));
    ChatRequest::new(messages)
}

#[tokio::test]
async fn what_was_recorded_is_played_back_and_secrets_are_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cassette.json");
    let real = ScriptedModel::new([Reply::say("hello Ann").usage(3, 4), Reply::say("bye")]);
    let recording = RecordingModel::new(real, &path).redact(["Ann"]);
    let first = recording.complete(request("I am Ann", 1)).await.unwrap();
    assert_eq!(first.text(), "hello Ann");
    recording.complete(request("bye", 2)).await.unwrap();
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(!kept.contains("Ann") && kept.contains(REDACTED));

    let replay = ReplayModel::open(&path).unwrap().redact(["Ann"]);
    // Another time of day is no difference.
    let again = replay.complete(request("I am Ann", 99)).await.unwrap();
    assert_eq!(
        (again.text().as_str(), again.usage.output),
        ("hello [redacted]", Some(4))
    );
    assert_eq!(replay.left(), 1);
}

#[tokio::test]
async fn a_request_that_differs_is_shown_where_it_does() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cassette.json");
    let recording = RecordingModel::new(ScriptedModel::new([Reply::say("hello")]), &path);
    recording.complete(request("hi", 1)).await.unwrap();
    let replay = ReplayModel::open(&path).unwrap();
    let error = replay.complete(request("ho", 1)).await.unwrap_err();
    assert!(
        error
            .message
            .contains("request.messages[0].content[0].text")
            && error.message.contains("recorded: \"hi\"")
            && error.message.contains("now:      \"ho\""),
        "{error}"
    );
    let error = replay.complete(request("hi", 1)).await.unwrap_err();
    assert!(error.message.contains("no reply for request 2"), "{error}");
}

#[tokio::test]
async fn other_options_are_another_request_and_how_the_reply_comes_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cassette.json");
    let with = |change: &dyn Fn(&mut ChatOptions)| {
        let mut options = ChatOptions::default();
        change(&mut options);
        request("hi", 1).options(options)
    };
    type Change = fn(&mut ChatOptions);
    let changes: [(&str, Change); 8] = [
        ("maxTokens", |o| o.max_tokens = Some(7)),
        ("temperature", |o| o.temperature = Some(0.5)),
        ("stop", |o| o.stop = vec!["END".to_owned()]),
        ("toolChoice", |o| {
            o.tool_choice = Some(ToolChoice::Tool("t".to_owned()))
        }),
        ("parallelToolCalls", |o| o.parallel_tool_calls = Some(false)),
        ("reasoningEffort", |o| {
            o.reasoning_effort = Some("low".to_owned())
        }),
        ("responseFormat", |o| {
            o.response_format = Some(ResponseFormat::JsonObject)
        }),
        ("extra", |o| {
            o.extra.insert("seed".to_owned(), json!(4));
        }),
    ];
    for (field, change) in changes {
        let recording = RecordingModel::new(ScriptedModel::new([Reply::say("hello")]), &path);
        recording.complete(with(&change)).await.unwrap();
        let replay = || ReplayModel::open(&path).unwrap();
        let silent = |options: &mut ChatOptions| {
            change(options);
            options.stream = Some(false);
            options.session_id = Some("another".into());
        };
        assert!(replay().complete(with(&silent)).await.is_ok(), "{field}");
        let error = replay().complete(request("hi", 1)).await.unwrap_err();
        let place = format!("request.options.{field}");
        assert!(error.message.contains(&place), "{field}: {error}");
    }
    // A cassette of before options were kept is not held against them.
    let kept = std::fs::read_to_string(&path).unwrap();
    let mut kept: Value = serde_json::from_str(&kept).unwrap();
    kept[0]["request"]
        .as_object_mut()
        .unwrap()
        .shift_remove("options");
    std::fs::write(&path, kept.to_string()).unwrap();
    let old = ReplayModel::open(&path).unwrap();
    assert!(old.complete(request("hi", 1)).await.is_ok());
}

#[tokio::test]
async fn keys_and_what_fits_a_pattern_are_not_kept_wherever_they_stand() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cassette.json");
    let key = "sk-proj-abcdefghijklmnop0123456789";
    let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc-DEF_123";
    let address = "ann@example.org";
    // No key, though it begins as some do: what a reply says is not to be another when played.
    let column = "pk_customers_primary_key";
    let calls =
        json!({"key": key, "column": column, address: {"more": [format!("Bearer {token}")]}});
    let real = ScriptedModel::new([Reply::call("send", calls)]);
    let said = format!("mail {address} with {key}");
    let recording = RecordingModel::new(real, &path)
        .redact(["mail"])
        .redact_matching([r"\w+@[\w.]+"])
        .unwrap();
    recording.complete(request(&said, 1)).await.unwrap();
    let kept = std::fs::read_to_string(&path).unwrap();
    for secret in [key, token, address, "mail", "ann", "eyJ"] {
        assert!(!kept.contains(secret), "{secret} is in {kept}");
    }
    let replay = ReplayModel::open(&path)
        .unwrap()
        .redact(["mail"])
        .redact_matching([r"\w+@[\w.]+"])
        .unwrap();
    let reply = replay.complete(request(&said, 2)).await.unwrap();
    let call = reply.tool_calls().next().unwrap();
    assert_eq!(call.name, "send");
    assert_eq!(call.arguments.object().unwrap()["column"], column);

    let error = ReplayModel::open(&path).unwrap().redact_matching(["a(b"]);
    assert!(error.unwrap_err().to_string().contains("unclosed group"));
}
