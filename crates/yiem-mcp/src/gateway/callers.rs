//! Who is there to be told and to be asked: callers with a way of their own, and their open questions.
//!
//! Knows: which callers are attached, what they subscribed to, which of their answers are waited for.
//! Does not know: bytes, connections, or why something is asked.

use crate::client::HandOn;
use crate::jsonrpc::{Answer, AnswerOutcome, Incoming, IncomingRequest, JsonRpcError, RequestId};
use crate::protocol::method;
use crate::responder::AskCaller;
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast, oneshot};
use yiem_core::{CancelToken, Env, IdKind};

/// How many changes are kept for a slow caller; one that is slower is told that everything changed.
const CHANGES_KEPT: usize = 256;
/// How long a caller may take for the answer to a question.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(600);
/// How many questions of all callers may be open.
const QUESTIONS: usize = 1_024;
/// To how many resources one caller may subscribe.
const SUBSCRIPTIONS: usize = 1_000;
/// How many subscriptions all callers together may have.
const SUBSCRIPTIONS_OF_ALL: usize = 10_000;
/// How many visits that callers were asked for are remembered; of the oldest nobody is told that it is over.
const VISITS: usize = 1_024;

/// Sends a message to a caller without waiting. False when there is no room, or nobody.
pub(super) type SendTo = Arc<dyn Fn(Incoming) -> bool + Send + Sync>;

type Sender = oneshot::Sender<Result<Value, JsonRpcError>>;

/// The callers of one gateway.
pub(crate) struct Callers {
    env: Arc<dyn Env>,
    changes: broadcast::Sender<Incoming>,
    state: Mutex<State>,
    /// There is something that nobody is subscribed to any more.
    let_go: Notify,
    next: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Requests that are on their way to the server, by number.
    on_the_way: HashMap<u64, Whose>,
    /// Callers that can be asked at any time.
    attached: HashMap<Arc<str>, (u64, Arc<dyn AskCaller>)>,
    questions: HashMap<RequestId, (Arc<str>, Sender)>,
    subscriptions: HashMap<Arc<str>, HashSet<String>>,
    /// How many are subscribed to each resource.
    subscribers: HashMap<String, usize>,
    /// What nobody is subscribed to any more, and the server was not told yet.
    unwanted: HashSet<String>,
    /// Who was asked to visit an address, by the server's name for the visit; newest last.
    visits: VecDeque<(String, Arc<str>)>,
}

impl State {
    /// Takes one subscription out. True when it was the last to that resource.
    fn unsubscribe(&mut self, caller: &str, uri: &str) -> bool {
        let Some(own) = self.subscriptions.get_mut(caller) else {
            return false;
        };
        if !own.remove(uri) {
            return false;
        }
        if own.is_empty() {
            self.subscriptions.remove(caller);
        }
        self.one_less(uri)
    }

    fn one_less(&mut self, uri: &str) -> bool {
        match self.subscribers.get_mut(uri) {
            Some(count) if *count > 1 => {
                *count -= 1;
                false
            }
            _ => self.subscribers.remove(uri).is_some(),
        }
    }

    /// The server is to be told that nobody wants to hear of it.
    fn unwanted(&mut self, uri: String) {
        // Of what is beyond, the server goes on to tell, and nobody hears it.
        if self.unwanted.len() < SUBSCRIPTIONS_OF_ALL {
            self.unwanted.insert(uri);
        }
    }
}

/// Whose a request is, and the way to ask them.
type Whose = (Arc<str>, Option<Arc<dyn AskCaller>>);

impl Callers {
    pub(super) fn new(env: Arc<dyn Env>) -> Self {
        Self {
            env,
            changes: broadcast::Sender::new(CHANGES_KEPT),
            state: Mutex::default(),
            let_go: Notify::new(),
            next: AtomicU64::new(1),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Tells everyone who listens of a change.
    pub(super) fn tell(&self, name: &str, params: Value) {
        // Nobody listening is no failure.
        let _ = self.changes.send(Incoming::Notification {
            method: name.to_owned(),
            params,
        });
    }

    /// The changes from now on.
    pub(super) fn changes(&self) -> Changes {
        Changes(self.changes.subscribe())
    }

    /// A way to ask a caller of the legacy era by requests.
    pub(super) fn by_requests(
        self: &Arc<Self>,
        caller: Arc<str>,
        capabilities: Map<String, Value>,
        send: SendTo,
        gone: CancelToken,
    ) -> Arc<dyn AskCaller> {
        Arc::new(ByRequests {
            callers: Arc::clone(self),
            caller,
            capabilities,
            send,
            open: AtomicUsize::new(0),
            gone,
        })
    }

    /// Takes an answer of a caller to one of our questions. False when it answers none of its own.
    pub(super) fn answered(&self, caller: &str, answer: Answer) -> bool {
        let waiting = {
            let mut state = self.state();
            let asked = answer.id.and_then(|id| {
                [Some(id.clone()), id.other_spelling()]
                    .into_iter()
                    .flatten()
                    .find(|id| {
                        let asked = state.questions.get(id);
                        asked.is_some_and(|(of, _)| &**of == caller)
                    })
            });
            asked.and_then(|id| state.questions.remove(&id))
        };
        let Some((_, waiting)) = waiting else {
            return false;
        };
        let _ = waiting.send(match answer.outcome {
            AnswerOutcome::Result(result) => Ok(result),
            AnswerOutcome::Error(error) => Err(error),
            AnswerOutcome::Malformed(what) => Err(JsonRpcError::new(
                crate::jsonrpc::INTERNAL_ERROR,
                format!("the caller's answer cannot be read: {what}"),
            )),
        });
        true
    }

    /// A request of that caller is on its way to the server until the guard goes.
    pub(super) fn sending(
        self: &Arc<Self>,
        caller: Arc<str>,
        asks: Option<Arc<dyn AskCaller>>,
    ) -> OnTheWay {
        let number = self.number();
        self.state().on_the_way.insert(number, (caller, asks));
        OnTheWay {
            callers: Arc::clone(self),
            number,
        }
    }

    /// Whether no request but this one is on its way.
    pub(super) fn is_alone(&self) -> bool {
        self.state().on_the_way.len() == 1
    }

    /// That caller can be asked at any time, until the guard goes. A later way of it takes the place.
    pub(super) fn attach(self: &Arc<Self>, caller: Arc<str>, asks: Arc<dyn AskCaller>) -> Attached {
        let number = self.number();
        let key = Arc::clone(&caller);
        self.state().attached.insert(key, (number, asks));
        Attached {
            callers: Arc::clone(self),
            caller,
            number,
        }
    }

    /// A name for one request of that caller by which it listens.
    pub(super) fn listener(&self, caller: &str) -> Arc<str> {
        format!("{caller}/listener-{}", self.number()).into()
    }

    /// That caller wants to be told of changes of a resource.
    ///
    /// # Errors
    /// At a bound: who has too many.
    pub(super) fn subscribe(&self, caller: &Arc<str>, uri: &str) -> Result<(), &'static str> {
        let mut state = self.state();
        let own = state.subscriptions.get(caller);
        if own.is_some_and(|own| own.contains(uri)) {
            return Ok(());
        }
        if own.is_some_and(|own| own.len() >= SUBSCRIPTIONS) {
            return Err("this caller has too many subscriptions");
        }
        let all: usize = state.subscribers.values().sum();
        if all >= SUBSCRIPTIONS_OF_ALL {
            return Err("the callers of this gateway have too many subscriptions");
        }
        let own = state.subscriptions.entry(Arc::clone(caller)).or_default();
        own.insert(uri.to_owned());
        *state.subscribers.entry(uri.to_owned()).or_default() += 1;
        state.unwanted.remove(uri);
        Ok(())
    }

    /// Whether it is told of them already.
    pub(super) fn is_subscribed(&self, caller: &str, uri: &str) -> bool {
        let state = self.state();
        let own = state.subscriptions.get(caller);
        own.is_some_and(|own| own.contains(uri))
    }

    /// It does not want to any more. True when nobody else does either.
    pub(super) fn unsubscribe(&self, caller: &str, uri: &str) -> bool {
        let mut state = self.state();
        state.unsubscribe(caller, uri) || !state.subscribers.contains_key(uri)
    }

    /// It is not there any more to be told of it; the server is told when nobody else is.
    pub(super) fn let_go(&self, caller: &str, uri: &str) {
        let mut state = self.state();
        if state.unsubscribe(caller, uri) {
            state.unwanted(uri.to_owned());
            drop(state);
            self.let_go.notify_one();
        }
    }

    /// Waits for resources that nobody is subscribed to any more, and takes them. For one at a time.
    pub(super) async fn unwanted(&self) -> HashSet<String> {
        loop {
            let unwanted = std::mem::take(&mut self.state().unwanted);
            if !unwanted.is_empty() {
                return unwanted;
            }
            self.let_go.notified().await;
        }
    }

    /// Whether anybody wants to be told of it.
    pub(super) fn is_wanted(&self, uri: &str) -> bool {
        self.state().subscribers.contains_key(uri)
    }

    /// That caller was asked to visit an address, under the server's name for it.
    pub(super) fn visits(&self, caller: &Arc<str>, params: &Value) {
        let Some(id) = params.get("elicitationId").and_then(Value::as_str) else {
            return;
        };
        let mut state = self.state();
        state
            .visits
            .retain(|(known, of)| known != id || of != caller);
        if state.visits.len() >= VISITS {
            state.visits.pop_front();
        }
        state.visits.push_back((id.to_owned(), Arc::clone(caller)));
    }

    /// Everything that somebody is subscribed to.
    pub(super) fn subscribed(&self) -> HashSet<String> {
        let state = self.state();
        state.subscribers.keys().cloned().collect()
    }

    /// Whether a change concerns that caller: changed lists all, resources those who asked for them, the end of a
    /// visit whom it was asked of.
    pub(super) fn concerns(&self, caller: &str, change: &Incoming) -> bool {
        let Incoming::Notification {
            method: name,
            params,
        } = change
        else {
            return false;
        };
        let text = |key: &str| params.get(key).and_then(Value::as_str);
        match name.as_str() {
            method::RESOURCE_UPDATED => {
                let state = self.state();
                let own = state.subscriptions.get(caller);
                own.zip(text("uri"))
                    .is_some_and(|(own, uri)| own.contains(uri))
            }
            method::ELICITATION_COMPLETE => {
                let visit = text("elicitationId");
                let state = self.state();
                let mut visits = state.visits.iter();
                visits.any(|(id, of)| Some(id.as_str()) == visit && &**of == caller)
            }
            _ => true,
        }
    }

    /// That caller is gone for good.
    pub(super) fn forget(&self, caller: &str) {
        let mut state = self.state();
        state.attached.remove(caller);
        state.questions.retain(|_, (of, _)| &**of != caller);
        state.visits.retain(|(_, of)| &**of != caller);
        let own = state.subscriptions.remove(caller);
        for uri in own.into_iter().flatten() {
            if state.one_less(&uri) {
                state.unwanted(uri);
            }
        }
        drop(state);
        self.let_go.notify_one();
    }
}

impl HandOn for Callers {
    /// The one whose requests alone are on their way; without any, the only one that is attached. A request
    /// that waits for its caller's answer is not the one that asks now, unless there is no other. Between
    /// several nobody can tell.
    fn whom(&self) -> Option<Arc<dyn AskCaller>> {
        let state = self.state();
        let asked = |(_, asks): &&Whose| asks.as_ref().is_some_and(|asks| asks.is_asked());
        let all_asked = state.on_the_way.values().all(|whose| asked(&whose));
        let mut on_the_way = state
            .on_the_way
            .values()
            .filter(|whose| all_asked || !asked(whose));
        let Some((caller, asks)) = on_the_way.next() else {
            let mut attached = state.attached.values();
            return match (attached.next(), attached.next()) {
                (Some((_, asks)), None) => Some(Arc::clone(asks)),
                _ => None,
            };
        };
        let alone = on_the_way.all(|(other, _)| other == caller);
        asks.clone().filter(|_| alone)
    }
}

/// Changes as they come.
pub(super) struct Changes(broadcast::Receiver<Incoming>);

impl Changes {
    /// The next change; never ends. One who was too slow is told that all lists changed.
    pub(super) async fn next(&mut self) -> Vec<Incoming> {
        match self.0.recv().await {
            Ok(change) => vec![change],
            Err(broadcast::error::RecvError::Lagged(_)) => [
                method::TOOLS_CHANGED,
                method::PROMPTS_CHANGED,
                method::RESOURCES_CHANGED,
            ]
            .map(|name| Incoming::Notification {
                method: name.to_owned(),
                params: json!({}),
            })
            .into(),
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// A request on its way; its drop ends that.
pub(super) struct OnTheWay {
    callers: Arc<Callers>,
    number: u64,
}

impl Drop for OnTheWay {
    fn drop(&mut self) {
        self.callers.state().on_the_way.remove(&self.number);
    }
}

/// A caller's own way; its drop ends it.
pub(super) struct Attached {
    callers: Arc<Callers>,
    caller: Arc<str>,
    number: u64,
}

impl Drop for Attached {
    fn drop(&mut self) {
        let mut state = self.callers.state();
        let number = state.attached.get(&self.caller).map(|(number, _)| *number);
        if number == Some(self.number) {
            state.attached.remove(&self.caller);
        }
    }
}

/// Asks a caller of the legacy era by requests of our own.
struct ByRequests {
    callers: Arc<Callers>,
    caller: Arc<str>,
    capabilities: Map<String, Value>,
    send: SendTo,
    open: AtomicUsize,
    /// Cancelled when the caller, or the request that it belongs to, is gone.
    gone: CancelToken,
}

/// A question that is open; dropped before its answer, the caller is told that it need not answer.
struct Open<'a> {
    by: &'a ByRequests,
    id: RequestId,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.by.open.fetch_sub(1, Ordering::AcqRel);
        if self.by.callers.state().questions.remove(&self.id).is_some() {
            (self.by.send)(Incoming::Notification {
                method: method::CANCELLED.to_owned(),
                params: json!({"requestId": self.id.to_value()}),
            });
        }
    }
}

#[async_trait]
impl AskCaller for ByRequests {
    fn capabilities(&self) -> &Map<String, Value> {
        &self.capabilities
    }

    fn is_asked(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    async fn ask(&self, name: &str, params: &Value) -> Option<Result<Value, JsonRpcError>> {
        let (sender, answer) = oneshot::channel();
        let id = RequestId::Text(format!("yiem-{}", self.callers.number()).into());
        {
            let mut state = self.callers.state();
            if state.questions.len() >= QUESTIONS {
                return None;
            }
            let own = (Arc::clone(&self.caller), sender);
            state.questions.insert(id.clone(), own);
        }
        self.open.fetch_add(1, Ordering::AcqRel);
        let open = Open { by: self, id };
        let mut params = params.clone();
        // These callers are owed an id of the visit, which 2026-07-28 has no more.
        if params.get("mode").is_some_and(|mode| mode == "url")
            && params.get("elicitationId").is_none()
        {
            params["elicitationId"] = self.callers.env.new_id(IdKind::Message).into();
        }
        // Before it is asked: the news that the visit is over may be there first.
        self.callers.visits(&self.caller, &params);
        let request = IncomingRequest {
            id: open.id.clone(),
            method: name.to_owned(),
            params,
        };
        if !(self.send)(Incoming::Request(request)) {
            // It was never told of, so there is nothing to take back.
            self.callers.state().questions.remove(&open.id);
            return None;
        }
        tokio::select! {
            answer = answer => answer.ok(),
            () = self.gone.cancelled() => None,
            () = self.callers.env.sleep(ANSWER_TIME) => None,
        }
    }
}

#[cfg(test)]
mod tests;
