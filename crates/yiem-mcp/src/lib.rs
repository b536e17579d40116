//! An MCP client: dialects, transports, servers as tool sources.
//!
//! [`McpServer`] says how to reach a server, [`McpClient`] talks to it, [`McpToolSource`] gives its tools
//! to an agent. The client finds out which revision a server speaks (2024-11-05 to 2026-07-28, or the
//! bare `tools/list` and `tools/call` of YiemAgent), is tolerant in reading and strict in writing, and
//! never lets one server's failure become another's.
//!
//! Own ways to a server implement [`Transport`]; own servers in the same process are a [`ToolServer`] or
//! any [`Responder`].
//!
//! Features, each only adds. On by default: `stdio` (`McpServer::stdio`), `system` (the system's clock and
//! ids). Off: `http` (`McpServer::http`), `nats` (`McpServer::nats`), `oauth`, `gateway` (to offer tools and
//! servers to others).
//!
//! A runtime of tokio has to be there. The contracts are those of [`yiem_core`], which is at hand as
//! `yiem_mcp::yiem_core`.
//!
//! ```no_run
//! # #[cfg(all(feature = "stdio", feature = "system"))]
//! # mod example {
//! use yiem_mcp::yiem_core::{JsonObject, Result, SystemEnv};
//! use yiem_mcp::{CallOptions, McpClient, McpServer};
//!
//! pub async fn echo() -> Result<()> {
//!     let server = McpServer::stdio("npx", ["-y", "@modelcontextprotocol/server-everything"]);
//!     let client = McpClient::new(server, SystemEnv::shared())?;
//!     for tool in &client.tools().await?.tools {
//!         println!("{}: {}", tool.name, tool.description);
//!     }
//!     let args = JsonObject::from_iter([("message".to_owned(), "hello".into())]);
//!     let answer = client.call("echo", args, CallOptions::default()).await?;
//!     println!("{:?}", answer.content);
//!     Ok(())
//! }
//! # }
//! ```

pub use yiem_core;

pub mod client;
pub mod correlate;
pub mod dialect;
pub mod error;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod jsonrpc;
#[cfg(feature = "oauth")]
pub mod oauth;
pub mod protocol;
pub mod responder;
pub mod server;
pub mod tool_source;
pub mod transport;

pub use client::{
    CallOptions, CallOutcome, ChangedDefinition, ChangedDefinitions, ClientConfig, Elicit,
    Elicitation, ElicitationAnswer, ElicitationKind, McpClient, McpEvent, ModelSampler, Root,
    Sample, Timeouts, ToolListing,
};
pub use dialect::{Dialect, DialectChoice, ProtocolVersion};
pub use error::{McpError, McpErrorKind, Reached};
#[cfg(feature = "gateway")]
pub use gateway::{Drained, Gateway, GatewayBuilder, GatewayHttpConfig};
pub use jsonrpc::{JsonRpcError, RequestId};
#[cfg(feature = "oauth")]
pub use oauth::{
    ClientKey, Consent, FileTokenStore, LoopbackConsent, MemoryTokenStore, OAuthConfig,
    OAuthTokens, TokenStore,
};
pub use protocol::{BadDefinition, RemoteTool};
pub use responder::{ArgsGate, Caller, Responder, ToolServer};
pub use server::{McpConfig, McpServer};
pub use tool_source::McpToolSource;
#[cfg(feature = "nats")]
pub use transport::nats::{
    NatsAuth, NatsCodec, NatsConfig, NatsTransport, PayloadFetcher, SubjectStyle,
};
#[cfg(feature = "http")]
pub use transport::{Challenge, HttpConfig, HttpTransport, TokenSource};
pub use transport::{
    ClosureTransport, Exchange, Inbox, MemoryTransport, Notice, Response, Transport,
    TransportProfile,
};
#[cfg(feature = "stdio")]
pub use transport::{StdioConfig, StdioTransport};
