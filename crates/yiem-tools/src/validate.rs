//! Arguments held against a tool's schema: the one place that accepts or refuses them (T-4).
//!
//! Knows: the order of the stages, the required check of SP-023, what a refusal says.
//! Does not know: which tool is called, and who asked.

use std::fmt;

use serde_json::Value;
use yiem_core::{JsonObject, ToolError, ValidArgs};

use crate::schema::{InputSchema, SchemaError, SchemaLimits, into_object};

#[cfg(feature = "schema")]
mod describe;
pub(crate) mod nearest;
pub(crate) mod problem;
#[cfg(feature = "schema")]
mod repair;
#[cfg(feature = "schema")]
mod text;

pub use problem::Problem;

/// How many problems one refusal lists; the rest is counted.
#[cfg(feature = "schema")]
const MAX_PROBLEMS: usize = 20;
/// How much of the arguments a refusal quotes, in bytes.
#[cfg(feature = "schema")]
const MAX_QUOTE: usize = 1_500;

/// The default required check (SP-023): every name in the schema's `required` has to be a key of
/// the arguments; `null` counts as there. `None` when all are, else
/// `Missing required arguments: city, units`, in the order of `required`.
#[doc(alias = "validateRequiredArgs")]
#[must_use]
pub fn validate_required_args(args: &JsonObject, input_schema: &Value) -> Option<String> {
    match input_schema.get("required") {
        Some(Value::Array(names)) => missing_text(args, names.iter().filter_map(Value::as_str)),
        _ => None,
    }
}

fn missing_text<'n>(args: &JsonObject, required: impl Iterator<Item = &'n str>) -> Option<String> {
    let missing: Vec<&str> = required.filter(|name| !args.contains_key(*name)).collect();
    (!missing.is_empty()).then(|| format!("Missing required arguments: {}", missing.join(", ")))
}

/// Holds arguments against one schema: required check, defaults, lossless coercion, full JSON
/// Schema (T-4). What [`RegisteredTool::accept`](crate::RegisteredTool::accept) does for a
/// tool, without its own preparation and check.
///
/// ```
/// use serde_json::json;
/// use yiem_tools::ArgsValidator;
///
/// let validator = ArgsValidator::new(&json!({
///     "type": "object",
///     "properties": {
///         "city": { "type": "string" },
///         "days": { "type": "integer", "default": 3 }
///     },
///     "required": ["city"]
/// }))?;
/// let args = validator.validate(json!({ "city": "Tokyo", "days": "5" }).as_object().cloned().unwrap())?;
/// # #[cfg(feature = "schema")]
/// assert_eq!(args["days"], 5);
/// let refused = validator.validate(Default::default()).unwrap_err();
/// assert_eq!(refused.to_string(), "Missing required arguments: city");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ArgsValidator {
    schema: InputSchema,
}

impl ArgsValidator {
    /// Compiles a schema of one's own ([`SchemaLimits::own`]).
    ///
    /// # Errors
    /// The schema cannot be used.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self::from_schema(InputSchema::compile(
            schema,
            &SchemaLimits::own(),
        )?))
    }

    /// Holds arguments against a schema that is compiled already.
    #[must_use]
    pub fn from_schema(schema: InputSchema) -> Self {
        Self { schema }
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &InputSchema {
        &self.schema
    }

    /// The required check and the schema stages.
    ///
    /// # Errors
    /// Arguments are missing, or something about them is not as the schema wants it.
    pub fn validate(&self, args: JsonObject) -> Result<ValidArgs, ValidationError> {
        self.check_required(&args)?;
        self.check_schema(args)
    }

    /// The required check alone (SP-023).
    ///
    /// # Errors
    /// Arguments are missing; the text is exactly that of SP-023.
    pub fn check_required(&self, args: &JsonObject) -> Result<(), ValidationError> {
        match missing_text(args, self.schema.required().iter().map(String::as_str)) {
            Some(text) => Err(ValidationError::new(ValidationErrorKind::Missing, text)),
            None => Ok(()),
        }
    }

    /// The schema stages alone: defaults, coercion, JSON Schema.
    ///
    /// Valid arguments come out as they went in, other than by defaults filled in.
    ///
    /// # Errors
    /// Something about the arguments is not as the schema wants it; every problem is listed.
    #[cfg(feature = "schema")]
    pub fn check_schema(&self, args: JsonObject) -> Result<ValidArgs, ValidationError> {
        repair::accept(&self.schema, Value::Object(args))
            .map(|args| ValidArgs::accepted(into_object(args)))
    }

    /// The schema stages alone; without the feature `schema` only the defaults are filled in.
    ///
    /// # Errors
    /// None without the feature `schema`.
    #[cfg(not(feature = "schema"))]
    pub fn check_schema(&self, args: JsonObject) -> Result<ValidArgs, ValidationError> {
        let mut args = Value::Object(args);
        self.schema.fill_defaults(&mut args);
        Ok(ValidArgs::accepted(into_object(args)))
    }

    /// Holds a tool's structured result against its output schema; nothing is coerced.
    ///
    /// # Errors
    /// The result is not as the schema promises; every problem is listed.
    pub fn check_output(&self, structured: &Value) -> Result<(), ValidationError> {
        #[cfg(feature = "schema")]
        {
            repair::check_output(&self.schema, structured)
        }
        #[cfg(not(feature = "schema"))]
        {
            let _ = structured;
            Ok(())
        }
    }
}

/// Why arguments were refused. `Display` is what the model reads.
///
/// For missing arguments exactly the text of SP-023; for a tool's own check that check's text;
/// for problems with the schema one line each with where, what came and what would be right,
/// then the arguments as they came:
///
/// ```text
/// Invalid arguments, 2 problems:
/// - units: got "kelvin"; expected one of "celsius", "fahrenheit"
/// - days: got "many"; expected an integer
/// Received: {"city":"Tokyo","units":"kelvin","days":"many"}
/// ```
#[derive(Debug)]
pub struct ValidationError {
    kind: ValidationErrorKind,
    text: String,
    problems: Vec<Problem>,
    source: Option<Box<ToolError>>,
}

/// Which stage refused the arguments (T-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValidationErrorKind {
    /// The tool's own preparation failed.
    Preparation,
    /// Required arguments are missing (SP-023).
    Missing,
    /// The tool's own check refused them (SP-024).
    Custom,
    /// They are against the schema.
    Schema,
    /// Checking them would take too much work; the schema or the arguments are hostile, or huge.
    TooCostly,
    /// The tool's own preparation or check panicked.
    Panicked,
}

impl ValidationError {
    pub(crate) fn new(kind: ValidationErrorKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            problems: Vec::new(),
            source: None,
        }
    }

    pub(crate) fn preparation(error: ToolError) -> Self {
        let text = error.message().to_owned();
        Self {
            source: Some(Box::new(error)),
            ..Self::new(ValidationErrorKind::Preparation, text)
        }
    }

    #[cfg(feature = "schema")]
    pub(crate) fn problems_of(what: &str, problems: Vec<Problem>, received: &Value) -> Self {
        let mut text = match problems.len() {
            1 => format!("Invalid {what}, 1 problem:"),
            n => format!("Invalid {what}, {n} problems:"),
        };
        for problem in problems.iter().take(MAX_PROBLEMS) {
            text.push_str("\n- ");
            text.push_str(&problem.to_string());
        }
        if problems.len() > MAX_PROBLEMS {
            text.push_str(&format!("\n- and {} more", problems.len() - MAX_PROBLEMS));
        }
        text.push_str("\nReceived: ");
        text.push_str(&problem::cut(&received.to_string(), MAX_QUOTE));
        Self {
            problems,
            ..Self::new(ValidationErrorKind::Schema, text)
        }
    }

    /// Which stage refused.
    #[must_use]
    pub fn kind(&self) -> ValidationErrorKind {
        self.kind
    }

    /// What the model reads.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.text
    }

    /// Every problem that the schema stage found, in the order in which it found them.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The error of the tool's own preparation.
    #[must_use]
    pub fn tool_error(&self) -> Option<&ToolError> {
        self.source.as_deref()
    }
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ValidationError {}

#[cfg(test)]
mod tests;
