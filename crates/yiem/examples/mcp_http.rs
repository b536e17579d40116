//! The tools of an MCP server behind an HTTP address.
//!
//! `cargo run -p yiem --features gateway --example mcp_http [URL]`; without an address, a gateway offers a tool on this machine.

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use std::sync::Arc;

use serde_json::json;
use yiem::mcp::{CallOptions, Gateway, GatewayHttpConfig, McpClient, McpServer};
use yiem::{SystemEnv, Tool, tool};

/// Adds two numbers.
#[tool]
async fn add(a: f64, b: f64) -> yiem::Result<f64> {
    Ok(a + b)
}

#[tokio::main]
async fn main() -> yiem::Result<()> {
    let given = std::env::args().nth(1);
    let local = match &given {
        Some(_) => None,
        None => Some(
            Gateway::builder(SystemEnv::shared())
                .tools([Arc::new(add) as Arc<dyn Tool>])
                .http(GatewayHttpConfig::new("127.0.0.1:0".parse()?))
                .start()
                .await?,
        ),
    };
    let url = match (given, &local) {
        (Some(url), _) => url,
        (None, Some(gateway)) => format!("http://{}/mcp", gateway.http_addresses()[0]),
        (None, None) => return Err(yiem::Error::msg("there is no server")),
    };
    let client = McpClient::new(McpServer::http(url), SystemEnv::shared())?;
    for tool in &client.tools().await?.tools {
        println!("{}: {}", tool.name, tool.description);
    }
    if local.is_some() {
        let sum = client
            .call("add", json!({"a": 40, "b": 2}), CallOptions::default())
            .await?;
        println!("40 + 2 = {}", sum.content[0].to_plain_text());
    }
    client.close().await;
    Ok(())
}
