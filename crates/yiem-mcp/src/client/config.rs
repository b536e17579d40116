//! How a client behaves, as data.

use super::asked::{Elicit, Root, Sample};
use crate::dialect::DialectChoice;
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long things may take (M-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For the answer to `server/discover`, before the handshake is tried. Default 10 s.
    pub probe: Duration,
    /// For connecting in all. Default 30 s.
    pub connect: Duration,
    /// For a page of a list. Default 30 s.
    pub list: Duration,
    /// For silence in a call; progress starts it anew. Default: the transport's, 60 s, NATS 180 s.
    pub call: Option<Duration>,
    /// For a call in all, whatever its progress. Default 10 min.
    pub hard_cap: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            probe: Duration::from_secs(10),
            connect: Duration::from_secs(30),
            list: Duration::from_secs(30),
            call: None,
            hard_cap: Duration::from_secs(600),
        }
    }
}

/// What happens to a known tool whose description or schema changed (M-8).
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum ChangedDefinitions {
    /// It is offered as it is now; an event tells.
    #[default]
    Accept,
    /// It is not offered any more in this process; an event tells.
    Refuse,
    /// Someone is asked.
    Ask(Arc<dyn ChangedDefinition>),
}

impl fmt::Debug for ChangedDefinitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accept => "Accept",
            Self::Refuse => "Refuse",
            Self::Ask(_) => "Ask",
        })
    }
}

/// Decides about a changed definition.
#[async_trait]
pub trait ChangedDefinition: Send + Sync {
    /// Whether the tool may be offered as it is now. Asked once per change.
    async fn accept(
        &self,
        server: &str,
        before: &crate::RemoteTool,
        now: &crate::RemoteTool,
    ) -> bool;
}

/// How a client behaves.
#[derive(Clone)]
#[non_exhaustive]
pub struct ClientConfig {
    /// The dialect.
    pub dialect: DialectChoice,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How many pages a list may have. Default 1,000.
    pub max_pages: usize,
    /// How many elements a list may have in all. Default 10,000.
    pub max_items: usize,
    /// How many times a server may ask for input before it answers a call. Default 8.
    pub max_rounds: usize,
    /// Who is asked when a server asks a person; without one, such requests are declined.
    pub elicit: Option<Arc<dyn Elicit>>,
    /// Who is asked when a server asks a model; without one, such requests are refused.
    pub sample: Option<Arc<dyn Sample>>,
    /// The roots that a server is told of; `None` refuses the question.
    pub roots: Option<Vec<Root>>,
    /// What happens to changed definitions.
    pub changed_definitions: ChangedDefinitions,
    /// Whether the server's resources are offered as tools.
    pub offer_resources: bool,
    /// Whether the server's prompts are offered as tools.
    pub offer_prompts: bool,
    /// Whether the first run fails when the server cannot be loaded.
    pub required: bool,
    /// The name by which the client introduces itself.
    pub client_name: Arc<str>,
    /// The version by which the client introduces itself.
    pub client_version: Arc<str>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            dialect: DialectChoice::Auto,
            timeouts: Timeouts::default(),
            max_pages: 1_000,
            max_items: 10_000,
            max_rounds: 8,
            elicit: None,
            sample: None,
            roots: None,
            changed_definitions: ChangedDefinitions::Accept,
            offer_resources: false,
            offer_prompts: false,
            required: false,
            client_name: "yiem".into(),
            client_version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("dialect", &self.dialect)
            .field("timeouts", &self.timeouts)
            .field("roots", &self.roots)
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}
