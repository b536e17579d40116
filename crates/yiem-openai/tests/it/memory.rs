//! A turn costs what is new (O-7): a regression to writing the history again fails here.

use std::sync::Arc;

use yiem_core::{
    AssistantContent, AssistantMessage, ChatRequest, Content, History, JsonObject, Memo, Message,
    ModelInfo, Timestamp, ToolCall, ToolResultMessage,
};
use yiem_openai::{Compat, Preset, RequestEncoder};

fn turn(n: usize) -> [Message; 2] {
    let id = format!("call_{n}");
    let call = AssistantContent::ToolCall(ToolCall::new(id.as_str(), "add", JsonObject::new()));
    [
        AssistantMessage::new(vec![call], Timestamp::default()).into(),
        Message::ToolResult(ToolResultMessage {
            tool_call_id: id.into(),
            content: vec![Content::text(n.to_string())],
            ..ToolResultMessage::default()
        }),
    ]
}

fn encoder(compat: Compat) -> RequestEncoder {
    RequestEncoder::new(&ModelInfo::new("m"), Arc::new(compat))
}

fn ask(messages: &History, memo: &Memo) -> ChatRequest {
    ChatRequest {
        messages: messages.clone(),
        memo: memo.clone(),
        ..ChatRequest::default()
    }
}

/// How many messages 200 turns write, by the settings of every preset.
#[test]
fn each_message_is_written_once_in_a_growing_conversation() {
    for (name, preset) in Preset::ALL {
        let encoder = encoder(preset.compat());
        let memo = Memo::new();
        let mut history = History::from_iter([Message::user("go", Timestamp::default())]);
        let mut written = 0;
        for n in 0..200 {
            written += encoder.encode(&ask(&history, &memo), true).written;
            history.extend(turn(n));
        }
        assert!(
            written <= history.len(),
            "{name}: {written} for {}",
            history.len()
        );
    }
}

#[test]
fn a_window_that_slides_writes_only_what_enters_it() {
    let encoder = encoder(Compat::default());
    let memo = Memo::new();
    let mut all = vec![Arc::new(Message::user("go", Timestamp::default()))];
    let mut written = 0;
    for n in 0..300 {
        let start = all.len().saturating_sub(40);
        let window: History = all[start..].iter().cloned().collect();
        written += encoder.encode(&ask(&window, &memo), true).written;
        all.extend(turn(n).map(Arc::new));
    }
    // A window may begin in the middle of a turn; its orphan is looked at again.
    assert!(written <= all.len() * 3 / 2, "{written} for {}", all.len());
}

#[test]
fn a_pinned_beginning_does_not_spoil_the_window() {
    let encoder = encoder(Compat::default());
    let memo = Memo::new();
    let first = Arc::new(Message::user("task", Timestamp::default()));
    let mut all = Vec::new();
    let mut written = 0;
    for n in 0..200 {
        let start = all.len().saturating_sub(40);
        let window: History = std::iter::once(&first)
            .chain(&all[start..])
            .cloned()
            .collect();
        written += encoder.encode(&ask(&window, &memo), true).written;
        all.extend(turn(n).map(Arc::new));
    }
    assert!(written <= all.len() * 3 / 2, "{written} for {}", all.len());
}

#[test]
fn other_settings_or_another_model_use_nothing_that_was_remembered() {
    let memo = Memo::new();
    let history = History::from_iter([Message::user("go", Timestamp::default())]);
    let first = encoder(Compat::default());
    assert_eq!(first.encode(&ask(&history, &memo), true).written, 1);
    assert_eq!(first.encode(&ask(&history, &memo), true).written, 0);
    let second = encoder(Compat::blocks());
    assert_eq!(second.encode(&ask(&history, &memo), true).written, 1);
    let other = RequestEncoder::new(&ModelInfo::new("n"), Arc::new(Compat::blocks()));
    assert_eq!(other.encode(&ask(&history, &memo), true).written, 1);
}

#[test]
fn an_open_call_is_written_again_until_it_is_answered() {
    let encoder = encoder(Compat::default());
    let memo = Memo::new();
    let mut history = History::from_iter([Message::user("go", Timestamp::default())]);
    let [call, result] = turn(0);
    history.push(call);
    let body = encoder.encode(&ask(&history, &memo), false).body;
    assert!(String::from_utf8_lossy(&body).contains("No result was recorded"));
    history.push(result);
    let encoded = encoder.encode(&ask(&history, &memo), false);
    assert!(!String::from_utf8_lossy(&encoded.body).contains("No result was recorded"));
    assert_eq!(encoded.written, 2);
}
