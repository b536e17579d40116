//! How long calls of a batch waited for a person, by the calls that they make.
//!
//! Knows: from when to when. Does not know: who was asked what.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use yiem_core::Env;

/// The waits of one turn. A question about a call that another call makes is put while that one
/// runs: its limit of time does not count it.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<Vec<Span>>);

#[derive(Clone, Copy, Debug)]
struct Span {
    /// The call of the batch.
    call: usize,
    from: Duration,
    /// None while it lasts.
    to: Option<Duration>,
}

impl Waits {
    fn lock(&self) -> MutexGuard<'_, Vec<Span>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A wait begins; it is over when what this gives is dropped.
    pub(super) fn begin<'a>(&'a self, call: usize, env: &'a Arc<dyn Env>) -> Waiting<'a> {
        let mut spans = self.lock();
        spans.push(Span {
            call,
            from: env.elapsed(),
            to: None,
        });
        Waiting {
            waits: self,
            at: spans.len() - 1,
            env,
        }
    }

    /// How long the call waited since `begun`.
    pub(super) fn since(&self, call: usize, begun: Duration, now: Duration) -> Duration {
        let spans = self.lock();
        let own = spans.iter().filter(|span| span.call == call);
        own.map(|span| span.to.unwrap_or(now).saturating_sub(span.from.max(begun)))
            .sum()
    }
}

/// A wait that lasts.
pub(super) struct Waiting<'a> {
    waits: &'a Waits,
    at: usize,
    env: &'a Arc<dyn Env>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let now = self.env.elapsed();
        if let Some(span) = self.waits.lock().get_mut(self.at) {
            span.to = Some(now);
        }
    }
}
