use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use yiem_core::{
    CancelToken, SystemEnv, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ToolSource,
    ValidArgs,
};
use yiem_mcp::{
    CallOptions, Dialect, DialectChoice, McpClient, McpServer, McpToolSource, MemoryTransport,
    ToolServer,
};

struct Weather(Arc<ToolDefinition>);

impl Weather {
    fn new() -> Self {
        Self(Arc::new(ToolDefinition {
            name: "getWeather".into(),
            label: "Weather Lookup".into(),
            description: "Weather of a city.".into(),
            input_schema: json!({"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}),
            ..ToolDefinition::default()
        }))
    }
}

#[async_trait]
impl Tool for Weather {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }

    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        context.progress(json!("looking")).await;
        match args["city"].as_str() {
            Some("Atlantis") => Err(ToolError::new("there is no Atlantis")),
            Some(city) => Ok(ToolOutput::text(format!("Weather in {city}: Sunny, 22°C"))),
            None => panic!("no city"),
        }
    }
}

fn weather_server() -> ToolServer {
    ToolServer::new("demo", SystemEnv::shared()).tool(Weather::new())
}

#[tokio::test]
async fn an_in_process_server_is_a_tool_source() {
    let source =
        McpToolSource::new(McpServer::in_process(weather_server()), SystemEnv::shared()).unwrap();
    let loaded = source.load(&CancelToken::new()).await.unwrap();
    let tool = &loaded.tools[0];
    assert_eq!(source.name(), "demo");
    assert_eq!(tool.definition().label, "Weather Lookup");
    let mut args = serde_json::Map::new();
    args.insert("city".into(), "Tokyo".into());
    let context = ToolContext::new("call_1", "getWeather", SystemEnv::shared());
    let output = tool.call(ValidArgs::accepted(args), context).await.unwrap();
    assert_eq!(output.plain_text(), "Weather in Tokyo: Sunny, 22°C");
    assert!(!output.is_error);
}

#[tokio::test]
async fn all_dialects_reach_the_same_tools() {
    for (choice, bare) in [
        (DialectChoice::Bare, true),
        (DialectChoice::Legacy, false),
        (DialectChoice::Detect, false),
    ] {
        let transport = MemoryTransport::new(Arc::new(weather_server())).with_dialect(choice);
        let client = McpClient::new(McpServer::transport(transport), SystemEnv::shared()).unwrap();
        let outcome = client
            .call(
                "getWeather",
                json!({"city": "Oslo"}),
                CallOptions::default(),
            )
            .await
            .unwrap();
        assert_eq!(outcome.text(), "Weather in Oslo: Sunny, 22°C", "{choice:?}");
        assert_eq!(client.dialect() == Some(Dialect::Bare), bare);
        assert_eq!(
            client.dialect().unwrap().is_modern(),
            choice == DialectChoice::Detect
        );
    }
}

#[tokio::test]
async fn a_failing_tool_is_a_result_and_an_unknown_one_a_refusal() {
    let client =
        McpClient::new(McpServer::in_process(weather_server()), SystemEnv::shared()).unwrap();
    let failed = client
        .call(
            "getWeather",
            json!({"city": "Atlantis"}),
            CallOptions::default(),
        )
        .await
        .unwrap();
    assert!(failed.is_error);
    assert_eq!(failed.content[0].as_text(), Some("there is no Atlantis"));
    let missing = client
        .call("getWeather", json!({}), CallOptions::default())
        .await
        .unwrap();
    assert_eq!(
        missing.content[0].as_text(),
        Some("Missing required arguments: city")
    );
    let unknown = client
        .call("nope", Value::Null, CallOptions::default())
        .await
        .unwrap_err();
    assert_eq!(unknown.refusal().unwrap().code, -32602);
    assert_eq!(
        unknown.to_string(),
        "MCP server `demo`, tools/call `nope`: the server refused: Unknown tool: nope (code -32602)"
    );
    let panicked = client
        .call("getWeather", json!({"city": 7}), CallOptions::default())
        .await
        .unwrap_err();
    assert_eq!(panicked.refusal().unwrap().code, -32603);
}

#[tokio::test]
async fn a_closure_that_panics_before_there_is_a_future_is_a_failed_call() {
    let server = McpServer::closure(|method, _| {
        assert_eq!(method, "tools/list", "no other method");
        async { json!({"result": {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}}) }
    });
    let client = McpClient::new(server.name("seed"), SystemEnv::shared()).unwrap();
    for _ in 0..2 {
        let error = client.call("a", json!({}), CallOptions::default()).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("panicked"), "{error}");
    }
    assert_eq!(client.tools().await.unwrap().tools.len(), 1);
}

#[tokio::test]
async fn a_closure_is_a_server_in_any_of_its_answers_shapes() {
    let server = McpServer::closure(|method, params| async move {
        match (method.as_str(), params["name"].as_str()) {
            ("tools/list", _) => json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [
                {"name": "a", "label": "A label", "inputSchema": {"type": "object"}}], "nextCursor": ""}}),
            (_, Some("bare")) => json!({"content": [{"type": "text", "text": "bare"}]}),
            (_, Some("refused")) => {
                json!({"id": 2, "error": {"code": -32601, "message": "Method not found"}})
            }
            (_, Some("odd")) => json!(42),
            (_, Some("panics")) => panic!("on purpose"),
            _ => {
                json!({"id": 2, "result": {"content": [{"type": "text", "text": "whole"}], "isError": true}})
            }
        }
    });
    let client = McpClient::new(server.name("seed"), SystemEnv::shared()).unwrap();
    let listing = client.tools().await.unwrap();
    assert_eq!(listing.tools[0].label, "A label");
    let call = |name: &'static str| client.call(name, json!({}), CallOptions::default());
    assert_eq!(
        call("bare").await.unwrap().content[0].as_text(),
        Some("bare")
    );
    assert!(call("whole").await.unwrap().is_error);
    assert_eq!(
        call("refused").await.unwrap_err().refusal().unwrap().code,
        -32601
    );
    assert!(
        call("odd")
            .await
            .unwrap_err()
            .to_string()
            .contains("no JSON-RPC answer")
    );
    assert!(
        call("panics")
            .await
            .unwrap_err()
            .to_string()
            .contains("panicked")
    );
    assert_eq!(
        call("bare").await.unwrap().content[0].as_text(),
        Some("bare")
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_ends_in_a_timeout_that_names_it() {
    let server = McpServer::closure(|_, _| std::future::pending())
        .name("mute")
        .call_timeout(Duration::from_secs(3));
    let client = McpClient::new(server, SystemEnv::shared()).unwrap();
    let error = client
        .call("x", Value::Null, CallOptions::default())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "MCP server `mute`, tools/call `x`: no answer within 3 s"
    );
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once() {
    let client = McpClient::new(
        McpServer::closure(|_, _| std::future::pending()),
        SystemEnv::shared(),
    )
    .unwrap();
    let cancel = CancelToken::new();
    cancel.cancel();
    let error = client
        .call("x", Value::Null, CallOptions::default().cancel(cancel))
        .await
        .unwrap_err();
    assert_eq!(*error.kind(), yiem_mcp::McpErrorKind::Cancelled);
}
