//! Bodies of answers: whole, or a stream of events that ends with the answer.

use super::super::callers::{Attached, Changes, SendTo};
use super::super::core::Core;
use super::written;
use crate::jsonrpc::{self, JsonRpcError, RequestId};
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use serde_json::{Map, Value};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use yiem_core::{BoxFuture, CancelToken, Env};

/// A line that is no event.
pub(super) const KEEP_ALIVE: &[u8] = b": still there\n\n";
/// How often a stream shows that it is alive.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);

type Answer = Option<Result<Value, JsonRpcError>>;

/// A JSON-RPC message as a server-sent event.
pub(super) fn event(message: &[u8]) -> Bytes {
    [b"event: message\ndata: ", message, b"\n\n"]
        .concat()
        .into()
}

/// Calls that go on although their caller has left.
#[derive(Debug, Default)]
pub(super) struct Leftovers(Mutex<JoinSet<()>>);

impl Leftovers {
    fn keep(&self, work: BoxFuture<'static, Answer>) {
        let Ok(handle) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while set.try_join_next().is_some() {}
        set.spawn_on(async move { drop(work.await) }, &handle);
    }

    /// Ends when they have ended.
    pub(super) async fn ended(&self) {
        let mut set = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        while set.join_next().await.is_some() {}
    }
}

/// A call that is waited for. Dropped, it is cancelled, or goes on among the leftovers.
pub(super) struct Answering {
    work: Option<BoxFuture<'static, Answer>>,
    left: Option<Arc<Leftovers>>,
}

impl Answering {
    pub(super) fn new(work: BoxFuture<'static, Answer>, left: Option<Arc<Leftovers>>) -> Self {
        Self {
            work: Some(work),
            left,
        }
    }
}

impl Future for Answering {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let Some(work) = &mut self.work else {
            return Poll::Ready(None);
        };
        let answer = ready!(work.as_mut().poll(cx));
        self.work = None;
        Poll::Ready(answer)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let (Some(work), Some(left)) = (self.work.take(), &self.left) {
            left.keep(work);
        }
    }
}

/// A stream of events: notifications, then the answer, then the end.
pub(super) struct Stream {
    first: Option<Bytes>,
    notes: mpsc::Receiver<Bytes>,
    answering: Option<Answering>,
    /// The answer, while notifications that came before it are still to be sent.
    answer: Option<Bytes>,
    id: RequestId,
    env: Arc<dyn Env>,
    quiet: BoxFuture<'static, ()>,
}

impl Stream {
    pub(super) fn new(
        first: Bytes,
        notes: mpsc::Receiver<Bytes>,
        answering: Answering,
        id: RequestId,
        env: Arc<dyn Env>,
    ) -> Self {
        let quiet = env.sleep(KEEP_ALIVE_EVERY);
        Self {
            first: Some(first),
            notes,
            answering: Some(answering),
            answer: None,
            id,
            env,
            quiet,
        }
    }

    /// A stream whose answer is there already, with notifications that go before it.
    pub(super) fn ended(
        first: Bytes,
        notes: mpsc::Receiver<Bytes>,
        answer: Answer,
        id: RequestId,
        env: Arc<dyn Env>,
    ) -> Self {
        let answer = answer.map(|answer| event(&written(&id, &answer)));
        let quiet = env.sleep(KEEP_ALIVE_EVERY);
        Self {
            first: Some(first),
            notes,
            answering: None,
            answer,
            id,
            env,
            quiet,
        }
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if let Poll::Ready(Some(note)) = self.notes.poll_recv(cx) {
            self.quiet = self.env.sleep(KEEP_ALIVE_EVERY);
            return Poll::Ready(Some(note));
        }
        if let Some(answering) = &mut self.answering
            && let Poll::Ready(answer) = Pin::new(answering).poll(cx)
        {
            self.answering = None;
            self.answer = answer.map(|answer| event(&written(&self.id, &answer)));
            // Whatever was told before the answer goes before it.
            if let Poll::Ready(Some(note)) = self.notes.poll_recv(cx) {
                return Poll::Ready(Some(note));
            }
        }
        if self.answering.is_none() {
            return Poll::Ready(self.answer.take());
        }
        if self.quiet.as_mut().poll(cx).is_ready() {
            self.quiet = self.env.sleep(KEEP_ALIVE_EVERY);
            return Poll::Ready(Some(Bytes::from_static(KEEP_ALIVE)));
        }
        Poll::Pending
    }
}

/// The stream on which a client of the legacy era listens: changes, and questions to it.
pub(super) struct Own {
    changes: Changes,
    events: mpsc::Receiver<Bytes>,
    core: Arc<Core>,
    session: String,
    /// Held as long as the client listens: it can be asked.
    _attached: Attached,
    /// Ends the questions that were asked here.
    gone: CancelToken,
}

impl Drop for Own {
    fn drop(&mut self) {
        self.gone.cancel();
    }
}

impl Own {
    pub(super) fn stream(
        core: Arc<Core>,
        session: String,
        capabilities: Map<String, Value>,
        send: SendTo,
        events: mpsc::Receiver<Bytes>,
    ) -> Box<OwnStream> {
        let gone = core.stop.child();
        let key: Arc<str> = session.as_str().into();
        let asks = core
            .callers
            .by_requests(Arc::clone(&key), capabilities, send, gone.clone());
        let changes = core.callers.changes();
        let attached = core.callers.attach(key, asks);
        Box::new(OwnStream {
            first: true,
            next: Box::pin(
                Self {
                    changes,
                    events,
                    core,
                    session,
                    _attached: attached,
                    gone,
                }
                .next(),
            ),
        })
    }

    /// The next bytes; the end when the gateway drains, the session ended, or the client listens elsewhere.
    async fn next(mut self) -> Option<(Self, Bytes)> {
        loop {
            let stop = self.core.stop.clone();
            let bytes = tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                event = self.events.recv() => event?,
                changes = self.changes.next() => {
                    let concerned = changes
                        .iter()
                        .filter(|change| self.core.callers.concerns(&self.session, change))
                        .filter_map(jsonrpc::outgoing);
                    let told: Vec<Bytes> = concerned.map(|change| event(&change)).collect();
                    if told.is_empty() {
                        continue;
                    }
                    told.concat().into()
                }
                () = self.core.env.sleep(KEEP_ALIVE_EVERY) => Bytes::from_static(KEEP_ALIVE),
            };
            return Some((self, bytes));
        }
    }
}

/// [`Own`] as a body.
pub(super) struct OwnStream {
    /// Something is sent at once, so that the client sees that it is listened to.
    first: bool,
    next: BoxFuture<'static, Option<(Own, Bytes)>>,
}

impl OwnStream {
    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if std::mem::take(&mut self.first) {
            return Poll::Ready(Some(Bytes::from_static(KEEP_ALIVE)));
        }
        match ready!(self.next.as_mut().poll(cx)) {
            Some((own, bytes)) => {
                self.next = Box::pin(own.next());
                Poll::Ready(Some(bytes))
            }
            None => {
                // Not polled again, should anyone do so.
                self.next = Box::pin(std::future::pending());
                Poll::Ready(None)
            }
        }
    }
}

/// The body of an answer.
pub(super) enum Reply {
    /// All of it, or nothing.
    Whole(Option<Bytes>),
    /// As it comes.
    Stream(Box<Stream>),
    /// What a client listens to.
    Own(Box<OwnStream>),
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            Self::Whole(bytes) => bytes.take(),
            Self::Stream(stream) => ready!(stream.next(cx)),
            Self::Own(stream) => ready!(stream.next(cx)),
        };
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Stream(_) | Self::Own(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests;
