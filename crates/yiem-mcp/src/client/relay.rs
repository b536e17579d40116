//! Requests of others, handed on as they are: what the gateway needs of a client.
//!
//! Knows: how a request that came from elsewhere goes out on this connection, and how its messages come
//! back. Does not know: who asked, or in which dialect.

use super::request::{Course, Sending};
use super::session::Session;
use super::{McpClient, Shared};
use crate::dialect::Dialect;
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::Incoming;
use crate::protocol::{ServerFacts, method, values_for_headers};
use crate::transport::{Inbox, Receiver};
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
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
];

/// Takes a notification: its method and its parameters.
pub(crate) type Notified = Arc<dyn Fn(&str, &Value) + Send + Sync>;

/// A request of someone else.
pub(crate) struct Relayed {
    pub(crate) method: &'static str,
    pub(crate) params: Map<String, Value>,
    pub(crate) progress: Option<Arc<dyn ProgressSink>>,
    /// Takes notifications, other than progress, that belong to the request.
    pub(crate) notified: Notified,
    pub(crate) cancel: CancelToken,
    pub(crate) session_id: Option<SessionId>,
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
            progress: relayed.progress,
            session_id: relayed.session_id,
            trace: Arc::default(),
        };
        let mut again = true;
        loop {
            let session = shared.session(&relayed.cancel).await?;
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
        if let Incoming::Notification {
            method: name,
            params,
        } = &message
            && name == method::MESSAGE
        {
            (self.notified)(name, params);
            return;
        }
        self.rest.message(message);
    }

    fn closed(&self, reason: McpError) {
        self.rest.closed(reason);
    }
}
