//! The calls of one reply, put together from their pieces.
//!
//! Knows: which call a piece belongs to, when it opens a new one, when a name is a repeat, and
//! that ids within a reply differ. The order of precedence is that of the case corpus
//! (`PRECEDENCE.md`); each step names its rule.
//! Does not know: events, text, why the reply ended.

use std::collections::{HashMap, HashSet};

use yiem_core::{Env, Extra, IdKind, JsonObject, ToolCall};

use crate::arguments::{self, Reply};

/// One piece of a call as a server sends it. Empty text means that nothing was said.
#[derive(Debug, Default)]
pub(crate) struct Piece<'a> {
    pub index: Option<i64>,
    pub id: &'a str,
    pub name: &'a str,
    pub arguments: &'a str,
    pub extra: JsonObject,
}

/// What a piece did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The call that took it.
    pub at: usize,
    /// Whether the call can be told of now, and could not before.
    pub shown: bool,
}

/// The calls so far.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Vec<Building>,
    /// Where to look when there are more than [`FEW`].
    many: Option<Box<Many>>,
}

/// So many calls are looked through one by one; replies with more are rare.
const FEW: usize = 16;

/// The places of many calls.
#[derive(Debug, Default)]
struct Many {
    by_index: HashMap<i64, usize>,
    by_id: HashMap<String, usize>,
}

impl Many {
    fn note(&mut self, at: usize, call: &Building) {
        if let Some(index) = call.index {
            self.by_index.insert(index, at);
        }
        self.note_id(at, call);
    }

    fn note_id(&mut self, at: usize, call: &Building) {
        if !call.id.is_empty() {
            self.by_id.entry(call.id.clone()).or_insert(at);
        }
    }
}

#[derive(Debug, Default)]
struct Building {
    index: Option<i64>,
    id: String,
    name: String,
    arguments: String,
    /// Where each fragment of the arguments but the last ends.
    ends: Vec<usize>,
    extra: JsonObject,
    /// Another index at which this call's id and name were said again, before any arguments.
    again_at: Option<i64>,
    shown: bool,
    /// How often it was asked whether the arguments are whole; bounds that work.
    asked: u8,
}

impl Building {
    /// Whether there is anything to run: a ghost without name and arguments is none.
    fn is_real(&self) -> bool {
        !self.name.is_empty() || !self.arguments.is_empty()
    }

    /// Whether a piece says that it stands at another index.
    fn is_elsewhere(&self, index: Option<i64>) -> bool {
        matches!((self.index, index), (Some(own), Some(index)) if own != index)
    }

    fn is_whole(&mut self) -> bool {
        self.asked = self.asked.saturating_add(1);
        self.asked < u8::MAX && arguments::is_object(&self.arguments)
    }
}

impl Calls {
    pub(crate) fn is_empty(&self) -> bool {
        !self.calls.iter().any(Building::is_real)
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Id and name of a call as far as they are known.
    pub(crate) fn head(&self, at: usize) -> (&str, &str) {
        (&self.calls[at].id, &self.calls[at].name)
    }

    /// Takes a piece of a stream.
    pub(crate) fn take(&mut self, piece: Piece<'_>) -> Taken {
        let owner = self.owner(&piece);
        if let Some(at) = owner.filter(|at| !self.opens(*at, &piece)) {
            return self.add(at, piece);
        }
        let at = self.open(piece.index);
        if let Some(owner) = owner.filter(|_| piece.name.is_empty()) {
            // Its name was said when its id was, which is the other call's too.
            self.calls[at].name = self.calls[owner].name.clone();
        }
        self.add(at, piece)
    }

    /// Takes a call that came whole: it is one of its own, whatever its id or index.
    pub(crate) fn take_whole(&mut self, piece: Piece<'_>) -> Taken {
        let at = self.open(None);
        self.add(at, piece)
    }

    /// Rule: a piece belongs to the call with its index, or, without an index, to the call
    /// with its id, or else to the last call. Where several calls had the index, its id tells.
    fn owner(&self, piece: &Piece<'_>) -> Option<usize> {
        let last = self.calls.len().checked_sub(1)?;
        let Some(index) = piece.index else {
            return Some(self.with_id(piece.id).unwrap_or(last));
        };
        let newest = &self.calls[last];
        if newest.index == Some(index) && (piece.id.is_empty() || newest.id == piece.id) {
            return Some(last);
        }
        let by_id = self.with_id(piece.id);
        if let Some(at) = by_id.filter(|at| self.calls[*at].index == Some(index)) {
            return Some(at);
        }
        match self.with_index(index) {
            Some(at) => Some(at),
            None if by_id.is_some() => by_id,
            // An index never seen: only a name can open a call, see below.
            None if piece.name.is_empty() => Some(last),
            None => None,
        }
    }

    /// The newest call with that index.
    fn with_index(&self, index: i64) -> Option<usize> {
        match &self.many {
            Some(many) => many.by_index.get(&index).copied(),
            None => self.calls.iter().rposition(|c| c.index == Some(index)),
        }
    }

    /// The first call with that id.
    fn with_id(&self, id: &str) -> Option<usize> {
        if id.is_empty() {
            return None;
        }
        match &self.many {
            Some(many) => many.by_id.get(id).copied(),
            None => self.calls.iter().position(|c| c.id == id),
        }
    }

    /// Whether any call has an id.
    fn has_ids(&self) -> bool {
        match &self.many {
            Some(many) => !many.by_id.is_empty(),
            None => self.calls.iter().any(|c| !c.id.is_empty()),
        }
    }

    /// Rule: a piece opens a new call when it has a new id and a name, or (no ids anywhere)
    /// when it has a name, the call so far is a complete object, and the fragment starts a new
    /// object. A new id without a name does not. A name that differs from one whose arguments
    /// are complete can only be another call's, so there ids elsewhere do not matter. An id that
    /// a server gives twice is no new one, but at another index another name or a second object
    /// is another call's.
    fn opens(&mut self, at: usize, piece: &Piece<'_>) -> bool {
        let call = &self.calls[at];
        let object = piece.arguments.trim_start().starts_with('{');
        if piece.name.is_empty() {
            let told = call.again_at.is_some() && call.again_at == piece.index;
            return told && object && self.calls[at].is_whole();
        }
        let other_name = call.name != piece.name && !call.name.is_empty();
        let starts = object || (other_name && piece.arguments.is_empty());
        if !piece.id.is_empty() && !call.id.is_empty() {
            let elsewhere = call.is_elsewhere(piece.index);
            return self.with_id(piece.id).is_none()
                || (elsewhere && starts && (other_name || self.calls[at].is_whole()));
        }
        let ids_told = !piece.id.is_empty() || self.has_ids();
        starts
            && (other_name || !ids_told || self.calls[at].id.is_empty())
            && self.calls[at].is_whole()
    }

    fn open(&mut self, index: Option<i64>) -> usize {
        let at = self.calls.len();
        if at == 0 {
            // Most replies have one.
            self.calls.reserve_exact(1);
        }
        self.calls.push(Building {
            index,
            ..Building::default()
        });
        match &mut self.many {
            Some(many) => many.note(at, &self.calls[at]),
            None if at == FEW => {
                let many = self.many.insert(Box::default());
                for (at, call) in self.calls.iter().enumerate() {
                    many.note(at, call);
                }
            }
            None => {}
        }
        at
    }

    fn add(&mut self, at: usize, piece: Piece<'_>) -> Taken {
        let call = &mut self.calls[at];
        if call.id.is_empty() && !piece.id.is_empty() {
            call.id.push_str(piece.id);
            if let Some(many) = &mut self.many {
                many.note_id(at, call);
            }
        }
        if !piece.name.is_empty() && piece.arguments.is_empty() && call.is_elsewhere(piece.index) {
            call.again_at = piece.index;
        }
        // Rule: a name equal to the one held is a repeat; a differing piece is appended only
        // while no arguments have come, or to none. One that begins with all that is held is the
        // whole so far, as with arguments.
        let growing = call.name.is_empty() || call.arguments.is_empty();
        if !piece.name.is_empty() && call.name != piece.name && growing {
            if piece.name.starts_with(&*call.name) {
                call.name.clear();
            }
            call.name.push_str(piece.name);
        }
        if !piece.arguments.is_empty() {
            if !call.arguments.is_empty() {
                call.ends.push(call.arguments.len());
            }
            call.arguments.push_str(piece.arguments);
        }
        if !piece.extra.is_empty() {
            call.extra.extend(piece.extra);
        }
        let shown = !call.shown && call.is_real();
        call.shown |= shown;
        Taken { at, shown }
    }

    /// The calls, each with its place: arguments read, ids made where they are missing or came
    /// twice, names cleaned by `name`.
    pub(crate) fn finish(
        self,
        reply: Reply,
        env: &dyn Env,
        name: impl Fn(String) -> String,
    ) -> Vec<(usize, ToolCall)> {
        let mut seen = HashSet::new();
        let few = self.calls.len() <= FEW;
        let mut done: Vec<(usize, ToolCall)> = Vec::with_capacity(self.calls.len());
        for (at, call) in self.calls.into_iter().enumerate() {
            if !call.is_real() {
                continue;
            }
            let mut id = call.id;
            loop {
                let taken = match few {
                    true => done.iter().any(|(_, call)| call.id.as_str() == id),
                    false => !seen.insert(id.clone()),
                };
                if !taken && !id.trim().is_empty() {
                    break;
                }
                id = env.new_id(IdKind::Call);
            }
            let call = ToolCall {
                id: id.into(),
                name: name(call.name),
                arguments: arguments::read_fragments(&call.arguments, &call.ends, reply),
                extra: Extra::from(call.extra),
            };
            done.push((at, call));
        }
        done
    }
}

/// A name without the control tokens that a chat template left in it: what stands before the
/// first, or, in a header such as `<|channel|>commentary to=functions.x`, after `to=`.
pub(crate) fn clean_name(name: &str) -> &str {
    const RECIPIENT: &str = "to=";
    let name = name.trim();
    let Some(token) = name.find("<|") else {
        return name;
    };
    let head = name[..token].trim();
    let addressed = |text: &'_ str| text.find(RECIPIENT).map(|at| at + RECIPIENT.len());
    match addressed(name) {
        Some(at) if head.is_empty() || addressed(head).is_some() => {
            let rest = &name[at..];
            let end = rest
                .find(|c: char| c.is_whitespace() || c == '<')
                .unwrap_or(rest.len());
            let target = &rest[..end];
            target.strip_prefix("functions.").unwrap_or(target)
        }
        _ => head,
    }
}
