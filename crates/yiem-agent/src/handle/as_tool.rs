//! An agent as a tool of another (R-14).
//!
//! Knows: how a call becomes a run, and what of the run the caller is told. Does not know: who
//! calls.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use yiem_core::{CancelToken, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ValidArgs};

use super::{Agent, Listener};
use crate::caller::Caller;
use crate::event::AgentEvent;
use crate::outcome::Outcome;
use crate::run::add_cost;
use crate::sink::EventSink;

/// How deep agents may ask agents.
const MAX_DEPTH: u32 = 8;

/// How much of the grace period of an abort an agent leaves to the one that asked it: what it
/// comes to, and what it cost, is told before the caller stops waiting.
const GRACE_LEFT: f64 = 0.8;

/// A tool that runs an agent (R-14); made by [`Agent::as_tool`].
///
/// Each call is a conversation of its own: calls may run at once. The run's events are passed on
/// as updates, its tokens are the result's usage, the caller's abort ends it: an agent that is
/// asked has four fifths of its grace period, so that its result comes in time. Questions to a
/// person (R-9) can be answered on it and on those that asked it. Agents ask each other eight
/// deep at most, an agent itself included.
#[derive(Clone)]
pub struct AgentTool {
    agent: Agent,
    definition: Arc<ToolDefinition>,
}

impl fmt::Debug for AgentTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentTool")
            .field("name", &self.definition.name)
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// A tool that asks this agent: it takes a `prompt` and answers with the run's text.
    ///
    /// ```no_run
    /// # fn f(researcher: yiem_agent::Agent, model: impl yiem_core::ChatModel) {
    /// use yiem_agent::Agent;
    /// let chief = Agent::builder(model)
    ///     .tool(researcher.as_tool("research", "Finds things out."))
    ///     .build();
    /// # let _ = chief;
    /// # }
    /// ```
    #[must_use]
    pub fn as_tool(&self, name: impl Into<String>, description: impl Into<String>) -> AgentTool {
        let name = name.into();
        AgentTool {
            agent: self.clone(),
            definition: Arc::new(ToolDefinition {
                label: name.clone(),
                name,
                description: description.into(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "prompt": {"type": "string", "description": "What it is asked to do."},
                    },
                    "required": ["prompt"],
                }),
                // A run has limits of its own.
                limits: yiem_core::ToolLimits {
                    time: Some(std::time::Duration::ZERO),
                    ..yiem_core::ToolLimits::default()
                },
                ..ToolDefinition::default()
            }),
        }
    }
}

impl AgentTool {
    /// The same with another definition: schema, limits, approval. Arguments other than a text
    /// `prompt` alone are given to the agent as JSON.
    #[must_use]
    pub fn define(mut self, change: impl FnOnce(&mut ToolDefinition)) -> Self {
        change(Arc::make_mut(&mut self.definition));
        self
    }
}

#[async_trait]
impl Tool for AgentTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let prompt = match (args.get("prompt"), args.len()) {
            (Some(Value::String(prompt)), 1) => prompt.clone(),
            _ => serde_json::to_string(&*args)?,
        };
        let caller = context.deps.get::<Caller>();
        let depth = caller.as_ref().map_or(0, |caller| caller.depth) + 1;
        if depth > MAX_DEPTH {
            return Err(ToolError::new(format!(
                "{} was not asked: agents ask each other {MAX_DEPTH} deep, which is the most",
                self.definition.name
            )));
        }
        let forward = Listener::Sink(Arc::new(Forward(context.clone())));
        let shared = self.agent.shared();
        let left = (0..depth).fold(shared.config.grace, |left, _| left.mul_f64(GRACE_LEFT));
        let own = Arc::clone(&shared.approvals);
        let above = caller
            .iter()
            .flat_map(|c| std::iter::once(&c.own).chain(&c.above));
        let above = above
            .filter(|above| !Arc::ptr_eq(above, &own))
            .cloned()
            .collect();
        let deps = shared.deps.clone().with(Caller { depth, own, above });
        let agent = Agent::of(shared.fork(Some(forward), left, deps));
        let mut run = std::pin::pin!(agent.prompt(prompt).begin(None));
        let first = context.cancel.run_until_cancelled(run.as_mut()).await;
        let outcome = match first {
            Some(outcome) => outcome?,
            None => {
                agent.abort();
                run.await?
            }
        };
        Ok(output_of(&outcome))
    }
}

fn output_of(outcome: &Outcome) -> ToolOutput {
    let mut usage = outcome.usage;
    usage.add(&outcome.tool_usage);
    let details = json!({
        "runId": outcome.run_id,
        "end": outcome.end.kind(),
        "turns": outcome.turns,
        "toolCalls": outcome.tool_calls,
    });
    let mut output = if outcome.is_ok() {
        ToolOutput::text(outcome.text.clone())
    } else {
        let problem = outcome
            .end
            .problem()
            .unwrap_or_else(|| "it was aborted".to_owned());
        let so_far = match outcome.text.trim() {
            "" => String::new(),
            text => format!(" What it had said: {text}"),
        };
        ToolOutput::text(format!("The agent did not finish: {problem}.{so_far}")).failed()
    };
    output.usage = (!usage.is_unknown()).then_some(usage);
    output.cost = outcome.cost;
    if let Some(below) = &outcome.tool_cost {
        add_cost(&mut output.cost, below);
    }
    output.with_details(details)
}

/// Passes the events of a run on as updates of the call that made it.
struct Forward(ToolContext);

#[async_trait]
impl EventSink for Forward {
    async fn on_event(&self, event: &Arc<AgentEvent>, _: &CancelToken) {
        if let Ok(event) = serde_json::to_value(&**event) {
            self.0.progress(event).await;
        }
    }
}
