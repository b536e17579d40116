//! All tools of an agent, and which of them its model is offered (T-5).
//!
//! Knows: one's own tools, the sources and how far each has got, the discovery policy, what has
//! to be told. Does not know: a runtime. Work that goes on by itself is handed out as futures
//! ([`ToolCatalog::source_tasks`]) that whoever runs the agent spawns and owns.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::sync::watch;
use yiem_core::{CancelToken, SourceError, Tool, ToolDefinition, ToolSource};

mod builder;
mod load;
mod notice;
mod policy;
mod task;

pub use builder::{CatalogBuilder, CatalogError};
pub use notice::CatalogNotice;
pub use policy::{ChangedDefinitions, Discovery, Finder};

use crate::builtin::{LIST_TOOLS, SEARCH_TOOLS};
use crate::registered::{RegisteredTool, SourceId};
use crate::registry::{QuarantinedTool, RegisterError, ToolRegistry};
use crate::search::{SearchHit, SearchIndex};
use crate::snapshot::{Beyond, ToolSnapshot};

/// All tools of an agent: one's own, and those of its sources as far as they are known (T-5).
///
/// Cheap to clone; all clones are one catalog. A turn takes a [`ToolSnapshot`] and works with
/// that, whatever changes meanwhile.
///
/// The usual life: [`CatalogBuilder::build`], the futures of [`ToolCatalog::source_tasks`]
/// spawned, [`ToolCatalog::ready`] before the first turn, and before each turn
/// [`ToolCatalog::refresh`] and [`ToolCatalog::snapshot`].
#[derive(Clone)]
pub struct ToolCatalog(Arc<Shared>);

pub(crate) struct Shared {
    slots: Vec<Slot>,
    discovery: Discovery,
    finder: Finder,
    changed: ChangedDefinitions,
    state: Mutex<State>,
    /// Counts what could change a snapshot.
    generation: watch::Sender<u64>,
    /// Whether sources are wanted yet.
    demanded: watch::Sender<bool>,
}

struct Slot {
    source: Arc<dyn ToolSource>,
    key: Arc<str>,
    /// One load at a time; whoever comes second finds the first one's work done.
    loading: tokio::sync::Mutex<()>,
}

struct State {
    registry: ToolRegistry,
    statuses: Vec<SourceStatus>,
    /// Sources' tools that are offered, by offered name; `None` means all.
    disclosed: Option<HashSet<Arc<str>>>,
    /// Built-in tools that were offered once stay offered.
    sticky: HashSet<&'static str>,
    /// What each source's tools were when they were seen first, or approved.
    known: HashMap<(Arc<str>, String), Arc<ToolDefinition>>,
    /// Sources to be loaded again whatever their generation.
    stale: HashSet<usize>,
    notices: VecDeque<CatalogNotice>,
    lost_notices: usize,
    snapshot: Option<ToolSnapshot>,
    index: Option<Arc<SearchIndex>>,
}

/// How far a source has got.
#[derive(Clone, Debug)]
pub struct SourceStatus {
    /// The key that it is configured by.
    pub name: Arc<str>,
    /// Whether the first run fails without it (M-7).
    pub required: bool,
    /// Whether its tools are one's own: offered from the first turn whatever the policy (T-5).
    pub own: bool,
    /// What is known of it.
    pub state: SourceState,
}

/// What is known of a source.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SourceState {
    /// It has not answered yet.
    Waiting,
    /// It is there, and was not asked for its tools yet ([`Discovery::OnDemand`]).
    Connected,
    /// Its tools are known.
    Loaded {
        /// Its generation that they are of.
        generation: u64,
        /// How many there are, quarantined ones left out.
        tools: usize,
    },
    /// It could not be loaded. Tools that it gave before stay.
    Failed {
        /// Why.
        error: Arc<SourceError>,
    },
}

/// How many notices are kept for whoever takes them; older ones are dropped and counted.
const MAX_NOTICES: usize = 1_000;

impl ToolCatalog {
    /// A catalog to be filled with tools and sources.
    #[must_use]
    pub fn builder() -> CatalogBuilder {
        CatalogBuilder::default()
    }

    /// The tools that a turn works with: immutable. O(1) while nothing has changed.
    #[must_use]
    pub fn snapshot(&self) -> ToolSnapshot {
        self.0.snapshot()
    }

    /// Counts what could change the next snapshot.
    #[must_use]
    pub fn generation(&self) -> u64 {
        *self.0.generation.borrow()
    }

    /// Ends when the generation is another than `seen`, or the catalog is gone.
    pub fn changed(&self, seen: u64) -> impl Future<Output = ()> + Send + 'static {
        let mut generation = self.0.generation.subscribe();
        async move {
            // An error means that the catalog is gone, which ends the wait as well.
            let _ = generation.wait_for(|now| *now != seen).await;
        }
    }

    /// Registers a tool of one's own while the agent lives; the next snapshot has it (T-7).
    ///
    /// # Errors
    /// The name is taken or cannot be offered, or a schema cannot be used.
    pub fn register(&self, tool: impl Tool) -> Result<Arc<RegisteredTool>, RegisterError> {
        self.register_shared(Arc::new(tool), SourceId::Own)
    }

    /// Registers a tool of a source that adds its tools one by one, such as a tools directory.
    /// One of the same source and name is replaced; the next snapshot has it (T-3, T-7).
    ///
    /// # Errors
    /// The name is taken or cannot be offered, or a schema cannot be used.
    pub fn register_shared(
        &self,
        tool: Arc<dyn Tool>,
        source: SourceId,
    ) -> Result<Arc<RegisteredTool>, RegisterError> {
        let registered = self.0.lock().registry.register_shared(tool, source)?;
        self.0.touch();
        Ok(registered)
    }

    /// Takes out a tool that was registered singly. True if there was one.
    pub fn remove(&self, name: &str) -> bool {
        let removed = self.0.lock().registry.remove(name);
        if removed {
            self.0.touch();
        }
        removed
    }

    /// The futures that load the sources in the background and follow their changes: to be
    /// spawned and owned by whoever runs the agent, each ends by itself when the catalog is
    /// gone. Nothing else here goes on by itself; without them, sources load when asked for.
    #[must_use]
    pub fn source_tasks(
        &self,
        env: &Arc<dyn yiem_core::Env>,
    ) -> Vec<yiem_core::BoxFuture<'static, ()>> {
        task::tasks(&self.0, env)
    }

    /// To be awaited before the first turn: loads the sources that are required (M-7), and those
    /// whose tools are one's own (T-5).
    ///
    /// # Errors
    /// A required source could not be loaded.
    pub async fn ready(&self, cancel: &CancelToken) -> Result<(), Arc<SourceError>> {
        let outcomes = join_all(self.0.slots.iter().enumerate().filter_map(|(i, slot)| {
            let required = slot.source.required();
            let wanted = required || slot.source.own();
            let load = async move {
                let loaded = self.0.load(i, cancel).await;
                if required { loaded } else { Ok(()) }
            };
            wanted.then_some(load)
        }))
        .await;
        outcomes
            .into_iter()
            .collect::<Result<Vec<()>, _>>()
            .map(|_| ())
    }

    /// To be awaited before each turn: loads sources again whose lists are known to have changed
    /// (`list_changed`). At once when none has. A source that fails keeps the tools that it gave.
    pub async fn refresh(&self, cancel: &CancelToken) {
        let stale: Vec<usize> = {
            let state = self.0.lock();
            (0..self.0.slots.len())
                .filter(|&i| match state.statuses[i].state {
                    SourceState::Loaded { generation, .. } => {
                        state.stale.contains(&i)
                            || self.0.slots[i].source.generation() != generation
                    }
                    _ => false,
                })
                .collect()
        };
        if !stale.is_empty() {
            join_all(stale.into_iter().map(|i| self.0.load(i, cancel))).await;
        }
    }

    /// Loads every source that has not been loaded or has changed, and ends when each has
    /// answered or failed: what `listTools` does, and what a program does that wants its
    /// servers' tools at once (T-5). Failures are in [`ToolCatalog::sources`].
    pub async fn load_all(&self, cancel: &CancelToken) {
        self.0.load_all(cancel).await;
    }

    /// Ends when each source that is wanted has answered or failed, without asking any itself:
    /// for whoever spawned the source tasks and gives them a moment before the first turn.
    pub async fn answered(&self) {
        let mut generation = self.0.generation.subscribe();
        while !self.0.all_answered() {
            if generation.changed().await.is_err() {
                return;
            }
        }
    }

    /// Ends when something is known of each source: its tools where they are wanted, whether it is
    /// there where they are not ([`Discovery::OnDemand`]), or why not. Asks none itself: for
    /// whoever spawned the source tasks. [`ToolCatalog::sources`] says what is known.
    pub async fn settled(&self) {
        let mut generation = self.0.generation.subscribe();
        while !self.0.all_settled() {
            if generation.changed().await.is_err() {
                return;
            }
        }
    }

    /// Offers the model all tools of all sources from now on, as `listTools` does. The names
    /// that were not offered before.
    pub fn disclose_all(&self) -> Vec<String> {
        self.0.disclose(None)
    }

    /// Offers the model these tools of sources from now on, as `searchTools` does. The names
    /// that were not offered before.
    pub fn disclose<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
        self.0
            .disclose(Some(names.into_iter().map(Arc::from).collect()))
    }

    /// All tools that are known, offered or not.
    #[must_use]
    pub fn all(&self) -> ToolSnapshot {
        self.0.lock().registry.snapshot()
    }

    /// The tools that fit some words best, best first, out of all that are known (T-5).
    #[must_use]
    pub fn search(&self, words: &str, limit: usize) -> Vec<SearchHit> {
        self.0.search(words, limit)
    }

    /// How far each source has got, in the order in which they were configured.
    #[must_use]
    pub fn sources(&self) -> Vec<SourceStatus> {
        self.0.lock().statuses.clone()
    }

    /// Tools that their sources list and that are not offered, with the reasons (T-4).
    #[must_use]
    pub fn quarantined(&self) -> Vec<QuarantinedTool> {
        self.0.lock().registry.quarantined()
    }

    /// Of what happened, that which is a fault of a source or a tool, oldest first; the rest stays
    /// for [`ToolCatalog::take_notices`]. For whoever tells of faults at once.
    #[must_use]
    pub fn take_faults(&self) -> Vec<CatalogNotice> {
        let notices = &mut self.0.lock().notices;
        let (faults, rest) = notices.drain(..).partition(CatalogNotice::is_fault);
        *notices = rest;
        Vec::from(faults)
    }

    /// What happened since this was called last, oldest first: for listeners and logs.
    #[must_use]
    pub fn take_notices(&self) -> Vec<CatalogNotice> {
        let mut state = self.0.lock();
        let lost = std::mem::take(&mut state.lost_notices);
        let first = (lost > 0).then_some(CatalogNotice::Lost { count: lost });
        first.into_iter().chain(state.notices.drain(..)).collect()
    }

    /// Takes a held tool's changed definition as good (M-8). `name` is the source's own name for
    /// it. True if the tool is known; the next [`ToolCatalog::refresh`] loads it.
    pub fn approve(&self, source: &str, name: &str) -> bool {
        self.0.approve(source, name)
    }

    /// The definitions of sources' tools as they are known, to be kept and given to
    /// [`CatalogBuilder::known_definition`] another time (M-8), with their sources' keys.
    #[must_use]
    pub fn known_definitions(&self) -> Vec<(Arc<str>, Arc<ToolDefinition>)> {
        let state = self.0.lock();
        let mut known: Vec<_> = state
            .known
            .iter()
            .map(|((key, _), d)| (Arc::clone(key), Arc::clone(d)))
            .collect();
        drop(state);
        known.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| x.name.cmp(&y.name)));
        known
    }

    /// Loads one source again, whatever its generation. False if there is no such source.
    ///
    /// # Errors
    /// It could not be loaded; tools that it gave before stay.
    pub async fn reload(
        &self,
        source: &str,
        cancel: &CancelToken,
    ) -> Result<bool, Arc<SourceError>> {
        let Some(i) = self.0.slots.iter().position(|s| *s.key == *source) else {
            return Ok(false);
        };
        self.0.lock().stale.insert(i);
        self.0.load(i, cancel).await.map(|()| true)
    }

    /// Lets the sources go, politely, all at once.
    pub async fn close(&self) {
        // One that panics has let go, too.
        let closing = self.0.slots.iter().map(|slot| async {
            slot.source.close().await;
        });
        join_all(closing.map(|closing| AssertUnwindSafe(closing).catch_unwind())).await;
    }

    pub(crate) fn downgrade(&self) -> std::sync::Weak<Shared> {
        Arc::downgrade(&self.0)
    }

    pub(crate) fn from_shared(shared: Arc<Shared>) -> Self {
        Self(shared)
    }
}

impl fmt::Debug for ToolCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sources: Vec<&str> = self.0.slots.iter().map(|s| &*s.key).collect();
        f.debug_struct("ToolCatalog")
            .field("discovery", &self.0.discovery)
            .field("sources", &sources)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while it was held left whole values behind: nothing here is half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was offered may be another now.
    fn touch(&self) {
        {
            let mut state = self.lock();
            state.snapshot = None;
            state.index = None;
        }
        self.generation.send_modify(|n| *n += 1);
    }

    fn demand(&self) {
        self.demanded
            .send_if_modified(|wanted| !std::mem::replace(wanted, true));
    }

    fn all_answered(&self) -> bool {
        let demanded = *self.demanded.borrow();
        self.lock().all_answered(demanded)
    }

    fn all_settled(&self) -> bool {
        let demanded = *self.demanded.borrow();
        let state = self.lock();
        let known = |s: &SourceStatus| !matches!(s.state, SourceState::Waiting);
        state.all_answered(demanded) && state.statuses.iter().all(known)
    }

    fn approve(&self, source: &str, name: &str) -> bool {
        let mut state = self.lock();
        let known = state
            .known
            .remove(&(Arc::from(source), name.to_owned()))
            .is_some();
        if known && let Some(i) = self.slots.iter().position(|s| *s.key == *source) {
            state.stale.insert(i);
        }
        known
    }

    fn snapshot(&self) -> ToolSnapshot {
        let mut state = self.lock();
        if let Some(snapshot) = &state.snapshot {
            return snapshot.clone();
        }
        let demanded = *self.demanded.borrow();
        let generation = *self.generation.borrow();
        let answered = state.all_answered(demanded);
        let all = state.registry.snapshot();
        self.disclose_by_policy(&mut state, &all, answered);
        let hidden = all
            .iter()
            .any(|t| *t.source() != SourceId::Builtin && !state.offers(t));
        let servers = state.statuses.iter().any(|s| !s.own);
        let find = servers && (hidden || !answered || !demanded);
        let list = find && self.finder != Finder::Search;
        let search = find && self.finder != Finder::List;
        for (name, wanted) in [(LIST_TOOLS, list), (SEARCH_TOOLS, search)] {
            if wanted {
                state.sticky.insert(name);
            }
        }
        let quarantined = state.registry.quarantined();
        let offered = all.iter().filter(|t| state.offers(t)).cloned();
        let beyond = Beyond {
            all: Some(all.clone()),
            quarantined,
            more: find,
        };
        let snapshot = ToolSnapshot::within(offered, generation, beyond);
        state.snapshot = Some(snapshot.clone());
        snapshot
    }

    /// What the policy offers by itself; what was offered once stays offered.
    fn disclose_by_policy(&self, state: &mut State, all: &ToolSnapshot, answered: bool) {
        let fits = match self.discovery {
            Discovery::OnDemand => false,
            Discovery::Eager => true,
            Discovery::Auto { up_to } => {
                all.iter()
                    .filter(|t| *t.source() != SourceId::Builtin)
                    .count()
                    <= up_to
            }
        };
        if !fits || state.disclosed.is_none() {
            return;
        }
        if answered && self.discovery == Discovery::Eager {
            state.disclosed = None;
        } else if let Some(disclosed) = &mut state.disclosed {
            disclosed.extend(all.iter().map(|t| Arc::from(t.name())));
        }
    }

    fn disclose(&self, names: Option<HashSet<Arc<str>>>) -> Vec<String> {
        let added = {
            let mut state = self.lock();
            let all = state.registry.snapshot();
            let before: HashSet<&str> = all
                .iter()
                .filter(|t| state.offers(t))
                .map(|t| t.name())
                .collect();
            match (&mut state.disclosed, names) {
                (disclosed, None) => *disclosed = None,
                (Some(disclosed), Some(names)) => disclosed.extend(names),
                (None, Some(_)) => {}
            }
            all.iter()
                .filter(|t| state.offers(t) && !before.contains(t.name()))
                .map(|t| t.name().to_owned())
                .collect::<Vec<_>>()
        };
        if !added.is_empty() {
            self.touch();
        }
        added
    }

    fn search(&self, words: &str, limit: usize) -> Vec<SearchHit> {
        let index = {
            let mut state = self.lock();
            match &state.index {
                Some(index) => Arc::clone(index),
                None => {
                    let all = state.registry.snapshot();
                    let found = all.iter().filter(|t| *t.source() != SourceId::Builtin);
                    let index = Arc::new(SearchIndex::new(found.map(|t| &**t.definition())));
                    state.index = Some(Arc::clone(&index));
                    index
                }
            }
        };
        index.search(words, limit)
    }
}

impl State {
    /// Whether each source that is wanted has answered or failed.
    fn all_answered(&self, demanded: bool) -> bool {
        self.statuses
            .iter()
            .filter(|s| demanded || s.own)
            .all(|s| !matches!(s.state, SourceState::Waiting | SourceState::Connected))
    }

    fn offers(&self, tool: &RegisteredTool) -> bool {
        match tool.source() {
            SourceId::Own => true,
            SourceId::Builtin => self.sticky.contains(tool.name()),
            // Added singly while the agent lives (a self-made tool): that was asked for.
            SourceId::Source(key) => {
                !self.statuses.iter().any(|s| s.name == *key && !s.own)
                    || self
                        .disclosed
                        .as_ref()
                        .is_none_or(|d| d.contains(tool.name()))
            }
        }
    }

    fn tell(&mut self, notice: CatalogNotice) {
        if self.notices.len() >= MAX_NOTICES {
            self.notices.pop_front();
            self.lost_notices += 1;
        }
        self.notices.push_back(notice);
    }
}
