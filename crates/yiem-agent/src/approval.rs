//! Questions to a person: open ones, and their answers.
//!
//! Knows: which questions are open and who waits. Does not know: who asks or answers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use tokio::sync::oneshot;
use yiem_core::{JsonObject, ToolCallId};

/// A question that is open (R-9, event `approvalRequested`).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The question's id; the answer is given under it.
    pub id: Arc<str>,
    /// The call's id.
    pub tool_call_id: ToolCallId,
    /// The tool's name.
    pub tool_name: Arc<str>,
    /// Its arguments as accepted.
    pub args: Arc<JsonObject>,
    /// What is asked.
    pub question: Arc<str>,
}

/// What a person answers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ApprovalAnswer {
    /// Run it.
    Allow,
    /// Run it with these arguments, which are validated again.
    AllowWith(JsonObject),
    /// Do not run it; the model reads the reason.
    Deny(String),
}

impl ApprovalAnswer {
    /// No, with a reason that the model reads.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny(reason.into())
    }
}

/// The open questions of one agent.
#[derive(Debug, Default)]
pub(crate) struct Approvals(Mutex<IndexMap<Arc<str>, Open>>);

#[derive(Debug)]
struct Open {
    request: ApprovalRequest,
    answer: oneshot::Sender<ApprovalAnswer>,
}

impl Approvals {
    fn lock(&self) -> MutexGuard<'_, IndexMap<Arc<str>, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a question. It is closed when what this gives is dropped.
    pub(crate) fn open(self: &Arc<Self>, request: ApprovalRequest) -> OpenQuestion {
        let (answer, wait) = oneshot::channel();
        let id = Arc::clone(&request.id);
        self.lock()
            .insert(Arc::clone(&id), Open { request, answer });
        OpenQuestion {
            approvals: Arc::clone(self),
            id,
            wait,
        }
    }

    /// Answers a question. False when it is not open.
    pub(crate) fn answer(&self, id: &str, answer: ApprovalAnswer) -> bool {
        let open = self.lock().shift_remove(id);
        open.is_some_and(|open| open.answer.send(answer).is_ok())
    }

    pub(crate) fn list(&self) -> Vec<ApprovalRequest> {
        self.lock()
            .values()
            .map(|open| open.request.clone())
            .collect()
    }
}

/// A question while it is waited for.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    approvals: Arc<Approvals>,
    id: Arc<str>,
    wait: oneshot::Receiver<ApprovalAnswer>,
}

impl OpenQuestion {
    /// The answer. May be dropped; the question is closed then.
    pub(crate) async fn answer(&mut self) -> Option<ApprovalAnswer> {
        (&mut self.wait).await.ok()
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.approvals.lock().shift_remove(&*self.id);
    }
}
