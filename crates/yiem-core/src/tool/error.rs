//! A call that failed, as the model reads it.
//!
//! Knows: the message, its kind, its cause. Does not know: whether the run goes on.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ToolOutput;
use crate::content::Content;
use crate::error::{BoxError, Error};

/// A call that failed. What the model reads is the message: say what was wrong and what would
/// be right.
///
/// Any error goes in by `?`. It is not itself a `std::error::Error`, else that could not be.
pub struct ToolError {
    message: String,
    kind: ToolErrorKind,
    details: Value,
    terminate: bool,
    source: Option<BoxError>,
}

/// What kind of failure a [`ToolError`] is, as far as whoever runs the call cares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// The tool says so.
    #[default]
    Failed,
    /// Its time was up.
    TimedOut,
    /// It was cancelled.
    Aborted,
    /// It panicked.
    Panicked,
    /// The way to it is broken: its server, its connection. The call may have run or not.
    Unreachable,
}

impl ToolError {
    /// A failure with the message that the model reads.
    pub fn new(message: impl Into<String>) -> Self {
        Self::of_kind(ToolErrorKind::Failed, message)
    }

    /// A failure of that kind with the message that the model reads.
    pub fn of_kind(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            kind,
            details: Value::Null,
            terminate: false,
            source: None,
        }
    }

    /// The same with details for the application.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// The same with the error that caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same, ending the run after its batch.
    #[must_use]
    pub fn terminating(mut self) -> Self {
        self.terminate = true;
        self
    }

    /// What the model reads.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What kind it is.
    #[must_use]
    pub fn kind(&self) -> ToolErrorKind {
        self.kind
    }

    /// Details for the application; `null` if none.
    #[must_use]
    pub fn details(&self) -> &Value {
        &self.details
    }

    /// The error that caused it, if it was kept.
    #[must_use]
    pub fn source(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.source.as_deref()
    }

    /// The failed output that it becomes.
    #[must_use]
    pub fn into_output(self) -> ToolOutput {
        ToolOutput {
            content: vec![Content::text(self.message)],
            details: self.details,
            terminate: self.terminate,
            is_error: true,
            ..ToolOutput::default()
        }
    }
}

impl<E> From<E> for ToolError
where
    E: std::error::Error + Send + Sync + 'static,
{
    fn from(error: E) -> Self {
        Self::new(with_causes(&error)).with_source(error)
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        let boxed = error.into_boxed();
        Self::new(with_causes(&*boxed)).with_source(boxed)
    }
}

/// An error and its causes on one line, each told once.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(cause) = at {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        at = cause.source();
    }
    text
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError")
            .field("kind", &self.kind)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}
