//! The way of one call: prepare (find, check, ask the hooks), execute, finalize.
//!
//! Knows: what is done with one call, in which order. Does not know: other calls, turns, events'
//! order; the run does.

mod nested;
mod progress;
mod waits;
mod whole;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use tokio::sync::mpsc;
use yiem_core::{
    CancelReason, CancelToken, Content, Cost, Deps, Env, Error, History, IdKind, JsonObject,
    Message, RunId, SessionId, ToolArguments, ToolCall, ToolCallId, ToolContext, ToolError,
    ToolErrorKind, ToolOutput, ValidArgs,
};
use yiem_tools::{CallPermit, RegisteredTool, ValidationError};

use crate::approval::{ApprovalAnswer, ApprovalRequest, Approvals};
use crate::caller::Caller;
use crate::config::AgentConfig;
use crate::event::{ApprovalResolution, EventKind, RejectReason};
use crate::hook::{BeforeToolCall, HookPoint, Hooks, Question, ToolCallView, ToolResultView};
use crate::offered::Offered;

pub(crate) use progress::CallProgress;
pub(crate) use waits::Waits;

/// What the calls of one turn have in common.
pub(crate) struct TurnEnv {
    pub(crate) hooks: Hooks,
    pub(crate) tools: Offered,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) deps: Deps,
    pub(crate) config: Arc<AgentConfig>,
    pub(crate) session_id: SessionId,
    pub(crate) run_id: RunId,
    pub(crate) turn: u32,
    pub(crate) reply: Arc<Message>,
    pub(crate) history: History,
    pub(crate) cancel: CancelToken,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) tell: mpsc::Sender<CallMessage>,
    pub(crate) trace: Arc<[(String, String)]>,
    /// The run's span.
    pub(crate) span: tracing::Span,
    /// How long its calls waited for a person.
    pub(crate) waits: Waits,
    /// How many calls were accepted in the run, those that calls make included.
    pub(crate) accepted: Arc<AtomicU32>,
}

/// What a call tells the driver. All calls of a run share one bounded channel, so its order is
/// the order of what they told.
#[derive(Debug)]
pub(crate) enum CallMessage {
    /// Progress.
    Update {
        call: usize,
        partial: serde_json::Value,
    },
    /// An event of its own: a question, a nested call.
    Told { call: usize, kind: Box<EventKind> },
    /// A call that it made cost money.
    Cost { call: usize, cost: Cost },
    /// It has run, and the hooks have seen its result.
    Settled {
        call: usize,
        output: Box<ToolOutput>,
    },
}

/// A call that was accepted.
#[derive(Clone)]
pub(crate) struct PreparedToolCall {
    pub(crate) tool: Arc<RegisteredTool>,
    pub(crate) call: Arc<ToolCall>,
    /// The name that it was called by, shared with events.
    pub(crate) name: Arc<str>,
    pub(crate) args: ValidArgs,
}

/// A call that was not accepted.
pub(crate) struct Rejection {
    pub(crate) reason: RejectReason,
    pub(crate) output: ToolOutput,
}

impl Rejection {
    fn new(reason: RejectReason, text: impl Into<String>) -> Self {
        Self {
            reason,
            output: ToolOutput::text(text).failed(),
        }
    }
}

/// Prepares a call: finds the tool, has its arguments accepted, asks the hooks.
///
/// May be dropped at any await: nothing has been done yet but what the hooks did.
pub(crate) async fn prepare(
    turn: &TurnEnv,
    index: usize,
    call: Arc<ToolCall>,
    name: Arc<str>,
    parent: Option<ToolCallId>,
) -> Result<PreparedToolCall, Rejection> {
    let Some(tool) = turn.tools.get(&call.name) else {
        let text = turn.tools.not_found(&call.name);
        return Err(Rejection::new(RejectReason::UnknownTool, text));
    };
    let args = match &call.arguments {
        ToolArguments::Object { value, .. } => match tool.accept_unchanged(value) {
            Some(args) => args,
            // What few calls need stands in boxes of its own: the way of every other call stays
            // small.
            None => accepted(tool.accept(JsonObject::clone(value))).await?,
        },
        ToolArguments::Unreadable { raw, reason } => {
            return Err(Rejection::new(
                RejectReason::UnreadableArguments,
                unreadable(raw, reason),
            ));
        }
    };
    let mut prepared = PreparedToolCall {
        tool: Arc::clone(tool),
        call,
        name,
        args,
    };
    let mut asked = false;
    for hook in turn.hooks.at(HookPoint::BeforeToolCall) {
        let view = ToolCallView {
            run_id: turn.run_id.clone(),
            turn: turn.turn,
            message: Arc::clone(&turn.reply),
            call: Arc::clone(&prepared.call),
            tool: Arc::clone(prepared.tool.definition()),
            args: Arc::clone(prepared.args.shared()),
            history: turn.history.clone(),
            parent: parent.clone(),
            cancel: turn.cancel.clone(),
        };
        match guarded(|| hook.before_tool_call(view)).await {
            Err(error) => {
                let text = format!("The hook {} failed: {error}", hook.name());
                return Err(Rejection::new(RejectReason::HookFailed, text));
            }
            Ok(BeforeToolCall::Run) => {}
            Ok(BeforeToolCall::RunWith(args)) => {
                replace_args(&mut prepared, args).await?;
            }
            Ok(BeforeToolCall::Refuse { reason, terminate }) => {
                let mut rejection = Rejection::new(RejectReason::Blocked, reason);
                rejection.output.terminate = terminate;
                return Err(rejection);
            }
            Ok(BeforeToolCall::Ask(question)) => {
                asked = true;
                Box::pin(ask(turn, index, &mut prepared, question)).await?;
            }
        }
    }
    if prepared.tool.definition().needs_approval && !asked {
        let question = Question::new(format!("May the tool {} run?", prepared.call.name));
        Box::pin(ask(turn, index, &mut prepared, question)).await?;
    }
    Ok(prepared)
}

/// Refused arguments; the details and the wish to end of a tool's own error are kept.
fn invalid(error: ValidationError) -> Rejection {
    let mut rejection = Rejection::new(RejectReason::InvalidArguments, error.message());
    if let Some(own) = error.tool_error() {
        rejection.output.details = own.details().clone();
    }
    rejection
}

/// Puts other arguments in the place of accepted ones; they are validated again.
async fn replace_args(prepared: &mut PreparedToolCall, args: JsonObject) -> Result<(), Rejection> {
    prepared.args = accepted(prepared.tool.accept_prepared(args)).await?;
    Ok(())
}

/// What a tool's own preparation and checks made of arguments, in a box of its own.
async fn accepted(
    work: impl Future<Output = Result<ValidArgs, ValidationError>>,
) -> Result<ValidArgs, Rejection> {
    match Box::pin(caught(|| work)).await {
        Ok(args) => args.map_err(invalid),
        Err(panic) => {
            let text = format!("The arguments could not be checked: the check panicked: {panic}");
            Err(Rejection::new(RejectReason::InvalidArguments, text))
        }
    }
}

/// Asks a person. Dropping it closes the question.
async fn ask(
    turn: &TurnEnv,
    index: usize,
    prepared: &mut PreparedToolCall,
    question: Question,
) -> Result<(), Rejection> {
    let id: Arc<str> = turn.env.new_id(IdKind::Approval).into();
    let tool_call_id = prepared.call.id.clone();
    let request = ApprovalRequest {
        id: Arc::clone(&id),
        tool_call_id: tool_call_id.clone(),
        tool_name: prepared.call.name.as_str().into(),
        args: Arc::clone(prepared.args.shared()),
        question: question.text.into(),
    };
    let requested = EventKind::ApprovalRequested {
        approval_id: Arc::clone(&id),
        tool_call_id: tool_call_id.clone(),
        tool_name: Arc::clone(&request.tool_name),
        args: Arc::clone(&request.args),
        question: Arc::clone(&request.question),
        timeout_ms: question
            .timeout
            .map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
    };
    // Open before it is told: whoever hears of it can answer.
    let caller = turn.deps.get::<Caller>();
    let above = caller.as_deref().map_or(&[][..], |caller| &caller.above);
    let mut open = turn.approvals.open(request, above);
    tell(turn, index, requested).await;
    let waiting = turn.waits.begin(index, &turn.env);
    let answer = match question.timeout {
        None => open.answer().await,
        Some(timeout) => match select(pin!(open.answer()), turn.env.sleep(timeout)).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => None,
        },
    };
    drop(open);
    drop(waiting);
    let (resolution, reason): (_, Option<Arc<str>>) = match &answer {
        Some(ApprovalAnswer::Allow) => (ApprovalResolution::Allowed, None),
        Some(ApprovalAnswer::AllowWith(_)) => (ApprovalResolution::AllowedWithChanges, None),
        Some(ApprovalAnswer::Deny(reason)) => {
            (ApprovalResolution::Denied, Some(reason.as_str().into()))
        }
        None => (ApprovalResolution::TimedOut, None),
    };
    let resolved = EventKind::ApprovalResolved {
        approval_id: id,
        tool_call_id,
        resolution,
        reason,
    };
    tell(turn, index, resolved).await;
    match answer {
        Some(ApprovalAnswer::Allow) => Ok(()),
        Some(ApprovalAnswer::AllowWith(args)) => replace_args(prepared, args).await,
        Some(ApprovalAnswer::Deny(reason)) => Err(Rejection::new(
            RejectReason::Blocked,
            if reason.is_empty() {
                "The user refused this call.".to_owned()
            } else {
                reason
            },
        )),
        None => Err(Rejection::new(
            RejectReason::Blocked,
            "Nobody allowed this call in time, so it was not run.",
        )),
    }
}

async fn tell(turn: &TurnEnv, call: usize, kind: EventKind) {
    // The driver is gone only when the run is; then nobody listens.
    let kind = Box::new(kind);
    let _ = turn.tell.send(CallMessage::Told { call, kind }).await;
}

/// Runs an accepted call and has the hooks see its result. `executed` holds what came of the
/// call itself, for whoever drops this while a hook hangs. The output is boxed: it is large, and
/// handed on from future to future.
pub(crate) async fn execute(
    turn: &TurnEnv,
    index: usize,
    prepared: &PreparedToolCall,
    context: Box<ToolContext>,
    executed: Option<&OnceLock<ToolOutput>>,
) -> Box<ToolOutput> {
    let output = run_tool(turn, index, prepared, context).await;
    if !turn.hooks.any_at(HookPoint::AfterToolCall) {
        return output;
    }
    Box::pin(after_hooks(turn, prepared, output, executed)).await
}

/// Calls the tool under its limits; whatever goes wrong is a failed output.
async fn run_tool(
    turn: &TurnEnv,
    index: usize,
    prepared: &PreparedToolCall,
    context: Box<ToolContext>,
) -> Box<ToolOutput> {
    let tool = &prepared.tool;
    let definition = tool.definition();
    let cancel = context.cancel.clone();
    // The call's time begins when it is its turn.
    let permit = match tool.permit_now() {
        Some(permit) => Some(permit),
        None => Box::pin(permit(tool, &cancel)).await,
    };
    let _permit = match permit {
        Some(permit) => permit,
        None => {
            let text = format!(
                "The tool {} was not run: the run was aborted.",
                definition.name
            );
            return Box::new(ToolError::of_kind(ToolErrorKind::Aborted, text).into_output());
        }
    };
    let limit = definition.limits.time.unwrap_or(turn.config.tool_time);
    // A tool of one's own making may panic before there is a future of it.
    let work = || tool.tool().call(prepared.args.clone(), *context);
    let ended = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(call) => {
            let waited = |begun, now| turn.waits.since(index, begun, now);
            within(&turn.env, limit, waited, call).await
        }
        Err(panic) => Ended::Panicked(panic_text(&*panic)),
    };
    let mut output = match ended {
        Ended::Done(Ok(output)) => Box::new(output),
        Ended::Done(Err(error)) => Box::new(error.into_output()),
        Ended::Panicked(panic) => {
            let text = format!("The tool {} panicked: {panic}", definition.name);
            Box::new(ToolError::of_kind(ToolErrorKind::Panicked, text).into_output())
        }
        Ended::TimedOut => {
            cancel.cancel_because(CancelReason::TimedOut);
            let text = format!(
                "The tool {} did not end within {} s. Whether it took effect is unknown.",
                definition.name,
                limit.as_secs_f64()
            );
            Box::new(ToolError::of_kind(ToolErrorKind::TimedOut, text).into_output())
        }
    };
    if let Err(error) = tool.check_output(&output) {
        let told = ToolOutput::text(error.message()).failed();
        let seen = std::mem::replace(&mut *output, told);
        (output.details, output.usage, output.cost) = (seen.details, seen.usage, seen.cost);
    }
    let bytes = definition
        .limits
        .result_bytes
        .unwrap_or(turn.config.result_bytes);
    if let Some(whole) = whole::cut(turn, &mut output, bytes) {
        Box::pin(whole::keep(turn, &prepared.call.id, &mut output, whole)).await;
    }
    output
}

/// A place beside the other calls of the tool; `None` when the call was cancelled before there
/// was one.
async fn permit(tool: &RegisteredTool, cancel: &CancelToken) -> Option<CallPermit> {
    match select(pin!(tool.permit()), pin!(cancel.cancelled())).await {
        Either::Left((permit, _)) => Some(permit),
        Either::Right(_) => None,
    }
}

async fn after_hooks(
    turn: &TurnEnv,
    prepared: &PreparedToolCall,
    output: Box<ToolOutput>,
    executed: Option<&OnceLock<ToolOutput>>,
) -> Box<ToolOutput> {
    if let Some(executed) = executed {
        let _ = executed.set(ToolOutput::clone(&output));
    }
    let mut output = *output;
    for hook in turn.hooks.at(HookPoint::AfterToolCall) {
        let shared = Arc::new(output);
        let view = ToolResultView {
            run_id: turn.run_id.clone(),
            turn: turn.turn,
            message: Arc::clone(&turn.reply),
            call: Arc::clone(&prepared.call),
            tool: Arc::clone(prepared.tool.definition()),
            args: Arc::clone(prepared.args.shared()),
            output: Arc::clone(&shared),
            cancel: turn.cancel.clone(),
        };
        let answer = guarded(|| hook.after_tool_call(view)).await;
        output = Arc::unwrap_or_clone(shared);
        match answer {
            Ok(patch) => patch.apply(&mut output),
            Err(error) => {
                // What the tool did stays told, in the details.
                output.content = vec![Content::text(format!(
                    "The hook {} failed: {error}",
                    hook.name()
                ))];
                output.is_error = true;
            }
        }
    }
    Box::new(output)
}

/// How a piece of work ended that had a limit of time.
#[derive(Debug, PartialEq, Eq)]
enum Ended<T> {
    Done(T),
    /// With what its panic said.
    Panicked(String),
    /// The time was up, and it was dropped.
    TimedOut,
}

/// Runs `work` for at most `limit` (zero = as long as it takes). What `waited` says of the time
/// from its beginning to now does not count.
async fn within<T>(
    env: &Arc<dyn Env>,
    limit: Duration,
    waited: impl Fn(Duration, Duration) -> Duration,
    work: impl Future<Output = T>,
) -> Ended<T> {
    let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
    // Most calls need no timer: they are done at the first look.
    let first = std::future::poll_fn(|cx| std::task::Poll::Ready(work.as_mut().poll(cx))).await;
    let done = match first {
        std::task::Poll::Ready(done) => done,
        std::task::Poll::Pending if limit.is_zero() => work.await,
        std::task::Poll::Pending => {
            let (begun, mut left, mut added) = (env.elapsed(), limit, Duration::ZERO);
            loop {
                match select(work, env.sleep(left)).await {
                    Either::Left((done, _)) => break done,
                    Either::Right((_, goes_on)) => work = goes_on,
                }
                left = waited(begun, env.elapsed()).saturating_sub(added);
                if left.is_zero() {
                    return Ended::TimedOut;
                }
                added += left;
            }
        }
    };
    match done {
        Ok(done) => Ended::Done(done),
        Err(panic) => Ended::Panicked(panic_text(&*panic)),
    }
}

/// Runs a hook so that its panic is an error of it.
pub(crate) async fn guarded<T, F>(work: impl FnOnce() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let done = caught(work).await;
    done.unwrap_or_else(|panic| Err(Error::msg(format!("it panicked: {panic}"))))
}

/// Runs work that others wrote; what it said when it panicked, be it before there was a future of
/// it or in that.
pub(crate) async fn caught<T, F>(work: impl FnOnce() -> F) -> Result<T, String>
where
    F: Future<Output = T>,
{
    let done = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(work) => AssertUnwindSafe(work).catch_unwind().await,
        Err(panic) => Err(panic),
    };
    done.map_err(|panic| panic_text(&*panic))
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it left no message".to_owned())
}

fn unreadable(raw: &str, reason: &str) -> String {
    const SHOWN: usize = 500;
    let end = raw
        .char_indices()
        .nth(SHOWN)
        .map_or(raw.len(), |(at, _)| at);
    let more = if end < raw.len() { "…" } else { "" };
    format!(
        "The arguments of this call could not be read: {reason}. What came: {}{more}\n\
         Make the call again with a JSON object as arguments.",
        &raw[..end]
    )
}

impl TurnEnv {
    /// What a call of this turn is given besides its arguments; boxed, because it is handed on
    /// from future to future.
    pub(crate) fn context(
        self: &Arc<Self>,
        index: usize,
        prepared: &PreparedToolCall,
        progress: Arc<CallProgress>,
        depth: u32,
    ) -> Box<ToolContext> {
        let id = prepared.call.id.clone();
        let caller = nested::NestedCaller::new(Arc::clone(self), index, id.clone(), depth);
        let (cancel, env) = (self.cancel.child(), Arc::clone(&self.env));
        let mut context = Box::new(
            ToolContext::ended_by(cancel, id, Arc::clone(&prepared.name), env)
                .with_progress(progress)
                .with_caller(Arc::new(caller)),
        );
        context.session_id = Some(self.session_id.clone());
        context.run_id = Some(self.run_id.clone());
        context.deps = self.deps.clone();
        context.trace = Arc::clone(&self.trace);
        context
    }
}

#[cfg(test)]
mod tests;
