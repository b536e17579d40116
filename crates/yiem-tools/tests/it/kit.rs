//! What the tests here share: contexts that know no clock, and a way to call a tool whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use yiem_core::{
    BoxFuture, CancelToken, Env, IdKind, JsonObject, LoadedTools, SourceError, Timestamp, Tool,
    ToolContext, ToolError, ToolOutput, ToolSource, async_trait,
};
use yiem_tools::{FunctionTool, ToolRegistry, ToolSnapshot};

/// An environment whose clock stands still.
#[derive(Debug)]
pub(crate) struct Still;

impl Env for Still {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        // Paused in tests: time goes by only when nothing else can happen.
        Box::pin(tokio::time::sleep(duration))
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

/// A tool that echoes its arguments, with this name, description and schema.
pub(crate) fn plain_tool(name: &str, description: &str, schema: Value) -> Arc<dyn Tool> {
    Arc::new(
        FunctionTool::builder(name)
            .description(description)
            .json(schema, |args, _| async move {
                Value::Object(args.into_object())
            }),
    )
}

/// A source whose list, failures and gate the test sets.
pub(crate) struct FakeSource {
    name: String,
    state: watch::Sender<FakeState>,
    /// How often it was asked.
    pub(crate) loads: AtomicUsize,
    required: bool,
}

#[derive(Clone, Default)]
struct FakeState {
    generation: u64,
    tools: Vec<Arc<dyn Tool>>,
    failure: Option<String>,
    held: bool,
}

impl FakeSource {
    /// A source with tools of these names.
    pub(crate) fn new(name: &str, tools: &[&str]) -> Arc<Self> {
        let source = Self {
            name: name.to_owned(),
            state: watch::Sender::new(FakeState::default()),
            loads: AtomicUsize::new(0),
            required: false,
        };
        source.set_names(tools);
        Arc::new(source)
    }

    pub(crate) fn required(name: &str) -> Arc<Self> {
        let source = Self {
            name: name.to_owned(),
            state: watch::Sender::new(FakeState::default()),
            loads: AtomicUsize::new(0),
            required: true,
        };
        Arc::new(source)
    }

    pub(crate) fn set_names(&self, tools: &[&str]) {
        let tool = |name: &&str| {
            plain_tool(
                name,
                &format!("Does {name} at {}.", self.name),
                json!({ "type": "object" }),
            )
        };
        self.set(tools.iter().map(tool).collect());
    }

    pub(crate) fn set(&self, tools: Vec<Arc<dyn Tool>>) {
        self.state.send_modify(|s| {
            s.generation += 1;
            s.tools = tools;
            s.failure = None;
        });
    }

    pub(crate) fn fail(&self, message: &str) {
        self.state
            .send_modify(|s| s.failure = Some(message.to_owned()));
    }

    /// Answers only after `release`.
    pub(crate) fn hold(&self) {
        self.state.send_modify(|s| s.held = true);
    }

    pub(crate) fn release(&self) {
        self.state.send_modify(|s| s.held = false);
    }
}

#[async_trait]
impl ToolSource for FakeSource {
    fn name(&self) -> &str {
        &self.name
    }
    fn generation(&self) -> u64 {
        self.state.borrow().generation
    }
    async fn load(&self, cancel: &CancelToken) -> Result<LoadedTools, SourceError> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        let mut state = self.state.subscribe();
        let error = |message: String, retryable| SourceError {
            source_name: self.name.clone(),
            message,
            retryable,
            cause: None,
        };
        let open = async { state.wait_for(|s| !s.held).await.map(|s| s.clone()) };
        let now = tokio::select! {
            now = open => now.map_err(|_| error("gone".to_owned(), false))?,
            () = cancel.cancelled() => return Err(error("cancelled".to_owned(), true)),
        };
        match now.failure {
            Some(message) => Err(error(message, true)),
            None => Ok(LoadedTools {
                generation: now.generation,
                tools: now.tools,
                ..LoadedTools::default()
            }),
        }
    }
    async fn changed(&self, seen: u64) {
        let mut state = self.state.subscribe();
        let _ = state.wait_for(|s| s.generation != seen).await;
    }
    fn required(&self) -> bool {
        self.required
    }
}

/// The names that a snapshot offers.
pub(crate) fn names(snapshot: &ToolSnapshot) -> Vec<String> {
    snapshot.iter().map(|t| t.name().to_owned()).collect()
}
