//! The tools of one turn: the catalog's snapshot, narrowed by a hook, with the run's own tool.
//!
//! Knows: what is offered and found. Does not know: where tools come from.

use std::sync::Arc;

use yiem_core::ToolDefinition;
use yiem_tools::{RegisteredTool, ToolSnapshot};

/// What a turn works with. Cloned in O(1).
#[derive(Clone, Default)]
pub(crate) struct Offered {
    snapshot: ToolSnapshot,
    only: Option<Arc<[String]>>,
    /// The tool by which the final answer is given.
    answer: Option<Arc<RegisteredTool>>,
    definitions: Arc<[Arc<ToolDefinition>]>,
}

impl Offered {
    pub(crate) fn new(
        snapshot: ToolSnapshot,
        only: Option<Arc<[String]>>,
        answer: Option<Arc<RegisteredTool>>,
    ) -> Self {
        let mut definitions = snapshot.definitions();
        if only.is_some() || answer.is_some() {
            definitions = definitions
                .iter()
                .filter(|d| only.as_ref().is_none_or(|only| only.contains(&d.name)))
                .filter(|d| answer.as_ref().is_none_or(|a| a.name() != d.name))
                .chain(answer.as_ref().map(|a| a.definition()))
                .cloned()
                .collect();
        }
        Self {
            snapshot,
            only,
            answer,
            definitions,
        }
    }

    /// Whether this is still what `snapshot` and `only` would make.
    pub(crate) fn is_of(&self, snapshot: &ToolSnapshot, only: Option<&Arc<[String]>>) -> bool {
        self.snapshot.generation() == snapshot.generation()
            && self.snapshot.len() == snapshot.len()
            && self.only.as_ref() == only
    }

    /// What it is narrowed to.
    pub(crate) fn only(&self) -> Option<&Arc<[String]>> {
        self.only.as_ref()
    }

    /// The names that are offered, and that are not, while
    /// those were offered that `before` says.
    pub(crate) fn narrowed_from(
        &self,
        before: impl Fn(&String) -> bool,
    ) -> (Vec<String>, Vec<String>) {
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for definition in &*self.snapshot.definitions() {
            let name = &definition.name;
            let now = self.only().is_none_or(|only| only.contains(name));
            match (before(name), now) {
                (false, true) => added.push(name.clone()),
                (true, false) => removed.push(name.clone()),
                _ => {}
            }
        }
        (added, removed)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<RegisteredTool>> {
        if let Some(answer) = self.answer.as_ref().filter(|a| a.name() == name) {
            return Some(answer);
        }
        if self
            .only
            .as_ref()
            .is_some_and(|only| !only.iter().any(|n| n == name))
        {
            return None;
        }
        self.snapshot.get(name)
    }

    pub(crate) fn definitions(&self) -> &Arc<[Arc<ToolDefinition>]> {
        &self.definitions
    }

    /// What a model is told that called a tool which it cannot call in this turn.
    pub(crate) fn not_found(&self, name: &str) -> String {
        self.snapshot.not_found(name, |name| {
            self.only()
                .is_none_or(|only| only.iter().any(|n| n == name))
        })
    }
}
