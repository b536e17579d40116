//! Where messages of the server go that answer nothing.

use super::questions::{OpenQuestion, TakenBack};
use super::{McpEvent, Shared};
use crate::error::McpError;
use crate::jsonrpc::{INTERNAL_ERROR, Incoming, IncomingRequest, JsonRpcError, RequestId};
use crate::protocol::method;
use crate::responder::AskCaller;
use crate::transport::{Receiver, Response};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How many of a server's requests are worked on at once; more are refused.
const REQUESTS_AT_ONCE: usize = 64;
/// How long an answer to a server's request may wait for the way out.
const RESPONSE_TIME: Duration = Duration::from_secs(30);

/// The inbox of one connection.
pub(crate) struct SessionInbox {
    client: Weak<Shared>,
    number: u64,
}

impl SessionInbox {
    pub(crate) fn new(client: &Arc<Shared>, number: u64) -> Self {
        Self {
            client: Arc::downgrade(client),
            number,
        }
    }
}

impl Receiver for SessionInbox {
    fn message(&self, message: Incoming) {
        let Some(client) = self.client.upgrade() else {
            return;
        };
        match message {
            Incoming::Notification { method, params } => {
                notification(&client, self.number, &method, params);
            }
            Incoming::Request(request) => {
                // Nobody says whose it is: it may belong to any call that is under way.
                let in_a_call = belongs_to_a_call(&request.method);
                asked(&client, self.number, request, None, || match in_a_call {
                    true => client.in_flight.may_ask(),
                    false => BTreeSet::new(),
                });
            }
            Incoming::Answer(answer) => {
                tracing::debug!(server = %client.name, id = ?answer.id, "an answer that nobody waits for");
                client.tell(McpEvent::Stray(format!(
                    "an answer that nobody waits for, id {:?}",
                    answer.id
                )));
            }
            Incoming::Unreadable(stray) => {
                tracing::debug!(server = %client.name, reason = %stray.reason, excerpt = %stray.excerpt, "no message");
                client.tell(McpEvent::Stray(stray.excerpt));
            }
        }
    }

    fn closed(&self, reason: McpError) {
        let Some(client) = self.client.upgrade() else {
            return;
        };
        client.questions.connection_gone(self.number);
        if client.sessions.end(self.number, client.env.elapsed()) {
            tracing::warn!(server = %client.name, %reason, "an MCP connection is gone");
            client.tell(McpEvent::Lost(reason.to_string()));
        }
    }
}

/// Whether a server asks this in the course of a request, and not for itself.
fn belongs_to_a_call(name: &str) -> bool {
    matches!(name, method::ELICITATION | method::SAMPLING)
}

fn notification(client: &Arc<Shared>, session: u64, name: &str, params: serde_json::Value) {
    match name {
        method::PROGRESS => client.in_flight.progress(params),
        method::CANCELLED => {
            if let Some(id) = params.get("requestId").and_then(RequestId::from_value) {
                client.questions.cancelled(session, &id);
            }
        }
        method::ELICITATION_COMPLETE => client.tell(McpEvent::ElicitationComplete(params)),
        method::TOOLS_CHANGED => {
            client.tools_changed();
            client.tell(McpEvent::ToolsChanged);
        }
        method::PROMPTS_CHANGED => client.tell(McpEvent::PromptsChanged),
        method::RESOURCES_CHANGED => client.tell(McpEvent::ResourcesChanged),
        #[cfg(feature = "gateway")]
        method::LISTEN_ACKNOWLEDGED => client.watches.acknowledged(&params),
        method::RESOURCE_UPDATED => client.tell(McpEvent::ResourceUpdated(params)),
        method::MESSAGE => client.tell(McpEvent::Log(params)),
        _ => tracing::trace!(server = %client.name, method = name, "a notification"),
    }
}

/// A request of the server: always answered, unless the server is modern, to which no answer may be sent, or took it
/// back. `caller` is asked first, where it is known whose request the question belongs to; `calls` are our requests
/// that it may belong to: when they have ended, nobody is asked any more.
pub(super) fn asked(
    client: &Arc<Shared>,
    number: u64,
    request: IncomingRequest,
    caller: Option<Arc<dyn AskCaller>>,
    calls: impl FnOnce() -> BTreeSet<i64>,
) {
    let current = client
        .sessions
        .current()
        .filter(|session| session.number == number);
    let dialect = current.as_ref().map_or(
        crate::dialect::Dialect::Legacy(crate::dialect::ProtocolVersion::NEWEST_LEGACY),
        |session| session.dialect,
    );
    if dialect.is_modern() {
        tracing::warn!(server = %client.name, method = %request.method, "a modern server asked by request; ignored");
        return;
    }
    let transport = Arc::clone(&client.transport);
    let env = Arc::clone(&client.env);
    let busy = client.tasks.running() >= REQUESTS_AT_ONCE && request.method != method::PING;
    let weak = Arc::downgrade(client);
    let IncomingRequest {
        id,
        method: name,
        params,
    } = request;
    // Noted before anything else is read, so that what takes it back finds it.
    let turn = client.questions.turn();
    let (open, taken_back) = OpenQuestion::new(client, number, id.clone(), calls);
    client.tasks.spawn(async move {
        let outcome = if busy {
            Ok(Err(JsonRpcError::new(
                INTERNAL_ERROR,
                "too many requests at once",
            )))
        } else {
            tokio::select! {
                biased;
                Ok(why) = taken_back => Err(why),
                answer = turn.put(super::asked::answer(&weak, &name, params, caller)) => Ok(answer),
            }
        };
        // Who waits for a person is not silent: the calls that are under way wait with them, until here.
        drop(open);
        let outcome = match outcome {
            Ok(answer) => answer,
            Err(TakenBack::WithItsCall) => super::asked::too_late(&name),
            Err(TakenBack::ByServer | TakenBack::WithTheConnection) => return,
        };
        let response = Response::new(id, outcome, dialect);
        let too_long = env.sleep(RESPONSE_TIME);
        tokio::select! {
            biased;
            sent = transport.respond(response) => {
                if let Err(error) = sent {
                    tracing::warn!(%error, "a server's request could not be answered");
                }
            }
            () = too_long => {}
        }
    });
}
