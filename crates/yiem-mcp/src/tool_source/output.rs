//! Outcomes and failures of calls, as core has them.

use crate::client::CallOutcome;
use crate::error::{McpError, McpErrorKind};
use serde_json::{Map, Value, json};
use yiem_core::{Content, ToolError, ToolErrorKind, ToolOutput};

/// What a model reads where a tool gave nothing.
const NO_OUTPUT: &str = "(no tool output)";

/// Blocks or the structured value, never both; the structured value is kept beside (M-5).
pub(super) fn to_output(outcome: CallOutcome) -> ToolOutput {
    let usable = outcome
        .content
        .iter()
        .any(|block| block.as_text().is_none_or(|text| !text.trim().is_empty()));
    let mut content = outcome.content;
    if !usable {
        content = vec![Content::text(match &outcome.structured {
            Some(Value::String(text)) if !text.is_empty() => text.clone(),
            Some(value) => value.to_string(),
            None => NO_OUTPUT.to_owned(),
        })];
    }
    let mut details = Map::new();
    if let Some(structured) = &outcome.structured {
        details.insert("structuredContent".into(), structured.clone());
    }
    if let Some(meta) = outcome.meta {
        details.insert("_meta".into(), Value::Object(meta));
    }
    ToolOutput {
        content,
        details: if details.is_empty() {
            Value::Null
        } else {
            Value::Object(details)
        },
        structured: outcome.structured,
        is_error: outcome.is_error,
        ..ToolOutput::default()
    }
}

/// A failure as a result that a model can read, its code and data in the details.
pub(super) fn to_tool_error(error: McpError) -> ToolError {
    let (kind, word) = match error.kind() {
        McpErrorKind::TimedOut { .. } => (ToolErrorKind::TimedOut, "timedOut"),
        McpErrorKind::Cancelled => (ToolErrorKind::Aborted, "cancelled"),
        McpErrorKind::Lost(_) => (ToolErrorKind::Unreachable, "lost"),
        McpErrorKind::NotSent(_) | McpErrorKind::Unreachable(_) | McpErrorKind::NoServer(_) => {
            (ToolErrorKind::Unreachable, "unreachable")
        }
        McpErrorKind::Refused(_) => (ToolErrorKind::Failed, "refused"),
        McpErrorKind::Http { .. } => (ToolErrorKind::Failed, "http"),
        McpErrorKind::Unauthorized(_) => (ToolErrorKind::Failed, "unauthorized"),
        McpErrorKind::Unreadable(_) => (ToolErrorKind::Failed, "unreadable"),
        McpErrorKind::TooLarge { .. } => (ToolErrorKind::Failed, "tooLarge"),
        McpErrorKind::Protocol(_) | McpErrorKind::Config(_) => (ToolErrorKind::Failed, "protocol"),
    };
    let mut details = json!({"mcpError": {"kind": word, "server": error.server()}});
    if let Some(refusal) = error.refusal() {
        details["mcpError"]["code"] = refusal.code.into();
        details["mcpError"]["message"] = refusal.message.as_str().into();
        if let Some(data) = &refusal.data {
            details["mcpError"]["data"] = data.clone();
        }
    }
    let text = match error.kind() {
        McpErrorKind::Lost(_) | McpErrorKind::TimedOut { .. } => {
            let words = error.in_brief();
            format!("{words}. It is unknown whether the call had an effect.")
        }
        _ => error.in_brief(),
    };
    ToolError::of_kind(kind, text)
        .with_details(details)
        .with_source(error)
}
