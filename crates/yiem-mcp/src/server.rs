//! How to reach an MCP server, as a value.
//!
//! Knows: commands, addresses, what is said to a server and how long it may take; the `mcpServers` map
//! of other clients and the SPEC texts of the command. Does not know: connections.

mod config;
mod spec;
#[cfg(test)]
mod tests;

pub use config::McpConfig;
#[cfg(feature = "http")]
pub(crate) use spec::without_secrets;

use crate::client::{ChangedDefinitions, ClientConfig, Elicit, Root, Sample};
use crate::dialect::DialectChoice;
use crate::error::McpError;
use crate::responder::{Responder, ToolServer};
#[cfg(feature = "nats")]
use crate::transport::nats::{NatsConfig, NatsTransport};
use crate::transport::{ClosureTransport, Exchange, MemoryTransport, Transport};
#[cfg(feature = "http")]
use crate::transport::{HttpConfig, HttpTransport, TokenSource};
#[cfg(feature = "stdio")]
use crate::transport::{StdioConfig, StdioTransport};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use yiem_core::Env;

/// How to reach an MCP server and how to treat it. Nothing is started by making one.
///
/// ```
/// use yiem_mcp::McpServer;
/// let server = McpServer::stdio("npx", ["-y", "@modelcontextprotocol/server-everything"])
///     .name("everything")
///     .env("DEBUG", "1");
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct McpServer {
    name: Option<Arc<str>>,
    reach: Reach,
    config: ClientConfig,
    problem: Option<String>,
}

#[derive(Clone)]
enum Reach {
    #[cfg(feature = "stdio")]
    Stdio(StdioConfig),
    #[cfg(feature = "nats")]
    Nats(Box<NatsConfig>),
    #[cfg(feature = "http")]
    Http(HttpConfig),
    Memory(MemoryTransport, Arc<str>),
    Other(Arc<dyn Transport>),
}

/// What a client is made of.
pub(crate) struct Parts {
    pub(crate) name: Arc<str>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) config: ClientConfig,
}

impl McpServer {
    fn of(reach: Reach) -> Self {
        Self {
            name: None,
            reach,
            config: ClientConfig::default(),
            problem: None,
        }
    }

    /// A server that is a child process and speaks over its standard input and output.
    #[cfg(feature = "stdio")]
    pub fn stdio<A: Into<String>>(
        command: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self::of(Reach::Stdio(StdioConfig::new(command, args)))
    }

    /// A server on NATS, at a subject.
    #[cfg(feature = "nats")]
    #[must_use]
    pub fn nats(config: NatsConfig) -> Self {
        Self::of(Reach::Nats(Box::new(config)))
    }

    /// A server behind an HTTP address: Streamable HTTP, or the older HTTP+SSE where that fails.
    #[cfg(feature = "http")]
    pub fn http(url: impl Into<String>) -> Self {
        Self::of(Reach::Http(HttpConfig::new(url)))
    }

    /// A set of tools in this process, spoken to in the bare dialect.
    #[must_use]
    pub fn in_process(server: ToolServer) -> Self {
        let name: Arc<str> = server.name().into();
        Self::of(Reach::Memory(MemoryTransport::new(Arc::new(server)), name))
    }

    /// Anything in this process that answers requests, spoken to in the bare dialect.
    #[must_use]
    pub fn responder(responder: Arc<dyn Responder>) -> Self {
        Self::of(Reach::Memory(
            MemoryTransport::new(responder),
            "in-process".into(),
        ))
    }

    /// An async closure: method and parameters in, a JSON-RPC value out (the seeds' callable `mcpServer`).
    ///
    /// The value is a whole answer (`{"result": …}` or `{"error": …}`) or the bare result.
    #[doc(alias = "mcpServer")]
    pub fn closure<F, Fut>(closure: F) -> Self
    where
        F: Fn(String, Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Value> + Send + 'static,
    {
        Self::transport(ClosureTransport::new(closure)).default_name("closure")
    }

    /// As [`McpServer::closure`], with session id, cancel token and a way for progress (SP-009, SP-010).
    pub fn closure_with_exchange<F, Fut>(closure: F) -> Self
    where
        F: Fn(Exchange) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Value> + Send + 'static,
    {
        Self::transport(ClosureTransport::with_exchange(closure)).default_name("closure")
    }

    /// A transport of one's own.
    pub fn transport(transport: impl Transport) -> Self {
        Self::of(Reach::Other(Arc::new(transport)))
    }

    /// Reads the text that the command takes: `NAME=stdio:COMMAND ARGS`, `NAME=http://…` or
    /// `NAME=nats://HOST:PORT/SUBJECT?OPTIONS`; the name may be left out.
    ///
    /// # Errors
    /// The text is none of these; the error says what is wrong and what would be right.
    pub fn from_spec(text: &str) -> Result<Self, McpError> {
        spec::read(text)
    }

    fn default_name(mut self, name: &str) -> Self {
        self.name.get_or_insert_with(|| name.into());
        self
    }

    /// The key of this server: it names the server in errors and its tools where names clash (M-6).
    #[must_use]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets a variable in the environment of the process (stdio).
    #[cfg(feature = "stdio")]
    #[must_use]
    pub fn env(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.process("env", |config| config.env(key, value))
    }

    /// Sets the working directory of the process (stdio).
    #[cfg(feature = "stdio")]
    #[must_use]
    pub fn cwd(self, directory: impl Into<std::path::PathBuf>) -> Self {
        self.process("cwd", |config| config.cwd(directory))
    }

    #[cfg(feature = "stdio")]
    fn process(mut self, what: &str, change: impl FnOnce(StdioConfig) -> StdioConfig) -> Self {
        match self.reach {
            Reach::Stdio(config) => self.reach = Reach::Stdio(change(config)),
            ref other => {
                let problem = format!(
                    "`{what}` is for servers that are processes; this one is {}",
                    other.words()
                );
                self.problem.get_or_insert(problem);
            }
        }
        self
    }

    /// Adds a header to every request (HTTP).
    #[cfg(feature = "http")]
    #[must_use]
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.address("header", |config| config.header(name, value))
    }

    /// Sends this token with every request (HTTP).
    #[cfg(feature = "http")]
    #[must_use]
    pub fn bearer(self, token: impl Into<String>) -> Self {
        self.address("bearer", |config| config.bearer(token))
    }

    /// Asks for a token before every request (HTTP).
    #[cfg(feature = "http")]
    #[must_use]
    pub fn token_source(self, source: Arc<dyn TokenSource>) -> Self {
        self.address("token_source", |config| config.token_source(source))
    }

    /// Has tokens by OAuth when the server asks for one (HTTP). A server that was given a token or an
    /// `Authorization` header keeps that. A person who is asked needs time: set
    /// [`McpServer::connect_timeout`] and [`McpServer::probe_timeout`] accordingly.
    #[cfg(feature = "oauth")]
    #[must_use]
    pub fn oauth(self, config: crate::oauth::OAuthConfig) -> Self {
        self.address("oauth", |http| http.oauth(config))
    }

    /// Whether it is behind an HTTP address, and was given no token of its own.
    #[cfg(feature = "oauth")]
    #[must_use]
    pub fn could_use_oauth(&self) -> bool {
        matches!(&self.reach, Reach::Http(config) if !config.is_authorized())
    }

    /// Speaks the older HTTP+SSE at once (HTTP).
    #[cfg(feature = "http")]
    #[must_use]
    pub fn old_sse(self) -> Self {
        self.address("old_sse", HttpConfig::old_sse)
    }

    #[cfg(feature = "http")]
    fn address(mut self, what: &str, change: impl FnOnce(HttpConfig) -> HttpConfig) -> Self {
        match self.reach {
            Reach::Http(config) => self.reach = Reach::Http(change(config)),
            ref other => {
                let problem = format!(
                    "`{what}` is for servers behind an HTTP address; this one is {}",
                    other.words()
                );
                self.problem.get_or_insert(problem);
            }
        }
        self
    }

    /// The first run fails when this server cannot be loaded (M-7).
    #[must_use]
    pub fn required(mut self, required: bool) -> Self {
        self.config.required = required;
        self
    }

    /// How long a call may be silent; progress starts the time anew. Default 60 s, NATS 180 s.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.config.timeouts.call = Some(timeout);
        self
    }

    /// How long a call may last in all. Default 10 min.
    #[must_use]
    pub fn hard_cap(mut self, cap: Duration) -> Self {
        self.config.timeouts.hard_cap = cap;
        self
    }

    /// How long connecting may take in all. Default 30 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.config.timeouts.connect = timeout;
        self
    }

    /// How long the answer to `server/discover` may take before the handshake is tried. Default 10 s.
    #[must_use]
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.config.timeouts.probe = timeout;
        self
    }

    /// How long a page of a list may take. Default 30 s.
    #[must_use]
    pub fn list_timeout(mut self, timeout: Duration) -> Self {
        self.config.timeouts.list = timeout;
        self
    }

    /// The dialect, where it is known and not to be found out.
    #[must_use]
    pub fn dialect(mut self, choice: DialectChoice) -> Self {
        self.config.dialect = choice;
        self
    }

    /// Who is asked when the server asks a person. Without one, such requests are declined (M-9).
    #[must_use]
    pub fn elicit(mut self, person: Arc<dyn Elicit>) -> Self {
        self.config.elicit = Some(person);
        self
    }

    /// Who is asked when the server asks a model. Without one, such requests are refused (M-9).
    #[must_use]
    pub fn sample(mut self, model: Arc<dyn Sample>) -> Self {
        self.config.sample = Some(model);
        self
    }

    /// Lets the server ask this model, the agent's own say: [`crate::ModelSampler`] with its limits. Off unless
    /// enabled by this or by [`McpServer::sample`] (M-9).
    #[must_use]
    pub fn sample_with(self, model: impl yiem_core::ChatModel) -> Self {
        self.sample(Arc::new(crate::ModelSampler::new(model)))
    }

    /// The roots that the server is told of. Without any, the question is refused (M-9).
    #[must_use]
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.config.roots = Some(roots.into_iter().collect());
        self
    }

    /// What happens when the definition of a known tool changes (M-8). Default: it is accepted.
    #[must_use]
    pub fn changed_definitions(mut self, policy: ChangedDefinitions) -> Self {
        self.config.changed_definitions = policy;
        self
    }

    /// Offers the server's resources as two tools: to list and to read them.
    #[must_use]
    pub fn offer_resources(mut self, offer: bool) -> Self {
        self.config.offer_resources = offer;
        self
    }

    /// Offers the server's prompts as two tools: to list and to fill them in.
    #[must_use]
    pub fn offer_prompts(mut self, offer: bool) -> Self {
        self.config.offer_prompts = offer;
        self
    }

    /// Everything about the client's behaviour at once.
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut ClientConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// The key, as set or as made from the address.
    #[must_use]
    pub fn key(&self) -> Arc<str> {
        self.name
            .clone()
            .unwrap_or_else(|| self.reach.default_name())
    }

    pub(crate) fn is_required(&self) -> bool {
        self.config.required
    }

    pub(crate) fn into_parts(self, env: &Arc<dyn Env>) -> Result<Parts, McpError> {
        let name = self.key();
        if let Some(problem) = self.problem {
            return Err(McpError::config(problem).at(&name));
        }
        let transport: Arc<dyn Transport> = match self.reach {
            #[cfg(feature = "stdio")]
            Reach::Stdio(config) => Arc::new(StdioTransport::new(config, Arc::clone(env))),
            #[cfg(feature = "nats")]
            Reach::Nats(config) => Arc::new(NatsTransport::new(*config, Arc::clone(env))),
            #[cfg(feature = "http")]
            Reach::Http(config) => Arc::new(
                HttpTransport::new(config, Arc::clone(env)).map_err(|error| error.at(&name))?,
            ),
            Reach::Memory(transport, _) => Arc::new(transport),
            Reach::Other(transport) => transport,
        };
        let _ = env;
        Ok(Parts {
            name,
            transport,
            config: self.config,
        })
    }
}

#[cfg(not(all(feature = "stdio", feature = "http", feature = "nats")))]
fn missing_feature(feature: &str, what: &str) -> McpError {
    McpError::config(format!(
        "this build has no {what}: yiem-mcp was built without the feature `{feature}`"
    ))
}

impl Reach {
    fn default_name(&self) -> Arc<str> {
        match self {
            #[cfg(feature = "stdio")]
            Self::Stdio(config) => config.default_name().into(),
            #[cfg(feature = "nats")]
            Self::Nats(config) => config.default_name().into(),
            #[cfg(feature = "http")]
            Self::Http(config) => config.default_name().into(),
            Self::Memory(_, name) => Arc::clone(name),
            Self::Other(_) => "mcp".into(),
        }
    }

    #[cfg(any(feature = "stdio", feature = "http"))]
    fn words(&self) -> &'static str {
        match self {
            #[cfg(feature = "stdio")]
            Self::Stdio(_) => "a process",
            #[cfg(feature = "nats")]
            Self::Nats(_) => "on NATS",
            #[cfg(feature = "http")]
            Self::Http(_) => "behind an HTTP address",
            Self::Memory(..) => "in this process",
            Self::Other(_) => "behind a transport of your own",
        }
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("McpServer");
        out.field("key", &self.key());
        match &self.reach {
            #[cfg(feature = "stdio")]
            Reach::Stdio(config) => out.field("stdio", config),
            #[cfg(feature = "nats")]
            Reach::Nats(config) => out.field("nats", config),
            #[cfg(feature = "http")]
            Reach::Http(config) => out.field("http", config),
            Reach::Memory(transport, _) => out.field("memory", transport),
            Reach::Other(transport) => out.field("transport", transport),
        };
        out.field("config", &self.config).finish()
    }
}
