//! Where an application steers a run.
//!
//! Knows: what each hook sees and may answer. Does not know: when it is called by whom; the
//! driver and the pipeline do.
//!
//! Every view is owned and cheap to clone. A hook that fails fails its call or its turn, never
//! more; a hook that panics counts as failed. Each is awaited beside the abort signal: on an
//! abort its future is dropped, except `after_tool_call`, which may use up the grace period.

mod closure;
mod point;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use yiem_core::{
    CancelToken, ChatModel, ChatOptions, ChatRequest, Content, Env, Error, History, JsonObject,
    Message, RunId, ToolCall, ToolCallId, ToolDefinition, ToolOutput, Usage,
};

pub use closure::{
    after_tool_call, before_model_call, before_tool_call, prepare_next_turn,
    should_stop_after_turn, transform_context,
};
pub use point::HookPoint;
pub(crate) use point::Hooks;

/// Steers a run. Every method has a default that changes nothing.
///
/// Hooks are asked in the order in which they were registered.
#[async_trait]
pub trait AgentHook: Send + Sync + 'static {
    /// What errors and traces call it.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }

    /// Whether this hook has something to say at that point of a run. Asked once, when the agent
    /// is built; where the answer is no, its method is never called.
    ///
    /// Default: yes, everywhere. A hook that has only one or two methods spares each turn the
    /// views of the others by saying so.
    fn is_asked_at(&self, point: HookPoint) -> bool {
        let _ = point;
        true
    }

    /// Changes what the model is shown of the history (R `prepareContext`).
    ///
    /// When: before every model call, retries included.
    /// Sees: the system prompt, the messages, the model (which it may call).
    /// May answer: keep; other messages or another system prompt, for this call only: the
    /// history stays as it is.
    /// Order: as registered; each hook sees the previous answer.
    /// If it fails: the turn fails and the run ends with an assistant message that says so.
    #[doc(alias = "prepareContext")]
    async fn transform_context(&self, view: ContextView) -> Result<TransformContext, Error> {
        let _ = view;
        Ok(TransformContext::Keep)
    }

    /// Sees or replaces the request that goes to the model.
    ///
    /// When: before every model call, after `transform_context`.
    /// Sees: the whole request and which attempt it is.
    /// May answer: send as it is; send another.
    /// Order: as registered; each hook sees the previous answer.
    /// If it fails: the turn fails and the run ends with an assistant message that says so.
    async fn before_model_call(&self, view: ModelCallView) -> Result<BeforeModelCall, Error> {
        let _ = view;
        Ok(BeforeModelCall::Send)
    }

    /// Decides whether an accepted call may run.
    ///
    /// When: once per call, after its arguments were accepted, in the order of the reply.
    /// Sees: the reply that asked, the call, its valid arguments, the history.
    /// May answer: run; run with other arguments, which are validated again; refuse with a
    /// reason; ask a person.
    /// Order: as registered; each hook sees the previous answer; the first refusal ends the
    /// chain.
    /// If it fails: the call is refused with that error and the run goes on.
    #[doc(alias = "beforeToolCall")]
    async fn before_tool_call(&self, view: ToolCallView) -> Result<BeforeToolCall, Error> {
        let _ = view;
        Ok(BeforeToolCall::Run)
    }

    /// Changes the result of a call that has run.
    ///
    /// When: once per call that has run, before its end event; never for a rejected call.
    /// Sees: the call, its arguments, its result.
    /// May answer: other content, details, usage, error flag, terminate, field by field.
    /// Order: as registered; each hook sees the previous answer.
    /// If it fails: the result becomes an error result that says so; the run goes on.
    #[doc(alias = "afterToolCall")]
    async fn after_tool_call(&self, view: ToolResultView) -> Result<AfterToolCall, Error> {
        let _ = view;
        Ok(AfterToolCall::default())
    }

    /// Decides whether the run ends after a turn.
    ///
    /// When: after `turnEnd` of a turn that was not cut, before the queues are asked.
    /// Sees: the turn's reply and results, the history.
    /// May answer: go on as usual; stop. What is queued stays queued.
    /// Order: as registered; the first that says stop ends the chain.
    /// If it fails: the run ends with an assistant message that says so.
    async fn should_stop_after_turn(&self, view: TurnView) -> Result<StopAfterTurn, Error> {
        let _ = view;
        Ok(StopAfterTurn::GoOn)
    }

    /// Changes model, tools, system prompt or options for the turns to come.
    ///
    /// When: after `turnEnd`, only if another turn of the run follows.
    /// Sees: the turn that ended, the history.
    /// May answer: keep; changes, which last until they are changed again.
    /// Order: as registered; later changes win field by field.
    /// If it fails: the run ends with an assistant message that says so.
    async fn prepare_next_turn(&self, view: TurnView) -> Result<PrepareNextTurn, Error> {
        let _ = view;
        Ok(PrepareNextTurn::default())
    }

    /// Shortens what the model is shown when it has become too long.
    ///
    /// When: once per model call that overflowed.
    /// Sees: the messages that were sent, the model, what the overflow was.
    /// May answer: nothing, and the next hook or the agent's own compactor is asked; other
    /// messages, shown from then on. The history is kept whole.
    /// Order: as registered; the first answer counts.
    /// If it fails: the run ends with an assistant message that says so.
    async fn compact(&self, view: CompactionView) -> Result<Compaction, Error> {
        let _ = view;
        Ok(Compaction::Pass)
    }
}

/// What `transform_context` sees.
#[derive(Clone)]
#[non_exhaustive]
pub struct ContextView {
    /// The run.
    pub run_id: RunId,
    /// The turn, from 1.
    pub turn: u32,
    /// The system prompt.
    pub system: Option<Arc<str>>,
    /// The messages that would be sent.
    pub messages: History,
    /// The model; it may be asked.
    pub model: Arc<dyn ChatModel>,
    /// Clock and ids.
    pub env: Arc<dyn Env>,
    /// Cancelled when the run is.
    pub cancel: CancelToken,
}

/// What `transform_context` answers.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum TransformContext {
    /// Send the messages as they are.
    #[default]
    Keep,
    /// Send these, this once.
    Messages(History),
    /// Send this system prompt and these messages, this once.
    Context {
        /// The system prompt.
        system: Option<Arc<str>>,
        /// The messages.
        messages: History,
    },
}

/// What `before_model_call` sees.
#[derive(Clone)]
#[non_exhaustive]
pub struct ModelCallView {
    /// The run.
    pub run_id: RunId,
    /// The turn, from 1.
    pub turn: u32,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The request.
    pub request: ChatRequest,
    /// The model that gets it.
    pub model: Arc<dyn ChatModel>,
    /// Cancelled when the run is.
    pub cancel: CancelToken,
}

/// What `before_model_call` answers.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum BeforeModelCall {
    /// Send the request as it is.
    #[default]
    Send,
    /// Send this one.
    Replace(Box<ChatRequest>),
}

/// What `before_tool_call` sees.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolCallView {
    /// The run.
    pub run_id: RunId,
    /// The turn, from 1.
    pub turn: u32,
    /// The reply that asked for the call; a [`Message::Assistant`].
    pub message: Arc<Message>,
    /// The call as the model gave it.
    pub call: Arc<ToolCall>,
    /// The tool.
    pub tool: Arc<ToolDefinition>,
    /// Its arguments as accepted so far.
    pub args: Arc<JsonObject>,
    /// The history, the reply included.
    pub history: History,
    /// The call that makes this one, when a tool calls a tool.
    pub parent: Option<ToolCallId>,
    /// Cancelled when the run is.
    pub cancel: CancelToken,
}

/// What `before_tool_call` answers.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum BeforeToolCall {
    /// Run it.
    #[default]
    Run,
    /// Run it with these arguments, which are validated again.
    RunWith(JsonObject),
    /// Do not run it.
    Refuse {
        /// What the model reads.
        reason: String,
        /// Whether the result asks for an end of the run.
        terminate: bool,
    },
    /// Ask a person, and do what they say.
    Ask(Question),
}

impl BeforeToolCall {
    /// Refuses with a reason that the model reads.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self::Refuse {
            reason: reason.into(),
            terminate: false,
        }
    }

    /// Asks a person, without a limit of time.
    pub fn ask(question: impl Into<String>) -> Self {
        Self::Ask(Question::new(question))
    }
}

/// A question to a person about a call. It goes out as `approvalRequested`; the answer
/// comes by [`Agent::answer`](crate::Agent::answer) from any task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What is asked.
    pub text: String,
    /// How long an answer is waited for; when it is over the call is refused. Default: as long
    /// as the run lasts.
    pub timeout: Option<Duration>,
}

impl Question {
    /// A question without a limit of time.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            timeout: None,
        }
    }

    /// The same with a limit of time.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

/// What `after_tool_call` sees.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolResultView {
    /// The run.
    pub run_id: RunId,
    /// The turn, from 1.
    pub turn: u32,
    /// The reply that asked for the call; a [`Message::Assistant`].
    pub message: Arc<Message>,
    /// The call as the model gave it.
    pub call: Arc<ToolCall>,
    /// The tool.
    pub tool: Arc<ToolDefinition>,
    /// The arguments that it ran with.
    pub args: Arc<JsonObject>,
    /// What came of it, as the hooks before this one left it.
    pub output: Arc<ToolOutput>,
    /// Cancelled when the run is.
    pub cancel: CancelToken,
}

/// What `after_tool_call` answers: the fields that are to be replaced.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AfterToolCall {
    /// Other content.
    pub content: Option<Vec<Content>>,
    /// Other details.
    pub details: Option<Value>,
    /// Another usage.
    pub usage: Option<Usage>,
    /// Another error flag.
    pub is_error: Option<bool>,
    /// Another terminate flag.
    pub terminate: Option<bool>,
}

impl AfterToolCall {
    /// Changes nothing.
    #[must_use]
    pub fn keep() -> Self {
        Self::default()
    }

    /// The same with this content.
    #[must_use]
    pub fn content(mut self, content: Vec<Content>) -> Self {
        self.content = Some(content);
        self
    }

    /// The same with this text as content.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.content(vec![Content::text(text)])
    }

    /// The same with these details.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// The same with this usage.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// The same with this error flag.
    #[must_use]
    pub fn is_error(mut self, is_error: bool) -> Self {
        self.is_error = Some(is_error);
        self
    }

    /// The same with this terminate flag.
    #[must_use]
    pub fn terminate(mut self, terminate: bool) -> Self {
        self.terminate = Some(terminate);
        self
    }

    /// Whether nothing is replaced.
    #[must_use]
    pub fn is_keep(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn apply(self, output: &mut ToolOutput) {
        if let Some(content) = self.content {
            output.content = content;
        }
        if let Some(details) = self.details {
            output.details = details;
        }
        if let Some(usage) = self.usage {
            output.usage = Some(usage);
        }
        if let Some(is_error) = self.is_error {
            output.is_error = is_error;
        }
        if let Some(terminate) = self.terminate {
            output.terminate = terminate;
        }
    }
}

/// What `should_stop_after_turn` and `prepare_next_turn` see.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TurnView {
    /// The run.
    pub run_id: RunId,
    /// The turn that ended, from 1.
    pub turn: u32,
    /// Its reply; a [`Message::Assistant`].
    pub message: Arc<Message>,
    /// The results of its calls, in the order of the reply.
    pub tool_results: Arc<[Arc<Message>]>,
    /// The history, reply and results included.
    pub history: History,
    /// Tokens of the run so far.
    pub usage: Usage,
    /// Cancelled when the run is.
    pub cancel: CancelToken,
}

/// What `should_stop_after_turn` answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopAfterTurn {
    /// Go on as usual.
    #[default]
    GoOn,
    /// End the run.
    Stop,
}

/// What `prepare_next_turn` answers, and what [`Agent::change`](crate::Agent::change) takes:
/// the settings that are to be replaced.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct PrepareNextTurn {
    /// Another system prompt.
    pub system: Option<Arc<str>>,
    /// Another model.
    pub model: Option<Arc<dyn ChatModel>>,
    /// Other options.
    pub options: Option<ChatOptions>,
    /// Only these tools are offered, by name; all the others are there and refused as unknown.
    pub tools: Option<Vec<String>>,
}

impl PrepareNextTurn {
    /// Changes nothing.
    #[must_use]
    pub fn keep() -> Self {
        Self::default()
    }

    /// The same with this system prompt.
    #[must_use]
    pub fn system(mut self, system: impl Into<Arc<str>>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// The same with this model.
    #[must_use]
    pub fn model(mut self, model: impl ChatModel + 'static) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// The same with these options.
    #[must_use]
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.options = Some(options);
        self
    }

    /// The same with only these tools offered.
    #[must_use]
    pub fn tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Lays `later` over this: its fields win.
    pub(crate) fn merge(&mut self, later: Self) {
        self.system = later.system.or(self.system.take());
        self.model = later.model.or(self.model.take());
        self.options = later.options.or(self.options.take());
        self.tools = later.tools.or(self.tools.take());
    }
}

/// What `compact` sees.
#[derive(Clone)]
#[non_exhaustive]
pub struct CompactionView {
    /// The run.
    pub run_id: RunId,
    /// The turn, from 1.
    pub turn: u32,
    /// The system prompt.
    pub system: Option<Arc<str>>,
    /// The messages that were too many.
    pub messages: History,
    /// The model; it may be asked.
    pub model: Arc<dyn ChatModel>,
    /// What the model or its server said, or why the messages were found to be too many.
    pub reason: Arc<str>,
    /// Clock and ids.
    pub env: Arc<dyn Env>,
    /// Cancelled when the run is.
    pub cancel: CancelToken,
}

/// What `compact` answers.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Compaction {
    /// Nothing: the next one is asked.
    #[default]
    Pass,
    /// These messages are shown from now on. A call must not be parted from its result.
    Replace(History),
}

impl fmt::Debug for ContextView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextView")
            .field("run_id", &self.run_id)
            .field("turn", &self.turn)
            .field("messages", &self.messages.len())
            .field("model", &self.model.info().id)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ModelCallView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelCallView")
            .field("run_id", &self.run_id)
            .field("turn", &self.turn)
            .field("attempt", &self.attempt)
            .field("model", &self.model.info().id)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CompactionView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactionView")
            .field("run_id", &self.run_id)
            .field("turn", &self.turn)
            .field("messages", &self.messages.len())
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PrepareNextTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrepareNextTurn")
            .field("system", &self.system)
            .field("model", &self.model.as_ref().map(|m| &m.info().id))
            .field("options", &self.options)
            .field("tools", &self.tools)
            .finish()
    }
}
