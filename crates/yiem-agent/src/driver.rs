//! The one task that drives a run: does what the pure run asks for, and tells it what happened.
//!
//! Knows: how each step is done, and what is dropped when the run is cut. Does not know: why a
//! step comes next; the run does.
//!
//! What a cut does at each await:
//! - in a sink or the journal: what was asked for is dropped at once (the model's stream), the
//!   sink may go on until the grace period is over, then it is left behind;
//! - in a hook, a compaction or a backoff: it is dropped;
//! - in the model's stream: it is dropped, which ends the request;
//! - in tools: those that run may go on until the grace period is over, then they are dropped.

mod model_call;
mod turn_hooks;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::futures::OwnedNotified;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::Instrument;
use yiem_core::{
    BoxFuture, CancelReason, CancelToken, ChatModel, ChatStream, History, Replay, ToolOutput, Usage,
};

use crate::event::{AgentEvent, EventKind, RejectReason};
use crate::hook::HookPoint;
use crate::journal::{self, JournalError, JournalRecord, OUTCOME_UNKNOWN};
use crate::offered::Offered;
use crate::outcome::{EndReason, Failure, Limit};
use crate::pipeline::{
    CallMessage, CallProgress, PreparedToolCall, TurnEnv, Waits, caught, execute, prepare,
};
use crate::queue::QueueKind;
use crate::run::{AnswerCheck, Input, Step, mode_of};
use crate::shared::{Facts, Shared};
use crate::sink::{Listener, call_plain};

use model_call::Ready;

/// How often in a row the driver takes what is at hand before it looks at everything.
const LOOKS: u32 = 32;

/// How many messages of calls wait for the driver; a call that tells more waits.
const CALL_MESSAGES: usize = 64;

/// What is told of a journal that hangs when the run is cut.
const JOURNAL_SILENT: &str = "the session's journal did not answer within the grace period after \
the run was cut; its last records may be missing";

/// Drives run after run until none is left to begin.
pub(crate) async fn drive(shared: Arc<Shared>) {
    let guard = Guard(&shared);
    loop {
        let Some(driver) = Driver::new(&shared) else {
            break;
        };
        let cancel = driver.cancel.clone();
        let writes = shared.writes_within_grace(&cancel).await;
        driver.run().await;
        drop(writes);
        if !shared.finish_run() {
            break;
        }
    }
    std::mem::forget(guard);
}

/// Leaves no run behind that nobody drives: when the driver's task is ended (a runtime that
/// shuts down, a fault), the run's outcome says so.
struct Guard<'a>(&'a Arc<Shared>);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.next = None;
        state.aborted.clear();
        drop(state);
        self.0.finish_run();
    }
}

/// What a hook, or another piece of work that the run waits for, came to.
enum Work {
    Input(Box<Input>),
    /// What a compaction spent, and what it came to.
    Compacted(Box<(Usage, Result<History, String>)>),
    Request(Result<Box<Ready>, Failure>),
    Prepared(usize, PreparedToolCall),
}

/// What the driver can wake up for.
enum Happening {
    Cut,
    /// There is something to tell of the queues.
    Queues,
    Call(CallMessage),
    Work(Work),
    Model(Input),
    Timer,
    GraceOver,
}

struct Driver {
    shared: Arc<Shared>,
    cancel: CancelToken,
    cancelled: Pin<Box<dyn Future<Output = ()> + Send>>,
    queues_changed: Pin<Box<OwnedNotified>>,
    model: Arc<dyn ChatModel>,
    tools: Offered,
    turn: Option<Arc<TurnEnv>>,
    stream: Option<ChatStream>,
    work: Option<BoxFuture<'static, Work>>,
    timer: Option<BoxFuture<'static, ()>>,
    wall: Option<(Duration, BoxFuture<'static, ()>)>,
    grace: Option<BoxFuture<'static, ()>>,
    grace_over: bool,
    cut: bool,
    looks: u32,
    calls: JoinSet<()>,
    tell: mpsc::Sender<CallMessage>,
    told: mpsc::Receiver<CallMessage>,
    prepared: Vec<Option<PreparedToolCall>>,
    journal_silent: bool,
    /// How many calls were accepted, for those that calls make.
    accepted: Arc<AtomicU32>,
    /// What calls came to, before their hooks: kept in case a hook hangs.
    executed: Vec<Arc<OnceLock<ToolOutput>>>,
    spans: crate::telemetry::RunSpans,
}

impl Driver {
    fn new(shared: &Arc<Shared>) -> Option<Self> {
        let state = shared.lock();
        let cancel = state.active.as_ref()?.cancel.clone();
        let model = Arc::clone(&state.settings.model);
        let run = state.run.as_ref()?;
        let run_id = run.id().clone();
        // Calls of a session that goes on are run before any model call says what is offered.
        let resumes = run.batch_len() > 0;
        let session_id = state.session_id.clone();
        drop(state);
        let tools = if resumes {
            Offered::new(shared.catalog.all(), None, None)
        } else {
            Offered::default()
        };
        let (tell, told) = mpsc::channel(CALL_MESSAGES);
        let wall = shared
            .config
            .limits
            .wall_time
            .map(|max| (max, shared.env.sleep(max)));
        Some(Self {
            spans: crate::telemetry::RunSpans::new(&shared.name, &run_id, &session_id),
            shared: Arc::clone(shared),
            cancelled: Box::pin(cancel.cancelled_owned()),
            queues_changed: Box::pin(Arc::clone(&shared.queues_changed).notified_owned()),
            cancel,
            model,
            tools,
            turn: None,
            stream: None,
            work: None,
            timer: None,
            wall,
            grace: None,
            grace_over: false,
            cut: false,
            looks: 0,
            calls: JoinSet::new(),
            tell,
            told,
            prepared: Vec::new(),
            journal_silent: false,
            accepted: Arc::default(),
            executed: Vec::new(),
        })
    }

    async fn run(mut self) {
        loop {
            while let Some(step) = self.next_step() {
                match step {
                    Step::Done => {
                        self.finish();
                        return;
                    }
                    Step::Emit(event) if self.is_told_at_once(&event) => self.tell_plain(&event),
                    Step::Emit(event) => self.emit(Arc::new(event)).await,
                    Step::Record(record) => self.write_down(Box::new(record)).await,
                    Step::Execute(index) => self.execute(index).await,
                    step => self.perform(step),
                }
                if !self.cut && self.cancel.is_cancelled() {
                    self.cut_now();
                }
            }
            if self.look().await {
                continue;
            }
            match self.happening().await {
                Happening::Cut => self.cut_now(),
                Happening::Call(message) => self.called(message),
                Happening::Queues => {}
                Happening::Work(work) => self.worked(work),
                Happening::Model(input) => self.model_said(input),
                Happening::Timer => {
                    self.timer = None;
                    self.handle(Input::Waited);
                }
                Happening::GraceOver => self.end_grace(),
            }
        }
    }

    fn finish(&mut self) {
        let state = self.shared.lock();
        let outcome = state.run.as_ref().and_then(crate::run::Run::outcome);
        drop(state);
        if let Some(outcome) = outcome {
            self.spans.run_ended(&outcome);
        }
    }

    fn next_step(&self) -> Option<Step> {
        self.shared.lock().run.as_mut()?.next_step()
    }

    fn handle(&self, input: Input) {
        let facts = Facts {
            env: &*self.shared.env,
            tools: &self.tools,
            model: self.model.info(),
        };
        if let Some(run) = &mut self.shared.lock().run {
            run.handle(input, &facts);
        }
    }

    /// Whether nobody has to be waited for: only plain listeners are told of the event.
    fn is_told_at_once(&self, event: &AgentEvent) -> bool {
        let shared = &self.shared;
        let waits = shared.has_sinks
            || !shared.subscribers.is_empty()
            || (shared.journal.is_some() && matches!(event.kind, EventKind::TurnEnd { .. }));
        !waits
    }

    fn tell_plain(&mut self, event: &AgentEvent) {
        self.spans.event(event);
        for listener in self.shared.listeners.iter() {
            if let Listener::Plain(listener) = listener {
                call_plain(&**listener, event);
            }
        }
    }

    /// Does a step that needs no waiting.
    fn perform(&mut self, step: Step) {
        match step {
            // The others are done where they are taken.
            Step::Emit(_) | Step::Record(_) | Step::Execute(_) | Step::Done => {}
            Step::CallModel { attempt } => self.call_model(attempt),
            Step::Wait(delay) => self.timer = Some(self.shared.env.sleep(delay)),
            Step::Compact { reason } => self.work = Some(self.compact(reason)),
            Step::Prepare(index) => self.prepare(index),
            Step::JudgeTurn => self.work = Some(self.judge_turn()),
            Step::PrepareNextTurn => self.work = Some(self.prepare_next_turn()),
            Step::CountQueues => {
                let mut state = self.shared.lock();
                let steering = state.queues.len(QueueKind::Steering);
                let follow_ups = state.queues.len(QueueKind::FollowUp);
                let facts = self.facts();
                if let Some(run) = &mut state.run {
                    run.handle(
                        Input::Waiting {
                            steering,
                            follow_ups,
                        },
                        &facts,
                    );
                }
            }
            Step::Take(kind) => {
                // Out of the queue and into the history in one step: nothing is ever nowhere.
                let mut state = self.shared.lock();
                let taken = state.queues.take(kind, mode_of(&self.shared.config, kind));
                if !taken.is_empty() {
                    let delivered = crate::event::QueueChange::Delivered;
                    self.shared
                        .tell_queues(&mut state, delivered, taken.clone());
                }
                let facts = self.facts();
                if let Some(run) = &mut state.run {
                    run.handle(Input::Taken(taken), &facts);
                }
            }
            Step::CheckAnswer => self.check_answer(),
        }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            env: &*self.shared.env,
            tools: &self.tools,
            model: self.model.info(),
        }
    }

    // ---- waiting ----

    /// Most work that a run waits for is done at the first look, and most pieces of a reply are
    /// there already; then nothing else has to be looked at. Whether it was so.
    async fn look(&mut self) -> bool {
        self.looks = self.looks.wrapping_add(1);
        // Now and then everything is looked at: a reply that never pauses may run into a limit.
        if self.cut || self.cancel.is_cancelled() || self.looks.is_multiple_of(LOOKS) {
            return false;
        }
        if let Some(work) = &mut self.work {
            let first = std::future::poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
            if let Poll::Ready(work) = first {
                self.work = None;
                self.worked(work);
                return true;
            }
        } else if let Some(stream) = &mut self.stream {
            let first =
                std::future::poll_fn(|cx| Poll::Ready(model_call::poll_reply(stream, cx))).await;
            if let Poll::Ready(input) = first {
                self.model_said(input);
                return true;
            }
        }
        false
    }

    async fn happening(&mut self) -> Happening {
        let streaming = self.stream.is_some();
        tokio::select! {
            biased;
            () = &mut self.cancelled, if !self.cut => Happening::Cut,
            // The driver holds a sender itself: this never ends.
            Some(message) = self.told.recv(), if !streaming => Happening::Call(message),
            work = pending_or(self.work.as_mut()), if self.work.is_some() => {
                self.work = None;
                Happening::Work(work)
            }
            input = model_call::next_event(&mut self.stream), if streaming => {
                Happening::Model(input)
            }
            () = &mut self.queues_changed => {
                let changed = Arc::clone(&self.shared.queues_changed);
                self.queues_changed = Box::pin(changed.notified_owned());
                Happening::Queues
            }
            () = pending_or(self.timer.as_mut()), if self.timer.is_some() => Happening::Timer,
            () = pending_or(self.grace.as_mut()), if self.grace.is_some() => Happening::GraceOver,
            () = wall_over(&mut self.wall), if !self.cut => {
                self.cancel.cancel_because(CancelReason::TimedOut);
                Happening::Cut
            }
        }
    }

    /// Waits for an effect (a sink, the journal) beside the abort signal: it is never in its
    /// way, and when the grace period is over it is left behind.
    async fn effect<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        if let Poll::Ready(done) =
            std::future::poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await
        {
            return Some(done);
        }
        loop {
            if self.grace_over {
                return None;
            }
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = &mut self.cancelled, if !self.cut && self.grace.is_none() => self.let_go(),
                () = wall_over(&mut self.wall), if !self.cut && self.grace.is_none() => {
                    self.cancel.cancel_because(CancelReason::TimedOut);
                    self.let_go();
                }
                () = pending_or(self.grace.as_mut()), if self.grace.is_some() => {
                    self.grace = None;
                    self.grace_over = true;
                }
            }
        }
    }

    /// The run is to be cut: what was asked for is dropped, the grace period begins.
    fn let_go(&mut self) {
        self.stream = None;
        self.work = None;
        self.timer = None;
        if self.grace.is_none() && !self.grace_over {
            self.grace = Some(self.shared.env.sleep(self.shared.config.grace));
        }
    }

    fn cut_now(&mut self) {
        self.cut_because(match self.cancel.reason() {
            Some(CancelReason::TimedOut) => {
                let max = self.wall.as_ref().map(|(max, _)| *max).unwrap_or_default();
                EndReason::Limit(Limit::WallTime { max })
            }
            _ => EndReason::Aborted,
        });
    }

    fn cut_because(&mut self, reason: EndReason) {
        self.cut = true;
        // Hooks, models and tools hear of it, whatever the reason.
        self.cancel.cancel();
        self.let_go();
        // What calls have told already comes before what is told of their end.
        self.drain_calls();
        self.handle(Input::Cut(reason));
        if self.grace_over {
            self.end_grace();
        }
    }

    /// The grace period is over: what still runs is dropped and answered.
    fn end_grace(&mut self) {
        self.grace = None;
        self.grace_over = true;
        self.drain_calls();
        self.calls.abort_all();
        for (call, executed) in self.executed.iter().enumerate() {
            // The call itself had ended; only its hooks hang.
            if let Some(output) = executed.get() {
                self.handle(Input::Settled {
                    call,
                    output: Box::new(output.clone()),
                });
            }
        }
        self.handle(Input::GraceOver);
    }

    // ---- effects ----

    /// Tells an event to everybody, and waits for those who want to be waited for.
    async fn emit(&mut self, event: Arc<AgentEvent>) {
        self.spans.event(&event);
        let listeners = Arc::clone(&self.shared.listeners);
        self.shared.subscribers.publish(&event);
        for listener in &*listeners {
            match listener {
                Listener::Plain(listener) => call_plain(&**listener, &event),
                Listener::Sink(sink) => {
                    let cancel = self.cancel.clone();
                    let told = caught(|| sink.on_event(&event, &cancel));
                    match self.effect(told).await {
                        Some(Ok(())) => {}
                        Some(Err(said)) => {
                            tracing::error!(
                                seq = event.seq,
                                said,
                                "a sink panicked; the run goes on"
                            );
                        }
                        None => tracing::warn!(
                            seq = event.seq,
                            "a sink did not take an event within the grace period after an abort"
                        ),
                    }
                }
            }
        }
        if matches!(event.kind, EventKind::TurnEnd { .. }) {
            self.flush_journal().await;
        }
    }

    async fn write_down(&mut self, record: Box<JournalRecord>) {
        let Some(journal) = self.shared.journal.clone() else {
            return;
        };
        let done = self.effect(journal::append(&*journal, &record)).await;
        self.journal_answered(done);
    }

    async fn flush_journal(&mut self) {
        let Some(journal) = self.shared.journal.clone() else {
            return;
        };
        let done = self.effect(journal::flush(&*journal)).await;
        self.journal_answered(done);
    }

    fn journal_answered(&mut self, done: Option<Result<(), JournalError>>) {
        match done {
            Some(Ok(())) => {}
            Some(Err(error)) => self.journal_failed(error.to_string()),
            // The run ends by what cut it; that its record may be missing is told beside it.
            None if std::mem::replace(&mut self.journal_silent, true) => {}
            None => self.handle(Input::Warned(JOURNAL_SILENT.into())),
        }
    }

    fn journal_failed(&mut self, message: String) {
        tracing::error!(error = message, "the journal could not be written");
        if !self.cut {
            self.cut_because(EndReason::Failed(Failure::Journal(message)));
        }
    }

    // ---- calls ----

    /// What the calls of the turn have in common; made when the first is prepared.
    fn turn_env(&mut self) -> Option<Arc<TurnEnv>> {
        if let Some(turn) = &self.turn {
            return Some(Arc::clone(turn));
        }
        // What the application says is asked without the lock: it may look at the agent.
        let trace = self.trace();
        let state = self.shared.lock();
        let run = state.run.as_ref()?;
        let calls = run.batch_len();
        let turn = Arc::new(TurnEnv {
            hooks: self.shared.hooks.clone(),
            tools: self.tools.clone(),
            env: Arc::clone(&self.shared.env),
            deps: self.shared.deps.clone(),
            config: Arc::clone(&self.shared.config),
            session_id: state.session_id.clone(),
            run_id: run.id().clone(),
            turn: run.turn(),
            reply: run.reply().cloned()?,
            history: run.history().clone(),
            cancel: self.cancel.clone(),
            approvals: Arc::clone(&self.shared.approvals),
            tell: self.tell.clone(),
            trace,
            span: self.spans.run(),
            waits: Waits::default(),
            accepted: Arc::clone(&self.accepted),
        });
        drop(state);
        self.prepared.clear();
        self.prepared.resize_with(calls, || None);
        self.executed.clear();
        if self.shared.hooks.any_at(HookPoint::AfterToolCall) {
            self.executed.resize_with(calls, Arc::default);
        }
        self.turn = Some(Arc::clone(&turn));
        Some(turn)
    }

    fn prepare(&mut self, index: usize) {
        let Some(turn) = self.turn_env() else { return };
        let state = self.shared.lock();
        let known = state.run.as_ref().and_then(|run| {
            let (call, name) = run.called(index)?;
            Some((Arc::clone(call), Arc::clone(name), run.begun_before(index)))
        });
        drop(state);
        let Some((call, name, begun)) = known else {
            return;
        };
        if begun
            && turn
                .tools
                .get(&call.name)
                .is_none_or(|t| t.definition().replay != Replay::Safe)
        {
            return self.handle(Input::Rejected {
                call: index,
                reason: RejectReason::OutcomeUnknown,
                output: Box::new(ToolOutput::text(OUTCOME_UNKNOWN)),
            });
        }
        self.work = Some(Box::pin(async move {
            match prepare(&turn, index, call, name, None).await {
                Ok(prepared) => Work::Prepared(index, prepared),
                Err(rejection) => Work::Input(Box::new(Input::Rejected {
                    call: index,
                    reason: rejection.reason,
                    output: Box::new(rejection.output),
                })),
            }
        }));
    }

    fn worked(&mut self, work: Work) {
        // What was told on the way comes first.
        self.drain_calls();
        match work {
            Work::Input(input) => self.handle(*input),
            Work::Compacted(compacted) => {
                let (spent, shown) = *compacted;
                self.handle(Input::Spent(spent));
                self.handle(Input::Compacted(shown));
            }
            Work::Request(Ok(ready)) => self.request_ready(*ready),
            Work::Request(Err(failure)) => self.handle(Input::RequestFailed(failure)),
            Work::Prepared(index, prepared) => {
                let args = Arc::clone(prepared.args.shared());
                self.accepted.fetch_add(1, Ordering::Relaxed);
                if let Some(slot) = self.prepared.get_mut(index) {
                    *slot = Some(prepared);
                }
                self.handle(Input::Prepared { call: index, args });
            }
        }
    }

    async fn execute(&mut self, index: usize) {
        let prepared = self.prepared.get_mut(index).and_then(Option::take);
        let (Some(turn), Some(prepared)) = (self.turn.clone(), prepared) else {
            return;
        };
        let lone = self.prepared.len() == 1;
        let blocking = prepared.tool.definition().blocking;
        let executed = self.executed.get(index).cloned();
        let progress = Arc::new(CallProgress::new(index, self.tell.clone()));
        let context = turn.context(index, &prepared, Arc::clone(&progress), 0);
        let span = self.spans.call(&prepared);
        let within = span.shown();
        let mut work: BoxFuture<'static, Box<ToolOutput>> = Box::pin(async move {
            let output = execute(&turn, index, &prepared, context, executed.as_deref()).await;
            if let Some(left) = progress.close() {
                // The last that it told of its progress is delivered before its end.
                Box::pin(progress.deliver(left)).await;
            }
            span.ended(&output);
            output
        });
        if let Some(span) = within {
            work = Box::pin(work.instrument(span));
        }
        if lone && !blocking {
            // Most lone calls are done at the first look, and need no task.
            let first = std::future::poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
            if let Poll::Ready(output) = first {
                self.drain_calls();
                return self.handle(Input::Settled {
                    call: index,
                    output,
                });
            }
        }
        while self.calls.try_join_next().is_some() {}
        let tell = self.tell.clone();
        let task = async move {
            let output = work.await;
            let _ = tell
                .send(CallMessage::Settled {
                    call: index,
                    output,
                })
                .await;
        };
        if blocking {
            let runtime = tokio::runtime::Handle::current();
            self.calls.spawn_blocking(move || runtime.block_on(task));
        } else {
            self.calls.spawn(task);
        }
    }

    fn called(&mut self, message: CallMessage) {
        self.handle(match message {
            CallMessage::Update { call, partial } => Input::Updated { call, partial },
            CallMessage::Told { call, kind } => Input::Told { call, kind },
            CallMessage::Settled { call, output } => Input::Settled { call, output },
        });
    }

    fn drain_calls(&mut self) {
        while let Ok(message) = self.told.try_recv() {
            self.called(message);
        }
    }

    // ---- the answer's shape ----

    fn check_answer(&mut self) {
        let state = self.shared.lock();
        let spec = state.active.as_ref().and_then(|a| a.output.clone());
        let run = state.run.as_ref();
        let text = run.map(crate::run::Run::answer_text).unwrap_or_default();
        let answer = run.map(|run| run.answer().clone()).unwrap_or_default();
        drop(state);
        let check = match spec {
            None => AnswerCheck::Good(serde_json::Value::String(text)),
            Some(spec) => spec.check(&text, &answer),
        };
        self.handle(Input::AnswerChecked(check));
    }
}

async fn pending_or<T>(work: Option<&mut BoxFuture<'static, T>>) -> T {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

async fn wall_over(wall: &mut Option<(Duration, BoxFuture<'static, ()>)>) {
    match wall {
        Some((_, over)) => over.await,
        None => std::future::pending().await,
    }
}
