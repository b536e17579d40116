//! What a script's hooks, sinks, journals and sources do, and when they do something else.
//!
//! Knows: being slow, failing, panicking, hanging, and which time. Does not know: what comes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use yiem_agent::{
    AfterToolCall, AgentEvent, AgentHook, BeforeModelCall, BeforeToolCall, Compaction,
    CompactionView, ContextView, EventSink, HookPoint, Journal, JournalError, JournalRecord,
    ModelCallView, PrepareNextTurn, StopAfterTurn, ToolCallView, ToolResultView, TransformContext,
    TurnView,
};
use yiem_core::{CancelToken, Error, LoadedTools, SourceError, Tool, ToolSource, async_trait};

/// What is done in a place of the script.
#[derive(Clone, Debug)]
pub(super) enum Does {
    /// Takes that long, then does what it should.
    Slow(Duration),
    /// Fails with these words.
    Fails(String),
    /// Panics.
    Panics,
    /// Never ends.
    Hangs,
}

/// What is done, and at which time (each time without one).
#[derive(Debug)]
pub(super) struct Place {
    pub(super) does: Does,
    pub(super) time: Option<usize>,
    times: AtomicUsize,
}

impl Place {
    pub(super) fn new(does: Does, time: Option<usize>) -> Self {
        Self {
            does,
            time,
            times: AtomicUsize::new(0),
        }
    }

    async fn act(&self) -> Result<(), String> {
        let time = self.times.fetch_add(1, Ordering::Relaxed) + 1;
        if self.time.is_some_and(|t| t != time) {
            return Ok(());
        }
        match &self.does {
            Does::Slow(time) => tokio::time::sleep(*time).await,
            Does::Fails(words) => return Err(words.clone()),
            Does::Panics => panic!("this place of the script was told to panic"),
            Does::Hangs => std::future::pending().await,
        }
        Ok(())
    }

    async fn or<T>(&self, fine: T) -> Result<T, Error> {
        self.act().await.map_err(Error::msg)?;
        Ok(fine)
    }
}

/// A hook that does something at one point and changes nothing.
pub(super) struct ScriptHook(pub(super) HookPoint, pub(super) Arc<Place>);

#[async_trait]
impl AgentHook for ScriptHook {
    fn name(&self) -> &str {
        "script"
    }
    fn is_asked_at(&self, point: HookPoint) -> bool {
        point == self.0
    }
    async fn transform_context(&self, _: ContextView) -> Result<TransformContext, Error> {
        self.1.or(TransformContext::Keep).await
    }
    async fn before_model_call(&self, _: ModelCallView) -> Result<BeforeModelCall, Error> {
        self.1.or(BeforeModelCall::Send).await
    }
    async fn before_tool_call(&self, _: ToolCallView) -> Result<BeforeToolCall, Error> {
        self.1.or(BeforeToolCall::Run).await
    }
    async fn after_tool_call(&self, _: ToolResultView) -> Result<AfterToolCall, Error> {
        self.1.or(AfterToolCall::default()).await
    }
    async fn should_stop_after_turn(&self, _: TurnView) -> Result<StopAfterTurn, Error> {
        self.1.or(StopAfterTurn::GoOn).await
    }
    async fn prepare_next_turn(&self, _: TurnView) -> Result<PrepareNextTurn, Error> {
        self.1.or(PrepareNextTurn::keep()).await
    }
    async fn compact(&self, _: CompactionView) -> Result<Compaction, Error> {
        self.1.or(Compaction::Pass).await
    }
}

/// A sink that does something at events of one kind, or at each.
pub(super) struct ScriptSink(pub(super) Option<String>, pub(super) Arc<Place>);

#[async_trait]
impl EventSink for ScriptSink {
    async fn on_event(&self, event: &Arc<AgentEvent>, _: &CancelToken) {
        let kind = || serde_json::to_value(&event.kind).ok();
        let wanted = self.0.as_ref().is_none_or(|wanted| {
            kind().is_some_and(|kind| kind["type"].as_str() == Some(wanted.as_str()))
        });
        if wanted && let Err(words) = self.1.act().await {
            panic!("a sink cannot fail, only panic: {words}");
        }
    }
}

/// A journal that keeps nothing.
pub(super) struct ScriptJournal(pub(super) Arc<Place>);

#[async_trait]
impl Journal for ScriptJournal {
    async fn append(&self, _: &JournalRecord) -> Result<(), JournalError> {
        self.0.act().await.map_err(JournalError::new)
    }
}

/// A source that the first turn waits for, with tools of its own.
pub(super) struct ScriptSource {
    pub(super) name: String,
    pub(super) place: Arc<Place>,
    pub(super) tools: Vec<Arc<dyn Tool>>,
}

#[async_trait]
impl ToolSource for ScriptSource {
    fn name(&self) -> &str {
        &self.name
    }
    fn generation(&self) -> u64 {
        1
    }
    fn required(&self) -> bool {
        true
    }
    async fn load(&self, _: &CancelToken) -> Result<LoadedTools, SourceError> {
        self.place.act().await.map_err(|words| SourceError {
            source_name: self.name.clone(),
            message: words,
            retryable: false,
            cause: None,
        })?;
        Ok(LoadedTools {
            generation: 1,
            tools: self.tools.clone(),
            ..LoadedTools::default()
        })
    }
}
