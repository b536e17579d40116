//! Who waits for which answer, as a value.
//!
//! Knows: request ids, what is pending, deadlines, what came too late.
//! Does not know: sockets, clocks, tasks. Time comes in as an argument.

use crate::jsonrpc::{Answer, AnswerOutcome, RequestId};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How many given-up requests are remembered, so that their late answers are known as such.
const REMEMBERED: usize = 256;

/// The waiters of one connection that carries many requests at once.
#[derive(Debug)]
pub struct Correlator<W> {
    /// A tree: mostly one leaf that is kept, and nothing to hash.
    pending: BTreeMap<RequestId, W>,
    given_up: VecDeque<RequestId>,
}

impl<W> Default for Correlator<W> {
    fn default() -> Self {
        Self {
            pending: BTreeMap::new(),
            given_up: VecDeque::new(),
        }
    }
}

/// Whom an answer belongs to.
#[derive(Debug, PartialEq)]
pub enum Settled<W> {
    /// To this waiter, which is pending no more.
    Waiter(W, AnswerOutcome),
    /// To a request that was given up: dropped.
    Late(RequestId),
    /// To nobody.
    Stray(Option<RequestId>),
}

impl<W> Correlator<W> {
    /// Nobody waits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes who waits for the answer to `id`. An id is used once.
    pub fn wait(&mut self, id: RequestId, waiter: W) {
        self.pending.insert(id, waiter);
    }

    /// How many wait.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The request is given up: a later answer to it is late, not stray. False when it was not pending.
    pub fn give_up(&mut self, id: &RequestId) -> bool {
        if self.pending.remove(id).is_none() {
            return false;
        }
        if self.given_up.len() == REMEMBERED {
            self.given_up.pop_front();
        }
        self.given_up.push_back(id.clone());
        true
    }

    /// Finds whom an answer belongs to. An id in its other spelling (`"7"` for 7) counts; an error
    /// without an id belongs to the only request that is pending, if there is only one.
    pub fn settle(&mut self, answer: Answer) -> Settled<W> {
        let Answer { id, outcome } = answer;
        let Some(id) = id else {
            if matches!(outcome, AnswerOutcome::Error(_))
                && self.pending.len() == 1
                && let Some((_, waiter)) = self.pending.pop_first()
            {
                return Settled::Waiter(waiter, outcome);
            }
            return Settled::Stray(None);
        };
        if let Some(waiter) = self.pending.remove(&id) {
            return Settled::Waiter(waiter, outcome);
        }
        if self.given_up.contains(&id) {
            return Settled::Late(id);
        }
        if let Some(other) = id.other_spelling() {
            if let Some(waiter) = self.pending.remove(&other) {
                return Settled::Waiter(waiter, outcome);
            }
            if self.given_up.contains(&other) {
                return Settled::Late(id);
            }
        }
        Settled::Stray(Some(id))
    }

    /// Takes all who wait: their connection is gone.
    pub fn take_all(&mut self) -> Vec<W> {
        std::mem::take(&mut self.pending).into_values().collect()
    }
}

/// When a request's time is up: some time after its start or its last progress, and never after a hard
/// cap (M-5). Time is any monotonic count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    started: Duration,
    renewed: Duration,
    idle: Duration,
    cap: Duration,
}

/// What [`Deadline::state`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineState {
    /// There is time left: look again after this.
    Running(Duration),
    /// Nothing was heard for this long.
    Idle(Duration),
    /// The hard cap, this long, is reached.
    HardCap(Duration),
}

impl Deadline {
    /// A request starts `now`, may be silent for `idle` and last for `cap` in all.
    #[must_use]
    pub fn new(now: Duration, idle: Duration, cap: Duration) -> Self {
        Self {
            started: now,
            renewed: now,
            idle,
            cap: cap.max(idle),
        }
    }

    /// Progress was heard.
    pub fn renew(&mut self, now: Duration) {
        self.renewed = self.renewed.max(now);
    }

    /// Whether time is up.
    #[must_use]
    pub fn state(&self, now: Duration) -> DeadlineState {
        let idle_left = self.renewed.saturating_add(self.idle).saturating_sub(now);
        let cap_left = self.started.saturating_add(self.cap).saturating_sub(now);
        if idle_left.is_zero() {
            DeadlineState::Idle(self.idle)
        } else if cap_left.is_zero() {
            DeadlineState::HardCap(self.cap)
        } else {
            DeadlineState::Running(idle_left.min(cap_left))
        }
    }
}
