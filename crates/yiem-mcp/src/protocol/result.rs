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
        let mut object = match result {
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
        let is_error = match object.get("isError") {
            Some(Value::Bool(flag)) => *flag,
            Some(Value::String(flag)) => flag.eq_ignore_ascii_case("true"),
            Some(Value::Number(flag)) => flag.as_f64().is_some_and(|flag| flag != 0.0),
            _ => false,
        };
        let structured = object
            .shift_remove("structuredContent")
            .filter(|value| !value.is_null());
        let meta = match object.shift_remove("_meta") {
            Some(Value::Object(meta)) => Some(meta),
            _ => None,
        };
        let content = match object.shift_remove("content") {
            Some(content) => blocks_of(content),
            None if structured.is_some() => Vec::new(),
            // The result of 2024-10-07 and of servers that never looked further.
            None => match object.shift_remove("toolResult") {
                Some(Value::Null) | None => leftovers(object),
                Some(value) => blocks_of(value),
            },
        };
        Self {
            content,
            structured,
            is_error,
            meta,
        }
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

fn leftovers(mut object: Map<String, Value>) -> Vec<Content> {
    for known in ["isError", "resultType"] {
        object.shift_remove(known);
    }
    if object.is_empty() {
        return Vec::new();
    }
    vec![Content::text(Value::Object(object).to_string())]
}
