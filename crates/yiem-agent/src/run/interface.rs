//! What goes into a run and comes out of it, and the rules that it obeys.
//!
//! Knows: the words between a run and who drives it. Does not know: what follows what; the run
//! does.

use std::sync::Arc;
use std::time::Duration;

use yiem_core::{
    ChatEvent, Cost, History, JsonObject, Message, ModelError, ModelInfo, Timestamp, ToolCallId,
    ToolOutput, Usage,
};

use crate::config::AgentConfig;
use crate::event::{AgentEvent, EventKind, QueueChange, RejectReason};
use crate::hook::StopAfterTurn;
use crate::journal::{JournalRecord, OpenCall};
use crate::outcome::{EndReason, Failure};
use crate::queue::QueueKind;

/// What a run has to know of the world at the moment, passed in with every input.
pub trait RunFacts {
    /// The time.
    fn now(&self) -> Timestamp;
    /// An id for a call that came without one, or with one that is taken.
    fn new_call_id(&self) -> ToolCallId;
    /// A number from 0 to 1, for jitter.
    fn random(&self) -> f64;
    /// What the tool of that name says of running beside others.
    fn parallel(&self, tool: &str) -> Option<bool>;
    /// The model that answers.
    fn model(&self) -> &ModelInfo;
}

/// What is to be done next.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step {
    /// Tell this to every listener before anything else is done.
    Emit(AgentEvent),
    /// Write this down before anything else is done.
    Record(JournalRecord),
    /// Ask the model; answered by pieces and [`Input::Model`] or [`Input::ModelFailed`].
    CallModel {
        /// Which attempt it is, from 1.
        attempt: u32,
    },
    /// Wait that long; answered by [`Input::Waited`].
    Wait(Duration),
    /// Shorten what the model is shown; answered by [`Input::Compacted`].
    Compact {
        /// What overflowed.
        reason: Arc<str>,
    },
    /// Find, check and show this call to the hooks; answered by [`Input::Prepared`] or
    /// [`Input::Rejected`].
    Prepare(usize),
    /// Run this call; answered by updates and [`Input::Settled`].
    Execute(usize),
    /// Ask the hooks whether the run ends here; answered by [`Input::Judged`].
    JudgeTurn,
    /// Ask the hooks for changes; answered by [`Input::NextTurnReady`].
    PrepareNextTurn,
    /// Say at once how many messages wait; answered by [`Input::Waiting`].
    CountQueues,
    /// Hand over at once what waits in this queue; answered by [`Input::Taken`].
    Take(QueueKind),
    /// Check the final answer against the wanted shape; answered by [`Input::AnswerChecked`].
    CheckAnswer,
    /// The run has ended.
    Done,
}

impl Step {
    pub(super) fn is_effect(&self) -> bool {
        matches!(self, Self::Emit(_) | Self::Record(_) | Self::Done)
    }
}

/// What happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input {
    /// The run begins with these messages; with none it goes on from the history.
    Start(Vec<Arc<Message>>),
    /// The run goes on with the calls of the last reply, as far as they had got when the session
    /// broke off (S-3).
    Resume(Vec<OpenCall>),
    /// A piece of the reply came; also its last event.
    Model(ChatEvent),
    /// The model failed, or its reply broke off.
    ModelFailed(ModelError),
    /// A hook before the model call failed.
    RequestFailed(Failure),
    /// The wait is over.
    Waited,
    /// Tokens of a model call that was made for the compaction under way.
    Spent(Usage),
    /// The model is shown these messages from now on; or why not.
    Compacted(Result<History, String>),
    /// A call was accepted, with these arguments.
    Prepared {
        /// Which call.
        call: usize,
        /// Its arguments.
        args: Arc<JsonObject>,
    },
    /// A call was not accepted.
    Rejected {
        /// Which call.
        call: usize,
        /// Why, in one word.
        reason: RejectReason,
        /// What the model reads.
        output: Box<ToolOutput>,
    },
    /// Something is to be told of a call (a question to a person, a call that it makes).
    Told {
        /// Which call.
        call: usize,
        /// What.
        kind: Box<EventKind>,
    },
    /// A running call tells of its progress.
    Updated {
        /// Which call.
        call: usize,
        /// What it said.
        partial: serde_json::Value,
    },
    /// A call that a call made told what it cost.
    Cost {
        /// The call of the batch.
        call: usize,
        /// How much money.
        cost: Cost,
    },
    /// A call has run; the hooks have seen its result.
    Settled {
        /// Which call.
        call: usize,
        /// What came of it.
        output: Box<ToolOutput>,
    },
    /// What the hooks say of the turn.
    Judged(Result<StopAfterTurn, Failure>),
    /// The hooks have changed what they wanted.
    NextTurnReady(Result<(), Failure>),
    /// How many messages wait.
    Waiting {
        /// In the queue of steering.
        steering: usize,
        /// In the queue of follow-ups.
        follow_ups: usize,
    },
    /// These messages left their queue.
    Taken(Vec<Arc<Message>>),
    /// What the final answer is worth.
    AnswerChecked(AnswerCheck),
    /// Something odd, to be told.
    Warned(Arc<str>),
    /// Another model answers from here on.
    ModelChanged(String),
    /// What waits in the queues has changed; before the start, what waits at it.
    QueueChanged {
        /// What happened to `messages`.
        change: QueueChange,
        /// The messages that it happened to.
        messages: Vec<Arc<Message>>,
        /// What waits now, steering and follow-ups.
        waiting: (Vec<Arc<Message>>, Vec<Arc<Message>>),
    },
    /// The set of tools has changed.
    ToolsChanged {
        /// Names that are new.
        added: Vec<String>,
        /// Names that are gone.
        removed: Vec<String>,
        /// Names whose definition is another.
        changed: Vec<String>,
    },
    /// The run must end now, for this reason.
    Cut(EndReason),
    /// The grace period after a cut is over: calls that still run have been dropped.
    GraceOver,
}

/// What a final answer is worth.
#[derive(Debug)]
pub enum AnswerCheck {
    /// It is of the wanted shape.
    Good(serde_json::Value),
    /// It is not; the model is to be told this.
    Wrong(String),
}

/// What a run obeys.
#[derive(Clone, Debug)]
pub struct RunRules {
    /// The agent's settings.
    pub config: Arc<AgentConfig>,
    /// Whether hooks are to be asked after a turn.
    pub judge_turns: bool,
    /// Whether hooks are to be asked before a next turn.
    pub prepare_turns: bool,
    /// Whether records are wanted.
    pub journal: bool,
    /// Whether an answer of a certain shape is wanted.
    pub wants_output: bool,
    /// The tool by which that answer is given, if by a tool.
    pub output_tool: Option<Arc<str>>,
    /// Tokens of the session before this run.
    pub session_tokens: u64,
    /// Money of the session before this run.
    pub session_cost: f64,
}

impl RunRules {
    /// The rules of these settings, without hooks, journal or wanted shape.
    #[must_use]
    pub fn new(config: Arc<AgentConfig>) -> Self {
        Self {
            config,
            judge_turns: false,
            prepare_turns: false,
            journal: false,
            wants_output: false,
            output_tool: None,
            session_tokens: 0,
            session_cost: 0.0,
        }
    }
}
