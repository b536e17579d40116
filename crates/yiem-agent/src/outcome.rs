//! What a run comes to: exactly one outcome each.
//!
//! Knows: the answer, why the run ended, what it cost, what was said. Does not know: who waits.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use yiem_core::{Cost, Error, History, Message, ModelError, RunId, StopReason, Usage};

use crate::error::RunError;

/// What a run came to. Displays as its text.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The run.
    pub run_id: RunId,
    /// The final answer: the text of the last reply; after a terminating batch without text,
    /// the text of its results; what had come of it when the run was cut.
    pub text: String,
    /// Why the run ended.
    pub end: EndReason,
    /// Why the last reply ended; `terminated` after a terminating batch, `aborted` and `error`
    /// when the run was cut.
    pub stop_reason: StopReason,
    /// Tokens of the run's model calls, attempts that failed and a compaction's summaries included;
    /// unknown counts are left out.
    pub usage: Usage,
    /// Tokens that tools used for models of their own.
    pub tool_usage: Usage,
    /// Money of `usage`, when the model has prices.
    pub cost: Option<Cost>,
    /// Money of `tool_usage`, as far as tools told it; agents that are tools do, when their models
    /// have prices.
    pub tool_cost: Option<Cost>,
    /// How many turns it took.
    pub turns: u32,
    /// How many calls were run.
    pub tool_calls: u32,
    /// The conversation as it stood at the end, earlier runs included.
    pub transcript: History,
    /// The value that was asked for, when the run was asked for one.
    pub output: Option<Value>,
    /// Where in the transcript the run's own messages begin.
    pub first_message: usize,
}

impl Outcome {
    /// The messages that entered the history in this run.
    #[must_use]
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> + ExactSizeIterator {
        self.transcript.range(self.first_message)
    }

    /// The final answer.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the run came to its natural end.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        matches!(
            self.end,
            EndReason::Completed | EndReason::Terminated | EndReason::Stopped
        )
    }

    /// The outcome of a run that came to its natural end (an answer, a terminating tool, a hook
    /// that said stop), and an error otherwise, for `?`.
    ///
    /// # Errors
    /// A model or hook that failed, an abort, a limit; the error carries the outcome.
    pub fn ok(self) -> Result<Self, RunError> {
        let outcome = Box::new(self);
        Err(match outcome.end.clone() {
            EndReason::Completed | EndReason::Terminated | EndReason::Stopped => {
                return Ok(*outcome);
            }
            EndReason::Aborted => RunError::Aborted { outcome },
            EndReason::Limit(limit) => RunError::Limit { limit, outcome },
            EndReason::Failed(Failure::Model(error)) => RunError::Model { error, outcome },
            EndReason::Failed(Failure::Hook { hook, error }) => RunError::Hook {
                hook,
                error,
                outcome,
            },
            EndReason::Failed(Failure::Source { name, message }) => {
                RunError::SourceFailed { name, message }
            }
            EndReason::Failed(Failure::Output(message)) => RunError::Output { message, outcome },
            EndReason::Failed(Failure::Journal(message)) => RunError::Journal {
                message,
                outcome: Some(outcome),
            },
            EndReason::Failed(Failure::Internal(message)) => RunError::Broken {
                message,
                outcome: Some(outcome),
            },
        })
    }
}

/// The answer; of a run that gave none and did not end well, why, in brackets.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end.problem() {
            Some(problem) if self.text.is_empty() => write!(f, "[no answer: {problem}]"),
            _ => f.write_str(&self.text),
        }
    }
}

/// Why a run ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EndReason {
    /// The model gave its answer.
    Completed,
    /// A tool ended the run.
    Terminated,
    /// The hook `should_stop_after_turn` ended it.
    Stopped,
    /// It was aborted.
    Aborted,
    /// A limit was reached.
    Limit(Limit),
    /// It failed.
    Failed(Failure),
}

/// [`EndReason`] in one word, as events carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum EndKind {
    /// The model gave its answer.
    Completed,
    /// A tool ended the run.
    Terminated,
    /// A hook ended it.
    Stopped,
    /// It was aborted.
    Aborted,
    /// A limit was reached.
    Limit,
    /// It failed.
    Failed,
}

impl EndReason {
    /// The reason in one word.
    #[must_use]
    pub fn kind(&self) -> EndKind {
        match self {
            Self::Completed => EndKind::Completed,
            Self::Terminated => EndKind::Terminated,
            Self::Stopped => EndKind::Stopped,
            Self::Aborted => EndKind::Aborted,
            Self::Limit(_) => EndKind::Limit,
            Self::Failed(_) => EndKind::Failed,
        }
    }

    /// What went wrong or which limit was reached, for people.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::Completed | Self::Terminated | Self::Stopped | Self::Aborted => None,
            Self::Limit(limit) => Some(limit.to_string()),
            Self::Failed(failure) => Some(failure.to_string()),
        }
    }
}

/// Why a run failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The model failed.
    #[error("{0}")]
    Model(Arc<ModelError>),
    /// A hook failed.
    #[error("the hook {hook} failed: {error}")]
    Hook {
        /// The hook's name.
        hook: String,
        /// What went wrong.
        error: Arc<Error>,
    },
    /// A required source of tools could not be loaded (M-7).
    #[error("the required tool source {name:?} could not be loaded: {message}")]
    Source {
        /// The source's name.
        name: String,
        /// What it said.
        message: String,
    },
    /// The answer was not of the wanted shape.
    #[error("the answer is not of the wanted shape: {0}")]
    Output(String),
    /// The journal could not be written (S-1).
    #[error("the session's journal could not be written: {0}")]
    Journal(String),
    /// A fault of the framework itself.
    #[error("the run broke off: {0}")]
    Internal(String),
}

/// A limit that was reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "limit",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Limit {
    /// Turns of the run.
    Turns {
        /// The limit.
        max: u32,
    },
    /// Tool calls of the run.
    ToolCalls {
        /// The limit.
        max: u32,
    },
    /// Tokens of the run.
    Tokens {
        /// The limit.
        max: u64,
        /// What was used.
        used: u64,
    },
    /// Money of the run.
    Cost {
        /// The limit.
        max: f64,
        /// What was spent.
        spent: f64,
    },
    /// Tokens of all runs.
    SessionTokens {
        /// The limit.
        max: u64,
        /// What was used.
        used: u64,
    },
    /// Money of all runs.
    SessionCost {
        /// The limit.
        max: f64,
        /// What was spent.
        spent: f64,
    },
    /// Time of the run.
    WallTime {
        /// The limit.
        max: Duration,
    },
    /// The same call again and again.
    IdenticalCalls {
        /// The tool.
        tool: String,
        /// The how-manieth call it was.
        times: u32,
    },
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turns { max } => {
                write!(f, "a run may take {} at most", times(*max, "turn"))
            }
            Self::ToolCalls { max } => {
                write!(f, "a run may make {} at most", times(*max, "tool call"))
            }
            Self::Tokens { max, used } => {
                write!(f, "{used} tokens are used, a run may use {max}")
            }
            Self::Cost { max, spent } => {
                write!(f, "{spent:.4} is spent, a run may spend {max:.4}")
            }
            Self::SessionTokens { max, used } => {
                write!(f, "{used} tokens are used, the session may use {max}")
            }
            Self::SessionCost { max, spent } => {
                write!(f, "{spent:.4} is spent, the session may spend {max:.4}")
            }
            Self::WallTime { max } => {
                write!(
                    f,
                    "{} s are the most time that a run may take",
                    max.as_secs_f64()
                )
            }
            Self::IdenticalCalls { tool, times: count } => {
                write!(
                    f,
                    "the tool {tool} was called {} with the same arguments",
                    times(*count, "time")
                )
            }
        }
    }
}

/// So many of a thing, in words.
fn times(count: u32, thing: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{s}")
}
