//! One request and its answer, whoever carries them.
//!
//! Knows: which calls are under way, how many may be, how they are cancelled, that a call that panics or
//! takes too long is answered all the same. Does not know: bytes, connections.

use crate::jsonrpc::{INTERNAL_ERROR, Incoming, JsonRpcError, METHOD_NOT_FOUND, RequestId};
use crate::protocol::{meta_key, method};
use crate::responder::{Caller, Responder};
use futures_util::FutureExt as _;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use yiem_core::{CancelReason, CancelToken, Env, SessionId};

/// How many calls may wait for each that may run.
const WAITING_FOR_EACH: usize = 4;

/// Methods that the stateless era no longer has.
const REMOVED: [&str; 5] = [
    method::INITIALIZE,
    method::PING,
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

fn is_modern(params: &Map<String, Value>) -> bool {
    params
        .get("_meta")
        .is_some_and(|meta| meta.get(meta_key::PROTOCOL_VERSION).is_some())
}

/// What the rims share.
pub(crate) struct Core {
    responder: Arc<dyn Responder>,
    pub(crate) env: Arc<dyn Env>,
    places: Semaphore,
    at_once: usize,
    waiting: AtomicUsize,
    call_time: Duration,
    running: Mutex<HashMap<u64, Running>>,
    next: AtomicU64,
}

struct Running {
    caller: Arc<str>,
    id: Option<RequestId>,
    cancel: CancelToken,
}

/// One request as a rim hands it in.
pub(crate) struct Asked {
    /// Who asks, as far as the rim can tell callers apart: an inbox, a session, a connection.
    pub(crate) caller: Arc<str>,
    /// The request's id; `None` when it has none and wants an answer all the same.
    pub(crate) id: Option<RequestId>,
    pub(crate) method: String,
    pub(crate) params: Value,
    /// The caller's conversation.
    pub(crate) session: Option<SessionId>,
    /// Cancelled when the caller is gone.
    pub(crate) cancel: CancelToken,
}

impl Core {
    pub(crate) fn new(
        responder: Arc<dyn Responder>,
        env: Arc<dyn Env>,
        at_once: usize,
        call_time: Duration,
    ) -> Self {
        Self {
            responder,
            env,
            places: Semaphore::new(at_once),
            at_once,
            waiting: AtomicUsize::new(0),
            call_time,
            running: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many calls are under way.
    pub(crate) fn running(&self) -> usize {
        self.lock().len()
    }

    /// Answers a request. `None` when it was cancelled: no answer is owed then.
    ///
    /// Dropping the future cancels the call.
    pub(crate) async fn answer(
        &self,
        asked: Asked,
        send: impl Fn(Incoming) + Send + Sync + 'static,
    ) -> Option<Result<Value, JsonRpcError>> {
        let params = match asked.params {
            Value::Object(params) => params,
            Value::Null => Map::new(),
            _ => {
                return Some(Err(JsonRpcError::new(
                    crate::jsonrpc::INVALID_PARAMS,
                    "params must be an object",
                )));
            }
        };
        if is_modern(&params) && REMOVED.contains(&asked.method.as_str()) {
            let words = format!("Method not found: {}", asked.method);
            return Some(Err(JsonRpcError::new(METHOD_NOT_FOUND, words)));
        }
        let cancel = asked.cancel.child();
        // The handshake cannot be cancelled.
        let id = asked.id.filter(|_| asked.method != method::INITIALIZE);
        let entry = self.enter(asked.caller, id, cancel.clone());
        let work = async {
            let _place = match self.place().await {
                Ok(place) => place,
                Err(refusal) => return Err(refusal),
            };
            let caller = Caller::new(cancel.clone(), send).with_session(asked.session);
            let call = AssertUnwindSafe(self.responder.respond(&asked.method, params, caller))
                .catch_unwind();
            tokio::select! {
                answer = call => answer.unwrap_or_else(|_| {
                    Err(JsonRpcError::new(INTERNAL_ERROR, "what answers the request panicked"))
                }),
                () = self.env.sleep(self.call_time) => Err(JsonRpcError::new(
                    INTERNAL_ERROR,
                    format!("no answer within {} s, the longest that this gateway waits", self.call_time.as_secs_f64()),
                )),
            }
        };
        let answer = cancel.run_until_cancelled(work).await;
        // Who asked is owed a word when it was not they who gave up.
        let cut_off = answer.is_none() && cancel.reason() == Some(CancelReason::Stopped);
        drop(entry);
        if cut_off {
            return Some(Err(JsonRpcError::new(
                INTERNAL_ERROR,
                "the gateway ended before the call did; it may have run",
            )));
        }
        answer
    }

    /// A place to run in, waited for; refused when too many wait already.
    async fn place(&self) -> Result<tokio::sync::SemaphorePermit<'_>, JsonRpcError> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let _waiting =
            Waiting::enter(&self.waiting, self.at_once * WAITING_FOR_EACH).ok_or_else(|| {
                JsonRpcError::new(
                    INTERNAL_ERROR,
                    format!(
                        "the gateway is busy: {} calls run and {} wait; try again later",
                        self.at_once,
                        self.at_once * WAITING_FOR_EACH
                    ),
                )
            })?;
        self.places
            .acquire()
            .await
            .map_err(|_| JsonRpcError::new(INTERNAL_ERROR, "the gateway has ended"))
    }

    fn enter(&self, caller: Arc<str>, id: Option<RequestId>, cancel: CancelToken) -> Entry<'_> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(
            number,
            Running {
                caller,
                id,
                cancel: cancel.clone(),
            },
        );
        Entry {
            core: self,
            number,
            cancel,
        }
    }

    /// Cancels the request of that caller with that id. False when there is none.
    pub(crate) fn cancel(&self, caller: &str, id: &RequestId) -> bool {
        let mut found = false;
        for running in self.lock().values() {
            if &*running.caller == caller && running.id.as_ref() == Some(id) {
                running.cancel.cancel();
                found = true;
            }
        }
        found
    }

    /// Cancels the request with that id, whoever asked, if there is exactly one.
    #[cfg(any(test, feature = "nats"))]
    pub(crate) fn cancel_only(&self, id: &RequestId) -> bool {
        let running = self.lock();
        let mut with_id = running
            .values()
            .filter(|running| running.id.as_ref() == Some(id));
        match (with_id.next(), with_id.next()) {
            (Some(running), None) => {
                running.cancel.cancel();
                true
            }
            _ => false,
        }
    }

    /// Cancels whatever a caller that is gone still has under way.
    pub(crate) fn cancel_all_of(&self, caller: &str) {
        for running in self
            .lock()
            .values()
            .filter(|running| &*running.caller == caller)
        {
            running.cancel.cancel();
        }
    }

    /// Ends everything; each caller is told so. How many there were.
    pub(crate) fn cut_off(&self) -> usize {
        let running = self.lock();
        for running in running.values() {
            running.cancel.cancel_because(CancelReason::Stopped);
        }
        running.len()
    }

    /// Hands on a notification that is not a cancellation.
    pub(crate) async fn notified(&self, name: &str, params: &Value) {
        let told = AssertUnwindSafe(self.responder.notified(name, params)).catch_unwind();
        if told.await.is_err() {
            tracing::error!(method = name, "what takes notifications panicked");
        }
    }
}

/// The request that a cancellation names.
pub(crate) fn cancelled_request(params: &Value) -> Option<RequestId> {
    RequestId::from_value(params.get("requestId")?)
}

/// A call that is under way. Its drop takes it out and cancels what is left of it.
struct Entry<'a> {
    core: &'a Core,
    number: u64,
    cancel: CancelToken,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.core.lock().remove(&self.number);
        self.cancel.cancel();
    }
}

/// One that waits for a place.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn enter(count: &'a AtomicUsize, limit: usize) -> Option<Self> {
        let waiting = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < limit).then_some(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
