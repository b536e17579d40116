//! How an agent behaves where the model does not decide (SP-021, R-17).
//!
//! Knows: every setting and its default. Does not know: who obeys it.

use std::time::Duration;

use yiem_core::{ChatOptions, RetryPolicy, SessionId};
use yiem_tools::WholeOutput;

/// Whether the calls of one reply run one after another or at once (R-3, SP-021
/// `toolExecution`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ToolExecution {
    /// One after another, in the order of the reply; always wins over what a tool says.
    Sequential,
    /// At once, up to [`AgentConfig::max_parallel`]; a tool that says `parallel = no` makes its
    /// whole batch sequential.
    #[default]
    Parallel,
}

/// When results that ask for an end of the run get it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TerminatePolicy {
    /// One result of the batch that says so is enough (the seeds). The model does not see what
    /// its siblings answered.
    #[default]
    Any,
    /// Every result of the batch has to say so.
    All,
}

/// How many waiting messages are delivered at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueMode {
    /// All that wait.
    All,
    /// The oldest; the next one waits for the next turn.
    OneAtATime,
}

/// Where steering may come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SteeringPoint {
    /// After the batch that is running: every call of the reply runs.
    #[default]
    AfterBatch,
    /// Between the calls of a sequential batch as well: calls that have not started get a
    /// result that says that they were not executed.
    BetweenCalls,
}

/// What ends a run before its natural end. A limit that is reached ends the run with an
/// outcome that says which; the history is kept whole.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Model replies per run, counted when they are asked for; 0 is no limit. Default 50.
    pub turns: u32,
    /// Tool calls per run, those that tools make included; calls beyond it are answered with a
    /// result that says so and the run ends. The call that gives a wanted answer is let
    /// through. Default none.
    pub tool_calls: Option<u32>,
    /// Tokens per run, as the servers report them, sub-models' included; checked before each
    /// model call. Default none.
    pub tokens: Option<u64>,
    /// Money per run, computed from the model's prices, with what tools tell of theirs; checked
    /// before each model call. Default none.
    pub cost: Option<f64>,
    /// Tokens over all runs of the agent. Default none.
    pub session_tokens: Option<u64>,
    /// Money over all runs of the agent. Default none.
    pub session_cost: Option<f64>,
    /// Time per run; when it is over the run is cut as by an abort. Default none.
    pub wall_time: Option<Duration>,
    /// The how-manieth identical call (same tool, same arguments) gets a warning beside its
    /// result; 0 is never. Default 3.
    pub identical_calls_warn: u32,
    /// The how-manieth identical call is not run and ends the run; 0 is never. Default 6.
    pub identical_calls_stop: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: 50,
            tool_calls: None,
            tokens: None,
            cost: None,
            session_tokens: None,
            session_cost: None,
            wall_time: None,
            identical_calls_warn: 3,
            identical_calls_stop: 6,
        }
    }
}

/// The settings of an agent (SP-021, R-17), each with its default.
///
/// Made by [`AgentConfig::default`] and changed field by field; the builder has a method for
/// each that is changed often.
#[doc(alias = "agentLoopConfig")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentConfig {
    /// How the calls of one reply run. Default [`ToolExecution::Parallel`].
    pub tool_execution: ToolExecution,
    /// How many calls run at once. Default 64; 0 counts as 1.
    pub max_parallel: usize,
    /// When a result's `terminate` ends the run. Default [`TerminatePolicy::Any`].
    pub terminate: TerminatePolicy,
    /// How steering messages are delivered. Default [`QueueMode::All`].
    pub steering_mode: QueueMode,
    /// How follow-ups are delivered. Default [`QueueMode::OneAtATime`].
    pub follow_up_mode: QueueMode,
    /// Where steering comes in. Default [`SteeringPoint::AfterBatch`].
    pub steering_point: SteeringPoint,
    /// How long a call may take whose tool says nothing of its own (T-8). Default 120 s; zero is
    /// no limit.
    pub tool_time: Duration,
    /// How many bytes of a result's text the model is shown, when its tool says nothing of its
    /// own; the middle is left out (T-8). Default 65,536; 0 is no limit.
    pub result_bytes: usize,
    /// What becomes of the whole text of a result that is cut (T-8). Default: it is dropped.
    pub whole_results: WholeOutput,
    /// How many messages may wait in each queue; one more is refused. Default 1,024.
    pub queue_capacity: usize,
    /// What ends a run early.
    pub limits: Limits,
    /// How long running tools, their hooks and listeners may go on after an abort. Default 5 s.
    pub grace: Duration,
    /// How long `stop` waits for the run that is going on before it aborts it. Default 30 s.
    pub stop_deadline: Duration,
    /// How failed model calls are tried again. Default 4 times, from 0.5 s, up to 60 s.
    pub retry: RetryPolicy,
    /// How often an answer that is not of the wanted shape goes back to the model. Default 2.
    pub output_repairs: u32,
    /// How many events a slow subscriber may be behind before it misses some. Default 1,024.
    pub listener_buffer: usize,
    /// What every model call is asked with: temperature, token limit and the like.
    pub options: ChatOptions,
    /// The id of the conversation, told to model and tools. Default: made at `build()`.
    pub session_id: Option<SessionId>,
    /// Whether traces carry what was said. Default no.
    pub trace_content: bool,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            tool_execution: ToolExecution::default(),
            max_parallel: 64,
            terminate: TerminatePolicy::default(),
            steering_mode: QueueMode::All,
            follow_up_mode: QueueMode::OneAtATime,
            steering_point: SteeringPoint::default(),
            tool_time: Duration::from_secs(120),
            result_bytes: 64 * 1024,
            whole_results: WholeOutput::default(),
            queue_capacity: 1024,
            limits: Limits::default(),
            grace: Duration::from_secs(5),
            stop_deadline: Duration::from_secs(30),
            retry: RetryPolicy::default(),
            output_repairs: 2,
            listener_buffer: 1024,
            options: ChatOptions::default(),
            session_id: None,
            trace_content: false,
        }
    }
}
