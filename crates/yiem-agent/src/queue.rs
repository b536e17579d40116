//! Messages that wait for their turn.
//!
//! Knows: order, modes, bounds. Does not know: who waits for them, nor any lock: whoever holds
//! the queues locks them, and takes a message and enters it in the history in one step.

use std::collections::VecDeque;
use std::sync::Arc;

use yiem_core::Message;

use crate::config::QueueMode;

/// Which of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueKind {
    /// For the run that is going on: delivered after its batch, before its next model call.
    Steering,
    /// For when the run would otherwise end.
    FollowUp,
}

/// The messages that wait, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    steering: VecDeque<Arc<Message>>,
    follow_ups: VecDeque<Arc<Message>>,
}

impl Queues {
    fn of(&mut self, kind: QueueKind) -> &mut VecDeque<Arc<Message>> {
        match kind {
            QueueKind::Steering => &mut self.steering,
            QueueKind::FollowUp => &mut self.follow_ups,
        }
    }

    /// Puts a message at the end, unless `capacity` messages wait already.
    pub(crate) fn push(&mut self, kind: QueueKind, message: Arc<Message>, capacity: usize) -> bool {
        let queue = self.of(kind);
        let room = queue.len() < capacity.max(1);
        if room {
            queue.push_back(message);
        }
        room
    }

    /// Takes what is due: everything, or the oldest.
    pub(crate) fn take(&mut self, kind: QueueKind, mode: QueueMode) -> Vec<Arc<Message>> {
        let queue = self.of(kind);
        match mode {
            QueueMode::All => queue.drain(..).collect(),
            QueueMode::OneAtATime => queue.pop_front().into_iter().collect(),
        }
    }

    /// Puts steering back in front of what waits.
    pub(crate) fn put_back(&mut self, messages: Vec<Arc<Message>>) {
        for message in messages.into_iter().rev() {
            self.steering.push_front(message);
        }
    }

    /// How many wait.
    pub(crate) fn len(&self, kind: QueueKind) -> usize {
        match kind {
            QueueKind::Steering => self.steering.len(),
            QueueKind::FollowUp => self.follow_ups.len(),
        }
    }

    /// What waits, without taking it.
    pub(crate) fn peek(&self, kind: QueueKind) -> Vec<Arc<Message>> {
        match kind {
            QueueKind::Steering => self.steering.iter().cloned().collect(),
            QueueKind::FollowUp => self.follow_ups.iter().cloned().collect(),
        }
    }

    /// Empties both queues: steering first, then follow-ups, each in its order.
    pub(crate) fn drain(&mut self) -> Vec<Arc<Message>> {
        self.steering
            .drain(..)
            .chain(self.follow_ups.drain(..))
            .collect()
    }
}
