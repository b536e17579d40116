//! What a session writes down, so that it survives (S-1 to S-4).
//!
//! Knows: the records and the order in which they are written. Does not know: where to.

mod file;
mod resume;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use yiem_core::{History, JsonObject, Message, RunId, SessionId, ToolCallId, Usage};

use crate::outcome::EndKind;
use crate::pipeline::caught;

pub use file::{FileJournal, FlushPolicy};
pub(crate) use resume::{OUTCOME_UNKNOWN, answered, note_tools};

/// Something that a session writes down (S-1, S-4). Nothing that was written is changed later.
///
/// JSON is camelCase with the tag `record`; a kind that this version does not know is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "record",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum JournalRecord {
    /// A run begins.
    RunStart {
        /// The run.
        run_id: RunId,
    },
    /// A message enters the history: a user's before the model is asked, an assistant's (with
    /// its usage) before its calls start. Results have a record of their own.
    Message {
        /// The message.
        message: Arc<Message>,
    },
    /// A call is about to run.
    CallIntent {
        /// The call's id.
        tool_call_id: ToolCallId,
        /// The tool's name.
        tool_name: Arc<str>,
        /// Its arguments as accepted.
        args: Arc<JsonObject>,
    },
    /// What came of a call, as soon as it is known; the history has it in the order of the
    /// reply.
    CallResult {
        /// The result message.
        message: Arc<Message>,
    },
    /// Tokens of a model call whose reply did not enter the history: an attempt that overflowed,
    /// a summary that a compaction asked for.
    Usage {
        /// The tokens.
        usage: Usage,
    },
    /// From here on the model is shown these messages in place of all that came before.
    Compaction {
        /// The messages.
        shown: Vec<Arc<Message>>,
    },
    /// The history was emptied.
    Reset,
    /// Another model answers from here on.
    ModelChanged {
        /// Its id.
        model: String,
    },
    /// Another set of tools is offered from here on.
    ToolsChanged {
        /// Names that are new.
        added: Vec<String>,
        /// Names that are gone.
        removed: Vec<String>,
    },
    /// The session begins where another one stood.
    Branch {
        /// The other session.
        session_id: SessionId,
        /// How many of its messages it begins with; they follow as records of their own.
        messages: usize,
    },
    /// A run has ended.
    RunEnd {
        /// The run.
        run_id: RunId,
        /// Why.
        reason: EndKind,
    },
    /// A record of a kind that this version does not know, as it was written.
    #[serde(untagged)]
    Unknown(Value),
}

/// Where a session's records go (S-1): an append-only list. Object-safe.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Appends a record. When it returns, the record is as safe as this journal makes it.
    ///
    /// Called by one run at a time, in order. May be dropped at an await; the record may then
    /// have been written or not, never in part.
    ///
    /// # Errors
    /// The record could not be written. The run ends: nothing is done that is not written.
    async fn append(&self, record: &JournalRecord) -> Result<(), JournalError>;

    /// A turn has ended: a journal that writes per turn does it now.
    ///
    /// # Errors
    /// What was appended could not be made safe.
    async fn flush(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// The agent was stopped or dropped: nothing more will be appended, and what is held (a
    /// lock) is let go now, so that the session can be opened again at once.
    fn close(&self) {}
}

/// Appends a record; a journal that panics has failed.
pub(crate) async fn append(
    journal: &dyn Journal,
    record: &JournalRecord,
) -> Result<(), JournalError> {
    guarded(|| journal.append(record)).await
}

/// Flushes a journal; one that panics has failed.
pub(crate) async fn flush(journal: &dyn Journal) -> Result<(), JournalError> {
    guarded(|| journal.flush()).await
}

async fn guarded<F>(work: impl FnOnce() -> F) -> Result<(), JournalError>
where
    F: Future<Output = Result<(), JournalError>>,
{
    caught(work)
        .await
        .unwrap_or_else(|said| Err(JournalError::new(format!("the journal panicked: {said}"))))
}

/// A journal that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct JournalError {
    /// What happened and what to do.
    pub message: String,
    /// What caused it.
    #[source]
    pub source: Option<yiem_core::BoxError>,
}

impl JournalError {
    /// An error of that message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// The same with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<yiem_core::BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }
}

/// A session as a journal held it: what an agent goes on from (S-3).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Session {
    /// The conversation's id.
    pub id: Option<SessionId>,
    /// Everything that was said.
    pub history: History,
    /// What the model is shown in its place, after a compaction.
    pub shown: Option<History>,
    /// Calls of the last reply that are not all answered.
    pub open: Vec<OpenCall>,
    /// The id of the model that answered last, as the agent knows it; a server may have told
    /// another name. None if it was not written down.
    pub model: Option<String>,
    /// The names of the tools that were offered once and are not any more.
    pub hidden_tools: BTreeSet<String>,
    /// Tokens of the model calls that were written down; what a reset took back counts all the
    /// same.
    pub usage: Usage,
    /// Tokens that tools used for models of their own.
    pub tool_usage: Usage,
}

/// A call of the last reply, as far as it had got when the session broke off (S-3).
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
    /// The call's id.
    pub tool_call_id: ToolCallId,
    /// Its result, if that was written down.
    pub result: Option<Arc<Message>>,
    /// Whether it had begun.
    pub begun: bool,
}
