//! The blocks that messages are made of (SP-006, C-3).
//!
//! Knows: each kind of block, its JSON, and the line of text that stands for it where it cannot
//! be shown. Does not know: which model can be shown what, nor any wire.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::json::{Extra, Fields, JsonObject};
use crate::tool_call::ToolCall;

/// A block of a user's message or of a tool's result.
///
/// JSON: an object with the tag `type` (`text`, `image`, `audio`, `resource`); a block of any
/// other kind is [`Content::Other`] and is kept as it came.
#[doc(alias = "messageContent")]
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Text (SP-006.1).
    Text(TextContent),
    /// An image (SP-006.2).
    Image(ImageContent),
    /// A sound.
    Audio(AudioContent),
    /// A resource: a link, or its text or bytes.
    Resource(ResourceContent),
    /// A kind that this version does not know, or that does not belong here.
    Other(OtherContent),
}

/// A block of an assistant's message.
///
/// JSON: an object with the tag `type` (`text`, `reasoning`, `toolCall`, `image`); any other
/// kind is [`AssistantContent::Other`] and is kept as it came.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantContent {
    /// Text for whoever asked (SP-006.1).
    Text(TextContent),
    /// What the model thought before it answered (SP-006.3).
    Reasoning(ReasoningContent),
    /// A call of a tool (SP-005).
    ToolCall(ToolCall),
    /// An image that the model made.
    Image(ImageContent),
    /// A kind that this version does not know, or that does not belong here.
    Other(OtherContent),
}

/// Text (SP-006.1).
#[doc(alias = "textContent")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Keys of the block that this version does not know, such as annotations.
    pub extra: Extra,
}

/// An image (SP-006.2).
#[doc(alias = "imageContent")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImageContent {
    /// The bytes in base64.
    pub data: String,
    /// The MIME type, such as `image/png`.
    pub mime_type: String,
    /// Keys of the block that this version does not know.
    pub extra: Extra,
}

/// A sound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AudioContent {
    /// The bytes in base64.
    pub data: String,
    /// The MIME type, such as `audio/wav`.
    pub mime_type: String,
    /// Keys of the block that this version does not know.
    pub extra: Extra,
}

/// A resource: a link to it, or its contents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceContent {
    /// Where it is.
    pub uri: String,
    /// The MIME type, if it was told.
    pub mime_type: Option<String>,
    /// The title for people, if it was told.
    pub title: Option<String>,
    /// What of it came along.
    pub body: ResourceBody,
    /// Keys of the block that this version does not know, such as name, description, size.
    pub extra: Extra,
}

/// What of a resource came along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ResourceBody {
    /// Nothing: a link.
    #[default]
    Link,
    /// Its text.
    Text(String),
    /// Its bytes in base64.
    Blob(String),
}

/// What the model thought before it answered (SP-006.3), with what its provider wants back.
#[doc(alias = "reasoningContent")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReasoningContent {
    /// The thoughts; empty when the provider hides them.
    pub text: String,
    /// The field of the reply that they came in, such as `reasoning_content`; they go back in it.
    pub field: Option<String>,
    /// The provider's signature of them.
    pub signature: Option<String>,
    /// Whatever else the provider wants back, opaque.
    pub data: Option<Value>,
    /// Keys of the block that this version does not know.
    pub extra: Extra,
}

/// A block of a kind that this version does not know, kept as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtherContent {
    /// The block, its `type` included.
    pub value: Value,
}

impl Content {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// An image of bytes in base64.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(data, mime_type))
    }

    /// The text, of a block of text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(t) => Some(&t.text),
            _ => None,
        }
    }

    /// What a model reads that can be shown text alone: the text of a text block or of an
    /// embedded text resource, else a line that says what the block was (C-3).
    ///
    /// ```
    /// use yiem_core::Content;
    /// assert_eq!(Content::image("AAAA", "image/png").to_plain_text(), "[image: image/png, 3 bytes]");
    /// ```
    #[must_use]
    pub fn to_plain_text(&self) -> String {
        match self {
            Self::Text(t) => t.text.clone(),
            Self::Image(i) => i.placeholder(),
            Self::Audio(a) => media("audio", &a.mime_type, &a.data),
            Self::Resource(r) => r.to_plain_text(),
            Self::Other(o) => o.placeholder(),
        }
    }
}

impl AssistantContent {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// A block of reasoning that remembers nothing but its text.
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::Reasoning(ReasoningContent::new(text))
    }

    /// The text, of a block of text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(t) => Some(&t.text),
            _ => None,
        }
    }

    /// The call, of a block that is one.
    #[must_use]
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            _ => None,
        }
    }
}

impl TextContent {
    /// A block of that text.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            extra: Extra::NONE,
        }
    }
}

impl ImageContent {
    /// An image of bytes in base64.
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            mime_type: mime_type.into(),
            extra: Extra::NONE,
        }
    }

    /// The line of text that stands for the image where it cannot be shown.
    #[must_use]
    pub fn placeholder(&self) -> String {
        media("image", &self.mime_type, &self.data)
    }
}

impl ReasoningContent {
    /// A block that remembers nothing but its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

impl ResourceContent {
    fn to_plain_text(&self) -> String {
        let title = self.title.as_deref().unwrap_or("");
        let sep = if title.is_empty() { "" } else { ", " };
        match &self.body {
            ResourceBody::Text(text) => text.clone(),
            ResourceBody::Link => format!("[resource: {title}{sep}{}]", self.uri),
            ResourceBody::Blob(data) => format!(
                "[resource: {title}{sep}{}, {}, {} bytes]",
                self.uri,
                self.mime_type.as_deref().unwrap_or("unknown type"),
                base64_len(data)
            ),
        }
    }
}

impl OtherContent {
    /// The `type` of the block, or the empty text.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.value.get("type").and_then(Value::as_str).unwrap_or("")
    }

    /// The line of text that stands for the block where it cannot be shown.
    #[must_use]
    pub fn placeholder(&self) -> String {
        let kind: String = self.kind().chars().take(60).collect();
        if kind.is_empty() {
            "[content of an unknown kind]".to_owned()
        } else {
            format!("[content of kind {kind}]")
        }
    }
}

fn media(what: &str, mime_type: &str, data: &str) -> String {
    let mime = if mime_type.is_empty() {
        "unknown type"
    } else {
        mime_type
    };
    format!("[{what}: {mime}, {} bytes]", base64_len(data))
}

/// How many bytes base64 text stands for, without decoding it.
fn base64_len(data: &str) -> usize {
    data.trim_end_matches('=').len() * 3 / 4
}

impl From<TextContent> for Content {
    fn from(text: TextContent) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<ToolCall> for AssistantContent {
    fn from(call: ToolCall) -> Self {
        Self::ToolCall(call)
    }
}

/// Writes `pairs` that are there, then what nobody knows.
pub(crate) fn write_extra<M: SerializeMap>(map: &mut M, extra: &Extra) -> Result<(), M::Error> {
    for (key, value) in extra.iter() {
        map.serialize_entry(key, value)?;
    }
    Ok(())
}

fn write_text<S: Serializer>(t: &TextContent, s: S) -> Result<S::Ok, S::Error> {
    let mut map = s.serialize_map(None)?;
    map.serialize_entry("type", "text")?;
    map.serialize_entry("text", &t.text)?;
    write_extra(&mut map, &t.extra)?;
    map.end()
}

fn write_media<S: Serializer>(
    kind: &str,
    data: &str,
    mime_type: &str,
    extra: &Extra,
    s: S,
) -> Result<S::Ok, S::Error> {
    let mut map = s.serialize_map(None)?;
    map.serialize_entry("type", kind)?;
    map.serialize_entry("data", data)?;
    map.serialize_entry("mimeType", mime_type)?;
    write_extra(&mut map, extra)?;
    map.end()
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(t) => write_text(t, s),
            Self::Image(i) => write_media("image", &i.data, &i.mime_type, &i.extra, s),
            Self::Audio(a) => write_media("audio", &a.data, &a.mime_type, &a.extra, s),
            Self::Resource(r) => {
                let mut map = s.serialize_map(None)?;
                map.serialize_entry("type", "resource")?;
                map.serialize_entry("uri", &r.uri)?;
                if let Some(mime) = &r.mime_type {
                    map.serialize_entry("mimeType", mime)?;
                }
                if let Some(title) = &r.title {
                    map.serialize_entry("title", title)?;
                }
                match &r.body {
                    ResourceBody::Link => {}
                    ResourceBody::Text(text) => map.serialize_entry("text", text)?,
                    ResourceBody::Blob(data) => map.serialize_entry("blob", data)?,
                }
                write_extra(&mut map, &r.extra)?;
                map.end()
            }
            Self::Other(o) => o.value.serialize(s),
        }
    }
}

impl Serialize for AssistantContent {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(t) => write_text(t, s),
            Self::Image(i) => write_media("image", &i.data, &i.mime_type, &i.extra, s),
            Self::Reasoning(r) => {
                let mut map = s.serialize_map(None)?;
                map.serialize_entry("type", "reasoning")?;
                map.serialize_entry("text", &r.text)?;
                if let Some(field) = &r.field {
                    map.serialize_entry("field", field)?;
                }
                if let Some(signature) = &r.signature {
                    map.serialize_entry("signature", signature)?;
                }
                if let Some(data) = &r.data {
                    map.serialize_entry("data", data)?;
                }
                write_extra(&mut map, &r.extra)?;
                map.end()
            }
            Self::ToolCall(call) => call.serialize(s),
            Self::Other(o) => o.value.serialize(s),
        }
    }
}

/// What a block turned out to be, before it is known whether it may stand there.
enum Read {
    Text(TextContent),
    Image(ImageContent),
    Audio(AudioContent),
    Resource(ResourceContent),
    Reasoning(ReasoningContent),
    ToolCall(ToolCall),
    Unknown,
}

/// Reads a block by its kind; [`Read::Unknown`] leaves the object for its owner to keep.
fn read_block(object: &JsonObject) -> Read {
    let kind = object.get("type").and_then(Value::as_str).unwrap_or("");
    let mut fields = Fields::new(object.clone());
    fields.take(&["type"]);
    match kind {
        "text" => match fields.text(&["text"]) {
            Some(text) => Read::Text(TextContent {
                text,
                extra: fields.rest(),
            }),
            None => Read::Unknown,
        },
        "image" | "audio" => {
            let Some(data) = fields.text(&["data"]) else {
                return Read::Unknown;
            };
            let mime_type = fields.text(&["mimeType", "mime_type"]).unwrap_or_default();
            let extra = fields.rest();
            if kind == "image" {
                Read::Image(ImageContent {
                    data,
                    mime_type,
                    extra,
                })
            } else {
                Read::Audio(AudioContent {
                    data,
                    mime_type,
                    extra,
                })
            }
        }
        "resource" => {
            let Some(uri) = fields.text(&["uri"]) else {
                return Read::Unknown;
            };
            let body = match fields.text(&["text"]) {
                Some(text) => ResourceBody::Text(text),
                None => fields
                    .text(&["blob"])
                    .map_or(ResourceBody::Link, ResourceBody::Blob),
            };
            Read::Resource(ResourceContent {
                uri,
                mime_type: fields.text(&["mimeType", "mime_type"]),
                title: fields.text(&["title"]),
                body,
                extra: fields.rest(),
            })
        }
        "reasoning" => match fields.text(&["text"]) {
            Some(text) => Read::Reasoning(ReasoningContent {
                text,
                field: fields.text(&["field"]),
                signature: fields.text(&["signature"]),
                data: fields.take(&["data"]),
                extra: fields.rest(),
            }),
            None => Read::Unknown,
        },
        "toolCall" | "tool_call" | "function" => match ToolCall::from_object(object.clone()) {
            Some(call) => Read::ToolCall(call),
            None => Read::Unknown,
        },
        _ => Read::Unknown,
    }
}

fn read(value: &Value) -> Read {
    match value {
        Value::String(text) => Read::Text(TextContent::new(text.as_str())),
        Value::Object(object) => read_block(object),
        _ => Read::Unknown,
    }
}

impl From<Value> for Content {
    /// Reads a block; what is none that is known is kept as [`Content::Other`], a bare text is
    /// a block of text.
    fn from(value: Value) -> Self {
        match read(&value) {
            Read::Text(t) => Self::Text(t),
            Read::Image(i) => Self::Image(i),
            Read::Audio(a) => Self::Audio(a),
            Read::Resource(r) => Self::Resource(r),
            Read::Reasoning(_) | Read::ToolCall(_) | Read::Unknown => {
                Self::Other(OtherContent { value })
            }
        }
    }
}

impl From<Value> for AssistantContent {
    /// Reads a block; what is none that is known is kept as [`AssistantContent::Other`], a bare
    /// text is a block of text.
    fn from(value: Value) -> Self {
        match read(&value) {
            Read::Text(t) => Self::Text(t),
            Read::Image(i) => Self::Image(i),
            Read::Reasoning(r) => Self::Reasoning(r),
            Read::ToolCall(c) => Self::ToolCall(c),
            Read::Audio(_) | Read::Resource(_) | Read::Unknown => {
                Self::Other(OtherContent { value })
            }
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

impl<'de> Deserialize<'de> for AssistantContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

/// A content list as it is written: a list of blocks, one text, or nothing.
pub(crate) fn read_list<T: From<Value>>(value: Option<Value>) -> Vec<T> {
    match value {
        None => Vec::new(),
        Some(Value::Array(blocks)) => blocks.into_iter().map(T::from).collect(),
        Some(Value::String(text)) if text.is_empty() => Vec::new(),
        Some(other) => vec![T::from(other)],
    }
}

impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = JsonObject::deserialize(deserializer)?;
        Self::from_object(object)
            .ok_or_else(|| D::Error::custom("not a tool call: it has no `name`"))
    }
}
