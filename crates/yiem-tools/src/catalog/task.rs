//! What goes on in the background for each source: loading, and following its changes.
//!
//! Knows: when to try again. Does not know: who runs it, and what time it is.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::select;
use yiem_core::{BoxFuture, CancelToken, Env};

use super::{Shared, SourceState};

/// The first wait after a failure; each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait after a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// One future per source.
pub(super) fn tasks(shared: &Arc<Shared>, env: &Arc<dyn Env>) -> Vec<BoxFuture<'static, ()>> {
    (0..shared.slots.len())
        .map(|i| {
            let task: BoxFuture<'static, ()> =
                Box::pin(follow(Arc::downgrade(shared), i, Arc::clone(env)));
            task
        })
        .collect()
}

async fn follow(shared: Weak<Shared>, i: usize, env: Arc<dyn Env>) {
    let (source, mut demanded) = match shared.upgrade() {
        Some(shared) => (
            Arc::clone(&shared.slots[i].source),
            shared.demanded.subscribe(),
        ),
        None => return,
    };
    let cancel = CancelToken::new();
    if !source.own() {
        let wanted = *demanded.borrow();
        if !wanted && let Some(now) = shared.upgrade() {
            // It is there when it is asked, and told of when it is not (M-7).
            now.connect(i, &cancel).await;
        }
        if demanded.wait_for(|wanted| *wanted).await.is_err() {
            return;
        }
    }
    let mut wait = FIRST_WAIT;
    let mut pause = FIRST_WAIT;
    let mut loaded_at: Option<Duration> = None;
    loop {
        // One that changes as often as it is asked is not asked in a loop: before each turn its list is
        // looked at in any case.
        if let Some(before) = loaded_at {
            let left = (before + pause).saturating_sub(env.elapsed());
            if left.is_zero() {
                pause = FIRST_WAIT;
            } else {
                env.sleep(left).await;
                pause = (pause * 2).min(LONGEST_WAIT);
            }
        }
        let Some(now) = shared.upgrade() else {
            return;
        };
        let outcome = now.load(i, &cancel).await;
        let loaded = match &now.lock().statuses[i].state {
            SourceState::Loaded { generation, .. } => Some(*generation),
            _ => None,
        };
        drop(now);
        let generation = loaded.unwrap_or_else(|| source.generation());
        let changed = source.changed(generation);
        match outcome {
            Ok(()) => {
                wait = FIRST_WAIT;
                loaded_at = Some(env.elapsed());
                changed.await;
            }
            Err(error) if error.retryable => {
                loaded_at = None;
                select(changed, env.sleep(wait)).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
            Err(_) => changed.await,
        }
    }
}
