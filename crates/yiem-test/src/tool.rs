//! Tools that behave well, badly, or not at all.
//!
//! Knows: how to be slow, to fail, to panic, to never end. Does not know: agents.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use yiem_core::{
    BoxFuture, JsonObject, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ValidArgs,
    async_trait,
};

type Work = Arc<
    dyn Fn(ValidArgs, ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>>
        + Send
        + Sync,
>;

/// A tool for tests: any name, any behaviour, and a list of the calls that it got.
#[derive(Clone)]
pub struct TestTool {
    definition: Arc<ToolDefinition>,
    work: Work,
    calls: Arc<Mutex<Vec<JsonObject>>>,
}

impl fmt::Debug for TestTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestTool")
            .field("name", &self.definition.name)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for TestTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((*args).clone());
        (self.work)(args, context).await
    }
}

impl TestTool {
    /// A tool of that name that does this; it takes any object.
    pub fn new<F, Fut>(name: impl Into<String>, work: F) -> Self
    where
        F: Fn(ValidArgs, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let name = name.into();
        Self {
            definition: Arc::new(ToolDefinition {
                label: name.clone(),
                description: format!("The test tool {name}."),
                name,
                input_schema: json!({"type": "object", "properties": {}}),
                ..ToolDefinition::default()
            }),
            work: Arc::new(move |args, context| Box::pin(work(args, context))),
            calls: Arc::default(),
        }
    }

    /// The same with this schema.
    #[must_use]
    pub fn schema(self, schema: Value) -> Self {
        self.define(|d| d.input_schema = schema)
    }

    /// The same, making its batch sequential.
    #[must_use]
    pub fn sequential(self) -> Self {
        self.define(|d| d.parallel = Some(false))
    }

    /// The same with any other change of its definition.
    #[must_use]
    pub fn define(mut self, change: impl FnOnce(&mut ToolDefinition)) -> Self {
        change(Arc::make_mut(&mut self.definition));
        self
    }

    /// The arguments of the calls that it got, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<JsonObject> {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// `echo {"value": TEXT}` answers with the text.
#[must_use]
pub fn echo() -> TestTool {
    TestTool::new("echo", |args, _| async move {
        Ok(ToolOutput::text(args["value"].as_str().unwrap_or_default()))
    })
    .schema(json!({
        "type": "object",
        "properties": {"value": {"type": "string"}},
        "required": ["value"],
    }))
}

/// Answers `TEXT` after `duration`, or that it was cancelled when it was.
pub fn slow(name: impl Into<String>, duration: Duration, text: impl Into<String>) -> TestTool {
    let text = text.into();
    TestTool::new(name, move |_, context| {
        let text = text.clone();
        async move {
            let sleep = context.env.sleep(duration);
            match context.cancel.run_until_cancelled(sleep).await {
                Some(()) => Ok(ToolOutput::text(text)),
                None => Err(ToolError::new("cancelled")),
            }
        }
    })
}

/// Answers `TEXT` after `duration`, whatever it is told.
pub fn deaf(name: impl Into<String>, duration: Duration, text: impl Into<String>) -> TestTool {
    let text = text.into();
    TestTool::new(name, move |_, context| {
        let text = text.clone();
        async move {
            context.env.sleep(duration).await;
            Ok(ToolOutput::text(text))
        }
    })
}

/// Fails with a message.
pub fn failing(name: impl Into<String>, message: impl Into<String>) -> TestTool {
    let message = message.into();
    TestTool::new(name, move |_, _| {
        let message = message.clone();
        async move { Err(ToolError::new(message)) }
    })
}

/// A tool that panics when it is called.
pub fn panicking(name: impl Into<String>) -> TestTool {
    TestTool::new(name, |_, _| async {
        panic!("the test tool was told to panic")
    })
}

/// Calls another tool of the agent and answers what that answered.
pub fn calling(name: impl Into<String>, other: impl Into<String>, args: Value) -> TestTool {
    let (other, args) = (other.into(), args.as_object().cloned().unwrap_or_default());
    TestTool::new(name, move |_, context| {
        let (other, args) = (other.clone(), args.clone());
        async move {
            let caller = context.caller().ok_or(ToolError::new("it may not call"))?;
            caller.call_tool(&other, args).await
        }
    })
}

/// Never ends, whatever it is told.
pub fn never(name: impl Into<String>) -> TestTool {
    TestTool::new(name, |_, _| std::future::pending())
}

/// Answers and asks for an end of the run.
pub fn terminating(name: impl Into<String>, text: impl Into<String>) -> TestTool {
    let text = text.into();
    TestTool::new(name, move |_, _| {
        let text = text.clone();
        async move { Ok(ToolOutput::text(text).terminating()) }
    })
}

/// Tells of its progress so many times, `gap` apart, then answers; tells once more from a task
/// of its own after it has answered, which nobody may hear.
pub fn updating(name: impl Into<String>, updates: u64, gap: Duration) -> TestTool {
    TestTool::new(name, move |_, context| async move {
        for n in 1..=updates {
            if !gap.is_zero() {
                context.env.sleep(gap).await;
            }
            context.progress(json!({"step": n})).await;
        }
        let late = context.clone();
        // Left behind on purpose; ends with the runtime of the test.
        #[expect(
            clippy::disallowed_methods,
            reason = "a tool that does what it should not"
        )]
        tokio::spawn(async move {
            late.env.sleep(Duration::from_millis(1)).await;
            late.progress(json!({"step": "late"})).await;
        });
        Ok(ToolOutput::text(format!("{updates} steps")))
    })
}
