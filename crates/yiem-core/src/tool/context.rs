//! What a call is given besides its arguments.
//!
//! Knows: who calls, when to stop, whom to tell, the application's own values. Does not know:
//! how progress is delivered and nested calls are run.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use serde_json::Value;

use super::{ToolError, ToolOutput};
use crate::cancel::CancelToken;
use crate::env::Env;
use crate::id::{RunId, SessionId, ToolCallId};
use crate::json::JsonObject;

/// What a call is given besides its arguments: who it is, when to stop, whom to tell, and what
/// the application handed in.
///
/// Owned and cheap to clone: it may be moved into tasks of the tool's own.
#[derive(Clone)]
pub struct ToolContext {
    /// The call's id (T `toolCallId`).
    pub call_id: ToolCallId,
    /// The name that it was called by.
    pub tool_name: Arc<str>,
    /// Cancelled when the call should end (T `signal`).
    pub cancel: CancelToken,
    /// The conversation that it belongs to (SP-010 `sessionId`), if there is one.
    pub session_id: Option<SessionId>,
    /// The run that it belongs to, if there is one.
    pub run_id: Option<RunId>,
    /// Clock, timer and ids.
    pub env: Arc<dyn Env>,
    /// The application's own values, by type.
    pub deps: Deps,
    /// Trace context to hand on to a server (`traceparent`, `tracestate`), as name and value.
    pub trace: Arc<[(String, String)]>,
    progress: Option<Arc<dyn ProgressSink>>,
    caller: Option<Arc<dyn ToolCaller>>,
}

/// The sink of contexts that tell nobody.
static NOBODY: LazyLock<Arc<dyn ProgressSink>> = LazyLock::new(|| Arc::new(NoProgress));

impl ToolContext {
    /// A context that tells nobody and can call no tools; for tests of a tool alone, and a
    /// ground for the `with_…` methods.
    pub fn new(
        call_id: impl Into<ToolCallId>,
        tool_name: impl Into<Arc<str>>,
        env: Arc<dyn Env>,
    ) -> Self {
        Self::ended_by(CancelToken::new(), call_id, tool_name, env)
    }

    /// The same for a call that ends with that token.
    pub fn ended_by(
        cancel: CancelToken,
        call_id: impl Into<ToolCallId>,
        tool_name: impl Into<Arc<str>>,
        env: Arc<dyn Env>,
    ) -> Self {
        Self {
            call_id: call_id.into(),
            tool_name: tool_name.into(),
            cancel,
            session_id: None,
            run_id: None,
            env,
            deps: Deps::default(),
            trace: Arc::default(),
            progress: None,
            caller: None,
        }
    }

    /// The same with another sink for progress.
    #[must_use]
    pub fn with_progress(mut self, sink: Arc<dyn ProgressSink>) -> Self {
        self.progress = Some(sink);
        self
    }

    /// The same with the capability to call the agent's tools.
    #[must_use]
    pub fn with_caller(mut self, caller: Arc<dyn ToolCaller>) -> Self {
        self.caller = Some(caller);
        self
    }

    /// Tells of progress (T `onPartialResult`): any JSON. Waits while the listeners are behind
    /// . What is told after the call has settled is dropped.
    #[doc(alias = "onPartialResult")]
    pub async fn progress(&self, partial: impl Into<Value> + Send) {
        if let Some(progress) = &self.progress {
            progress.send(partial.into()).await;
        }
    }

    /// The sink that progress goes to, for who cannot wait (see [`ProgressSink::offer`]).
    #[must_use]
    pub fn progress_sink(&self) -> &Arc<dyn ProgressSink> {
        self.progress.as_ref().unwrap_or(&NOBODY)
    }

    /// The application's value of that type, as it was given to the agent.
    ///
    /// # Errors
    /// No such value was given; the error names the type.
    pub fn dep<T: Any + Send + Sync>(&self) -> Result<Arc<T>, ToolError> {
        self.deps.get::<T>().ok_or_else(|| {
            ToolError::new(format!(
                "the agent was given no value of type {}; give it one with `.dep(…)`",
                type_name::<T>()
            ))
        })
    }

    /// The capability to call the agent's tools, if this call has it.
    #[must_use]
    pub fn caller(&self) -> Option<&Arc<dyn ToolCaller>> {
        self.caller.as_ref()
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("call_id", &self.call_id)
            .field("tool_name", &self.tool_name)
            .field("cancelled", &self.cancel.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// Where a call's progress goes.
#[async_trait]
pub trait ProgressSink: Send + Sync {
    /// Takes an update; waits at the bound. A settled call's updates are dropped.
    async fn send(&self, partial: Value);

    /// Takes an update without waiting, for sources that cannot wait, such as the reader of a
    /// server's messages. At the bound it replaces the update that was offered last and not yet
    /// taken (updates coalesce); what was accepted is delivered.
    fn offer(&self, partial: Value);
}

#[derive(Debug)]
struct NoProgress;

#[async_trait]
impl ProgressSink for NoProgress {
    async fn send(&self, _: Value) {}
    fn offer(&self, _: Value) {}
}

/// The capability to call an agent's tools from inside a tool (T-7): a nested call goes
/// through the agent's whole pipeline, with its validation, hooks, approval and limits.
#[async_trait]
pub trait ToolCaller: Send + Sync {
    /// Calls a tool by name.
    ///
    /// Cancelled with the call that it is made from; dropping it ends the nested call. What models
    /// that the tool asks cost is counted by the run: the output tells none of it, so that one who
    /// hands it on does not have it counted twice.
    ///
    /// # Errors
    /// The call was rejected: no such tool, invalid arguments, refused by a hook, too deep.
    /// A tool's own failure is an output with `is_error`.
    async fn call_tool(&self, name: &str, args: JsonObject) -> Result<ToolOutput, ToolError>;

    /// Whether a tool of that name is offered now, for a tool that would make another one of the
    /// name. `false` also where that is not known.
    fn offers(&self, name: &str) -> bool {
        let _ = name;
        false
    }
}

/// Values of the application's own, found by their type. Cheap to clone.
#[derive(Clone, Default)]
pub struct Deps(Option<Arc<DepMap>>);

type DepMap = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

impl Deps {
    /// The value of that type.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let value = self.0.as_ref()?.get(&TypeId::of::<T>())?;
        Arc::clone(value).downcast().ok()
    }

    /// The same with that value; one of the same type is replaced.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(self, value: T) -> Self {
        self.with_shared(Arc::new(value))
    }

    /// The same with that shared value; one of the same type is replaced.
    #[must_use]
    pub fn with_shared<T: Any + Send + Sync>(mut self, value: Arc<T>) -> Self {
        Arc::make_mut(self.0.get_or_insert_default()).insert(TypeId::of::<T>(), value);
        self
    }
}

impl fmt::Debug for Deps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Deps({} values)",
            self.0.as_ref().map_or(0, |values| values.len())
        )
    }
}
