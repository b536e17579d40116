//! One tool with everything that is known of it: its name, its source, its compiled schema.
//!
//! Knows: the way of arguments to a tool (T-4). Does not know: other tools, runs, turns.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use yiem_core::{ArgsCheck, JsonObject, Tool, ToolDefinition, ToolOutput, ValidArgs};

use crate::schema::{InputSchema, SchemaError, SchemaLimits};
use crate::validate::{ArgsValidator, ValidationError, ValidationErrorKind, problem::cut};

/// The most bytes of a source's tool description that are kept.
const MAX_DESCRIPTION: usize = 16 * 1024;

/// Where a tool comes from (T-3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SourceId {
    /// The application itself.
    Own,
    /// Yiem, such as `listTools`.
    Builtin,
    /// A source (a server, a directory), by the key that it is configured by.
    Source(Arc<str>),
}

impl SourceId {
    /// A source by its key.
    pub fn source(key: impl Into<Arc<str>>) -> Self {
        Self::Source(key.into())
    }

    /// The key of a source; `None` for one's own and built-in tools.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Source(key) => Some(key),
            Self::Own | Self::Builtin => None,
        }
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("the application"),
            Self::Builtin => f.write_str("Yiem"),
            Self::Source(key) => f.write_str(key),
        }
    }
}

/// A tool as it is registered: named, with its schemas compiled, ready to accept arguments.
#[derive(Clone)]
pub struct RegisteredTool {
    tool: Arc<dyn Tool>,
    source: SourceId,
    /// As offered: with the offered name and the schema as it was put right.
    definition: Arc<ToolDefinition>,
    args: ArgsValidator,
    output: Option<ArgsValidator>,
    warnings: Vec<String>,
    /// How many more calls may run at once, where the tool has a limit (T-8).
    places: Option<Arc<Semaphore>>,
}

/// The right to run one call of a tool; given back when it is dropped.
#[derive(Debug)]
pub struct CallPermit {
    _place: Option<OwnedSemaphorePermit>,
}

impl RegisteredTool {
    /// Compiles a tool's schemas. A source's tool whose *output* schema does not compile is
    /// taken without one, with a warning.
    pub(crate) fn compile(
        tool: Arc<dyn Tool>,
        source: SourceId,
        limits: &SchemaLimits,
    ) -> Result<Self, SchemaError> {
        let definition = Arc::clone(tool.definition());
        let schema = if definition.input_schema.is_null() {
            InputSchema::compile(&InputSchema::any_object(), limits)?
        } else {
            InputSchema::compile(&definition.input_schema, limits)?
        };
        let mut warnings = schema.warnings().to_vec();
        let output = match &definition.output_schema {
            None => None,
            Some(output) => match InputSchema::compile_any(output, limits) {
                Ok(output) => Some(ArgsValidator::from_schema(output)),
                Err(error) if matches!(source, SourceId::Source(_)) => {
                    warnings.push(format!("its output schema is not used: {error}"));
                    None
                }
                Err(error) => return Err(error),
            },
        };
        let most = definition.limits.concurrency;
        let mut registered = Self {
            places: most.map(|n| Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS)))),
            args: ArgsValidator::from_schema(schema),
            tool,
            source,
            definition,
            output,
            warnings,
        };
        registered.put_right();
        Ok(registered)
    }

    /// Changes the offered definition where the tool's own cannot be offered as it is.
    fn put_right(&mut self) {
        let schema = self.args.schema().as_value();
        let long = self.definition.description.len() > MAX_DESCRIPTION;
        if *schema == self.definition.input_schema && !long {
            return;
        }
        let schema = schema.clone();
        let definition = Arc::make_mut(&mut self.definition);
        definition.input_schema = schema;
        if long {
            self.warnings
                .push(format!("its description is cut to {MAX_DESCRIPTION} bytes"));
            definition.description = cut(&definition.description, MAX_DESCRIPTION);
        }
    }

    /// The same tool over another object, whose definition is the same.
    pub(crate) fn with_tool(&self, tool: Arc<dyn Tool>) -> Self {
        Self {
            tool,
            ..self.clone()
        }
    }

    /// The same tool, offered by another name.
    pub(crate) fn named(mut self, name: &str) -> Self {
        if self.definition.name != name {
            Arc::make_mut(&mut self.definition).name = name.to_owned();
        }
        self
    }

    /// The name that the model calls it by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Where it comes from.
    #[must_use]
    pub fn source(&self) -> &SourceId {
        &self.source
    }

    /// What the model is told of it, under the offered name.
    #[must_use]
    pub fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    /// The tool itself, whose own definition has the source's name for it.
    #[must_use]
    pub fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    /// Its compiled schema of arguments.
    #[must_use]
    pub fn schema(&self) -> &InputSchema {
        self.args.schema()
    }

    /// Its compiled output schema, if it has one.
    #[must_use]
    pub fn output_schema(&self) -> Option<&InputSchema> {
        self.output.as_ref().map(ArgsValidator::schema)
    }

    /// What was odd about its definition, as short sentences.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Takes arguments as the model gave them all the way to what the tool is given (T-4): the
    /// tool's own preparation, the required check of SP-023 or the tool's own check in its
    /// place (SP-024), defaults and lossless coercion, JSON Schema.
    ///
    /// A panic in the tool's own code is a refusal, too. Dropping the future ends it.
    ///
    /// # Errors
    /// The arguments are refused; the error's text is what the model reads.
    #[doc(alias = "validateToolArguments")]
    pub async fn accept(&self, args: JsonObject) -> Result<ValidArgs, ValidationError> {
        let prepared = guarded("preparation", || self.tool.prepare_arguments(args))
            .await?
            .map_err(ValidationError::preparation)?;
        self.accept_prepared(prepared).await
    }

    /// The quick way for arguments that need none of this: they are taken as they are, shared and
    /// without waiting. `None` says nothing; [`accept`](Self::accept) decides then.
    #[must_use]
    pub fn accept_unchanged(&self, args: &Arc<JsonObject>) -> Option<ValidArgs> {
        let sure = !self.tool.has_own_checks() && self.args.schema().fits_unchanged(args);
        sure.then(|| ValidArgs::accepted(Arc::clone(args)))
    }

    /// The same without the tool's own preparation, for arguments that were prepared already,
    /// such as those that a hook puts in the place of accepted ones.
    ///
    /// # Errors
    /// As for [`RegisteredTool::accept`].
    pub async fn accept_prepared(&self, args: JsonObject) -> Result<ValidArgs, ValidationError> {
        match guarded("check", || self.tool.validate_required_args(&args)).await? {
            ArgsCheck::Default => self.args.check_required(&args)?,
            ArgsCheck::Accept => {}
            ArgsCheck::Reject(text) => {
                return Err(ValidationError::new(ValidationErrorKind::Custom, text));
            }
        }
        self.args.check_schema(args)
    }

    /// Waits until one more call of this tool may run beside those that do (T-8
    /// `limits.concurrency`); at once where the tool has no such limit. Dropping the future gives
    /// up the wait, dropping the permit lets the next one run.
    pub async fn permit(&self) -> CallPermit {
        let place = match &self.places {
            // It is never closed, so there is always a place in the end.
            Some(places) => Arc::clone(places).acquire_owned().await.ok(),
            None => None,
        };
        CallPermit { _place: place }
    }

    /// The same without waiting: `None` when the call has to wait for its turn.
    #[must_use]
    pub fn permit_now(&self) -> Option<CallPermit> {
        let place = match &self.places {
            Some(places) => Some(Arc::clone(places).try_acquire_owned().ok()?),
            None => None,
        };
        Some(CallPermit { _place: place })
    }

    /// Holds a result against the output schema (T-4, in finalize). Failed results and tools
    /// without an output schema are not checked.
    ///
    /// # Errors
    /// The structured result is missing or not as promised. The text says so to the model; the
    /// result itself is left as it is.
    pub fn check_output(&self, output: &ToolOutput) -> Result<(), ValidationError> {
        let Some(schema) = self.output.as_ref().filter(|_| !output.is_error) else {
            return Ok(());
        };
        match &output.structured {
            Some(structured) => schema.check_output(structured),
            None => Err(ValidationError::new(
                ValidationErrorKind::Schema,
                "The tool promises a structured result by its output schema, and gave none.",
            )),
        }
    }
}

impl fmt::Debug for RegisteredTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredTool")
            .field("name", &self.definition.name)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// Runs a tool's own code so that its panic is a refusal, also one before there is a future.
async fn guarded<T, F>(what: &str, code: impl FnOnce() -> F) -> Result<T, ValidationError>
where
    F: Future<Output = T>,
{
    AssertUnwindSafe(async { code().await })
        .catch_unwind()
        .await
        .map_err(|panic| {
            let said = panic
                .downcast_ref::<&str>()
                .map(|s| (*s).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            ValidationError::new(
                ValidationErrorKind::Panicked,
                format!(
                    "The tool's own {what} of its arguments panicked: {}",
                    cut(&said, 300)
                ),
            )
        })
}
