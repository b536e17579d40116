//! What is left out of what a run tells of its queues while a listener hangs.
//!
//! Knows: the steps that are due. Does not know: the queues.

use std::sync::Arc;

use yiem_core::Message;

use super::{Run, Step};
use crate::event::{EventKind, QueueChange};

/// How many steps may be due before messages that were queued and given back meanwhile are left
/// out of what is told.
pub(super) const UNTOLD_STEPS: usize = 64;

impl Run {
    /// Leaves out what was queued, not told of yet, and is given back: whoever queues and takes
    /// back while a listener hangs makes no list that grows.
    pub(super) fn leave_out_untold(&mut self, given_back: &mut Vec<Arc<Message>>) {
        let has = |list: &[Arc<Message>], m: &Arc<Message>| list.iter().any(|o| Arc::ptr_eq(o, m));
        let (mut untold, before) = (Vec::new(), self.steps.len());
        for step in &self.steps {
            if let Step::Emit(event) = step
                && let EventKind::QueueChanged {
                    change: QueueChange::Queued,
                    messages,
                    ..
                } = &event.kind
            {
                untold.extend(messages.iter().filter(|m| has(given_back, m)).cloned());
            }
        }
        given_back.retain(|m| !has(&untold, m));
        self.steps.retain_mut(|step| {
            let Step::Emit(event) = step else { return true };
            let EventKind::QueueChanged {
                change,
                messages,
                steering,
                follow_ups,
            } = &mut event.kind
            else {
                return true;
            };
            for list in [&mut *messages, steering, follow_ups] {
                list.retain(|m| !has(&untold, m));
            }
            *change != QueueChange::Queued || !messages.is_empty()
        });
        // Numbers have no gaps.
        self.seq -= (before - self.steps.len()) as u64;
        let mut seq = self.seq;
        for step in self.steps.iter_mut().rev() {
            if let Step::Emit(event) = step {
                seq -= 1;
                event.seq = seq;
            }
        }
    }
}
