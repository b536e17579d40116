//! The answer of a server as a stream of events.
//!
//! Knows: which wait is running and when it is too long, and that dropping the stream drops
//! the connection. Does not know: what the bytes mean.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use http_body::Body as _;
use pin_project_lite::pin_project;
use yiem_core::{BoxFuture, ChatEvent, Env, ModelError, ModelErrorKind};

use super::{Secrets, Timeouts};
use crate::stream::ChunkDecoder;

/// How long the end of a body is waited for after the reply in it was whole. With it the
/// connection can be used again; without it, it is closed.
const TAIL: Duration = Duration::from_millis(100);

/// A timer for waits that nearly always end before it rings. It is set when there is something
/// to wait for, and set anew only when it rang too early or would ring too late: not for every
/// wait.
pub(super) struct Alarm {
    env: Arc<dyn Env>,
    /// When it rings.
    set: Option<(Duration, BoxFuture<'static, ()>)>,
}

impl Alarm {
    pub(super) fn new(env: Arc<dyn Env>) -> Self {
        Self { env, set: None }
    }

    /// The time, as deadlines are counted.
    pub(super) fn now(&self) -> Duration {
        self.env.elapsed()
    }

    /// Ready when the deadline is over.
    fn poll(&mut self, deadline: Duration, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some((rings, timer)) = &mut self.set
                && *rings <= deadline
            {
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                if *rings == deadline {
                    return Poll::Ready(());
                }
            }
            let left = deadline.saturating_sub(self.now());
            if left.is_zero() {
                return Poll::Ready(());
            }
            self.set = Some((deadline, self.env.sleep(left)));
        }
    }

    /// Waits for a future, but not beyond the deadline.
    pub(super) async fn within<T>(
        &mut self,
        deadline: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut work = pin!(work);
        std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => self.poll(deadline, cx).map(|()| None),
        })
        .await
    }
}

pin_project! {
    /// The stream of one reply, in one piece from the question to its end: it is boxed by who
    /// holds it, and needs no box inside.
    #[project = HttpReplyAt]
    pub(super) enum HttpReply<F> {
        Asking { #[pin] asking: F },
        Reading { reading: Reading },
        Over,
    }
}

impl<F> HttpReply<F> {
    pub(super) fn new(asking: F) -> Self {
        Self::Asking { asking }
    }
}

impl<F: Future<Output = Result<Reading, ModelError>>> Stream for HttpReply<F> {
    type Item = Result<ChatEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match self.as_mut().project() {
                HttpReplyAt::Asking { asking } => match asking.poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(reading)) => self.set(Self::Reading { reading }),
                    Poll::Ready(Err(error)) => {
                        self.set(Self::Over);
                        return Poll::Ready(Some(Err(error)));
                    }
                },
                HttpReplyAt::Reading { reading } => match reading.poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(item)) => return Poll::Ready(Some(item)),
                    Poll::Ready(None) => self.set(Self::Over),
                },
                HttpReplyAt::Over => return Poll::Ready(None),
            }
        }
    }
}

/// A reply of which the status is known and the body is being read.
pub(super) struct Reading {
    body: reqwest::Body,
    decoder: ChunkDecoder,
    timeouts: Timeouts,
    alarm: Alarm,
    /// When the last event came, or the request was sent.
    since: Duration,
    /// How many events the decoder has seen.
    events: usize,
    /// The reply is whole; only the end of the body is waited for.
    tail: bool,
    ended: bool,
    /// The keys that were sent, which no error may show.
    secrets: Secrets,
}

impl Reading {
    pub(super) fn new(
        body: reqwest::Body,
        decoder: ChunkDecoder,
        timeouts: Timeouts,
        since: Duration,
        alarm: Alarm,
        secrets: Secrets,
    ) -> Self {
        Self {
            body,
            decoder,
            timeouts,
            alarm,
            since,
            events: 0,
            tail: false,
            ended: false,
            secrets,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ChatEvent, ModelError>>> {
        loop {
            if let Some(item) = self.decoder.next() {
                return Poll::Ready(Some(item.map_err(|error| self.secrets.hide(error))));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(piece) = frame.into_data() {
                        self.decoder.feed(&piece);
                        self.note_events();
                    }
                }
                Poll::Ready(Some(Err(error))) => self.broke(error),
                Poll::Ready(None) => self.end(),
                Poll::Pending => {
                    let deadline = self.since.saturating_add(self.limit());
                    if self.alarm.poll(deadline, cx).is_pending() {
                        return Poll::Pending;
                    }
                    if self.tail {
                        self.end();
                    } else {
                        self.ended = true;
                        return Poll::Ready(Some(Err(self.timed_out())));
                    }
                }
            }
        }
    }

    /// Remembers when an event came. Comments are none, so that a server which only keeps the
    /// connection alive runs into the timeout.
    fn note_events(&mut self) {
        let events = self.decoder.events_seen();
        if events != self.events {
            self.events = events;
            self.since = self.alarm.now();
        }
        if !self.tail && self.decoder.has_ended() {
            self.tail = true;
            self.since = self.alarm.now();
        }
    }

    fn limit(&self) -> Duration {
        match (self.tail, self.events) {
            (true, _) => TAIL,
            (false, 0) => self.timeouts.first_event,
            (false, _) => self.timeouts.between_events,
        }
    }

    fn end(&mut self) {
        self.decoder.finish();
        self.ended = true;
    }

    /// The connection broke. A reply that was whole by then is one all the same.
    fn broke(&mut self, error: reqwest::Error) {
        self.ended = true;
        self.decoder.broke(error.without_url().into());
    }

    fn timed_out(&self) -> ModelError {
        let limit = self.limit().as_secs_f64();
        let what = if self.events == 0 {
            format!("the server began no answer within {limit} s")
        } else {
            format!("the server sent no event for {limit} s (keep-alive comments do not count)")
        };
        ModelError::new(ModelErrorKind::Timeout, what)
    }
}
