//! The contract of whatever carries messages to a server and back, one exchange at a time.
//!
//! Knows: what an exchange is, what a transport owes, where messages go that answer nothing.
//! Does not know: dialects' rules, deadlines, retries; the client has those.

#[cfg(feature = "http")]
pub(crate) mod http;
mod memory;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "stdio")]
pub(crate) mod stdio;

#[cfg(feature = "http")]
pub use http::{Challenge, HttpConfig, HttpTransport, TokenSource};
pub use memory::{ClosureTransport, MemoryTransport};
#[cfg(feature = "stdio")]
pub use stdio::{StdioConfig, StdioTransport};

use crate::dialect::{Dialect, DialectChoice};
use crate::error::McpError;
use crate::jsonrpc::{self, Answer, Incoming, JsonRpcError, RequestId};
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use yiem_core::{CancelToken, SessionId};

/// Carries requests to one server. One exchange is one request and its answer; many run at once.
///
/// What an implementor owes, and the conformance suite of yiem-test checks:
/// - [`Transport::exchange`] ends with the answer to *its* request, whatever the order in which answers
///   come, or with an error that says how far the request got. It has no deadline of its own: the client
///   drops the future when time is up or the caller gives up, and nothing may be left of it then.
/// - Messages that answer nothing (progress, logs, requests of the server) go to the [`Inbox`], at once.
/// - When the connection is gone, all pending exchanges fail at once, [`Inbox::closed`] is told, and
///   [`Transport::open`] may be called again.
/// - Dropping the transport ends everything that it started.
#[async_trait]
pub trait Transport: Send + Sync + fmt::Debug + 'static {
    /// What kind of transport this is.
    fn profile(&self) -> TransportProfile;

    /// Connects, or connects again after the connection was lost. Called by one at a time.
    ///
    /// May be dropped at any await; nothing may be left of the attempt then.
    ///
    /// # Errors
    /// The server cannot be reached; nothing was sent.
    async fn open(&self, inbox: Inbox) -> Result<(), McpError>;

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// It could not be sent, or the connection broke before the answer.
    async fn exchange(&self, exchange: Exchange) -> Result<Answer, McpError>;

    /// Sends a notification.
    ///
    /// # Errors
    /// It could not be sent.
    async fn notify(&self, notice: Notice) -> Result<(), McpError>;

    /// Sends the answer to a request of the server. Transports on which servers cannot ask keep this.
    ///
    /// # Errors
    /// It could not be sent.
    async fn respond(&self, response: Response) -> Result<(), McpError> {
        let _ = response;
        Err(McpError::not_sent(
            "this transport has no way back for answers to a server's requests",
        ))
    }

    /// Told once the dialect is known, before the first real request; a legacy HTTP connection opens its
    /// stream for the server's messages here.
    ///
    /// # Errors
    /// The connection cannot be used after all.
    async fn opened(&self, dialect: Dialect) -> Result<(), McpError> {
        let _ = dialect;
        Ok(())
    }

    /// What is known of the connection that explains why `method` got no answer in the last `waited`: the
    /// client adds it to a timeout (M-7). `None` when nothing is known.
    fn trouble(&self, method: &str, waited: Duration) -> Option<String> {
        let _ = (method, waited);
        None
    }

    /// Lets go of the connection, politely: within a few seconds.
    async fn close(&self);
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn profile(&self) -> TransportProfile {
        (**self).profile()
    }
    async fn open(&self, inbox: Inbox) -> Result<(), McpError> {
        (**self).open(inbox).await
    }
    async fn exchange(&self, exchange: Exchange) -> Result<Answer, McpError> {
        (**self).exchange(exchange).await
    }
    async fn notify(&self, notice: Notice) -> Result<(), McpError> {
        (**self).notify(notice).await
    }
    async fn respond(&self, response: Response) -> Result<(), McpError> {
        (**self).respond(response).await
    }
    async fn opened(&self, dialect: Dialect) -> Result<(), McpError> {
        (**self).opened(dialect).await
    }
    fn trouble(&self, method: &str, waited: Duration) -> Option<String> {
        (**self).trouble(method, waited)
    }
    async fn close(&self) {
        (**self).close().await;
    }
}

/// What kind of transport one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportProfile {
    /// What [`DialectChoice::Auto`] means on it.
    pub dialect: DialectChoice,
    /// How long a call may be silent, unless set.
    pub call_timeout: Duration,
    /// How a modern server is told that a request is given up.
    pub modern_cancel: CancelStyle,
    /// Whether a modern request repeats marked arguments in headers (`x-mcp-header`).
    pub mirrors_headers: bool,
}

/// How a server is told that a request is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelStyle {
    /// By `notifications/cancelled`.
    Notify,
    /// By dropping the exchange, which closes its stream.
    Drop,
}

impl TransportProfile {
    /// A connection to a server of unknown dialect, 60 s a call, that is told by notification.
    #[must_use]
    pub fn detecting() -> Self {
        Self {
            dialect: DialectChoice::Detect,
            call_timeout: Duration::from_secs(60),
            modern_cancel: CancelStyle::Notify,
            mirrors_headers: false,
        }
    }

    /// A way to a server that knows `tools/list` and `tools/call` and no handshake.
    #[must_use]
    pub fn bare() -> Self {
        Self {
            dialect: DialectChoice::Bare,
            ..Self::detecting()
        }
    }

    /// The same with another time for calls.
    #[must_use]
    pub fn with_call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// The same with marked arguments repeated in headers.
    #[must_use]
    pub fn with_mirrored_headers(mut self) -> Self {
        self.mirrors_headers = true;
        self
    }

    /// The same with another way to cancel in the modern dialect.
    #[must_use]
    pub fn with_modern_cancel(mut self, style: CancelStyle) -> Self {
        self.modern_cancel = style;
        self
    }
}

/// One request on its way (SP-009, SP-010): what is sent, and what travels with it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Exchange {
    /// Its id; never used before by this client.
    pub id: RequestId,
    /// The method, e.g. `tools/call`.
    pub method: Arc<str>,
    /// The parameters, complete: metadata included.
    pub params: Map<String, Value>,
    /// The dialect that it is written in.
    pub dialect: Dialect,
    /// Headers that a modern HTTP request has to repeat arguments in.
    pub param_headers: Vec<(String, String)>,
    /// The conversation that it belongs to, for transports that can tell it.
    pub session_id: Option<SessionId>,
    /// Trace context (`traceparent`, `tracestate`), for transports with headers.
    pub trace: Arc<[(String, String)]>,
    /// Cancelled when the caller gives up; the client drops the exchange then in any case.
    pub cancel: CancelToken,
    /// Where messages go that come before the answer.
    pub inbox: Inbox,
}

impl Exchange {
    /// A request for a transport under test, or one driven without a client.
    pub fn new(
        id: RequestId,
        method: impl Into<Arc<str>>,
        params: Map<String, Value>,
        dialect: Dialect,
        inbox: Inbox,
    ) -> Self {
        Self {
            id,
            method: method.into(),
            params,
            dialect,
            param_headers: Vec::new(),
            session_id: None,
            trace: Arc::default(),
            cancel: CancelToken::new(),
            inbox,
        }
    }

    /// The JSON-RPC message, on one line without its end.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        jsonrpc::request(&self.id, &self.method, &self.params)
    }

    /// Takes bytes that came back for this request alone: the answer, if it is among them; whatever
    /// else is among them goes to the inbox. For transports where the way back belongs to one request.
    ///
    /// An answer with another id, or none, counts: what comes back here can only be for this request.
    #[must_use]
    pub fn take(&self, bytes: &[u8]) -> Option<Answer> {
        self.take_all(jsonrpc::read(bytes))
    }

    /// Whether an answer is this request's by its id, or has none that says otherwise.
    #[cfg(feature = "http")]
    pub(crate) fn is_answered_by(&self, answer: &Answer) -> bool {
        answer
            .id
            .as_ref()
            .is_none_or(|id| *id == self.id || id.other_spelling().as_ref() == Some(&self.id))
    }

    /// As [`Exchange::take`], for messages that are read already.
    pub fn take_all(&self, messages: Vec<Incoming>) -> Option<Answer> {
        let mut found: Option<Answer> = None;
        for message in messages {
            match message {
                Incoming::Answer(answer) => {
                    let ours = answer.id.as_ref() == Some(&self.id);
                    if found.is_none() || ours {
                        found = Some(answer);
                    }
                }
                other => self.inbox.message(other),
            }
        }
        if let Some(answer) = &found
            && answer
                .id
                .as_ref()
                .is_some_and(|id| *id != self.id && id.other_spelling().as_ref() != Some(&self.id))
        {
            tracing::warn!(asked = %self.id, answered = ?answer.id, method = %self.method,
                "an MCP server answered with another id");
        }
        found
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("id", &self.id)
            .field("method", &self.method)
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}

/// A notification on its way.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Notice {
    /// The method, e.g. `notifications/cancelled`.
    pub method: Arc<str>,
    /// The parameters.
    pub params: Map<String, Value>,
    /// The dialect that it is written in.
    pub dialect: Dialect,
}

impl Notice {
    /// A notification.
    pub fn new(method: impl Into<Arc<str>>, params: Map<String, Value>, dialect: Dialect) -> Self {
        Self {
            method: method.into(),
            params,
            dialect,
        }
    }

    /// The JSON-RPC message, on one line without its end.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        jsonrpc::notification(&self.method, &self.params)
    }
}

/// An answer to a server's own request, on its way.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Response {
    /// The id of the server's request.
    pub id: RequestId,
    /// What it is answered with.
    pub outcome: Result<Value, JsonRpcError>,
    /// The dialect that it is written in.
    pub dialect: Dialect,
}

impl Response {
    /// An answer.
    #[must_use]
    pub fn new(id: RequestId, outcome: Result<Value, JsonRpcError>, dialect: Dialect) -> Self {
        Self {
            id,
            outcome,
            dialect,
        }
    }

    /// The JSON-RPC message, on one line without its end.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        match &self.outcome {
            Ok(result) => jsonrpc::result_response(&self.id, result),
            Err(error) => jsonrpc::error_response(Some(&self.id), error),
        }
    }
}

/// Takes what answers nothing. Never waits, so that no reader ever waits for a listener.
pub trait Receiver: Send + Sync {
    /// A notification, a request of the server, an answer that nobody waits for, or stray bytes.
    fn message(&self, message: Incoming);

    /// The connection is gone, and why.
    fn closed(&self, reason: McpError);
}

/// Where a transport puts what answers nothing. Cheap to clone.
#[derive(Clone)]
pub struct Inbox(Arc<dyn Receiver>);

impl Inbox {
    /// An inbox in front of a receiver.
    #[must_use]
    pub fn new(receiver: Arc<dyn Receiver>) -> Self {
        Self(receiver)
    }

    /// An inbox that drops everything.
    #[must_use]
    pub fn nowhere() -> Self {
        Self(Arc::new(Nowhere))
    }

    /// Takes a message. Never waits.
    pub fn message(&self, message: Incoming) {
        self.0.message(message);
    }

    /// Takes the news that the connection is gone.
    pub fn closed(&self, reason: McpError) {
        self.0.closed(reason);
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inbox")
    }
}

struct Nowhere;

impl Receiver for Nowhere {
    fn message(&self, _: Incoming) {}
    fn closed(&self, _: McpError) {}
}
