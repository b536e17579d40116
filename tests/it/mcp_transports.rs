//! Every transport of our own runs the suite of the test kit; so do sources made of servers.

use super::mcp_faults::process;
use serde_json::json;
use std::sync::Arc;
use yiem::mcp::{
    ClosureTransport, HttpConfig, HttpTransport, McpServer, McpToolSource, MemoryTransport,
    StdioConfig, StdioTransport, ToolServer,
};
use yiem::{
    SystemEnv, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ValidArgs, async_trait,
};
use yiem_test::conformance::{tool_source, transport};
use yiem_test::server::{Act, FakeHttpServer, FakeMcpServer, FakeSseServer};

fn script() -> FakeMcpServer {
    FakeMcpServer::legacy()
        .tool("echo")
        .on("tools/call", [Act::Echo])
}

struct Echo(Arc<ToolDefinition>);

#[async_trait]
impl Tool for Echo {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }
    async fn call(&self, args: ValidArgs, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(args["text"].as_str().unwrap_or_default()))
    }
}

fn tool_server() -> ToolServer {
    let definition = ToolDefinition {
        name: "echo".into(),
        label: "Echo".into(),
        input_schema: json!({"type": "object", "properties": {"text": {"type": "string"}}}),
        ..ToolDefinition::default()
    };
    ToolServer::new("memory", SystemEnv::shared()).tool(Echo(Arc::new(definition)))
}

#[tokio::test]
async fn in_process() {
    transport::run(&MemoryTransport::new(Arc::new(tool_server()))).await;
}

#[tokio::test]
async fn a_closure() {
    let closure = ClosureTransport::new(|method, params| async move {
        match method.as_str() {
            "tools/call" => {
                json!({"result": {"content": [{"type": "text", "text": params["arguments"]["text"]}]}})
            }
            _ => json!({"error": {"code": -32601, "message": "Method not found"}}),
        }
    });
    transport::run(&closure).await;
}

#[tokio::test]
async fn stdio() {
    let config = StdioConfig::new(env!("CARGO_BIN_EXE_fake-mcp-server"), [script().to_json()]);
    transport::run(&StdioTransport::new(config, SystemEnv::shared())).await;
}

#[tokio::test]
async fn http() {
    let server = FakeHttpServer::start(script()).await;
    transport::run(
        &HttpTransport::new(HttpConfig::new(server.url()), SystemEnv::shared()).unwrap(),
    )
    .await;
}

#[tokio::test]
async fn the_older_http_with_its_stream_of_events() {
    let server = FakeSseServer::start(script()).await;
    let config = HttpConfig::new(server.url()).old_sse();
    transport::run(&HttpTransport::new(config, SystemEnv::shared()).unwrap()).await;
}

#[tokio::test]
async fn servers_as_sources() {
    let http = FakeHttpServer::start(FakeMcpServer::modern().tool("echo")).await;
    let old = FakeSseServer::start(script()).await;
    for server in [
        // By way of a refusal of the newer transport.
        McpServer::http(old.url()),
        McpServer::http(old.url()).old_sse(),
        McpServer::in_process(tool_server()),
        process(&script()),
        McpServer::http(http.url()),
    ] {
        tool_source::run(&McpToolSource::new(server, SystemEnv::shared()).unwrap()).await;
    }
}
