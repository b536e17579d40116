//! The tasks of one client: they end with it.

use std::sync::{Mutex, PoisonError};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// Owner of background work; dropping it ends all of it.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<JoinSet<()>>);

impl Tasks {
    /// Runs work in the background. Outside of a runtime there is no background, and nothing happens.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let Ok(handle) = Handle::try_current() else {
            return;
        };
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while set.try_join_next().is_some() {}
        set.spawn_on(work, &handle);
    }

    /// How many run.
    pub(crate) fn running(&self) -> usize {
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while set.try_join_next().is_some() {}
        set.len()
    }

    /// Ends all.
    pub(crate) fn clear(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .abort_all();
    }
}
