//! One timer that calls, one after the other, hand on: arming a new one for each costs more than a call
//! should.
//!
//! Knows: when a timer is due, and which runtime it belongs to. Does not know: what is waited for.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::{Handle, Id};
use yiem_core::{BoxFuture, Env};

/// The timer that nobody uses at the moment.
#[derive(Default)]
pub(crate) struct SpareTimer(Mutex<Option<Timer>>);

/// A running timer.
pub(crate) struct Timer {
    due: Duration,
    /// Outside of it the timer is of no use.
    runtime: Option<Id>,
    sleep: BoxFuture<'static, ()>,
}

impl SpareTimer {
    /// A timer that ends at `now + wait` or earlier, but not at once. Whoever waits looks at the clock when
    /// it ends, and takes another if there is time left.
    pub(crate) fn take(&self, env: &dyn Env, now: Duration, wait: Duration) -> Timer {
        let latest = now.saturating_add(wait);
        let runtime = Handle::try_current().ok().map(|handle| handle.id());
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(timer) = spare
            && timer.due > now
            && timer.due <= latest
            && timer.runtime == runtime
        {
            return timer;
        }
        Timer {
            due: latest,
            runtime,
            sleep: env.sleep(wait),
        }
    }

    /// Takes a timer back that has not ended.
    pub(crate) fn keep(&self, mut timer: Timer) {
        // It must not hold on to the task that waited. A timer of another runtime is not touched.
        let runtime = Handle::try_current().ok().map(|handle| handle.id());
        if timer.runtime != runtime {
            return;
        }
        let mut nobody = Context::from_waker(Waker::noop());
        if Pin::new(&mut timer).poll(&mut nobody).is_pending() {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(timer);
        }
    }

    /// Lets go of the timer.
    pub(crate) fn clear(&self) {
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(spare);
    }
}

impl Future for Timer {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests;
