//! A framework for agents that use tools, locally and over MCP.
//!
//! ```no_run
//! use yiem::prelude::*;
//!
//! /// Current weather of a city.
//! #[tool]
//! async fn get_weather(city: String) -> Result<String> {
//!     Ok(format!("Weather in {city}: Sunny, 22°C"))
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     let agent = Agent::builder(OpenAiModel::from_env()?)
//!         .tool(get_weather)
//!         .mcp(McpServer::stdio("npx", ["-y", "@modelcontextprotocol/server-everything"]))
//!         .build()?;
//!     println!("{}", agent.prompt("What's the weather in Tokyo?").await?.ok()?);
//!     Ok(())
//! }
//! ```
//!
//! This crate is an index: it adds no behaviour. Everything in it lives in a crate of its own,
//! which can be taken alone, and each name has one path here:
//!
//! - at the root: what is said, who answers, what can be called (`yiem-core`), and the agent with
//!   its hooks, events, limits and sessions (`yiem-agent`);
//! - [`tools`]: registry, validation, discovery, tools made of functions (`yiem-tools`);
//! - [`mcp`]: servers over stdio, HTTP and NATS, in the same process, of closures; the gateway
//!   (`yiem-mcp`);
//! - [`openai`]: the OpenAI chat format and its HTTP model (`yiem-openai`);
//! - `script`: tools made of JavaScript files (`yiem-script`, feature `script`);
//! - [`prelude`]: what most programs begin with.
//!
//! For tests of an agent there is the crate `yiem-test`: a scripted model, fake servers, clocks.
//!
//! # Where to begin
//!
//! | you want | look at |
//! | --- | --- |
//! | an agent | [`Agent`], [`AgentBuilder`], [`Outcome`] |
//! | a tool | [`tool`](macro@tool), [`tools::FunctionTool`], [`Tool`] |
//! | a server's tools | [`mcp::McpServer`], [`AgentBuilder::mcp`] |
//! | to step in | [`AgentHook`] |
//! | the answer as it comes | [`Prompt::stream`] |
//! | to be told | [`AgentBuilder::listener`], [`EventSink`], [`Agent::subscribe`] |
//! | a session that survives | [`FileJournal`], [`AgentBuilder::resume`] |
//! | another model | [`model_fn`], [`ChatModel`], [`openai::llm_call`] |
//!
//! # Features
//!
//! Each only adds. On by default: `macros`, `mcp-http`, `mcp-stdio`, `openai`. Off: `nats`,
//! `oauth`, `gateway`, `script`, `fetch`, `wire-cases`. TLS is rustls on ring.

pub use yiem_agent::{
    AfterToolCall, Agent, AgentBuilder, AgentConfig, AgentEvent, AgentHook, AgentState, AgentTool,
    AnswerCheck, ApprovalAnswer, ApprovalRequest, ApprovalResolution, BeforeModelCall,
    BeforeToolCall, BuildError, Compaction, CompactionView, Compactor, ContextView, Delivery,
    EndKind, EndReason, EventKind, EventSink, ExecutionResult, Failure, FileJournal, FlushPolicy,
    HookPoint, Input, IntoMessage, Journal, JournalError, JournalRecord, Limit, Limits,
    MessageDelta, MessageRole, ModelCallView, OpenCall, Outcome, OutputMode, PrepareNextTurn,
    Prompt, PromptFuture, PromptStream, Question, QueueChange, QueueKind, QueueMode, RejectReason,
    Run, RunError, RunFacts, RunRules, Session, SteeringPoint, Step, StopAfterTurn, Stopped,
    Subscription, TerminatePolicy, ToolCallView, ToolExecution, ToolResultView, TransformContext,
    TurnView, Typed, TypedPrompt, WeakAgent, after_tool_call, before_model_call, before_tool_call,
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
    UserMessage, ValidArgs, async_trait, growing_arguments, model_fn,
};

#[cfg(feature = "macros")]
pub use yiem_macros::tool_facade as tool;
#[doc(inline)]
pub use yiem_mcp as mcp;
#[doc(inline)]
pub use yiem_openai as openai;
#[cfg(feature = "script")]
#[doc(inline)]
pub use yiem_script as script;

#[doc(hidden)]
pub use yiem_tools::__private;

pub mod prelude;
pub mod tools;

/// The README, whose programs are compiled.
#[cfg(all(doctest, feature = "macros", feature = "mcp-stdio", feature = "openai"))]
#[doc = include_str!("../../../README.md")]
pub mod readme {}

/// The page on the gateway, whose programs are compiled.
#[cfg(all(doctest, feature = "gateway", feature = "mcp-stdio"))]
#[doc = include_str!("../../../docs/gateway.md")]
pub mod gateway_page {}
