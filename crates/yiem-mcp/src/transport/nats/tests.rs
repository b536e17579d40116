//! The parts of the transport that need no broker.

use super::*;
use serde_json::json;

#[test]
fn a_reply_token_is_one_token_whatever_the_id() {
    for (id, token) in [
        (RequestId::Number(7), "7"),
        (RequestId::Number(-1), "-1"),
        (RequestId::Text("a.b *".into()), "t612e62202a"),
        (RequestId::Text("".into()), "t"),
    ] {
        assert_eq!(reply_token(&id), token);
    }
}

#[test]
fn an_answer_that_was_too_large_to_send_is_a_typed_error_with_both_sizes() {
    let data = json!({"reason": ANSWER_TOO_LARGE, "size": 2_000_000, "limit": 1_048_576});
    let error = JsonRpcError::new(-32603, "too large").with_data(data);
    let refusal = size_refusal(&Answer {
        id: None,
        outcome: AnswerOutcome::Error(error),
    })
    .expect("a size");
    assert!(
        matches!(
            refusal.kind(),
            McpErrorKind::TooLarge {
                size: 2_000_000,
                limit: 1_048_576,
                ..
            }
        ),
        "{refusal}"
    );
    let other = JsonRpcError::new(-32603, "x").with_data(json!({"reason": "else"}));
    assert!(
        size_refusal(&Answer {
            id: None,
            outcome: AnswerOutcome::Error(other)
        })
        .is_none()
    );
}

#[test]
fn a_cancellation_finds_the_reply_subject_of_its_request() {
    let params = json!({"requestId": 12, "reason": "x"});
    assert_eq!(
        request_named_in(params.as_object().expect("object")),
        Some(RequestId::Number(12))
    );
    assert_eq!(request_named_in(&Map::new()), None);
}
