//! The agent: what happens between a message and its answer, in which order, and what is still
//! true after an abort, a fault or a hostile reply.
//!
//! - [`Agent`] and [`AgentBuilder`]: what an application holds (R-6, R-7).
//! - [`AgentHook`]: where it steers a run (R-9). [`EventSink`] and [`Subscription`]: where it is
//!   told of one (R-1, R-10).
//! - [`Outcome`]: what a run comes to, exactly one each; [`AgentConfig`] and [`Limits`]: what a
//!   run obeys (R-11, R-17).
//! - [`Journal`]: what makes a session survive (S-1).
//! - [`Run`]: the decisions alone, as a value without runtime, clock or tasks.
//!
//! The contracts are those of [`yiem_core`] and [`yiem_tools`], which are at hand as
//! `yiem_agent::yiem_core` and `yiem_agent::yiem_tools`. A runtime of tokio has to be there.
//!
//! ```
//! use yiem_agent::Agent;
//! use yiem_agent::yiem_core::{model_fn, AssistantContent, AssistantMessage, ChatRequest, ModelError, Timestamp};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let parrot = model_fn("parrot", |request: ChatRequest| async move {
//!     let said = request.messages.last().and_then(|m| m.as_user().map(|u| u.text()));
//!     let block = AssistantContent::text(said.unwrap_or_default());
//!     Ok::<_, ModelError>(AssistantMessage::new(vec![block], Timestamp::default()))
//! });
//! let agent = Agent::builder(parrot).build()?;
//! assert_eq!(agent.prompt("hello").await?.text(), "hello");
//! # Ok(())
//! # }
//! ```

pub use yiem_core;
pub use yiem_tools;

mod agent;
mod approval;
mod batch;
mod caller;
mod compaction;
mod config;
mod driver;
mod error;
mod event;
mod handle;
mod hook;
mod journal;
mod offered;
mod outcome;
mod pipeline;
mod queue;
mod run;
mod shared;
mod sink;
mod structured;
mod telemetry;

pub use agent::AgentBuilder;
pub use approval::{ApprovalAnswer, ApprovalRequest};
pub use compaction::Compactor;
pub use config::{AgentConfig, Limits, QueueMode, SteeringPoint, TerminatePolicy, ToolExecution};
pub use error::{BuildError, RunError};
pub use event::{
    AgentEvent, ApprovalResolution, EventKind, ExecutionResult, MessageDelta, MessageRole,
    QueueChange, RejectReason,
};
pub use handle::{
    Agent, AgentState, AgentTool, IntoMessage, Prompt, PromptFuture, PromptStream, Stopped, Typed,
    TypedPrompt, WeakAgent,
};
pub use hook::{
    AfterToolCall, AgentHook, BeforeModelCall, BeforeToolCall, Compaction, CompactionView,
    ContextView, HookPoint, ModelCallView, PrepareNextTurn, Question, StopAfterTurn, ToolCallView,
    ToolResultView, TransformContext, TurnView, after_tool_call, before_model_call,
    before_tool_call, prepare_next_turn, should_stop_after_turn, transform_context,
};
pub use journal::{
    FileJournal, FlushPolicy, Journal, JournalError, JournalRecord, OpenCall, Session,
};
pub use outcome::{EndKind, EndReason, Failure, Limit, Outcome};
pub use queue::QueueKind;
pub use run::{AnswerCheck, Input, Run, RunFacts, RunRules, Step};
pub use sink::{Delivery, EventSink, Subscription, event_sink};
pub use structured::OutputMode;
