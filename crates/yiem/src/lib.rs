//! A framework for agents that use tools, locally and over MCP.

pub use yiem_agent::{
    AfterToolCall, Agent, AgentBuilder, AgentConfig, AgentEvent, AgentHook, AgentState,
    ApprovalAnswer, ApprovalRequest, ApprovalResolution, BeforeModelCall, BeforeToolCall,
    BuildError, Compaction, CompactionView, Compactor, ContextView, Delivery, EndKind, EndReason,
    EventKind, EventSink, ExecutionResult, Failure, FileJournal, FlushPolicy, IntoMessage, Journal,
    JournalError, JournalRecord, Limit, Limits, MessageDelta, MessageRole, ModelCallView, OpenCall,
    Outcome, OutputMode, PrepareNextTurn, Prompt, PromptFuture, Question, QueueKind, QueueMode,
    RejectReason, RunError, Session, SteeringPoint, StopAfterTurn, Stopped, Subscription,
    TerminatePolicy, ToolCallView, ToolExecution, ToolResultView, TransformContext, TurnView,
    Typed, TypedPrompt, WeakAgent, after_tool_call, before_model_call, before_tool_call,
    event_sink, prepare_next_turn, should_stop_after_turn, transform_context,
};
pub use yiem_core::{
    ArgsCheck, AssistantContent, AssistantMessage, AudioContent, BoxError, BoxFuture, CancelReason,
    CancelToken, ChatEvent, ChatModel, ChatModelExt, ChatOptions, ChatRequest, ChatStream, Content,
    Cost, CustomMessage, Deps, Env, Error, Extra, FunctionModel, History, IdKind, ImageContent,
    IntoToolOutput, IntoToolSource, JsonObject, LoadedTools, Memo, Message, MessageAssembler,
    Modality, ModelCost, ModelError, ModelErrorKind, ModelInfo, OtherContent, PartialBlock,
    PartialToolCall, ProgressSink, ReasoningContent, RejectedTool, Replay, ReplyInfo, ResourceBody,
    ResourceContent, ResponseFormat, Result, RetryPolicy, RetryingModel, RunId, SessionId,
    SourceError, StopReason, Structured, SystemEnv, TextContent, Timestamp, TimestampError, Tool,
    ToolArguments, ToolCall, ToolCallId, ToolCaller, ToolChoice, ToolContext, ToolDefinition,
    ToolError, ToolErrorKind, ToolLimits, ToolOutput, ToolResultMessage, ToolSource, Usage,
    UserMessage, ValidArgs, async_trait, model_fn,
};

#[doc(inline)]
pub use yiem_mcp as mcp;
#[doc(inline)]
pub use yiem_openai as openai;
#[cfg(feature = "script")]
#[doc(inline)]
pub use yiem_script as script;
#[doc(inline)]
pub use yiem_tools as tools;

#[cfg(feature = "macros")]
pub use yiem_macros::tool_facade as tool;

#[doc(hidden)]
pub use yiem_tools::__private;

pub mod prelude;
