//! Content that comes as a list of parts, and details of reasoning that come in pieces.
//!
//! Knows: the kinds of parts that servers send in place of a text, thinking and calls among
//! them (SP-018). Does not know: where the parts go.

use serde_json::Value;
use yiem_core::{ImageContent, JsonObject};

/// A part, by what it is.
pub(crate) enum PartKind<'a> {
    Text(&'a str),
    Refusal(&'a str),
    Reasoning(&'a str),
    Image(ImageContent),
    Call(PartCall),
}

/// A call that stands as a part of the content.
pub(crate) struct PartCall {
    pub id: String,
    pub name: String,
    pub arguments: String,
    pub extra: JsonObject,
}

/// Goes through the parts in order: of a list, or of a single part.
pub(crate) fn each(value: &Value, out: &mut impl FnMut(PartKind<'_>)) {
    match value {
        Value::Array(parts) => parts.iter().for_each(|part| one(part, out)),
        part => one(part, out),
    }
}

fn one(part: &Value, out: &mut impl FnMut(PartKind<'_>)) {
    let object = match part {
        Value::String(text) => return out(PartKind::Text(text)),
        Value::Object(object) => object,
        _ => return,
    };
    match object.get("type").and_then(Value::as_str).unwrap_or("text") {
        "tool_calls" | "toolCalls" => {
            for key in ["tool_calls", "toolCalls"] {
                for call in object
                    .get(key)
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                {
                    out_call(call, out);
                }
            }
        }
        "tool_call" | "toolCall" | "tool_use" | "function" | "function_call" => {
            out_call(part, out);
        }
        "thinking" | "reasoning" | "think" | "thought" => {
            thoughts(part, &mut |text| out(PartKind::Reasoning(text)));
        }
        "refusal" => {
            if let Some(text) = object.get("refusal").and_then(Value::as_str) {
                out(PartKind::Refusal(text));
            }
        }
        "image_url" | "image" | "output_image" | "input_image" => {
            if let Some(image) = image(object) {
                out(PartKind::Image(image));
            }
        }
        _ => {
            if let Some(inner) = object.get("text") {
                texts(inner, &mut |text| out(PartKind::Text(text)));
            }
        }
    }
}

/// The texts in a text, a list of parts with text, or `{"value": text}`. Whether there was any.
fn texts(value: &Value, out: &mut impl FnMut(&str)) -> bool {
    texts_under(&["text", "value", "content"], value, out)
}

/// The reasoning in a text, a list of parts, or an object that holds it under any of its names.
/// Whether there was any.
pub(crate) fn thoughts(value: &Value, out: &mut impl FnMut(&str)) -> bool {
    const KEYS: [&str; 7] = [
        "thinking",
        "reasoning",
        "text",
        "summary",
        "content",
        "reasoning_content",
        "value",
    ];
    texts_under(&KEYS, value, out)
}

/// The texts in a text, a list, or under the first of these keys of an object that has any.
fn texts_under(keys: &[&str], value: &Value, out: &mut impl FnMut(&str)) -> bool {
    match value {
        Value::String(text) => {
            out(text);
            !text.is_empty()
        }
        Value::Array(parts) => {
            let mut any = false;
            for part in parts {
                any |= texts_under(keys, part, out);
            }
            any
        }
        Value::Object(object) => keys
            .iter()
            .filter_map(|key| object.get(*key))
            .any(|inner| texts_under(keys, inner, out)),
        _ => false,
    }
}

fn out_call(call: &Value, out: &mut impl FnMut(PartKind<'_>)) {
    if let Some(call) = read_call(call) {
        out(PartKind::Call(call));
    }
}

/// A call with its name and arguments in itself or in a `function` (SP-018.1, SP-018.2).
fn read_call(value: &Value) -> Option<PartCall> {
    let object = value.as_object()?;
    let function = object.get("function").and_then(Value::as_object);
    let get = |keys: &[&str]| {
        [function, Some(object)]
            .into_iter()
            .flatten()
            .find_map(|object| {
                keys.iter()
                    .find_map(|key| object.get(*key))
                    .filter(|value| !value.is_null())
            })
    };
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    const READ: [&str; 13] = [
        "type",
        "index",
        "id",
        "call_id",
        "tool_call_id",
        "name",
        "function",
        "arguments",
        "input",
        "parameters",
        "args",
        "object",
        "status",
    ];
    let extra = object
        .iter()
        .filter(|(key, value)| !READ.contains(&key.as_str()) && !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Some(PartCall {
        id: get(&["id", "call_id", "tool_call_id"])
            .map(text)
            .unwrap_or_default(),
        name: get(&["name"]).map(text).unwrap_or_default(),
        arguments: get(&["arguments", "input", "parameters", "args"])
            .map(text)
            .unwrap_or_default(),
        extra,
    })
}

fn image(object: &JsonObject) -> Option<ImageContent> {
    let url = ["image_url", "url", "source"]
        .iter()
        .find_map(|key| match object.get(*key)? {
            Value::String(url) => Some(url.as_str()),
            Value::Object(inner) => inner.get("url")?.as_str(),
            _ => None,
        })?;
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let mime = head.strip_suffix(";base64")?;
    Some(ImageContent::new(data, mime))
}

/// Adds a detail of reasoning to those that came. Pieces of one detail (same `index` and
/// `type`) are joined: texts are appended, anything else of the later one replaces.
pub(crate) fn merge_detail(details: &mut Vec<Value>, item: Value) {
    const GROWING: [&str; 3] = ["text", "summary", "data"];
    let same = |held: &Value| {
        !item["index"].is_null() && held["index"] == item["index"] && held["type"] == item["type"]
    };
    let at = details
        .last()
        .filter(|held| same(held))
        .map(|_| details.len() - 1);
    let (Some(at), Value::Object(new)) = (at, &item) else {
        return details.push(item);
    };
    let Value::Object(held) = &mut details[at] else {
        return;
    };
    for (key, value) in new {
        match (held.get_mut(key), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more)) if GROWING.contains(&key.as_str()) => {
                text.push_str(more);
            }
            _ => {
                held.insert(key.clone(), value.clone());
            }
        }
    }
}
