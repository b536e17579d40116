//! The handle that an application holds (R "Agent API", R-6, R-7).
//!
//! Knows: what can be asked of an agent from outside. Does not know: how a run goes on.

mod as_tool;
mod input;
mod prompt;
mod prompt_stream;
mod state;
mod typed;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{MutexGuard, oneshot};
use tokio::task::JoinSet;
use yiem_core::{CancelReason, History, Message, RunId, SessionId, Tool};
use yiem_tools::{RegisterError, SourceStatus, ToolCatalog};

use crate::approval::{ApprovalAnswer, ApprovalRequest};
use crate::compaction::without_open_calls;
use crate::config::AgentConfig;
use crate::driver::drive;
use crate::error::RunError;
use crate::hook::PrepareNextTurn;
use crate::journal::{self, JournalRecord};
use crate::outcome::Outcome;
use crate::queue::QueueKind;
use crate::shared::{Begun, Shared, WhenBusy};
use crate::sink::{Listener, Subscription};

pub use as_tool::AgentTool;
pub use input::IntoMessage;
pub use prompt::{Prompt, PromptFuture};
pub use prompt_stream::PromptStream;
pub use state::AgentState;
pub use typed::{Typed, TypedPrompt};

/// An agent: a model, tools, a conversation. Cheap to clone; all clones are one agent.
///
/// Dropping the last clone ends everything that the agent started, at once. `stop` does it
/// politely.
#[derive(Clone)]
#[doc(alias = "yiemAgent")]
pub struct Agent(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    /// Every task that the agent started: drivers and sources. Dropping it ends them.
    tasks: Mutex<JoinSet<()>>,
    sources_started: AtomicBool,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.root.cancel_because(CancelReason::Stopped);
        self.shared.subscribers.close();
        self.shared.close_journal();
    }
}

/// Does not keep its agent alive; for hooks and tools that reach it.
#[derive(Clone)]
pub struct WeakAgent(Weak<Handle>);

impl WeakAgent {
    /// The agent, if it is still there.
    #[must_use]
    pub fn upgrade(&self) -> Option<Agent> {
        self.0.upgrade().map(Agent)
    }
}

impl fmt::Debug for WeakAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakAgent").finish_non_exhaustive()
    }
}

/// What `stop` gives back.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stopped {
    /// The messages that were queued and not delivered: steering first, then follow-ups, each
    /// in its order.
    pub undelivered: Vec<Arc<Message>>,
    /// Whether the run that was going on came to its own end within the deadline; true when
    /// there was none.
    pub in_time: bool,
}

impl Agent {
    pub(crate) fn of(shared: Shared) -> Self {
        let agent = Self(Arc::new(Handle {
            shared: Arc::new(shared),
            tasks: Mutex::new(JoinSet::new()),
            sources_started: AtomicBool::new(false),
        }));
        if tokio::runtime::Handle::try_current().is_ok() {
            agent.start_sources();
        }
        agent
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Sources connect in the background; once, where a runtime is running.
    fn start_sources(&self) {
        let shared = self.shared();
        if !shared.has_sources || self.0.sources_started.swap(true, Ordering::AcqRel) {
            return;
        }
        for task in shared.catalog.source_tasks(&shared.env) {
            self.spawn(task);
        }
    }

    fn begun(&self, begun: Begun) -> RunId {
        match begun {
            Begun::Now(id) => {
                self.start_sources();
                // In a box, so that a driver that is done leaves no room taken behind.
                self.spawn(Box::pin(drive(Arc::clone(self.shared()))));
                id
            }
            Begun::Later(id) => id,
        }
    }

    // ---- talking to it ----

    /// Sends a message (R `runAgent`): begins a run when the agent is idle, steers the run that
    /// is going on when it is busy. Gives the id of the run that has or will have it; its
    /// outcome comes by [`take_response`](Self::take_response).
    ///
    /// Steering is delivered after the batch that is running, before the next model call. After
    /// an abort it begins the next run.
    ///
    /// # Errors
    /// The agent was stopped, the message is empty, too many wait, or no runtime is running.
    #[doc(alias = "runAgent")]
    #[doc(alias = "run_agent")]
    pub fn run(&self, message: impl IntoMessage) -> Result<RunId, RunError> {
        runtime()?;
        let message = input::accepted(message, &*self.shared().env)?;
        let begun = self
            .shared()
            .begin(vec![message], WhenBusy::Steer, None, None, None, false)?;
        Ok(self.begun(begun))
    }

    /// The same as [`run`](Self::run), for who wants to say that a run is going on.
    ///
    /// # Errors
    /// As for `run`.
    pub fn steer(&self, message: impl IntoMessage) -> Result<RunId, RunError> {
        self.run(message)
    }

    /// Queues a message for when the run would otherwise end (R `followUp`). While the agent is
    /// idle it waits for the next run, or for [`continue_run`](Self::continue_run).
    ///
    /// # Errors
    /// The agent was stopped, the message is empty, or too many wait.
    #[doc(alias = "followUp")]
    pub fn follow_up(&self, message: impl IntoMessage) -> Result<(), RunError> {
        let message = input::accepted(message, &*self.shared().env)?;
        let mut state = self.shared().lock();
        if state.closed {
            return Err(RunError::Closed);
        }
        self.shared()
            .queue(&mut state, QueueKind::FollowUp, message)
    }

    /// Sends a message and gives the outcome of its run.
    ///
    /// Nothing happens before it is awaited. Dropping the future aborts the run, or keeps it from
    /// beginning; what was sent to it by [`run`](Self::run) before it began has a run all the same,
    /// whose outcome [`take_response`](Self::take_response) gives. The prompt's own outcome is
    /// not given to [`take_response`](Self::take_response). After [`abort`](Self::abort) it
    /// waits for the aborted run to wind down, and then begins.
    ///
    /// The future is `Err` only when no run could be started: busy, stopped, an empty message.
    /// A model failure, an abort or a limit is an outcome that says so.
    pub fn prompt(&self, message: impl IntoMessage) -> Prompt {
        Prompt::new(self.clone(), message)
    }

    /// Goes on from a history that does not end with a good answer: after an error, an abort or
    /// a limit. After a good answer it delivers what is queued.
    ///
    /// # Errors
    /// There is nothing to go on from, a run is going on, or the agent was stopped.
    pub async fn continue_run(&self) -> Result<Outcome, RunError> {
        runtime()?;
        let shared = self.shared();
        let abort = shared.lock().before_runs.clone();
        let finding = self.find_tools_of_open_calls();
        shared
            .root
            .run_until_cancelled(abort.run_until_cancelled(finding))
            .await
            .ok_or(RunError::Closed)?;
        let (waiter, outcome) = oneshot::channel();
        let ticket = shared.lock().ticket();
        let id = shared.begin_continue(waiter, ticket, abort.is_cancelled())?;
        self.begun(Begun::Now(id));
        prompt::awaited(self, ticket, outcome).await
    }

    /// Takes the next outcome (R `takeResponse`): exactly one per run, errors and aborts
    /// included, in the order in which the runs ended. Waits while there is none. Runs that
    /// `prompt` waits for are not among them.
    ///
    /// May be dropped at any time; no outcome is lost.
    ///
    /// # Errors
    /// [`RunError::Closed`] after `stop`, when all have been taken.
    #[doc(alias = "takeResponse")]
    pub async fn take_response(&self) -> Result<Outcome, RunError> {
        loop {
            let changed = self.shared().outcomes_changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.shared().lock();
                if let Some(outcome) = state.outcomes.pop_front() {
                    return Ok(outcome);
                }
                if state.closed && state.run.is_none() {
                    return Err(RunError::Closed);
                }
            }
            changed.await;
        }
    }

    /// Waits until something is known of each tool source, without beginning a run: its tools where the
    /// discovery policy wants them at once or the source is required, whether it is there where the model
    /// asks for them first ([`Discovery::OnDemand`](yiem_tools::Discovery::OnDemand)), or why it failed (M-7).
    /// Gives how far each has got, in the order in which they were configured; at once when there are none.
    ///
    /// Nobody has to call this: sources connect in the background and hold up no run, unless they are
    /// required. It is for a program that wants to say first what works. It begins the connecting where
    /// the agent was built outside of a runtime, and each source has its own time limits; `stop` ends it. May
    /// be dropped at any time.
    pub async fn ready(&self) -> Vec<SourceStatus> {
        self.start_sources();
        let shared = self.shared();
        // What failed of those that are required stands in their status.
        let known = async {
            let _ = shared.catalog.ready(&shared.root).await;
            shared.catalog.settled().await;
        };
        // Of an agent that was stopped nothing more comes to be known.
        let stopped = std::pin::pin!(shared.root.cancelled());
        futures_util::future::select(std::pin::pin!(known), stopped).await;
        shared.catalog.sources()
    }

    /// A session that goes on with open calls needs the tools of its sources before its first
    /// model call (S-3). Bounded by the grace period; what is not there then is unknown.
    async fn find_tools_of_open_calls(&self) {
        let shared = self.shared();
        if !shared.has_sources || shared.lock().open_calls.is_empty() {
            return;
        }
        let load = std::pin::pin!(shared.catalog.load_all(&shared.root));
        futures_util::future::select(load, shared.env.sleep(shared.config.grace)).await;
    }

    // ---- ending it ----

    /// Aborts the run that is going on, and no other, and what waits for its sources to
    /// begin one. Does nothing while the agent is idle. What is queued stays queued.
    ///
    /// Returns at once; the run's outcome comes as for every run. Running tools may use up the
    /// grace period; a new prompt waits for them.
    pub fn abort(&self) {
        let mut state = self.shared().lock();
        let cancel = state.active.as_ref().map(|a| a.cancel.clone());
        let before = std::mem::take(&mut state.before_runs);
        drop(state);
        before.cancel();
        if let Some(cancel) = cancel {
            cancel.cancel();
        }
    }

    /// Stops the agent (R `stopAgent`): takes nothing more in, lets the run that is going on
    /// come to its end, aborts it after the deadline of the settings, lets sources go.
    ///
    /// What was queued and not delivered is given back. Dropping the future leaves the agent
    /// closed.
    #[doc(alias = "stopAgent")]
    pub async fn stop(&self) -> Stopped {
        self.stop_within(self.shared().config.stop_deadline).await
    }

    /// The same with another deadline.
    pub async fn stop_within(&self, deadline: Duration) -> Stopped {
        let shared = self.shared();
        let undelivered = {
            let mut state = shared.lock();
            state.closed = true;
            let mut left = shared.give_back(&mut state);
            let aborted = std::mem::take(&mut state.aborted);
            for next in aborted.into_iter().chain(state.next.take()) {
                left.extend(next.messages);
            }
            left
        };
        let in_time = {
            let idle = std::pin::pin!(self.wait_idle());
            let deadline = shared.env.sleep(deadline);
            match futures_util::future::select(idle, deadline).await {
                futures_util::future::Either::Left(_) => true,
                futures_util::future::Either::Right((_, idle)) => {
                    let cancel = shared.lock().active.as_ref().map(|a| a.cancel.clone());
                    if let Some(cancel) = cancel {
                        cancel.cancel_because(CancelReason::Stopped);
                    }
                    idle.await;
                    false
                }
            }
        };
        shared.outcomes_changed.notify_waiters();
        let close = std::pin::pin!(shared.catalog.close());
        let grace = shared.env.sleep(shared.config.grace);
        if let futures_util::future::Either::Right(_) =
            futures_util::future::select(close, grace).await
        {
            tracing::warn!("a tool source did not let go within the grace period");
        }
        shared.root.cancel_because(CancelReason::Stopped);
        shared.subscribers.close();
        shared.close_journal();
        Stopped {
            undelivered,
            in_time,
        }
    }

    /// Waits until no run is going on or about to begin: until the listeners have taken the
    /// last event. At once when the agent is idle. May be dropped at any time.
    pub async fn wait_idle(&self) {
        loop {
            let idle = self.shared().idle.notified();
            let mut idle = std::pin::pin!(idle);
            idle.as_mut().enable();
            if self.shared().lock().run.is_none() {
                return;
            }
            idle.await;
        }
    }

    /// The journal, for what is done between two runs: a run that begins meanwhile writes after it.
    async fn between_runs(&self) -> Result<Option<MutexGuard<'_, ()>>, RunError> {
        let shared = self.shared();
        if shared.lock().run.is_some() {
            return Err(RunError::Busy);
        }
        Ok(match &shared.journal {
            Some(_) => Some(shared.writes.lock().await),
            None => None,
        })
    }

    /// Forgets the conversation. Settings and tools stay; what was queued is given back.
    ///
    /// # Errors
    /// [`RunError::Busy`] while a run is going on; nothing is changed then.
    pub async fn reset(&self) -> Result<Vec<Arc<Message>>, RunError> {
        let _writes = self.between_runs().await?;
        let undelivered = {
            let mut state = self.shared().lock();
            if state.run.is_some() {
                return Err(RunError::Busy);
            }
            state.history = History::new();
            state.shown = None;
            state.open_calls.clear();
            state.memo = yiem_core::Memo::new();
            state.error_message = None;
            state.queues.drain()
        };
        if let Some(journal) = &self.shared().journal {
            let reset = JournalRecord::Reset;
            journal::append(&**journal, &reset)
                .await
                .map_err(|error| RunError::Journal {
                    message: error.to_string(),
                    outcome: None,
                })?;
        }
        Ok(undelivered)
    }

    /// Takes back what was said after the first `messages` messages; a call is never parted from
    /// its result, so that fewer may stay. What is queued stays queued. Gives how many stay.
    ///
    /// In a journal nothing is rewritten: the session is emptied and what stays is written again.
    ///
    /// # Errors
    /// [`RunError::Busy`] while a run is going on; nothing is changed then. The journal could not
    /// be written; the conversation itself is taken back then.
    pub async fn rewind(&self, messages: usize) -> Result<usize, RunError> {
        let _writes = self.between_runs().await?;
        let kept = {
            let mut state = self.shared().lock();
            if state.run.is_some() {
                return Err(RunError::Busy);
            }
            if messages >= state.history.len() {
                return Ok(state.history.len());
            }
            let kept = without_open_calls(&state.history, messages);
            let kept = state.history.truncated(kept);
            state.history = kept.clone();
            // What was shortened for the model may tell of what is taken back.
            state.shown = None;
            state.open_calls.clear();
            state.memo = yiem_core::Memo::new();
            state.error_message = None;
            kept
        };
        if let Some(journal) = &self.shared().journal {
            let records = std::iter::once(JournalRecord::Reset).chain(kept.iter().map(|message| {
                let message = Arc::clone(message);
                match *message {
                    Message::ToolResult(_) => JournalRecord::CallResult { message },
                    _ => JournalRecord::Message { message },
                }
            }));
            for record in records {
                let written = journal::append(&**journal, &record).await;
                written.map_err(|error| RunError::Journal {
                    message: error.to_string(),
                    outcome: None,
                })?;
            }
        }
        Ok(kept.len())
    }

    // ---- looking at it ----

    /// Everything about the agent at this moment (SP-020). Cheap: nothing of the history is
    /// copied.
    #[must_use]
    pub fn state(&self) -> AgentState {
        AgentState::of(self.shared())
    }

    /// Everything that was said so far.
    #[must_use]
    pub fn history(&self) -> History {
        self.shared().lock().current_history().clone()
    }

    /// Whether a run is going on.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.shared().lock().run.is_some()
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &AgentConfig {
        &self.shared().config
    }

    /// The conversation's id.
    #[must_use]
    pub fn session_id(&self) -> SessionId {
        self.shared().lock().session_id.clone()
    }

    /// The tools: to look at, and to add to while the agent lives; the next turn has them.
    #[must_use]
    pub fn tools(&self) -> &ToolCatalog {
        &self.shared().catalog
    }

    /// Adds a tool of one's own; the next turn has it.
    ///
    /// # Errors
    /// Its name is taken or cannot be offered, or a schema cannot be used.
    pub fn add_tool(&self, tool: impl Tool) -> Result<(), RegisterError> {
        self.shared().catalog.register(tool).map(drop)
    }

    /// A stream of events from now on that is never waited for.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        let subscription = self
            .shared()
            .subscribers
            .subscribe(self.shared().config.listener_buffer);
        if self.shared().root.is_cancelled() {
            self.shared().subscribers.close();
        }
        subscription
    }

    // ---- changing it ----

    /// Changes system prompt, model, options or the offered tools, from the next model call on.
    pub fn change(&self, change: PrepareNextTurn) {
        self.shared().lock().settings.apply(change);
    }

    /// Gives the conversation another id, from the next run on.
    pub fn set_session_id(&self, id: impl Into<SessionId>) {
        let id = id.into();
        let mut state = self.shared().lock();
        let mut options = (*state.settings.options).clone();
        options.session_id = Some(id.clone());
        state.settings.options = Arc::new(options);
        state.session_id = id;
    }

    // ---- queues ----

    /// The messages that wait in a queue, oldest first.
    #[must_use]
    pub fn queued(&self, kind: QueueKind) -> Vec<Arc<Message>> {
        self.shared().lock().queues.peek(kind)
    }

    /// Whether any message waits.
    #[must_use]
    pub fn has_queued_messages(&self) -> bool {
        let state = self.shared().lock();
        state.queues.len(QueueKind::Steering) + state.queues.len(QueueKind::FollowUp) > 0
    }

    /// Empties both queues; gives what was in them: steering first, then follow-ups.
    pub fn clear_queues(&self) -> Vec<Arc<Message>> {
        let mut state = self.shared().lock();
        self.shared().give_back(&mut state)
    }

    // ---- questions ----

    /// Answers a question that a hook put to a person, from any task; also one of an agent
    /// that this one asks. False when it is not open: unknown, answered, timed out, aborted.
    pub fn answer(&self, approval_id: &str, answer: ApprovalAnswer) -> bool {
        self.shared().approvals.answer(approval_id, answer)
    }

    /// The questions that are open, oldest first; those of agents that this one asks included.
    #[must_use]
    pub fn pending_approvals(&self) -> Vec<ApprovalRequest> {
        self.shared().approvals.list()
    }

    /// Another agent of the same model, tools, hooks, listeners and settings, with an empty
    /// conversation. It keeps no journal; questions to a person can be answered on either.
    #[must_use]
    pub fn fork(&self) -> Self {
        let shared = self.shared();
        Self::of(shared.fork(None, shared.config.grace, shared.deps.clone()))
    }

    /// A handle that does not keep the agent alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakAgent {
        WeakAgent(Arc::downgrade(&self.0))
    }

    /// What the agent is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared().name
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared().lock();
        f.debug_struct("Agent")
            .field("name", &self.shared().name)
            .field("running", &state.run.is_some())
            .field("messages", &state.current_history().len())
            .finish_non_exhaustive()
    }
}

fn runtime() -> Result<(), RunError> {
    tokio::runtime::Handle::try_current()
        .map(drop)
        .map_err(|_| RunError::NoRuntime)
}
