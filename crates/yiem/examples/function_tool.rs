//! `FunctionTool`: closures as tools, typed and over a JSON schema of one's own.
//!
//! `cargo run -p yiem --example function_tool`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

mod offline;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use yiem::prelude::*;

/// Adds up numbers.
#[derive(Deserialize, JsonSchema)]
struct Sum {
    /// The numbers.
    numbers: Vec<f64>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let sum = FunctionTool::builder("sum")
        .timeout(Duration::from_secs(1))
        .typed(|args: Sum, _context| async move { args.numbers.iter().sum::<f64>() });
    let echo = FunctionTool::builder("echo")
        .description("Says a text again.")
        .prepare_arguments(|mut args| {
            // What an older prompt called it.
            if let Some(message) = args.remove("message") {
                args.insert("text".to_owned(), message);
            }
            Ok(args)
        })
        .json(
            json!({
                "type": "object",
                "properties": { "text": { "type": "string", "minLength": 1 } },
                "required": ["text"]
            }),
            |args, context| async move { format!("{} ({})", args["text"], context.call_id) },
        );
    let model = offline::calling(vec![
        ("sum", json!({ "numbers": [1, "2", 3.5] })),
        ("echo", json!({ "message": "hello" })),
        ("echo", json!({ "text": "" })),
    ]);
    let agent = Agent::builder(model).tool(sum).tool(echo).build()?;
    println!("{}", agent.prompt("Do the sums").await?.ok()?);
    Ok(())
}
