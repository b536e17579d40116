//! Starts the MCP servers of a configuration, given as JSON in the first argument, and waits to be killed.

#![expect(
    clippy::print_stderr,
    reason = "a program of the tests says why it ends"
)]

use std::process::ExitCode;
use yiem_core::SystemEnv;
use yiem_mcp::{McpClient, McpConfig};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let text = std::env::args().nth(1).unwrap_or_default();
    let Ok(config) = McpConfig::from_json(&text) else {
        eprintln!("the first argument is no configuration of MCP servers");
        return ExitCode::from(2);
    };
    let mut clients = Vec::new();
    for server in config.servers {
        let Ok(client) = McpClient::new(server, SystemEnv::shared()) else {
            return ExitCode::from(2);
        };
        clients.push(client);
    }
    let connecting = clients.iter().map(McpClient::connect);
    for connecting in connecting {
        // Servers that never answer are held until they are given up.
        let _ = connecting.await;
    }
    std::future::pending().await
}
