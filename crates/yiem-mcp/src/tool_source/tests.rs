use super::output::{to_output, to_tool_error};
use crate::client::CallOutcome;
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::JsonRpcError;
use crate::protocol::CallResult;
use serde_json::{Value, json};
use yiem_core::{ToolErrorKind, ToolOutput};

fn output(result: Value) -> ToolOutput {
    let result = CallResult::read(result);
    to_output(CallOutcome {
        content: result.content,
        structured: result.structured,
        is_error: result.is_error,
        meta: result.meta,
    })
}

#[test]
fn content_is_shown_or_the_structured_value_but_never_both() {
    let both =
        output(json!({"content": [{"type": "text", "text": "a"}], "structuredContent": {"b": 1}}));
    assert_eq!(
        (both.plain_text().as_str(), &both.structured),
        ("a", &Some(json!({"b": 1})))
    );
    for content in [
        json!([]),
        json!([{"type": "text", "text": " "}]),
        json!(null),
    ] {
        let shown = output(json!({"content": content, "structuredContent": {"b": [1, 2]}}));
        assert_eq!(shown.plain_text(), r#"{"b":[1,2]}"#);
        assert_eq!(shown.details["structuredContent"], json!({"b": [1, 2]}));
    }
}

#[test]
fn nothing_is_said_to_be_nothing_and_is_no_error() {
    for nothing in [json!({}), json!(null), json!({"content": []})] {
        let shown = output(nothing);
        assert_eq!(
            (shown.plain_text().as_str(), shown.is_error),
            ("(no tool output)", false)
        );
    }
}

#[test]
fn a_refusal_keeps_code_and_data_in_the_details() {
    let error =
        McpError::from(JsonRpcError::new(-32602, "bad city").with_data(json!({"field": "city"})));
    let error = to_tool_error(error);
    assert!(error.message().contains("bad city") && error.message().contains("-32602"));
    assert_eq!(error.kind(), ToolErrorKind::Failed);
    assert_eq!(error.details()["mcpError"]["code"], -32602);
    assert_eq!(error.details()["mcpError"]["data"]["field"], "city");
}

#[test]
fn what_may_have_run_is_said_to() {
    for (kind, wanted) in [
        (
            McpErrorKind::Lost("it ended".into()),
            ToolErrorKind::Unreachable,
        ),
        (
            McpErrorKind::TimedOut {
                after: std::time::Duration::from_secs(60),
                hard_cap: false,
            },
            ToolErrorKind::TimedOut,
        ),
    ] {
        let error = to_tool_error(McpError::new(kind));
        assert_eq!(error.kind(), wanted);
        assert!(
            error.message().contains("unknown whether"),
            "{}",
            error.message()
        );
    }
    let not_sent = to_tool_error(McpError::unreachable("no way"));
    assert!(!not_sent.message().contains("unknown whether"));
}
