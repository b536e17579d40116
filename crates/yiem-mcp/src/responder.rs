//! The other side: what answers MCP requests.
//!
//! Knows: how a request is answered, and how a set of tools answers as a server in all dialects.
//! Does not know: who carries the messages; in-process transports and the gateway do.

mod asking;

#[cfg(feature = "gateway")]
pub(crate) use asking::answerable;
pub(crate) use asking::{AskCaller, can_answer};

use crate::dialect::ProtocolVersion;
use crate::jsonrpc::{INTERNAL_ERROR, INVALID_PARAMS, Incoming, JsonRpcError, METHOD_NOT_FOUND};
use crate::protocol::{code, content_to_wire, meta_key, method};
use async_trait::async_trait;
use futures_util::FutureExt as _;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use yiem_core::{
    ArgsCheck, CancelToken, Env, IdKind, JsonObject, ProgressSink, SessionId, Tool, ToolContext,
    ToolOutput, ValidArgs,
};

#[cfg(test)]
mod tests;

/// Answers requests as an MCP server does.
#[async_trait]
pub trait Responder: Send + Sync + 'static {
    /// Answers one request.
    ///
    /// Dropped, and `caller.cancel` cancelled, when the caller gives up.
    ///
    /// # Errors
    /// The refusal that the caller is answered with.
    async fn respond(
        &self,
        method: &str,
        params: Map<String, Value>,
        caller: Caller,
    ) -> Result<Value, JsonRpcError>;

    /// Takes a notification.
    async fn notified(&self, method: &str, params: &Value) {
        let _ = (method, params);
    }
}

/// Who asks, as a [`Responder`] sees it.
#[derive(Clone)]
pub struct Caller {
    /// Cancelled when the caller gives up.
    pub cancel: CancelToken,
    /// The caller's conversation, where it is told.
    pub session_id: Option<SessionId>,
    send: Arc<dyn Fn(Incoming) + Send + Sync>,
    progress_always: bool,
    /// What the gateway knows of it.
    #[cfg(feature = "gateway")]
    pub(crate) at_gateway: AtGateway,
    pub(crate) asks: Option<Arc<dyn AskCaller>>,
}

/// What a gateway knows of a caller.
#[cfg(feature = "gateway")]
#[derive(Clone, Default)]
pub(crate) struct AtGateway {
    /// Who asks, as far as callers can be told apart.
    pub(crate) key: Arc<str>,
    /// The id of the request.
    pub(crate) request_id: Option<crate::jsonrpc::RequestId>,
    /// Whether it has a way on which it is told of changes outside of its requests.
    pub(crate) told: bool,
    /// Cancelled when what lasts has to end, with an answer.
    pub(crate) ending: CancelToken,
}

impl Caller {
    /// A caller to whom messages before the answer are given through `send`, which must not wait.
    pub fn new(cancel: CancelToken, send: impl Fn(Incoming) + Send + Sync + 'static) -> Self {
        Self {
            cancel,
            session_id: None,
            send: Arc::new(send),
            progress_always: false,
            #[cfg(feature = "gateway")]
            at_gateway: AtGateway::default(),
            asks: None,
        }
    }

    /// Whether the caller said that it can answer a question of this kind (`elicitation/create`,
    /// `sampling/createMessage`, `roots/list`), and there is a way to it (M-9).
    #[must_use]
    pub fn can_answer(&self, method: &str, params: &Value) -> bool {
        self.asks
            .as_ref()
            .is_some_and(|asks| can_answer(asks.capabilities(), method, params))
    }

    /// Asks the caller something in the course of its request: the method's parameters in, its result out,
    /// both as MCP has them. A caller of the legacy era gets a request, one of the modern era an
    /// input-required result; which of them makes no difference here.
    ///
    /// # Errors
    /// The caller's refusal; code −32601 where it cannot be asked (see [`Caller::can_answer`]) or gave no
    /// answer.
    pub async fn ask(&self, method: &str, params: Value) -> Result<Value, JsonRpcError> {
        let nobody = || {
            JsonRpcError::new(
                METHOD_NOT_FOUND,
                format!("the caller cannot be asked for {method}"),
            )
        };
        match &self.asks {
            Some(asks) if self.can_answer(method, &params) => asks
                .ask(method, &params)
                .await
                .unwrap_or_else(|| Err(nobody())),
            _ => Err(nobody()),
        }
    }

    /// The same with the conversation that it belongs to.
    #[must_use]
    pub fn with_session(mut self, session: Option<SessionId>) -> Self {
        self.session_id = session;
        self
    }

    /// The same, told of progress without having given a token: its way back is its own.
    #[must_use]
    pub fn with_progress_always(mut self) -> Self {
        self.progress_always = true;
        self
    }

    /// Sends a notification that belongs to the request.
    pub fn notify(&self, method: &str, params: Value) {
        (self.send)(Incoming::Notification {
            method: method.to_owned(),
            params,
        });
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("session_id", &self.session_id)
            .finish_non_exhaustive()
    }
}

/// Accepts the arguments of a call before its tool sees them.
///
/// A registry of yiem-tools has the whole validation of T-4; without one, a [`ToolServer`] prepares the
/// arguments and holds them to the schema's `required` (SP-023).
#[async_trait]
pub trait ArgsGate: Send + Sync + 'static {
    /// The arguments as accepted.
    ///
    /// # Errors
    /// What is wrong with them, for a model to read.
    async fn accept(
        &self,
        tool: &Arc<dyn Tool>,
        arguments: JsonObject,
    ) -> Result<ValidArgs, String>;
}

struct RequiredOnly;

#[async_trait]
impl ArgsGate for RequiredOnly {
    async fn accept(
        &self,
        tool: &Arc<dyn Tool>,
        arguments: JsonObject,
    ) -> Result<ValidArgs, String> {
        let arguments = tool
            .prepare_arguments(arguments)
            .await
            .map_err(|error| error.message().to_owned())?;
        match tool.validate_required_args(&arguments).await {
            ArgsCheck::Reject(reason) => return Err(reason),
            ArgsCheck::Accept => {}
            ArgsCheck::Default => {
                let required = tool
                    .definition()
                    .input_schema
                    .get("required")
                    .and_then(Value::as_array);
                let missing: Vec<&str> = required
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .filter(|key| !arguments.contains_key(*key))
                    .collect();
                if !missing.is_empty() {
                    return Err(format!(
                        "Missing required arguments: {}",
                        missing.join(", ")
                    ));
                }
            }
        }
        Ok(ValidArgs::accepted(arguments))
    }
}

/// A set of tools as an MCP server: in the same process (`McpServer::in_process`), or behind a gateway.
///
/// Speaks all dialects: `tools/list` and `tools/call` without ado (bare), `initialize` (legacy),
/// `server/discover` and metadata (modern).
#[derive(Clone)]
pub struct ToolServer {
    name: Arc<str>,
    version: Arc<str>,
    instructions: Option<Arc<str>>,
    tools: Arc<Vec<Arc<dyn Tool>>>,
    by_name: Arc<HashMap<String, usize>>,
    gate: Arc<dyn ArgsGate>,
    env: Arc<dyn Env>,
    page_size: usize,
}

impl ToolServer {
    /// A server without tools.
    pub fn new(name: impl Into<Arc<str>>, env: Arc<dyn Env>) -> Self {
        Self {
            name: name.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            instructions: None,
            tools: Arc::default(),
            by_name: Arc::default(),
            gate: Arc::new(RequiredOnly),
            env,
            page_size: usize::MAX,
        }
    }

    /// The same with one more tool; one of the same name is replaced.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.shared_tool(Arc::new(tool))
    }

    /// The same with these tools too.
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        tools.into_iter().fold(self, Self::shared_tool)
    }

    fn shared_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        let tools = Arc::make_mut(&mut self.tools);
        let by_name = Arc::make_mut(&mut self.by_name);
        let name = tool.definition().name.clone();
        match by_name.get(&name) {
            Some(at) => tools[*at] = tool,
            None => {
                by_name.insert(name, tools.len());
                tools.push(tool);
            }
        }
        self
    }

    /// The same with another way to accept arguments.
    #[must_use]
    pub fn gate(mut self, gate: Arc<dyn ArgsGate>) -> Self {
        self.gate = gate;
        self
    }

    /// The same with a version of its own, which callers are told. Default: yiem-mcp's.
    #[must_use]
    pub fn version(mut self, version: impl Into<Arc<str>>) -> Self {
        self.version = version.into();
        self
    }

    /// The same with words on its use.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<Arc<str>>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// The same, listing its tools in pages of at most this many.
    #[must_use]
    pub fn page_size(mut self, size: usize) -> Self {
        self.page_size = size.max(1);
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn info(&self) -> Value {
        json!({"name": &*self.name, "version": &*self.version})
    }

    fn initialize(&self, params: &Map<String, Value>) -> Value {
        let asked = params
            .get("protocolVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let version = ProtocolVersion::parse(asked)
            .filter(|version| !version.is_modern())
            .unwrap_or(ProtocolVersion::NEWEST_LEGACY);
        let mut result = json!({
            "protocolVersion": version.as_str(),
            "capabilities": {"tools": {}},
            "serverInfo": self.info(),
        });
        if let Some(text) = &self.instructions {
            result["instructions"] = (&**text).into();
        }
        result
    }

    fn discover(&self) -> Value {
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": [ProtocolVersion::NEWEST.as_str()],
            "capabilities": {"tools": {}},
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {meta_key::SERVER_INFO: self.info()},
        });
        if let Some(text) = &self.instructions {
            result["instructions"] = (&**text).into();
        }
        result
    }

    fn list(&self, params: &Map<String, Value>) -> Result<Value, JsonRpcError> {
        let start = match params.get("cursor") {
            None | Some(Value::Null) => 0,
            Some(Value::String(cursor)) if cursor.is_empty() => 0,
            Some(cursor) => cursor
                .as_str()
                .and_then(|cursor| cursor.strip_prefix("after-")?.parse::<usize>().ok())
                .filter(|start| *start <= self.tools.len())
                .ok_or_else(|| {
                    JsonRpcError::new(INVALID_PARAMS, format!("no such cursor: {cursor}"))
                })?,
        };
        let end = start.saturating_add(self.page_size).min(self.tools.len());
        let tools: Vec<Value> = self.tools[start..end]
            .iter()
            .map(definition_to_wire)
            .collect();
        let mut result = json!({"tools": tools});
        if end < self.tools.len() {
            result["nextCursor"] = format!("after-{end}").into();
        }
        Ok(result)
    }

    async fn call(
        &self,
        params: Map<String, Value>,
        caller: Caller,
    ) -> Result<Value, JsonRpcError> {
        let mut params = params;
        let name = match params.get("name") {
            Some(Value::String(name)) => name.clone(),
            _ => {
                return Err(JsonRpcError::new(
                    INVALID_PARAMS,
                    "tools/call needs the name of a tool",
                ));
            }
        };
        let arguments = match params.shift_remove("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(arguments)) => arguments,
            Some(_) => {
                return Err(JsonRpcError::new(
                    INVALID_PARAMS,
                    "arguments must be an object",
                ));
            }
        };
        let Some(tool) = self.by_name.get(&name).map(|at| &self.tools[*at]) else {
            return Err(JsonRpcError::new(
                INVALID_PARAMS,
                format!("Unknown tool: {name}"),
            ));
        };
        let token = params
            .get("_meta")
            .and_then(|meta| meta.get(meta_key::PROGRESS_TOKEN))
            .cloned();
        let work = async {
            let arguments = match self.gate.accept(tool, arguments).await {
                Ok(arguments) => arguments,
                Err(reason) => return Ok(ToolOutput::text(reason).failed()),
            };
            let mut context =
                ToolContext::new(self.env.new_id(IdKind::Call), &*name, Arc::clone(&self.env));
            context.cancel = caller.cancel.clone();
            context.session_id = caller.session_id.clone();
            if token.is_some() || caller.progress_always {
                context = context.with_progress(Arc::new(ProgressOut {
                    caller: caller.clone(),
                    token: token.unwrap_or(Value::Null),
                    count: Arc::default(),
                }));
            }
            tool.call(arguments, context).await
        };
        match std::panic::AssertUnwindSafe(work).catch_unwind().await {
            Ok(Ok(output)) => Ok(output_to_wire(output)),
            Ok(Err(error)) => Ok(output_to_wire(error.into_output())),
            Err(_) => Err(JsonRpcError::new(
                INTERNAL_ERROR,
                format!("the tool {name} panicked"),
            )),
        }
    }
}

impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer")
            .field("name", &self.name)
            .field("tools", &self.tools.len())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Responder for ToolServer {
    async fn respond(
        &self,
        name: &str,
        params: Map<String, Value>,
        caller: Caller,
    ) -> Result<Value, JsonRpcError> {
        let modern = is_modern(&params)?;
        let mut result = match name {
            method::INITIALIZE => self.initialize(&params),
            method::DISCOVER if modern => return Ok(self.discover()),
            method::PING => json!({}),
            method::TOOLS_LIST => {
                let mut page = self.list(&params)?;
                if modern {
                    page["ttlMs"] = 0.into();
                    page["cacheScope"] = "private".into();
                }
                page
            }
            method::TOOLS_CALL => self.call(params, caller).await?,
            _ => {
                return Err(JsonRpcError::new(
                    METHOD_NOT_FOUND,
                    format!("Method not found: {name}"),
                ));
            }
        };
        if modern {
            result["resultType"] = "complete".into();
        }
        Ok(result)
    }
}

/// Whether a request is of the modern era, which is then held to what its revision demands.
pub(crate) fn is_modern(params: &Map<String, Value>) -> Result<bool, JsonRpcError> {
    let meta = params.get("_meta");
    match meta.and_then(|meta| meta.get(meta_key::PROTOCOL_VERSION)) {
        Some(version) => check_modern(version, params).map(|()| true),
        None => Ok(false),
    }
}

/// Holds a modern request to what its revision demands.
pub(crate) fn check_modern(
    version: &Value,
    params: &Map<String, Value>,
) -> Result<(), JsonRpcError> {
    let spoken = version
        .as_str()
        .and_then(ProtocolVersion::parse)
        .is_some_and(ProtocolVersion::is_modern);
    if !spoken {
        return Err(
            JsonRpcError::new(code::UNSUPPORTED_VERSION, "Unsupported protocol version").with_data(
                json!({"supported": [ProtocolVersion::NEWEST.as_str()], "requested": version}),
            ),
        );
    }
    let capabilities = params
        .get("_meta")
        .and_then(|meta| meta.get(meta_key::CLIENT_CAPABILITIES));
    if capabilities.is_none_or(|value| !value.is_object()) {
        return Err(JsonRpcError::new(
            INVALID_PARAMS,
            format!("_meta lacks {}", meta_key::CLIENT_CAPABILITIES),
        ));
    }
    Ok(())
}

/// A tool's definition as `tools/list` has it.
pub(crate) fn definition_to_wire(tool: &Arc<dyn Tool>) -> Value {
    let definition = tool.definition();
    let mut schema = definition.input_schema.clone();
    match &mut schema {
        Value::Object(object) => {
            object.entry("type").or_insert_with(|| "object".into());
        }
        other => *other = json!({"type": "object"}),
    }
    let mut wire = json!({
        "name": definition.name,
        "title": definition.label,
        "description": definition.description,
        "inputSchema": schema,
    });
    if definition.label.is_empty() || definition.label == definition.name {
        wire.as_object_mut().map(|wire| wire.shift_remove("title"));
    }
    if let Some(schema @ Value::Object(_)) = &definition.output_schema {
        wire["outputSchema"] = schema.clone();
    }
    if let Some(annotations) = &definition.annotations {
        wire["annotations"] = annotations.clone();
    }
    wire
}

/// A tool's output as `tools/call` has it.
pub(crate) fn output_to_wire(output: ToolOutput) -> Value {
    let content: Vec<Value> = output.content.iter().map(content_to_wire).collect();
    let mut wire = json!({"content": content, "isError": output.is_error});
    if let Some(structured) = output.structured {
        wire["structuredContent"] = structured;
    }
    wire
}

/// Progress of a tool, as notifications to whoever called.
struct ProgressOut {
    caller: Caller,
    token: Value,
    count: Arc<std::sync::atomic::AtomicU64>,
}

#[async_trait]
impl ProgressSink for ProgressOut {
    async fn send(&self, partial: Value) {
        self.offer(partial);
    }

    fn offer(&self, partial: Value) {
        let count = self
            .count
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
            + 1;
        let mut params = json!({"progressToken": self.token, "progress": count});
        match partial {
            Value::Object(partial) if partial.get("progress").is_some_and(Value::is_number) => {
                for key in ["progress", "total", "message"] {
                    if let Some(value) = partial.get(key) {
                        params[key] = value.clone();
                    }
                }
            }
            Value::String(text) => params["message"] = text.into(),
            Value::Null => {}
            other => params["message"] = other.to_string().into(),
        }
        self.caller.notify(method::PROGRESS, params);
    }
}
