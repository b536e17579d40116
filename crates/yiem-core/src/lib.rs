//! Messages, tool calls, and the contracts for models, tools and tool sources.
//!
//! The ground that every other crate of Yiem stands on: what is said ([`Message`], [`Content`],
//! [`ToolCall`]), who answers ([`ChatModel`], [`ChatEvent`]), what can be called ([`Tool`],
//! [`ToolSource`]), and what they all share ([`History`], [`Usage`], [`CancelToken`], [`Env`]).
//!
//! There is no runtime, no network and no clock in it: time and ids come in through [`Env`].
//!
//! ```
//! use yiem_core::{ChatEvent, MessageAssembler, StopReason, Usage};
//!
//! let mut assembler = MessageAssembler::new();
//! assembler.push(ChatEvent::Text("Hello, ".to_owned()));
//! assembler.push(ChatEvent::Text("world.".to_owned()));
//! let last = ChatEvent::Finished { stop: StopReason::EndTurn, usage: Usage::default() };
//! let message = assembler.push(last).expect("that was the end");
//! assert_eq!(message.text(), "Hello, world.");
//! ```

pub mod cancel;
pub mod content;
pub mod env;
pub mod error;
pub mod growing;
pub mod history;
pub mod id;
pub mod json;
pub mod message;
pub mod model;
pub mod source;
pub mod stream;
pub mod tool;
pub mod tool_call;
pub mod usage;

pub use async_trait::async_trait;

pub use cancel::{CancelReason, CancelToken};
pub use content::{
    AssistantContent, AudioContent, Content, ImageContent, OtherContent, ReasoningContent,
    ResourceBody, ResourceContent, TextContent,
};
#[cfg(feature = "system")]
pub use env::SystemEnv;
pub use env::{BoxFuture, Env, IdKind, Timestamp, TimestampError};
pub use error::{BoxError, Error, Result};
pub use growing::growing_arguments;
pub use history::{History, Memo};
pub use id::{RunId, SessionId, ToolCallId};
pub use json::{Extra, JsonObject};
pub use message::{
    AssistantMessage, CustomMessage, Message, StopReason, ToolResultMessage, UserMessage,
};
pub use model::{
    ChatModel, ChatModelExt, ChatOptions, ChatRequest, FunctionModel, Modality, ModelError,
    ModelErrorKind, ModelInfo, ResponseFormat, RetryPolicy, RetryingModel, ToolChoice, model_fn,
};
pub use source::{IntoToolSource, LoadedTools, RejectedTool, SourceError, ToolSource};
pub use stream::{
    ChatEvent, ChatStream, MessageAssembler, PartialBlock, PartialToolCall, ReplyInfo,
};
pub use tool::{
    ArgsCheck, Deps, IntoToolOutput, ProgressSink, Replay, Structured, Tool, ToolCaller,
    ToolContext, ToolDefinition, ToolError, ToolErrorKind, ToolLimits, ToolOutput, ValidArgs,
};
pub use tool_call::{ToolArguments, ToolCall};
pub use usage::{Cost, ModelCost, Usage};
