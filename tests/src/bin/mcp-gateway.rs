//! A gateway as a process of its own, for tests that kill, stop and outnumber gateways.
//!
//! usage: `mcp-gateway [--nats URL QUEUE] [--http ADDRESS] [--stdio] [-- COMMAND ARGS…]`
//!
//! Offers the server that COMMAND starts, or without one its own tools: `echo`, `wait` (sleeps `ms` in
//! `steps` steps and tells of each), `whoami` (its process id), `big` (a text of `bytes` bytes). Says
//! `ready` and its HTTP address on standard error, and at the end how many calls it answered and cut.

#![expect(clippy::print_stderr, reason = "the tests read what it says")]

use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use yiem_core::{
    SystemEnv, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ValidArgs, async_trait,
};
use yiem_mcp::{Gateway, GatewayHttpConfig, McpServer, NatsConfig};

#[tokio::main]
async fn main() -> ExitCode {
    match serve(std::env::args().skip(1)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mcp-gateway: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(mut args: impl Iterator<Item = String>) -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Gateway::builder(SystemEnv::shared())
        .tools(tools())
        .drain_time(Duration::from_secs(20));
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--nats" => {
                let url = value()?;
                builder = builder.nats(NatsConfig::from_url(&url)?, Some(value()?));
            }
            "--http" => builder = builder.http(GatewayHttpConfig::new(value()?.parse()?)),
            "--stdio" => builder = builder.stdio(),
            "--" => {
                let command = value()?;
                builder = builder.server(McpServer::stdio(command, args.by_ref()));
            }
            other => return Err(format!("what is {other}?").into()),
        }
    }
    let gateway = builder.start().await?;
    eprintln!(
        "ready {}",
        gateway
            .http_addresses()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    );
    let drained = gateway.run_until_signal().await?;
    eprintln!(
        "drained: {} answered, {} cut",
        drained.finished, drained.cut
    );
    Ok(())
}

fn tools() -> Vec<Arc<dyn Tool>> {
    [
        ("echo", json!({"text": {"type": "string"}})),
        (
            "wait",
            json!({"ms": {"type": "integer"}, "steps": {"type": "integer"}}),
        ),
        ("whoami", json!({})),
        ("big", json!({"bytes": {"type": "integer"}})),
    ]
    .into_iter()
    .map(|(name, properties)| {
        let tool: Arc<dyn Tool> = Arc::new(TestTool(Arc::new(ToolDefinition {
            name: name.into(),
            label: name.into(),
            description: format!("The test tool {name}."),
            input_schema: json!({"type": "object", "properties": properties}),
            ..ToolDefinition::default()
        })));
        tool
    })
    .collect()
}

/// Says how a call of `wait` ended, also when it was given up.
struct Waiting {
    done: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        eprintln!("{}", if self.done { "waited" } else { "gave up" });
    }
}

struct TestTool(Arc<ToolDefinition>);

#[async_trait]
impl Tool for TestTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }

    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let number = |key: &str| args.get(key).and_then(Value::as_u64).unwrap_or(0);
        Ok(ToolOutput::text(match self.0.name.as_str() {
            "echo" => args
                .get("text")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            "whoami" => std::process::id().to_string(),
            "big" => "x".repeat(usize::try_from(number("bytes"))?),
            _ => {
                let mut waiting = Waiting { done: false };
                let steps = number("steps").max(1);
                for step in 1..=steps {
                    context
                        .env
                        .sleep(Duration::from_millis(number("ms") / steps))
                        .await;
                    context.progress(json!({"progress": step, "total": steps, "message": format!("step {step}")})).await;
                }
                waiting.done = true;
                std::process::id().to_string()
            }
        }))
    }
}
