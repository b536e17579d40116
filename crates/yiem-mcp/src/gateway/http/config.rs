//! Where and for whom the gateway listens over HTTP.

use std::fmt;
use std::net::SocketAddr;

/// Where and for whom the gateway listens over HTTP. It speaks no TLS: put it behind something that does.
#[derive(Clone)]
pub struct GatewayHttpConfig {
    pub(super) address: SocketAddr,
    pub(super) path: String,
    pub(super) origins: Vec<String>,
    pub(super) hosts: Vec<String>,
    pub(super) bearer_token: Option<String>,
    pub(super) max_body: usize,
    pub(super) sessions: bool,
}

impl GatewayHttpConfig {
    /// Listens at that address (port 0 takes a free one), at the path `/mcp`.
    ///
    /// At an address of loopback, only requests to this machine's own names and from pages of its own
    /// are taken, so that no web page can reach the gateway through a name that leads here.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            path: "/mcp".into(),
            origins: Vec::new(),
            hosts: Vec::new(),
            bearer_token: None,
            max_body: 32 << 20,
            sessions: true,
        }
    }

    /// The same at another path.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        let path = path.into();
        self.path = if path.starts_with('/') {
            path
        } else {
            format!("/{path}")
        };
        self
    }

    /// The same, taking requests of pages of this origin too, e.g. `https://app.example`.
    #[must_use]
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// The same, taking requests to this host name too (with its port, if it has one).
    #[must_use]
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// The same, wanting this token from everyone (`Authorization: Bearer …`).
    #[must_use]
    pub fn bearer_token(mut self, token: impl Into<String>) -> Self {
        self.bearer_token = Some(token.into());
        self
    }

    /// The same with another size that a request may have, in bytes (32 MiB).
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Whether callers of the legacy era are given sessions (yes). Without, they cannot cancel.
    #[must_use]
    pub fn sessions(mut self, sessions: bool) -> Self {
        self.sessions = sessions;
        self
    }
}

impl fmt::Debug for GatewayHttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayHttpConfig")
            .field("address", &self.address)
            .field("path", &self.path)
            .field("bearer_token", &self.bearer_token.as_ref().map(|_| "***"))
            .finish_non_exhaustive()
    }
}
