//! Tools made of functions: typed ones over `serde` and `schemars`, and ones over plain JSON
//! schemas (T-2).
//!
//! Knows: how a closure becomes a tool. Does not know: registries, validation.
//! The attribute macro `#[tool]` makes the same of an `async fn`.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use yiem_core::{
    ArgsCheck, BoxFuture, IntoToolOutput, JsonObject, Replay, Tool, ToolContext, ToolDefinition,
    ToolError, ToolOutput, ValidArgs,
};

mod decode;
mod generate;
pub mod support;

#[cfg(feature = "schema")]
pub(crate) use decode::whole_number;

type Call = dyn Fn(ValidArgs, ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>>
    + Send
    + Sync;
type Prepare = dyn Fn(JsonObject) -> Result<JsonObject, ToolError> + Send + Sync;
type Check = dyn Fn(&JsonObject) -> Option<String> + Send + Sync;

/// A tool made of a closure (T-2).
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use yiem_core::{Tool, ToolError};
/// use yiem_tools::FunctionTool;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Weather {
///     /// Name of the city, in English.
///     city: String,
///     /// How many days ahead.
///     #[serde(default)]
///     days: u8,
/// }
///
/// let get_weather = FunctionTool::builder("get_weather")
///     .description("Current weather of a city.")
///     .typed(|args: Weather, _context| async move {
///         Ok::<_, ToolError>(format!("Weather in {}: Sunny, 22°C", args.city))
///     });
/// assert_eq!(get_weather.definition().input_schema["required"], serde_json::json!(["city"]));
/// ```
#[derive(Clone)]
pub struct FunctionTool {
    definition: Arc<ToolDefinition>,
    call: Arc<Call>,
    prepare: Option<Arc<Prepare>>,
    check: Option<Arc<Check>>,
}

/// What a [`FunctionTool`] is told before it gets its function.
#[derive(Clone)]
#[must_use = "finish it with `typed` or `json`"]
pub struct FunctionToolBuilder {
    definition: ToolDefinition,
    prepare: Option<Arc<Prepare>>,
    check: Option<Arc<Check>>,
}

impl FunctionTool {
    /// Begins a tool of that name. Its label is the name's words unless set.
    pub fn builder(name: impl Into<String>) -> FunctionToolBuilder {
        FunctionToolBuilder {
            definition: ToolDefinition {
                name: name.into(),
                ..ToolDefinition::default()
            },
            prepare: None,
            check: None,
        }
    }
}

impl FunctionToolBuilder {
    /// Sets the name for people, such as `Weather Lookup`.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.definition.label = label.into();
        self
    }

    /// Sets what the tool does, for the model. A typed tool without one has the doc comment of
    /// its arguments' type.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = description.into();
        self
    }

    /// Sets whether it may run beside others (R-3).
    pub fn parallel(mut self, parallel: bool) -> Self {
        self.definition.parallel = Some(parallel);
        self
    }

    /// Says that its work blocks the thread: it is run on a thread of its own.
    pub fn blocking(mut self) -> Self {
        self.definition.blocking = true;
        self
    }

    /// Says that a person is to be asked before it runs.
    pub fn needs_approval(mut self) -> Self {
        self.definition.needs_approval = true;
        self
    }

    /// Says that a call whose outcome is unknown may be run again (S-3).
    pub fn replay_safe(mut self) -> Self {
        self.definition.replay = Replay::Safe;
        self
    }

    /// Sets the longest that a call may take (T-8).
    pub fn timeout(mut self, time: Duration) -> Self {
        self.definition.limits.time = Some(time);
        self
    }

    /// Sets the most bytes of a result that the model is shown (T-8).
    pub fn result_bytes(mut self, bytes: usize) -> Self {
        self.definition.limits.result_bytes = Some(bytes);
        self
    }

    /// Sets the most calls of it that run at once (T-8).
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.definition.limits.concurrency = Some(calls);
        self
    }

    /// Asks the model's provider to hold it to the schema.
    pub fn strict(mut self, strict: bool) -> Self {
        self.definition.strict = Some(strict);
        self
    }

    /// Sets the schema of its structured result, which is then held against it.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.definition.output_schema = Some(schema);
        self
    }

    /// Sets the schema of its structured result to that of a type.
    pub fn output<T: JsonSchema>(self) -> Self {
        self.output_schema(generate::output::<T>())
    }

    /// Sets a function that changes the arguments before they are checked
    /// (T `prepareArguments`).
    pub fn prepare_arguments(
        mut self,
        prepare: impl Fn(JsonObject) -> Result<JsonObject, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.prepare = Some(Arc::new(prepare));
        self
    }

    /// Sets a check in place of the required check (SP-024, T `validateRequiredArgs`): `None`
    /// accepts, some text refuses and is what the model reads.
    pub fn validate_required_args(
        mut self,
        check: impl Fn(&JsonObject) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    /// The tool over a typed function: the schema is that of `A`, doc comments are
    /// descriptions, `#[serde(default)]` makes a property optional.
    ///
    /// The result is whatever [`IntoToolOutput`] takes; a type of one's own that is `Serialize`
    /// goes in [`Structured`](yiem_core::Structured).
    pub fn typed<A, R, F>(
        mut self,
        function: impl Fn(A, ToolContext) -> F + Send + Sync + 'static,
    ) -> FunctionTool
    where
        A: DeserializeOwned + JsonSchema + 'static,
        R: IntoToolOutput,
        F: Future<Output = R> + Send + 'static,
    {
        let (schema, description) = generate::arguments::<A>();
        self.definition.input_schema = schema;
        if self.definition.description.is_empty() {
            self.definition.description = description.unwrap_or_default();
        }
        self.finish(Arc::new(
            move |args: ValidArgs, context| match decode::whole(Value::Object(args.into_object())) {
                Ok(args) => {
                    let result = function(args, context);
                    Box::pin(async move { result.await.into_tool_output() })
                }
                Err(error) => Box::pin(std::future::ready(Err(error))),
            },
        ))
    }

    /// The tool over a function of JSON, with a schema of one's own.
    ///
    /// ```
    /// use serde_json::json;
    /// use yiem_core::ToolError;
    /// use yiem_tools::FunctionTool;
    ///
    /// let echo = FunctionTool::builder("echo").description("Says it again.").json(
    ///     json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] }),
    ///     |args, _context| async move {
    ///         Ok::<_, ToolError>(args["text"].as_str().unwrap_or_default().to_owned())
    ///     },
    /// );
    /// # let _ = echo;
    /// ```
    pub fn json<R, F>(
        mut self,
        input_schema: Value,
        function: impl Fn(ValidArgs, ToolContext) -> F + Send + Sync + 'static,
    ) -> FunctionTool
    where
        R: IntoToolOutput,
        F: Future<Output = R> + Send + 'static,
    {
        self.definition.input_schema = input_schema;
        self.finish(Arc::new(move |args, context| {
            let result = function(args, context);
            Box::pin(async move { result.await.into_tool_output() })
        }))
    }

    fn finish(mut self, call: Arc<Call>) -> FunctionTool {
        if self.definition.label.is_empty() {
            self.definition.label = words(&self.definition.name);
        }
        FunctionTool {
            definition: Arc::new(self.definition),
            call,
            prepare: self.prepare,
            check: self.check,
        }
    }
}

/// `get_weather` and `getWeather` as `Get Weather`.
fn words(name: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut before = '_';
    for c in name.chars() {
        let separator = |c| matches!(c, '_' | '-' | '.' | '/' | ' ');
        let new_word = separator(before) || c.is_uppercase() && before.is_lowercase();
        if !separator(c) {
            match words.last_mut().filter(|_| !new_word) {
                Some(word) => word.push(c),
                None => words.push(c.to_uppercase().collect()),
            }
        }
        before = c;
    }
    words.join(" ")
}

#[async_trait]
impl Tool for FunctionTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn has_own_checks(&self) -> bool {
        self.prepare.is_some() || self.check.is_some()
    }

    async fn prepare_arguments(&self, args: JsonObject) -> Result<JsonObject, ToolError> {
        match &self.prepare {
            Some(prepare) => prepare(args),
            None => Ok(args),
        }
    }

    async fn validate_required_args(&self, args: &JsonObject) -> ArgsCheck {
        match self.check.as_ref().map(|check| check(args)) {
            None => ArgsCheck::Default,
            Some(None) => ArgsCheck::Accept,
            Some(Some(text)) => ArgsCheck::Reject(text),
        }
    }

    // Written out: the function's future is boxed already, and one box more is one too many for
    // each call.
    fn call<'a, 'b>(
        &'a self,
        args: ValidArgs,
        context: ToolContext,
    ) -> Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        (self.call)(args, context)
    }
}

impl fmt::Debug for FunctionTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionTool")
            .field("name", &self.definition.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for FunctionToolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionToolBuilder")
            .field("definition", &self.definition)
            .finish_non_exhaustive()
    }
}
