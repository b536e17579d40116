//! A server that takes nothing but what O-2 promises. The fuzz targets ask it too.

use std::collections::HashSet;

use serde_json::Value;
use yiem_openai::{CallIds, Compat};

/// What a strict server refuses.
pub(crate) fn refusal(body: &Value, compat: &Compat) -> Option<String> {
    let messages = body["messages"].as_array()?;
    let mut open: HashSet<&str> = HashSet::new();
    let mut last = "";
    for message in messages {
        let role = message["role"].as_str()?;
        if role != "tool" && !open.is_empty() {
            return Some(format!("{open:?} are not answered before {message}"));
        }
        if compat.merge_consecutive && role == last && (role == "user" || role == "assistant") {
            return Some(format!("two of one role: {message}"));
        }
        if compat.assistant_after_tool_result && last == "tool" && role == "user" {
            return Some("a user right after a tool".to_owned());
        }
        last = role;
        let calls = message["tool_calls"].as_array();
        match &message["content"] {
            Value::Null if role == "assistant" && calls.is_some() => {}
            Value::String(text) if text.is_empty() && role == "assistant" && calls.is_some() => {}
            Value::String(text) if !text.trim().is_empty() => {}
            Value::Array(parts) if !parts.is_empty() => {
                for part in parts {
                    let blank = part["text"]
                        .as_str()
                        .is_some_and(|text| text.trim().is_empty());
                    if blank || (part["type"] != "text" && role != "user") {
                        return Some(format!("the part {part} of {role}"));
                    }
                }
            }
            other => return Some(format!("the content {other} of {message}")),
        }
        if role == "tool" {
            let id = message["tool_call_id"].as_str()?;
            if !open.remove(id) {
                return Some(format!("an orphan or second result {id:?}"));
            }
        }
        if calls.is_some_and(Vec::is_empty) {
            return Some("an empty list of calls".to_owned());
        }
        for call in calls.into_iter().flatten() {
            let id = call["id"].as_str()?;
            let arguments = call["function"]["arguments"].as_str()?;
            if !matches!(
                serde_json::from_str::<Value>(arguments),
                Ok(Value::Object(_))
            ) {
                return Some(format!("the arguments {arguments:?}"));
            }
            if !fits(call["function"]["name"].as_str()?) {
                return Some(format!("the name in {call}"));
            }
            let formed = match compat.tool_call_ids {
                CallIds::Any => !id.is_empty(),
                CallIds::Mistral9 => id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()),
                CallIds::MaxLength(most) => !id.is_empty() && id.chars().count() <= most,
            };
            if !formed || !open.insert(id) {
                return Some(format!("the id {id:?}"));
            }
        }
    }
    if !open.is_empty() {
        return Some(format!("{open:?} are not answered at the end"));
    }
    let nulls = body.as_object()?.values().any(Value::is_null);
    let empty_tools = body["tools"].as_array().is_some_and(Vec::is_empty);
    (nulls || empty_tools).then(|| "a null or an empty list at the top".to_owned())
}

fn fits(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}
