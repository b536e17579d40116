//! Time, randomness and ids that a test holds in its hand (C-9).
//!
//! Knows: two environments: one that is moved on by hand, one that follows tokio's clock, which
//! a test pauses. Does not know: what waits for them.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use yiem_core::{BoxFuture, Env, IdKind, Timestamp};

/// 2026-01-01T00:00:00Z, where the clocks of tests begin.
const START_MILLIS: i64 = 1_767_225_600_000;

/// Counts ids by their kind: `call_1`, `call_2`, `run_1`, ….
#[derive(Debug, Default)]
struct Ids(HashMap<&'static str, u64>);

impl Ids {
    fn next(&mut self, kind: IdKind) -> String {
        let count = self.0.entry(kind.prefix()).or_default();
        *count += 1;
        format!("{}_{count}", kind.prefix())
    }
}

/// An environment whose clock moves when a test says so, and only then.
///
/// Needs no runtime. Ids are counted by kind (`call_1`, `run_1`); the random number is always
/// one half.
#[derive(Clone, Debug, Default)]
pub struct ManualEnv(Arc<Mutex<Manual>>);

#[derive(Default)]
struct Manual {
    elapsed: Duration,
    ids: Ids,
    sleepers: Vec<(Duration, Waker)>,
}

impl fmt::Debug for Manual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manual")
            .field("elapsed", &self.elapsed)
            .field("sleepers", &self.sleepers.len())
            .finish_non_exhaustive()
    }
}

impl ManualEnv {
    /// A clock that stands at 2026-01-01T00:00:00Z.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As an `Arc<dyn Env>`, the form in which it is passed in.
    #[must_use]
    pub fn shared(&self) -> Arc<dyn Env> {
        Arc::new(self.clone())
    }

    /// Moves the clock on and wakes whoever's wait is over.
    pub fn advance(&self, by: Duration) {
        let due = {
            let mut manual = self.lock();
            manual.elapsed += by;
            let now = manual.elapsed;
            let (due, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut manual.sleepers)
                .into_iter()
                .partition(|(at, _)| *at <= now);
            manual.sleepers = rest;
            due
        };
        for (_, waker) in due {
            waker.wake();
        }
    }

    /// How many wait for the clock.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.lock().sleepers.len()
    }

    fn lock(&self) -> MutexGuard<'_, Manual> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Env for ManualEnv {
    fn now(&self) -> Timestamp {
        at(self.lock().elapsed)
    }
    fn elapsed(&self) -> Duration {
        self.lock().elapsed
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let until = self.lock().elapsed + duration;
        Box::pin(ManualSleep {
            env: self.clone(),
            until,
        })
    }
    fn new_id(&self, kind: IdKind) -> String {
        self.lock().ids.next(kind)
    }
    fn random(&self) -> f64 {
        0.5
    }
}

struct ManualSleep {
    env: ManualEnv,
    until: Duration,
}

impl Future for ManualSleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut manual = self.env.lock();
        if manual.elapsed >= self.until {
            return Poll::Ready(());
        }
        manual.sleepers.push((self.until, cx.waker().clone()));
        Poll::Pending
    }
}

fn at(elapsed: Duration) -> Timestamp {
    Timestamp::from_millis(START_MILLIS + i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
}

/// An environment that follows tokio's clock: with a paused runtime
/// (`#[tokio::test(start_paused = true)]`) time jumps to the next wait whenever nothing else can
/// be done, so that no test waits.
///
/// Ids are counted by kind (`call_1`, `run_1`); the random number is always one half.
#[derive(Debug)]
pub struct PausedEnv {
    start: tokio::time::Instant,
    ids: Mutex<Ids>,
}

impl PausedEnv {
    /// A clock that begins now, at 2026-01-01T00:00:00Z.
    #[must_use]
    pub fn new() -> Self {
        Self {
            start: tokio::time::Instant::now(),
            ids: Mutex::default(),
        }
    }

    /// As an `Arc<dyn Env>`, the form in which it is passed in.
    #[must_use]
    pub fn shared() -> Arc<dyn Env> {
        Arc::new(Self::new())
    }
}

impl Default for PausedEnv {
    fn default() -> Self {
        Self::new()
    }
}

impl Env for PausedEnv {
    fn now(&self) -> Timestamp {
        at(self.start.elapsed())
    }
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
    fn new_id(&self, kind: IdKind) -> String {
        self.ids
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next(kind)
    }
    fn random(&self) -> f64 {
        0.5
    }
}
