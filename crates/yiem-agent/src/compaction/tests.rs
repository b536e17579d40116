use serde_json::json;
use yiem_core::{AssistantMessage, Timestamp, ToolCall, ToolResultMessage};

use super::*;

/// `u` a user's message, `a` an answer, `c` a call, `t` its result.
fn history(letters: &str) -> History {
    letters
        .chars()
        .map(|letter| match letter {
            'u' => Message::user("said", Timestamp::default()),
            'a' => AssistantMessage::new(vec![AssistantContent::text("ok")], Timestamp::default())
                .into(),
            'c' => {
                let call =
                    ToolCall::new("1", "t", json!({}).as_object().cloned().unwrap_or_default());
                AssistantMessage::new(vec![call.into()], Timestamp::default()).into()
            }
            _ => Message::ToolResult(ToolResultMessage {
                tool_call_id: "1".into(),
                ..Default::default()
            }),
        })
        .collect()
}

#[test]
fn the_last_turns_stay_and_a_call_is_never_parted_from_its_result() {
    let keep = Compactor { keep_turns: 2 };
    assert_eq!(keep.cut_at(&history("uauaua")), Some(2));
    assert_eq!(keep.cut_at(&history("u")), None);
    assert_eq!(keep.cut_at(&history("ua")), None);
    // One long turn is cut inside, between a result and the next call.
    let long = history("uctctctct");
    let cut = keep.cut_at(&long).unwrap();
    assert!(
        cut > 1 && long.get(cut).unwrap().as_assistant().is_some(),
        "{cut}"
    );
    for cut in 0..=long.len() {
        let safe = without_open_calls(&long, cut);
        assert!(safe <= cut);
        assert!(
            long.get(safe).is_none_or(|m| m.as_tool_result().is_none()),
            "{cut} {safe}"
        );
    }
}
