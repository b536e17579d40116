//! An agent at one moment (SP-020).

use std::sync::Arc;

use yiem_core::{
    AssistantMessage, Cost, History, Message, ModelInfo, RunId, SessionId, StopReason, ToolCallId,
    Usage,
};
use yiem_tools::ToolSnapshot;

use crate::queue::QueueKind;
use crate::shared::Shared;

/// An agent at one moment (SP-020): a value that does not change with the agent.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[doc(alias = "agentState")]
pub struct AgentState {
    /// The system prompt; empty if there is none.
    pub system_prompt: Arc<str>,
    /// The model (SP-007).
    pub model: ModelInfo,
    /// The tools that the next turn has, in their order.
    pub tools: ToolSnapshot,
    /// Everything that was said; no system prompt, no queued message.
    pub messages: History,
    /// The calls that wait for their results, in the order of the reply.
    pub pending_tool_calls: Vec<ToolCallId>,
    /// What went wrong in the last run; absent while a run goes on.
    pub error_message: Option<String>,
    /// The run that is going on.
    pub run_id: Option<RunId>,
    /// Its turn, from 1; 0 while idle.
    pub turn: u32,
    /// What has come of the reply that is under way.
    pub streaming_message: Option<AssistantMessage>,
    /// The conversation's id.
    pub session_id: SessionId,
    /// Steering that waits, oldest first.
    pub steering: Vec<Arc<Message>>,
    /// Follow-ups that wait, oldest first.
    pub follow_ups: Vec<Arc<Message>>,
    /// Tokens of all runs, the one that is going on included.
    pub usage: Usage,
    /// Tokens that tools used for models of their own.
    pub tool_usage: Usage,
    /// Money of all runs, when the model has prices.
    pub cost: Option<Cost>,
    /// Whether the agent was stopped.
    pub closed: bool,
}

impl AgentState {
    pub(super) fn of(shared: &Shared) -> Self {
        let tools = shared.catalog.snapshot();
        let state = shared.lock();
        let run = state.run.as_ref();
        let (mut usage, mut tool_usage, mut cost) = (state.usage, state.tool_usage, state.cost);
        if let Some(run) = run {
            usage.add(&run.usage());
            tool_usage.add(&run.tool_usage());
            if let Some(spent) = run.cost() {
                cost.get_or_insert_with(Cost::default).add(&spent);
            }
        }
        Self {
            system_prompt: state.settings.system.clone().unwrap_or_default(),
            model: state.settings.model.info().clone(),
            tools,
            messages: state.current_history().clone(),
            pending_tool_calls: run
                .map(|r| r.pending_calls().cloned().collect())
                .unwrap_or_default(),
            error_message: state.error_message.clone(),
            run_id: run.map(|r| r.id().clone()),
            turn: run.map_or(0, crate::run::Run::turn),
            streaming_message: run
                .and_then(crate::run::Run::partial)
                .map(|p| p.clone().broken_off(StopReason::EndTurn, None)),
            session_id: state.session_id.clone(),
            steering: state.queues.peek(QueueKind::Steering),
            follow_ups: state.queues.peek(QueueKind::FollowUp),
            usage,
            tool_usage,
            cost,
            closed: state.closed,
        }
    }

    /// Whether a run is going on.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.run_id.is_some()
    }
}
