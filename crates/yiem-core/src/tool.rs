//! Tools: what they say of themselves, how they are called, what they answer (T-1, SP-016).
//!
//! Knows: the contract between whoever runs calls and whoever implements a tool.
//! Does not know: registries, schemas' meaning, servers, turns.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cancel::CancelToken;
use crate::content::Content;
use crate::env::Env;
use crate::error::{BoxError, Error};
use crate::id::{RunId, SessionId, ToolCallId};
use crate::json::JsonObject;
use crate::usage::Usage;

/// What a tool says of itself: shown to the model, and kept by whoever runs it (T-1).
#[doc(alias = "agentTool")]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolDefinition {
    /// The name that the model calls it by; unique among an agent's tools.
    pub name: String,
    /// The name for people, such as `Weather Lookup`.
    pub label: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments. An object without `type` and `properties` takes any.
    pub input_schema: Value,
    /// The JSON Schema of its structured result, if it promises one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Whether it may run beside others: `Some(false)` makes its whole batch sequential,
    /// `None` leaves it to the agent (R-3, T `parallelToolExecute`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<bool>,
    /// Whether its work blocks the thread: it is then always run on a thread of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub blocking: bool,
    /// Whether a person should be asked before it runs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub needs_approval: bool,
    /// Whether a call whose outcome is unknown may be run again (S-3).
    pub replay: Replay,
    /// Its own limits, where they differ from the agent's (T-8).
    pub limits: ToolLimits,
    /// Hints of whoever made it (MCP `annotations`): shown, never trusted for policy (M-8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// Whether the model's provider should hold it to its schema strictly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// Whether a call that was begun, and whose end nobody saw, may be run again (S-3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Replay {
    /// No: the model is told that the outcome is unknown.
    #[default]
    Never,
    /// Yes: it changes nothing, or changes the same thing to the same value.
    Safe,
}

/// The limits of one tool; what is `None` is as the agent has it (T-8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolLimits {
    /// The longest that a call may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
    /// The most bytes of its result that the model is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<usize>,
    /// The most calls of it that run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
}

/// A tool (T "Tool Anatomy").
///
/// Implement it with `#[async_trait]`; or make one of an async function with `#[tool]`, or of a
/// closure with `FunctionTool` (yiem-tools).
///
/// ```
/// use std::sync::Arc;
/// use yiem_core::{async_trait, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ValidArgs};
///
/// #[derive(Debug)]
/// struct Echo(Arc<ToolDefinition>);
///
/// #[async_trait]
/// impl Tool for Echo {
///     fn definition(&self) -> &Arc<ToolDefinition> {
///         &self.0
///     }
///     async fn call(&self, args: ValidArgs, _: ToolContext) -> Result<ToolOutput, ToolError> {
///         Ok(ToolOutput::text(args["text"].as_str().unwrap_or_default()))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tool",
    note = "put `#[tool]` on the function, or make a tool of a closure with `FunctionTool::builder`"
)]
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// What it says of itself. The same for as long as the tool lives.
    fn definition(&self) -> &Arc<ToolDefinition>;

    /// Whether this tool has a [`prepare_arguments`](Self::prepare_arguments) or a
    /// [`validate_required_args`](Self::validate_required_args) of its own. Where it has none,
    /// arguments that fit its schema as they came are given to it without a copy.
    ///
    /// Default: yes, so that neither is ever passed over.
    fn has_own_checks(&self) -> bool {
        true
    }

    /// Changes the arguments before they are checked (T `prepareArguments`). The stored call
    /// keeps what the model gave.
    ///
    /// # Errors
    /// The call is rejected with this error.
    async fn prepare_arguments(&self, args: JsonObject) -> Result<JsonObject, ToolError> {
        Ok(args)
    }

    /// The tool's own check in place of the required check (SP-024, T `validateRequiredArgs`).
    /// The schema is checked after it all the same.
    async fn validate_required_args(&self, args: &JsonObject) -> ArgsCheck {
        let _ = args;
        ArgsCheck::Default
    }

    /// Does the work (T `execute`). Called with arguments that were accepted; never called
    /// twice for one call id unless the tool says that replay is safe.
    ///
    /// May be dropped at any await: after the call's time is up, or after an abort and its
    /// grace period. `context.cancel` is cancelled before.
    ///
    /// # Errors
    /// Becomes an error result that the model reads; the run goes on.
    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError>;
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn definition(&self) -> &Arc<ToolDefinition> {
        (**self).definition()
    }
    fn has_own_checks(&self) -> bool {
        (**self).has_own_checks()
    }
    async fn prepare_arguments(&self, args: JsonObject) -> Result<JsonObject, ToolError> {
        (**self).prepare_arguments(args).await
    }
    async fn validate_required_args(&self, args: &JsonObject) -> ArgsCheck {
        (**self).validate_required_args(args).await
    }
    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        (**self).call(args, context).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<T: Tool + ?Sized> Tool for Box<T> {
    fn definition(&self) -> &Arc<ToolDefinition> {
        (**self).definition()
    }
    fn has_own_checks(&self) -> bool {
        (**self).has_own_checks()
    }
    async fn prepare_arguments(&self, args: JsonObject) -> Result<JsonObject, ToolError> {
        (**self).prepare_arguments(args).await
    }
    async fn validate_required_args(&self, args: &JsonObject) -> ArgsCheck {
        (**self).validate_required_args(args).await
    }
    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        (**self).call(args, context).await
    }
}

/// What a tool's own check says (SP-024).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgsCheck {
    /// It has no check of its own: the required check holds (SP-023).
    Default,
    /// The arguments will do.
    Accept,
    /// They will not; the text is what the model reads.
    Reject(String),
}

/// Arguments that were accepted: read, prepared, checked, with defaults filled in (T-4).
///
/// The only thing a tool is ever given. Reads as the JSON object that it is.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidArgs(Arc<JsonObject>);

impl ValidArgs {
    /// Takes arguments as accepted. For validators, and for tests of a tool alone; whoever
    /// calls this answers for them.
    #[must_use]
    pub fn accepted(args: impl Into<Arc<JsonObject>>) -> Self {
        Self(args.into())
    }

    /// The object, shared.
    #[must_use]
    pub fn shared(&self) -> &Arc<JsonObject> {
        &self.0
    }

    /// The object, for oneself.
    #[must_use]
    pub fn into_object(self) -> JsonObject {
        Arc::unwrap_or_clone(self.0)
    }

    /// The value of a type that can be read from JSON.
    ///
    /// # Errors
    /// The arguments do not suit the type; the error says which and why.
    pub fn parse<T: serde::de::DeserializeOwned>(self) -> Result<T, ToolError> {
        T::deserialize(Value::Object(self.into_object()))
            .map_err(|e| ToolError::new(format!("the arguments do not suit the tool's type: {e}")))
    }
}

impl std::ops::Deref for ValidArgs {
    type Target = JsonObject;
    fn deref(&self) -> &JsonObject {
        &self.0
    }
}

/// What a tool answers (T `agentToolResult`).
#[doc(alias = "agentToolResult")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model is shown.
    pub content: Vec<Content>,
    /// What the application is shown: any JSON, `null` if nothing.
    pub details: Value,
    /// The structured result, to be held against the tool's output schema.
    pub structured: Option<Value>,
    /// Tokens of models that the tool itself asked.
    pub usage: Option<Usage>,
    /// Whether the run should end after this batch (R-5).
    pub terminate: bool,
    /// Whether the call failed, in a way that has more to tell than a [`ToolError`].
    pub is_error: bool,
    /// Tools that the call added.
    pub added_tool_names: Vec<String>,
}

impl ToolOutput {
    /// A result of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::content(vec![Content::text(text)])
    }

    /// A result of these blocks.
    #[must_use]
    pub fn content(content: Vec<Content>) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }

    /// A structured result; the model is shown its JSON.
    #[must_use]
    pub fn structured(value: Value) -> Self {
        Self {
            content: vec![Content::text(value.to_string())],
            structured: Some(value),
            ..Self::default()
        }
    }

    /// The four parts of the seeds' constructor, in their order (T).
    #[must_use]
    pub fn from_parts(
        content: Vec<Content>,
        details: Value,
        usage: Option<Usage>,
        terminate: bool,
    ) -> Self {
        Self {
            content,
            details,
            usage,
            terminate,
            ..Self::default()
        }
    }

    /// The same with details for the application.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// The same, ending the run after its batch.
    #[must_use]
    pub fn terminating(mut self) -> Self {
        self.terminate = true;
        self
    }

    /// The same, marked as failed.
    #[must_use]
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// Its text blocks, joined with a line break between them.
    #[must_use]
    pub fn plain_text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

/// What can be a tool's answer.
///
/// Text and what prints as text becomes text, JSON becomes a structured result. For a type of
/// one's own that is `Serialize`, wrap it: [`Structured`]; `#[tool]` does that by itself.
pub trait IntoToolOutput {
    /// The answer.
    ///
    /// # Errors
    /// It cannot be written, or is itself a failure.
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;
}

/// A value whose JSON is the structured result. A value that is a text is shown as that text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Structured<T>(pub T);

impl<T: Serialize> IntoToolOutput for Structured<T> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        match serde_json::to_value(self.0) {
            Ok(value) => value.into_tool_output(),
            Err(e) => Err(ToolError::new(format!(
                "the result could not be written as JSON: {e}"
            ))),
        }
    }
}

impl IntoToolOutput for Value {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(match self {
            Self::Null => ToolOutput::default(),
            Self::String(text) => ToolOutput::text(text),
            other => ToolOutput::structured(other),
        })
    }
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl IntoToolOutput for Content {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::content(vec![self]))
    }
}

impl IntoToolOutput for Vec<Content> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::content(self))
    }
}

impl IntoToolOutput for () {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
}

impl<T: IntoToolOutput> IntoToolOutput for Option<T> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        self.map_or_else(|| Ok(ToolOutput::default()), T::into_tool_output)
    }
}

impl<T: IntoToolOutput, E: Into<ToolError>> IntoToolOutput for Result<T, E> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        self.map_err(Into::into)?.into_tool_output()
    }
}

macro_rules! output_as_text {
    ($($type:ty),* $(,)?) => {$(
        impl IntoToolOutput for $type {
            fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
                Ok(ToolOutput::text(self.to_string()))
            }
        }
    )*};
}

output_as_text!(
    &str,
    String,
    std::borrow::Cow<'_, str>,
    Box<str>,
    Arc<str>,
    bool,
    char,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    f32,
    f64,
);

/// A call that failed. What the model reads is the message: say what was wrong and what would
/// be right.
///
/// Any error goes in by `?`. It is not itself a `std::error::Error`, else that could not be.
pub struct ToolError {
    message: String,
    kind: ToolErrorKind,
    details: Value,
    terminate: bool,
    source: Option<BoxError>,
}

/// What kind of failure a [`ToolError`] is, as far as whoever runs the call cares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// The tool says so.
    #[default]
    Failed,
    /// Its time was up.
    TimedOut,
    /// It was cancelled.
    Aborted,
    /// It panicked.
    Panicked,
    /// The way to it is broken: its server, its connection. The call may have run or not.
    Unreachable,
}

impl ToolError {
    /// A failure with the message that the model reads.
    pub fn new(message: impl Into<String>) -> Self {
        Self::of_kind(ToolErrorKind::Failed, message)
    }

    /// A failure of that kind with the message that the model reads.
    pub fn of_kind(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            kind,
            details: Value::Null,
            terminate: false,
            source: None,
        }
    }

    /// The same with details for the application.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// The same with the error that caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same, ending the run after its batch.
    #[must_use]
    pub fn terminating(mut self) -> Self {
        self.terminate = true;
        self
    }

    /// What the model reads.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What kind it is.
    #[must_use]
    pub fn kind(&self) -> ToolErrorKind {
        self.kind
    }

    /// Details for the application; `null` if none.
    #[must_use]
    pub fn details(&self) -> &Value {
        &self.details
    }

    /// The error that caused it, if it was kept.
    #[must_use]
    pub fn source(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.source.as_deref()
    }

    /// The failed output that it becomes.
    #[must_use]
    pub fn into_output(self) -> ToolOutput {
        ToolOutput {
            content: vec![Content::text(self.message)],
            details: self.details,
            terminate: self.terminate,
            is_error: true,
            ..ToolOutput::default()
        }
    }
}

impl<E> From<E> for ToolError
where
    E: std::error::Error + Send + Sync + 'static,
{
    fn from(error: E) -> Self {
        Self::new(with_causes(&error)).with_source(error)
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        let boxed = error.into_boxed();
        Self::new(with_causes(&*boxed)).with_source(boxed)
    }
}

/// An error and its causes on one line, each told once.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(cause) = at {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        at = cause.source();
    }
    text
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError")
            .field("kind", &self.kind)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

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
    /// (R-4). What is told after the call has settled is dropped.
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
    /// Cancelled with the call that it is made from; dropping it ends the nested call.
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

#[cfg(test)]
mod tests;
