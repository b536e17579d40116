//! The tools of an MCP server that is a child process.
//!
//! `cargo run -p yiem --example mcp_stdio [COMMAND ARGS…]`; without a command, a server of a few lines of
//! shell answers.

#![expect(clippy::print_stdout, reason = "an example says what it does")]

mod offline;

use serde_json::json;
use yiem::mcp::McpServer;
use yiem::prelude::*;
use yiem::tools::Discovery;

/// An MCP server in shell: one tool, which tells the name of the machine's system.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"system","description":"The name of the system.","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"'$(uname -s)'"}]}' ;;
    *'"server/discover"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"Method not found"}}'; continue ;;
    *) continue ;;
  esac
  echo '{"jsonrpc":"2.0","id":'$id',"result":'$result'}'
done
"#;

#[tokio::main]
async fn main() -> Result<()> {
    let mut command = std::env::args().skip(1);
    let server = match command.next() {
        Some(program) => McpServer::stdio(program, command),
        None => McpServer::stdio("sh", ["-c", SERVER]).name("shell"),
    };
    let agent = Agent::builder(offline::calling(vec![("system", json!({}))]))
        .mcp(server.required(true))
        .discovery(Discovery::Eager)
        .build()?;
    println!("{}", agent.prompt("What do you run on?").await?.ok()?);
    agent.stop().await;
    Ok(())
}
