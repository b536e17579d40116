//! Servers in the same process: one that answers JSON-RPC, or a closure.

use super::{Exchange, Inbox, Notice, Transport, TransportProfile};
use crate::dialect::DialectChoice;
use crate::error::McpError;
use crate::jsonrpc::{Answer, AnswerOutcome, read_value};
use crate::responder::{Caller, Responder};
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use yiem_core::BoxFuture;

/// A [`Responder`] called in place, without bytes in between.
#[derive(Clone)]
pub struct MemoryTransport {
    responder: Arc<dyn Responder>,
    dialect: DialectChoice,
}

impl MemoryTransport {
    /// A way to that server, spoken to in the bare dialect.
    #[must_use]
    pub fn new(responder: Arc<dyn Responder>) -> Self {
        Self {
            responder,
            dialect: DialectChoice::Bare,
        }
    }

    /// The same, spoken to in another dialect.
    #[must_use]
    pub fn with_dialect(mut self, dialect: DialectChoice) -> Self {
        self.dialect = dialect;
        self
    }
}

impl fmt::Debug for MemoryTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTransport")
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for MemoryTransport {
    fn profile(&self) -> TransportProfile {
        TransportProfile {
            dialect: self.dialect,
            ..TransportProfile::detecting()
        }
    }

    async fn open(&self, _: Inbox) -> Result<(), McpError> {
        Ok(())
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Answer, McpError> {
        let inbox = exchange.inbox.clone();
        let cancel = exchange.cancel.child();
        let caller = Caller::new(cancel.clone(), move |message| inbox.message(message))
            .with_session(exchange.session_id.clone())
            .with_progress_always();
        // Dropped with this future, which is how the server learns that the caller gave up.
        let _guard = CancelOnDrop(cancel);
        let outcome = match self
            .responder
            .respond(&exchange.method, exchange.params, caller)
            .await
        {
            Ok(result) => AnswerOutcome::Result(result),
            Err(error) => AnswerOutcome::Error(error),
        };
        Ok(Answer {
            id: Some(exchange.id),
            outcome,
        })
    }

    async fn notify(&self, notice: Notice) -> Result<(), McpError> {
        self.responder
            .notified(&notice.method, &Value::Object(notice.params))
            .await;
        Ok(())
    }

    async fn close(&self) {}
}

struct CancelOnDrop(yiem_core::CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

type Closure = dyn Fn(Exchange) -> BoxFuture<'static, Value> + Send + Sync;

/// A closure as a server: method and parameters in, a JSON-RPC value out (the seeds' callable
/// `mcpServer`).
///
/// The value is a whole answer (`{"result": …}` or `{"error": …}`, with or without `jsonrpc` and `id`), or
/// the bare result. A closure that panics has failed that one request.
#[derive(Clone)]
pub struct ClosureTransport {
    closure: Arc<Closure>,
}

impl ClosureTransport {
    /// A server that is this closure.
    pub fn new<F, Fut>(closure: F) -> Self
    where
        F: Fn(String, Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Value> + Send + 'static,
    {
        Self::with_exchange(move |exchange| {
            closure(exchange.method.to_string(), Value::Object(exchange.params))
        })
    }

    /// A server that is this closure, which also sees session id, cancel token and inbox (SP-009, SP-010).
    pub fn with_exchange<F, Fut>(closure: F) -> Self
    where
        F: Fn(Exchange) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Value> + Send + 'static,
    {
        Self {
            closure: Arc::new(move |exchange| Box::pin(closure(exchange))),
        }
    }
}

impl fmt::Debug for ClosureTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClosureTransport")
    }
}

#[async_trait]
impl Transport for ClosureTransport {
    fn profile(&self) -> TransportProfile {
        TransportProfile::bare()
    }

    async fn open(&self, _: Inbox) -> Result<(), McpError> {
        Ok(())
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Answer, McpError> {
        use futures_util::FutureExt as _;
        // Called inside: the closure may panic before there is a future of it.
        let call = async { (self.closure)(exchange.clone()).await };
        let call = std::panic::AssertUnwindSafe(call).catch_unwind();
        let Ok(value) = call.await else {
            return Err(McpError::lost("the closure that is the server panicked"));
        };
        if is_bare_result(&value) {
            return Ok(Answer {
                id: Some(exchange.id),
                outcome: AnswerOutcome::Result(value),
            });
        }
        exchange
            .take_all(read_value(value))
            .ok_or_else(|| McpError::unreadable("the closure's value is no JSON-RPC answer"))
    }

    async fn notify(&self, _: Notice) -> Result<(), McpError> {
        Ok(())
    }

    async fn close(&self) {}
}

/// A value that is meant as the result itself: an object without the words of JSON-RPC.
fn is_bare_result(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|object: &Map<String, Value>| {
            !["jsonrpc", "result", "error", "id", "method"]
                .iter()
                .any(|key| object.contains_key(*key))
        })
}
