//! Pages of lists, and the tools on them.

use serde_json::{Map, Value};
use std::time::Duration;

/// One page of a list, its elements as they came.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPage {
    /// The elements in the server's order.
    pub items: Vec<Value>,
    /// Where the next page begins; opaque, and possibly empty (M-4 says what that means).
    pub next_cursor: Option<Value>,
    /// How long the page may be taken as fresh; `None` when the server did not say.
    pub ttl: Option<Duration>,
}

impl ListPage {
    /// Reads the result of a `…/list`; `key` is where its elements are (`tools`).
    ///
    /// # Errors
    /// The result has no such list; the text says what came.
    pub fn read(result: Value, key: &str) -> Result<Self, String> {
        let Value::Object(mut object) = result else {
            return Err(format!("the list is no object: {}", short(&result)));
        };
        let items = match object.shift_remove(key) {
            Some(Value::Array(items)) => items,
            Some(other) => return Err(format!("`{key}` is no list: {}", short(&other))),
            None => {
                return Err(format!(
                    "there is no `{key}` in {}",
                    short(&Value::Object(object))
                ));
            }
        };
        let next_cursor = object
            .shift_remove("nextCursor")
            .filter(|cursor| !cursor.is_null());
        let ttl = object.get("ttlMs").and_then(Value::as_f64).map(|millis| {
            Duration::try_from_secs_f64(millis.max(0.0) / 1000.0).unwrap_or(Duration::MAX)
        });
        Ok(Self {
            items,
            next_cursor,
            ttl,
        })
    }
}

fn short(value: &Value) -> String {
    crate::jsonrpc::excerpt(value.to_string().as_bytes())
}

/// A definition that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadDefinition {
    /// Its name, or what stood in its place.
    pub name: String,
    /// Why it cannot be used.
    pub reason: String,
}

/// A tool as its server defines it (SP-009).
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteTool {
    /// The server's own name, byte for byte what a call has to send.
    pub name: String,
    /// The name for people: title, else `annotations.title`, else label, else name (M-4).
    pub label: String,
    /// What it does; empty when the server does not say.
    pub description: String,
    /// The schema of its arguments, verbatim.
    pub input_schema: Value,
    /// The schema of its structured result, verbatim.
    pub output_schema: Option<Value>,
    /// What the server says of its nature; shown, never trusted (M-8).
    pub annotations: Option<Value>,
    /// Whether it can only be called as a task.
    pub needs_task: bool,
    /// All other fields, e.g. `icons` and `_meta`.
    pub extra: Map<String, Value>,
}

impl RemoteTool {
    /// Reads one element of `tools`.
    ///
    /// # Errors
    /// It cannot be used; the error names it.
    pub fn read(definition: Value) -> Result<Self, BadDefinition> {
        let Value::Object(mut object) = definition else {
            let name = short(&definition);
            return Err(BadDefinition {
                name,
                reason: "the definition is no object".into(),
            });
        };
        let name = match object.shift_remove("name") {
            Some(Value::String(name)) if !name.trim().is_empty() => name,
            other => {
                let shown = other.as_ref().map_or_else(|| "(no name)".to_owned(), short);
                return Err(BadDefinition {
                    name: shown,
                    reason: "the name is no text".into(),
                });
            }
        };
        let bad = |reason: String| BadDefinition {
            name: name.clone(),
            reason,
        };
        let input_schema = match object.shift_remove("inputSchema") {
            Some(schema @ Value::Object(_)) => schema,
            Some(Value::Null) | None => return Err(bad("inputSchema is missing".into())),
            Some(other) => return Err(bad(format!("inputSchema is no object: {}", short(&other)))),
        };
        if let Some(kind) = input_schema.get("type")
            && kind != "object"
        {
            return Err(bad(format!(
                "inputSchema describes no object: its type is {}",
                short(kind)
            )));
        }
        let output_schema = match object.shift_remove("outputSchema") {
            Some(schema @ (Value::Object(_) | Value::Bool(_))) => Some(schema),
            Some(Value::Null) | None => None,
            Some(other) => {
                return Err(bad(format!("outputSchema is no object: {}", short(&other))));
            }
        };
        let annotations = object
            .shift_remove("annotations")
            .filter(|value| !value.is_null());
        let annotated = annotations
            .as_ref()
            .and_then(|annotations| annotations.get("title"))
            .and_then(text);
        let label = object
            .get("title")
            .and_then(text)
            .or(annotated)
            .or_else(|| object.get("label").and_then(text))
            .unwrap_or(&name)
            .to_owned();
        let description = match object.shift_remove("description") {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let needs_task = object
            .get("execution")
            .and_then(|execution| execution.get("taskSupport"))
            .is_some_and(|support| support == "required");
        Ok(Self {
            label,
            description,
            input_schema,
            output_schema,
            annotations,
            needs_task,
            name,
            extra: object,
        })
    }
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.trim().is_empty())
}
