//! What can go wrong with a script.
//!
//! Knows: kinds, and where in a file. Does not know: whom it will be shown to.

use std::fmt;

use yiem_core::{ToolError, ToolErrorKind};

/// Why a script could not be loaded, or why its call failed. Its text is what the model reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ScriptError {
    /// What kind it is.
    pub kind: ScriptErrorKind,
    /// What happened, and what would be right, on one line.
    pub message: String,
    /// Where in the file, if it is known.
    pub place: Option<ScriptPlace>,
}

/// A place in a script's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptPlace {
    /// The file's name, without its folder.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// What kind of failure a [`ScriptError`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScriptErrorKind {
    /// The file is no module that the engine can read.
    Syntax,
    /// The module is none of a tool: an export is missing, or is not what it should be.
    Module,
    /// The script threw an error.
    Thrown,
    /// It ran, or took, longer than it may.
    Time,
    /// It needed more memory than it may.
    Memory,
    /// It called itself too deep.
    Stack,
    /// Its result or a report of it is longer than it may be.
    Output,
    /// It waits for a promise that nothing will ever settle.
    NeverSettles,
    /// The call was cancelled.
    Cancelled,
    /// The engine itself failed, or has no room for the call.
    Engine,
}

impl ScriptError {
    pub(crate) fn new(kind: ScriptErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            place: None,
        }
    }

    pub(crate) fn at(mut self, place: Option<ScriptPlace>) -> Self {
        self.place = place;
        self
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.place {
            Some(place) => write!(f, " ({place})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ScriptPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, line {}, column {}",
            self.file, self.line, self.column
        )
    }
}

impl ScriptError {
    /// The failure that the model reads.
    pub(crate) fn into_tool_error(self) -> ToolError {
        let kind = match self.kind {
            ScriptErrorKind::Time => ToolErrorKind::TimedOut,
            ScriptErrorKind::Cancelled => ToolErrorKind::Aborted,
            _ => ToolErrorKind::Failed,
        };
        ToolError::of_kind(kind, self.to_string()).with_source(self)
    }
}
