//! The server's own questions that somebody works on, and what takes them back (M-9).
//!
//! Knows: which of our requests each question may belong to, who ends it and why, which came before which. Does not
//! know: what is asked, who answers, or how an answer travels.

use super::Shared;
use crate::jsonrpc::RequestId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use tokio::sync::{Notify, oneshot};

/// Why nobody wants the answer to a question any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakenBack {
    /// The server said so: no answer is owed.
    ByServer,
    /// The requests that it may belong to have ended. The server is owed a word all the same.
    WithItsCall,
    /// The connection on which it came is gone: there is no way to answer.
    WithTheConnection,
}

/// The questions that are open.
#[derive(Default)]
pub(super) struct Questions {
    open: Mutex<Open>,
    /// How many there are, for those who only want to know whether there is any.
    count: AtomicUsize,
    /// One is gone.
    gone: Notify,
    row: Arc<Row>,
}

/// The questions that were not yet put to whoever answers them, by their numbers.
#[derive(Debug, Default)]
struct Row {
    waiting: Mutex<(u64, BTreeSet<u64>)>,
    moved: Notify,
}

impl Row {
    fn waiting(&self) -> MutexGuard<'_, (u64, BTreeSet<u64>)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question's place in the row: questions are put in the order in which they came. Its drop leaves the row.
#[derive(Debug)]
pub(super) struct Turn {
    row: Arc<Row>,
    number: u64,
}

impl Turn {
    /// Puts a question to whoever answers it, once those before it were put, and waits for the answer.
    pub(super) async fn put<T>(self, answering: impl Future<Output = T>) -> T {
        loop {
            let moved = self.row.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if self.row.waiting().1.first() == Some(&self.number) {
                break;
            }
            moved.await;
        }
        let mut answering = std::pin::pin!(answering);
        let first = futures_util::poll!(answering.as_mut());
        drop(self);
        match first {
            Poll::Ready(answer) => answer,
            Poll::Pending => answering.await,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.row.waiting().1.remove(&self.number);
        self.row.moved.notify_waiters();
    }
}

#[derive(Default)]
struct Open {
    next: u64,
    questions: BTreeMap<u64, Question>,
}

struct Question {
    session: u64,
    id: RequestId,
    /// The requests that it may belong to; empty when it came out of the blue.
    calls: BTreeSet<i64>,
    /// Gone once it was used.
    end: Option<oneshot::Sender<TakenBack>>,
}

impl Question {
    fn take_back(&mut self, why: TakenBack) {
        if let Some(end) = self.end.take() {
            let _ = end.send(why);
        }
    }
}

impl Questions {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next place in the row.
    pub(super) fn turn(&self) -> Turn {
        let mut waiting = self.row.waiting();
        let number = waiting.0;
        waiting.0 += 1;
        waiting.1.insert(number);
        Turn {
            row: Arc::clone(&self.row),
            number,
        }
    }

    /// Whether the server waits for an answer of ours.
    pub(super) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// The server does not want an answer to its request of that id any more.
    pub(super) fn cancelled(&self, session: u64, id: &RequestId) {
        let other = id.other_spelling();
        let mut open = self.open();
        let is_it = |question: &Question, id: &RequestId| {
            question.session == session && question.id == *id && question.end.is_some()
        };
        let exact = open.questions.values().any(|question| is_it(question, id));
        for question in open.questions.values_mut() {
            let meant = if exact {
                is_it(question, id)
            } else {
                other.as_ref().is_some_and(|other| is_it(question, other))
            };
            if meant {
                question.take_back(TakenBack::ByServer);
            }
        }
    }

    /// One of our requests has ended: what belongs to no other that is under way is taken back.
    pub(super) fn call_ended(&self, call: i64) {
        if !self.any() {
            return;
        }
        for question in self.open().questions.values_mut() {
            if question.calls.remove(&call) && question.calls.is_empty() {
                question.take_back(TakenBack::WithItsCall);
            }
        }
    }

    /// A connection is gone.
    pub(super) fn connection_gone(&self, session: u64) {
        for question in self.open().questions.values_mut() {
            if question.session == session {
                question.take_back(TakenBack::WithTheConnection);
            }
        }
    }

    /// Ends when nobody works on a question any more that was taken back.
    pub(super) async fn settled(&self) {
        loop {
            let gone = self.gone.notified();
            tokio::pin!(gone);
            gone.as_mut().enable();
            if !self.any() || self.open().questions.values().all(|one| one.end.is_some()) {
                return;
            }
            gone.await;
        }
    }
}

/// A question that somebody works on. As long as there is one, a silent server is not silent: it waits for us.
/// Only the hard cap of a call counts then.
pub(super) struct OpenQuestion {
    client: Weak<Shared>,
    number: u64,
}

impl OpenQuestion {
    /// Notes a question that came on that connection, in the course of one of these requests. What comes back is
    /// told when nobody wants the answer any more.
    pub(super) fn new(
        client: &Arc<Shared>,
        session: u64,
        id: RequestId,
        calls: impl FnOnce() -> BTreeSet<i64>,
    ) -> (Self, oneshot::Receiver<TakenBack>) {
        let (end, taken_back) = oneshot::channel();
        let questions = &client.questions;
        let mut open = questions.open();
        let number = open.next;
        open.next += 1;
        open.questions.insert(
            number,
            Question {
                session,
                id,
                // Looked up under this lock: a call that ends now comes by here after that.
                calls: calls(),
                end: Some(end),
            },
        );
        questions
            .count
            .store(open.questions.len(), Ordering::Release);
        let open = Self {
            client: Arc::downgrade(client),
            number,
        };
        (open, taken_back)
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let Some(client) = self.client.upgrade() else {
            return;
        };
        // The calls wait for the server again: their time for silence begins here.
        client.in_flight.begin_anew();
        let questions = &client.questions;
        let mut open = questions.open();
        let question = open.questions.remove(&self.number);
        questions
            .count
            .store(open.questions.len(), Ordering::Release);
        drop(open);
        drop(question);
        questions.gone.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
