//! A whole MCP server behind a client, as something that answers requests.
//!
//! Knows: how each era's requests and results differ, so that a caller of one reaches a server of
//! another. Does not know: who carries them on either side.

use super::callers::Callers;
use crate::client::relay::{Relayed, handed_on};
use crate::client::{McpClient, McpEvent};
use crate::dialect::{Dialect, ProtocolVersion};
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Incoming, JsonRpcError, METHOD_NOT_FOUND,
    RequestId,
};
use crate::protocol::{ResultKind, ServerFacts, code, meta_key, method, result_kind};
use crate::responder::{Caller, Responder, answerable, can_answer, is_modern};
use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::broadcast::error::RecvError;
use yiem_core::{BoxFuture, CancelToken, ProgressSink};

/// The keys of `_meta` that belong to one connection and are not handed on.
const OWN_META: &str = "io.modelcontextprotocol/";

/// What a server has to offer that is handed on.
const OFFERED: [&str; 5] = ["tools", "prompts", "resources", "completions", "logging"];

/// How many subscriptions are made again at once.
const AGAIN_AT_ONCE: usize = 8;

/// Hands requests on to the server behind a client.
pub(super) struct Relay {
    client: McpClient,
    callers: Arc<Callers>,
}

impl Relay {
    pub(super) fn new(client: McpClient, callers: Arc<Callers>) -> Self {
        Self { client, callers }
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
        let (dialect, facts) = self.facts(caller).await?;
        let asked = params
            .get("protocolVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let version = ProtocolVersion::parse(asked)
            .filter(|version| !version.is_modern())
            .unwrap_or(ProtocolVersion::NEWEST_LEGACY);
        let mut result = json!({
            "protocolVersion": version.as_str(),
            "capabilities": capabilities(dialect, &facts, caller.at_gateway.told),
            "serverInfo": self.info(&facts),
        });
        if let Some(text) = &facts.instructions {
            result["instructions"] = text.as_str().into();
        }
        Ok(result)
    }

    async fn discover(&self, caller: &Caller) -> Result<Value, JsonRpcError> {
        let (dialect, facts) = self.facts(caller).await?;
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": [ProtocolVersion::NEWEST.as_str()],
            // Who speaks this revision listens by a request, anywhere.
            "capabilities": capabilities(dialect, &facts, true),
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
        let declared = match meta.get(meta_key::CLIENT_CAPABILITIES) {
            Some(Value::Object(declared)) if modern => declared.clone(),
            _ => Map::new(),
        };
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
        let own_state =
            params.contains_key("requestState") || params.contains_key("inputResponses");
        if own_state && !self.client.dialect().is_some_and(Dialect::is_modern) {
            // The server would take it for a new call, and this one may have run.
            return Err(JsonRpcError::new(
                INVALID_PARAMS,
                "requestState is of no call that is held here: it was answered, was given up, or belongs to another gateway",
            ));
        }
        let declared = match (&caller.asks, declared) {
            (Some(asks), _) => asks.capabilities().clone(),
            (None, declared) => declared,
        };
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
            asks: caller.asks.clone(),
            capabilities: answerable(&declared),
        };
        let key = Arc::clone(&caller.at_gateway.key);
        let _on_the_way = self.callers.sending(key, caller.asks.clone());
        let work = self.with_answers(relayed, &caller, modern);
        let result = if logs {
            self.with_loose_logs(&caller, work).await
        } else {
            work.await
        };
        if let Some(refusal) = result.as_ref().err().and_then(McpError::refusal) {
            self.note_visits(&caller, refusal);
        }
        adapt(result.map_err(to_refusal)?, name, modern)
    }
}

impl Relay {
    /// A refusal may name addresses to visit first: their caller is told when that is done.
    fn note_visits(&self, caller: &Caller, refusal: &JsonRpcError) {
        if refusal.code != code::URL_WANTED {
            return;
        }
        let visits = refusal
            .data
            .as_ref()
            .and_then(|data| data.get("elicitations"));
        for visit in visits.and_then(Value::as_array).into_iter().flatten() {
            self.callers.visits(&caller.at_gateway.key, visit);
        }
    }

    /// Runs a request, and meanwhile tells its caller of log lines that the server tied to no request, as
    /// servers over pipes do. With several requests on their way, nobody knows whose they are, and nobody
    /// is told.
    async fn with_loose_logs<T>(&self, caller: &Caller, work: impl Future<Output = T>) -> T {
        let mut events = self.client.events();
        let tell = |event| {
            if let McpEvent::Log(params) = event
                && self.callers.is_alone()
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

    /// Sends a request on, and answers what the server wants to know first where its caller cannot be told
    /// of it in a result.
    async fn with_answers(
        &self,
        mut relayed: Relayed,
        caller: &Caller,
        modern: bool,
    ) -> Result<Value, McpError> {
        let asks = caller.asks.as_ref();
        for _ in 0..=self.client.max_rounds() {
            let result = self.client.relay(relayed.clone()).await?;
            let asked = self.client.dialect().is_some_and(Dialect::is_modern)
                && result_kind(&result) == ResultKind::InputRequired;
            if !asked || (modern && tells_wishes(&result, &relayed.capabilities)) {
                return Ok(result);
            }
            let answers = caller
                .cancel
                .run_until_cancelled(self.client.answer_wishes(&result, asks.filter(|_| !modern)))
                .await
                .ok_or_else(McpError::cancelled)??;
            relayed.params.shift_remove("requestState");
            relayed.params.shift_remove("inputResponses");
            relayed.params.extend(answers);
        }
        Err(McpError::protocol(format!(
            "the server asked for input more than {} times",
            self.client.max_rounds()
        )))
    }

    /// Tells a caller of changes for as long as it listens.
    async fn listen(
        &self,
        params: &Map<String, Value>,
        caller: &Caller,
    ) -> Result<Value, JsonRpcError> {
        let (dialect, facts) = self.facts(caller).await?;
        // Each listens for itself: the end of one is not the end of another of the same caller.
        let key = self.callers.listener(&caller.at_gateway.key);
        let wanted = params.get("notifications");
        let wants = |name: &str| {
            wanted
                .and_then(|wanted| wanted.get(name))
                .and_then(Value::as_bool)
                .unwrap_or(false)
        };
        let mut granted = Map::new();
        let mut methods = Vec::new();
        for (capability, name, told) in LISTS {
            if wants(name) && facts.tells_changes_of(capability) {
                granted.insert(name.into(), true.into());
                methods.push(told);
            }
        }
        // Changes from here on are not missed.
        let mut changes = self.callers.changes();
        let uris = wanted
            .and_then(|wanted| wanted.get("resourceSubscriptions"))
            .and_then(Value::as_array);
        let mut subscribed = Subscribed {
            callers: &self.callers,
            caller: &key,
            uris: Vec::new(),
        };
        for uri in uris.into_iter().flatten().filter_map(Value::as_str) {
            if subscribes(dialect, &facts) && self.subscribe(&key, caller, uri).await.is_ok() {
                subscribed.uris.push(uri.to_owned());
            }
        }
        if !subscribed.uris.is_empty() {
            granted.insert("resourceSubscriptions".into(), json!(subscribed.uris));
            methods.push(method::RESOURCE_UPDATED);
        }
        let id = caller
            .at_gateway
            .request_id
            .as_ref()
            .map_or(Value::Null, RequestId::to_value);
        let meta = json!({meta_key::SUBSCRIPTION_ID: id});
        caller.notify(
            method::LISTEN_ACKNOWLEDGED,
            json!({"notifications": granted, "_meta": meta}),
        );
        loop {
            let changes = tokio::select! {
                changes = changes.next() => changes,
                () = caller.at_gateway.ending.cancelled() => {
                    return Ok(json!({"resultType": "complete", "_meta": meta}));
                }
            };
            for change in changes {
                // Who took the request back hears nothing more of it, also of what came before this task is ended.
                let concerned =
                    !caller.cancel.is_cancelled() && self.callers.concerns(&key, &change);
                if let Incoming::Notification {
                    method: name,
                    params,
                } = change
                    && concerned
                    && methods.contains(&name.as_str())
                {
                    let mut params = match params {
                        Value::Object(params) => params,
                        _ => Map::new(),
                    };
                    params.insert("_meta".into(), meta.clone());
                    caller.notify(&name, Value::Object(params));
                }
            }
        }
    }

    async fn subscribe(
        &self,
        key: &Arc<str>,
        caller: &Caller,
        uri: &str,
    ) -> Result<Value, JsonRpcError> {
        let already = self.callers.is_subscribed(key, uri);
        self.callers
            .subscribe(key, uri)
            .map_err(|why| JsonRpcError::new(INTERNAL_ERROR, why))?;
        // Given up before the server answered, it may be subscribed.
        let mut unsure = Subscribed {
            callers: &self.callers,
            caller: key,
            uris: Vec::new(),
        };
        if !already {
            unsure.uris.push(uri.to_owned());
        }
        let subscribed = self
            .client
            .relay(subscription(method::SUBSCRIBE, uri, caller))
            .await;
        unsure.uris.clear();
        subscribed.map_err(|error| {
            // One that was made before stands.
            if !already {
                self.callers.unsubscribe(key, uri);
            }
            to_refusal(error)
        })
    }

    async fn unsubscribe(&self, caller: &Caller, uri: &str) -> Result<Value, JsonRpcError> {
        if !self.callers.unsubscribe(&caller.at_gateway.key, uri) {
            // Others still want to be told.
            return Ok(json!({}));
        }
        let unsubscribed = self
            .client
            .relay(subscription(method::UNSUBSCRIBE, uri, caller))
            .await;
        subscribe_if_wanted(&self.client, &self.callers, uri).await;
        unsubscribed.map_err(to_refusal)
    }

    /// Changes of the server, told to all who listen. Never ends by itself.
    pub(super) async fn watch(client: McpClient, callers: Arc<Callers>) {
        let mut events = client.events();
        // Beside the events: a server that answers slowly must not make us miss them.
        let mut again: BoxFuture<'_, ()> = Box::pin(std::future::pending());
        let mut letting_go = std::pin::pin!(let_go(&client, &callers));
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                () = &mut again => {
                    again = Box::pin(std::future::pending());
                    continue;
                }
                () = &mut letting_go => return,
            };
            match event {
                Ok(McpEvent::ToolsChanged) => callers.tell(method::TOOLS_CHANGED, json!({})),
                Ok(McpEvent::PromptsChanged) => callers.tell(method::PROMPTS_CHANGED, json!({})),
                Ok(McpEvent::ResourcesChanged) => {
                    callers.tell(method::RESOURCES_CHANGED, json!({}));
                }
                Ok(McpEvent::ResourceUpdated(params)) => {
                    callers.tell(method::RESOURCE_UPDATED, params);
                }
                Ok(McpEvent::ElicitationComplete(params)) => {
                    callers.tell(method::ELICITATION_COMPLETE, params);
                }
                // A server that was started again knows nothing of what it was asked before, and may
                // have other lists. So may one of whose changes too many came at once.
                Ok(McpEvent::Connected(_)) => {
                    again = Box::pin(subscribe_again(&client, callers.subscribed()));
                    for (_, _, told) in LISTS {
                        callers.tell(told, json!({}));
                    }
                }
                Err(RecvError::Lagged(_)) => {
                    for (_, _, told) in LISTS {
                        callers.tell(told, json!({}));
                    }
                }
                Ok(_) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }
}

/// Tells the server of what nobody is subscribed to any more, as sessions and listeners end. Never ends.
async fn let_go(client: &McpClient, callers: &Callers) {
    loop {
        let unwanted = callers.unwanted().await;
        stream::iter(unwanted)
            .for_each_concurrent(AGAIN_AT_ONCE, async |uri| {
                // A server that is gone has forgotten it, and is not started for this.
                if client.dialect().is_none() || callers.is_wanted(&uri) {
                    return;
                }
                let nobody = Caller::new(CancelToken::new(), |_| {});
                let over = subscription(method::UNSUBSCRIBE, &uri, &nobody);
                if let Err(error) = client.relay(over).await {
                    tracing::debug!(%error, %uri, "a subscription could not be ended");
                }
                subscribe_if_wanted(client, callers, &uri).await;
            })
            .await;
    }
}

/// Subscribes once more where somebody came to want it while it was ended: the server may have taken the two in
/// either order.
async fn subscribe_if_wanted(client: &McpClient, callers: &Callers, uri: &str) {
    if callers.is_wanted(uri) {
        subscribe_again(client, HashSet::from([uri.to_owned()])).await;
    }
}

/// Asks a server that was started again for what callers are subscribed to.
async fn subscribe_again(client: &McpClient, uris: HashSet<String>) {
    stream::iter(uris)
        .for_each_concurrent(AGAIN_AT_ONCE, async |uri| {
            let nobody = Caller::new(CancelToken::new(), |_| {});
            let again = subscription(method::SUBSCRIBE, &uri, &nobody);
            if let Err(error) = client.relay(again).await {
                tracing::warn!(%error, %uri, "a subscription could not be made again");
            }
        })
        .await;
}

/// Lists that change: the capability, the word for it in a wish to listen, the notification.
const LISTS: [(&str, &str, &str); 3] = [
    ("tools", "toolsListChanged", method::TOOLS_CHANGED),
    ("prompts", "promptsListChanged", method::PROMPTS_CHANGED),
    (
        "resources",
        "resourcesListChanged",
        method::RESOURCES_CHANGED,
    ),
];

/// Whether single resources can be subscribed to through the gateway: where the server tells of their changes.
fn subscribes(dialect: Dialect, facts: &ServerFacts) -> bool {
    dialect != Dialect::Bare
        && facts
            .capabilities
            .as_ref()
            .and_then(|all| all.get("resources")?.get("subscribe")?.as_bool())
            .unwrap_or(false)
}

fn subscription(name: &'static str, uri: &str, caller: &Caller) -> Relayed {
    Relayed {
        method: name,
        params: Map::from_iter([("uri".to_owned(), uri.into())]),
        progress: None,
        notified: Arc::new(|_, _| {}),
        cancel: caller.cancel.clone(),
        session_id: caller.session_id.clone(),
        asks: None,
        capabilities: Map::new(),
    }
}

/// What one caller listens to; its drop ends that.
struct Subscribed<'a> {
    callers: &'a Callers,
    caller: &'a str,
    uris: Vec<String>,
}

impl Drop for Subscribed<'_> {
    fn drop(&mut self) {
        for uri in &self.uris {
            self.callers.let_go(self.caller, uri);
        }
    }
}

/// Whether a caller said that it can answer one of the wishes, or there is only a state to be brought back:
/// then it is told as it came.
fn tells_wishes(result: &Value, declared: &Map<String, Value>) -> bool {
    let wishes = result.get("inputRequests").and_then(Value::as_object);
    wishes.is_none_or(|wishes| {
        wishes.is_empty()
            || wishes.values().any(|wish| {
                let name = wish.get("method").and_then(Value::as_str);
                let params = wish.get("params").unwrap_or(&Value::Null);
                name.is_some_and(|name| can_answer(declared, name, params))
            })
    })
}

/// What is declared of a server's capabilities: what can be handed on; changes only to those who can be told.
fn capabilities(dialect: Dialect, facts: &ServerFacts, told: bool) -> Value {
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
                    let mut details = Map::new();
                    if told && facts.tells_changes_of(capability) {
                        details.insert("listChanged".into(), true.into());
                    }
                    if told && capability == "resources" && subscribes(dialect, facts) {
                        details.insert("subscribe".into(), true.into());
                    }
                    declared.insert(capability.into(), Value::Object(details));
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
    JsonRpcError::new(INTERNAL_ERROR, error.in_brief()).with_data(json!({"reason": reason}))
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
        let modern = is_modern(&params)?;
        match name {
            method::INITIALIZE => self.initialize(&params, &caller).await,
            method::DISCOVER if modern => self.discover(&caller).await,
            method::PING => Ok(json!({})),
            method::LISTEN if modern => self.listen(&params, &caller).await,
            method::SUBSCRIBE | method::UNSUBSCRIBE => {
                let (dialect, facts) = self.facts(&caller).await?;
                let uri = params.get("uri").and_then(Value::as_str).ok_or_else(|| {
                    JsonRpcError::new(INVALID_PARAMS, "the uri of a resource is missing")
                })?;
                match () {
                    () if !subscribes(dialect, &facts) => Err(JsonRpcError::new(
                        METHOD_NOT_FOUND,
                        format!("Method not found: {name}"),
                    )),
                    () if name == method::SUBSCRIBE && !caller.at_gateway.told => {
                        Err(JsonRpcError::new(
                            INVALID_REQUEST,
                            "nobody could be told of changes outside of a session; open one by initialize over HTTP with sessions or stdio, or listen by subscriptions/listen",
                        ))
                    }
                    () if name == method::SUBSCRIBE => {
                        self.subscribe(&caller.at_gateway.key, &caller, uri).await
                    }
                    () => self.unsubscribe(&caller, uri).await,
                }
            }
            _ => match handed_on(name) {
                Some(name) => self.hand_on(name, params, caller, modern).await,
                None => Err(JsonRpcError::new(
                    METHOD_NOT_FOUND,
                    format!("Method not found: {name}"),
                )),
            },
        }
    }

    async fn notified(&self, name: &str, _: &Value) {
        // The server asks again for the roots, and whoever told gets the question.
        if name == method::ROOTS_CHANGED && self.client.dialect().is_some_and(Dialect::is_legacy) {
            self.client.tell(method::ROOTS_CHANGED, Map::new()).await;
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
