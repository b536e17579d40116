//! Tools: what they say of themselves, how they are called, what they answer (T-1, SP-016).
//!
//! Knows: the contract between whoever runs calls and whoever implements a tool.
//! Does not know: registries, schemas' meaning, servers, turns.

mod context;
mod error;
mod output;
#[cfg(test)]
mod tests;

pub use context::{Deps, ProgressSink, ToolCaller, ToolContext};
pub use error::{ToolError, ToolErrorKind};
pub use output::{IntoToolOutput, Structured, ToolOutput};

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::JsonObject;

/// What a tool says of itself: shown to the model, and kept by whoever runs it (T-1).
#[doc(alias = "agentTool")]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolDefinition {
    /// The name that the model calls it by; unique among an agent's tools.
    pub name: String,
    /// The name for people, such as `Weather Lookup`.
    pub label: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments. An object without `type` and `properties` takes any.
    pub input_schema: Value,
    /// The JSON Schema of its structured result, if it promises one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Whether it may run beside others: `Some(false)` makes its whole batch sequential,
    /// `None` leaves it to the agent (R-3, T `parallelToolExecute`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<bool>,
    /// Whether its work blocks the thread: it is then always run on a thread of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub blocking: bool,
    /// Whether a person should be asked before it runs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub needs_approval: bool,
    /// Whether a call whose outcome is unknown may be run again (S-3).
    pub replay: Replay,
    /// Its own limits, where they differ from the agent's (T-8).
    pub limits: ToolLimits,
    /// Hints of whoever made it (MCP `annotations`): shown, never trusted for policy (M-8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// Whether the model's provider should hold it to its schema strictly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

impl ToolDefinition {
    /// A definition of what a model is told: name, description and the JSON Schema of the
    /// arguments. All else is as [`ToolDefinition::default`] has it.
    ///
    /// ```
    /// use yiem_core::ToolDefinition;
    /// let schema = serde_json::json!({"type": "object", "properties": {"city": {"type": "string"}}});
    /// let weather = ToolDefinition {
    ///     label: "Weather Lookup".to_owned(),
    ///     ..ToolDefinition::new("get_weather", "Current weather of a city.", schema)
    /// };
    /// # let _ = weather;
    /// ```
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: impl Into<Value>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema: input_schema.into(),
            ..Self::default()
        }
    }
}

/// Whether a call that was begun, and whose end nobody saw, may be run again (S-3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Replay {
    /// No: the model is told that the outcome is unknown.
    #[default]
    Never,
    /// Yes: it changes nothing, or changes the same thing to the same value.
    Safe,
}

/// The limits of one tool; what is `None` is as the agent has it (T-8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolLimits {
    /// The longest that a call may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
    /// The most bytes of its result that the model is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<usize>,
    /// The most calls of it that run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
}

/// A tool (T "Tool Anatomy").
///
/// Implement it with `#[async_trait]`; or make one of an async function with `#[tool]`, or of a
/// closure with `FunctionTool` (yiem-tools).
///
/// ```
/// use std::sync::Arc;
/// use yiem_core::{async_trait, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ValidArgs};
///
/// #[derive(Debug)]
/// struct Echo(Arc<ToolDefinition>);
///
/// #[async_trait]
/// impl Tool for Echo {
///     fn definition(&self) -> &Arc<ToolDefinition> {
///         &self.0
///     }
///     async fn call(&self, args: ValidArgs, _: ToolContext) -> Result<ToolOutput, ToolError> {
///         Ok(ToolOutput::text(args["text"].as_str().unwrap_or_default()))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tool",
    note = "put `#[tool]` on the function, or make a tool of a closure with `FunctionTool::builder`"
)]
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// What it says of itself. The same for as long as the tool lives.
    fn definition(&self) -> &Arc<ToolDefinition>;

    /// Whether this tool has a [`prepare_arguments`](Self::prepare_arguments) or a
    /// [`validate_required_args`](Self::validate_required_args) of its own. Where it has none,
    /// arguments that fit its schema as they came are given to it without a copy.
    ///
    /// Default: yes, so that neither is ever passed over.
    fn has_own_checks(&self) -> bool {
        true
    }

    /// Changes the arguments before they are checked (T `prepareArguments`). The stored call
    /// keeps what the model gave.
    ///
    /// # Errors
    /// The call is rejected with this error.
    async fn prepare_arguments(&self, args: JsonObject) -> Result<JsonObject, ToolError> {
        Ok(args)
    }

    /// The tool's own check in place of the required check (SP-024, T `validateRequiredArgs`).
    /// The schema is checked after it all the same.
    async fn validate_required_args(&self, args: &JsonObject) -> ArgsCheck {
        let _ = args;
        ArgsCheck::Default
    }

    /// Does the work (T `execute`). Called with arguments that were accepted; never called
    /// twice for one call id unless the tool says that replay is safe.
    ///
    /// May be dropped at any await: after the call's time is up, or after an abort and its
    /// grace period. `context.cancel` is cancelled before.
    ///
    /// # Errors
    /// Becomes an error result that the model reads; the run goes on.
    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError>;
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn definition(&self) -> &Arc<ToolDefinition> {
        (**self).definition()
    }
    fn has_own_checks(&self) -> bool {
        (**self).has_own_checks()
    }
    async fn prepare_arguments(&self, args: JsonObject) -> Result<JsonObject, ToolError> {
        (**self).prepare_arguments(args).await
    }
    async fn validate_required_args(&self, args: &JsonObject) -> ArgsCheck {
        (**self).validate_required_args(args).await
    }
    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        (**self).call(args, context).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<T: Tool + ?Sized> Tool for Box<T> {
    fn definition(&self) -> &Arc<ToolDefinition> {
        (**self).definition()
    }
    fn has_own_checks(&self) -> bool {
        (**self).has_own_checks()
    }
    async fn prepare_arguments(&self, args: JsonObject) -> Result<JsonObject, ToolError> {
        (**self).prepare_arguments(args).await
    }
    async fn validate_required_args(&self, args: &JsonObject) -> ArgsCheck {
        (**self).validate_required_args(args).await
    }
    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        (**self).call(args, context).await
    }
}

/// What a tool's own check says (SP-024).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgsCheck {
    /// It has no check of its own: the required check holds (SP-023).
    Default,
    /// The arguments will do.
    Accept,
    /// They will not; the text is what the model reads.
    Reject(String),
}

/// Arguments that were accepted: read, prepared, checked, with defaults filled in (T-4).
///
/// The only thing a tool is ever given. Reads as the JSON object that it is.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidArgs(Arc<JsonObject>);

impl ValidArgs {
    /// Takes arguments as accepted. For validators, and for tests of a tool alone; whoever
    /// calls this answers for them.
    #[must_use]
    pub fn accepted(args: impl Into<Arc<JsonObject>>) -> Self {
        Self(args.into())
    }

    /// The object, shared.
    #[must_use]
    pub fn shared(&self) -> &Arc<JsonObject> {
        &self.0
    }

    /// The object, for oneself.
    #[must_use]
    pub fn into_object(self) -> JsonObject {
        Arc::unwrap_or_clone(self.0)
    }

    /// The value of a type that can be read from JSON.
    ///
    /// # Errors
    /// The arguments do not suit the type; the error says which and why.
    pub fn parse<T: serde::de::DeserializeOwned>(self) -> Result<T, ToolError> {
        T::deserialize(Value::Object(self.into_object()))
            .map_err(|e| ToolError::new(format!("the arguments do not suit the tool's type: {e}")))
    }
}

impl std::ops::Deref for ValidArgs {
    type Target = JsonObject;
    fn deref(&self) -> &JsonObject {
        &self.0
    }
}
