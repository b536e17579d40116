//! What the tests here share: contexts that know no clock, and a way to call a tool whole.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use yiem_core::{
    BoxFuture, Env, IdKind, JsonObject, Timestamp, Tool, ToolContext, ToolError, ToolOutput,
};
use yiem_tools::ToolRegistry;

/// An environment in which no time goes by.
#[derive(Debug)]
pub(crate) struct Still;

impl Env for Still {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
    fn new_id(&self, kind: IdKind) -> String {
        format!("{}_1", kind.prefix())
    }
    fn random(&self) -> f64 {
        0.5
    }
}

pub(crate) fn context(tool: &str) -> ToolContext {
    ToolContext::new("call_1", tool, Arc::new(Still))
}

pub(crate) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

/// Registers a tool, accepts the arguments, calls it; a refusal is an error of its text.
pub(crate) async fn run(tool: impl Tool, args: Value) -> Result<ToolOutput, String> {
    run_in(tool, args, |context| context).await
}

/// The same in a context that is made ready first.
pub(crate) async fn run_in(
    tool: impl Tool,
    args: Value,
    ready: impl FnOnce(ToolContext) -> ToolContext,
) -> Result<ToolOutput, String> {
    let mut registry = ToolRegistry::new();
    let registered = registry.register(tool).map_err(|e| e.to_string())?;
    let args = registered
        .accept(object(args))
        .await
        .map_err(|e| e.to_string())?;
    let context = ready(context(registered.name()));
    registered
        .tool()
        .call(args, context)
        .await
        .map_err(|e: ToolError| e.message().to_owned())
}

/// The text of a call.
pub(crate) async fn text(tool: impl Tool, args: Value) -> Result<String, String> {
    run(tool, args).await.map(|output| output.plain_text())
}
