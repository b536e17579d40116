//! A whole MCP server behind a client, as something that answers requests.
//!
//! Knows: how each era's requests and results differ, so that a caller of one reaches a server of
//! another. Does not know: who carries them on either side.

use crate::client::relay::{Relayed, handed_on};
use crate::client::{McpClient, McpEvent};
use crate::dialect::{Dialect, ProtocolVersion};
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{INTERNAL_ERROR, JsonRpcError, METHOD_NOT_FOUND};
use crate::protocol::{ResultKind, ServerFacts, meta_key, method, result_kind};
use crate::responder::{Caller, Responder, check_modern};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::broadcast::error::RecvError;
use yiem_core::ProgressSink;

/// The keys of `_meta` that belong to one connection and are not handed on.
const OWN_META: &str = "io.modelcontextprotocol/";

/// What a server has to offer that is handed on.
const OFFERED: [&str; 5] = ["tools", "prompts", "resources", "completions", "logging"];

/// Hands requests on to the server behind a client.
#[derive(Debug)]
pub(super) struct Relay {
    client: McpClient,
    on_their_way: AtomicUsize,
}

impl Relay {
    pub(super) fn new(client: McpClient) -> Self {
        Self {
            client,
            on_their_way: AtomicUsize::new(0),
        }
    }

    async fn facts(&self, caller: &Caller) -> Result<(Dialect, ServerFacts), JsonRpcError> {
        self.client.facts(&caller.cancel).await.map_err(to_refusal)
    }

    fn info(&self, facts: &ServerFacts) -> Value {
        facts.info.clone().unwrap_or_else(
            || json!({"name": self.client.name(), "version": env!("CARGO_PKG_VERSION")}),
        )
    }

    async fn initialize(
        &self,
        params: &Map<String, Value>,
        caller: &Caller,
    ) -> Result<Value, JsonRpcError> {
        let (_, facts) = self.facts(caller).await?;
        let asked = params
            .get("protocolVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let version = ProtocolVersion::parse(asked)
            .filter(|version| !version.is_modern())
            .unwrap_or(ProtocolVersion::NEWEST_LEGACY);
        let mut result = json!({
            "protocolVersion": version.as_str(),
            "capabilities": capabilities(&facts),
            "serverInfo": self.info(&facts),
        });
        if let Some(text) = &facts.instructions {
            result["instructions"] = text.as_str().into();
        }
        Ok(result)
    }

    async fn discover(&self, caller: &Caller) -> Result<Value, JsonRpcError> {
        let (_, facts) = self.facts(caller).await?;
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": [ProtocolVersion::NEWEST.as_str()],
            "capabilities": capabilities(&facts),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {meta_key::SERVER_INFO: self.info(&facts)},
        });
        if let Some(text) = &facts.instructions {
            result["instructions"] = text.as_str().into();
        }
        Ok(result)
    }

    async fn hand_on(
        &self,
        name: &'static str,
        mut params: Map<String, Value>,
        caller: Caller,
        modern: bool,
    ) -> Result<Value, JsonRpcError> {
        let mut meta = match params.shift_remove("_meta") {
            Some(Value::Object(meta)) => meta,
            _ => Map::new(),
        };
        let token = meta.shift_remove(meta_key::PROGRESS_TOKEN);
        let logs = !modern || meta.contains_key(meta_key::LOG_LEVEL);
        let log_level = meta.get(meta_key::LOG_LEVEL).cloned();
        meta.retain(|key, _| !key.starts_with(OWN_META));
        if let (Some(level), Some(Dialect::Modern(_))) = (log_level, self.client.dialect()) {
            meta.insert(meta_key::LOG_LEVEL.into(), level);
        }
        if !meta.is_empty() && self.client.dialect() != Some(Dialect::Bare) {
            params.insert("_meta".into(), Value::Object(meta));
        }
        if name == method::TOOLS_CALL && !params.get("arguments").is_some_and(Value::is_object) {
            params.insert("arguments".into(), json!({}));
        }
        let progress = token.map(|token| {
            let sink: Arc<dyn ProgressSink> = Arc::new(Forward {
                caller: caller.clone(),
                token,
            });
            sink
        });
        let told = caller.clone();
        let relayed = Relayed {
            method: name,
            params,
            progress,
            notified: Arc::new(move |name, params| {
                if logs {
                    told.notify(name, params.clone());
                }
            }),
            cancel: caller.cancel.clone(),
            session_id: caller.session_id.clone(),
        };
        let result = if logs {
            self.with_loose_logs(&caller, self.client.relay(relayed))
                .await
        } else {
            self.client.relay(relayed).await
        };
        adapt(result.map_err(to_refusal)?, name, modern)
    }
}

impl Relay {
    /// Runs a request, and meanwhile tells its caller of log lines that the server tied to no request, as
    /// servers over pipes do. With several requests on their way, nobody knows whose they are, and nobody
    /// is told.
    async fn with_loose_logs<T>(&self, caller: &Caller, work: impl Future<Output = T>) -> T {
        let _counted = Counted::enter(&self.on_their_way);
        let mut events = self.client.events();
        let tell = |event| {
            if let McpEvent::Log(params) = event
                && self.on_their_way.load(Ordering::Relaxed) == 1
            {
                caller.notify(method::MESSAGE, params);
            }
        };
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    Ok(event) => tell(event),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return work.await,
                },
                done = &mut work => {
                    while let Ok(event) = events.try_recv() {
                        tell(event);
                    }
                    return done;
                }
            }
        }
    }
}

/// One request on its way.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn enter(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is declared of a server's capabilities: what can be handed on. Changes of lists are not told.
fn capabilities(facts: &ServerFacts) -> Value {
    let mut declared = Map::new();
    match &facts.capabilities {
        // It was never asked; it has tools.
        None => {
            declared.insert("tools".into(), json!({}));
        }
        Some(_) => {
            for capability in OFFERED {
                let named = facts
                    .capabilities
                    .as_ref()
                    .is_some_and(|all| all.contains_key(capability));
                if named || (capability == "tools" && facts.offers(capability)) {
                    declared.insert(capability.into(), json!({}));
                }
            }
        }
    }
    Value::Object(declared)
}

/// A result of one era as the other has it.
fn adapt(mut result: Value, name: &str, modern: bool) -> Result<Value, JsonRpcError> {
    let kind = result_kind(&result);
    let Some(object) = result.as_object_mut() else {
        return Ok(result);
    };
    if modern {
        object
            .entry("resultType")
            .or_insert_with(|| "complete".into());
        if name.ends_with("/list") || name == method::RESOURCES_READ {
            object.entry("ttlMs").or_insert_with(|| 0.into());
            object
                .entry("cacheScope")
                .or_insert_with(|| "private".into());
        }
        return Ok(result);
    }
    if kind != ResultKind::Complete {
        return Err(JsonRpcError::new(
            INTERNAL_ERROR,
            "the server wants input that a caller of this revision cannot be asked for",
        ));
    }
    for key in ["resultType", "ttlMs", "cacheScope"] {
        object.shift_remove(key);
    }
    Ok(result)
}

/// A failure on the way to the server, as what the caller is answered with. The server's own refusal goes
/// on as it came.
fn to_refusal(error: McpError) -> JsonRpcError {
    if let Some(refusal) = error.refusal() {
        return refusal.clone();
    }
    let reason = match error.kind() {
        McpErrorKind::TimedOut { .. } => "timedOut",
        McpErrorKind::Cancelled => "cancelled",
        McpErrorKind::TooLarge { .. } => "tooLarge",
        kind if kind_is_lost(kind) => "lost",
        _ => "unreachable",
    };
    JsonRpcError::new(INTERNAL_ERROR, error.to_string()).with_data(json!({"reason": reason}))
}

fn kind_is_lost(kind: &McpErrorKind) -> bool {
    matches!(kind, McpErrorKind::Lost(_))
}

#[async_trait]
impl Responder for Relay {
    async fn respond(
        &self,
        name: &str,
        params: Map<String, Value>,
        caller: Caller,
    ) -> Result<Value, JsonRpcError> {
        let version = params
            .get("_meta")
            .and_then(|meta| meta.get(meta_key::PROTOCOL_VERSION))
            .cloned();
        if let Some(version) = &version {
            check_modern(version, &params)?;
        }
        let modern = version.is_some();
        match name {
            method::INITIALIZE => self.initialize(&params, &caller).await,
            method::DISCOVER if modern => self.discover(&caller).await,
            method::PING => Ok(json!({})),
            _ => match handed_on(name) {
                Some(name) => self.hand_on(name, params, caller, modern).await,
                None => Err(JsonRpcError::new(
                    METHOD_NOT_FOUND,
                    format!("Method not found: {name}"),
                )),
            },
        }
    }
}

/// Progress of the server, told to the caller under the caller's own token.
struct Forward {
    caller: Caller,
    token: Value,
}

#[async_trait]
impl ProgressSink for Forward {
    async fn send(&self, partial: Value) {
        self.offer(partial);
    }

    fn offer(&self, partial: Value) {
        let mut params = match partial {
            Value::Object(params) => params,
            other => Map::from_iter([("message".to_owned(), other)]),
        };
        params.insert(meta_key::PROGRESS_TOKEN.into(), self.token.clone());
        self.caller.notify(method::PROGRESS, Value::Object(params));
    }
}

#[cfg(test)]
mod tests;
