//! Requests of others, handed on as they are: what the gateway needs of a client.
//!
//! Knows: how a request that came from elsewhere goes out on this connection, and how its messages come
//! back. Does not know: who asked, or in which dialect.

use super::request::{Course, Sending};
use super::session::Session;
use super::{HandOn, McpClient, Shared};
use crate::dialect::Dialect;
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::Incoming;
use crate::protocol::{ServerFacts, method, values_for_headers};
use crate::responder::AskCaller;
use crate::transport::{Inbox, Notice, Receiver};
use serde_json::{Map, Value};
use std::sync::Arc;
use yiem_core::{CancelToken, ProgressSink, SessionId};

/// The methods that are handed on.
const HANDED_ON: [&str; 11] = [
    method::TOOLS_LIST,
    method::TOOLS_CALL,
    method::PROMPTS_LIST,
    method::PROMPTS_GET,
    method::RESOURCES_LIST,
    method::RESOURCE_TEMPLATES_LIST,
    method::RESOURCES_READ,
    method::SUBSCRIBE,
    method::UNSUBSCRIBE,
    "completion/complete",
    "logging/setLevel",
];

/// Takes a notification: its method and its parameters.
pub(crate) type Notified = Arc<dyn Fn(&str, &Value) + Send + Sync>;

/// A request of someone else.
#[derive(Clone)]
pub(crate) struct Relayed {
    pub(crate) method: &'static str,
    pub(crate) params: Map<String, Value>,
    pub(crate) progress: Option<Arc<dyn ProgressSink>>,
    /// Takes notifications, other than progress, that belong to the request.
    pub(crate) notified: Notified,
    pub(crate) cancel: CancelToken,
    pub(crate) session_id: Option<SessionId>,
    /// Who is asked when the server asks something in the course of this request.
    pub(crate) asks: Option<Arc<dyn AskCaller>>,
    /// What a modern server is told that the client can do, beside what this one can.
    pub(crate) capabilities: Map<String, Value>,
}

/// The name of a method that is handed on.
pub(crate) fn handed_on(name: &str) -> Option<&'static str> {
    HANDED_ON.into_iter().find(|known| *known == name)
}

impl McpClient {
    /// Dialect and facts of the open connection; opens one if need be.
    pub(crate) async fn facts(
        &self,
        cancel: &CancelToken,
    ) -> Result<(Dialect, ServerFacts), McpError> {
        let session = self.shared().session(cancel).await?;
        Ok((session.dialect, session.facts.clone()))
    }

    /// Lets someone else answer the server's questions first. Before the connection is opened, so that
    /// what they may be able to do is declared.
    pub(crate) fn hand_questions_on(&self, hand_on: Arc<dyn HandOn>) {
        // A second one comes too late: a client has one gateway.
        let _ = self.shared().hand_on.set(hand_on);
    }

    /// Answers the wishes of an input-required result: by that caller where it can, else as this client is
    /// configured. What comes back goes into the parameters of the same request.
    pub(crate) async fn answer_wishes(
        &self,
        result: &Value,
        asks: Option<&Arc<dyn AskCaller>>,
    ) -> Result<Map<String, Value>, McpError> {
        self.shared().gather_input(result, asks).await
    }

    /// How often a server may ask before it answers.
    pub(crate) fn max_rounds(&self) -> usize {
        self.shared().config.max_rounds
    }

    /// Tells the server something, if a connection is open.
    pub(crate) async fn tell(&self, name: &'static str, params: Map<String, Value>) {
        let shared = self.shared();
        let Some(session) = shared.sessions.current() else {
            return;
        };
        let telling = shared
            .transport
            .notify(Notice::new(name, params, session.dialect));
        if let Err(error) = telling.await {
            tracing::debug!(%error, method = name, "a notification was not handed on");
        }
    }

    /// Sends a request of someone else and gives its result as it came, whatever its kind.
    pub(crate) async fn relay(&self, relayed: Relayed) -> Result<Value, McpError> {
        let shared = self.shared();
        let timeouts = shared.config.timeouts;
        let timeout = match relayed.method {
            method::TOOLS_CALL => timeouts
                .call
                .unwrap_or_else(|| shared.transport.profile().call_timeout),
            _ => timeouts.list,
        };
        let course = Course {
            timeout,
            hard_cap: timeouts.hard_cap.max(timeout),
            cancel: relayed.cancel.clone(),
            wants_progress: relayed.progress.is_some(),
            progress: relayed.progress.clone(),
            session_id: relayed.session_id.clone(),
            trace: Arc::default(),
        };
        let mut again = true;
        loop {
            let session = shared.session(&relayed.cancel).await?;
            if session.dialect.is_modern()
                && let Some(uri) = relayed.params.get("uri").and_then(Value::as_str)
            {
                // What is a request each to a legacy server is one that listens to a modern one.
                match relayed.method {
                    method::SUBSCRIBE => {
                        let watched = shared.watch_resource(&session, uri, &course).await;
                        return watched.map_err(|error| error.at(&shared.name));
                    }
                    method::UNSUBSCRIBE => {
                        shared.unwatch_resource(uri);
                        return Ok(Value::Object(Map::new()));
                    }
                    _ => {}
                }
            }
            let sending = Sending {
                method: relayed.method,
                params: relayed.params.clone(),
                dialect: session.dialect,
                inbox: Inbox::new(Arc::new(Between {
                    notified: Arc::clone(&relayed.notified),
                    rest: session.inbox.clone(),
                })),
                param_headers: headers(shared, &session, relayed.method, &relayed.params),
                course: course.clone(),
                asks: relayed.asks.clone(),
                capabilities: session.dialect.is_modern().then(|| {
                    let mut able = shared.capabilities();
                    able.extend(relayed.capabilities.clone());
                    able
                }),
            };
            match shared.send(&session, sending).await {
                Ok(result) => return Ok(result),
                Err(error) => {
                    if error.ends_connection() {
                        shared.session_ended(&session, &error);
                    }
                    if again && matches!(error.kind(), McpErrorKind::NotSent(_)) {
                        again = false;
                        continue;
                    }
                    return Err(error.at(&shared.name));
                }
            }
        }
    }
}

fn headers(
    shared: &Shared,
    session: &Session,
    name: &str,
    params: &Map<String, Value>,
) -> Vec<(String, String)> {
    let tool = params.get("name").and_then(Value::as_str);
    let arguments = params.get("arguments").and_then(Value::as_object);
    match (name, tool, arguments) {
        (method::TOOLS_CALL, Some(tool), Some(arguments)) if session.dialect.is_modern() => shared
            .listings
            .headers_of(tool)
            .map(|marked| values_for_headers(&marked, arguments))
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The inbox of a request that was handed on.
struct Between {
    notified: Notified,
    rest: Inbox,
}

impl Receiver for Between {
    fn message(&self, message: Incoming) {
        match message {
            Incoming::Notification {
                method: name,
                params,
            } if name == method::MESSAGE => (self.notified)(&name, &params),
            message => self.rest.message(message),
        }
    }

    fn closed(&self, reason: McpError) {
        self.rest.closed(reason);
    }
}
