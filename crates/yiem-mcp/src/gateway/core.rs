//! One request and its answer, whoever carries them.
//!
//! Knows: which calls are under way, how many may be, how they are cancelled, when one waits for its
//! caller, that a call that panics or takes too long is answered all the same. Does not know: bytes, connections.

use super::callers::{Callers, SendTo};
use super::held::{self, Beginning, Course, Found, HeldCalls};
use crate::jsonrpc::{INTERNAL_ERROR, Incoming, JsonRpcError, METHOD_NOT_FOUND, RequestId};
use crate::protocol::{meta_key, method};
use crate::responder::{AskCaller, AtGateway, Caller, Responder};
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
/// How many cancellations that came too early are remembered.
#[cfg(feature = "nats")]
const EARLY: usize = 256;
/// For how long they are, and the calls that have ended, of which they may be as well.
#[cfg(feature = "nats")]
const EARLY_TIME: Duration = Duration::from_secs(10);
/// How many calls that have ended are remembered.
#[cfg(feature = "nats")]
const ENDED: usize = 1_024;
/// How many callers may listen for changes by a request that lasts.
const LISTENING: usize = 1_024;

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
    shop: Arc<Shop>,
    pub(crate) env: Arc<dyn Env>,
    /// Who is there to be told and asked.
    pub(crate) callers: Arc<Callers>,
    /// Cancelled when the gateway takes nothing new any more.
    pub(crate) stop: CancelToken,
    running: Mutex<HashMap<u64, Running>>,
    next: AtomicU64,
    held: HeldCalls,
    /// Cancellations that came before their requests did, newest last.
    #[cfg(feature = "nats")]
    early: Mutex<Early>,
}

/// Requests of callers that are not seen leaving, newest last, with the time since when.
#[cfg(feature = "nats")]
#[derive(Default)]
struct Early {
    cancelled: std::collections::VecDeque<(Duration, Arc<str>, RequestId)>,
    ended: std::collections::VecDeque<(Duration, Arc<str>, RequestId)>,
}

/// Where requests are worked on.
struct Shop {
    responder: Arc<dyn Responder>,
    env: Arc<dyn Env>,
    places: Semaphore,
    at_once: usize,
    waiting: AtomicUsize,
    listening: AtomicUsize,
    call_time: Duration,
}

struct Running {
    caller: Arc<str>,
    id: Option<RequestId>,
    cancel: CancelToken,
    /// It ends when someone ends it.
    lasts: bool,
    /// Whether it is seen when its caller leaves.
    #[cfg(feature = "nats")]
    seen: bool,
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
    /// How this caller can be asked something in the course of its request.
    pub(crate) asking: Asking,
    /// Whether it has a way on which it is told of changes outside of its requests: a session, a pipe.
    pub(crate) told: bool,
}

/// How a caller can be asked something in the course of its request (M-9).
#[derive(Debug, Clone)]
pub(crate) enum Asking {
    /// In no way. The rim does not see either when the caller leaves.
    No,
    /// By requests, for what it declared when it opened its connection.
    Requests(Arc<Map<String, Value>>),
    /// By results that ask for input, where its request is of the stateless era.
    Rounds,
}

impl Core {
    pub(crate) fn new(
        responder: Arc<dyn Responder>,
        callers: Arc<Callers>,
        env: Arc<dyn Env>,
        at_once: usize,
        call_time: Duration,
    ) -> Self {
        Self {
            shop: Arc::new(Shop {
                responder,
                env: Arc::clone(&env),
                places: Semaphore::new(at_once),
                at_once,
                waiting: AtomicUsize::new(0),
                listening: AtomicUsize::new(0),
                call_time,
            }),
            held: HeldCalls::new(Arc::clone(&env)),
            env,
            callers,
            stop: CancelToken::new(),
            running: Mutex::default(),
            next: AtomicU64::new(0),
            #[cfg(feature = "nats")]
            early: Mutex::default(),
        }
    }

    /// Remembers for a while a cancellation whose request may still be on its way: it can come by another
    /// path. For callers whose name is used for one request only. One of a request that has just ended came
    /// late, and is not for the next.
    #[cfg(feature = "nats")]
    pub(crate) fn cancel_ahead(&self, caller: &str, id: &RequestId) {
        let now = self.env.elapsed();
        let is_it = |(since, of, own): &(Duration, Arc<str>, RequestId)| {
            now.saturating_sub(*since) < EARLY_TIME && &**of == caller && own == id
        };
        let mut early = self.early();
        if early.ended.iter().any(is_it) || early.cancelled.iter().any(is_it) {
            return;
        }
        if early.cancelled.len() >= EARLY {
            early.cancelled.pop_front();
        }
        early.cancelled.push_back((now, caller.into(), id.clone()));
    }

    #[cfg(feature = "nats")]
    fn was_cancelled_ahead(&self, job: &Job) -> bool {
        let mut early = self.early();
        if early.cancelled.is_empty() {
            return false;
        }
        let now = self.env.elapsed();
        let recent = |since: Duration| now.saturating_sub(since) < EARLY_TIME;
        early.cancelled.retain(|(since, ..)| recent(*since));
        let at = early
            .cancelled
            .iter()
            .position(|(_, caller, id)| *caller == job.caller && Some(id) == job.id.as_ref());
        at.is_some_and(|at| early.cancelled.remove(at).is_some())
    }

    #[cfg(feature = "nats")]
    fn has_ended(&self, caller: Arc<str>, id: RequestId) {
        let now = self.env.elapsed();
        let mut early = self.early();
        if early.ended.len() >= ENDED {
            early.ended.pop_front();
        }
        early.ended.push_back((now, caller, id));
    }

    #[cfg(feature = "nats")]
    fn early(&self) -> MutexGuard<'_, Early> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many calls are under way. Who only listens is not counted.
    pub(crate) fn running(&self) -> usize {
        self.lock().values().filter(|call| !call.lasts).count()
    }

    /// Gives up what callers began and did not come back for.
    pub(crate) fn purge(&self) {
        self.held.purge();
    }

    /// Answers a request. `None` when it was cancelled: no answer is owed then.
    ///
    /// `send` takes what goes to the caller before the answer; it says whether there was room. Dropping the
    /// future cancels the call.
    pub(crate) async fn answer(
        &self,
        asked: Asked,
        send: impl Fn(Incoming) -> bool + Send + Sync + 'static,
    ) -> Option<Result<Value, JsonRpcError>> {
        let send: SendTo = Arc::new(send);
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
        let modern = is_modern(&params);
        if modern && REMOVED.contains(&asked.method.as_str()) {
            let words = format!("Method not found: {}", asked.method);
            return Some(Err(JsonRpcError::new(METHOD_NOT_FOUND, words)));
        }
        let rounds =
            modern && matches!(asked.asking, Asking::Rounds) && held::may_ask(&asked.method);
        let found = match rounds {
            true => self.held.find(&asked.method, &params, Arc::clone(&send)),
            false => Found::New,
        };
        // The handshake cannot be cancelled.
        let id = asked.id.filter(|_| asked.method != method::INITIALIZE);
        let mut job = Job {
            lasts: asked.method == method::LISTEN,
            seen: !matches!(asked.asking, Asking::No),
            ending: self.stop.child(),
            method: asked.method,
            session: asked.session,
            caller: asked.caller,
            id,
            cancel: asked.cancel.child(),
            told: asked.told,
        };
        match found {
            Found::Gone(refusal) => Some(Err(refusal)),
            Found::Held(call) => {
                job.cancel = call.cancel.clone();
                self.go_on(*call, job.again(), true).await
            }
            Found::New => match (capabilities(&params).filter(|_| rounds), asked.asking) {
                (Some(declared), _) => {
                    let again = job.again();
                    let beginning = Beginning::new(&job.method, &params, declared, send);
                    let (way, asks) = (Arc::clone(&beginning.way), Arc::clone(&beginning.asks));
                    let send: SendTo = Arc::new(move |message| {
                        way.send(message);
                        true
                    });
                    let work = job.work(&self.shop, params, send, Some(asks));
                    let call = beginning.call(Box::pin(work), again.cancel.clone());
                    self.go_on(call, again, false).await
                }
                (None, Asking::Requests(declared)) if !modern => {
                    let (caller, send_on) = (Arc::clone(&job.caller), Arc::clone(&send));
                    let declared = Map::clone(&declared);
                    let cancel = job.cancel.clone();
                    let asks = self.callers.by_requests(caller, declared, send_on, cancel);
                    self.answer_whole(job, params, send, Some(asks)).await
                }
                (None, _) => self.answer_whole(job, params, send, None).await,
            },
        }
    }

    /// Answers a call that is never held: whoever is asked in its course is asked meanwhile.
    async fn answer_whole(
        &self,
        job: Job,
        params: Map<String, Value>,
        send: SendTo,
        asks: Option<Arc<dyn AskCaller>>,
    ) -> Option<Result<Value, JsonRpcError>> {
        let (lasts, cancel) = (job.lasts, job.cancel.clone());
        let entry = self.enter(&job, cancel.clone());
        let work = job.work(&self.shop, params, send, asks);
        let work = async {
            match lasts {
                true => work.await,
                false => self.shop.in_time(false, work).await?,
            }
        };
        self.end(entry, cancel.run_until_cancelled(work).await, &cancel)
    }

    /// Answers a call until it is over, or is held because its caller has to answer first; `begun` says
    /// that it was held already.
    async fn go_on(
        &self,
        mut call: held::Call,
        job: Job,
        begun: bool,
    ) -> Option<Result<Value, JsonRpcError>> {
        let cancel = job.cancel.clone();
        let entry = self.enter(&job, cancel.clone());
        // Its place is only for as long as it runs: one that is held takes none.
        let going = async {
            loop {
                match call.go_on().await {
                    Course::Answered(answer) => return (answer, false),
                    Course::Asks => match self.held.hold(call) {
                        Ok(result) => return (Ok(result), true),
                        Err(back) => {
                            call = *back;
                            call.give_up_questions();
                        }
                    },
                }
            }
        };
        let going = self.shop.in_time(begun, going);
        match cancel.run_until_cancelled(going).await {
            Some(Ok((answer, true))) => {
                entry.let_go();
                Some(answer)
            }
            Some(Ok((answer, false))) => self.end(entry, Some(answer), &cancel),
            Some(Err(refusal)) => self.end(entry, Some(Err(refusal)), &cancel),
            None => self.end(entry, None, &cancel),
        }
    }

    /// What a caller is told in the end.
    fn end(
        &self,
        entry: Entry<'_>,
        answer: Option<Result<Value, JsonRpcError>>,
        cancel: &CancelToken,
    ) -> Option<Result<Value, JsonRpcError>> {
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

    fn enter(&self, job: &Job, cancel: CancelToken) -> Entry<'_> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(
            number,
            Running {
                caller: Arc::clone(&job.caller),
                id: job.id.clone(),
                cancel: cancel.clone(),
                lasts: job.lasts,
                #[cfg(feature = "nats")]
                seen: job.seen,
            },
        );
        #[cfg(feature = "nats")]
        if self.was_cancelled_ahead(job) {
            cancel.cancel();
        }
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

    /// Cancels the requests of that caller that end only when someone ends them.
    pub(crate) fn end_lasting_of(&self, caller: &str) {
        let running = self.lock();
        for call in running.values() {
            if &*call.caller == caller && call.lasts {
                call.cancel.cancel();
            }
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
        running.values().filter(|call| !call.lasts).count()
    }

    /// Hands on a notification that is not a cancellation.
    pub(crate) async fn notified(&self, name: &str, params: &Value) {
        let told = async { self.shop.responder.notified(name, params).await };
        if AssertUnwindSafe(told).catch_unwind().await.is_err() {
            tracing::error!(method = name, "what takes notifications panicked");
        }
    }
}

/// The request that a cancellation names.
pub(crate) fn cancelled_request(params: &Value) -> Option<RequestId> {
    RequestId::from_value(params.get("requestId")?)
}

/// What the client of a stateless request says that it can do.
fn capabilities(params: &Map<String, Value>) -> Option<Map<String, Value>> {
    params
        .get("_meta")?
        .get(meta_key::CLIENT_CAPABILITIES)?
        .as_object()
        .cloned()
}

/// A request as it is worked on.
struct Job {
    lasts: bool,
    /// Whether it is seen when its caller leaves.
    seen: bool,
    ending: CancelToken,
    method: String,
    session: Option<SessionId>,
    caller: Arc<str>,
    id: Option<RequestId>,
    cancel: CancelToken,
    told: bool,
}

impl Job {
    /// What is known of it while it goes on by rounds, each of which its caller sees.
    fn again(&self) -> Self {
        Self {
            lasts: false,
            seen: true,
            ending: CancelToken::new(),
            method: String::new(),
            session: None,
            caller: Arc::clone(&self.caller),
            id: self.id.clone(),
            cancel: self.cancel.clone(),
            told: self.told,
        }
    }

    /// The work itself. It holds nothing of the core, which may hold it.
    fn work(
        self,
        shop: &Arc<Shop>,
        params: Map<String, Value>,
        send: SendTo,
        asks: Option<Arc<dyn AskCaller>>,
    ) -> impl Future<Output = Result<Value, JsonRpcError>> + Send + 'static {
        let shop = Arc::clone(shop);
        let Self {
            lasts,
            seen,
            ending,
            method,
            session,
            caller,
            id,
            cancel,
            told,
        } = self;
        async move {
            let notify = move |message| {
                send(message);
            };
            let mut of = Caller::new(cancel, notify).with_session(session);
            of.asks = asks;
            of.at_gateway = AtGateway {
                key: caller,
                request_id: id,
                told,
                ending: ending.clone(),
            };
            if lasts {
                let too_long = shop.env.sleep(shop.call_time);
                let _counted = Waiting::enter(&shop.listening, LISTENING)
                    .ok_or_else(|| busy(format!("{LISTENING} listen already")))?;
                let call = shop.call(&method, params, of);
                tokio::pin!(call);
                tokio::select! {
                    answer = &mut call => return answer,
                    // One that is not seen leaving has to come back now and then.
                    () = too_long, if !seen => ending.cancel(),
                }
                return call.await;
            }
            shop.call(&method, params, of).await
        }
    }
}

fn busy(why: String) -> JsonRpcError {
    JsonRpcError::new(
        INTERNAL_ERROR,
        format!("the gateway is busy: {why}; try again later"),
    )
}

impl Shop {
    async fn call(
        &self,
        name: &str,
        params: Map<String, Value>,
        caller: Caller,
    ) -> Result<Value, JsonRpcError> {
        AssertUnwindSafe(async { self.responder.respond(name, params, caller).await })
            .catch_unwind()
            .await
            .unwrap_or_else(|_| {
                Err(JsonRpcError::new(
                    INTERNAL_ERROR,
                    "what answers the request panicked",
                ))
            })
    }

    /// Does the work of one request in a place, within the time that a request may take. The wait for the
    /// place is part of that.
    async fn in_time<T>(
        &self,
        begun: bool,
        work: impl Future<Output = T>,
    ) -> Result<T, JsonRpcError> {
        let too_long = self.env.sleep(self.call_time);
        let placed = async {
            let _place = self.place(begun).await?;
            Ok(work.await)
        };
        tokio::select! {
            done = placed => done,
            () = too_long => Err(JsonRpcError::new(
                INTERNAL_ERROR,
                format!("no answer within {} s, the longest that this gateway waits", self.call_time.as_secs_f64()),
            )),
        }
    }

    /// A place to run in, waited for; refused when too many wait already, unless the call has begun: it
    /// would be lost, and may have done something.
    async fn place(&self, begun: bool) -> Result<tokio::sync::SemaphorePermit<'_>, JsonRpcError> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let limit = self.at_once * WAITING_FOR_EACH;
        let waiting = Waiting::enter(&self.waiting, limit);
        if waiting.is_none() && !begun {
            return Err(busy(format!("{} calls run and {limit} wait", self.at_once)));
        }
        self.places
            .acquire()
            .await
            .map_err(|_| JsonRpcError::new(INTERNAL_ERROR, "the gateway has ended"))
    }
}

/// A call that is under way. Its drop takes it out and cancels what is left of it.
struct Entry<'a> {
    core: &'a Core,
    number: u64,
    cancel: CancelToken,
}

impl Entry<'_> {
    /// Takes the call out and lets it be: it goes on elsewhere.
    fn let_go(mut self) {
        self.cancel = CancelToken::new();
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let ended = self.core.lock().remove(&self.number);
        self.cancel.cancel();
        #[cfg(feature = "nats")]
        if let Some(Running {
            caller,
            id: Some(id),
            seen: false,
            ..
        }) = ended
        {
            self.core.has_ended(caller, id);
        }
        #[cfg(not(feature = "nats"))]
        drop(ended);
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
