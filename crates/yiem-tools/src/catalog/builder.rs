//! How a catalog is put together.
//!
//! Knows: what can be wrong with it before anything runs. Does not know: what sources say.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use yiem_core::{Tool, ToolDefinition, ToolSource};

use super::{
    ChangedDefinitions, Discovery, Finder, Shared, Slot, SourceState, SourceStatus, State,
    ToolCatalog,
};
use crate::builtin::{LIST_TOOLS, ListTools, SEARCH_TOOLS, SearchTools};
use crate::name::ClashPolicy;
use crate::registered::SourceId;
use crate::registry::{RegisterError, ToolRegistry};
use crate::schema::SchemaLimits;

/// Puts a [`ToolCatalog`] together.
#[derive(Default)]
pub struct CatalogBuilder {
    tools: Vec<(Arc<dyn Tool>, SourceId)>,
    sources: Vec<Arc<dyn ToolSource>>,
    discovery: Discovery,
    finder: Option<Finder>,
    clash: ClashPolicy,
    changed: ChangedDefinitions,
    known: HashMap<(Arc<str>, String), Arc<ToolDefinition>>,
    source_limits: SchemaLimits,
}

/// Why a catalog could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// A tool of one's own cannot be registered.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// Two sources have the same key.
    #[error("two tool sources are named {name:?}; give one of them another name")]
    SameSource {
        /// The key.
        name: String,
    },
    /// A source's key is empty or holds control characters.
    #[error("a tool source cannot be named {name:?}; use letters, digits, - and _")]
    SourceName {
        /// The key.
        name: String,
    },
}

impl CatalogBuilder {
    /// Adds a tool of one's own.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.shared_tool(Arc::new(tool))
    }

    /// Adds a shared tool of one's own.
    #[must_use]
    pub fn shared_tool(self, tool: Arc<dyn Tool>) -> Self {
        self.tool_of(tool, SourceId::Own)
    }

    /// Adds a tool together with where it comes from, such as a tools directory.
    #[must_use]
    pub fn tool_of(mut self, tool: Arc<dyn Tool>, source: SourceId) -> Self {
        self.tools.push((tool, source));
        self
    }

    /// Adds a source. Where tools of two sources clash, the one added first keeps the name.
    #[must_use]
    pub fn source(self, source: impl ToolSource) -> Self {
        self.shared_source(Arc::new(source))
    }

    /// Adds a shared source.
    #[must_use]
    pub fn shared_source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.sources.push(source);
        self
    }

    /// Sets when the tools of sources are offered; [`Discovery::OnDemand`] by default.
    #[must_use]
    pub fn discovery(mut self, discovery: Discovery) -> Self {
        self.discovery = discovery;
        self
    }

    /// Sets which tools for finding tools are offered. By default `listTools` while sources have
    /// tools that are not offered yet, and always where the model can write tools; once this is
    /// set, always.
    #[must_use]
    pub fn finder(mut self, finder: Finder) -> Self {
        self.finder = Some(finder);
        self
    }

    /// Sets what happens when tools of two sources have the same name (M-6).
    #[must_use]
    pub fn clash_policy(mut self, policy: ClashPolicy) -> Self {
        self.clash = policy;
        self
    }

    /// Sets what happens when a source says something else of a tool than before (M-8).
    #[must_use]
    pub fn changed_definitions(mut self, policy: ChangedDefinitions) -> Self {
        self.changed = policy;
        self
    }

    /// Tells what is known of a source's tool from an earlier time, so that a change since then
    /// is noticed (M-8). See [`ToolCatalog::known_definitions`].
    #[must_use]
    pub fn known_definition(
        mut self,
        source: impl Into<Arc<str>>,
        definition: ToolDefinition,
    ) -> Self {
        let key = (source.into(), definition.name.clone());
        self.known.insert(key, Arc::new(definition));
        self
    }

    /// Sets the limits of schemas that come from sources.
    #[must_use]
    pub fn source_limits(mut self, limits: SchemaLimits) -> Self {
        self.source_limits = limits;
        self
    }

    /// The catalog. No source is contacted yet.
    ///
    /// # Errors
    /// A tool's name or schema cannot be used, or two things have the same name.
    pub fn build(self) -> Result<ToolCatalog, CatalogError> {
        let mut registry =
            ToolRegistry::with_policy(self.clash).with_source_limits(self.source_limits);
        for (tool, source) in self.tools {
            registry.register_shared(tool, source)?;
        }
        let mut slots = Vec::new();
        let mut statuses = Vec::new();
        let mut keys = HashSet::new();
        for source in self.sources {
            let key: Arc<str> = source.name().into();
            if key.trim().is_empty() || key.chars().any(char::is_control) {
                return Err(CatalogError::SourceName {
                    name: key.to_string(),
                });
            }
            if !keys.insert(Arc::clone(&key)) {
                return Err(CatalogError::SameSource {
                    name: key.to_string(),
                });
            }
            registry.declare_source(Arc::clone(&key));
            statuses.push(SourceStatus {
                name: Arc::clone(&key),
                required: source.required(),
                own: source.own(),
                state: SourceState::Waiting,
            });
            slots.push(Slot {
                source,
                key,
                loading: tokio::sync::Mutex::new(()),
            });
        }
        let finder = self.finder.unwrap_or_default();
        let list = finder != Finder::Search;
        let search = finder != Finder::List;
        let servers = statuses.iter().any(|s| !s.own);
        let grows = slots.iter().any(|s| s.source.grows());
        let wanted = self.finder.is_some() || servers || grows;
        let mut clash = None;
        let catalog = Arc::new_cyclic(|weak| {
            let mut sticky = HashSet::new();
            let builtin: [(bool, &'static str, Arc<dyn Tool>); 2] = [
                (list, LIST_TOOLS, Arc::new(ListTools::weak(weak.clone()))),
                (
                    search,
                    SEARCH_TOOLS,
                    Arc::new(SearchTools::weak(weak.clone())),
                ),
            ];
            for (offered, name, tool) in builtin {
                if wanted && offered {
                    if let Err(error) = registry.register_shared(tool, SourceId::Builtin) {
                        clash = Some(error);
                    }
                    if self.finder.is_some() || grows {
                        sticky.insert(name);
                    }
                }
            }
            let demanded = servers && self.discovery != Discovery::OnDemand;
            Shared {
                slots,
                discovery: self.discovery,
                finder,
                changed: self.changed,
                state: Mutex::new(State {
                    registry,
                    statuses,
                    disclosed: Some(HashSet::new()),
                    sticky,
                    known: self.known,
                    stale: HashSet::new(),
                    notices: VecDeque::new(),
                    lost_notices: 0,
                    snapshot: None,
                    index: None,
                }),
                generation: watch::Sender::new(0),
                demanded: watch::Sender::new(demanded),
            }
        });
        match clash {
            Some(error) => Err(error.into()),
            None => Ok(ToolCatalog::from_shared(catalog)),
        }
    }
}

impl fmt::Debug for CatalogBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<&str> = self
            .tools
            .iter()
            .map(|(t, _)| t.definition().name.as_str())
            .collect();
        let sources: Vec<&str> = self.sources.iter().map(|s| s.name()).collect();
        f.debug_struct("CatalogBuilder")
            .field("tools", &tools)
            .field("sources", &sources)
            .field("discovery", &self.discovery)
            .finish_non_exhaustive()
    }
}
