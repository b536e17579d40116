//! Script tools in an agent: whole runs through the public API.

mod nested;
mod self_tooling;
mod source;

use std::path::Path;

use yiem_agent::Outcome;
use yiem_core::{ChatRequest, Message, SystemEnv, ToolResultMessage};
use yiem_script::{ScriptEngine, ScriptTools};

/// A folder's tools, with `writeTool`.
fn tools(dir: &Path) -> ScriptTools {
    ScriptTools::new(dir, ScriptEngine::new(SystemEnv::shared())).allow_writing()
}

/// The names of the tools that a request offers.
fn offered(request: &ChatRequest) -> Vec<&str> {
    request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect()
}

/// The tool results of a run, in order.
fn results(outcome: &Outcome) -> Vec<&ToolResultMessage> {
    outcome
        .messages()
        .filter_map(|message| match &**message {
            Message::ToolResult(result) => Some(result),
            _ => None,
        })
        .collect()
}
