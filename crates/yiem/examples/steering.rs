//! Steering from another task: a message that comes in while tools run.
//!
//! `cargo run -p yiem --example steering`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use std::time::Duration;

use serde_json::json;
use yiem::prelude::*;
use yiem::{AssistantContent, ModelError, Timestamp, ToolCall};

/// Looks for a train.
#[tool]
async fn find_train(to: String) -> Result<String> {
    tokio::time::sleep(Duration::from_millis(300)).await;
    Ok(format!("a train to {to} at 23:40"))
}

/// Looks for a train first, and then answers to everything that it was told.
async fn reply(request: ChatRequest) -> Result<AssistantMessage, ModelError> {
    let said: Vec<String> = request
        .messages
        .iter()
        .filter_map(|m| {
            m.as_user()
                .map(|u| u.text())
                .or_else(|| m.as_tool_result().map(|r| r.text()))
        })
        .collect();
    let block = if said.len() == 1 {
        let args = json!({ "to": "Rome" });
        AssistantContent::ToolCall(ToolCall::new("call_1", "find_train", args))
    } else {
        AssistantContent::text(format!("I was told: {}", said.join("; ")))
    };
    Ok(AssistantMessage::new(vec![block], Timestamp::default()))
}

#[tokio::main]
async fn main() -> Result<()> {
    let agent = Agent::builder(model_fn("offline", reply))
        .tool(find_train)
        .build()?;
    let other = agent.clone();
    let steering = tokio::task::spawn_blocking(move || {
        std::thread::sleep(Duration::from_millis(100));
        other.run("no night trains, please")
    });
    // The tool goes on to its end; the message is there before the next model call.
    println!("{}", agent.prompt("Find a train to Rome.").await?.ok()?);
    steering.await??;
    Ok(())
}
