//! A framework for agents that use tools, locally and over MCP.

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
pub use yiem_tools as tools;
