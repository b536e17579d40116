//! A server over standard input and output on rmcp, the protocol's own crate for Rust: a peer that shares no
//! code with ours.
//!
//! `add` (structured output), `count` (tells of progress), `wait` (until it is cancelled), `cancelled` (how
//! many waits were), `fail` (says that it failed), `refuse` (a JSON-RPC error).

#![expect(
    clippy::print_stderr,
    reason = "a program of the tests says why it ends"
)]

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServiceExt as _};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
struct Server {
    cancelled: AtomicU64,
}

fn object(value: Value) -> Arc<serde_json::Map<String, Value>> {
    Arc::new(value.as_object().cloned().unwrap_or_default())
}

fn tools() -> Vec<Tool> {
    let numbers = json!({"type": "object", "required": ["a", "b"],
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
    let sum =
        json!({"type": "object", "required": ["sum"], "properties": {"sum": {"type": "integer"}}});
    let steps = json!({"type": "object", "properties": {"steps": {"type": "integer"}}});
    let nothing = || object(json!({"type": "object", "properties": {}}));
    let mut add = Tool::new("add", "a + b", object(numbers));
    add.title = Some("Add".to_owned());
    add.output_schema = Some(object(sum));
    let mut tools = vec![add, Tool::new("count", "Counts.", object(steps))];
    for name in ["wait", "cancelled", "fail", "refuse"] {
        tools.push(Tool::new(name, name, nothing()));
    }
    tools
}

fn text(words: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(words)])
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // Two pages.
        let mut tools = tools();
        let rest = tools.split_off(4);
        if request.and_then(|request| request.cursor).is_some() {
            return Ok(ListToolsResult::with_all_items(rest));
        }
        let mut page = ListToolsResult::with_all_items(tools);
        page.next_cursor = Some("rest".to_owned());
        Ok(page)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let number = |key: &str| arguments.get(key).and_then(Value::as_i64);
        let result = match &*request.name {
            "add" => match (number("a"), number("b")) {
                (Some(a), Some(b)) => CallToolResult::structured(json!({"sum": a + b})),
                _ => return Err(ErrorData::invalid_params("a and b must be integers", None)),
            },
            "count" => {
                let steps = number("steps").unwrap_or(3);
                if let Some(token) = context.meta.get_progress_token() {
                    for step in 1..=steps {
                        #[expect(clippy::cast_precision_loss, reason = "a handful of steps")]
                        let note = ProgressNotificationParam::new(token.clone(), step as f64)
                            .with_message(format!("step {step}"));
                        // A caller that is gone hears nothing.
                        let _ = context.peer.notify_progress(note).await;
                    }
                }
                text("counted")
            }
            "wait" => {
                context.ct.cancelled().await;
                self.cancelled.fetch_add(1, Ordering::SeqCst);
                text("cancelled")
            }
            "cancelled" => text(self.cancelled.load(Ordering::SeqCst).to_string()),
            "fail" => CallToolResult::error(vec![ContentBlock::text("it did not work")]),
            "refuse" => {
                let data = json!({"field": "x"});
                return Err(ErrorData::invalid_params("never", Some(data)));
            }
            other => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        };
        Ok(result.into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let serving = Server::default()
        .serve((tokio::io::stdin(), tokio::io::stdout()))
        .await;
    match serving {
        Ok(running) => {
            // It ends with its input.
            let _ = running.waiting().await;
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("rmcp-server: {error}");
            ExitCode::FAILURE
        }
    }
}
