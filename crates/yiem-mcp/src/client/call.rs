//! Calls of tools, and the rounds in which a modern server asks for input first.

use super::request::{Course, Written};
use super::session::Session;
use super::{McpClient, Shared};
use crate::error::{McpError, McpErrorKind};
use crate::protocol::{CallResult, ResultKind, code, method, result_kind, values_for_headers};
use crate::responder::AskCaller;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use yiem_core::{CancelToken, Content, JsonObject, ProgressSink, SessionId};

/// How a call is made.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// For how long the server may be silent; progress starts it anew. Default: the client's.
    pub timeout: Option<Duration>,
    /// How long the call may last in all. Default: the client's.
    pub hard_cap: Option<Duration>,
    /// Ends the call; the server is told.
    pub cancel: CancelToken,
    /// Where the server's progress goes: objects with `progress`, and `total` and `message` if told.
    pub progress: Option<Arc<dyn ProgressSink>>,
    /// The conversation that the call belongs to.
    pub session_id: Option<SessionId>,
    /// Trace context (`traceparent`, `tracestate`) for the server.
    pub trace: Arc<[(String, String)]>,
    /// More keys for `_meta`; left out in the bare dialect.
    pub meta: JsonObject,
}

impl CallOptions {
    /// The same with a time for silence.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The same with a time for the whole call.
    #[must_use]
    pub fn hard_cap(mut self, cap: Duration) -> Self {
        self.hard_cap = Some(cap);
        self
    }

    /// The same, ended by this token.
    #[must_use]
    pub fn cancel(mut self, cancel: CancelToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// The same, with its progress told.
    #[must_use]
    pub fn progress(mut self, sink: Arc<dyn ProgressSink>) -> Self {
        self.progress = Some(sink);
        self
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions")
            .field("timeout", &self.timeout)
            .field("hard_cap", &self.hard_cap)
            .finish_non_exhaustive()
    }
}

/// What a tool answered (SP-010).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct CallOutcome {
    /// The blocks, every kind kept; empty when there were none.
    pub content: Vec<Content>,
    /// The structured value, if there was one.
    pub structured: Option<Value>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// `_meta` of the result.
    pub meta: Option<JsonObject>,
}

impl CallOutcome {
    /// Its text blocks, joined with a line break between them.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

/// How often a call is made again because a server asked for the same list or for a visit first.
const SECOND_TRIES: u8 = 1;

impl McpClient {
    /// Calls a tool by the server's own name for it.
    ///
    /// `arguments` is an object; null counts as `{}`. Input that a modern server wants first is gathered
    /// and the call made again, a bounded number of times (M-9).
    ///
    /// # Errors
    /// The server refused, could not be reached, did not answer in time, or the call was cancelled. A
    /// tool that failed is no error: see [`CallOutcome::is_error`].
    pub async fn call(
        &self,
        name: &str,
        arguments: impl Into<Value>,
        options: CallOptions,
    ) -> Result<CallOutcome, McpError> {
        let arguments = match arguments.into() {
            Value::Object(arguments) => arguments,
            Value::Null => Map::new(),
            other => {
                return Err(McpError::config(format!(
                    "the arguments of a call must be an object, not {other}"
                ))
                .at(&self.0.name));
            }
        };
        self.0.call_tool(name, Arc::new(arguments), options).await
    }
}

impl Shared {
    pub(crate) async fn call_tool(
        self: &Arc<Self>,
        name: &str,
        arguments: Arc<JsonObject>,
        options: CallOptions,
    ) -> Result<CallOutcome, McpError> {
        let doing = || format!("{} `{name}`", method::TOOLS_CALL);
        let mut seconds = 0;
        loop {
            let mirrored = Arc::clone(&arguments);
            let headers = |session: &Session| {
                if !session.dialect.is_modern() {
                    return Vec::new();
                }
                self.listings
                    .headers_of(name)
                    .map(|marked| values_for_headers(&marked, &mirrored))
                    .unwrap_or_default()
            };
            let params = || {
                let mut params = Map::with_capacity(4);
                params.insert("name".into(), name.into());
                let arguments = JsonObject::clone(&arguments);
                params.insert("arguments".into(), Value::Object(arguments));
                params
            };
            let result = self
                .request_with_input(method::TOOLS_CALL, &params, &options, &headers)
                .await;
            match result {
                Ok(result) => {
                    let result = CallResult::read(result);
                    return Ok(CallOutcome {
                        content: result.content,
                        structured: result.structured,
                        is_error: result.is_error,
                        meta: result.meta,
                    });
                }
                Err(error) if seconds < SECOND_TRIES => {
                    seconds += 1;
                    match error.refusal() {
                        Some(refusal) if refusal.code == code::HEADER_MISMATCH => {
                            self.tools_changed();
                            self.tool_listing(&options.cancel).await?;
                        }
                        Some(refusal) if refusal.code == code::URL_WANTED => {
                            let cap = options.hard_cap.unwrap_or(self.config.timeouts.hard_cap);
                            let visited = tokio::select! {
                                visited = options.cancel.run_until_cancelled(self.visit(refusal)) => {
                                    visited.ok_or_else(|| McpError::cancelled().at(&self.name))?
                                }
                                () = self.env.sleep(cap) => return Err(self.took_too_long(cap)),
                            };
                            if !visited {
                                return Err(error.doing(doing()));
                            }
                        }
                        _ => return Err(error.doing(doing())),
                    }
                }
                Err(error) => return Err(error.doing(doing())),
            }
        }
    }

    /// A request whose result may be a wish for input: it is fulfilled and the request made again.
    pub(super) async fn request_with_input(
        self: &Arc<Self>,
        name: &'static str,
        params: &(dyn Fn() -> Map<String, Value> + Send + Sync),
        options: &CallOptions,
        headers: &(dyn Fn(&Session) -> Vec<(String, String)> + Send + Sync),
    ) -> Result<Value, McpError> {
        let timeouts = self.config.timeouts;
        let timeout = options
            .timeout
            .or(timeouts.call)
            .unwrap_or_else(|| self.transport.profile().call_timeout);
        let mut course = Course {
            timeout,
            hard_cap: options.hard_cap.unwrap_or(timeouts.hard_cap).max(timeout),
            cancel: options.cancel.clone(),
            progress: options.progress.clone(),
            wants_progress: true,
            session_id: options.session_id.clone(),
            trace: Arc::clone(&options.trace),
        };
        let hard_cap = course.hard_cap;
        let end = self.env.elapsed().saturating_add(hard_cap);
        let mut extra = Map::new();
        for _ in 0..=self.config.max_rounds {
            let write = |session: &Session| {
                let mut params = params();
                if session.dialect != crate::dialect::Dialect::Bare && !options.meta.is_empty() {
                    params.insert("_meta".into(), Value::Object(options.meta.clone()));
                }
                if !extra.is_empty() {
                    params.extend(extra.clone());
                }
                Written {
                    params,
                    param_headers: headers(session),
                }
            };
            let (session, result) = self.request(name, &course, &write).await?;
            if !session.dialect.is_modern() {
                return Ok(result);
            }
            match result_kind(&result) {
                ResultKind::Complete => return Ok(result),
                ResultKind::Other(kind) => {
                    return Err(McpError::protocol(format!(
                        "a result of an unknown kind came: {kind:?}"
                    ))
                    .at(&self.name));
                }
                ResultKind::InputRequired => {
                    // The hard cap is for all rounds, and for those who are asked between them.
                    let left = end.saturating_sub(self.env.elapsed());
                    let gathered = course
                        .cancel
                        .run_until_cancelled(self.gather_input(&result, None));
                    extra = tokio::select! {
                        gathered = gathered => {
                            gathered.ok_or_else(|| McpError::cancelled().at(&self.name))??
                        }
                        () = self.env.sleep(left) => return Err(self.took_too_long(hard_cap)),
                    };
                    course.hard_cap = end.saturating_sub(self.env.elapsed());
                    if course.hard_cap.is_zero() {
                        return Err(self.took_too_long(hard_cap));
                    }
                    course.timeout = timeout.min(course.hard_cap);
                }
            }
        }
        Err(McpError::protocol(format!(
            "the server asked for input more than {} times",
            self.config.max_rounds
        ))
        .at(&self.name))
    }

    fn took_too_long(&self, hard_cap: Duration) -> McpError {
        McpError::new(McpErrorKind::TimedOut {
            after: hard_cap,
            hard_cap: true,
        })
        .at(&self.name)
    }

    /// Answers what the server wants to know; keys and state go back as they came.
    pub(super) async fn gather_input(
        self: &Arc<Self>,
        result: &Value,
        caller: Option<&Arc<dyn AskCaller>>,
    ) -> Result<Map<String, Value>, McpError> {
        let mut extra = Map::new();
        let wishes = result.get("inputRequests").and_then(Value::as_object);
        let state = result.get("requestState").filter(|state| !state.is_null());
        if wishes.is_none() && state.is_none() {
            return Err(
                McpError::protocol("the server wants input and does not say which").at(&self.name),
            );
        }
        if let Some(wishes) = wishes {
            let mut answers = Map::new();
            for (key, wish) in wishes {
                let wanted = wish
                    .get("method")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let params = wish.get("params").cloned().unwrap_or(Value::Null);
                let answer =
                    super::asked::answer(&Arc::downgrade(self), wanted, params, caller.cloned())
                        .await
                        .map_err(|refusal| {
                            McpError::protocol(format!(
                                "the server wants input that cannot be given ({wanted}): {refusal}"
                            ))
                            .at(&self.name)
                        })?;
                answers.insert(key.clone(), answer);
            }
            extra.insert("inputResponses".into(), Value::Object(answers));
        }
        if let Some(state) = state {
            extra.insert("requestState".into(), state.clone());
        }
        Ok(extra)
    }

    /// A legacy server refused because a person has to visit an address first. True when they did.
    async fn visit(self: &Arc<Self>, refusal: &crate::jsonrpc::JsonRpcError) -> bool {
        let visits = refusal
            .data
            .as_ref()
            .and_then(|data| data.get("elicitations"))
            .and_then(Value::as_array);
        let Some(visits) = visits.filter(|visits| !visits.is_empty()) else {
            return false;
        };
        for visit in visits.iter().take(self.config.max_rounds) {
            let answer = super::asked::answer(
                &Arc::downgrade(self),
                method::ELICITATION,
                visit.clone(),
                None,
            )
            .await;
            if answer.ok().and_then(|answer| answer.get("action").cloned()) != Some("accept".into())
            {
                return false;
            }
        }
        true
    }
}
