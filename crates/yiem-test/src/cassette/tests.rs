use yiem_core::{History, Message, Timestamp};

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
