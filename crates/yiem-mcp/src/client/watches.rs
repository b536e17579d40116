//! Changes of single resources of a modern server: one request that listens for all of them.
//!
//! Knows: which resources are wanted, which of them the server tells of, and when the request has to be made anew.
//! Does not know: who wants them. (A legacy server takes a request for each, and nothing is kept here.)

use super::request::{Course, Sending};
use super::session::Session;
use super::{McpEvent, Shared};
use crate::dialect::Dialect;
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{Answer, AnswerOutcome, INVALID_PARAMS, JsonRpcError, RequestId};
use crate::protocol::{meta_key, method};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;

const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The word for single resources in a wish to listen.
const RESOURCES: &str = "resourceSubscriptions";

/// The resources of one server whose changes somebody wants to be told of.
pub(crate) struct Watches(watch::Sender<State>);

impl Default for Watches {
    fn default() -> Self {
        Self(watch::Sender::new(State::default()))
    }
}

#[derive(Default)]
struct State {
    wanted: BTreeSet<String>,
    /// What the server said of those that it was asked for: whether it tells of them.
    told: BTreeMap<String, bool>,
    /// The connection on which a task listens, if one does.
    on: Option<u64>,
    /// The last request to listen, until the server has said what it tells of: its id, and the resources.
    asked: Option<(i64, BTreeSet<String>)>,
}

impl State {
    /// Whether a request for these resources is all that is needed.
    fn suits(&self, uris: &BTreeSet<String>) -> bool {
        self.wanted == *uris && self.wanted.iter().all(|uri| self.told.contains_key(uri))
    }

    fn end(&mut self, session: u64) -> bool {
        let own = self.on == Some(session);
        if own {
            self.on = None;
            self.asked = None;
        }
        own
    }

    fn answered(&mut self, tells: impl Fn(&str) -> bool) {
        let Some((_, uris)) = self.asked.take() else {
            return;
        };
        for uri in uris.into_iter().filter(|uri| self.wanted.contains(uri)) {
            let tells = tells(&uri);
            self.told.insert(uri, tells);
        }
    }
}

impl Watches {
    /// Takes the first message of a stream: what the server tells of on it.
    pub(super) fn acknowledged(&self, params: &Value) {
        let granted = params
            .get("notifications")
            .and_then(|granted| granted.get(RESOURCES));
        let id = params
            .get("_meta")
            .and_then(|meta| meta.get(meta_key::SUBSCRIPTION_ID))
            .and_then(RequestId::from_value);
        self.0.send_if_modified(|state| {
            let Some((asked, _)) = &state.asked else {
                return false;
            };
            let own = match id {
                Some(RequestId::Number(id)) => id == *asked,
                Some(RequestId::Text(id)) => id.parse() == Ok(*asked),
                // Only one that names resources can be meant.
                None => granted.is_some(),
            };
            if own {
                let granted = granted.and_then(Value::as_array);
                let uris = || granted.into_iter().flatten().filter_map(Value::as_str);
                state.answered(|uri| uris().any(|granted| granted == uri));
            }
            own
        });
    }

    /// Wants a resource on that connection. Whether a task has to be begun for it.
    fn want(&self, uri: &str, session: u64) -> bool {
        let mut begin = false;
        self.0.send_modify(|state| {
            begin = state.on != Some(session);
            if begin {
                // Another connection knows nothing of what was said on the last.
                state.told.clear();
                state.asked = None;
                state.on = Some(session);
            }
            state.wanted.insert(uri.to_owned());
        });
        begin
    }

    fn leave(&self, uri: &str) {
        self.0.send_modify(|state| {
            state.wanted.remove(uri);
            state.told.remove(uri);
        });
    }

    /// What the task of that connection has to ask for; none where it has come to its end: nothing is wanted, or
    /// the connection is gone. Whoever wants something after that begins another.
    fn next(&self, session: u64, lasts: bool) -> Option<BTreeSet<String>> {
        let mut next = None;
        self.0.send_if_modified(|state| {
            if lasts && state.on == Some(session) && !state.wanted.is_empty() {
                next = Some(state.wanted.clone());
            }
            next.is_none() && state.end(session)
        });
        next
    }

    /// The task of that connection has come to its end.
    fn end(&self, session: u64) {
        self.0.send_if_modified(|state| state.end(session));
    }
}

/// A request that listens, and is given up when it is dropped.
struct Listening {
    client: Weak<Shared>,
    id: i64,
    dialect: Dialect,
    uris: BTreeSet<String>,
    answer: BoxFuture<'static, Result<Answer, McpError>>,
    ended: bool,
}

impl Listening {
    /// Asks for these resources, on the way that the next call of `answer` goes.
    fn new(client: &Arc<Shared>, session: &Session, uris: BTreeSet<String>) -> Self {
        let mut params = Map::new();
        params.insert("notifications".into(), json!({RESOURCES: uris}));
        let dialect = session.dialect;
        let sending = Sending::new(method::LISTEN, params, dialect, session.inbox.clone());
        let (id, exchange) = sending.into_numbered_exchange(client);
        let transport = Arc::clone(&client.transport);
        client
            .watches
            .0
            .send_modify(|state| state.asked = Some((id, uris.clone())));
        Self {
            client: Arc::downgrade(client),
            id,
            dialect,
            uris,
            answer: Box::pin(async move { transport.exchange(exchange).await }),
            ended: false,
        }
    }

    async fn end(&mut self) -> Result<Answer, McpError> {
        let answer = (&mut self.answer).await;
        self.ended = true;
        answer
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // What cancels by closing does it now.
        self.answer = Box::pin(std::future::pending());
        if !self.ended
            && let Some(client) = self.client.upgrade()
        {
            client.tell_given_up(self.id, self.dialect, "it listens for other resources now");
        }
    }
}

/// The end of the last request, if there is one.
async fn end_of(last: &mut Option<Listening>) {
    match last {
        Some(listening) => {
            let _ = listening.end().await;
        }
        None => std::future::pending().await,
    }
}

impl Shared {
    /// Wants to be told of changes of a resource; ends when the server has said whether it tells of them.
    pub(super) async fn watch_resource(
        self: &Arc<Self>,
        session: &Arc<Session>,
        uri: &str,
        course: &Course,
    ) -> Result<Value, McpError> {
        let mut states = self.watches.0.subscribe();
        if self.watches.want(uri, session.number) {
            self.watch(session);
        }
        let number = session.number;
        let said = |state: &State| state.on != Some(number) || state.told.contains_key(uri);
        let told = tokio::select! {
            state = states.wait_for(said) => state.ok().and_then(|state| state.told.get(uri).copied()),
            // Others may still wait for the same.
            () = course.cancel.cancelled() => return Err(McpError::cancelled()),
            () = self.env.sleep(course.timeout) => {
                self.watches.leave(uri);
                let (after, hard_cap) = (course.timeout, false);
                return Err(McpError::new(McpErrorKind::TimedOut { after, hard_cap }));
            }
        };
        match told {
            Some(true) => Ok(json!({})),
            Some(false) => {
                self.watches.leave(uri);
                let why = "the server does not tell of changes of this resource";
                Err(JsonRpcError::new(INVALID_PARAMS, why).into())
            }
            None => Err(McpError::lost("the connection to the server is gone")),
        }
    }

    /// Does not want to be told of changes of a resource any more.
    pub(super) fn unwatch_resource(&self, uri: &str) {
        self.watches.leave(uri);
    }

    /// Listens as long as something is wanted, and this connection lasts.
    fn watch(self: &Arc<Self>, session: &Arc<Session>) {
        let weak = Arc::downgrade(self);
        let session = Arc::clone(session);
        let mut states = self.watches.0.subscribe();
        let env = Arc::clone(&self.env);
        self.tasks.spawn(async move {
            let mut wait = FIRST_WAIT;
            let mut missed = false;
            // Listens on until the next one is known to.
            let mut last: Option<Listening> = None;
            loop {
                let mut listening = {
                    let Some(client) = weak.upgrade() else { return };
                    states.mark_unchanged();
                    let current = client.sessions.current();
                    let lasts = current.is_some_and(|current| current.number == session.number);
                    let Some(wanted) = client.watches.next(session.number, lasts) else {
                        return;
                    };
                    Listening::new(&client, &session, wanted)
                };
                let began = env.elapsed();
                let broke = loop {
                    tokio::select! {
                        answer = listening.end() => break Some(answer),
                        () = end_of(&mut last) => last = None,
                        changed = states.changed() => {
                            if changed.is_err() {
                                return;
                            }
                            let (said, other) = {
                                let state = states.borrow_and_update();
                                (state.asked.is_none(), !state.suits(&listening.uris))
                            };
                            if !said {
                                continue;
                            }
                            last = None;
                            if std::mem::take(&mut missed) {
                                let Some(client) = weak.upgrade() else { return };
                                for uri in &listening.uris {
                                    client.tell(McpEvent::ResourceUpdated(json!({"uri": uri})));
                                }
                            }
                            if other {
                                break None;
                            }
                        }
                    }
                };
                let Some(answer) = broke else {
                    last = Some(listening);
                    continue;
                };
                last = None;
                match answer {
                    Ok(answer) if matches!(answer.outcome, AnswerOutcome::Error(_)) => {
                        tracing::debug!(outcome = ?answer.outcome, "a server does not let us listen for resources");
                        let Some(client) = weak.upgrade() else { return };
                        client.watches.0.send_modify(|state| state.answered(|_| false));
                        client.watches.end(session.number);
                        return;
                    }
                    Ok(_) => {}
                    Err(error) => tracing::debug!(%error, "a stream of resources' changes broke off"),
                }
                missed = true;
                if env.elapsed().saturating_sub(began) > LONGEST_WAIT {
                    wait = FIRST_WAIT;
                }
                env.sleep(wait.mul_f64(0.5 + env.random())).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        });
    }
}
