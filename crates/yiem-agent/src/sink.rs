//! Who is told: listeners that are waited for, and subscribers that are not.
//!
//! Knows: delivery, bounds, what a slow reader missed. Does not know: what events mean.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use futures_core::Stream;
use yiem_core::CancelToken;

use crate::event::AgentEvent;

/// A listener that the run waits for (R `agentEventSink`).
///
/// Events come one after another, in order; with several sinks each event goes to them in the
/// order in which they were registered. A slow sink slows the run. On an abort `cancel` is
/// cancelled; a sink that hangs is left behind when the grace period is over, and after that
/// is only given what it takes without waiting. A panic is a log line.
#[async_trait]
#[doc(alias = "agentEventSink")]
pub trait EventSink: Send + Sync + 'static {
    /// Takes an event.
    async fn on_event(&self, event: &Arc<AgentEvent>, cancel: &CancelToken);
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: EventSink + ?Sized> EventSink for Arc<S> {
    async fn on_event(&self, event: &Arc<AgentEvent>, cancel: &CancelToken) {
        (**self).on_event(event, cancel).await;
    }
}

/// A sink of an async closure.
pub fn event_sink<F, Fut>(listener: F) -> impl EventSink
where
    F: Fn(Arc<AgentEvent>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    SinkFn(listener)
}

struct SinkFn<F>(F);

#[async_trait]
impl<F, Fut> EventSink for SinkFn<F>
where
    F: Fn(Arc<AgentEvent>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    async fn on_event(&self, event: &Arc<AgentEvent>, _: &CancelToken) {
        (self.0)(Arc::clone(event)).await;
    }
}

/// A listener as the driver has it.
#[derive(Clone)]
pub(crate) enum Listener {
    /// Called and done.
    Plain(Arc<dyn Fn(&AgentEvent) + Send + Sync>),
    /// Waited for.
    Sink(Arc<dyn EventSink>),
}

/// Calls a plain listener; its panic is a log line.
pub(crate) fn call_plain(listener: &(dyn Fn(&AgentEvent) + Send + Sync), event: &AgentEvent) {
    if catch_unwind(AssertUnwindSafe(|| listener(event))).is_err() {
        tracing::error!(seq = event.seq, "a listener panicked; the run goes on");
    }
}

/// A subscription to an agent's events: never waited for.
///
/// Holds up to `listener_buffer` events; when its reader is slower, the oldest are dropped and
/// the reader is told how many it missed. Ends when the agent is stopped or dropped.
pub struct Subscription(Arc<Shelf>);

/// What a subscription gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivery {
    /// An event.
    Event(Arc<AgentEvent>),
    /// That many events were dropped here, since their reader was too slow.
    Missed(u64),
}

struct Shelf {
    state: Mutex<ShelfState>,
    capacity: usize,
}

#[derive(Default)]
struct ShelfState {
    events: VecDeque<Arc<AgentEvent>>,
    missed: u64,
    waker: Option<Waker>,
    closed: bool,
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, ShelfState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, event: &Arc<AgentEvent>) {
        let mut state = self.lock();
        if state.events.len() >= self.capacity {
            state.events.pop_front();
            state.missed += 1;
        }
        state.events.push_back(Arc::clone(event));
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Subscription {
    /// The next event, or how many were missed; `None` when the agent is gone. May be dropped
    /// at any time; nothing is lost.
    pub async fn next(&mut self) -> Option<Delivery> {
        std::future::poll_fn(|cx| self.poll_delivery(cx)).await
    }

    /// What is there already, without waiting.
    pub fn try_next(&mut self) -> Option<Delivery> {
        Self::take(&mut self.0.lock())
    }

    fn take(state: &mut ShelfState) -> Option<Delivery> {
        if state.missed > 0 {
            return Some(Delivery::Missed(std::mem::take(&mut state.missed)));
        }
        state.events.pop_front().map(Delivery::Event)
    }

    pub(crate) fn poll_delivery(&mut self, cx: &mut Context<'_>) -> Poll<Option<Delivery>> {
        let mut state = self.0.lock();
        if let Some(delivery) = Self::take(&mut state) {
            return Poll::Ready(Some(delivery));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            empty => *empty = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Stream for Subscription {
    type Item = Delivery;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delivery>> {
        self.poll_delivery(cx)
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("waiting", &self.0.lock().events.len())
            .finish()
    }
}

/// The subscriptions of one agent.
#[derive(Default)]
pub(crate) struct Subscribers {
    shelves: Mutex<Vec<Weak<Shelf>>>,
    /// How many there may be; read without the lock.
    count: AtomicUsize,
}

impl Subscribers {
    pub(crate) fn subscribe(&self, capacity: usize) -> Subscription {
        let shelf = Arc::new(Shelf {
            state: Mutex::default(),
            capacity: capacity.max(1),
        });
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        shelves.retain(|s| s.strong_count() > 0);
        shelves.push(Arc::downgrade(&shelf));
        self.count.store(shelves.len(), Ordering::Release);
        Subscription(shelf)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    pub(crate) fn publish(&self, event: &Arc<AgentEvent>) {
        if self.is_empty() {
            return;
        }
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        shelves.retain(|shelf| match shelf.upgrade() {
            Some(shelf) => {
                shelf.put(event);
                true
            }
            None => false,
        });
        self.count.store(shelves.len(), Ordering::Release);
    }

    /// Ends every subscription, after what it still holds.
    pub(crate) fn close(&self) {
        let shelves =
            std::mem::take(&mut *self.shelves.lock().unwrap_or_else(PoisonError::into_inner));
        self.count.store(0, Ordering::Release);
        for shelf in shelves.iter().filter_map(Weak::upgrade) {
            shelf.close();
        }
    }
}

impl Drop for Subscribers {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
