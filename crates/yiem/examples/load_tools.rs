//! Tools from the JavaScript files of a folder, called through an agent.
//!
//! `cargo run -p yiem --features script --example load_tools [FOLDER]`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use std::path::PathBuf;

use yiem::prelude::*;
use yiem::script::{ScriptEngine, ScriptTools, load_tools};
use yiem::{AssistantContent, JsonObject, ModelError, SystemEnv, Timestamp, ToolCall};

#[tokio::main]
async fn main() -> Result<()> {
    let folder = std::env::args().nth(1).map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/tools")),
        PathBuf::from,
    );
    let engine = ScriptEngine::new(SystemEnv::shared());

    // What is in the folder: tools, and files that are none.
    let loaded = load_tools(&folder, &engine).await?;
    for tool in &loaded.tools {
        let definition = tool.definition();
        println!(
            "{}: {} — {}",
            definition.name, definition.label, definition.description
        );
    }
    for problem in &loaded.problems {
        println!("not loaded: {problem}");
    }

    // The folder as a source of an agent's tools. This model calls the first tool with the
    // arguments {"dice": 3, "text": "…"} that it needs, and says what came of it.
    let model = model_fn("caller", |request: ChatRequest| async move {
        let last = request.messages.last();
        let block = match last.as_ref().and_then(|message| message.as_tool_result()) {
            Some(result) => {
                AssistantContent::text(format!("{} says: {}", result.tool_name, result.text()))
            }
            None => match request.tools.first() {
                Some(tool) => {
                    let mut args = JsonObject::new();
                    args.insert("dice".to_owned(), 3.into());
                    AssistantContent::ToolCall(ToolCall::new("call_1", tool.name.as_str(), args))
                }
                None => AssistantContent::text("There are no tools."),
            },
        };
        Ok::<_, ModelError>(AssistantMessage::new(vec![block], Timestamp::default()))
    });
    let agent = Agent::builder(model)
        .source(ScriptTools::new(folder, engine))
        .build()?;
    println!("{}", agent.prompt("Use a tool").await?.text());
    Ok(())
}
