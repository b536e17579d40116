//! The client: one server, its dialect, its requests and their answers.
//!
//! Knows: how a connection is opened and opened again, deadlines, cancelling, pages, input-required
//! rounds, what a server's own requests are answered with. Does not know: bytes, or the agent.

mod asked;
mod call;
mod config;
mod inbox;
mod listen;
mod listing;
mod offers;
mod questions;
#[cfg(feature = "gateway")]
pub(crate) mod relay;
mod request;
mod sampler;
mod session;
mod tasks;
#[cfg(test)]
mod tests;
mod timer;
#[cfg(feature = "gateway")]
mod watches;

pub(crate) use asked::HandOn;
pub use asked::{Elicit, Elicitation, ElicitationAnswer, ElicitationKind, Root, Sample};
pub use call::{CallOptions, CallOutcome};
pub use config::{ChangedDefinition, ChangedDefinitions, ClientConfig, Timeouts};
pub use listing::ToolListing;
pub use sampler::ModelSampler;

use crate::dialect::Dialect;
use crate::error::McpError;
use crate::protocol::ServerFacts;
use crate::server::{McpServer, Parts};
use crate::transport::Transport;
use listing::Listings;
use session::{Session, Sessions};
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use tasks::Tasks;
use timer::SpareTimer;
use tokio::sync::{broadcast, watch};
use yiem_core::{CancelToken, Env};

/// How many events are kept for a slow reader; one that is slower misses the oldest.
const EVENTS_KEPT: usize = 256;

/// A client of one MCP server. Cheap to clone; dropping the last clone ends the connection and
/// everything that it started.
///
/// Connects at first use, and again after the connection was lost (M-7). Many requests run at once.
///
/// ```
/// # use yiem_mcp::{CallOptions, McpClient, McpServer};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), yiem_mcp::McpError> {
/// let server = McpServer::closure(|method, params| async move {
///     match method.as_str() {
///         "tools/list" => json!({"result": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}}),
///         _ => json!({"result": {"content": [{"type": "text", "text": params["arguments"].to_string()}]}}),
///     }
/// });
/// let client = McpClient::new(server, yiem_core::SystemEnv::shared())?;
/// let tools = client.tools().await?;
/// assert_eq!(tools.tools[0].name, "echo");
/// let outcome = client.call("echo", json!({"a": 1}), CallOptions::default()).await?;
/// assert_eq!(outcome.text(), r#"{"a":1}"#);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct McpClient(Arc<Shared>);

pub(crate) struct Shared {
    name: Arc<str>,
    transport: Arc<dyn Transport>,
    config: ClientConfig,
    env: Arc<dyn Env>,
    sessions: Sessions,
    listings: Listings,
    #[cfg(feature = "gateway")]
    watches: watches::Watches,
    in_flight: request::InFlight,
    questions: questions::Questions,
    next_id: AtomicI64,
    /// Counts the changes of the tool list that are known of.
    generation: watch::Sender<u64>,
    events: broadcast::Sender<McpEvent>,
    tasks: Tasks,
    timer: SpareTimer,
    /// Who answers the server's questions before this client does.
    hand_on: OnceLock<Arc<dyn HandOn>>,
}

/// Something that happened between requests. For whoever wants to show it; nothing depends on it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum McpEvent {
    /// A connection was opened in this dialect.
    Connected(Dialect),
    /// The connection is gone, and why; it is opened again at the next use.
    Lost(String),
    /// The server says that its tools changed.
    ToolsChanged,
    /// The server says that its prompts changed.
    PromptsChanged,
    /// The server says that its resources changed.
    ResourcesChanged,
    /// The server says that a resource changed which was subscribed to, its parameters as they came.
    ResourceUpdated(serde_json::Value),
    /// A person has done what an address was for that the server had asked them to visit, its parameters as they
    /// came (`elicitationId`).
    ElicitationComplete(serde_json::Value),
    /// A log line of the server, its parameters as they came.
    Log(serde_json::Value),
    /// The definition of a known tool is another than before (M-8).
    DefinitionChanged {
        /// The server's name of the tool.
        tool: String,
    },
    /// Something came that answers nothing and means nothing.
    Stray(String),
}

impl McpClient {
    /// A client of that server. Nothing is started yet.
    ///
    /// # Errors
    /// The server's configuration cannot be used.
    pub fn new(server: McpServer, env: Arc<dyn Env>) -> Result<Self, McpError> {
        let Parts {
            name,
            transport,
            config,
        } = server.into_parts(&env)?;
        Ok(Self(Arc::new(Shared {
            name,
            transport,
            config,
            env,
            sessions: Sessions::default(),
            listings: Listings::default(),
            #[cfg(feature = "gateway")]
            watches: watches::Watches::default(),
            in_flight: request::InFlight::default(),
            questions: questions::Questions::default(),
            next_id: AtomicI64::new(1),
            generation: watch::Sender::new(0),
            events: broadcast::Sender::new(EVENTS_KEPT),
            tasks: Tasks::default(),
            timer: SpareTimer::default(),
            hand_on: OnceLock::new(),
        })))
    }

    /// The key that the server is configured by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Connects, unless connected.
    ///
    /// # Errors
    /// The server cannot be reached, or no dialect is shared with it.
    pub async fn connect(&self) -> Result<(), McpError> {
        self.0.session(&CancelToken::new()).await.map(drop)
    }

    /// The dialect that is spoken, once connected.
    #[must_use]
    pub fn dialect(&self) -> Option<Dialect> {
        self.0.sessions.current().map(|session| session.dialect)
    }

    /// What the server said of itself, once connected.
    #[must_use]
    pub fn server_facts(&self) -> Option<ServerFacts> {
        self.0
            .sessions
            .current()
            .map(|session| session.facts.clone())
    }

    /// What happens between requests. A reader that is slow misses the oldest and is told how many.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<McpEvent> {
        self.0.events.subscribe()
    }

    /// Counts the changes of the tool list that are known of; another number means: list again.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.0.generation()
    }

    /// Ends when the generation is no longer `seen`.
    pub async fn changed(&self, seen: u64) {
        let mut generation = self.0.generation.subscribe();
        // The sender lives as long as this client, so this cannot fail before it is dropped.
        let _ = generation.wait_for(|now| *now != seen).await;
    }

    /// Lets go of the connection, politely: a process gets its end of input, a few seconds, and then
    /// signals. The next use connects again.
    pub async fn close(&self) {
        self.0.sessions.forget();
        self.0.tasks.clear();
        self.0.timer.clear();
        self.0.transport.close().await;
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl fmt::Debug for McpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClient")
            .field("name", &self.0.name)
            .field("transport", &self.0.transport)
            .field("dialect", &self.dialect())
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn next_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn generation(&self) -> u64 {
        self.listings.expire(self);
        *self.generation.borrow()
    }

    /// The tool list is another, or may be.
    fn tools_changed(&self) {
        self.listings.outdate();
        self.generation.send_modify(|generation| *generation += 1);
    }

    fn tell(&self, event: McpEvent) {
        // Nobody listening is no failure.
        let _ = self.events.send(event);
    }

    fn session_ended(&self, session: &Session, reason: &McpError) {
        self.questions.connection_gone(session.number);
        if self.sessions.end(session.number, self.env.elapsed()) {
            tracing::warn!(server = %self.name, %reason, "an MCP connection is gone");
            self.tell(McpEvent::Lost(reason.to_string()));
        }
    }
}

impl Shared {
    pub(crate) fn required(&self) -> bool {
        self.config.required
    }

    /// Whether resources and prompts are offered as tools.
    pub(crate) fn offers(&self) -> (bool, bool) {
        (self.config.offer_resources, self.config.offer_prompts)
    }

    /// The longest that a call can take by this client's own rules, and a little more.
    pub(crate) fn longest_call(&self) -> std::time::Duration {
        let timeouts = self.config.timeouts;
        let silent = timeouts
            .call
            .unwrap_or_else(|| self.transport.profile().call_timeout);
        timeouts.hard_cap.max(silent) + timeouts.connect
    }
}
