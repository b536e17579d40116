//! A model's wish to call a tool (SP-005, C-4).
//!
//! Knows: a call's arguments, read or unreadable, and the text that they came in.
//! Does not know: whether the tool exists, nor whether the arguments suit it.

use std::borrow::Cow;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::content::write_extra;
use crate::id::ToolCallId;
use crate::json::{Extra, Fields, JsonObject};

/// A model's wish to call a tool (SP-005).
///
/// JSON: `{"type":"toolCall","id":…,"name":…,"arguments":{…}}`. `argumentsRaw` stands beside
/// when the text that came is not the compact form of `arguments`; `argumentsRaw` and
/// `argumentsError` stand in place of `arguments` when they could not be read.
#[doc(alias = "agentToolCall")]
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The id that its result will carry; unique within its message.
    pub id: ToolCallId,
    /// The tool's name, as the model gave it.
    pub name: String,
    /// The arguments.
    pub arguments: ToolArguments,
    /// The provider's own data that has to go back with the call, and keys that this version
    /// does not know.
    pub extra: Extra,
}

/// The arguments of a call: an object with the text that it came in, or text that is none.
#[derive(Clone, Debug)]
pub enum ToolArguments {
    /// A JSON object.
    Object {
        /// The object, its keys in the order in which they came.
        value: Arc<JsonObject>,
        /// The text that it was read from, which goes back byte for byte; `None` when there
        /// was none and the compact form will do.
        raw: Option<Arc<str>>,
    },
    /// Text that is no JSON object. Such a call is never run: it is answered with an error
    /// that quotes what came (O-4).
    Unreadable {
        /// What came.
        raw: Arc<str>,
        /// Why it could not be read, as a short sentence without a full stop.
        reason: Arc<str>,
    },
}

impl ToolCall {
    /// A call with its arguments: an object, or a JSON value that is one (`json!({…})`).
    pub fn new(
        id: impl Into<ToolCallId>,
        name: impl Into<String>,
        arguments: impl Into<ToolArguments>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            extra: Extra::NONE,
        }
    }

    /// The arguments, unless they could not be read.
    #[must_use]
    pub fn arguments(&self) -> Option<&JsonObject> {
        self.arguments.object()
    }

    /// Reads the JSON of a call, the seeds' `type: function` and a `function` wrapper included.
    /// `None` when there is no name.
    pub(crate) fn from_object(object: JsonObject) -> Option<Self> {
        let mut fields = Fields::new(object);
        fields.take(&["type"]);
        if let Some(Value::Object(inner)) = fields.take(&["function"]) {
            for (key, value) in inner {
                fields.put_back(&key, value);
            }
        }
        let name = fields.text(&["name"])?;
        let id = fields.text(&["id"]).unwrap_or_default();
        let raw = fields.text(&["argumentsRaw", "arguments_raw"]);
        let reason = fields.text(&["argumentsError", "arguments_error"]);
        let value = fields.take(&["arguments"]);
        let arguments = match (value, raw, reason) {
            (value, raw, Some(reason)) => ToolArguments::Unreadable {
                raw: raw
                    .unwrap_or_else(|| value.map(|v| v.to_string()).unwrap_or_default())
                    .into(),
                reason: reason.into(),
            },
            (Some(Value::Object(value)), raw, None) => ToolArguments::Object {
                value: Arc::new(value),
                raw: raw.map(Into::into),
            },
            (Some(other), _, None) => ToolArguments::from(other),
            (None, Some(text), None) => ToolArguments::read(text),
            (None, None, None) => ToolArguments::default(),
        };
        Some(Self {
            id: id.into(),
            name,
            arguments,
            extra: fields.rest(),
        })
    }
}

impl ToolArguments {
    /// Reads strict JSON text: an object, or nothing or `null`, which mean `{}` (O-4).
    /// Anything else is [`ToolArguments::Unreadable`]; nothing is repaired here.
    pub fn read(text: impl Into<Arc<str>>) -> Self {
        let raw: Arc<str> = text.into();
        let trimmed = raw.trim();
        if trimmed.is_empty() || trimmed == "null" {
            return Self::default();
        }
        match serde_json::from_str::<Value>(trimmed) {
            Ok(Value::Object(value)) => Self::Object {
                value: Arc::new(value),
                raw: Some(raw),
            },
            Ok(_) => Self::unreadable(raw, "the arguments are not a JSON object"),
            Err(e) => Self::unreadable(raw, format!("the arguments are not valid JSON: {e}")),
        }
    }

    /// Arguments that could not be read, and why.
    pub fn unreadable(raw: impl Into<Arc<str>>, reason: impl Into<Arc<str>>) -> Self {
        Self::Unreadable {
            raw: raw.into(),
            reason: reason.into(),
        }
    }

    /// The object, unless it could not be read.
    #[must_use]
    pub fn object(&self) -> Option<&JsonObject> {
        match self {
            Self::Object { value, .. } => Some(value),
            Self::Unreadable { .. } => None,
        }
    }

    /// The text: what came, byte for byte, or the compact form of the object.
    #[must_use]
    pub fn raw(&self) -> Cow<'_, str> {
        match self {
            Self::Object { raw: Some(raw), .. } | Self::Unreadable { raw, .. } => {
                Cow::Borrowed(raw)
            }
            Self::Object { value, raw: None } => Cow::Owned(compact(value)),
        }
    }
}

fn compact(value: &JsonObject) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "{}".to_owned())
}

impl Default for ToolArguments {
    /// `{}`.
    fn default() -> Self {
        JsonObject::new().into()
    }
}

impl From<JsonObject> for ToolArguments {
    fn from(value: JsonObject) -> Self {
        Self::Object {
            value: Arc::new(value),
            raw: None,
        }
    }
}

impl From<Value> for ToolArguments {
    /// An object; its text, which is read; `null`, which means `{}`. Any other value is
    /// [`ToolArguments::Unreadable`].
    fn from(value: Value) -> Self {
        match value {
            Value::Object(object) => object.into(),
            Value::String(text) => Self::read(text),
            Value::Null => Self::default(),
            other => Self::unreadable(other.to_string(), "the arguments are not a JSON object"),
        }
    }
}

impl PartialEq for ToolArguments {
    /// Equal when they would be written alike: same object, same text.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Object { value: a, .. }, Self::Object { value: b, .. }) => {
                a == b && self.raw() == other.raw()
            }
            (
                Self::Unreadable { raw, reason },
                Self::Unreadable {
                    raw: raw_2,
                    reason: reason_2,
                },
            ) => raw == raw_2 && reason == reason_2,
            _ => false,
        }
    }
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("type", "toolCall")?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("name", &self.name)?;
        match &self.arguments {
            ToolArguments::Object { value, raw } => {
                map.serialize_entry("arguments", &**value)?;
                if let Some(raw) = raw.as_ref().filter(|raw| ***raw != *compact(value)) {
                    map.serialize_entry("argumentsRaw", raw)?;
                }
            }
            ToolArguments::Unreadable { raw, reason } => {
                map.serialize_entry("argumentsRaw", raw)?;
                map.serialize_entry("argumentsError", reason)?;
            }
        }
        write_extra(&mut map, &self.extra)?;
        map.end()
    }
}
