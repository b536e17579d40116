//! Tool sources beside a run: they connect in the background, their faults are told in the run, and whoever wants
//! to can wait for them (M-7).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use yiem_agent::{Agent, AgentEvent, EventKind};
use yiem_core::{
    AssistantContent, AssistantMessage, CancelToken, LoadedTools, SourceError, Timestamp,
    ToolSource, async_trait, model_fn,
};
use yiem_test::{Reply, ScriptedModel};
use yiem_tools::{Discovery, SourceState, ToolCatalog};

use crate::within;

/// A source that is not there, which is found out when the gate opens.
struct Absent {
    name: &'static str,
    gate: Arc<tokio::sync::Semaphore>,
    connected: Arc<AtomicUsize>,
    loaded: Arc<AtomicUsize>,
    is_there: bool,
    required: bool,
}

impl Absent {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            gate: Arc::new(tokio::sync::Semaphore::new(100)),
            connected: Arc::default(),
            loaded: Arc::default(),
            is_there: false,
            required: false,
        }
    }

    async fn reached(&self) -> Result<(), SourceError> {
        self.gate.acquire().await.unwrap().forget();
        if self.is_there {
            return Ok(());
        }
        Err(SourceError {
            source_name: self.name.to_owned(),
            message: "nobody is there".to_owned(),
            retryable: false,
            cause: None,
        })
    }
}

#[async_trait]
impl ToolSource for Absent {
    fn name(&self) -> &str {
        self.name
    }
    fn generation(&self) -> u64 {
        0
    }
    async fn load(&self, _: &CancelToken) -> Result<LoadedTools, SourceError> {
        self.loaded.fetch_add(1, Ordering::SeqCst);
        self.reached().await.map(|()| LoadedTools::default())
    }
    async fn connect(&self, _: &CancelToken) -> Result<(), SourceError> {
        self.connected.fetch_add(1, Ordering::SeqCst);
        self.reached().await
    }
    fn required(&self) -> bool {
        self.required
    }
}

#[tokio::test]
async fn on_demand_a_source_is_connected_in_the_background_and_not_asked() {
    let mut there = Absent::new("there");
    there.is_there = true;
    let (connected, loaded) = (Arc::clone(&there.connected), Arc::clone(&there.loaded));
    let agent = Agent::builder(ScriptedModel::new([Reply::say("done")]))
        .source(there)
        .source(Absent::new("absent"))
        .build()
        .unwrap();
    let sources = within(agent.ready()).await;
    assert!(matches!(sources[0].state, SourceState::Connected));
    let SourceState::Failed { error } = &sources[1].state else {
        panic!("{sources:?}");
    };
    assert_eq!(error.to_string(), "absent: nobody is there");
    within(agent.prompt("hello")).await.unwrap();
    // Once is enough, for as long as nobody wants its tools.
    assert_eq!(connected.load(Ordering::SeqCst), 1);
    assert_eq!(loaded.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn ready_gives_tools_where_they_are_wanted_at_once_and_the_reason_where_they_failed() {
    for required in [false, true] {
        let mut there = Absent::new("there");
        there.is_there = true;
        let mut absent = Absent::new("absent");
        absent.required = required;
        let agent = Agent::builder(ScriptedModel::new([Reply::say("done")]))
            .source(there)
            .source(absent)
            .discovery(Discovery::Eager)
            .build()
            .unwrap();
        for _ in 0..2 {
            let sources = within(agent.ready()).await;
            assert!(matches!(sources[0].state, SourceState::Loaded { .. }));
            assert!(matches!(sources[1].state, SourceState::Failed { .. }));
        }
        assert!(!agent.is_running(), "it begins no run");
    }
    let alone = Agent::builder(ScriptedModel::new([])).build().unwrap();
    assert!(within(alone.ready()).await.is_empty());
}

#[tokio::test]
async fn a_wait_for_sources_ends_with_the_agent() {
    let mut hangs = Absent::new("hangs");
    hangs.gate = Arc::new(tokio::sync::Semaphore::new(0));
    let agent = Agent::builder(ScriptedModel::new([]))
        .source(hangs)
        .build()
        .unwrap();
    let waiting = agent.ready();
    let stopping = agent.stop();
    let (sources, _) = within(async { tokio::join!(waiting, stopping) }).await;
    assert!(matches!(sources[0].state, SourceState::Waiting));
}

#[tokio::test]
async fn a_source_that_fails_while_the_model_speaks_is_told_in_that_run() {
    for discovery in [Discovery::OnDemand, Discovery::Eager] {
        let mut absent = Absent::new("absent");
        absent.gate = Arc::new(tokio::sync::Semaphore::new(0));
        let gate = Arc::clone(&absent.gate);
        let catalog = Arc::new(OnceLock::<ToolCatalog>::new());
        let known = Arc::clone(&catalog);
        let model = model_fn("slow", move |_| {
            let (gate, known) = (Arc::clone(&gate), Arc::clone(&known));
            async move {
                gate.add_permits(1);
                known.get().unwrap().settled().await;
                let content = vec![AssistantContent::text("done")];
                Ok(AssistantMessage::new(content, Timestamp::default()))
            }
        });
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        let agent = Agent::builder(model)
            .source(absent)
            .discovery(discovery)
            .listener(move |event: &AgentEvent| heard.lock().unwrap().push(event.clone()))
            .build()
            .unwrap();
        assert!(catalog.set(agent.tools().clone()).is_ok());
        let outcome = within(agent.prompt("hello")).await.unwrap();
        assert_eq!(outcome.text(), "done");
        let events = events.lock().unwrap();
        let told = events.iter().position(|event| match &event.kind {
            EventKind::Warning { message } => message.contains("absent: nobody is there"),
            _ => false,
        });
        let end = events
            .iter()
            .position(|event| matches!(event.kind, EventKind::AgentEnd { .. }));
        assert!(
            told.is_some() && told < end,
            "{discovery:?}: {told:?} {end:?}"
        );
    }
}
