//! One request: its deadline, its progress, its end.

use super::Shared;
use super::inbox::asked;
use super::session::Session;
use crate::correlate::{Deadline, DeadlineState};
use crate::dialect::Dialect;
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{AnswerOutcome, Incoming, RequestId};
use crate::protocol::{meta_key, method};
use crate::responder::AskCaller;
use crate::transport::{CancelStyle, Exchange, Inbox, Notice, Receiver};
use futures_util::FutureExt as _;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use yiem_core::{CancelToken, ProgressSink, SessionId};

/// How long the server is given to take the news that a request is given up.
const CANCEL_NOTICE_TIME: Duration = Duration::from_secs(2);
/// How long the end of a request waits for those to stop who were asked in its course.
const SETTLE_TIME: Duration = Duration::from_millis(500);
/// The requests in whose course a legacy server asks a person or a model.
const ASKING: [&str; 3] = [
    method::TOOLS_CALL,
    method::PROMPTS_GET,
    method::RESOURCES_READ,
];

/// What a request is made of.
pub(crate) struct Sending {
    pub(crate) method: &'static str,
    pub(crate) params: Map<String, Value>,
    pub(crate) dialect: Dialect,
    pub(crate) inbox: Inbox,
    pub(crate) param_headers: Vec<(String, String)>,
    pub(crate) course: Course,
    /// What whoever this request is made for can do, in place of what this client can.
    pub(crate) capabilities: Option<Map<String, Value>>,
    /// Who is asked first when the server asks something on this request's own way.
    pub(crate) asks: Option<Arc<dyn AskCaller>>,
}

/// What a request says, written for the session that it goes out on.
pub(crate) struct Written {
    pub(crate) params: Map<String, Value>,
    pub(crate) param_headers: Vec<(String, String)>,
}

/// How a request goes on its way: for how long, for whom.
#[derive(Clone)]
pub(crate) struct Course {
    pub(crate) timeout: Duration,
    pub(crate) hard_cap: Duration,
    pub(crate) cancel: CancelToken,
    pub(crate) progress: Option<Arc<dyn ProgressSink>>,
    pub(crate) wants_progress: bool,
    pub(crate) session_id: Option<SessionId>,
    pub(crate) trace: Arc<[(String, String)]>,
}

impl Course {
    pub(crate) fn quiet(timeout: Duration, cancel: CancelToken) -> Self {
        Self {
            timeout,
            hard_cap: timeout,
            cancel,
            progress: None,
            wants_progress: false,
            session_id: None,
            trace: Arc::default(),
        }
    }
}

impl Sending {
    pub(crate) fn new(
        method: &'static str,
        params: Map<String, Value>,
        dialect: Dialect,
        inbox: Inbox,
    ) -> Self {
        Self {
            method,
            params,
            dialect,
            inbox,
            param_headers: Vec::new(),
            course: Course::quiet(Duration::MAX, CancelToken::new()),
            capabilities: None,
            asks: None,
        }
    }

    /// This request under a new id, for whoever drives the exchange alone.
    pub(crate) fn into_exchange(self, client: &Shared) -> Exchange {
        self.into_numbered_exchange(client).1
    }

    /// The same, and the id.
    pub(crate) fn into_numbered_exchange(self, client: &Shared) -> (i64, Exchange) {
        let (id, inbox) = (client.next_id(), self.inbox.clone());
        (id, self.exchange(client, id, inbox))
    }

    fn exchange(self, client: &Shared, id: i64, inbox: Inbox) -> Exchange {
        let mut params = self.params;
        if self.dialect != Dialect::Bare {
            let mut meta = match params.shift_remove("_meta") {
                Some(Value::Object(meta)) => meta,
                _ => Map::new(),
            };
            if let Dialect::Modern(version) = self.dialect {
                meta.insert(meta_key::PROTOCOL_VERSION.into(), version.as_str().into());
                meta.insert(meta_key::CLIENT_INFO.into(), client.client_info());
                meta.insert(
                    meta_key::CLIENT_CAPABILITIES.into(),
                    Value::Object(self.capabilities.unwrap_or_else(|| client.capabilities())),
                );
            }
            if self.course.wants_progress {
                meta.insert(meta_key::PROGRESS_TOKEN.into(), id.into());
            }
            for (key, value) in &*self.course.trace {
                meta.insert(key.clone(), value.as_str().into());
            }
            if !meta.is_empty() {
                params.insert("_meta".into(), Value::Object(meta));
            }
        }
        Exchange {
            id: RequestId::Number(id),
            method: self.method.into(),
            params,
            dialect: self.dialect,
            param_headers: self.param_headers,
            session_id: self.course.session_id,
            trace: self.course.trace,
            cancel: self.course.cancel,
            inbox,
        }
    }
}

/// A request without deadline or progress; whoever awaits it has them.
pub(crate) async fn raw_exchange(
    client: &Shared,
    sending: Sending,
) -> Result<AnswerOutcome, McpError> {
    client
        .transport
        .exchange(sending.into_exchange(client))
        .await
        .map(|answer| answer.outcome)
}

/// The requests that are on their way and want to hear of progress.
#[derive(Default)]
pub(crate) struct InFlight {
    listening: Mutex<BTreeMap<i64, Arc<Listening>>>,
}

/// One request that wants to hear of progress. As an inbox: progress that comes on the request's own way
/// back is its own, whatever its token, and so is a question.
pub(crate) struct Listening {
    id: i64,
    /// Whether a server may ask something in the course of it.
    may_ask: bool,
    client: Weak<Shared>,
    session: u64,
    /// Who is asked first by a question that comes on its way.
    asks: Option<Arc<dyn AskCaller>>,
    sink: Option<Arc<dyn ProgressSink>>,
    heard: Notify,
    /// Where everything else goes.
    rest: Inbox,
}

impl Listening {
    fn hear(&self, mut params: Value) {
        self.heard.notify_one();
        if let Some(sink) = &self.sink {
            if let Some(object) = params.as_object_mut() {
                object.shift_remove(meta_key::PROGRESS_TOKEN);
                object.shift_remove("_meta");
            }
            sink.offer(params);
        }
    }
}

impl InFlight {
    fn map(&self) -> MutexGuard<'_, BTreeMap<i64, Arc<Listening>>> {
        self.listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The time for silence of all that are on their way begins anew.
    pub(super) fn begin_anew(&self) {
        for listening in self.map().values() {
            listening.heard.notify_one();
        }
    }

    /// Those in whose course a server asks, where it does not say in which.
    pub(super) fn may_ask(&self) -> BTreeSet<i64> {
        let map = self.map();
        let may_ask = map.iter().filter(|(_, listening)| listening.may_ask);
        may_ask.map(|(id, _)| *id).collect()
    }

    /// Takes a progress notification; one for a request that is over, or for none, is dropped.
    pub(crate) fn progress(&self, params: Value) {
        let token = params
            .get(meta_key::PROGRESS_TOKEN)
            .and_then(RequestId::from_value);
        let number = match token {
            Some(RequestId::Number(number)) => Some(number),
            Some(RequestId::Text(text)) => text.parse().ok(),
            None => None,
        };
        let listening = number.and_then(|number| self.map().get(&number).cloned());
        if let Some(listening) = listening {
            listening.hear(params);
        }
    }
}

impl Receiver for Listening {
    fn message(&self, message: Incoming) {
        match message {
            Incoming::Notification {
                method: name,
                params,
            } if name == method::PROGRESS => self.hear(params),
            Incoming::Request(request) => {
                if let Some(client) = self.client.upgrade() {
                    let own = || BTreeSet::from([self.id]);
                    asked(&client, self.session, request, self.asks.clone(), own);
                }
            }
            other => self.rest.message(other),
        }
    }

    fn closed(&self, reason: McpError) {
        self.rest.closed(reason);
    }
}

/// What is owed when a request is left: its progress ends, and the server is told unless it answered.
struct Leaving<'a> {
    client: &'a Arc<Shared>,
    id: i64,
    dialect: Dialect,
    /// Whether it stands among those in flight.
    listed: bool,
    answered: bool,
    reason: &'static str,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if self.listed {
            self.client.in_flight.map().remove(&self.id);
        }
        if !self.answered {
            self.client
                .tell_given_up(self.id, self.dialect, self.reason);
        }
        // What the server wanted to know for it, it does not need to know any more.
        self.client.questions.call_ended(self.id);
    }
}

impl Shared {
    /// Tells the server that a request is given up, where its dialect and the way to it have a word for that.
    pub(super) fn tell_given_up(self: &Arc<Self>, id: i64, dialect: Dialect, reason: &str) {
        let tell = match dialect {
            Dialect::Bare => false,
            Dialect::Legacy(_) => true,
            Dialect::Modern(_) => self.transport.profile().modern_cancel == CancelStyle::Notify,
        };
        if !tell {
            return;
        }
        let mut params = Map::new();
        params.insert("requestId".into(), json!(id));
        params.insert("reason".into(), reason.into());
        let notice = Notice::new(method::CANCELLED, params, dialect);
        let transport = Arc::clone(&self.transport);
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let mut telling = Box::pin(async move { transport.notify(notice).await });
        // Tried once in place, so that it goes out before whatever is sent next.
        if (&mut telling).now_or_never().is_some() {
            return;
        }
        let too_long = self.env.sleep(CANCEL_NOTICE_TIME);
        self.tasks.spawn(async move {
            tokio::select! {
                _ = telling => {}
                () = too_long => {}
            }
        });
    }

    /// Sends one request and waits for its result, within its deadline, unless it is cancelled.
    pub(crate) async fn send(
        self: &Arc<Self>,
        session: &Session,
        sending: Sending,
    ) -> Result<Value, McpError> {
        let id = self.next_id();
        let Course {
            timeout, hard_cap, ..
        } = sending.course;
        let cancel = sending.course.cancel.clone();
        let listening = Arc::new(Listening {
            id,
            may_ask: ASKING.contains(&sending.method),
            client: Arc::downgrade(self),
            session: session.number,
            asks: sending.asks.clone(),
            sink: sending.course.progress.clone(),
            heard: Notify::new(),
            rest: sending.inbox.clone(),
        });
        // Without metadata there is no token; progress comes on the exchange's own way, if it comes.
        // Where the server can ask us something, its question keeps the request alive.
        let listed = session.dialect.is_legacy()
            || (sending.course.wants_progress && session.dialect != Dialect::Bare);
        if listed {
            self.in_flight.map().insert(id, Arc::clone(&listening));
        }
        let inbox = Inbox::new(Arc::clone(&listening) as Arc<dyn Receiver>);
        let name = sending.method;
        let exchange = sending.exchange(self, id, inbox);
        // What the transport knows of its connection explains a silence (M-7).
        let timed_out = |after, hard_cap| -> Result<AnswerOutcome, McpError> {
            let trouble = self.transport.trouble(name, after).unwrap_or_default();
            Err(McpError::new(McpErrorKind::TimedOut { after, hard_cap }).with_note(trouble))
        };
        let mut leaving = Leaving {
            client: self,
            id,
            dialect: session.dialect,
            listed,
            answered: false,
            reason: "the caller gave up",
        };
        let mut now = self.env.elapsed();
        let mut deadline = Deadline::new(now, timeout, hard_cap);
        let mut answering = self.transport.exchange(exchange);
        let outcome = loop {
            let wait = match deadline.state(now) {
                DeadlineState::Running(wait) => wait,
                DeadlineState::Idle(_) if self.questions.any() => {
                    deadline.renew(now);
                    match deadline.state(now) {
                        DeadlineState::Running(wait) => wait,
                        _ => break timed_out(hard_cap, true),
                    }
                }
                DeadlineState::Idle(after) => {
                    leaving.reason = "no answer in time";
                    break timed_out(after, false);
                }
                DeadlineState::HardCap(after) => {
                    leaving.reason = "no answer in time";
                    break timed_out(after, true);
                }
            };
            // Most end without it: the one that waits is taken over from the last.
            let mut timer = self.timer.take(&*self.env, now, wait);
            tokio::select! {
                biased;
                answer = &mut answering => {
                    leaving.answered = true;
                    self.timer.keep(timer);
                    break answer.map(|answer| answer.outcome);
                }
                () = cancel.cancelled() => {
                    self.timer.keep(timer);
                    break Err(McpError::cancelled());
                }
                () = listening.heard.notified() => {
                    self.timer.keep(timer);
                    now = self.env.elapsed();
                    deadline.renew(now);
                }
                () = &mut timer => now = self.env.elapsed(),
            }
        };
        // The exchange goes first: a transport that cancels by closing does it now.
        drop(answering);
        drop(leaving);
        // Whoever was asked in its course is told before the caller hears of the end.
        if self.questions.any() {
            tokio::select! {
                () = self.questions.settled() => {}
                () = self.env.sleep(SETTLE_TIME) => {}
            }
        }
        match outcome? {
            AnswerOutcome::Result(result) => {
                self.sessions.was_of_use();
                Ok(result)
            }
            AnswerOutcome::Error(error) => {
                self.sessions.was_of_use();
                Err(error.into())
            }
            AnswerOutcome::Malformed(what) => Err(McpError::unreadable(what)),
        }
    }

    /// Sends a request on the open connection, opening one if need be. A request that was certainly not
    /// sent, because the connection turned out to be gone, is sent once more on a new one (M-5, M-7).
    pub(crate) async fn request(
        self: &Arc<Self>,
        name: &'static str,
        course: &Course,
        write: &(dyn Fn(&Session) -> Written + Send + Sync),
    ) -> Result<(Arc<Session>, Value), McpError> {
        let mut again = true;
        loop {
            let session = self.session(&course.cancel).await?;
            let Written {
                params,
                param_headers,
            } = write(&session);
            let sending = Sending {
                method: name,
                params,
                dialect: session.dialect,
                inbox: session.inbox.clone(),
                param_headers,
                course: course.clone(),
                capabilities: None,
                asks: None,
            };
            match self.send(&session, sending).await {
                Ok(result) => return Ok((session, result)),
                Err(error) => {
                    if error.ends_connection() {
                        self.session_ended(&session, &error);
                    }
                    if again && matches!(error.kind(), McpErrorKind::NotSent(_)) {
                        again = false;
                        continue;
                    }
                    return Err(error.at(&self.name));
                }
            }
        }
    }
}
