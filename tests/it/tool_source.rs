//! Sources of tools keep to what sources promise.

use yiem::mcp::{McpServer, McpToolSource, ToolServer};
use yiem::prelude::*;
use yiem::tools::ToolSourceExt;
use yiem::{SystemEnv, ToolSource};
use yiem_test::conformance::tool_source;

/// Says a text again.
#[tool]
async fn echo(text: String) -> Result<String> {
    Ok(text)
}

/// Adds two numbers.
#[tool]
async fn add(a: i64, b: i64) -> Result<i64> {
    Ok(a + b)
}

fn calculator() -> McpToolSource {
    let server = ToolServer::new("calculator", SystemEnv::shared())
        .tool(echo)
        .tool(add);
    McpToolSource::new(McpServer::in_process(server), SystemEnv::shared()).unwrap()
}

#[tokio::test]
async fn an_mcp_server_keeps_to_what_sources_promise() {
    tool_source::run(&calculator()).await;
}

#[tokio::test]
async fn a_wrapped_source_keeps_to_what_sources_promise() {
    let wrapped = calculator().without(["echo"]).prefixed("calc_");
    assert_eq!(wrapped.name(), "calculator");
    tool_source::run(&wrapped).await;
}
