//! What a caller can be refused, and what an unhappy outcome becomes under `?`.
//!
//! Knows: why no run began, and why one ended badly. Does not know: failures inside a call;
//! those are results that the model reads.

use std::sync::Arc;

use yiem_core::{Error, ModelError};

use crate::outcome::{Limit, Outcome};

/// A run that could not be started, or, by [`Outcome::ok`], one that ended badly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A run is going on. Nothing was taken in.
    #[error(
        "the agent is busy with another run; wait for it, or use `run` to steer it or `follow_up` to queue"
    )]
    Busy,
    /// The agent was stopped. Nothing was taken in.
    #[error("the agent was stopped and takes nothing more in; build a new one")]
    Closed,
    /// The message says nothing. Nothing was taken in.
    #[error("the message is empty; give it some text or another block of content")]
    EmptyInput,
    /// The message is neither a user's nor the application's own. Nothing was taken in.
    #[error(
        "a run cannot be started with a message of the role {0:?}; give a user's message or a custom one"
    )]
    WrongRole(&'static str),
    /// There is nothing to go on from: the history is empty or ends with a good answer, and
    /// nothing is queued.
    #[error("there is nothing to continue: {0}; send a message instead")]
    NothingToContinue(&'static str),
    /// The queue is full. The message was not taken in.
    #[error(
        "{waiting} messages wait already, which is the bound; wait until some are delivered, or raise `queue_capacity`"
    )]
    QueueFull {
        /// How many wait.
        waiting: usize,
    },
    /// Too many outcomes were never taken.
    #[error("{waiting} outcomes wait to be taken, which is the bound; call `take_response`")]
    OutcomesWaiting {
        /// How many wait.
        waiting: usize,
    },
    /// There is no runtime to run on.
    #[error("no tokio runtime is running here; call this from inside one")]
    NoRuntime,
    /// A required source of tools could not be loaded (M-7).
    #[error("the required tool source {name:?} could not be loaded: {message}")]
    SourceFailed {
        /// The source's name.
        name: String,
        /// What it said.
        message: String,
    },
    /// The schema of the wanted answer cannot be used. Nothing was taken in.
    #[error("{message}")]
    Schema {
        /// What is wrong with it.
        message: String,
    },
    /// The journal could not be written, so the run was ended before more was done (S-1).
    #[error("the session's journal could not be written: {message}")]
    Journal {
        /// What it said.
        message: String,
        /// The run's outcome, if it had begun.
        outcome: Option<Box<Outcome>>,
    },
    /// The model failed, and trying again did not help or made no sense.
    #[error("the model failed: {error}")]
    Model {
        /// What went wrong.
        #[source]
        error: Arc<ModelError>,
        /// The run's outcome, with its transcript.
        outcome: Box<Outcome>,
    },
    /// A hook failed.
    #[error("the hook {hook} failed: {error}")]
    Hook {
        /// The hook's name.
        hook: String,
        /// What went wrong.
        error: Arc<Error>,
        /// The run's outcome, with its transcript.
        outcome: Box<Outcome>,
    },
    /// The run was aborted.
    #[error("the run was aborted")]
    Aborted {
        /// The run's outcome, with its transcript.
        outcome: Box<Outcome>,
    },
    /// A limit was reached.
    #[error("the run was ended by a limit: {limit}")]
    Limit {
        /// Which.
        limit: Limit,
        /// The run's outcome, with its transcript.
        outcome: Box<Outcome>,
    },
    /// The answer was not of the wanted shape, and sending it back did not help.
    #[error("the answer is not of the wanted shape: {message}")]
    Output {
        /// What is wrong with it.
        message: String,
        /// The run's outcome, with its transcript.
        outcome: Box<Outcome>,
    },
    /// A fault of the framework itself, or the runtime went away under the run.
    #[error("the run broke off: {message}")]
    Broken {
        /// What is known.
        message: String,
        /// The run's outcome, if there is one.
        outcome: Option<Box<Outcome>>,
    },
}

impl RunError {
    /// The run's outcome, if a run had begun.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Model { outcome, .. }
            | Self::Hook { outcome, .. }
            | Self::Aborted { outcome }
            | Self::Limit { outcome, .. }
            | Self::Output { outcome, .. } => Some(outcome),
            Self::Broken { outcome, .. } | Self::Journal { outcome, .. } => outcome.as_deref(),
            _ => None,
        }
    }

    /// Whether the same call makes sense later, unchanged.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Busy | Self::QueueFull { .. } | Self::OutcomesWaiting { .. } => true,
            Self::Model { error, .. } => error.is_retryable(),
            _ => false,
        }
    }
}

/// An agent that cannot be built: every fault of its configuration at once.
#[derive(Debug, thiserror::Error)]
#[error("the agent cannot be built: {}", .problems.join("; "))]
pub struct BuildError {
    problems: Vec<String>,
}

impl BuildError {
    pub(crate) fn new(problems: Vec<String>) -> Self {
        Self { problems }
    }

    /// What is wrong, a sentence each.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}
