//! Lists: all their pages, what is remembered of them, and what changed.

use super::request::{Course, Written};
use super::{ChangedDefinitions, McpClient, McpEvent, Shared};
use crate::dialect::Dialect;
use crate::error::McpError;
use crate::protocol::{BadDefinition, ListPage, ParamHeader, RemoteTool, method, param_headers};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use yiem_core::CancelToken;

const NOT_ACCEPTED: &str = "its definition changed, and the change was not accepted";

/// The tools of a server, all pages of them.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ToolListing {
    /// The tools in the server's order.
    pub tools: Vec<Arc<RemoteTool>>,
    /// Definitions that cannot be used, and why (M-4).
    pub rejected: Vec<BadDefinition>,
    /// Things to tell that are no failure, e.g. a list that did not end.
    pub warnings: Vec<String>,
    /// The client's generation that this list is of.
    pub generation: u64,
}

/// What a client remembers of its server's lists.
#[derive(Debug)]
pub(crate) struct Listings {
    state: Mutex<State>,
    /// One lists at a time; who waits for it takes what it brings.
    lister: Semaphore,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Arc<ToolListing>>,
    /// Until when the last list is fresh, where the server said so.
    fresh_until: Option<Duration>,
    /// How many lists were read.
    count: u64,
    /// Every definition ever accepted, by name.
    known: HashMap<String, (u64, Arc<RemoteTool>)>,
    /// Changes that were not accepted, by name: nobody is asked twice for the same.
    refused: HashMap<String, u64>,
    headers: HashMap<String, Arc<[ParamHeader]>>,
}

impl Default for Listings {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            lister: Semaphore::new(1),
            hasher: RandomState::new(),
        }
    }
}

impl Listings {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last list is not fresh any more.
    pub(crate) fn outdate(&self) {
        self.state().fresh_until = None;
    }

    /// Counts a list whose time is up as a change, once.
    pub(crate) fn expire(&self, client: &Shared) {
        let expired = {
            let mut state = self.state();
            let expired = state
                .fresh_until
                .is_some_and(|until| until <= client.env.elapsed());
            if expired {
                state.fresh_until = None;
            }
            expired
        };
        if expired {
            client.generation.send_modify(|generation| *generation += 1);
        }
    }

    /// Whether a list was read before.
    pub(crate) fn listed(&self) -> bool {
        self.state().last.is_some()
    }

    pub(crate) fn headers_of(&self, tool: &str) -> Option<Arc<[ParamHeader]>> {
        self.state().headers.get(tool).cloned()
    }
}

/// Which page comes next (M-4), as a value.
#[derive(Debug)]
pub(super) struct Pager {
    bare: bool,
    seen: HashSet<String>,
    pages: usize,
    max_pages: usize,
}

/// What follows a page.
#[derive(Debug, PartialEq)]
pub(super) enum NextPage {
    /// Ask for it by this cursor.
    Ask(Value),
    /// The list is whole.
    End,
    /// The list ends here, and why; the page that said so is dropped when the flag says so.
    Stop(String, bool),
}

impl Pager {
    pub(super) fn new(dialect: Dialect, max_pages: usize) -> Self {
        Self {
            bare: dialect == Dialect::Bare,
            seen: HashSet::new(),
            pages: 0,
            max_pages,
        }
    }

    pub(super) fn after(&mut self, cursor: Option<Value>) -> NextPage {
        self.pages += 1;
        let Some(cursor) = cursor.filter(|cursor| !cursor.is_null()) else {
            return NextPage::End;
        };
        if self.bare && cursor == "" {
            return NextPage::End;
        }
        if !self.seen.insert(cursor.to_string()) {
            let why = if cursor == "" {
                "the list ended with an empty cursor that led back to itself".to_owned()
            } else {
                format!(
                    "the list did not end: its cursor {} came twice",
                    short(&cursor)
                )
            };
            return NextPage::Stop(why, true);
        }
        if self.pages >= self.max_pages {
            return NextPage::Stop(
                format!("the list was cut after {} pages", self.pages),
                false,
            );
        }
        NextPage::Ask(cursor)
    }
}

fn short(value: &Value) -> String {
    crate::jsonrpc::excerpt(value.to_string().as_bytes())
}

/// All elements of a list.
#[derive(Debug, Default)]
pub(super) struct WholeList {
    pub(super) items: Vec<Value>,
    pub(super) warnings: Vec<String>,
    pub(super) ttl: Option<Duration>,
    pub(super) dialect: Option<Dialect>,
}

impl Shared {
    /// Reads a list to its end.
    pub(super) async fn whole_list(
        self: &Arc<Self>,
        name: &'static str,
        key: &str,
        cancel: &CancelToken,
    ) -> Result<WholeList, McpError> {
        let mut list = WholeList::default();
        let mut pager: Option<Pager> = None;
        let mut cursor: Option<Value> = None;
        let course = Course::quiet(self.config.timeouts.list, cancel.clone());
        loop {
            let asked = cursor.clone();
            let write = move |_: &super::session::Session| {
                let mut params = Map::new();
                if let Some(cursor) = &asked {
                    params.insert("cursor".into(), cursor.clone());
                }
                Written {
                    params,
                    param_headers: Vec::new(),
                }
            };
            let (session, result) = match self.request(name, &course, &write).await {
                Ok(answer) => answer,
                Err(error)
                    if cursor.as_ref().is_some_and(|cursor| cursor == "")
                        && error.refusal().is_some() =>
                {
                    list.warnings
                        .push("an empty cursor was refused, so it was taken as the end".into());
                    return Ok(list);
                }
                Err(error) => return Err(error.doing(name)),
            };
            let page = ListPage::read(result, key)
                .map_err(|what| McpError::unreadable(what).at(&self.name).doing(name))?;
            list.dialect = Some(session.dialect);
            let pager =
                pager.get_or_insert_with(|| Pager::new(session.dialect, self.config.max_pages));
            let next = pager.after(page.next_cursor);
            if !matches!(next, NextPage::Stop(_, true)) {
                list.ttl = match (list.ttl, page.ttl) {
                    (Some(before), Some(ttl)) => Some(before.min(ttl)),
                    (None, ttl) if list.items.is_empty() => ttl,
                    _ => None,
                };
                list.items.extend(page.items);
            }
            if list.items.len() > self.config.max_items {
                list.items.truncate(self.config.max_items);
                list.warnings.push(format!(
                    "the list was cut after {} elements",
                    self.config.max_items
                ));
                return Ok(list);
            }
            match next {
                NextPage::End => return Ok(list),
                NextPage::Stop(why, _) => {
                    list.warnings.push(why);
                    return Ok(list);
                }
                NextPage::Ask(next) => cursor = Some(next),
            }
        }
    }

    /// The tools; the list that is remembered, where it is fresh.
    pub(crate) async fn tool_listing(
        self: &Arc<Self>,
        cancel: &CancelToken,
    ) -> Result<Arc<ToolListing>, McpError> {
        self.listings.expire(self);
        let count = {
            let state = self.listings.state();
            if state.fresh_until.is_some()
                && let Some(last) = &state.last
            {
                return Ok(Arc::clone(last));
            }
            state.count
        };
        let turn = cancel
            .run_until_cancelled(self.listings.lister.acquire())
            .await;
        let Some(Ok(_turn)) = turn else {
            return Err(McpError::cancelled().at(&self.name));
        };
        {
            let state = self.listings.state();
            if state.count != count
                && let Some(last) = &state.last
                && last.generation == *self.generation.borrow()
            {
                return Ok(Arc::clone(last));
            }
        }
        // Connecting first: a connection that was lost and is new counts as a change of the list.
        let session = self.session(cancel).await?;
        let generation = *self.generation.borrow();
        let list = if session.facts.offers("tools") {
            self.whole_list(method::TOOLS_LIST, "tools", cancel).await?
        } else {
            WholeList::default()
        };
        let dialect = list.dialect.unwrap_or(session.dialect);
        let ttl = list.ttl.filter(|ttl| !ttl.is_zero());
        let listing = Arc::new(self.read_tools(list, dialect, generation).await);
        let mut state = self.listings.state();
        state.count += 1;
        state.last = Some(Arc::clone(&listing));
        if *self.generation.borrow() == generation {
            state.fresh_until = ttl.map(|ttl| self.env.elapsed().saturating_add(ttl));
        }
        Ok(listing)
    }

    async fn read_tools(&self, list: WholeList, dialect: Dialect, generation: u64) -> ToolListing {
        let mut listing = ToolListing {
            generation,
            warnings: list.warnings,
            ..ToolListing::default()
        };
        let mut names = HashSet::new();
        let mirrors = dialect.is_modern() && self.transport.profile().mirrors_headers;
        for definition in list.items {
            let tool = match RemoteTool::read(definition) {
                Ok(tool) => tool,
                Err(bad) => {
                    listing.rejected.push(bad);
                    continue;
                }
            };
            let mut reject = |reason: String| {
                listing.rejected.push(BadDefinition {
                    name: tool.name.clone(),
                    reason,
                })
            };
            if !names.insert(tool.name.clone()) {
                reject("the server lists a tool of this name twice".into());
                continue;
            }
            if tool.needs_task {
                reject("it can only be called as a task, which this client does not do".into());
                continue;
            }
            if mirrors {
                match param_headers(&tool.name, &tool.input_schema) {
                    Ok(headers) => {
                        self.listings
                            .state()
                            .headers
                            .insert(tool.name.clone(), headers.into());
                    }
                    Err(bad) => {
                        listing.rejected.push(bad);
                        continue;
                    }
                }
            }
            let tool = Arc::new(tool);
            match self.check_definition(&tool).await {
                Ok(()) => listing.tools.push(tool),
                Err(reason) => listing.rejected.push(BadDefinition {
                    name: tool.name.clone(),
                    reason,
                }),
            }
        }
        for bad in &listing.rejected {
            tracing::warn!(server = %self.name, tool = %bad.name, reason = %bad.reason, "a tool is left out");
        }
        for warning in &listing.warnings {
            tracing::warn!(server = %self.name, %warning, "an odd list of tools");
        }
        listing
    }

    /// Remembers a definition; one that differs from what was known under its name goes by the policy.
    async fn check_definition(&self, tool: &Arc<RemoteTool>) -> Result<(), String> {
        let hash = self.listings.hasher.hash_one((
            &tool.description,
            tool.input_schema.to_string(),
            tool.output_schema.as_ref().map(Value::to_string),
        ));
        let before = {
            let mut state = self.listings.state();
            match state.known.get(&tool.name) {
                None => {
                    state
                        .known
                        .insert(tool.name.clone(), (hash, Arc::clone(tool)));
                    return Ok(());
                }
                Some((known, _)) if *known == hash => {
                    state.refused.remove(&tool.name);
                    return Ok(());
                }
                Some(_) if state.refused.get(&tool.name) == Some(&hash) => {
                    return Err(NOT_ACCEPTED.into());
                }
                Some((_, before)) => Arc::clone(before),
            }
        };
        self.tell(McpEvent::DefinitionChanged {
            tool: tool.name.clone(),
        });
        let accepted = match &self.config.changed_definitions {
            ChangedDefinitions::Accept => true,
            ChangedDefinitions::Refuse => false,
            ChangedDefinitions::Ask(person) => person.accept(&self.name, &before, tool).await,
        };
        let mut state = self.listings.state();
        if !accepted {
            state.refused.insert(tool.name.clone(), hash);
            return Err(NOT_ACCEPTED.into());
        }
        state.refused.remove(&tool.name);
        state
            .known
            .insert(tool.name.clone(), (hash, Arc::clone(tool)));
        Ok(())
    }
}

impl McpClient {
    /// The tools of the server, all pages of them, in its order (M-4). A list that the server called
    /// fresh for some time is not asked for again in that time.
    ///
    /// # Errors
    /// The server cannot be reached, refuses, or answers with no list.
    pub async fn tools(&self) -> Result<Arc<ToolListing>, McpError> {
        self.0.tool_listing(&CancelToken::new()).await
    }
}
