//! Bytes or JSON → messages.

use super::{IdScanner, JsonRpcError, RequestId, repair::repair};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// One message as it was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// An answer to one of our requests.
    Answer(Answer),
    /// A request from the other side; it waits for an answer.
    Request(IncomingRequest),
    /// A notification; nothing is owed for it.
    Notification {
        /// The method, e.g. `notifications/progress`.
        method: String,
        /// Its parameters; null when there were none.
        params: Value,
    },
    /// Bytes that are no message.
    Unreadable(Unreadable),
}

/// An answer: whom it is for and what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The id that it names; `None` when it is absent, null or no id at all.
    pub id: Option<RequestId>,
    /// What it says.
    pub outcome: AnswerOutcome,
}

/// What an answer says.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerOutcome {
    /// The `result`, which may be any value.
    Result(Value),
    /// The `error`.
    Error(JsonRpcError),
    /// It carries an id and neither of the two, or cannot be parsed; the text says what came.
    Malformed(String),
}

/// A request from the other side.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingRequest {
    /// Its id, to be echoed.
    pub id: RequestId,
    /// The method.
    pub method: String,
    /// Its parameters; null when there were none.
    pub params: Value,
}

/// Bytes that are no message, told in a way that fits a log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Why it could not be read.
    pub reason: String,
    /// The beginning of what came, at most 200 characters.
    pub excerpt: String,
}

/// Reads one message, or the several of a batch, from bytes.
///
/// What is broken is repaired where it has one meaning (bad UTF-8, lone surrogates, control characters
/// in texts, `NaN`); what cannot be parsed but shows an id becomes a malformed answer to that id; the
/// rest is [`Incoming::Unreadable`]. Never fails, never panics (M-5).
#[must_use]
pub fn read(bytes: &[u8]) -> Vec<Incoming> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if let Some(message) = read_ordinary(bytes) {
        return vec![message];
    }
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => read_value(value),
        Err(error) => {
            if looks_like_json(bytes)
                && let Ok(value) = serde_json::from_str(&repair(bytes))
            {
                return read_value(value);
            }
            vec![unparsable(bytes, &error)]
        }
    }
}

fn looks_like_json(bytes: &[u8]) -> bool {
    matches!(
        bytes.iter().find(|byte| !byte.is_ascii_whitespace()),
        Some(b'{' | b'[')
    )
}

fn unparsable(bytes: &[u8], error: &serde_json::Error) -> Incoming {
    let mut scanner = IdScanner::new();
    if looks_like_json(bytes) {
        scanner.feed(bytes);
    }
    match scanner.answer_id() {
        Some(id) => Incoming::Answer(Answer {
            id: Some(id),
            outcome: AnswerOutcome::Malformed(format!(
                "it is no valid JSON ({error}): {}",
                excerpt(bytes)
            )),
        }),
        None => Incoming::Unreadable(Unreadable {
            reason: error.to_string(),
            excerpt: excerpt(bytes),
        }),
    }
}

/// The beginning of some bytes, at most 200 characters, fit for a log line or an error.
#[must_use]
pub fn excerpt(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(800)];
    let text = String::from_utf8_lossy(head);
    let mut short: String = text
        .chars()
        .take(200)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if short.len() < bytes.len() {
        short.push('…');
    }
    short
}

/// Reads one message, or the several of a batch, from JSON.
#[must_use]
pub fn read_value(value: Value) -> Vec<Incoming> {
    match value {
        Value::Array(items) if !items.is_empty() => items
            .into_iter()
            .map(|item| match item {
                Value::Object(object) => read_object(object),
                other => not_a_message(&other),
            })
            .collect(),
        Value::Object(object) => vec![read_object(object)],
        other => vec![not_a_message(&other)],
    }
}

fn not_a_message(value: &Value) -> Incoming {
    Incoming::Unreadable(Unreadable {
        reason: "a message must be a JSON object".into(),
        excerpt: excerpt(value.to_string().as_bytes()),
    })
}

/// What of a message has a meaning, each as it came; null is there, too.
#[derive(Default, Deserialize)]
struct Parts {
    #[serde(default, deserialize_with = "there")]
    id: Option<Value>,
    #[serde(default, deserialize_with = "there")]
    method: Option<Value>,
    #[serde(default, deserialize_with = "there")]
    params: Option<Value>,
    #[serde(default, deserialize_with = "there")]
    result: Option<Value>,
    #[serde(default, deserialize_with = "there")]
    error: Option<Value>,
}

fn there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Parts {
    /// The message, unless it says nothing.
    fn message(self) -> Option<Incoming> {
        let id = self.id.as_ref().and_then(RequestId::from_value);
        let has_result = self.result.is_some();
        let error = self.error.filter(|error| is_an_error(error, has_result));
        let outcome = match (error, self.result, self.method) {
            (Some(error), _, _) => AnswerOutcome::Error(JsonRpcError::from_value(error)),
            (None, Some(result), _) => AnswerOutcome::Result(result),
            (None, None, Some(Value::String(method))) => {
                let params = self.params.unwrap_or(Value::Null);
                return Some(match id {
                    Some(id) => Incoming::Request(IncomingRequest { id, method, params }),
                    None => Incoming::Notification { method, params },
                });
            }
            (None, None, _) => return None,
        };
        Some(Incoming::Answer(Answer { id, outcome }))
    }
}

/// An ordinary message, read straight into its parts. Nothing for a batch, for what says nothing or says
/// a key twice, and for what is no JSON: [`read`] takes a longer look at those.
fn read_ordinary(bytes: &[u8]) -> Option<Incoming> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'{') {
        return None;
    }
    // Checked once as a whole, not text by text.
    let text = std::str::from_utf8(bytes).ok()?;
    serde_json::from_str::<Parts>(text).ok()?.message()
}

fn read_object(mut object: Map<String, Value>) -> Incoming {
    let says_something = object.contains_key("result")
        || object.get("method").is_some_and(Value::is_string)
        || object
            .get("error")
            .is_some_and(|error| is_an_error(error, false));
    if says_something {
        let parts = Parts {
            id: object.remove("id"),
            method: object.remove("method"),
            params: object.remove("params"),
            result: object.remove("result"),
            error: object.remove("error"),
        };
        if let Some(message) = parts.message() {
            return message;
        }
    }
    match object.get("id").and_then(RequestId::from_value) {
        Some(id) => Incoming::Answer(Answer {
            id: Some(id),
            outcome: AnswerOutcome::Malformed(format!(
                "it has neither result nor error: {}",
                excerpt(Value::Object(object).to_string().as_bytes())
            )),
        }),
        None => not_a_message(&Value::Object(object)),
    }
}

/// Beside a result, an empty `error` (null, false, "", {}) is a habit of some servers and no error.
fn is_an_error(error: &Value, has_result: bool) -> bool {
    match error {
        Value::Null => false,
        Value::Bool(false) => !has_result,
        Value::String(text) => !(has_result && text.is_empty()),
        Value::Object(object) => !(has_result && object.is_empty()),
        _ => true,
    }
}
