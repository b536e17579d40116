//! The tools of an MCP server on NATS.
//!
//! `cargo run -p yiem --features nats --example mcp_nats nats://HOST:PORT SUBJECT`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use yiem::SystemEnv;
use yiem::mcp::{McpClient, McpServer};

#[tokio::main]
async fn main() -> yiem::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, subject] = args.as_slice() else {
        println!("give the address of a NATS server and the subject of an MCP server:");
        println!(
            "  cargo run -p yiem --features nats --example mcp_nats nats://127.0.0.1:4222 mcp.everything"
        );
        return Ok(());
    };
    let client = McpClient::new(
        McpServer::from_spec(&format!("{url}/{subject}"))?,
        SystemEnv::shared(),
    )?;
    for tool in &client.tools().await?.tools {
        println!("{}: {}", tool.name, tool.description);
    }
    client.close().await;
    Ok(())
}
