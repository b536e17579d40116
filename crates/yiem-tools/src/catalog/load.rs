//! How a source's tools come into the catalog (T-5, M-7, M-8).
//!
//! Knows: one load at a time, what a list changes, what is told of it, that a source may fail or
//! panic. Does not know: when sources are loaded.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::join_all;
use yiem_core::{CancelToken, LoadedTools, SourceError, ToolSource};

use super::{CatalogNotice, ChangedDefinitions, Shared, SourceState, State, notice};
use crate::registry::{ChangedDefinition, CompiledTools, changed};

impl Shared {
    /// Connects a source that nobody has asked for its tools, and notes whether it is there.
    pub(super) async fn connect(&self, i: usize, cancel: &CancelToken) {
        let slot = &self.slots[i];
        let _one_at_a_time = slot.loading.lock().await;
        if !matches!(self.lock().statuses[i].state, SourceState::Waiting) {
            return;
        }
        // Called inside: what is no async function may panic before there is a future of it.
        let connecting = async { slot.source.connect(cancel).await };
        match AssertUnwindSafe(connecting)
            .catch_unwind()
            .await
            .unwrap_or_else(|panic| Err(panicked(&*slot.source, "it was connected", &*panic)))
        {
            Ok(()) => {
                self.lock().statuses[i].state = SourceState::Connected;
                self.touch();
            }
            Err(error) => self.fail(i, &Arc::new(error)),
        }
    }

    pub(super) async fn load_all(&self, cancel: &CancelToken) {
        self.demand();
        join_all((0..self.slots.len()).map(|i| self.load(i, cancel))).await;
    }

    /// Loads a source unless its newest list is known already.
    pub(super) async fn load(
        &self,
        i: usize,
        cancel: &CancelToken,
    ) -> Result<(), Arc<SourceError>> {
        let slot = &self.slots[i];
        let _one_at_a_time = slot.loading.lock().await;
        let known = {
            let state = self.lock();
            match &state.statuses[i].state {
                SourceState::Loaded { generation, .. } if !state.stale.contains(&i) => {
                    Some(*generation)
                }
                _ => None,
            }
        };
        if known == Some(slot.source.generation()) {
            return Ok(());
        }
        match loaded(&*slot.source, cancel).await {
            Ok(loaded) => {
                self.take(i, loaded);
                Ok(())
            }
            Err(error) => {
                let error = Arc::new(error);
                // A wait that was given up says nothing about the source.
                if !cancel.is_cancelled() {
                    self.fail(i, &error);
                }
                Err(error)
            }
        }
    }

    fn take(&self, i: usize, loaded: LoadedTools) {
        let key = &self.slots[i].key;
        let (generation, warnings) = (loaded.generation, loaded.warnings.clone());
        let (known, limits) = {
            let state = self.lock();
            (
                state.registry.known_tools(key),
                state.registry.source_limits().clone(),
            )
        };
        // The costly part, without the lock.
        let mut compiled = CompiledTools::new(key, loaded, &known, &limits);
        {
            let mut state = self.lock();
            let changes = state.changes(key, &compiled);
            let held = self.changed == ChangedDefinitions::Hold;
            if held {
                for change in &changes {
                    compiled.hold(
                        &change.after.name,
                        "its definition is not the one that is known; it is held back until it is approved",
                    );
                }
            }
            state.remember(key, &compiled);
            state.stale.remove(&i);
            let tools = compiled.tools().len();
            let change = state.registry.apply(key, compiled);
            state.statuses[i].state = SourceState::Loaded { generation, tools };
            for notice in notice::of_change(key, change, changes, held, warnings, tools) {
                state.tell(notice);
            }
        }
        self.touch();
    }

    fn fail(&self, i: usize, error: &Arc<SourceError>) {
        {
            let mut state = self.lock();
            state.statuses[i].state = SourceState::Failed {
                error: Arc::clone(error),
            };
            let source = Arc::clone(&self.slots[i].key);
            state.tell(CatalogNotice::SourceFailed {
                source,
                error: Arc::clone(error),
            });
        }
        self.touch();
    }
}

impl State {
    /// Tools whose definition is not the known one.
    fn changes(&self, key: &Arc<str>, compiled: &CompiledTools) -> Vec<ChangedDefinition> {
        let tools = compiled.tools().values();
        tools
            .filter_map(|tool| {
                let after = tool.tool().definition();
                let before = self.known.get(&(Arc::clone(key), after.name.clone()))?;
                changed(before, after).then(|| ChangedDefinition {
                    source: tool.source().clone(),
                    before: Arc::clone(before),
                    after: Arc::clone(after),
                })
            })
            .collect()
    }

    /// What is used of a tool is what it is held against later.
    fn remember(&mut self, key: &Arc<str>, compiled: &CompiledTools) {
        for tool in compiled.tools().values() {
            let definition = tool.tool().definition();
            self.known.insert(
                (Arc::clone(key), definition.name.clone()),
                Arc::clone(definition),
            );
        }
    }
}

/// What a source has; one that panics has failed.
async fn loaded(source: &dyn ToolSource, cancel: &CancelToken) -> Result<LoadedTools, SourceError> {
    let loading = async { source.load(cancel).await };
    let done = AssertUnwindSafe(loading).catch_unwind().await;
    done.unwrap_or_else(|panic| Err(panicked(source, "its tools were loaded", &*panic)))
}

fn panicked(
    source: &dyn ToolSource,
    doing: &str,
    panic: &(dyn std::any::Any + Send),
) -> SourceError {
    let said = panic
        .downcast_ref::<&str>()
        .map(|said| (*said).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it left no message".to_owned());
    SourceError {
        source_name: source.name().to_owned(),
        message: format!("it panicked while {doing}: {said}"),
        retryable: false,
        cause: None,
    }
}
