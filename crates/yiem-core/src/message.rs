//! Messages: what is said, by whom, and what came of it (SP-001 to SP-004, C-1, C-2).
//!
//! Knows: the kinds of message and their JSON, in today's spelling and in the seeds'.
//! Does not know: which of them a model is sent, nor in what form.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::content::{AssistantContent, Content, read_list, write_extra};
use crate::env::Timestamp;
use crate::id::ToolCallId;
use crate::json::{Extra, Fields, JsonObject};
use crate::tool_call::ToolCall;
use crate::usage::Usage;

/// One message of a conversation (C-1). The system prompt is none: it stands beside them.
///
/// JSON: camelCase, tagged by `role` (`user`, `assistant`, `toolResult`, `custom`). Read as
/// well: role `tool`, a separate `toolCalls` list, the seeds' snake_case spellings.
#[doc(alias = "agentMessage")]
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// What a person, or whoever drives the agent, said.
    User(UserMessage),
    /// What the model answered.
    Assistant(AssistantMessage),
    /// What came of a tool call.
    ToolResult(ToolResultMessage),
    /// An application's own; never sent to a model unless a context transform turns it into
    /// another.
    Custom(CustomMessage),
}

/// What a person, or whoever drives the agent, said (SP-001).
#[doc(alias = "userMessage")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserMessage {
    /// The blocks, in order; may be empty, and is then not sent.
    pub content: Vec<Content>,
    /// When it was sent.
    pub timestamp: Timestamp,
    /// Keys that this version does not know.
    pub extra: Extra,
}

/// What the model answered: SP-002 and SP-003 in one, its blocks in their order.
#[doc(alias = "assistantMessage")]
#[doc(alias = "assistantMessageToolCall")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantMessage {
    /// Text, reasoning, calls and images, in order.
    pub content: Vec<AssistantContent>,
    /// The API that was used, such as `openai`; empty if unknown.
    pub api: String,
    /// The provider, such as `anthropic`; empty if unknown.
    pub provider: String,
    /// The model that answered; empty if unknown.
    pub model: String,
    /// Its tokens.
    pub usage: Usage,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// What went wrong, if something did.
    pub error_message: Option<String>,
    /// When it was received.
    pub timestamp: Timestamp,
    /// The provider's own data that has to go back with the message, and keys that this
    /// version does not know.
    pub extra: Extra,
}

/// What came of a tool call (SP-004).
#[doc(alias = "toolResultMessage")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResultMessage {
    /// The id of the call that it answers.
    pub tool_call_id: ToolCallId,
    /// The tool that was called.
    pub tool_name: String,
    /// What the model is shown.
    pub content: Vec<Content>,
    /// What the application is shown: any JSON, `null` if nothing.
    pub details: Value,
    /// Tokens of models that the tool itself asked.
    pub usage: Option<Usage>,
    /// Tools that the call added.
    pub added_tool_names: Vec<String>,
    /// Whether the call failed.
    pub is_error: bool,
    /// When it was recorded.
    pub timestamp: Timestamp,
    /// Keys that this version does not know.
    pub extra: Extra,
}

/// An application's own message: kept in history and shown to listeners (C-1).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CustomMessage {
    /// What it is, in the application's words.
    pub kind: String,
    /// What it says.
    pub data: Value,
    /// When it was made.
    pub timestamp: Timestamp,
    /// Keys that this version does not know.
    pub extra: Extra,
}

/// Why a reply ended (C-6). Written as the seeds' words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// It was done: `end_turn`.
    #[default]
    EndTurn,
    /// It wants tools to be called: `tool_calls`.
    ToolCalls,
    /// It reached the limit of its length: `length`.
    Length,
    /// A filter cut it: `content_filter`.
    ContentFilter,
    /// It failed: `error`.
    Error,
    /// The run was aborted: `aborted`.
    Aborted,
    /// A tool ended the run: `terminated`.
    Terminated,
    /// Any other word of the provider's.
    Other(String),
}

impl Message {
    /// A user's message of one text.
    pub fn user(text: impl Into<String>, timestamp: Timestamp) -> Self {
        Self::User(UserMessage::new(text, timestamp))
    }

    /// The word that `role` has in JSON.
    #[must_use]
    pub fn role(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::Custom(_) => "custom",
        }
    }

    /// When it was made.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        match self {
            Self::User(m) => m.timestamp,
            Self::Assistant(m) => m.timestamp,
            Self::ToolResult(m) => m.timestamp,
            Self::Custom(m) => m.timestamp,
        }
    }

    /// The assistant's message, if it is one.
    #[must_use]
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(m) => Some(m),
            _ => None,
        }
    }

    /// The user's message, if it is one.
    #[must_use]
    pub fn as_user(&self) -> Option<&UserMessage> {
        match self {
            Self::User(m) => Some(m),
            _ => None,
        }
    }

    /// The tool result, if it is one.
    #[must_use]
    pub fn as_tool_result(&self) -> Option<&ToolResultMessage> {
        match self {
            Self::ToolResult(m) => Some(m),
            _ => None,
        }
    }
}

impl UserMessage {
    /// A message of one text.
    pub fn new(text: impl Into<String>, timestamp: Timestamp) -> Self {
        Self {
            content: vec![Content::text(text)],
            timestamp,
            extra: Extra::NONE,
        }
    }

    /// Its text blocks, joined with nothing between them.
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect()
    }

    /// Whether there is nothing in it that could be sent: no block but blank text.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.content
            .iter()
            .all(|c| c.as_text().is_some_and(|t| t.trim().is_empty()))
    }
}

impl AssistantMessage {
    /// A message of these blocks. The stop reason is `tool_calls` when a call is among them,
    /// else `end_turn`; usage is unknown, api, provider and model are empty (SP-002, SP-003).
    #[must_use]
    pub fn new(content: Vec<AssistantContent>, timestamp: Timestamp) -> Self {
        let calls = content.iter().any(|c| c.as_tool_call().is_some());
        Self {
            content,
            stop_reason: if calls {
                StopReason::ToolCalls
            } else {
                StopReason::EndTurn
            },
            timestamp,
            ..Self::default()
        }
    }

    /// Its calls, in order (SP-003 `toolCalls`).
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content
            .iter()
            .filter_map(AssistantContent::as_tool_call)
    }

    /// Whether it calls a tool.
    #[must_use]
    pub fn has_tool_calls(&self) -> bool {
        self.tool_calls().next().is_some()
    }

    /// Its text blocks, joined with nothing between them.
    #[must_use]
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(AssistantContent::as_text)
            .collect()
    }

    /// Its reasoning blocks, joined with nothing between them.
    #[must_use]
    pub fn reasoning(&self) -> String {
        self.content
            .iter()
            .filter_map(|c| match c {
                AssistantContent::Reasoning(r) => Some(r.text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// Whether it failed or was aborted; such a message stays in history and is left out of
    /// requests.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        matches!(self.stop_reason, StopReason::Error | StopReason::Aborted)
    }
}

impl ToolResultMessage {
    /// Its text blocks, joined with a line break between them.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

impl StopReason {
    /// The word that it is written as.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Error => "error",
            Self::Aborted => "aborted",
            Self::Terminated => "terminated",
            Self::Other(word) => word,
        }
    }
}

impl From<&str> for StopReason {
    /// Reads a word of the seeds'; `stop` is `end_turn`. Any other is kept as it is.
    fn from(word: &str) -> Self {
        match word {
            "end_turn" | "stop" => Self::EndTurn,
            "tool_calls" => Self::ToolCalls,
            "length" => Self::Length,
            "content_filter" => Self::ContentFilter,
            "error" => Self::Error,
            "aborted" => Self::Aborted,
            "terminated" => Self::Terminated,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl std::fmt::Display for StopReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for StopReason {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for StopReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|word| Self::from(word.as_str()))
    }
}

impl From<UserMessage> for Message {
    fn from(m: UserMessage) -> Self {
        Self::User(m)
    }
}

impl From<AssistantMessage> for Message {
    fn from(m: AssistantMessage) -> Self {
        Self::Assistant(m)
    }
}

impl From<ToolResultMessage> for Message {
    fn from(m: ToolResultMessage) -> Self {
        Self::ToolResult(m)
    }
}

impl From<CustomMessage> for Message {
    fn from(m: CustomMessage) -> Self {
        Self::Custom(m)
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::User(m) => m.serialize(s),
            Self::Assistant(m) => m.serialize(s),
            Self::ToolResult(m) => m.serialize(s),
            Self::Custom(m) => m.serialize(s),
        }
    }
}

impl Serialize for UserMessage {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("role", "user")?;
        map.serialize_entry("content", &self.content)?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        write_extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl Serialize for AssistantMessage {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("role", "assistant")?;
        map.serialize_entry("content", &self.content)?;
        map.serialize_entry("api", &self.api)?;
        map.serialize_entry("provider", &self.provider)?;
        map.serialize_entry("model", &self.model)?;
        map.serialize_entry("usage", &self.usage)?;
        map.serialize_entry("stopReason", &self.stop_reason)?;
        if let Some(error) = &self.error_message {
            map.serialize_entry("errorMessage", error)?;
        }
        map.serialize_entry("timestamp", &self.timestamp)?;
        write_extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl Serialize for ToolResultMessage {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("role", "toolResult")?;
        map.serialize_entry("toolCallId", &self.tool_call_id)?;
        map.serialize_entry("toolName", &self.tool_name)?;
        map.serialize_entry("content", &self.content)?;
        if !self.details.is_null() {
            map.serialize_entry("details", &self.details)?;
        }
        if let Some(usage) = &self.usage {
            map.serialize_entry("usage", usage)?;
        }
        if !self.added_tool_names.is_empty() {
            map.serialize_entry("addedToolNames", &self.added_tool_names)?;
        }
        map.serialize_entry("isError", &self.is_error)?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        write_extra(&mut map, &self.extra)?;
        map.end()
    }
}

impl Serialize for CustomMessage {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("role", "custom")?;
        map.serialize_entry("kind", &self.kind)?;
        map.serialize_entry("data", &self.data)?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        write_extra(&mut map, &self.extra)?;
        map.end()
    }
}

fn read_user(mut f: Fields) -> UserMessage {
    UserMessage {
        content: read_list(f.take(&["content"])),
        timestamp: f.parsed(&["timestamp"]).unwrap_or_default(),
        extra: f.rest(),
    }
}

fn read_assistant(mut f: Fields) -> AssistantMessage {
    let mut content: Vec<AssistantContent> = read_list(f.take(&["content"]));
    if let Some(Value::Array(calls)) = f.take(&["toolCalls", "tool_calls"]) {
        // The seeds' SP-003: its calls stand beside the content, each of `type: function`.
        content.extend(calls.into_iter().map(|call| match call {
            Value::Object(object) => match ToolCall::from_object(object.clone()) {
                Some(call) => AssistantContent::ToolCall(call),
                None => AssistantContent::from(Value::Object(object)),
            },
            other => AssistantContent::from(other),
        }));
    }
    let mut message = AssistantMessage::new(content, Timestamp::default());
    if let Some(reason) = f.parsed(&["stopReason", "stop_reason"]) {
        message.stop_reason = reason;
    }
    message.api = f.text(&["api"]).unwrap_or_default();
    message.provider = f.text(&["provider"]).unwrap_or_default();
    message.model = f.text(&["model"]).unwrap_or_default();
    message.usage = f.parsed(&["usage"]).unwrap_or_default();
    message.error_message = f.text(&["errorMessage", "error_message"]);
    message.timestamp = f.parsed(&["timestamp"]).unwrap_or_default();
    message.extra = f.rest();
    message
}

fn read_tool_result(mut f: Fields) -> ToolResultMessage {
    ToolResultMessage {
        tool_call_id: f
            .text(&["toolCallId", "tool_call_id"])
            .unwrap_or_default()
            .into(),
        tool_name: f
            .text(&["toolName", "tool_name", "name"])
            .unwrap_or_default(),
        content: read_list(f.take(&["content"])),
        details: f.take(&["details"]).unwrap_or_default(),
        usage: f.parsed(&["usage"]),
        added_tool_names: f
            .parsed(&["addedToolNames", "added_tool_names"])
            .unwrap_or_default(),
        is_error: f.flag(&["isError", "is_error"]).unwrap_or_default(),
        timestamp: f.parsed(&["timestamp"]).unwrap_or_default(),
        extra: f.rest(),
    }
}

fn read_custom(mut f: Fields) -> CustomMessage {
    CustomMessage {
        kind: f.text(&["kind"]).unwrap_or_default(),
        data: f.take(&["data"]).unwrap_or_default(),
        timestamp: f.parsed(&["timestamp"]).unwrap_or_default(),
        extra: f.rest(),
    }
}

impl Message {
    fn from_object(object: JsonObject) -> Result<Self, String> {
        let mut f = Fields::new(object);
        match f.text(&["role"]).as_deref() {
            Some("user") => Ok(Self::User(read_user(f))),
            Some("assistant") => Ok(Self::Assistant(read_assistant(f))),
            Some("toolResult" | "tool" | "tool_result") => {
                Ok(Self::ToolResult(read_tool_result(f)))
            }
            Some("custom") => Ok(Self::Custom(read_custom(f))),
            Some(role) => Err(format!(
                "a message has the role {role:?}; known are user, assistant, toolResult and custom"
            )),
            None => Err("a message has no `role`".to_owned()),
        }
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = JsonObject::deserialize(deserializer)?;
        Self::from_object(object).map_err(D::Error::custom)
    }
}

macro_rules! read_one_role {
    ($type:ident, $variant:ident, $role:literal) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut object = JsonObject::deserialize(deserializer)?;
                object.entry("role").or_insert_with(|| Value::from($role));
                match Message::from_object(object).map_err(D::Error::custom)? {
                    Message::$variant(m) => Ok(m),
                    other => Err(D::Error::custom(format!(
                        "expected a message of role {}, found {}",
                        $role,
                        other.role()
                    ))),
                }
            }
        }
    };
}

read_one_role!(UserMessage, User, "user");
read_one_role!(AssistantMessage, Assistant, "assistant");
read_one_role!(ToolResultMessage, ToolResult, "toolResult");
read_one_role!(CustomMessage, Custom, "custom");

#[cfg(test)]
mod tests;
