//! An agent as a tool of another: its events come as updates, its tokens are counted apart.
//!
//! `cargo run -p yiem --example sub_agent`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

mod offline;

use serde_json::json;
use yiem::prelude::*;

/// Looks something up.
#[tool]
async fn look_up(word: String) -> Result<String> {
    Ok(format!("{word}: a fruit"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let librarian = Agent::builder(offline::calling(vec![(
        "look_up",
        json!({ "word": "quince" }),
    )]))
    .name("librarian")
    .tool(look_up)
    .build()?;
    let chief = Agent::builder(offline::calling(vec![(
        "ask",
        json!({ "prompt": "What is a quince?" }),
    )]))
    .tool(librarian.as_tool("ask", "Asks the librarian."))
    .listener(|event| {
        if let EventKind::ToolExecutionUpdate { partial_result, .. } = &event.kind {
            let what = partial_result["type"].as_str().unwrap_or_default();
            println!("  librarian: {what}");
        }
    })
    .build()?;
    println!(
        "{}",
        chief.prompt("Find out what a quince is.").await?.ok()?
    );
    Ok(())
}
