//! The contender: an agent on the public facade alone, with default validation, one listener and
//! one hook.
//!
//!   peer-yiem BASE_URL SCENARIO

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use yiem::prelude::*;
use yiem::{BeforeToolCall, JsonObject, MessageDelta};

fn schema(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn number(args: &JsonObject, key: &str) -> u64 {
    args[key].as_u64().unwrap_or_default()
}

/// The tool of the scenario's family.
fn tool(family: &str) -> Option<FunctionTool> {
    let integer = || json!({"type": "integer"});
    Some(match family {
        "loop" | "sloop" => FunctionTool::builder("add").description("Add two integers.").json(
            schema(json!({"a": integer(), "b": integer()}), &["a", "b"]),
            |args, _| async move { Ok::<_, ToolError>((number(&args, "a") + number(&args, "b")).to_string()) },
        ),
        "fat" => FunctionTool::builder("blob").description("Make a text.").json(
            schema(json!({"seed": integer()}), &["seed"]),
            |_, _| async move { Ok::<_, ToolError>("x".repeat(4096)) },
        ),
        "par" => FunctionTool::builder("nap").description("Sleep.").json(
            schema(json!({"ms": integer(), "k": integer()}), &["ms", "k"]),
            |args, _| async move {
                tokio::time::sleep(Duration::from_millis(number(&args, "ms"))).await;
                Ok::<_, ToolError>(format!("nap {}", args["k"]))
            },
        ),
        "args" => FunctionTool::builder("write").description("Write a file.").json(
            schema(json!({"path": {"type": "string"}, "content": {"type": "string"}}), &["path", "content"]),
            |args, _| async move {
                Ok::<_, ToolError>(args["content"].as_str().unwrap_or_default().len().to_string())
            },
        ),
        _ => return None,
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    // On a worker, as the floor.
    tokio::spawn(go()).await?
}

async fn go() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [base, scenario] = args.as_slice() else {
        return Err(Error::msg("usage: peer-yiem BASE_URL SCENARIO"));
    };
    let family = scenario.split('-').next().unwrap_or_default().to_owned();
    let stream = ["sloop", "stream", "drip", "args"].contains(&family.as_str());
    let model = OpenAiModel::builder()
        .base_url(base.as_str())
        .model("mock")
        .stream(stream)
        .build()?;
    let deltas = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&deltas);
    let mut builder = Agent::builder(model)
        .max_turns(0)
        .listener(move |event| {
            if let EventKind::MessageUpdate { delta } = &event.kind
                && matches!(delta, MessageDelta::Text { .. } | MessageDelta::ToolCallArguments { .. })
            {
                count.fetch_add(1, Ordering::Relaxed);
            }
        })
        .before_tool_call(|_| async { Ok(BeforeToolCall::Run) });
    if let Some(tool) = tool(&family) {
        builder = builder.tool(tool);
    }
    let agent = builder.build()?;
    let start = Instant::now();
    let outcome = agent.prompt("go").await?;
    let wall = start.elapsed().as_micros();
    let outcome = outcome.ok()?;
    println!(
        "{{\"turns\":{},\"wall_us\":{wall},\"deltas\":{},\"final_len\":{}}}",
        outcome.turns,
        deltas.load(Ordering::Relaxed),
        outcome.text().len()
    );
    Ok(())
}
