use serde_json::json;
use yiem_core::{AssistantContent, AssistantMessage, Timestamp, ToolCall};

use super::*;

fn user(text: &str) -> JournalRecord {
    JournalRecord::Message {
        message: Arc::new(Message::user(text, Timestamp::default())),
    }
}

fn calls(ids: &[&str]) -> JournalRecord {
    let blocks = ids.iter().map(|id| {
        AssistantContent::ToolCall(ToolCall::new(
            *id,
            "t",
            json!({}).as_object().unwrap().clone(),
        ))
    });
    let message = AssistantMessage::new(blocks.collect(), Timestamp::default());
    JournalRecord::Message {
        message: Arc::new(message.into()),
    }
}

fn intent(id: &str) -> JournalRecord {
    JournalRecord::CallIntent {
        tool_call_id: id.into(),
        tool_name: "t".into(),
        args: Arc::default(),
    }
}

fn result(id: &str) -> JournalRecord {
    JournalRecord::CallResult {
        message: Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: id.into(),
            ..ToolResultMessage::default()
        })),
    }
}

fn order(session: &Session) -> Vec<String> {
    session
        .history
        .iter()
        .map(|m| match &**m {
            Message::ToolResult(r) => r.tool_call_id.to_string(),
            other => other.role().to_owned(),
        })
        .collect()
}

#[test]
fn results_enter_in_the_order_of_the_reply_whenever_they_were_known() {
    let session = Session::of_records([
        user("a"),
        calls(&["1", "2"]),
        intent("1"),
        intent("2"),
        result("2"),
        result("1"),
        user("b"),
    ]);
    assert_eq!(order(&session), ["user", "assistant", "1", "2", "user"]);
    assert_eq!(session.open, []);
}

#[test]
fn the_last_replys_calls_are_open_as_far_as_they_had_got() {
    let session = Session::of_records([
        user("a"),
        calls(&["1", "2", "3"]),
        intent("1"),
        intent("2"),
        result("2"),
    ]);
    assert_eq!(order(&session), ["user", "assistant"]);
    let open: Vec<_> = session
        .open
        .iter()
        .map(|o| (o.tool_call_id.as_str(), o.begun, o.result.is_some()))
        .collect();
    assert_eq!(
        open,
        [("1", true, false), ("2", true, true), ("3", false, false)]
    );
}

#[test]
fn a_call_that_was_passed_over_is_answered() {
    let session = Session::of_records([calls(&["1", "2"]), intent("1"), result("2"), user("b")]);
    assert_eq!(order(&session), ["assistant", "1", "2", "user"]);
    let first = session.history.get(1).unwrap().as_tool_result().unwrap();
    assert!(first.is_error && first.text().contains("unknown"));
}

#[test]
fn a_compaction_is_shown_and_the_history_kept() {
    let shown = vec![Arc::new(Message::user("summary", Timestamp::default()))];
    let session = Session::of_records([
        user("a"),
        user("b"),
        JournalRecord::Compaction { shown },
        user("c"),
    ]);
    assert_eq!(session.history.len(), 3);
    assert_eq!(session.shown.unwrap().len(), 2);
}
