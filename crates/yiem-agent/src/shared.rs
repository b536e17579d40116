//! What an agent's handle and its driver share, under one lock that is never held over an await.
//!
//! Knows: the phases of an agent, its queues, settings, totals. Does not know: how a run goes on
//! (the run does) nor how steps are done (the driver does).

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use yiem_core::{
    CancelToken, ChatModel, ChatOptions, Cost, Deps, Env, History, IdKind, Memo, Message,
    ModelInfo, RunId, SessionId, Timestamp, ToolCallId, Usage,
};
use yiem_tools::ToolCatalog;

use crate::approval::Approvals;
use crate::caller::Caller;
use crate::compaction::{Compactor, without_open_calls};
use crate::config::AgentConfig;
use crate::error::RunError;
use crate::event::QueueChange;
use crate::hook::{HookPoint, Hooks, PrepareNextTurn};
use crate::journal::{Journal, OpenCall};
use crate::offered::Offered;
use crate::outcome::{EndReason, Failure, Outcome};
use crate::queue::{QueueKind, Queues};
use crate::run::turns::tokens;
use crate::run::{Input, Run, RunFacts, RunRules, add_cost, mode_of};
use crate::sink::{Listener, Subscribers};
use crate::structured::OutputSpec;

/// How many outcomes wait to be taken before no further run is begun.
const MAX_OUTCOMES: usize = 1024;

/// Gives the trace context of the moment, as names and values.
pub(crate) type TraceContext = Arc<dyn Fn() -> Vec<(String, String)> + Send + Sync>;

/// What handle and driver share.
pub(crate) struct Shared {
    pub(crate) config: Arc<AgentConfig>,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) hooks: Hooks,
    pub(crate) listeners: Arc<[Listener]>,
    /// Whether any listener is waited for.
    pub(crate) has_sinks: bool,
    pub(crate) subscribers: Subscribers,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) deps: Deps,
    pub(crate) catalog: ToolCatalog,
    pub(crate) has_sources: bool,
    pub(crate) compactor: Option<Compactor>,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    /// Held by whoever writes the journal, a run or a reset: records come one after another.
    pub(crate) writes: tokio::sync::Mutex<()>,
    pub(crate) trace_context: Option<TraceContext>,
    pub(crate) name: Arc<str>,
    /// Ends everything.
    pub(crate) root: CancelToken,
    /// An outcome was given out, or none will be any more.
    pub(crate) outcomes_changed: Notify,
    /// A run has ended.
    pub(crate) idle: Notify,
    /// The driver has an event of the queues to tell.
    pub(crate) queues_changed: Arc<Notify>,
    state: Mutex<State>,
}

/// What changes while an agent lives.
pub(crate) struct State {
    pub(crate) run: Option<Run>,
    pub(crate) active: Option<Active>,
    /// The history between runs; during one it is the run's.
    pub(crate) history: History,
    pub(crate) shown: Option<History>,
    pub(crate) queues: Queues,
    /// What begins when the run that winds down has ended.
    pub(crate) next: Option<Begin>,
    /// What was aborted before it could begin, while a run wound down; has its runs before `next`.
    pub(crate) aborted: VecDeque<Begin>,
    pub(crate) closed: bool,
    pub(crate) outcomes: VecDeque<Outcome>,
    pub(crate) settings: Settings,
    pub(crate) session_id: SessionId,
    /// Calls that were open when the session broke off (S-3).
    pub(crate) open_calls: Vec<OpenCall>,
    pub(crate) memo: Memo,
    pub(crate) error_message: Option<String>,
    pub(crate) usage: Usage,
    pub(crate) tool_usage: Usage,
    pub(crate) cost: Option<Cost>,
    pub(crate) tickets: u64,
    /// Cancelled by an abort: for prompts whose run has not begun.
    pub(crate) before_runs: CancelToken,
    /// What the offered tools were narrowed to when that was told.
    pub(crate) offering: Option<Arc<[String]>>,
    /// The tools that were not offered when the session was opened; until a request is made.
    pub(crate) hidden: BTreeSet<String>,
    /// The id of the model that the journal knows to answer.
    pub(crate) answering: Option<String>,
}

/// What model calls are made with.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) system: Option<Arc<str>>,
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) options: Arc<ChatOptions>,
    pub(crate) only_tools: Option<Arc<[String]>>,
}

impl Settings {
    pub(crate) fn apply(&mut self, change: PrepareNextTurn) {
        if let Some(system) = change.system {
            self.system = (!system.is_empty()).then_some(system);
        }
        if let Some(model) = change.model {
            self.model = model;
        }
        if let Some(mut options) = change.options {
            options.session_id = options
                .session_id
                .or_else(|| self.options.session_id.clone());
            self.options = Arc::new(options);
        }
        if let Some(tools) = change.tools {
            self.only_tools = Some(tools.into());
        }
    }
}

/// The run that is going on, beside its state.
pub(crate) struct Active {
    pub(crate) ticket: u64,
    pub(crate) cancel: CancelToken,
    pub(crate) waiter: Option<oneshot::Sender<Outcome>>,
    pub(crate) output: Option<Arc<OutputSpec>>,
    /// The span in which the run was asked for, until the run has its own.
    pub(crate) asked_in: Option<tracing::Span>,
}

/// A run that is to begin.
pub(crate) struct Begin {
    pub(crate) id: RunId,
    pub(crate) ticket: u64,
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) waiter: Option<oneshot::Sender<Outcome>>,
    pub(crate) output: Option<Arc<OutputSpec>>,
    /// Those of the messages that waited in a queue.
    pub(crate) delivered: Vec<Arc<Message>>,
    /// It was aborted while it waited: the run ends as soon as it begins.
    pub(crate) aborted: bool,
    pub(crate) asked_in: tracing::Span,
}

/// What to do with a message that comes while a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenBusy {
    /// It steers.
    Steer,
    /// It is refused.
    Refuse,
}

/// What was done with a message.
pub(crate) enum Begun {
    /// A driver has to be spawned.
    Now(RunId),
    /// A run that goes on, or that comes next, has it.
    Later(RunId),
}

fn has_sinks(listeners: &[Listener]) -> bool {
    listeners.iter().any(|l| matches!(l, Listener::Sink(_)))
}

impl Shared {
    #[expect(
        clippy::too_many_arguments,
        reason = "the builder is its only caller and names each"
    )]
    pub(crate) fn new(
        config: Arc<AgentConfig>,
        env: Arc<dyn Env>,
        hooks: Hooks,
        listeners: Arc<[Listener]>,
        deps: Deps,
        catalog: ToolCatalog,
        compactor: Option<Compactor>,
        journal: Option<Arc<dyn Journal>>,
        trace_context: Option<TraceContext>,
        name: Arc<str>,
        state: State,
    ) -> Self {
        let has_sources = !catalog.sources().is_empty();
        let approvals: Arc<Approvals> = Arc::default();
        let deps = deps.with(Caller::none(Arc::clone(&approvals)));
        Self {
            config,
            env,
            hooks,
            has_sinks: has_sinks(&listeners),
            listeners,
            subscribers: Subscribers::default(),
            approvals,
            deps,
            catalog,
            has_sources,
            compactor,
            journal,
            writes: tokio::sync::Mutex::default(),
            trace_context,
            name,
            root: CancelToken::new(),
            outcomes_changed: Notify::new(),
            idle: Notify::new(),
            queues_changed: Arc::default(),
            state: Mutex::new(state),
        }
    }

    /// The same agent with a conversation of its own, told of by one more listener. Questions to
    /// a person are shared. `grace` and `deps` take the place of its own.
    pub(crate) fn fork(&self, listener: Option<Listener>, grace: Duration, deps: Deps) -> Self {
        let state = self.lock();
        let session_id = SessionId::new(self.env.new_id(IdKind::Session));
        let mut settings = state.settings.clone();
        drop(state);
        let mut options = (*settings.options).clone();
        options.session_id = Some(session_id.clone());
        settings.options = Arc::new(options);
        let listeners: Arc<[Listener]> = self.listeners.iter().cloned().chain(listener).collect();
        let mut config = Arc::clone(&self.config);
        if config.grace != grace {
            Arc::make_mut(&mut config).grace = grace;
        }
        Self {
            config,
            env: Arc::clone(&self.env),
            hooks: self.hooks.clone(),
            has_sinks: has_sinks(&listeners),
            listeners,
            subscribers: Subscribers::default(),
            approvals: Arc::clone(&self.approvals),
            deps,
            catalog: self.catalog.clone(),
            has_sources: self.has_sources,
            compactor: self.compactor,
            journal: None,
            writes: tokio::sync::Mutex::default(),
            trace_context: self.trace_context.clone(),
            name: Arc::clone(&self.name),
            root: CancelToken::new(),
            outcomes_changed: Notify::new(),
            idle: Notify::new(),
            queues_changed: Arc::default(),
            state: Mutex::new(State::new(settings, session_id, History::new())),
        }
    }

    /// Whether anybody has to be waited for between the decision to ask the model and the
    /// request.
    pub(crate) fn waits_before_model_call(&self) -> bool {
        self.has_sources
            || self.hooks.any_at(HookPoint::TransformContext)
            || self.hooks.any_at(HookPoint::BeforeModelCall)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under the lock is a fault of the framework; what it left is still the best
        // that there is.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message in: begins a run, or does with it what `when_busy` says.
    pub(crate) fn begin(
        &self,
        messages: Vec<Arc<Message>>,
        when_busy: WhenBusy,
        waiter: Option<oneshot::Sender<Outcome>>,
        output: Option<Arc<OutputSpec>>,
        ticket: Option<u64>,
        aborted: bool,
    ) -> Result<Begun, RunError> {
        let mut state = self.lock();
        if state.closed {
            return Err(RunError::Closed);
        }
        let running = state
            .run
            .as_ref()
            .map(|run| (run.id().clone(), run.is_ending()));
        // An abort that nobody has acted on yet counts as one.
        let cancelled = state
            .active
            .as_ref()
            .is_some_and(|a| a.cancel.is_cancelled());
        if let Some((id, ending)) = running {
            if !ending && !cancelled {
                if when_busy == WhenBusy::Refuse {
                    return Err(RunError::Busy);
                }
                for message in messages {
                    self.queue(&mut state, QueueKind::Steering, message)?;
                }
                return Ok(Begun::Later(id));
            }
            let capacity = self.config.queue_capacity.max(1);
            if aborted {
                let waiting = state.aborted.len();
                if waiting >= capacity {
                    return Err(RunError::QueueFull { waiting });
                }
            } else if let Some(next) = &mut state.next {
                // Something waits for the run that winds down already.
                if when_busy == WhenBusy::Refuse {
                    return Err(RunError::Busy);
                }
                if next.messages.len() >= capacity {
                    return Err(RunError::QueueFull {
                        waiting: next.messages.len(),
                    });
                }
                next.messages.extend(messages);
                return Ok(Begun::Later(next.id.clone()));
            }
        }
        if waiter.is_none() && state.outcomes.len() >= MAX_OUTCOMES {
            return Err(RunError::OutcomesWaiting {
                waiting: state.outcomes.len(),
            });
        }
        let ticket = ticket.unwrap_or_else(|| state.ticket());
        let id = RunId::new(self.env.new_id(IdKind::Run));
        let begin = Begin {
            id: id.clone(),
            ticket,
            messages,
            waiter,
            output,
            delivered: Vec::new(),
            aborted,
            asked_in: tracing::Span::current(),
        };
        if state.run.is_some() {
            if aborted {
                state.aborted.push_back(begin);
            } else {
                state.next = Some(begin);
            }
            return Ok(Begun::Later(id));
        }
        self.start(&mut state, begin);
        Ok(Begun::Now(id))
    }

    /// Puts a message into a queue, unless that is full.
    pub(crate) fn queue(
        &self,
        state: &mut State,
        kind: QueueKind,
        message: Arc<Message>,
    ) -> Result<(), RunError> {
        let capacity = self.config.queue_capacity;
        if !state.queues.push(kind, Arc::clone(&message), capacity) {
            let waiting = state.queues.len(kind);
            return Err(RunError::QueueFull { waiting });
        }
        self.tell_queues(state, QueueChange::Queued, vec![message]);
        Ok(())
    }

    /// Empties the queues; gives what was in them.
    pub(crate) fn give_back(&self, state: &mut State) -> Vec<Arc<Message>> {
        let messages = state.queues.drain();
        if !messages.is_empty() {
            self.tell_queues(state, QueueChange::GivenBack, messages.clone());
        }
        messages
    }

    /// Has the run that is going on, if any, tell what became of the queues.
    pub(crate) fn tell_queues(
        &self,
        state: &mut State,
        change: QueueChange,
        messages: Vec<Arc<Message>>,
    ) {
        if let Some(run) = &mut state.run {
            let waiting = (
                state.queues.peek(QueueKind::Steering),
                state.queues.peek(QueueKind::FollowUp),
            );
            let facts = Facts {
                env: &*self.env,
                tools: &Offered::default(),
                model: state.settings.model.info(),
            };
            let changed = Input::QueueChanged {
                change,
                messages,
                waiting,
            };
            run.handle(changed, &facts);
            self.queues_changed.notify_one();
        }
    }

    /// Goes on from the history.
    pub(crate) fn begin_continue(
        &self,
        waiter: oneshot::Sender<Outcome>,
        ticket: u64,
        aborted: bool,
    ) -> Result<RunId, RunError> {
        let mut state = self.lock();
        if state.closed {
            return Err(RunError::Closed);
        }
        if state.run.is_some() {
            return Err(RunError::Busy);
        }
        let good_end = match state.history.last().map(|m| &**m) {
            None => Some("the history is empty and nothing is queued"),
            Some(Message::Assistant(m)) if !m.is_broken() && !m.has_tool_calls() => {
                Some("the history ends with an answer and nothing is queued")
            }
            Some(_) => None,
        };
        let mut messages = Vec::new();
        if let Some(why) = good_end {
            // Steering goes along with every beginning; follow-ups only when there is none.
            if state.queues.len(QueueKind::Steering) == 0 {
                let mode = mode_of(&self.config, QueueKind::FollowUp);
                messages = state.queues.take(QueueKind::FollowUp, mode);
                if messages.is_empty() {
                    return Err(RunError::NothingToContinue(why));
                }
            }
        }
        let id = RunId::new(self.env.new_id(IdKind::Run));
        let begin = Begin {
            id: id.clone(),
            ticket,
            delivered: messages.clone(),
            messages,
            waiter: Some(waiter),
            output: None,
            aborted,
            asked_in: tracing::Span::current(),
        };
        self.start(&mut state, begin);
        Ok(id)
    }

    /// Begins a run: from here on its messages are in the history.
    fn start(&self, state: &mut State, begin: Begin) {
        let Begin {
            id,
            ticket,
            messages,
            waiter,
            output,
            mut delivered,
            aborted,
            asked_in,
        } = begin;
        let steering = mode_of(&self.config, QueueKind::Steering);
        // What was left over came before.
        let mut entering = state.queues.take(QueueKind::Steering, steering);
        delivered.splice(0..0, entering.iter().cloned());
        entering.extend(messages);
        let rules = RunRules {
            config: Arc::clone(&self.config),
            judge_turns: self.hooks.any_at(HookPoint::ShouldStopAfterTurn),
            prepare_turns: self.hooks.any_at(HookPoint::PrepareNextTurn),
            journal: self.journal.is_some(),
            wants_output: output.is_some(),
            output_tool: output.as_ref().and_then(|o| o.tool_name()),
            session_tokens: tokens(&state.usage, &state.tool_usage),
            session_cost: state.cost.map_or(0.0, |c| c.total()),
        };
        let mut run = Run::new(id, rules, state.history.clone(), state.shown.clone());
        state.error_message = None;
        let facts = Facts {
            env: &*self.env,
            tools: &Offered::default(),
            model: state.settings.model.info(),
        };
        let open = std::mem::take(&mut state.open_calls);
        if !open.is_empty() {
            // The calls that are open come first; what was sent steers.
            delivered.clear();
            state.queues.put_back(std::mem::take(&mut entering));
        }
        let waiting = (
            state.queues.peek(QueueKind::Steering),
            state.queues.peek(QueueKind::FollowUp),
        );
        if !(delivered.is_empty() && waiting.0.is_empty() && waiting.1.is_empty()) {
            let change = if delivered.is_empty() {
                QueueChange::Waiting
            } else {
                QueueChange::Delivered
            };
            let changed = Input::QueueChanged {
                change,
                messages: delivered,
                waiting,
            };
            run.handle(changed, &facts);
        }
        if open.is_empty() {
            run.handle(Input::Start(entering), &facts);
        } else {
            run.handle(Input::Resume(open), &facts);
        }
        let cancel = self.root.child();
        if aborted {
            cancel.cancel();
        }
        state.active = Some(Active {
            ticket,
            cancel,
            waiter,
            output,
            asked_in: Some(asked_in),
        });
        state.run = Some(run);
    }

    /// Takes a run that has ended off, gives its outcome out. True when another one begins.
    pub(crate) fn finish_run(&self) -> bool {
        let mut state = self.lock();
        let Some(run) = state.run.take() else {
            return false;
        };
        let active = state.active.take();
        state.history = run.history().clone();
        state.shown = run.compacted().cloned();
        if run.outcome().is_none() {
            for result in unanswered(&state.history, self.env.now()) {
                if let Some(shown) = &mut state.shown {
                    shown.push(Arc::clone(&result));
                }
                state.history.push(result);
            }
        }
        state.usage.add(&run.usage());
        state.tool_usage.add(&run.tool_usage());
        for cost in run.cost().iter().chain(&run.tool_cost()) {
            add_cost(&mut state.cost, cost);
        }
        let outcome = run.outcome().unwrap_or_else(|| broken(&run));
        state.error_message = outcome.end.problem();
        let again = state.aborted.pop_front().or_else(|| state.next.take());
        let goes_on = again.is_some();
        if let Some(begin) = again {
            self.start(&mut state, begin);
        }
        match active.and_then(|a| a.waiter) {
            Some(waiter) => {
                // Whoever waited and went away has aborted the run; nobody wants its outcome.
                drop(state);
                let _ = waiter.send(outcome);
            }
            None => {
                state.outcomes.push_back(outcome);
                drop(state);
            }
        }
        self.outcomes_changed.notify_waiters();
        self.idle.notify_waiters();
        goes_on
    }

    /// The journal, for a run: a reset may still be writing what it did. An abort waits for that
    /// as long as its grace period.
    pub(crate) async fn writes_within_grace(
        &self,
        cancel: &CancelToken,
    ) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        self.journal.as_ref()?;
        let over = async {
            cancel.cancelled().await;
            self.env.sleep(self.config.grace).await;
        };
        tokio::select! {
            biased;
            writes = self.writes.lock() => Some(writes),
            () = over => None,
        }
    }

    /// Nothing more is written: the session can be opened again.
    pub(crate) fn close_journal(&self) {
        if let Some(journal) = &self.journal {
            journal.close();
        }
    }

    /// Ends the run of that ticket, wherever it is. What others sent to it stays.
    pub(crate) fn give_up(&self, ticket: u64) {
        let mut state = self.lock();
        if let Some(next) = state.next.as_mut().filter(|n| n.ticket == ticket) {
            // Its own message came first. What others sent since then begins a run all the same,
            // under the id that they were given.
            next.messages.remove(0);
            next.waiter = None;
            next.output = None;
            if next.messages.is_empty() {
                state.next = None;
            }
        } else if state.aborted.iter().any(|a| a.ticket == ticket) {
            state.aborted.retain(|a| a.ticket != ticket);
        } else if let Some(active) = state.active.as_ref().filter(|a| a.ticket == ticket) {
            active.cancel.cancel();
        }
    }
}

/// Results of the calls that a driver left behind: a call in the history has a result.
fn unanswered(history: &History, now: Timestamp) -> Vec<Arc<Message>> {
    let safe = without_open_calls(history, history.len());
    let open = history.get(safe).and_then(|m| m.as_assistant());
    let answered = history.len() - safe;
    open.filter(|_| answered > 0)
        .into_iter()
        .flat_map(|m| m.tool_calls().skip(answered - 1))
        .map(|call| {
            let mut result = OpenCall::unknown(call.id.clone(), call.name.clone());
            result.timestamp = now;
            Arc::new(Message::ToolResult(result))
        })
        .collect()
}

fn broken(run: &Run) -> Outcome {
    let said = "the task that drove it was ended, as when the runtime shuts down";
    Outcome {
        run_id: run.id().clone(),
        text: String::new(),
        end: EndReason::Failed(Failure::Internal(said.to_owned())),
        stop_reason: yiem_core::StopReason::Error,
        usage: run.usage(),
        tool_usage: run.tool_usage(),
        cost: run.cost(),
        tool_cost: run.tool_cost(),
        turns: run.turn(),
        tool_calls: 0,
        transcript: run.history().clone(),
        output: None,
        first_message: run.history().len(),
    }
}

impl State {
    pub(crate) fn new(settings: Settings, session_id: SessionId, history: History) -> Self {
        Self {
            run: None,
            active: None,
            history,
            shown: None,
            queues: Queues::default(),
            next: None,
            aborted: VecDeque::new(),
            closed: false,
            outcomes: VecDeque::new(),
            settings,
            session_id,
            open_calls: Vec::new(),
            memo: Memo::new(),
            error_message: None,
            usage: Usage::UNKNOWN,
            tool_usage: Usage::UNKNOWN,
            cost: None,
            tickets: 0,
            before_runs: CancelToken::new(),
            offering: None,
            hidden: BTreeSet::new(),
            answering: None,
        }
    }

    pub(crate) fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Everything that was said, also while a run goes on.
    pub(crate) fn current_history(&self) -> &History {
        self.run.as_ref().map_or(&self.history, Run::history)
    }
}

/// What a run has to know of the world.
pub(crate) struct Facts<'a> {
    pub(crate) env: &'a dyn Env,
    pub(crate) tools: &'a Offered,
    pub(crate) model: &'a ModelInfo,
}

impl RunFacts for Facts<'_> {
    fn now(&self) -> Timestamp {
        self.env.now()
    }
    fn new_call_id(&self) -> ToolCallId {
        ToolCallId::new(self.env.new_id(IdKind::Call))
    }
    fn random(&self) -> f64 {
        self.env.random()
    }
    fn parallel(&self, tool: &str) -> Option<bool> {
        self.tools.get(tool)?.definition().parallel
    }
    fn model(&self) -> &ModelInfo {
        self.model
    }
}
