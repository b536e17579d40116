//! What a program with an agent needs: `use yiem::prelude::*;`.
//!
//! The names of the quickstart, and the traits whose methods are called. Each has its own path
//! outside as well; what is not here is at the root of the crate or in the module of its kind.

pub use crate::{
    Agent, AgentEvent, AgentHook, AssistantMessage, ChatModel, ChatModelExt, ChatRequest, Content,
    Error, EventKind, IntoToolOutput, Message, Outcome, Result, Tool, ToolContext, ToolError,
    ToolOutput, async_trait, model_fn,
};

#[cfg(feature = "macros")]
pub use crate::tool;

pub use yiem_mcp::McpServer;
#[cfg(feature = "openai")]
pub use yiem_openai::OpenAiModel;
pub use yiem_tools::FunctionTool;
