//! The tools of one moment, and what a name that none of them has is told (T-3, T-5).
//!
//! Knows: what is offered, what else is known, what is quarantined. Does not know: where tools
//! come from, who calls.

use std::sync::Arc;

use indexmap::IndexMap;
use yiem_core::ToolDefinition;

use crate::builtin::{LIST_TOOLS, SEARCH_TOOLS, one_line};
use crate::registered::{RegisteredTool, SourceId};
use crate::registry::QuarantinedTool;
use crate::validate::nearest::nearest;
use crate::validate::problem::cut;

/// How much of a name that a model made up is said back to it, in bytes.
const SAID_NAME: usize = 200;
/// How much of the reason for which a tool is not offered is said, in bytes.
const SAID_REASON: usize = 600;

/// The tools at one moment: immutable, cloned in O(1), looked up in O(1), in order (T-3).
#[derive(Clone, Debug, Default)]
pub struct ToolSnapshot(Arc<SnapshotInner>);

#[derive(Debug)]
struct SnapshotInner {
    tools: IndexMap<Arc<str>, Arc<RegisteredTool>>,
    definitions: Arc<[Arc<ToolDefinition>]>,
    generation: u64,
    beyond: Beyond,
}

/// What a catalog knows beyond the tools that it offers.
#[derive(Debug, Default)]
pub(crate) struct Beyond {
    /// All that is known, offered or not.
    pub(crate) all: Option<ToolSnapshot>,
    /// What is listed by its source and cannot be offered.
    pub(crate) quarantined: Vec<QuarantinedTool>,
    /// Whether there may be tools that are not offered yet.
    pub(crate) more: bool,
}

impl Default for SnapshotInner {
    fn default() -> Self {
        Self {
            tools: IndexMap::new(),
            definitions: Vec::new().into(),
            generation: 0,
            beyond: Beyond::default(),
        }
    }
}

impl ToolSnapshot {
    pub(crate) fn new(
        tools: impl IntoIterator<Item = Arc<RegisteredTool>>,
        generation: u64,
    ) -> Self {
        Self::within(tools, generation, Beyond::default())
    }

    /// Those tools out of all that are known.
    pub(crate) fn within(
        tools: impl IntoIterator<Item = Arc<RegisteredTool>>,
        generation: u64,
        beyond: Beyond,
    ) -> Self {
        let tools: IndexMap<Arc<str>, Arc<RegisteredTool>> = tools
            .into_iter()
            .map(|tool| (tool.name().into(), tool))
            .collect();
        let definitions = tools.values().map(|t| Arc::clone(t.definition())).collect();
        Self(Arc::new(SnapshotInner {
            tools,
            definitions,
            generation,
            beyond,
        }))
    }

    /// A tool by the name that it is offered by.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<RegisteredTool>> {
        self.0.tools.get(name)
    }

    /// What the model is told of the tools, in order; shared.
    #[must_use]
    pub fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.0.definitions)
    }

    /// The tools, in order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<RegisteredTool>> {
        self.0.tools.values()
    }

    /// How many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.tools.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.tools.is_empty()
    }

    /// The generation of the registry or catalog that this is of.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.0.generation
    }

    /// The name nearest to one that is unknown, for the model that misspelt it.
    #[must_use]
    pub fn nearest_name(&self, name: &str) -> Option<&str> {
        nearest(name, self.0.tools.keys().map(|k| &**k))
    }

    /// What a model is told that called a tool which is not there: `Tool X not found`, and as
    /// far as it is known why, and what to do. A tool that exists and is not offered yet is got
    /// with `listTools` or `searchTools`, whichever is offered (T-5); one that its source lists
    /// and that cannot be offered has a reason (T-4); a misspelt name has a nearest one.
    ///
    /// `callable` says which of the tools may be called in this turn, for a turn that a hook has
    /// narrowed; no other is proposed.
    #[must_use]
    pub fn not_found(&self, name: &str, callable: impl Fn(&str) -> bool) -> String {
        let said = cut(&one_line(name), SAID_NAME);
        let mut text = format!("Tool {said} not found");
        if let Some(more) = self.why_not_found(name, &said, callable) {
            text.push_str(". ");
            text.push_str(&more);
        }
        text
    }

    fn why_not_found(
        &self,
        name: &str,
        said: &str,
        callable: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let beyond = &self.0.beyond;
        let offered = |name: &str| self.get(name).is_some() && callable(name);
        let finder = match (offered(LIST_TOOLS), offered(SEARCH_TOOLS)) {
            (true, true) => Some("listTools or searchTools"),
            (true, false) => Some(LIST_TOOLS),
            (false, true) => Some(SEARCH_TOOLS),
            (false, false) => None,
        };
        let hidden = |name: &str| {
            let all = beyond.all.as_ref()?;
            let tool = all.get(name)?;
            let findable = *tool.source() != SourceId::Builtin && self.get(name).is_none();
            findable.then_some(finder?)
        };
        if let Some(finder) = hidden(name) {
            return Some(format!(
                "It exists but is not offered yet: call {finder} first, and {said} from your next turn on."
            ));
        }
        if self.get(name).is_some() {
            return Some("It exists but cannot be used in this turn.".to_owned());
        }
        if let Some(tool) = beyond.quarantined.iter().find(|t| t.name == name) {
            let reason = cut(&one_line(&tool.reason), SAID_REASON);
            let source = &tool.source;
            return Some(format!(
                "It is listed by {source} but cannot be offered: {reason}"
            ));
        }
        let known = beyond.all.as_ref().map(|all| all.0.tools.keys());
        let names = (self.0.tools.keys().filter(|name| callable(name))).chain(
            known
                .into_iter()
                .flatten()
                .filter(|name| hidden(name).is_some()),
        );
        if let Some(near) = nearest(name, names.map(|name| &**name)) {
            let how = hidden(near)
                .map(|finder| format!(" It is not offered yet: call {finder} first."))
                .unwrap_or_default();
            return Some(format!("Did you mean {near:?}?{how}"));
        }
        let finder = finder.filter(|_| beyond.more)?;
        Some(format!(
            "Not all tools are offered yet: call {finder} to see the others."
        ))
    }
}
