//! The tools that there are, in order, by name (T-3, M-6).
//!
//! Knows: who owns which name, which source's tool comes first, what is quarantined and why.
//! Does not know: how sources are reached, which tools a model is offered.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use yiem_core::{LoadedTools, RejectedTool, Tool, ToolDefinition};

use crate::name::{self, ClashPolicy, MAX_NAME_CHARS};
use crate::registered::{RegisteredTool, SourceId};
use crate::schema::{SchemaError, SchemaLimits};
use crate::snapshot::ToolSnapshot;

/// The tools that there are: in the order in which they came, found by name in O(1), each with
/// its source (T-3).
///
/// One's own tools are registered one by one, and a second one of a name is refused. A source
/// (a server, say) replaces its whole list at once; its names are settled when the next
/// snapshot is taken, by the order in which sources were declared and not by the order in which
/// they answered (M-6), and then stay as they are.
#[derive(Debug, Default)]
pub struct ToolRegistry {
    policy: ClashPolicy,
    source_limits: SchemaLimits,
    /// One's own and built-in tools.
    own: IndexMap<Arc<str>, Arc<RegisteredTool>>,
    sources: Vec<SourceTools>,
    /// Every name ever given, in that order; it never changes its place.
    order: IndexSet<Arc<str>>,
    entries: IndexMap<Arc<str>, Arc<RegisteredTool>>,
    clashes: Vec<QuarantinedTool>,
    settled: bool,
    generation: u64,
    snapshot: Option<ToolSnapshot>,
}

#[derive(Debug)]
struct SourceTools {
    key: Arc<str>,
    tools: IndexMap<Arc<str>, Arc<RegisteredTool>>,
    quarantined: Vec<QuarantinedTool>,
    /// The source's name of a tool to the name that it is offered by; kept when the tool goes.
    names: HashMap<Arc<str>, Arc<str>>,
}

/// A tool that a source lists and that is not offered (T-4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinedTool {
    /// The source's name for it.
    pub name: String,
    /// Where it comes from.
    pub source: SourceId,
    /// Why it is not offered, as a short sentence.
    pub reason: String,
}

impl fmt::Display for QuarantinedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: {}", self.name, self.source, self.reason)
    }
}

/// Why a tool of one's own could not be registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// There is a tool of that name already.
    #[error("there is already a tool {name:?} (of {held_by}); give one of the two another name")]
    Clash {
        /// The name.
        name: String,
        /// Whose tool has it.
        held_by: SourceId,
    },
    /// The name cannot be offered to a model.
    #[error("a tool cannot be named {name:?}: {reason}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// One of its schemas cannot be used.
    #[error("the schema of the tool {name:?} cannot be used")]
    Schema {
        /// The tool's name.
        name: String,
        /// What is wrong with it.
        #[source]
        source: SchemaError,
    },
}

/// What a new list of a source changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceChange {
    /// The source's own names of tools that are new.
    pub added: Vec<String>,
    /// The source's own names of tools that are gone.
    pub removed: Vec<String>,
    /// Tools whose description or schemas are others than before (M-8).
    pub changed: Vec<ChangedDefinition>,
    /// Tools that are not offered, unless the list before said so already and why.
    pub quarantined: Vec<QuarantinedTool>,
    /// What was odd about definitions that are used all the same, each with the tool's name.
    pub warnings: Vec<String>,
}

/// A known tool whose description or schemas are others than before (M-8).
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedDefinition {
    /// Where it comes from.
    pub source: SourceId,
    /// What was known.
    pub before: Arc<ToolDefinition>,
    /// What the source says now.
    pub after: Arc<ToolDefinition>,
}

/// A source's list with its schemas compiled: the costly part, done without the registry.
#[derive(Debug)]
pub(crate) struct CompiledTools {
    tools: IndexMap<Arc<str>, Arc<RegisteredTool>>,
    quarantined: Vec<QuarantinedTool>,
}

/// What is known of a source's tools, so that unchanged ones are not compiled again.
pub(crate) type KnownTools = IndexMap<Arc<str>, Arc<RegisteredTool>>;

impl CompiledTools {
    pub(crate) fn new(
        key: &Arc<str>,
        loaded: LoadedTools,
        known: &KnownTools,
        limits: &SchemaLimits,
    ) -> Self {
        let source = SourceId::Source(Arc::clone(key));
        let quarantine = |name: &str, reason: String| QuarantinedTool {
            name: crate::validate::problem::cut(name, 200),
            source: source.clone(),
            reason,
        };
        let mut tools: IndexMap<Arc<str>, Arc<RegisteredTool>> = IndexMap::new();
        let mut quarantined: Vec<QuarantinedTool> = loaded
            .rejected
            .iter()
            .map(|RejectedTool { name, reason }| quarantine(name, reason.clone()))
            .collect();
        for tool in loaded.tools {
            let definition = Arc::clone(tool.definition());
            let name = definition.name.as_str();
            if let Some(reason) = name::unusable(name) {
                quarantined.push(quarantine(name, reason.to_owned()));
                continue;
            }
            if tools.contains_key(name) {
                quarantined.push(quarantine(
                    name,
                    "the source lists this name twice; the first holds".to_owned(),
                ));
                continue;
            }
            let same = known
                .get(name)
                .filter(|k| *k.tool().definition() == definition)
                .map(|k| k.with_tool(Arc::clone(&tool)));
            match same.map_or_else(|| RegisteredTool::compile(tool, source.clone(), limits), Ok) {
                Ok(registered) => {
                    tools.insert(name.into(), Arc::new(registered));
                }
                Err(error) => quarantined.push(quarantine(name, error.to_string())),
            }
        }
        Self { tools, quarantined }
    }

    /// Takes a tool out of the list and says why.
    pub(crate) fn hold(&mut self, name: &str, reason: &str) {
        if let Some(tool) = self.tools.shift_remove(name) {
            self.quarantined.push(QuarantinedTool {
                name: name.to_owned(),
                source: tool.source().clone(),
                reason: reason.to_owned(),
            });
        }
    }

    pub(crate) fn tools(&self) -> &KnownTools {
        &self.tools
    }
}

impl ToolRegistry {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty registry that settles clashes between sources by this policy.
    #[must_use]
    pub fn with_policy(policy: ClashPolicy) -> Self {
        Self {
            policy,
            ..Self::default()
        }
    }

    /// Sets the limits of schemas that come from sources.
    #[must_use]
    pub fn with_source_limits(mut self, limits: SchemaLimits) -> Self {
        self.source_limits = limits;
        self
    }

    /// The limits of schemas that come from sources.
    #[must_use]
    pub fn source_limits(&self) -> &SchemaLimits {
        &self.source_limits
    }

    /// Registers a tool of one's own; one's own tool of the same name is an error.
    ///
    /// # Errors
    /// The name is taken or cannot be offered, or a schema cannot be used.
    pub fn register(&mut self, tool: impl Tool) -> Result<Arc<RegisteredTool>, RegisterError> {
        self.register_shared(Arc::new(tool), SourceId::Own)
    }

    /// Registers a single tool of any source. A tool of the same name is replaced if it came
    /// from the same named source, and is an error otherwise (T-3).
    ///
    /// # Errors
    /// The name is taken or cannot be offered, or a schema cannot be used.
    pub fn register_shared(
        &mut self,
        tool: Arc<dyn Tool>,
        source: SourceId,
    ) -> Result<Arc<RegisteredTool>, RegisterError> {
        let name: Arc<str> = tool.definition().name.as_str().into();
        let unusable = name::unusable(&name).map(str::to_owned).or_else(|| {
            (name.chars().count() > MAX_NAME_CHARS)
                .then(|| format!("it is longer than {MAX_NAME_CHARS} characters"))
        });
        if let Some(reason) = unusable {
            return Err(RegisterError::Name {
                name: name.to_string(),
                reason,
            });
        }
        let holder = self
            .own
            .get(&name)
            .or_else(|| self.entries.get(&name))
            .map(|t| t.source().clone());
        let replaces = matches!(&source, SourceId::Source(_)) && holder.as_ref() == Some(&source);
        match holder {
            Some(held_by) if !replaces => {
                return Err(RegisterError::Clash {
                    name: name.to_string(),
                    held_by,
                });
            }
            _ => {}
        }
        let registered =
            RegisteredTool::compile(tool, source, &SchemaLimits::own()).map_err(|source| {
                RegisterError::Schema {
                    name: name.to_string(),
                    source,
                }
            })?;
        let registered = Arc::new(registered);
        self.own.insert(Arc::clone(&name), Arc::clone(&registered));
        self.order.insert(name);
        self.touch();
        Ok(registered)
    }

    /// Takes out a tool that was registered singly. True if there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let removed = self.own.shift_remove(name).is_some();
        if removed {
            self.entries.shift_remove(name);
            self.touch();
        }
        removed
    }

    /// Declares a source and with it its rank: of two sources with a tool of the same name, the
    /// one declared first keeps the name (M-6).
    pub fn declare_source(&mut self, key: impl Into<Arc<str>>) {
        let key = key.into();
        if !self.sources.iter().any(|s| s.key == key) {
            self.sources.push(SourceTools {
                key,
                tools: IndexMap::new(),
                quarantined: Vec::new(),
                names: HashMap::new(),
            });
        }
    }

    /// Replaces the whole list of a source. Tools that cannot be used are quarantined alone.
    pub fn replace_source(
        &mut self,
        key: impl Into<Arc<str>>,
        loaded: LoadedTools,
    ) -> SourceChange {
        let key = key.into();
        let compiled =
            CompiledTools::new(&key, loaded, &self.known_tools(&key), &self.source_limits);
        self.apply(&key, compiled)
    }

    /// What is known of a source's tools, by the source's own names.
    pub(crate) fn known_tools(&self, key: &str) -> KnownTools {
        self.sources
            .iter()
            .find(|s| *s.key == *key)
            .map(|s| s.tools.clone())
            .unwrap_or_default()
    }

    pub(crate) fn apply(&mut self, key: &Arc<str>, compiled: CompiledTools) -> SourceChange {
        self.declare_source(Arc::clone(key));
        let CompiledTools { tools, quarantined } = compiled;
        let Some(source) = self.sources.iter_mut().find(|s| s.key == *key) else {
            return SourceChange::default();
        };
        let mut change = SourceChange {
            quarantined: quarantined
                .iter()
                .filter(|tool| !source.quarantined.contains(tool))
                .cloned()
                .collect(),
            ..SourceChange::default()
        };
        for (name, tool) in &tools {
            match source.tools.get(name) {
                None => change.added.push(name.to_string()),
                Some(before) => {
                    let (old, new) = (before.tool().definition(), tool.tool().definition());
                    if changed(old, new) {
                        change.changed.push(ChangedDefinition {
                            source: tool.source().clone(),
                            before: Arc::clone(old),
                            after: Arc::clone(new),
                        });
                    }
                }
            }
            if source
                .tools
                .get(name)
                .is_none_or(|b| b.warnings() != tool.warnings())
            {
                change
                    .warnings
                    .extend(tool.warnings().iter().map(|w| format!("{name}: {w}")));
            }
        }
        let gone = source
            .tools
            .keys()
            .filter(|name| !tools.contains_key(*name));
        change.removed = gone.map(ToString::to_string).collect();
        let same = source.quarantined == quarantined
            && source.tools.len() == tools.len()
            && source
                .tools
                .iter()
                .zip(&tools)
                .all(|((a, old), (b, new))| a == b && Arc::ptr_eq(old.tool(), new.tool()));
        source.tools = tools;
        source.quarantined = quarantined;
        if !same {
            self.touch();
        }
        change
    }

    fn touch(&mut self) {
        self.settled = false;
        self.snapshot = None;
        self.generation += 1;
    }

    /// Settles the names of sources' tools that have none yet.
    fn settle(&mut self) {
        if self.settled {
            return;
        }
        self.settled = true;
        self.clashes.clear();
        let mut taken: HashSet<Arc<str>> = self.own.keys().cloned().collect();
        for source in &self.sources {
            taken.extend(source.names.values().cloned());
        }
        let own = &self.own;
        let mut named: HashMap<Arc<str>, Arc<RegisteredTool>> = HashMap::new();
        for source in &mut self.sources {
            for (original, tool) in &source.tools {
                let name = match source.names.get(original) {
                    Some(name) => Arc::clone(name),
                    None => match choose(self.policy, &source.key, original, own, &taken) {
                        Ok(name) => {
                            taken.insert(Arc::clone(&name));
                            source.names.insert(Arc::clone(original), Arc::clone(&name));
                            name
                        }
                        Err(reason) => {
                            self.clashes.push(QuarantinedTool {
                                name: original.to_string(),
                                source: SourceId::Source(Arc::clone(&source.key)),
                                reason,
                            });
                            continue;
                        }
                    },
                };
                self.order.insert(Arc::clone(&name));
                let offered = if *name == *tool.name() {
                    Arc::clone(tool)
                } else {
                    Arc::new(RegisteredTool::clone(tool).named(&name))
                };
                named.insert(name, offered);
            }
        }
        self.entries = self
            .order
            .iter()
            .filter_map(|name| {
                let tool = own.get(name).or_else(|| named.get(name))?;
                Some((Arc::clone(name), Arc::clone(tool)))
            })
            .collect();
    }

    /// The tools as they are now: immutable, and the same for whoever holds it (T-3). Settles
    /// names; O(1) when nothing changed since the last one.
    pub fn snapshot(&mut self) -> ToolSnapshot {
        self.settle();
        let (entries, generation) = (&self.entries, self.generation);
        self.snapshot
            .get_or_insert_with(|| ToolSnapshot::new(entries.values().cloned(), generation))
            .clone()
    }

    /// A tool by the name that it is offered by; names that are not settled yet are not found.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<RegisteredTool>> {
        self.own.get(name).or_else(|| self.entries.get(name))
    }

    /// Counts the changes.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Tools that are listed by their sources and not offered, with the reasons.
    pub fn quarantined(&mut self) -> Vec<QuarantinedTool> {
        self.settle();
        let refused = self.sources.iter().flat_map(|s| &s.quarantined);
        refused.chain(&self.clashes).cloned().collect()
    }
}

/// The name for a source's tool that has none yet, or why it cannot have one.
fn choose(
    policy: ClashPolicy,
    key: &str,
    original: &str,
    own: &IndexMap<Arc<str>, Arc<RegisteredTool>>,
    taken: &HashSet<Arc<str>>,
) -> Result<Arc<str>, String> {
    let plain = name::bounded(original);
    let first = match policy {
        ClashPolicy::AlwaysPrefix => name::prefixed(key, original),
        ClashPolicy::OnCollision | ClashPolicy::Refuse => match own.get(plain.as_str()) {
            Some(holder) => {
                return Err(format!(
                    "{} has a tool of this name, which is kept",
                    holder.source()
                ));
            }
            None => plain,
        },
    };
    if !taken.contains(first.as_str()) {
        return Ok(first.into());
    }
    if policy == ClashPolicy::Refuse {
        return Err("another source has a tool of this name already".to_owned());
    }
    let second = name::prefixed(key, original);
    if !taken.contains(second.as_str()) {
        return Ok(second.into());
    }
    // Two sources' prefixed names meet: a hash of both parts tells them apart.
    let third = name::with_hash(&second, &format!("{key}\0{original}"));
    if taken.contains(third.as_str()) {
        return Err("its name cannot be told apart from another's".to_owned());
    }
    Ok(third.into())
}

/// Whether a definition changed in a way that a person would want to know of (M-8).
pub(crate) fn changed(before: &Arc<ToolDefinition>, after: &Arc<ToolDefinition>) -> bool {
    !Arc::ptr_eq(before, after)
        && (before.description != after.description
            || before.input_schema != after.input_schema
            || before.output_schema != after.output_schema)
}
