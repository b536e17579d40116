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

/// The open questions of one agent, and of those that it asks.
#[derive(Debug, Default)]
pub(crate) struct Approvals(Mutex<IndexMap<Arc<str>, Open>>);

#[derive(Clone, Debug)]
struct Open {
    request: ApprovalRequest,
    /// Taken by the first answer, wherever it is given.
    answer: Arc<Mutex<Option<oneshot::Sender<ApprovalAnswer>>>>,
}

impl Open {
    fn sender(&self) -> MutexGuard<'_, Option<oneshot::Sender<ApprovalAnswer>>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Approvals {
    fn lock(&self) -> MutexGuard<'_, IndexMap<Arc<str>, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a question here and with the agents `above`. It is closed when what this gives is
    /// dropped.
    pub(crate) fn open(
        self: &Arc<Self>,
        request: ApprovalRequest,
        above: &[Arc<Self>],
    ) -> OpenQuestion {
        let (answer, wait) = oneshot::channel();
        let id = Arc::clone(&request.id);
        let answer = Arc::new(Mutex::new(Some(answer)));
        let open = Open { request, answer };
        let places: Vec<Arc<Self>> = std::iter::once(self).chain(above).cloned().collect();
        for place in &places {
            // Agents of several environments may give one id twice: the first one keeps it.
            place
                .lock()
                .entry(Arc::clone(&id))
                .or_insert_with(|| open.clone());
        }
        OpenQuestion { places, open, wait }
    }

    /// Answers a question. False when it is not open.
    pub(crate) fn answer(&self, id: &str, answer: ApprovalAnswer) -> bool {
        let open = self.lock().shift_remove(id);
        let first = open.and_then(|open| open.sender().take());
        first.is_some_and(|first| first.send(answer).is_ok())
    }

    pub(crate) fn list(&self) -> Vec<ApprovalRequest> {
        self.lock()
            .values()
            .filter(|open| open.sender().is_some())
            .map(|open| open.request.clone())
            .collect()
    }
}

/// A question while it is waited for.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    places: Vec<Arc<Approvals>>,
    open: Open,
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
        for place in &self.places {
            let mut there = place.lock();
            let id = &self.open.request.id;
            if there
                .get(id)
                .is_some_and(|open| Arc::ptr_eq(&open.answer, &self.open.answer))
            {
                there.shift_remove(id);
            }
        }
    }
}
