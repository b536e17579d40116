//! Hooks between turns, and compaction.

use std::sync::Arc;

use yiem_core::{BoxFuture, History, Usage};

use super::{Driver, Work};
use crate::hook::{
    Compaction, CompactionView, HookPoint, PrepareNextTurn, StopAfterTurn, TurnView,
};
use crate::outcome::Failure;
use crate::pipeline::guarded;
use crate::run::{Input, hook_failure};
use crate::shared::Shared;

impl Driver {
    fn turn_view(&self) -> Option<TurnView> {
        let state = self.shared.lock();
        let run = state.run.as_ref()?;
        Some(TurnView {
            run_id: run.id().clone(),
            turn: run.turn(),
            message: run.reply().cloned()?,
            tool_results: Arc::clone(run.results()),
            history: run.history().clone(),
            usage: run.usage(),
            cancel: self.cancel.clone(),
        })
    }

    pub(super) fn judge_turn(&self) -> BoxFuture<'static, Work> {
        let (view, shared) = (self.turn_view(), Arc::clone(&self.shared));
        Box::pin(async move { Work::Input(Box::new(Input::Judged(judge(&shared, view).await))) })
    }

    pub(super) fn prepare_next_turn(&self) -> BoxFuture<'static, Work> {
        let (view, shared) = (self.turn_view(), Arc::clone(&self.shared));
        Box::pin(
            async move { Work::Input(Box::new(Input::NextTurnReady(change(&shared, view).await))) },
        )
    }

    pub(super) fn compact(&self, reason: Arc<str>) -> BoxFuture<'static, Work> {
        let shared = Arc::clone(&self.shared);
        let state = shared.lock();
        let view = state.run.as_ref().map(|run| CompactionView {
            run_id: run.id().clone(),
            turn: run.turn(),
            system: state.settings.system.clone(),
            messages: run.shown().clone(),
            model: Arc::clone(&state.settings.model),
            reason,
            env: Arc::clone(&shared.env),
            cancel: self.cancel.clone(),
        });
        drop(state);
        Box::pin(async move {
            let mut spent = Usage::UNKNOWN;
            let compacted = match view {
                Some(view) => compact(&shared, view, &mut spent).await,
                None => Err("there is no run".to_owned()),
            };
            Work::Compacted(Box::new((spent, compacted)))
        })
    }
}

async fn judge(shared: &Shared, view: Option<TurnView>) -> Result<StopAfterTurn, Failure> {
    let Some(view) = view else {
        return Ok(StopAfterTurn::GoOn);
    };
    for hook in shared.hooks.at(HookPoint::ShouldStopAfterTurn) {
        match guarded(|| hook.should_stop_after_turn(view.clone())).await {
            Ok(StopAfterTurn::GoOn) => {}
            Ok(StopAfterTurn::Stop) => return Ok(StopAfterTurn::Stop),
            Err(error) => return Err(hook_failure(hook.name(), error)),
        }
    }
    Ok(StopAfterTurn::GoOn)
}

async fn change(shared: &Shared, view: Option<TurnView>) -> Result<(), Failure> {
    let Some(view) = view else { return Ok(()) };
    let mut all = PrepareNextTurn::keep();
    for hook in shared.hooks.at(HookPoint::PrepareNextTurn) {
        match guarded(|| hook.prepare_next_turn(view.clone())).await {
            Ok(change) => all.merge(change),
            Err(error) => return Err(hook_failure(hook.name(), error)),
        }
    }
    shared.lock().settings.apply(all);
    Ok(())
}

async fn compact(
    shared: &Shared,
    view: CompactionView,
    spent: &mut Usage,
) -> Result<History, String> {
    for hook in shared.hooks.at(HookPoint::Compact) {
        match guarded(|| hook.compact(view.clone())).await {
            Ok(Compaction::Pass) => {}
            Ok(Compaction::Replace(messages)) => return Ok(messages),
            Err(error) => return Err(format!("the hook {} failed: {error}", hook.name())),
        }
    }
    match &shared.compactor {
        // The model may panic: then it could not summarise.
        Some(compactor) => {
            let retry = shared.config.retry;
            let work = async { Ok(compactor.compact(view, retry, spent).await) };
            guarded(|| work)
                .await
                .unwrap_or_else(|error| Err(error.to_string()))
        }
        None => Err("no hook shortens it, and the agent's own compactor is off".to_owned()),
    }
}
