//! An agent that makes its own tool: the model finds that there is none for wines, writes one
//! with `writeTool`, and calls it on the next turn of the same run.
//!
//! `cargo run -p yiem --features script --example write_tool`
//!
//! The model here is a stand-in that does what a real one does; with `OpenAiModel` in its place
//! nothing else changes.

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use serde_json::json;
use yiem::prelude::*;
use yiem::script::{ScriptEngine, ScriptTools};
use yiem::{AssistantContent, JsonObject, ModelError, SystemEnv, Timestamp, ToolCall};

#[tokio::main]
async fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("yiem-example-tools-{}", std::process::id()));
    let tools = ScriptTools::new(&folder, ScriptEngine::new(SystemEnv::shared())).allow_writing();

    let agent = Agent::builder(model_fn("stand-in", stand_in))
        .source(tools)
        .listener(|event| match &event.kind {
            EventKind::ToolExecutionStart { tool_name, .. } => println!("  {tool_name} …"),
            EventKind::ToolExecutionUpdate {
                tool_name,
                partial_result,
                ..
            } => println!("  {tool_name}: {partial_result}"),
            _ => {}
        })
        .build()?;
    let outcome = agent
        .prompt("I need to search for wines. Do you have a tool for that?")
        .await?;
    println!("{}", outcome.text());

    let file = folder.join("searchWine.js");
    println!("\n{}:\n{}", file.display(), std::fs::read_to_string(&file)?);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// What a model would answer.
async fn stand_in(request: ChatRequest) -> Result<AssistantMessage, ModelError> {
    let last = request.messages.last();
    let result = last.as_ref().and_then(|message| message.as_tool_result());
    let has_tool = request.tools.iter().any(|tool| tool.name == "searchWine");
    let block = match result {
        Some(result) if result.tool_name == "searchWine" => {
            AssistantContent::text(format!("The search says: {}", result.text()))
        }
        _ if has_tool => call(
            "searchWine",
            json!({ "query": "cabernet", "maxResults": 5 }),
        ),
        _ => call(
            "writeTool",
            json!({
                "name": "searchWine",
                "label": "Wine Search",
                "description": "Search a wine database by name, region, or variety",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "query": { "type": "string", "description": "Search query" },
                        "maxResults": { "type": "integer", "default": 10 }
                    },
                    "required": ["query"]
                },
                "executeCode": "host.progress({ status: `Looking for ${args.query}` });\nreturn `Found ${args.maxResults} ${args.query} wines...`;",
                "parallel": false
            }),
        ),
    };
    Ok(AssistantMessage::new(vec![block], Timestamp::default()))
}

fn call(name: &str, args: serde_json::Value) -> AssistantContent {
    let args: JsonObject = args.as_object().cloned().unwrap_or_default();
    AssistantContent::ToolCall(ToolCall::new(format!("call_{name}"), name, args))
}
