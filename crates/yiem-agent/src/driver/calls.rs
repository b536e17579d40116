//! How calls are prepared and run, and what they tell the driver.
//!
//! Knows: which of them need a task of their own. Does not know: when a call begins (the run
//! does), and what is done with one call (the pipeline does).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use tracing::Instrument;
use yiem_core::{BoxFuture, Replay, ToolError, ToolErrorKind, ToolOutput};

use super::{Driver, Work};
use crate::event::RejectReason;
use crate::hook::HookPoint;
use crate::journal::OUTCOME_UNKNOWN;
use crate::pipeline::{CallMessage, CallProgress, TurnEnv, Waits, execute, panic_text, prepare};
use crate::run::Input;

impl Driver {
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

    pub(super) fn prepare(&mut self, index: usize) {
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

    pub(super) async fn execute(&mut self, index: usize) {
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
            let first = std::future::poll_fn(|cx| Poll::Ready(look(&mut work, cx))).await;
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
            let output = std::future::poll_fn(|cx| look(&mut work, cx)).await;
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

    pub(super) fn called(&mut self, message: CallMessage) {
        self.handle(match message {
            CallMessage::Update { call, partial } => Input::Updated { call, partial },
            CallMessage::Told { call, kind } => Input::Told { call, kind },
            CallMessage::Cost { call, cost } => Input::Cost { call, cost },
            CallMessage::Settled { call, output } => Input::Settled { call, output },
        });
    }

    pub(super) fn drain_calls(&mut self) {
        while let Ok(message) = self.told.try_recv() {
            self.called(message);
        }
    }
}

/// Looks at a call. Whatever panics there and was not caught before, such as what a tool leaves
/// behind that is out of time, is its result: a call that is not answered holds up its run for ever.
fn look(
    work: &mut BoxFuture<'static, Box<ToolOutput>>,
    cx: &mut Context<'_>,
) -> Poll<Box<ToolOutput>> {
    catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))).unwrap_or_else(|panic| {
        let text = format!("The tool panicked: {}", panic_text(&*panic));
        let output = ToolError::of_kind(ToolErrorKind::Panicked, text).into_output();
        Poll::Ready(Box::new(output))
    })
}
