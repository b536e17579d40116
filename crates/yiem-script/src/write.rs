//! The tool that writes tools (T-7, T "Self-Modifying Tools").
//!
//! Knows: what the model gives, what is refused, and in which order things are checked so that
//! nothing is written that could not be used. Does not know: how a file is put in its place.

use std::fmt;
use std::io::Write as _;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use serde_json::{Value, json};
use yiem_core::{
    JsonObject, Tool, ToolCaller, ToolContext, ToolDefinition, ToolError, ToolOutput, ValidArgs,
};

use crate::error::{ScriptError, ScriptErrorKind};
use crate::folder::{self, PutError};
use crate::name;
use crate::render::{self, Draft};
use crate::sandbox::Task;
use crate::source::ToolFolder;
use crate::tool::{ScriptTool, check_schema};

/// The tool `writeTool`: writes a tool into a folder as a JavaScript module, and loads it.
///
/// It is got from [`ScriptTools::write_tool`](crate::ScriptTools::write_tool), and offered only
/// where writing is allowed. What it refuses, it refuses before anything is written: names that
/// are no plain words, that are devices, built-in tools or files that are there already; schemas
/// that cannot be used; code that does not parse, with line and column.
#[derive(Clone)]
pub struct WriteTool {
    folder: Arc<ToolFolder>,
}

impl fmt::Debug for WriteTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteTool")
            .field("dir", &self.folder.dir)
            .finish()
    }
}

static DEFINITION: LazyLock<Arc<ToolDefinition>> = LazyLock::new(|| {
    Arc::new(ToolDefinition {
        name: "writeTool".to_owned(),
        label: "Create Tool".to_owned(),
        description: "Creates a new tool from JavaScript code and makes it available on the next turn. \
            Look at the list of tools first and choose a name that is not taken. \
            The code runs in a sandbox: plain JavaScript, no imports, files, network, clock or timers. \
            Give function bodies, not functions; they are wrapped and indented for you."
            .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "name": {
                    "type": "string",
                    "description": "The tool's name, unique: letters, digits, _ and -, at most 64, beginning with a letter or _"
                },
                "label": { "type": "string", "description": "The name for people, e.g. Wine Search" },
                "description": { "type": "string", "description": "What the tool does and when to use it" },
                "inputSchema": {
                    "type": "object",
                    "description": "JSON Schema of the arguments, e.g. {\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\"}},\"required\":[\"query\"]}"
                },
                "executeCode": {
                    "type": "string",
                    "description": "Body of `async function execute(args, host)`. Return a text, a list of content blocks, or { content, details, terminate, isError }. \
                        host.progress(value) reports progress, await host.callTool(name, args) calls another tool and gives { text, content, isError }, host.log(text) logs."
                },
                "validateCode": {
                    "type": "string",
                    "description": "Optional body of `function validate(args)`: return null if the arguments will do, else a text that says what is wrong. Replaces the check for required arguments."
                },
                "prepareCode": {
                    "type": "string",
                    "description": "Optional body of `function prepare(args)`: return the arguments, changed as needed, before they are validated."
                },
                "parallel": {
                    "type": "boolean",
                    "description": "false if the tool must not run beside others; leave it out if that does not matter"
                },
                "overwrite": {
                    "type": "boolean",
                    "description": "true to replace a tool of that name that was written before"
                }
            },
            "required": ["name", "label", "description", "inputSchema", "executeCode"],
            "additionalProperties": false
        }),
        parallel: Some(false),
        ..ToolDefinition::default()
    })
});

impl WriteTool {
    pub(crate) fn new(folder: Arc<ToolFolder>) -> Self {
        Self { folder }
    }

    async fn write(
        &self,
        mut args: JsonObject,
        caller: Option<&Arc<dyn ToolCaller>>,
    ) -> Result<ToolOutput, ToolError> {
        let overwrite = args.remove("overwrite") == Some(Value::Bool(true));
        let draft = draft(args)?;
        if let Some(refused) = name::refuse_new(&draft.name) {
            return Err(ToolError::new(refused));
        }
        check_schema(&draft.input_schema, "inputSchema").map_err(|e| ToolError::new(e.message))?;
        for (key, code, head) in [
            (
                "executeCode",
                Some(&draft.execute),
                ("async ", "args, host"),
            ),
            ("validateCode", draft.validate.as_ref(), ("", "args")),
            ("prepareCode", draft.prepare.as_ref(), ("", "args")),
        ] {
            if let Some(code) = code {
                self.check_code(key, code, head).await?;
            }
        }

        let engine = &self.folder.engine;
        let file = format!("{}.js", draft.name);
        let text = render::module(&draft, engine.env().now());
        let tool = ScriptTool::from_source(engine, file.as_str(), text.as_str())
            .await
            .map_err(ScriptError::into_tool_error)?;
        if tool.definition().name != draft.name {
            return Err(ToolError::new(format!(
                "the code makes a tool named {:?} and not {:?}",
                tool.definition().name,
                draft.name
            )));
        }

        let dir = self.folder.dir.clone();
        let target = file.clone();
        // Another tool that has the name would go on having it.
        let taken = caller.is_some_and(|caller| caller.offers(&draft.name));
        let text: Arc<str> = text.into();
        folder::put_in_turn(&**engine.env(), move || {
            if taken && !dir.join(&target).exists() {
                return Err(PutError::Taken);
            }
            folder::put(&dir, &target, overwrite, |file| {
                file.write_all(text.as_bytes())
            })
        })
        .await
        .map_err(|error| put_error(error, &draft.name))?;
        self.folder.added(file.clone(), Arc::new(tool));

        let mut output = ToolOutput::text(format!(
            "Tool {} was written to {file} and can be called from the next turn on.",
            draft.name
        ));
        output.details = json!({ "file": self.folder.dir.join(&file).to_string_lossy() });
        output.added_tool_names = vec![draft.name];
        Ok(output)
    }

    /// Refuses a body that does not parse, or that is more than a body. It is read alone, so that
    /// line and column are those of the code that was given.
    async fn check_code(&self, key: &str, code: &str, head: (&str, &str)) -> Result<(), ToolError> {
        let (asynchronous, parameters) = head;
        // Code that closes its function and goes on cannot do so as a declaration and as a
        // method of an object both.
        let as_function = format!("{asynchronous}function f({parameters}) {{\n{code}\n}}");
        let as_method = format!("({{ {asynchronous}f({parameters}) {{\n{code}\n}} }});");
        let name: Arc<str> = key.into();
        for (source, is_first) in [(as_function, true), (as_method, false)] {
            let checked = self
                .folder
                .engine
                .run(&name, &source.into(), Task::Parse, None)
                .await;
            let Err(mut error) = checked else { continue };
            if error.kind != ScriptErrorKind::Syntax {
                return Err(error.into_tool_error());
            }
            let last = u32::try_from(code.split('\n').count()).unwrap_or(u32::MAX);
            let place = error.place.take();
            // The wrapping is one line before the code.
            let line = place
                .as_ref()
                .map_or(1, |p| p.line.saturating_sub(1))
                .clamp(1, last);
            let column = place.as_ref().map_or(1, |p| p.column);
            let why = if is_first {
                error.message
            } else {
                "it closes the function that it is the body of; give the body alone".to_owned()
            };
            return Err(ToolError::new(format!(
                "{key} does not parse: {why} (line {line}, column {column} of {key}); nothing was written"
            )));
        }
        Ok(())
    }
}

#[async_trait]
impl Tool for WriteTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &DEFINITION
    }

    /// Takes an input schema, or a flag, that came as a text.
    async fn prepare_arguments(&self, mut args: JsonObject) -> Result<JsonObject, ToolError> {
        // What a model means by an optional code that is empty is that there is none.
        for key in ["validateCode", "prepareCode"] {
            let empty = match args.get(key) {
                Some(Value::String(code)) => code.trim().is_empty(),
                Some(Value::Null) => true,
                _ => false,
            };
            if empty {
                args.shift_remove(key);
            }
        }
        Ok(args)
    }

    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let written = context
            .cancel
            .run_until_cancelled(self.write(args.into_object(), context.caller()))
            .await;
        written.unwrap_or_else(|| {
            Err(
                ScriptError::new(ScriptErrorKind::Cancelled, "writeTool was cancelled")
                    .into_tool_error(),
            )
        })
    }
}

fn draft(mut args: JsonObject) -> Result<Draft, ToolError> {
    let mut text = |key: &str| match args.remove(key) {
        Some(Value::String(text)) => Ok(Some(text)),
        None | Some(Value::Null) => Ok(None),
        Some(_) => Err(ToolError::new(format!("{key} must be a text"))),
    };
    let missing = |key: &str| ToolError::new(format!("{key} is missing"));
    let draft = Draft {
        name: text("name")?.ok_or_else(|| missing("name"))?,
        label: text("label")?.unwrap_or_default(),
        description: text("description")?.unwrap_or_default(),
        execute: text("executeCode")?.ok_or_else(|| missing("executeCode"))?,
        validate: text("validateCode")?.filter(|code| !code.trim().is_empty()),
        prepare: text("prepareCode")?.filter(|code| !code.trim().is_empty()),
        input_schema: Value::Null,
        parallel: None,
    };
    Ok(Draft {
        input_schema: match args.remove("inputSchema") {
            None | Some(Value::Null) => return Err(missing("inputSchema")),
            Some(schema) => schema,
        },
        parallel: match args.remove("parallel") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(parallel)) => Some(parallel),
            Some(_) => return Err(ToolError::new("parallel must be true or false")),
        },
        ..draft
    })
}

fn put_error(error: PutError, name: &str) -> ToolError {
    match error {
        PutError::Exists(there) => ToolError::new(format!(
            "there is a tool file {there} already; choose another name than {name:?}, or set overwrite to true to replace a tool of exactly that name"
        )),
        PutError::NoFile(there) => ToolError::new(format!(
            "{there} is there already and is no file; choose another name than {name:?}"
        )),
        PutError::Taken => ToolError::new(format!(
            "there is a tool named {name:?} already, which cannot be replaced; choose another name"
        )),
        PutError::Link(path) => ToolError::new(format!(
            "{} is a symbolic link, which is not written through; choose another name than {name:?}",
            path.file_name().unwrap_or_default().to_string_lossy()
        )),
        PutError::Busy => ToolError::new(
            "another program has been writing tools into the folder for seconds, and nothing was written; try again",
        ),
        PutError::Io(error) => ToolError::new(format!(
            "the tool could not be written, and nothing was: {error}"
        ))
        .with_source(error),
    }
}

#[cfg(test)]
mod tests;
