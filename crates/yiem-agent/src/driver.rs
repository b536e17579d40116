//! The one task that drives a run: does what the pure run asks for, and tells it what happened.
//!
//! Knows: what the run can wait for, and what is dropped when it is cut. Does not know: why a step
//! comes next; the run does. How the model is asked, calls are run and listeners told stands in
//! files of their own.
//!
//! What a cut does at each await:
//! - in a sink or the journal: what was asked for is dropped at once (the model's stream), the
//!   sink may go on until the grace period is over, then it is left behind;
//! - in a hook, a compaction or a backoff: it is dropped;
//! - in the model's stream: it is dropped, which ends the request;
//! - in tools: those that run may go on until the grace period is over, then they are dropped.

mod calls;
mod model_call;
mod telling;
mod turn_hooks;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::futures::OwnedNotified;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use yiem_core::{
    BoxFuture, CancelReason, CancelToken, ChatModel, ChatStream, History, ToolOutput, Usage,
};

use crate::offered::Offered;
use crate::outcome::{EndReason, Failure, Limit};
use crate::pipeline::{CallMessage, PreparedToolCall, TurnEnv, panic_text};
use crate::queue::QueueKind;
use crate::run::{AnswerCheck, Input, Step, mode_of};
use crate::shared::{Facts, Shared};

use model_call::Ready;

/// How often in a row the driver takes what is at hand before it looks at everything.
const LOOKS: u32 = 32;

/// How many messages of calls wait for the driver; a call that tells more waits.
const CALL_MESSAGES: usize = 64;

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
        let mut state = shared.lock();
        let active = state.active.as_mut()?;
        let (cancel, asked_in) = (active.cancel.clone(), active.asked_in.take());
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
            spans: crate::telemetry::RunSpans::new(
                asked_in.as_ref(),
                &shared.name,
                &run_id,
                &session_id,
            ),
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
        let_drop(self.stream.take());
        let_drop(self.work.take());
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

/// Drops what others wrote: a panic of theirs is a log line, and does not end the driver.
fn let_drop<T>(theirs: Option<T>) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(theirs))) {
        let said = panic_text(&*panic);
        tracing::error!(said, "what was dropped at the end of a run panicked");
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
