//! A model from a closure: the request in the OpenAI format as JSON in, any reply shape out
//! (the seeds' `llmCall`).
//!
//! `cargo run -p yiem --example custom_model`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use serde_json::{Value, json};
use yiem::openai::llm_call;
use yiem::prelude::*;

/// Current weather of a city.
#[tool]
async fn get_weather(city: String) -> Result<String> {
    Ok(format!("Weather in {city}: Sunny, 22°C"))
}

/// Where a real one would ask a server.
async fn call(request: Value) -> Result<Value> {
    let messages = request["messages"].as_array().map_or(0, Vec::len);
    println!("the model is sent {messages} messages");
    let last = &request["messages"][messages.saturating_sub(1)];
    Ok(if last["role"] == "tool" {
        json!({ "content": [{ "type": "text", "text": "The weather in Tokyo is sunny, 22°C." }] })
    } else {
        json!({ "content": [{ "type": "tool_calls", "tool_calls": [
            { "name": "get_weather", "arguments": { "city": "Tokyo" } },
        ] }] })
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let model = llm_call(|request| async move { call(request).await.map_err(Error::into_boxed) });
    let agent = Agent::builder(model)
        .system("You are a helpful assistant.")
        .tool(get_weather)
        .build()?;
    println!(
        "{}",
        agent.prompt("What's the weather in Tokyo?").await?.ok()?
    );
    Ok(())
}
