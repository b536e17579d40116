//! Structured output: the answer is a value of a type, checked, and mended if need be.
//!
//! `cargo run -p yiem --example structured_output`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use yiem::prelude::*;
use yiem::{AssistantContent, ModelError, Timestamp, ToolCall};

/// A short journey.
#[derive(Debug, Deserialize, JsonSchema)]
struct Trip {
    /// Where to.
    city: String,
    /// How long.
    days: u32,
}

/// Gets it wrong at first.
async fn reply(request: ChatRequest) -> Result<AssistantMessage, ModelError> {
    let told = request
        .messages
        .last()
        .and_then(|m| m.as_tool_result().map(|r| r.text()));
    let args = match &told {
        None => json!({ "city": "Kyoto", "days": "two" }),
        Some(_) => json!({ "city": "Kyoto", "days": 2 }),
    };
    let call = ToolCall::new("", "final_answer", args);
    Ok(AssistantMessage::new(
        vec![AssistantContent::ToolCall(call)],
        Timestamp::default(),
    ))
}

#[tokio::main]
async fn main() -> Result<()> {
    let agent = Agent::builder(model_fn("offline", reply)).build()?;
    let trip = agent.prompt("Plan a short trip.").output::<Trip>().await?;
    println!(
        "{} days in {}, after {} turns",
        trip.days, trip.city, trip.outcome.turns
    );
    Ok(())
}
