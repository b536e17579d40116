//! A tool that is a script.
//!
//! Knows: what a module says of itself, and what its results mean. Does not know: where its
//! text came from.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use yiem_core::{
    ArgsCheck, Content, IntoToolOutput, JsonObject, Replay, Tool, ToolContext, ToolDefinition,
    ToolError, ToolOutput, ValidArgs,
};
use yiem_tools::{InputSchema, SchemaLimits};

use crate::engine::ScriptEngine;
use crate::error::{ScriptError, ScriptErrorKind};
use crate::sandbox::Task;

/// A tool made of a JavaScript module (T-6, T-7).
///
/// The module exports `tool` (name, label, description, inputSchema, and what else a definition
/// has) and the function `execute(args, host)`; it may export `prepare(args)` and
/// `validate(args)`. Each call runs in a sandbox of its own.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use yiem_core::{SystemEnv, Tool, ToolContext, ValidArgs, JsonObject};
/// use yiem_script::{ScriptEngine, ScriptTool};
///
/// let env = SystemEnv::shared();
/// let source = r#"
///     export const tool = { name: "greet", description: "Says hello" };
///     export async function execute(args, host) { return `Hello, ${args.who}!`; }
/// "#;
/// let tool = ScriptTool::from_source(&ScriptEngine::new(env.clone()), "greet.js", source).await?;
/// let args: JsonObject = serde_json::from_str(r#"{"who": "Ada"}"#).unwrap();
/// let output = tool.call(ValidArgs::accepted(args), ToolContext::new("1", "greet", env)).await.unwrap();
/// assert_eq!(output.plain_text(), "Hello, Ada!");
/// # Ok::<(), yiem_script::ScriptError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct ScriptTool {
    engine: ScriptEngine,
    definition: Arc<ToolDefinition>,
    file: Arc<str>,
    source: Arc<str>,
    prepares: bool,
    validates: bool,
}

impl fmt::Debug for ScriptTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptTool")
            .field("name", &self.definition.name)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl ScriptTool {
    /// Reads a module: parses it, runs its top level, and checks what it exports. `file` is the
    /// name that errors show.
    ///
    /// # Errors
    /// The text is no module (with line and column), or the module is none of a tool.
    pub async fn from_source(
        engine: &ScriptEngine,
        file: impl Into<Arc<str>>,
        source: impl Into<Arc<str>>,
    ) -> Result<Self, ScriptError> {
        let (file, source) = (file.into(), source.into());
        let most = engine.limits().source;
        if source.len() > most {
            return Err(module_error(format!(
                "the file has {} bytes, at most {most} are read",
                source.len()
            )));
        }
        let described = engine.run(&file, &source, Task::Describe, None).await?;
        let mut described = match described {
            Value::Array(parts) => parts.into_iter(),
            _ => return Err(module_error("the module could not be described")),
        };
        let definition = definition(described.next().unwrap_or_default())?;
        let functions: Vec<String> = described
            .next()
            .and_then(|names| serde_json::from_value(names).ok())
            .unwrap_or_default();
        let has = |name: &str| functions.iter().any(|f| f == name);
        if !has("execute") {
            return Err(module_error(
                "the file has no `export async function execute(args, host) { … }`",
            ));
        }
        Ok(Self {
            definition: Arc::new(definition),
            prepares: has("prepare"),
            validates: has("validate"),
            engine: engine.clone(),
            file,
            source,
        })
    }

    /// The module's text.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The name of its file, without the folder.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    async fn run(
        &self,
        function: &'static str,
        args: &JsonObject,
        context: Option<&ToolContext>,
    ) -> Result<Value, ScriptError> {
        let args = serde_json::to_string(args).map_err(|e| {
            ScriptError::new(
                ScriptErrorKind::Engine,
                format!("the arguments could not be written: {e}"),
            )
        })?;
        let task = Task::Call {
            function,
            args,
            changes: function == "prepare",
        };
        self.engine
            .run(&self.file, &self.source, task, context)
            .await
    }
}

#[async_trait]
impl Tool for ScriptTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    async fn prepare_arguments(&self, args: JsonObject) -> Result<JsonObject, ToolError> {
        if !self.prepares {
            return Ok(args);
        }
        match self.run("prepare", &args, None).await {
            Ok(Value::Object(args)) => Ok(args),
            Ok(_) => Err(ToolError::new(format!(
                "prepare of {} must return the arguments, which are an object",
                self.definition.name
            ))),
            Err(error) => Err(error.into_tool_error()),
        }
    }

    async fn validate_required_args(&self, args: &JsonObject) -> ArgsCheck {
        if !self.validates {
            return ArgsCheck::Default;
        }
        match self.run("validate", args, None).await {
            Ok(Value::Null | Value::Bool(true)) => ArgsCheck::Accept,
            Ok(Value::String(text)) if text.is_empty() => ArgsCheck::Accept,
            Ok(Value::String(text)) => ArgsCheck::Reject(text),
            Ok(other) => ArgsCheck::Reject(format!("the arguments were refused: {other}")),
            Err(error) => ArgsCheck::Reject(format!("the arguments could not be checked: {error}")),
        }
    }

    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        match self.run("execute", &args, Some(&context)).await {
            Ok(result) => output(result),
            Err(error) => Err(error.into_tool_error()),
        }
    }
}

fn module_error(message: impl Into<String>) -> ScriptError {
    ScriptError::new(ScriptErrorKind::Module, message)
}

/// The definition that a module's `tool` is.
fn definition(tool: Value) -> Result<ToolDefinition, ScriptError> {
    let Value::Object(mut tool) = tool else {
        return Err(module_error("the export tool must be an object"));
    };
    let name = text(&mut tool, "name")?.unwrap_or_default();
    if let Some(refused) = crate::name::refuse(&name) {
        return Err(module_error(refused));
    }
    let input_schema = match tool.remove("inputSchema") {
        None | Some(Value::Null) => InputSchema::any_object(),
        Some(schema) => {
            check_schema(&schema, "inputSchema")?;
            schema
        }
    };
    let output_schema = tool
        .remove("outputSchema")
        .filter(|schema| !schema.is_null());
    if let Some(schema) = &output_schema {
        InputSchema::compile_any(schema, &SchemaLimits::default())
            .map_err(|e| module_error(format!("tool.outputSchema cannot be used: {e}")))?;
    }
    let label = text(&mut tool, "label")?.filter(|label| !label.is_empty());
    Ok(ToolDefinition {
        label: label.unwrap_or_else(|| name.clone()),
        description: text(&mut tool, "description")?.unwrap_or_default(),
        parallel: flag(&mut tool, "parallel")?,
        needs_approval: flag(&mut tool, "needsApproval")?.unwrap_or(false),
        replay: match text(&mut tool, "replay")?.as_deref() {
            None | Some("never") => Replay::Never,
            Some("safe") => Replay::Safe,
            Some(_) => return Err(module_error("tool.replay must be \"safe\" or \"never\"")),
        },
        annotations: tool.remove("annotations").filter(|value| !value.is_null()),
        name,
        input_schema,
        output_schema,
        ..ToolDefinition::default()
    })
}

/// Refuses a schema of arguments that could not be used.
pub(crate) fn check_schema(schema: &Value, what: &str) -> Result<(), ScriptError> {
    InputSchema::compile(schema, &SchemaLimits::default())
        .map(|_| ())
        .map_err(|e| module_error(format!("{what} cannot be used: {e}")))
}

fn text(tool: &mut Map<String, Value>, key: &str) -> Result<Option<String>, ScriptError> {
    match tool.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(module_error(format!("tool.{key} must be a text"))),
    }
}

fn flag(tool: &mut Map<String, Value>, key: &str) -> Result<Option<bool>, ScriptError> {
    match tool.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(flag)),
        Some(_) => Err(module_error(format!("tool.{key} must be true or false"))),
    }
}

/// What a script's result means: a text, a list of content, an object with `content`,
/// `details`, `terminate`, `isError`, or any other JSON.
fn output(result: Value) -> Result<ToolOutput, ToolError> {
    match result {
        Value::Object(mut object) if is_output(&object) => {
            let content = match object.remove("content") {
                None | Some(Value::Null) => Vec::new(),
                Some(content) => content_of(content)?,
            };
            Ok(ToolOutput {
                content,
                details: object.remove("details").unwrap_or_default(),
                structured: object.remove("structured").filter(|value| !value.is_null()),
                terminate: is_true(object.remove("terminate"), "terminate")?,
                is_error: is_true(object.remove("isError"), "isError")?,
                ..ToolOutput::default()
            })
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(is_block) => {
            Ok(ToolOutput::content(content_of(Value::Array(items))?))
        }
        Value::Object(object) if is_block(&Value::Object(object.clone())) => {
            Ok(ToolOutput::content(vec![block(Value::Object(object))?]))
        }
        // Numbers and booleans are shown, not promised as a structured result.
        Value::Number(number) => Ok(ToolOutput::text(number.to_string())),
        Value::Bool(truth) => Ok(ToolOutput::text(truth.to_string())),
        other => other.into_tool_output(),
    }
}

/// Whether an object is a result with its parts, and not a value that happens to have one.
fn is_output(object: &Map<String, Value>) -> bool {
    const PARTS: [&str; 5] = ["content", "details", "structured", "terminate", "isError"];
    let known = |key: &String| PARTS.contains(&key.as_str());
    let blocks = object
        .get("content")
        .and_then(Value::as_array)
        .is_some_and(|items| items.iter().all(is_block));
    object.keys().any(known) && (blocks || object.keys().all(known))
}

/// Whether a value is a block of content.
fn is_block(value: &Value) -> bool {
    matches!(
        value.get("type").and_then(Value::as_str),
        Some("text" | "image" | "audio" | "resource")
    )
}

fn content_of(content: Value) -> Result<Vec<Content>, ToolError> {
    match content {
        Value::String(text) => Ok(vec![Content::text(text)]),
        Value::Array(items) => items.into_iter().map(block).collect(),
        other => block(other).map(|block| vec![block]),
    }
}

fn block(value: Value) -> Result<Content, ToolError> {
    match value {
        Value::String(text) => Ok(Content::text(text)),
        block if is_block(&block) => serde_json::from_value(block).map_err(|e| {
            ToolError::new(format!(
                "the script returned content that cannot be read: {e}"
            ))
        }),
        other => Ok(Content::text(other.to_string())),
    }
}

fn is_true(value: Option<Value>, key: &str) -> Result<bool, ToolError> {
    match value {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(truth)) => Ok(truth),
        Some(other) => Err(ToolError::new(format!(
            "the script returned {other} as {key}; it must be true or false"
        ))),
    }
}

#[cfg(test)]
mod tests;
