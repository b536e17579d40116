//! The gateway: an MCP server, or tools of one's own, offered on NATS, over HTTP and over stdio (M-10).
//!
//! Knows: what is offered where, who may call how much at once, and how an end is made without losing
//! what is under way. Does not know: what a call does; a [`Responder`] does, be it a set of tools or the
//! way to another server.

mod callers;
mod core;
mod held;
mod http;
#[cfg(feature = "nats")]
mod nats;
mod relay;
mod stdio;

pub use http::GatewayHttpConfig;

use self::callers::Callers;
use self::core::Core;
use crate::client::McpClient;
use crate::error::McpError;
use crate::responder::{ArgsGate, Responder, ToolServer};
use crate::server::McpServer;
#[cfg(feature = "nats")]
use crate::transport::nats::NatsConfig;
use relay::Relay;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use yiem_core::{CancelToken, Env, Tool};

/// How many calls run at once, unless said otherwise.
const CALLS_AT_ONCE: usize = 256;
/// How long calls that are under way may go on once the gateway drains.
const DRAIN_TIME: Duration = Duration::from_secs(30);
/// The longest that one call may take.
const CALL_TIME: Duration = Duration::from_secs(900);

/// How often what callers began and did not come back for is looked through.
const PURGE_EVERY: Duration = Duration::from_secs(30);

/// What is to be offered, and where.
///
/// ```
/// # use yiem_mcp::{Gateway, GatewayHttpConfig, McpServer};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), yiem_mcp::McpError> {
/// let server = McpServer::closure(|method, _| async move {
///     match method.as_str() {
///         "tools/list" => json!({"result": {"tools": []}}),
///         _ => json!({"error": {"code": -32601, "message": "no such method"}}),
///     }
/// });
/// let gateway = Gateway::builder(yiem_core::SystemEnv::shared())
///     .server(server)
///     .http(GatewayHttpConfig::new("127.0.0.1:0".parse().expect("an address")))
///     .start()
///     .await?;
/// assert_eq!(gateway.http_addresses().len(), 1);
/// gateway.drain().await;
/// # Ok(()) }
/// ```
pub struct GatewayBuilder {
    env: Arc<dyn Env>,
    offer: Offer,
    tools: Vec<Arc<dyn Tool>>,
    gate: Option<Arc<dyn ArgsGate>>,
    name: Arc<str>,
    #[cfg(feature = "nats")]
    nats: Vec<(NatsConfig, Option<String>)>,
    http: Vec<GatewayHttpConfig>,
    stdio: Option<stdio::Pipes>,
    calls_at_once: usize,
    drain_time: Duration,
    call_time: Duration,
}

enum Offer {
    Tools,
    Server(Box<McpServer>),
    Client(McpClient),
    Responder(Arc<dyn Responder>),
}

impl GatewayBuilder {
    /// Offers a server: everything that it answers, under its own names.
    #[must_use]
    pub fn server(mut self, server: McpServer) -> Self {
        self.offer = Offer::Server(Box::new(server));
        self
    }

    /// Offers the server behind that client.
    #[must_use]
    pub fn client(mut self, client: McpClient) -> Self {
        self.offer = Offer::Client(client);
        self
    }

    /// Offers whatever answers requests.
    #[must_use]
    pub fn responder(mut self, responder: Arc<dyn Responder>) -> Self {
        self.offer = Offer::Responder(responder);
        self
    }

    /// Offers this tool; again and again, the later of one name wins.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.tools([Arc::new(tool) as Arc<dyn Tool>])
    }

    /// Offers these tools; again and again, the later of one name wins.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.offer = Offer::Tools;
        self.tools.extend(tools);
        self
    }

    /// Accepts the arguments of calls to the offered tools. Without one, tools prepare theirs and the
    /// required ones are checked.
    #[must_use]
    pub fn gate(mut self, gate: Arc<dyn ArgsGate>) -> Self {
        self.gate = Some(gate);
        self
    }

    /// The name under which offered tools introduce themselves (`yiem`). A server keeps its own.
    #[must_use]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Listens at the subject of that configuration. Gateways of one `queue` share the load: each request
    /// goes to one of them. Without a name the group is `yiem`.
    #[cfg(feature = "nats")]
    #[must_use]
    pub fn nats(mut self, config: NatsConfig, queue: Option<String>) -> Self {
        self.nats.push((config, queue));
        self
    }

    /// Listens at an address for Streamable HTTP, in both eras.
    #[must_use]
    pub fn http(mut self, config: GatewayHttpConfig) -> Self {
        self.http.push(config);
        self
    }

    /// Speaks over the standard input and output of this process. The gateway ends with its input.
    #[must_use]
    pub fn stdio(mut self) -> Self {
        self.stdio = Some(stdio::Pipes::standard());
        self
    }

    /// Speaks over two streams as over standard input and output.
    #[must_use]
    pub fn pipes(
        mut self,
        input: impl tokio::io::AsyncRead + Send + Unpin + 'static,
        output: impl tokio::io::AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        self.stdio = Some(stdio::Pipes::new(input, output));
        self
    }

    /// How many calls run at once (256). As many again times four wait; what comes then is refused.
    #[must_use]
    pub fn calls_at_once(mut self, calls: usize) -> Self {
        self.calls_at_once = calls.max(1);
        self
    }

    /// How long calls that are under way may go on once the gateway drains (30 s).
    #[must_use]
    pub fn drain_time(mut self, time: Duration) -> Self {
        self.drain_time = time;
        self
    }

    /// The longest that one call may take, whatever its caller does (15 min).
    #[must_use]
    pub fn call_time(mut self, time: Duration) -> Self {
        self.call_time = time;
        self
    }

    /// Starts listening. A server is connected to first, so that one that cannot be reached is told here.
    ///
    /// # Errors
    /// The server cannot be reached, an address cannot be listened at, NATS cannot be reached or refuses
    /// the subject, or nothing says where to offer.
    pub async fn start(self) -> Result<Gateway, McpError> {
        #[cfg(feature = "nats")]
        let on_nats = !self.nats.is_empty();
        #[cfg(not(feature = "nats"))]
        let on_nats = false;
        if !on_nats && self.http.is_empty() && self.stdio.is_none() {
            return Err(McpError::config(
                "the gateway is told of no place to offer at: give it NATS, an HTTP address or stdio",
            ));
        }
        let callers = Arc::new(Callers::new(Arc::clone(&self.env)));
        // On NATS alone nobody can be asked, so nothing of the kind is declared.
        let asks = !self.http.is_empty() || self.stdio.is_some();
        let relay = |upstream: &McpClient| {
            if asks {
                upstream.hand_questions_on(Arc::clone(&callers) as _);
            }
            Relay::new(upstream.clone(), Arc::clone(&callers))
        };
        let mut client = None;
        let responder: Arc<dyn Responder> = match self.offer {
            Offer::Responder(responder) => responder,
            Offer::Tools => {
                let mut server =
                    ToolServer::new(self.name, Arc::clone(&self.env)).tools(self.tools);
                if let Some(gate) = self.gate {
                    server = server.gate(gate);
                }
                Arc::new(server)
            }
            Offer::Server(server) => {
                let upstream = McpClient::new(*server, Arc::clone(&self.env))?;
                let relay = relay(&upstream);
                upstream.connect().await?;
                client = Some(upstream);
                Arc::new(relay)
            }
            Offer::Client(upstream) => {
                let relay = relay(&upstream);
                upstream.connect().await?;
                client = Some(upstream);
                Arc::new(relay)
            }
        };
        let core = Arc::new(Core::new(
            responder,
            Arc::clone(&callers),
            Arc::clone(&self.env),
            self.calls_at_once,
            self.call_time,
        ));
        let stop = core.stop.clone();
        let mut rims = JoinSet::new();
        let mut addresses = Vec::new();
        for config in self.http {
            let rim = http::HttpRim::bind(config, Arc::clone(&core)).await?;
            addresses.push(rim.address());
            rims.spawn(rim.serve(stop.clone()));
        }
        #[cfg(feature = "nats")]
        for (config, queue) in self.nats {
            let rim = nats::NatsRim::connect(config, queue, Arc::clone(&core)).await?;
            rims.spawn(rim.serve(stop.clone()));
        }
        if let Some(pipes) = self.stdio {
            rims.spawn(stdio::serve(pipes, Arc::clone(&core), stop.clone()));
        }
        let running = watch::Sender::new(rims.len());
        let ended = running.subscribe();
        let mut owner = JoinSet::new();
        if let Some(client) = &client {
            owner.spawn(Relay::watch(client.clone(), callers));
        }
        let keeper = Arc::downgrade(&core);
        let env = Arc::clone(&self.env);
        owner.spawn(async move {
            loop {
                env.sleep(PURGE_EVERY).await;
                match keeper.upgrade() {
                    Some(core) => core.purge(),
                    None => return,
                }
            }
        });
        owner.spawn(async move {
            while rims.join_next().await.is_some() {
                running.send_modify(|running| *running -= 1);
            }
        });
        Ok(Gateway {
            core,
            stop,
            ended,
            _owner: owner,
            client,
            addresses,
            drain_time: self.drain_time,
            env: self.env,
        })
    }
}

impl fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayBuilder")
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

/// A gateway that runs. Dropping it ends it at once; [`Gateway::drain`] ends it politely.
pub struct Gateway {
    core: Arc<Core>,
    stop: CancelToken,
    ended: watch::Receiver<usize>,
    /// Its drop ends the rims, and theirs what they started.
    _owner: JoinSet<()>,
    client: Option<McpClient>,
    addresses: Vec<SocketAddr>,
    drain_time: Duration,
    env: Arc<dyn Env>,
}

/// How a gateway ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Drained {
    /// Calls that were answered while it ended.
    pub finished: usize,
    /// Calls that were still under way when its time was up; their callers got an error or nothing.
    pub cut: usize,
}

impl Gateway {
    /// A gateway to be told what it offers, and where.
    #[must_use]
    pub fn builder(env: Arc<dyn Env>) -> GatewayBuilder {
        GatewayBuilder {
            env,
            offer: Offer::Tools,
            tools: Vec::new(),
            gate: None,
            name: "yiem".into(),
            #[cfg(feature = "nats")]
            nats: Vec::new(),
            http: Vec::new(),
            stdio: None,
            calls_at_once: CALLS_AT_ONCE,
            drain_time: DRAIN_TIME,
            call_time: CALL_TIME,
        }
    }

    /// The addresses that it listens at, in the order in which they were given; a port 0 is a real one here.
    #[must_use]
    pub fn http_addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// How many calls are under way.
    #[must_use]
    pub fn running_calls(&self) -> usize {
        self.core.running()
    }

    /// Ends when nothing is listened at any more: the standard input ended, or it was drained.
    pub async fn ended(&self) {
        let mut ended = self.ended.clone();
        // The sender goes only when all rims have ended.
        let _ = ended.wait_for(|running| *running == 0).await;
    }

    /// Takes nothing new, lets what is under way end for a while, and ends.
    pub async fn drain(self) -> Drained {
        let before = self.core.running();
        self.stop.cancel();
        let cut = tokio::select! {
            () = self.ended() => 0,
            () = self.env.sleep(self.drain_time) => self.core.cut_off(),
        };
        // What was cut off still sends its last words.
        tokio::select! {
            () = self.ended() => {}
            () = self.env.sleep(Duration::from_secs(2)) => {}
        }
        if let Some(client) = &self.client {
            client.close().await;
        }
        Drained {
            finished: before.saturating_sub(cut),
            cut,
        }
    }

    /// Runs until SIGTERM, SIGINT, or the end of the standard input, and drains then. A second signal
    /// ends it at once.
    ///
    /// # Errors
    /// The signals cannot be listened to.
    pub async fn run_until_signal(self) -> Result<Drained, McpError> {
        let mut signals = Signals::new()?;
        tokio::select! {
            () = self.ended() => {}
            () = signals.next() => tracing::info!(calls = self.running_calls(), "the gateway drains"),
        }
        tokio::select! {
            drained = self.drain() => Ok(drained),
            () = signals.next() => Ok(Drained::default()),
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("http", &self.addresses)
            .field("running_calls", &self.running_calls())
            .finish_non_exhaustive()
    }
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Result<Self, McpError> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind).map_err(|error| {
                McpError::config("signals cannot be listened to").with_source(error)
            })
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Result<Self, McpError> {
        Ok(Self)
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
