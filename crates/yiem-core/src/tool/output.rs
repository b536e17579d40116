//! What a tool answers, and what can be turned into an answer.
//!
//! Knows: the parts of a result, and how values become one. Does not know: who reads it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::ToolError;
use crate::content::Content;
use crate::usage::{Cost, Usage};

/// What a tool answers (T `agentToolResult`).
#[doc(alias = "agentToolResult")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model is shown.
    pub content: Vec<Content>,
    /// What the application is shown: any JSON, `null` if nothing.
    pub details: Value,
    /// The structured result, to be held against the tool's output schema.
    pub structured: Option<Value>,
    /// Tokens of models that the tool itself asked.
    pub usage: Option<Usage>,
    /// Money that those cost, if it is known.
    pub cost: Option<Cost>,
    /// Whether the run should end after this batch.
    pub terminate: bool,
    /// Whether the call failed, in a way that has more to tell than a [`ToolError`].
    pub is_error: bool,
    /// Tools that the call added.
    pub added_tool_names: Vec<String>,
}

impl ToolOutput {
    /// A result of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::content(vec![Content::text(text)])
    }

    /// A result of these blocks.
    #[must_use]
    pub fn content(content: Vec<Content>) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }

    /// A structured result; the model is shown its JSON.
    #[must_use]
    pub fn structured(value: Value) -> Self {
        Self {
            content: vec![Content::text(value.to_string())],
            structured: Some(value),
            ..Self::default()
        }
    }

    /// The four parts of the seeds' constructor, in their order (T).
    #[must_use]
    pub fn from_parts(
        content: Vec<Content>,
        details: Value,
        usage: Option<Usage>,
        terminate: bool,
    ) -> Self {
        Self {
            content,
            details,
            usage,
            terminate,
            ..Self::default()
        }
    }

    /// The same with details for the application.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// The same, ending the run after its batch.
    #[must_use]
    pub fn terminating(mut self) -> Self {
        self.terminate = true;
        self
    }

    /// The same, marked as failed.
    #[must_use]
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// Its text blocks, joined with a line break between them.
    #[must_use]
    pub fn plain_text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

/// What can be a tool's answer.
///
/// Text and what prints as text becomes text, JSON becomes a structured result. For a type of
/// one's own that is `Serialize`, wrap it: [`Structured`]; `#[tool]` does that by itself.
pub trait IntoToolOutput {
    /// The answer.
    ///
    /// # Errors
    /// It cannot be written, or is itself a failure.
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;
}

/// A value whose JSON is the structured result. A value that is a text is shown as that text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Structured<T>(pub T);

impl<T: Serialize> IntoToolOutput for Structured<T> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        match serde_json::to_value(self.0) {
            Ok(value) => value.into_tool_output(),
            Err(e) => Err(ToolError::new(format!(
                "the result could not be written as JSON: {e}"
            ))),
        }
    }
}

impl IntoToolOutput for Value {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(match self {
            Self::Null => ToolOutput::default(),
            Self::String(text) => ToolOutput::text(text),
            other => ToolOutput::structured(other),
        })
    }
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl IntoToolOutput for Content {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::content(vec![self]))
    }
}

impl IntoToolOutput for Vec<Content> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::content(self))
    }
}

impl IntoToolOutput for () {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
}

impl<T: IntoToolOutput> IntoToolOutput for Option<T> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        self.map_or_else(|| Ok(ToolOutput::default()), T::into_tool_output)
    }
}

impl<T: IntoToolOutput, E: Into<ToolError>> IntoToolOutput for Result<T, E> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        self.map_err(Into::into)?.into_tool_output()
    }
}

macro_rules! output_as_text {
    ($($type:ty),* $(,)?) => {$(
        impl IntoToolOutput for $type {
            fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
                Ok(ToolOutput::text(self.to_string()))
            }
        }
    )*};
}

output_as_text!(
    &str,
    String,
    std::borrow::Cow<'_, str>,
    Box<str>,
    Arc<str>,
    bool,
    char,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    f32,
    f64,
);
