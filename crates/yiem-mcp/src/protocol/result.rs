//! Results of calls.

use super::content_from_wire;
use serde_json::{Map, Value};
use yiem_core::Content;

/// What a modern result is, by its `resultType`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultKind {
    /// The result itself; also where nothing is said.
    Complete,
    /// The server wants something first.
    InputRequired,
    /// Anything else: a kind that was not asked for.
    Other(String),
}

/// Reads `resultType`.
#[must_use]
pub fn result_kind(result: &Value) -> ResultKind {
    match result.get("resultType") {
        None | Some(Value::Null) => ResultKind::Complete,
        Some(Value::String(kind)) if kind == "complete" => ResultKind::Complete,
        Some(Value::String(kind)) if kind == "input_required" => ResultKind::InputRequired,
        Some(Value::String(kind)) => ResultKind::Other(kind.clone()),
        Some(other) => ResultKind::Other(other.to_string()),
    }
}

/// The result of `tools/call` (SP-010).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallResult {
    /// Its blocks, every kind kept.
    pub content: Vec<Content>,
    /// Its structured value, any JSON.
    pub structured: Option<Value>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// `_meta` as it came.
    pub meta: Option<Map<String, Value>>,
}

impl CallResult {
    /// Reads any result: an object with `content`; also one block, a bare text, a list of blocks, or
    /// nothing at all. A value with none of the known keys is shown as its JSON.
    #[must_use]
    pub fn read(result: Value) -> Self {
        let object = match result {
            Value::Object(object) => object,
            Value::Null => return Self::default(),
            Value::Array(blocks) => {
                return Self {
                    content: blocks_of(Value::Array(blocks)),
                    ..Self::default()
                };
            }
            Value::String(text) => {
                return Self {
                    content: vec![Content::text(text)],
                    ..Self::default()
                };
            }
            other => {
                return Self {
                    content: vec![Content::text(other.to_string())],
                    ..Self::default()
                };
            }
        };
        let mut read = Self::default();
        let (mut content, mut old_result, mut rest) = (None, Value::Null, Map::new());
        for (key, value) in object {
            match (key.as_str(), value) {
                ("content", value) => content = Some(value),
                ("isError", value) => read.is_error = is_true(&value),
                ("structuredContent", value) => {
                    read.structured = Some(value).filter(|value| !value.is_null());
                }
                ("_meta", Value::Object(meta)) => read.meta = Some(meta),
                // The result of 2024-10-07 and of servers that never looked further.
                ("toolResult", value) => old_result = value,
                ("_meta" | "resultType", _) => {}
                (_, value) => {
                    rest.insert(key, value);
                }
            }
        }
        read.content = match content {
            Some(content) => blocks_of(content),
            None if read.structured.is_some() || rest.is_empty() && old_result.is_null() => {
                Vec::new()
            }
            None if old_result.is_null() => {
                vec![Content::text(Value::Object(rest).to_string())]
            }
            None => blocks_of(old_result),
        };
        read
    }

    /// Whether the blocks hold something that a model can use: anything but empty texts.
    #[must_use]
    pub fn has_usable_content(&self) -> bool {
        self.content
            .iter()
            .any(|block| block.as_text().is_none_or(|text| !text.trim().is_empty()))
    }
}

fn blocks_of(content: Value) -> Vec<Content> {
    match content {
        Value::Array(blocks) => blocks
            .into_iter()
            .filter(|block| !block.is_null())
            .map(content_from_wire)
            .collect(),
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::Object(block) if !block.contains_key("type") => {
            vec![Content::text(Value::Object(block).to_string())]
        }
        block @ (Value::Object(_) | Value::String(_)) => vec![content_from_wire(block)],
        other => vec![Content::text(other.to_string())],
    }
}

fn is_true(flag: &Value) -> bool {
    match flag {
        Value::Bool(flag) => *flag,
        Value::String(flag) => flag.eq_ignore_ascii_case("true"),
        Value::Number(flag) => flag.as_f64().is_some_and(|flag| flag != 0.0),
        _ => false,
    }
}
