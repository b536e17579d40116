//! What is told of a run: facts, in order, that steer nothing.
//!
//! Knows: every event and its JSON. Does not know: who listens.
//! The promises of order stand in `docs/events.md`, each with the test that holds it.

use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use yiem_core::{
    AssistantContent, Content, Cost, JsonObject, Message, RunId, ToolCallId, ToolResultMessage,
    Usage,
};

use crate::outcome::EndKind;

/// Something that happened in a run.
///
/// JSON is camelCase with the tag `type` beside `runId`, `turn` and `seq`:
/// `{"type":"toolExecutionStart","toolCallId":"call_1","toolName":"add","args":{},"runId":"run_1","turn":1,"seq":7}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentEvent {
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
    /// The run that it happened in.
    pub run_id: RunId,
    /// The turn that it happened in, from 1; 0 before the first.
    pub turn: u32,
    /// Its place in the run, from 0, without gaps.
    pub seq: u64,
}

impl AgentEvent {
    /// The piece of the model's visible text that this event tells, if it tells one.
    #[must_use]
    pub fn text_delta(&self) -> Option<&str> {
        match &self.kind {
            EventKind::MessageUpdate {
                delta: MessageDelta::Text { text },
            } => Some(text),
            _ => None,
        }
    }
}

/// What happened. New kinds come with new versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum EventKind {
    /// A run begins.
    AgentStart,
    /// A run has ended. Its outcome is given out after this event was delivered.
    AgentEnd {
        /// Why it ended, in one word.
        reason: EndKind,
        /// Tokens of the run's model calls, failed attempts included.
        usage: Usage,
        /// Their money, when the model has prices.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
        /// What went wrong or which limit was reached, for people.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A turn begins: one model reply and its calls.
    TurnStart,
    /// A turn has ended.
    TurnEnd {
        /// The model's reply; absent when the turn was cut before there was any.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<Arc<Message>>,
        /// The results of its calls, in the order of the reply.
        tool_results: Vec<Arc<Message>>,
    },
    /// A message begins. A user's message or a result is there whole; an assistant's comes in
    /// updates.
    MessageStart {
        /// The message's role.
        role: MessageRole,
        /// The message, unless it is the assistant's.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<Arc<Message>>,
    },
    /// More of the assistant's message; never the whole of it.
    MessageUpdate {
        /// What is new.
        delta: MessageDelta,
    },
    /// A message is complete, or as complete as it will be.
    MessageEnd {
        /// The message.
        message: Arc<Message>,
    },
    /// An accepted call begins to run.
    ToolExecutionStart {
        /// The call's id.
        tool_call_id: ToolCallId,
        /// The tool's name.
        tool_name: Arc<str>,
        /// Its arguments as validated.
        args: Arc<JsonObject>,
        /// The call that made this one, when a tool calls a tool.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        parent_tool_call_id: Option<ToolCallId>,
    },
    /// A running call tells of its progress.
    ToolExecutionUpdate {
        /// The call's id.
        tool_call_id: ToolCallId,
        /// The tool's name.
        tool_name: Arc<str>,
        /// What the tool said.
        partial_result: Value,
    },
    /// A call has run; no update of it follows.
    ToolExecutionEnd {
        /// The call's id.
        tool_call_id: ToolCallId,
        /// The tool's name.
        tool_name: Arc<str>,
        /// What came of it.
        result: ExecutionResult,
        /// Whether it failed.
        is_error: bool,
    },
    /// A call was not run: it has neither start nor end, but an error result all the same.
    ToolCallRejected {
        /// The call's id.
        tool_call_id: ToolCallId,
        /// The name that it was called by.
        tool_name: Arc<str>,
        /// Why, in one word.
        reason: RejectReason,
        /// What the model reads.
        message: Arc<str>,
        /// The call that made it, when a tool calls a tool; that one reads `message`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<ToolCallId>,
    },
    /// A person is asked about a call. No call of the batch has started yet, unless the batch
    /// is sequential.
    ApprovalRequested {
        /// The question's id; the answer carries it.
        approval_id: Arc<str>,
        /// The call's id.
        tool_call_id: ToolCallId,
        /// The tool's name.
        tool_name: Arc<str>,
        /// Its arguments as validated.
        args: Arc<JsonObject>,
        /// What is asked.
        question: Arc<str>,
        /// How long an answer is waited for, in milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// A question to a person is over.
    ApprovalResolved {
        /// The question's id.
        approval_id: Arc<str>,
        /// The call's id.
        tool_call_id: ToolCallId,
        /// How it ended.
        resolution: ApprovalResolution,
        /// The reason that was given for a refusal.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<Arc<str>>,
    },
    /// A model call failed and will be made again.
    RetryScheduled {
        /// Which attempt will come, from 2.
        attempt: u32,
        /// How many attempts there are at most.
        max_attempts: u32,
        /// How long is waited before it, in milliseconds.
        delay_ms: u64,
        /// What went wrong.
        error: Arc<str>,
    },
    /// The history is about to be shortened for the model.
    CompactionStart {
        /// What the model or its server said, or why it was found to be too long.
        reason: Arc<str>,
    },
    /// The history was shortened for the model, or could not be.
    CompactionEnd {
        /// Messages that were sent before.
        messages_before: usize,
        /// Messages that are sent from now on.
        messages_after: usize,
        /// Why it could not be shortened.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Arc<str>>,
    },
    /// What waits has changed: a message was taken into a queue, left it for the history, or was
    /// given back. Told while a run goes on, anywhere in it; at its beginning when something
    /// waits already. The latest one says what waits now.
    QueueChanged {
        /// What happened to `messages`.
        change: QueueChange,
        /// The messages that it happened to.
        messages: Vec<Arc<Message>>,
        /// Steering that waits now, oldest first.
        steering: Vec<Arc<Message>>,
        /// Follow-ups that wait now, oldest first.
        follow_ups: Vec<Arc<Message>>,
    },
    /// The set of tools has changed before this turn: a source's, or which of them are offered.
    ToolsChanged {
        /// Names that are new.
        added: Vec<String>,
        /// Names that are gone.
        removed: Vec<String>,
        /// Names whose definition is another than before (M-8).
        changed: Vec<String>,
    },
    /// Something odd that does not stop the run.
    Warning {
        /// What, for people.
        message: Arc<str>,
    },
}

/// Whose message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MessageRole {
    /// The user's.
    User,
    /// The model's.
    Assistant,
    /// A tool's result.
    ToolResult,
    /// The application's own.
    Custom,
}

impl MessageRole {
    /// The role of a message.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        match message {
            Message::User(_) => Self::User,
            Message::Assistant(_) => Self::Assistant,
            Message::ToolResult(_) => Self::ToolResult,
            Message::Custom(_) => Self::Custom,
        }
    }
}

/// Why a call was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RejectReason {
    /// There is no tool of that name.
    UnknownTool,
    /// Its arguments are no JSON object (O-4).
    UnreadableArguments,
    /// Its arguments do not suit the tool, or its own preparation of them failed.
    InvalidArguments,
    /// A hook, or a person, refused it.
    Blocked,
    /// A hook failed.
    HookFailed,
    /// The run was aborted before it began.
    Aborted,
    /// The reply was cut by its length limit: its arguments may be incomplete.
    Truncated,
    /// A limit of the run was reached.
    Limit,
    /// Steering came in before it began.
    Interrupted,
    /// It had begun when the session broke off, and may not be run again (S-3).
    OutcomeUnknown,
}

/// What happened to messages of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum QueueChange {
    /// Nothing: they waited already when the run began.
    Waiting,
    /// They were taken in and wait.
    Queued,
    /// They enter the history now; their `messageStart` follows.
    Delivered,
    /// They were given back, by `clear_queues` or `stop`.
    GivenBack,
}

/// How a question to a person ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ApprovalResolution {
    /// Yes.
    Allowed,
    /// Yes, with other arguments.
    AllowedWithChanges,
    /// No.
    Denied,
    /// Nobody answered in time, which is a no.
    TimedOut,
    /// The run was aborted first.
    Aborted,
}

/// What came of a call, as the end event tells it: shares the result message.
///
/// JSON: `content`, `details`, `usage`, `terminate`, `addedToolNames` (absent when empty).
#[derive(Clone, Debug)]
pub struct ExecutionResult {
    message: Arc<Message>,
    terminate: bool,
}

impl ExecutionResult {
    pub(crate) fn new(message: Arc<Message>, terminate: bool) -> Self {
        Self { message, terminate }
    }

    /// The result message that enters the history.
    #[must_use]
    pub fn message(&self) -> &Arc<Message> {
        &self.message
    }

    /// What the model is shown.
    #[must_use]
    pub fn content(&self) -> &[Content] {
        self.message.as_tool_result().map_or(&[], |m| &m.content)
    }

    /// What the application is shown; `null` if nothing.
    #[must_use]
    pub fn details(&self) -> &Value {
        const NOTHING: &Value = &Value::Null;
        self.message
            .as_tool_result()
            .map_or(NOTHING, |m| &m.details)
    }

    /// Whether the result asks for an end of the run.
    #[must_use]
    pub fn terminate(&self) -> bool {
        self.terminate
    }

    /// The text blocks, joined with a line break between them.
    #[must_use]
    pub fn text(&self) -> String {
        self.message
            .as_tool_result()
            .map(ToolResultMessage::text)
            .unwrap_or_default()
    }
}

impl PartialEq for ExecutionResult {
    fn eq(&self, other: &Self) -> bool {
        self.terminate == other.terminate
            && self.content() == other.content()
            && self.details() == other.details()
    }
}

impl Serialize for ExecutionResult {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut object = s.serialize_struct("ExecutionResult", 5)?;
        object.serialize_field("content", self.content())?;
        if self.details().is_null() {
            object.skip_field("details")?;
        } else {
            object.serialize_field("details", self.details())?;
        }
        let result = self.message.as_tool_result();
        match result.and_then(|m| m.usage) {
            Some(usage) => object.serialize_field("usage", &usage)?,
            None => object.skip_field("usage")?,
        }
        object.serialize_field("terminate", &self.terminate)?;
        match result
            .map(|m| &m.added_tool_names)
            .filter(|n| !n.is_empty())
        {
            Some(names) => object.serialize_field("addedToolNames", names)?,
            None => object.skip_field("addedToolNames")?,
        }
        object.end()
    }
}

impl<'de> Deserialize<'de> for ExecutionResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Twin {
            #[serde(default)]
            content: Vec<Content>,
            #[serde(default)]
            details: Value,
            #[serde(default)]
            usage: Option<Usage>,
            #[serde(default)]
            terminate: bool,
            #[serde(default)]
            added_tool_names: Vec<String>,
        }
        let twin = Twin::deserialize(deserializer)?;
        Ok(Self {
            message: Arc::new(Message::ToolResult(ToolResultMessage {
                content: twin.content,
                details: twin.details,
                usage: twin.usage,
                added_tool_names: twin.added_tool_names,
                ..ToolResultMessage::default()
            })),
            terminate: twin.terminate,
        })
    }
}

/// What is new of an assistant's message.
///
/// JSON: tagged by `kind`: `{"kind":"text","text":"Hel"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum MessageDelta {
    /// More text.
    Text {
        /// The text.
        text: String,
    },
    /// More reasoning.
    Reasoning {
        /// The thoughts.
        text: String,
    },
    /// A call begins.
    ToolCallStart {
        /// Tells the calls of one reply apart.
        index: usize,
        /// Its id; empty while unknown.
        id: ToolCallId,
        /// Its name; empty while unknown.
        name: String,
    },
    /// More of the text of a call's arguments; for showing it, never for running it.
    ToolCallArguments {
        /// Which call.
        index: usize,
        /// The text.
        delta: String,
    },
    /// A call is whole.
    ToolCallEnd {
        /// Which call.
        index: usize,
        /// Its id.
        id: ToolCallId,
        /// Its name.
        name: String,
    },
    /// A whole block of another kind.
    Block {
        /// The block.
        block: Box<AssistantContent>,
    },
    /// The message begins anew: all updates of it so far are void. Told when a server sends an
    /// alternative before the reply that counts, or when the model asks again by itself
    /// ([`RetryingModel`](yiem_core::RetryingModel)).
    Restarted,
}
