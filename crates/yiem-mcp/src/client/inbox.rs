//! Where messages of the server go that answer nothing.

use super::{McpEvent, Shared};
use crate::error::McpError;
use crate::jsonrpc::{INTERNAL_ERROR, Incoming, IncomingRequest, JsonRpcError};
use crate::protocol::method;
use crate::responder::AskCaller;
use crate::transport::{Receiver, Response};
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
            Incoming::Notification { method, params } => notification(&client, &method, params),
            Incoming::Request(request) => asked(&client, self.number, request, None),
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
        if client.sessions.end(self.number, client.env.elapsed()) {
            tracing::warn!(server = %client.name, %reason, "an MCP connection is gone");
            client.tell(McpEvent::Lost(reason.to_string()));
        }
    }
}

fn notification(client: &Arc<Shared>, name: &str, params: serde_json::Value) {
    match name {
        method::PROGRESS => client.in_flight.progress(params),
        method::TOOLS_CHANGED => {
            client.tools_changed();
            client.tell(McpEvent::ToolsChanged);
        }
        method::PROMPTS_CHANGED => client.tell(McpEvent::PromptsChanged),
        method::RESOURCES_CHANGED => client.tell(McpEvent::ResourcesChanged),
        method::RESOURCE_UPDATED => client.tell(McpEvent::ResourceUpdated(params)),
        method::MESSAGE => client.tell(McpEvent::Log(params)),
        _ => tracing::trace!(server = %client.name, method = name, "a notification"),
    }
}

/// A request of the server: always answered, unless the server is modern, to which no answer may be sent.
/// `caller` is asked first, where it is known whose request the question belongs to.
pub(super) fn asked(
    client: &Arc<Shared>,
    number: u64,
    request: IncomingRequest,
    caller: Option<Arc<dyn AskCaller>>,
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
    let too_long = client.env.sleep(RESPONSE_TIME);
    let busy = client.tasks.running() >= REQUESTS_AT_ONCE && request.method != method::PING;
    let weak = Arc::downgrade(client);
    client.tasks.spawn(async move {
        let outcome = if busy {
            Err(JsonRpcError::new(
                INTERNAL_ERROR,
                "too many requests at once",
            ))
        } else {
            // Who waits for a person is not silent: the calls that are under way wait with them.
            let _open = super::request::OpenQuestion::new(&weak);
            super::asked::answer(&weak, &request.method, request.params, caller).await
        };
        let response = Response::new(request.id, outcome, dialect);
        let sending = async {
            if let Err(error) = transport.respond(response).await {
                tracing::warn!(%error, "a server's request could not be answered");
            }
        };
        tokio::select! {
            () = sending => {}
            () = too_long => {}
        }
    });
}
