//! An agent, and how one is put together.
//!
//! Knows: every setting's place. Does not know: how a run goes.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use yiem_core::{
    ChatModel, ChatOptions, Deps, Env, Error, History, IdKind, IntoToolSource, ModelCost,
    SessionId, SystemEnv, Tool, ToolSource,
};
use yiem_tools::{CatalogBuilder, Discovery, SourceId, ToolCatalog};

use crate::compaction::Compactor;
use crate::config::{AgentConfig, Limits, ToolExecution};
use crate::error::BuildError;
use crate::event::AgentEvent;
use crate::handle::Agent;
use crate::hook::{
    AfterToolCall, AgentHook, BeforeModelCall, BeforeToolCall, ContextView, Hooks, ModelCallView,
    PrepareNextTurn, StopAfterTurn, ToolCallView, ToolResultView, TransformContext, TurnView,
};
use crate::journal::{FileJournal, Journal, Session, answered};
use crate::shared::{Settings, Shared, State, TraceContext};
use crate::sink::{EventSink, Listener};

impl Agent {
    /// An agent of this model, to be given tools, hooks and settings.
    ///
    /// A closure makes a model: [`model_fn`](yiem_core::model_fn).
    #[doc(alias = "yiemAgent")]
    pub fn builder(model: impl ChatModel) -> AgentBuilder {
        AgentBuilder::new(Arc::new(model))
    }
}

/// Puts an [`Agent`] together.
///
/// Nothing happens before [`build`](Self::build); every fault of the configuration is told
/// there, at once.
#[must_use]
pub struct AgentBuilder {
    model: Arc<dyn ChatModel>,
    system: Option<Arc<str>>,
    name: Arc<str>,
    catalog: CatalogBuilder,
    hooks: Vec<Arc<dyn AgentHook>>,
    listeners: Vec<Listener>,
    deps: Deps,
    env: Option<Arc<dyn Env>>,
    config: AgentConfig,
    compactor: Option<Compactor>,
    session: Session,
    journal: Option<Arc<dyn Journal>>,
    trace_context: Option<TraceContext>,
    session_file: Option<PathBuf>,
    sources: Vec<MakeSource>,
}

/// A source that is made when the agent is built.
type MakeSource = Box<dyn FnOnce(&Arc<dyn Env>) -> Result<Arc<dyn ToolSource>, Error> + Send>;

impl std::fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentBuilder")
            .field("model", &self.model.info().id)
            .field("catalog", &self.catalog)
            .field("hooks", &self.hooks.len())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl AgentBuilder {
    fn new(model: Arc<dyn ChatModel>) -> Self {
        Self {
            model,
            system: None,
            name: "yiem".into(),
            catalog: ToolCatalog::builder(),
            hooks: Vec::new(),
            listeners: Vec::new(),
            deps: Deps::default(),
            env: None,
            config: AgentConfig::default(),
            compactor: Some(Compactor::default()),
            session: Session::default(),
            journal: None,
            trace_context: None,
            session_file: None,
            sources: Vec::new(),
        }
    }

    /// The system prompt.
    #[doc(alias = "systemPrompt")]
    pub fn system(mut self, prompt: impl Into<Arc<str>>) -> Self {
        let prompt = prompt.into();
        self.system = (!prompt.is_empty()).then_some(prompt);
        self
    }

    /// What traces and a tool made of this agent call it. Default `yiem`.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    // ---- tools ----

    /// A tool of one's own.
    #[doc(alias = "registerTool")]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.catalog = self.catalog.tool(tool);
        self
    }

    /// Tools of one's own, of one type (`Arc<dyn Tool>` for a mixture).
    pub fn tools<T: Tool>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        for tool in tools {
            self.catalog = self.catalog.tool(tool);
        }
        self
    }

    /// A tool together with where it comes from, such as a tools directory: a later one of the
    /// same source and name replaces it.
    pub fn tool_of(mut self, tool: Arc<dyn Tool>, source: SourceId) -> Self {
        self.catalog = self.catalog.tool_of(tool, source);
        self
    }

    /// A place that tools come from, such as an MCP server. With names that clash the one given
    /// first keeps the name (M-6).
    pub fn source(mut self, source: impl IntoToolSource + Send + 'static) -> Self {
        self.sources
            .push(Box::new(move |env| source.into_tool_source(env)));
        self
    }

    /// The same as [`source`](Self::source), by the name that users look for.
    #[doc(alias = "mcpServer")]
    pub fn mcp(self, server: impl IntoToolSource + Send + 'static) -> Self {
        self.source(server)
    }

    /// When the tools of sources are offered (T-5). Default [`Discovery::OnDemand`].
    pub fn discovery(mut self, discovery: Discovery) -> Self {
        self.catalog = self.catalog.discovery(discovery);
        self
    }

    /// Changes the catalog of tools: clash policy, finder, known definitions.
    pub fn catalog(mut self, change: impl FnOnce(CatalogBuilder) -> CatalogBuilder) -> Self {
        self.catalog = change(self.catalog);
        self
    }

    /// A value of one's own that tools find by its type (`ToolContext::dep`).
    pub fn dep<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.deps = self.deps.with(value);
        self
    }

    /// The same, of a value that is shared already.
    pub fn shared_dep<T: Any + Send + Sync>(mut self, value: Arc<T>) -> Self {
        self.deps = self.deps.with_shared(value);
        self
    }

    // ---- hooks and listeners ----

    /// A hook; hooks are asked in the order in which they are given.
    pub fn hook(mut self, hook: impl AgentHook) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// A closure as [`AgentHook::transform_context`].
    pub fn transform_context<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ContextView) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<TransformContext, Error>> + Send + 'static,
    {
        self.hook(crate::hook::transform_context(hook))
    }

    /// A closure as [`AgentHook::before_model_call`].
    pub fn before_model_call<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ModelCallView) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<BeforeModelCall, Error>> + Send + 'static,
    {
        self.hook(crate::hook::before_model_call(hook))
    }

    /// A closure as [`AgentHook::before_tool_call`].
    pub fn before_tool_call<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ToolCallView) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<BeforeToolCall, Error>> + Send + 'static,
    {
        self.hook(crate::hook::before_tool_call(hook))
    }

    /// A closure as [`AgentHook::after_tool_call`].
    pub fn after_tool_call<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(ToolResultView) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<AfterToolCall, Error>> + Send + 'static,
    {
        self.hook(crate::hook::after_tool_call(hook))
    }

    /// A closure as [`AgentHook::should_stop_after_turn`].
    pub fn should_stop_after_turn<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(TurnView) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<StopAfterTurn, Error>> + Send + 'static,
    {
        self.hook(crate::hook::should_stop_after_turn(hook))
    }

    /// A closure as [`AgentHook::prepare_next_turn`].
    pub fn prepare_next_turn<F, Fut>(self, hook: F) -> Self
    where
        F: Fn(TurnView) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<PrepareNextTurn, Error>> + Send + 'static,
    {
        self.hook(crate::hook::prepare_next_turn(hook))
    }

    /// A closure that is told of every event, in order. It is called in the run's way: keep it
    /// short. Its panic is a log line.
    pub fn listener(mut self, listener: impl Fn(&AgentEvent) + Send + Sync + 'static) -> Self {
        self.listeners.push(Listener::Plain(Arc::new(listener)));
        self
    }

    /// A sink that is told of every event, in order, and waited for (R `agentEventSink`).
    #[doc(alias = "agentEventSink")]
    pub fn sink(mut self, sink: impl EventSink) -> Self {
        self.listeners.push(Listener::Sink(Arc::new(sink)));
        self
    }

    // ---- settings ----

    /// Changes any setting: `.configure(|c| c.grace = Duration::from_secs(1))`.
    pub fn configure(mut self, change: impl FnOnce(&mut AgentConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// All settings at once.
    pub fn config(mut self, config: AgentConfig) -> Self {
        self.config = config;
        self
    }

    /// The limits of a run.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// The most turns of a run; 0 is no limit. Default 50.
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.config.limits.turns = turns;
        self
    }

    /// The longest that a run may take. Default: no limit.
    pub fn wall_time(mut self, time: Duration) -> Self {
        self.config.limits.wall_time = Some(time);
        self
    }

    /// The calls of a reply run one after another.
    pub fn sequential(self) -> Self {
        self.tool_execution(ToolExecution::Sequential)
    }

    /// How the calls of a reply run. Default [`ToolExecution::Parallel`].
    #[doc(alias = "toolExecution")]
    pub fn tool_execution(mut self, execution: ToolExecution) -> Self {
        self.config.tool_execution = execution;
        self
    }

    /// What every model call is asked with.
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.config.options = options;
        self
    }

    /// The id of the conversation (SP-009). Default: made at `build()`.
    pub fn session_id(mut self, id: impl Into<SessionId>) -> Self {
        self.config.session_id = Some(id.into());
        self
    }

    /// How the history is shortened when the model says that it is too long and no hook does it
    /// `None` switches it off. Default [`Compactor::default`].
    pub fn compactor(mut self, compactor: Option<Compactor>) -> Self {
        self.compactor = compactor;
        self
    }

    /// Clock, timer and ids (C-9). Default: the system's.
    pub fn env(mut self, env: Arc<dyn Env>) -> Self {
        self.env = Some(env);
        self
    }

    /// Gives the trace context that goes out with requests: names and values such as
    /// `traceparent`, read inside the span of the moment.
    pub fn trace_context(
        mut self,
        context: impl Fn() -> Vec<(String, String)> + Send + Sync + 'static,
    ) -> Self {
        self.trace_context = Some(Arc::new(context));
        self
    }

    // ---- sessions ----

    /// The conversation begins with these messages. A call among them that has no result gets one
    /// that says that its outcome is unknown: no model takes a call without one.
    pub fn history(mut self, history: History) -> Self {
        self.session.history = history;
        self
    }

    /// Everything is written down there before it counts (S-1).
    pub fn journal(mut self, journal: impl Journal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// Goes on from what a journal held (S-3): history, what the model is shown, calls that were
    /// open.
    pub fn resume(mut self, session: Session) -> Self {
        if let Some(id) = session.id.clone() {
            self.config.session_id = Some(id);
        }
        self.session = session;
        self
    }

    /// Keeps the conversation in this file, and goes on from what it holds (S-2, S-3); see
    /// [`FileJournal`]. It is opened by [`build`](Self::build).
    pub fn session_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.session_file = Some(path.into());
        self
    }

    /// The agent.
    ///
    /// Where a tokio runtime is running its sources begin to connect in the background; else
    /// they do at the first run.
    ///
    /// # Errors
    /// A tool's name or schema cannot be used, two things have the same name, a source cannot be
    /// made. All that is wrong is told at once.
    pub fn build(mut self) -> Result<Agent, BuildError> {
        let mut problems = Vec::new();
        let env = self.env.unwrap_or_else(SystemEnv::shared);
        for make in self.sources {
            match make(&env) {
                Ok(source) => self.catalog = self.catalog.shared_source(source),
                Err(error) => problems.push(chain(&error)),
            }
        }
        if let Some(path) = self.session_file.take() {
            match FileJournal::open(path, &*env) {
                Ok((journal, session)) => {
                    self.config.session_id.clone_from(&session.id);
                    self.journal = Some(Arc::new(journal));
                    self.session = session;
                }
                Err(error) => problems.push(chain(&error.into())),
            }
        }
        let catalog = match self.catalog.build() {
            Ok(catalog) => Some(catalog),
            Err(error) => {
                problems.push(chain(&error.into()));
                None
            }
        };
        let Some(catalog) = catalog.filter(|_| problems.is_empty()) else {
            return Err(BuildError::new(problems));
        };
        let session_id = self
            .config
            .session_id
            .clone()
            .unwrap_or_else(|| SessionId::new(env.new_id(IdKind::Session)));
        let mut options = self.config.options.clone();
        options.session_id.get_or_insert_with(|| session_id.clone());
        let settings = Settings {
            system: self.system,
            model: self.model,
            options: Arc::new(options),
            only_tools: None,
        };
        let tail_is_open = !self.session.open.is_empty();
        let history = answered(&self.session.history, tail_is_open, env.now());
        let mut state = State::new(settings, session_id, history);
        state.shown = self.session.shown;
        state.open_calls = self.session.open;
        state.answering = self.session.model;
        state.hidden = self.session.hidden_tools;
        state.usage = self.session.usage;
        state.tool_usage = self.session.tool_usage;
        let price = &state.settings.model.info().cost;
        if *price != ModelCost::default() && !state.usage.is_unknown() {
            state.cost = Some(price.of(&state.usage));
        }
        let shared = Shared::new(
            Arc::new(self.config),
            env,
            Hooks::new(&self.hooks),
            self.listeners.into(),
            self.deps,
            catalog,
            self.compactor,
            self.journal,
            self.trace_context,
            self.name,
            state,
        );
        Ok(Agent::of(shared))
    }
}

/// An error and its causes on one line.
fn chain(error: &Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
