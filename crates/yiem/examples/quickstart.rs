//! The smallest agent: one tool of its own, one MCP server, one question.
//!
//! `cargo run -p yiem --example quickstart` answers without a network: the server is in the same
//! process, the model a stand-in. With `OPENAI_API_KEY` or `OPENAI_BASE_URL` a real one answers.

#![expect(clippy::print_stdout, reason = "an example says what it does")]

mod offline;

use std::sync::Arc;

use serde_json::json;
use yiem::mcp::ToolServer;
use yiem::prelude::*;
use yiem::{Env, SystemEnv};

/// Current weather of a city.
#[tool]
async fn get_weather(city: String) -> Result<String> {
    Ok(format!("Weather in {city}: Sunny, 22°C"))
}

/// The time of day, in UTC.
#[tool]
async fn get_time(context: ToolContext) -> Result<String> {
    Ok(context.env.now().to_string())
}

#[tokio::main]
async fn main() -> Result<()> {
    let model: Arc<dyn ChatModel> = match OpenAiModel::from_env() {
        Ok(model) => Arc::new(model),
        // Neither variable is set.
        Err(_) => Arc::new(offline::calling(vec![
            ("get_weather", json!({ "city": "Tokyo" })),
            ("get_time", json!({})),
        ])),
    };
    let env: Arc<dyn Env> = SystemEnv::shared();
    let agent = Agent::builder(model)
        .tool(get_weather)
        .mcp(McpServer::in_process(
            ToolServer::new("clock", env).tool(get_time),
        ))
        .discovery(yiem::tools::Discovery::Eager)
        .build()?;
    agent.tools().load_all(&yiem::CancelToken::new()).await;
    println!(
        "{}",
        agent
            .prompt("What's the weather in Tokyo, and what time is it?")
            .await?
    );
    Ok(())
}
