//! Waiting for servers, so that whoever sits there knows for whom.
//!
//! Knows: when a wait is long enough to be told. Does not know: how long servers may take; they have their own limits.

use std::time::Duration;

use tokio::time::sleep;
use yiem::CancelToken;
use yiem::tools::{SourceState, ToolCatalog};

use crate::sources;

/// After how long it is said who is waited for.
const SILENCE: Duration = Duration::from_secs(2);

/// Loads all sources; says on standard error who is waited for when that takes long.
pub(crate) async fn load_all(catalog: &ToolCatalog) {
    let cancel = CancelToken::new();
    let loading = catalog.load_all(&cancel);
    tokio::pin!(loading);
    tokio::select! {
        () = &mut loading => return,
        () = sleep(SILENCE) => {}
    }
    let late: Vec<String> = catalog
        .sources()
        .into_iter()
        .filter(|status| {
            !matches!(
                status.state,
                SourceState::Loaded { .. } | SourceState::Failed { .. }
            )
        })
        .map(|status| status.name.to_string())
        .collect();
    if !late.is_empty() {
        sources::warn(&format!(
            "waiting for {}: no answer yet; it is given up when its time is over",
            late.join(", ")
        ));
    }
    loading.await;
}
