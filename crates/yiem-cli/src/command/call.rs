//! `yiem call`: one call, its arguments checked as in a run.
//!
//! Knows: how a result is printed. Does not know: models.

use std::io::{self, IsTerminal, Read};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use yiem::tools::{RegisteredTool, ToolCatalog, ValidationError};
use yiem::{Content, IdKind, JsonObject, SystemEnv, ToolArguments, ToolContext, ToolOutput};

use crate::args::{CallArgs, Shared};
use crate::command::tools;
use crate::failure::Failure;
use crate::patience;
use crate::screen::{Style, on_one_line};
use crate::sources;

/// How long a call may take, unless its tool says otherwise (R-17).
const TIME: Duration = Duration::from_secs(120);

pub(crate) async fn run(args: &CallArgs, shared: &Shared) -> Result<(), Failure> {
    let result = match arguments(args.arguments.as_deref()) {
        Ok(arguments) => {
            let catalog = tools::catalog(sources::servers(shared)?, shared)?;
            patience::load_all(&catalog).await;
            sources::tell_before_a_call(&catalog);
            let result = call(&catalog, &args.name, arguments).await;
            catalog.close().await;
            result
        }
        Err(refusal) => Err(refusal),
    };
    let output = match result {
        Ok(output) => output,
        Err(Refusal { kind, failure }) => {
            if args.json {
                tools::write_out(&format!("{:#}\n", refused_as_json(kind, failure.line())))?;
            }
            return Err(failure);
        }
    };
    let text = as_text(&output);
    if args.json {
        tools::write_out(&format!("{:#}\n", as_json(&output)))?;
    }
    if output.is_error {
        return Err(Failure::new(format!(
            "{} answered with an error: {text}",
            args.name
        )));
    }
    if args.json {
        return Ok(());
    }
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    tools::write_out(&format!("{text}{end}"))
}

/// A call that was not made, or came to nothing.
struct Refusal {
    /// The word for it in JSON.
    kind: &'static str,
    failure: Failure,
}

impl Refusal {
    fn new(kind: &'static str, text: impl std::fmt::Display) -> Self {
        let failure = Failure::new(text);
        Self { kind, failure }
    }
}

/// A refusal as a program reads it: a result as of a tool that failed, with what was wrong beside.
fn refused_as_json(kind: &str, line: &str) -> Value {
    json!({
        "content": [{"type": "text", "text": line}],
        "isError": true,
        "error": {"kind": kind, "message": line},
    })
}

/// The arguments as they were given: JSON, `-` for standard input, none for `{}`.
fn arguments(given: Option<&str>) -> Result<JsonObject, Refusal> {
    let refused = |text: String| Refusal {
        kind: "invalidArguments",
        failure: Failure::usage(text),
    };
    let text = match given {
        None => return Ok(JsonObject::new()),
        Some("-") => {
            let mut text = String::new();
            io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| refused(format!("standard input could not be read: {error}")))?;
            text
        }
        Some(text) => text.to_owned(),
    };
    match ToolArguments::read(text) {
        ToolArguments::Object { value, .. } => Ok(JsonObject::clone(&value)),
        ToolArguments::Unreadable { raw, reason } => Err(refused(format!(
            "{reason}: {}; write an object, such as '{{\"city\": \"Tokyo\"}}'",
            on_one_line(&raw, 200)
        ))),
    }
}

async fn call(
    catalog: &ToolCatalog,
    name: &str,
    arguments: JsonObject,
) -> Result<ToolOutput, Refusal> {
    let tools = catalog.all();
    let Some(tool) = tools.get(name) else {
        let left_out = catalog.quarantined();
        if let Some(tool) = left_out.iter().find(|tool| tool.name == name) {
            return Err(Refusal::new(
                "unusableTool",
                format!(
                    "the tool {name} of {} cannot be called: {}",
                    tool.source, tool.reason
                ),
            ));
        }
        let hint = match tools.nearest_name(name) {
            Some(near) => format!("; did you mean {near}?"),
            None => "; `yiem tools` with the same options lists them".to_owned(),
        };
        return Err(Refusal::new(
            "unknownTool",
            format!("there is no tool {name}{hint}"),
        ));
    };
    let accepted = tool.accept(arguments).await.map_err(|error| {
        Refusal::new(
            "invalidArguments",
            format!("{name}: {}", in_one_line(&error)),
        )
    })?;
    let output = match timeout(time_of(tool), tool.tool().call(accepted, context(name))).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => error.into_output(),
        Err(_) => {
            let limit = time_of(tool).as_secs_f64();
            return Err(Refusal::new(
                "timedOut",
                format!("{name} did not answer within {limit} s, which is its time limit"),
            ));
        }
    };
    tool.check_output(&output).map_err(|error| {
        Refusal::new("invalidOutput", format!("{name}: {}", in_one_line(&error)))
    })?;
    Ok(output)
}

/// What a model reads as a list, as one line for a person.
fn in_one_line(error: &ValidationError) -> String {
    let listed: Vec<String> = match error.problems() {
        [] => return error.to_string(),
        [one] => vec![one.to_string()],
        several => (several.iter().enumerate())
            .map(|(n, problem)| format!("({}) {problem}", n + 1))
            .collect(),
    };
    let heading = error.message().lines().next().unwrap_or_default();
    format!("{} {}", heading, listed.join(" "))
}

fn time_of(tool: &RegisteredTool) -> Duration {
    tool.tool().definition().limits.time.unwrap_or(TIME)
}

fn context(name: &str) -> ToolContext {
    let env = SystemEnv::shared();
    let context = ToolContext::new(env.new_id(IdKind::Call), name, env);
    if io::stderr().is_terminal() {
        context.with_progress(std::sync::Arc::new(ToStderr))
    } else {
        context
    }
}

/// Progress as lines on standard error.
struct ToStderr;

#[yiem::async_trait]
impl yiem::ProgressSink for ToStderr {
    async fn send(&self, partial: Value) {
        self.offer(partial);
    }

    fn offer(&self, partial: Value) {
        let line = crate::screen::status_of(&partial);
        if !line.is_empty() {
            let style = Style::of(&io::stderr());
            // Progress that nobody reads is no reason to stop.
            let _ = io::Write::write_all(
                &mut io::stderr(),
                format!("{}\n", style.dim(&line)).as_bytes(),
            );
        }
    }
}

fn as_json(output: &ToolOutput) -> Value {
    let mut object = json!({"content": output.content, "isError": output.is_error});
    if let Some(structured) = &output.structured {
        object["structuredContent"] = structured.clone();
    }
    if !output.details.is_null() {
        object["details"] = output.details.clone();
    }
    if output.terminate {
        object["terminate"] = true.into();
    }
    object
}

/// The blocks as text, what is no text as a line that says what it is.
fn as_text(output: &ToolOutput) -> String {
    let blocks: Vec<String> = output.content.iter().map(Content::to_plain_text).collect();
    blocks.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_or_wrong_use() {
        assert!(arguments(None).ok().unwrap().is_empty());
        assert!(arguments(Some("{}")).ok().unwrap().is_empty());
        assert_eq!(arguments(Some(r#"{"a":1}"#)).ok().unwrap()["a"], 1);
        for bad in ["{", "[1]", "city=Tokyo", "{'a':1}"] {
            assert!(
                arguments(Some(bad))
                    .err()
                    .unwrap()
                    .failure
                    .line()
                    .contains("write an object"),
                "{bad}"
            );
        }
    }
}
