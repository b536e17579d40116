//! The calls of one reply: which may begin, which are under way, which are answered.
//!
//! Knows: order, parallelism, the cap. Does not know: how a call is prepared or run, nor what
//! is told of it; the run does.

use std::sync::Arc;

use yiem_core::{JsonObject, Message, ToolCall, ToolCallId};

/// How far a call is.
#[derive(Clone, Debug)]
pub(crate) enum CallState {
    /// Nothing has been done.
    Waiting,
    /// It is being found, checked, and shown to the hooks.
    Preparing,
    /// It was accepted and may begin.
    Prepared {
        /// Its arguments as accepted.
        args: Arc<JsonObject>,
    },
    /// It runs.
    Running,
    /// It has its result.
    Done {
        /// The result message.
        result: Arc<Message>,
        /// Whether it asks for an end of the run.
        terminate: bool,
    },
}

/// A call and how far it is.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) call: Arc<ToolCall>,
    pub(crate) name: Arc<str>,
    pub(crate) state: CallState,
    /// The how-manieth identical call it is, when that is worth a warning.
    pub(crate) repeated: Option<u32>,
    /// It had begun when the session broke off (S-3).
    pub(crate) begun_before: bool,
}

/// What may be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Prepare this call.
    Prepare(usize),
    /// Begin this call.
    Begin(usize),
    /// Wait for what is under way.
    Wait,
    /// Every call has its result.
    Done,
}

/// The calls of one reply.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    slots: Vec<Slot>,
    sequential: bool,
    cap: usize,
    running: usize,
    done: usize,
    /// Calls before this one are prepared or further.
    next_to_prepare: usize,
    /// Calls before this one have begun, or never will.
    next_to_begin: usize,
}

impl Batch {
    pub(crate) fn new(calls: impl Iterator<Item = ToolCall>, sequential: bool, cap: usize) -> Self {
        let slots = calls
            .map(|call| Slot {
                name: call.name.as_str().into(),
                call: Arc::new(call),
                state: CallState::Waiting,
                repeated: None,
                begun_before: false,
            })
            .collect();
        Self {
            slots,
            sequential,
            cap: cap.max(1),
            running: 0,
            done: 0,
            next_to_prepare: 0,
            next_to_begin: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn is_sequential(&self) -> bool {
        self.sequential
    }

    pub(crate) fn slot(&self, index: usize) -> Option<&Slot> {
        self.slots.get(index)
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(crate) fn mark_repeated(&mut self, index: usize, times: u32) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.repeated = Some(times);
        }
    }

    pub(crate) fn mark_begun_before(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.begun_before = true;
        }
    }

    /// What may be done next. Asked again after each thing done.
    pub(crate) fn next(&self) -> Next {
        if self.done == self.slots.len() {
            return Next::Done;
        }
        if self.sequential && self.running > 0 {
            return Next::Wait;
        }
        let begin = self.slots.get(self.next_to_begin).map(|s| &s.state);
        if self.sequential && matches!(begin, Some(CallState::Prepared { .. })) {
            return Next::Begin(self.next_to_begin);
        }
        match self.slots.get(self.next_to_prepare).map(|s| &s.state) {
            Some(CallState::Waiting) => return Next::Prepare(self.next_to_prepare),
            // One after another: the next waits until this one is prepared.
            Some(CallState::Preparing) => return Next::Wait,
            _ => {}
        }
        match begin {
            Some(CallState::Prepared { .. }) if self.running < self.cap => {
                Next::Begin(self.next_to_begin)
            }
            _ => Next::Wait,
        }
    }

    pub(crate) fn preparing(&mut self, index: usize) {
        self.slots[index].state = CallState::Preparing;
    }

    /// Whether the call is being prepared.
    pub(crate) fn is_preparing(&self, index: usize) -> bool {
        matches!(
            self.slots.get(index),
            Some(Slot {
                state: CallState::Preparing,
                ..
            })
        )
    }

    /// Whether the call runs.
    pub(crate) fn is_running(&self, index: usize) -> bool {
        matches!(
            self.slots.get(index),
            Some(Slot {
                state: CallState::Running,
                ..
            })
        )
    }

    /// Whether the call has its result.
    pub(crate) fn is_done(&self, index: usize) -> bool {
        matches!(
            self.slots.get(index),
            Some(Slot {
                state: CallState::Done { .. },
                ..
            })
        )
    }

    pub(crate) fn prepared(&mut self, index: usize, args: Arc<JsonObject>) {
        self.slots[index].state = CallState::Prepared { args };
        self.advance();
    }

    /// The call begins; gives its arguments.
    pub(crate) fn begin(&mut self, index: usize) -> Arc<JsonObject> {
        let before = std::mem::replace(&mut self.slots[index].state, CallState::Running);
        self.running += 1;
        self.advance();
        match before {
            CallState::Prepared { args } => args,
            _ => Arc::default(),
        }
    }

    /// The call has its result.
    pub(crate) fn finish(&mut self, index: usize, result: Arc<Message>, terminate: bool) {
        let before = std::mem::replace(
            &mut self.slots[index].state,
            CallState::Done { result, terminate },
        );
        match before {
            CallState::Running => self.running -= 1,
            // A second result of a call would break R-15; whoever calls this checks first.
            CallState::Done { .. } => return,
            _ => {}
        }
        self.done += 1;
        self.advance();
    }

    fn advance(&mut self) {
        while self
            .slots
            .get(self.next_to_prepare)
            .is_some_and(|s| !matches!(s.state, CallState::Waiting | CallState::Preparing))
        {
            self.next_to_prepare += 1;
        }
        while self
            .slots
            .get(self.next_to_begin)
            .is_some_and(|s| matches!(s.state, CallState::Running | CallState::Done { .. }))
        {
            self.next_to_begin += 1;
        }
    }

    /// Calls that have no result, in order.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &ToolCallId> {
        self.slots
            .iter()
            .filter(|s| !matches!(s.state, CallState::Done { .. }))
            .map(|s| &s.call.id)
    }

    /// The results, in the order of the reply.
    pub(crate) fn results(&self) -> Vec<Arc<Message>> {
        self.slots
            .iter()
            .filter_map(|s| match &s.state {
                CallState::Done { result, .. } => Some(Arc::clone(result)),
                _ => None,
            })
            .collect()
    }

    /// Whether any, and whether every result asks for an end of the run.
    pub(crate) fn terminate(&self) -> (bool, bool) {
        let asks = |s: &Slot| {
            matches!(
                s.state,
                CallState::Done {
                    terminate: true,
                    ..
                }
            )
        };
        (
            self.slots.iter().any(asks),
            !self.slots.is_empty() && self.slots.iter().all(asks),
        )
    }
}

#[cfg(test)]
mod tests;
