//! JSON-RPC 2.0 as it is on the wire: tolerant in reading, strict in writing.
//!
//! Knows: what a message is (answer, request, notification, or something that cannot be read),
//! which oddities of servers still have one meaning, how to find the id of a message that is broken,
//! and how to cut a byte stream into lines with a cap.
//! Does not know: MCP methods, who waits for an answer, sockets, tasks or time.

mod line;
mod read;
mod repair;
mod scan;
#[cfg(test)]
mod tests;
mod write;

pub use line::{Line, LineReader};
pub use read::{
    Answer, AnswerOutcome, Incoming, IncomingRequest, Unreadable, excerpt, read, read_value,
};
pub use scan::IdScanner;
#[cfg(feature = "gateway")]
pub(crate) use write::outgoing;
pub use write::{error_response, notification, request, result_response};

use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// The code of "this is no JSON".
pub const PARSE_ERROR: i64 = -32700;
/// The code of "this is no request".
pub const INVALID_REQUEST: i64 = -32600;
/// The code of "no such method".
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The code of "the parameters are wrong".
pub const INVALID_PARAMS: i64 = -32602;
/// The code of "something broke here".
pub const INTERNAL_ERROR: i64 = -32603;

/// The id of a request. What we write are numbers; servers write both kinds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestId {
    /// A whole number.
    Number(i64),
    /// A text.
    Text(Arc<str>),
}

impl RequestId {
    /// Reads an id. A float without a fraction counts as its whole number; null, booleans, lists and
    /// objects are no ids.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_i64().map(Self::Number).or_else(|| {
                let float = number.as_f64()?;
                (float.fract() == 0.0 && float.abs() < 9.0e15).then_some({
                    #[expect(
                        clippy::cast_possible_truncation,
                        reason = "checked: whole and within 2^53"
                    )]
                    Self::Number(float as i64)
                })
            }),
            Value::String(text) => Some(Self::Text(text.as_str().into())),
            _ => None,
        }
    }

    /// This id as JSON.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Number(number) => Value::from(*number),
            Self::Text(text) => Value::from(&**text),
        }
    }

    /// The other spelling of the same id: servers that keep ids as text answer `7` with `"7"`.
    #[must_use]
    pub fn other_spelling(&self) -> Option<Self> {
        match self {
            Self::Number(number) => Some(Self::Text(number.to_string().into())),
            Self::Text(text) => text.trim().parse().ok().map(Self::Number),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// The `error` of an answer: a server's refusal, kept as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonRpcError {
    /// The code; 0 when the server gave none that is a number.
    pub code: i64,
    /// The server's text; what it sent as JSON when there was no text.
    pub message: String,
    /// What came beside code and message.
    pub data: Option<Value>,
}

impl JsonRpcError {
    /// An error of our own, to answer a request with.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Adds `data`.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Reads the value of `error`, whatever it is: an object with a code that is a number or a text, a
    /// bare text, or anything else.
    #[must_use]
    pub fn from_value(value: Value) -> Self {
        let mut object = match value {
            Value::Object(object) => object,
            Value::String(message) => {
                return Self {
                    code: 0,
                    message,
                    data: None,
                };
            }
            other => {
                return Self {
                    code: 0,
                    message: other.to_string(),
                    data: None,
                };
            }
        };
        let raw_code = object.remove("code");
        let code = raw_code.as_ref().and_then(code_of);
        let raw_message = object.remove("message");
        let data = object.remove("data").filter(|data| !data.is_null());
        let mut message = match raw_message {
            Some(Value::String(text)) => text,
            Some(Value::Null) | None if object.is_empty() => {
                "the server gave no message".to_owned()
            }
            Some(Value::Null) | None => Value::Object(object).to_string(),
            Some(other) => other.to_string(),
        };
        if code.is_none()
            && let Some(raw) = raw_code.filter(|raw| !raw.is_null())
        {
            let raw = raw.as_str().map_or_else(|| raw.to_string(), str::to_owned);
            message = format!("{raw}: {message}");
        }
        Self {
            code: code.unwrap_or(0),
            message,
            data,
        }
    }

    /// This error as the JSON that goes on the wire.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = serde_json::Map::new();
        object.insert("code".into(), self.code.into());
        object.insert("message".into(), self.message.as_str().into());
        if let Some(data) = &self.data {
            object.insert("data".into(), data.clone());
        }
        Value::Object(object)
    }
}

fn code_of(value: &Value) -> Option<i64> {
    match RequestId::from_value(value)? {
        RequestId::Number(number) => Some(number),
        RequestId::Text(text) => text.trim().parse().ok(),
    }
}

impl fmt::Display for JsonRpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.code == 0 {
            return f.write_str(&self.message);
        }
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for JsonRpcError {}
