//! Hooks: a refusal, other arguments, a changed result, a shorter context.
//!
//! `cargo run -p yiem --example hooks`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

mod offline;

use serde_json::json;
use yiem::prelude::*;
use yiem::{AfterToolCall, BeforeToolCall, History, TransformContext};

/// Removes a file.
#[tool]
async fn remove(path: String) -> Result<String> {
    Ok(format!("removed {path}"))
}

/// Reads a file.
#[tool]
async fn read(path: String) -> Result<String> {
    Ok(format!("the text of {path}, with a password in it"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let model = offline::calling(vec![
        ("remove", json!({ "path": "/etc/hosts" })),
        ("read", json!({ "path": "notes.txt" })),
    ]);
    let agent = Agent::builder(model)
        .tool(remove)
        .tool(read)
        .before_tool_call(|call| async move {
            if call.tool.name == "remove" {
                return Ok(BeforeToolCall::refuse("Nothing is removed here."));
            }
            // Other arguments are validated again.
            let mut args = (*call.args).clone();
            let path = args["path"].as_str().unwrap_or_default().to_owned();
            args.insert("path".to_owned(), json!(format!("/home/me/{path}")));
            Ok(BeforeToolCall::RunWith(args))
        })
        .after_tool_call(|result| async move {
            let text = result.output.plain_text().replace("password", "********");
            Ok(AfterToolCall::keep().text(text))
        })
        .transform_context(|context| async move {
            // The last twenty messages are enough for this model; the history stays whole.
            let from = context.messages.len().saturating_sub(20);
            let last: History = context.messages.range(from).cloned().collect();
            Ok(TransformContext::Messages(last))
        })
        .build()?;
    println!("{}", agent.prompt("Clean up.").await?.ok()?);
    Ok(())
}
