//! Calls of the stateless era that wait for their caller's answers between two of its requests.
//!
//! Knows: which calls are held and under what name, for how long, what they asked. Does not know: who
//! carries the requests, or what a call does.

use super::callers::{ANSWER_TIME, SendTo};
use crate::jsonrpc::{Incoming, JsonRpcError};
use crate::protocol::{meta_key, method};
use crate::responder::AskCaller;
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use yiem_core::{BoxFuture, CancelToken, Env, IdKind};

/// How many calls may be held at once; more are not asked for.
const HELD: usize = 1_024;
/// How many questions of one call may wait for being asked.
const QUESTIONS: usize = 64;
/// The requests that may be answered with a wish for input.
const ASKING: [&str; 3] = [
    method::TOOLS_CALL,
    method::PROMPTS_GET,
    method::RESOURCES_READ,
];

/// Whether a request of this method may be answered with a wish for input.
pub(super) fn may_ask(name: &str) -> bool {
    ASKING.contains(&name)
}

/// The calls that are held.
pub(super) struct HeldCalls {
    /// Begins the state of every call that is held here.
    name: String,
    calls: Mutex<HashMap<String, (Duration, Call)>>,
    env: Arc<dyn Env>,
}

/// A call that can be held.
pub(super) struct Call {
    /// What is repeated when the call is made again.
    same: Same,
    pub(super) work: BoxFuture<'static, Result<Value, JsonRpcError>>,
    pub(super) cancel: CancelToken,
    way: Arc<Way>,
    questions: mpsc::Receiver<Question>,
    open: Vec<Question>,
}

/// What says that a request is the same call again.
#[derive(PartialEq)]
struct Same {
    method: String,
    name: Option<Value>,
    arguments: Option<Value>,
}

impl Same {
    fn of(name: &str, params: &Map<String, Value>) -> Self {
        Self {
            method: name.to_owned(),
            name: params.get("name").or_else(|| params.get("uri")).cloned(),
            arguments: params.get("arguments").cloned(),
        }
    }
}

/// Something that a call wants to know.
struct Question {
    /// Its name in the wish.
    key: String,
    method: String,
    params: Value,
    answer: oneshot::Sender<Result<Value, JsonRpcError>>,
}

/// The way back to a caller, which is another with each of its requests.
pub(super) struct Way(Mutex<(SendTo, Option<Value>, Option<Value>)>);

impl Way {
    fn lock(&self) -> MutexGuard<'_, (SendTo, Option<Value>, Option<Value>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message on the way as it is now, progress under the token as it is now.
    pub(super) fn send(&self, mut message: Incoming) {
        let (send, first, now) = {
            let way = self.lock();
            (Arc::clone(&way.0), way.1.clone(), way.2.clone())
        };
        if first != now
            && let Incoming::Notification {
                method: name,
                params: Value::Object(params),
            } = &mut message
            && name == method::PROGRESS
        {
            let Some(now) = now else { return };
            params.insert(meta_key::PROGRESS_TOKEN.into(), now);
        }
        send(message);
    }
}

fn token(params: &Map<String, Value>) -> Option<Value> {
    params.get("_meta")?.get(meta_key::PROGRESS_TOKEN).cloned()
}

/// Asks a caller of the stateless era: the question waits in the call until it is told in a result.
struct ByRounds {
    capabilities: Map<String, Value>,
    asked: AtomicU64,
    open: AtomicUsize,
    questions: mpsc::Sender<Question>,
}

/// A question that is open.
struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[async_trait]
impl AskCaller for ByRounds {
    fn capabilities(&self) -> &Map<String, Value> {
        &self.capabilities
    }

    fn is_asked(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    async fn ask(&self, name: &str, params: &Value) -> Option<Result<Value, JsonRpcError>> {
        let (sender, answer) = oneshot::channel();
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let question = Question {
            key: format!("q{number}"),
            method: name.to_owned(),
            params: params.clone(),
            answer: sender,
        };
        self.open.fetch_add(1, Ordering::AcqRel);
        let _open = Open(&self.open);
        self.questions.try_send(question).ok()?;
        answer.await.ok()
    }
}

/// The beginnings of a call: what its work needs to have.
pub(super) struct Beginning {
    same: Same,
    pub(super) way: Arc<Way>,
    pub(super) asks: Arc<dyn AskCaller>,
    questions: mpsc::Receiver<Question>,
}

impl Beginning {
    pub(super) fn new(
        name: &str,
        params: &Map<String, Value>,
        capabilities: Map<String, Value>,
        send: SendTo,
    ) -> Self {
        let (questions, asked) = mpsc::channel(QUESTIONS);
        let token = token(params);
        Self {
            same: Same::of(name, params),
            way: Arc::new(Way(Mutex::new((send, token.clone(), token)))),
            asks: Arc::new(ByRounds {
                capabilities,
                asked: AtomicU64::new(0),
                open: AtomicUsize::new(0),
                questions,
            }),
            questions: asked,
        }
    }

    pub(super) fn call(
        self,
        work: BoxFuture<'static, Result<Value, JsonRpcError>>,
        cancel: CancelToken,
    ) -> Call {
        Call {
            same: self.same,
            work,
            cancel,
            way: self.way,
            questions: self.questions,
            open: Vec::new(),
        }
    }
}

/// What a call came to.
pub(super) enum Course {
    /// Its end.
    Answered(Result<Value, JsonRpcError>),
    /// It wants to know something first.
    Asks,
}

impl Call {
    /// Goes on until there is an answer, or a question.
    pub(super) async fn go_on(&mut self) -> Course {
        // What was taken back meanwhile is not asked for again.
        self.open.retain(|question| !question.answer.is_closed());
        if self.still_asks() {
            return Course::Asks;
        }
        tokio::select! {
            biased;
            answer = &mut self.work => Course::Answered(answer),
            Some(question) = self.questions.recv() => {
                self.open.push(question);
                while let Ok(question) = self.questions.try_recv() {
                    self.open.push(question);
                }
                Course::Asks
            }
        }
    }

    /// Nobody will answer what is open.
    pub(super) fn give_up_questions(&mut self) {
        self.open.clear();
    }

    /// Whether something that was asked is not answered yet: it is asked for again.
    fn still_asks(&self) -> bool {
        !self.open.is_empty()
    }

    fn wishes(&self) -> Value {
        self.open
            .iter()
            .map(|question| {
                let wish = match &question.params {
                    Value::Null => json!({"method": question.method}),
                    params => json!({"method": question.method, "params": params}),
                };
                (question.key.clone(), wish)
            })
            .collect::<Map<_, _>>()
            .into()
    }

    fn take_answers(&mut self, params: &Map<String, Value>) {
        let answers = params.get("inputResponses").and_then(Value::as_object);
        for question in std::mem::take(&mut self.open) {
            match answers.and_then(|all| all.get(&question.key)) {
                Some(answer) => drop(question.answer.send(Ok(answer.clone()))),
                None => self.open.push(question),
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// What the state that a request names says of it.
pub(super) enum Found {
    /// It is a call that was held.
    Held(Box<Call>),
    /// It is one that was held once, or another call than the one that was.
    Gone(JsonRpcError),
    /// It is a new call; its state, if it has any, belongs to the server.
    New,
}

impl HeldCalls {
    pub(super) fn new(env: Arc<dyn Env>) -> Self {
        Self {
            name: format!("yiem-held-{}-", env.new_id(IdKind::Message)),
            calls: Mutex::default(),
            env,
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, (Duration, Call)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a call until its caller is back with answers. The result for the caller; at the bound the call
    /// comes back, to go on without.
    pub(super) fn hold(&self, call: Call) -> Result<Value, Box<Call>> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        self.purge();
        let mut calls = self.calls();
        if calls.len() >= HELD {
            return Err(Box::new(call));
        }
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        // Whoever knows it can answer: it cannot be guessed.
        let state = format!("{}{number}-{}", self.name, self.env.new_id(IdKind::Message));
        let result = json!({
            "resultType": "input_required",
            "inputRequests": call.wishes(),
            "requestState": state,
        });
        calls.insert(state, (self.env.elapsed(), call));
        Ok(result)
    }

    /// Finds the call that a request goes on with, and gives it the answers that came.
    pub(super) fn find(&self, name: &str, params: &Map<String, Value>, send: SendTo) -> Found {
        let state = params.get("requestState").and_then(Value::as_str);
        let Some(state) = state.filter(|state| state.starts_with(&self.name)) else {
            return Found::New;
        };
        self.purge();
        let mut calls = self.calls();
        let refused =
            |why: &str| Found::Gone(JsonRpcError::new(crate::jsonrpc::INVALID_PARAMS, why));
        match calls.get(state) {
            None => refused(
                "this call is not held any more: it was answered, was given up, or waited too long",
            ),
            Some((_, call)) if call.same != Same::of(name, params) => {
                refused("requestState belongs to another call")
            }
            Some(_) => {
                let Some((_, mut call)) = calls.remove(state) else {
                    return Found::New;
                };
                drop(calls);
                {
                    let mut way = call.way.lock();
                    way.0 = send;
                    way.2 = token(params);
                }
                call.take_answers(params);
                Found::Held(Box::new(call))
            }
        }
    }

    /// Gives up the calls whose callers did not come back.
    pub(super) fn purge(&self) {
        let now = self.env.elapsed();
        let late: Vec<Call> = {
            let mut calls = self.calls();
            let late: Vec<String> = calls
                .iter()
                .filter(|(_, (since, _))| now.saturating_sub(*since) >= ANSWER_TIME)
                .map(|(state, _)| state.clone())
                .collect();
            late.into_iter()
                .filter_map(|state| calls.remove(&state).map(|(_, call)| call))
                .collect()
        };
        // What their end does, it does without the lock.
        drop(late);
    }

    /// How many are held.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.calls().len()
    }
}
