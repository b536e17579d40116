//! The bytes that are kept of a conversation, and what of them can be used again (O-7).
//!
//! Knows: where in a conversation the bytes do not depend on what comes after, what a grown or
//! shifted one shares with the one before, and when what stands in front of it is another. Does
//! not know: how a message is written; the writer does.

use std::sync::Arc;

use yiem_core::{ChatOptions, History, ToolDefinition};

use super::Asked;
use super::outgoing::Role;
use super::writer::Writer;
use crate::compat::Compat;
use crate::names::OfferedTools;

/// The kind of a custom message that stands for a system message within a conversation.
pub(crate) const SYSTEM_KIND: &str = "yiem_openai.system";

/// What stands behind the messages, in the same bytes.
pub(super) const END: &[u8] = b"]}";

/// Who is shown the conversation, and what it can be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) model: Arc<str>,
    pub(super) images: bool,
    pub(super) audio: bool,
}

/// The tools as they were written last.
#[derive(Debug, Default)]
struct WrittenTools {
    tools: Option<Arc<[Arc<ToolDefinition>]>>,
    json: Vec<u8>,
    offered: Arc<OfferedTools>,
}

/// What an encoder remembers of a conversation.
#[derive(Debug)]
pub(super) struct Memory {
    compat: Arc<Compat>,
    shown: Shown,
    /// The messages that `bytes` are of.
    history: History,
    /// Shared with the request that was made of them, for as long as that is being sent.
    bytes: Arc<Vec<u8>>,
    /// For each number of messages, where their bytes end, if they end there whatever follows.
    marks: Vec<Option<Mark>>,
    tools: WrittenTools,
    head: Option<WrittenHead>,
}

/// What stands before the messages, and what it was made of.
#[derive(Debug)]
struct WrittenHead {
    system: Vec<String>,
    tools: Arc<[Arc<ToolDefinition>]>,
    options: Arc<ChatOptions>,
    stream: bool,
    has_calls: bool,
    more: bool,
    json: Arc<Vec<u8>>,
}

impl WrittenHead {
    fn is_of(&self, asked: &Asked<'_>, more: bool) -> bool {
        Arc::ptr_eq(&self.tools, &asked.request.tools)
            && Arc::ptr_eq(&self.options, &asked.request.options)
            && (self.stream, self.has_calls, self.more) == (asked.stream, asked.has_calls, more)
            && self.system.iter().map(String::as_str).eq(asked.prompts())
    }
}

/// A place in the bytes at which nothing is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) end: usize,
    /// The role of the message that ends there.
    pub(super) last: Option<Role>,
}

impl Memory {
    pub(super) fn new(compat: &Arc<Compat>, shown: &Shown) -> Self {
        Self {
            compat: Arc::clone(compat),
            shown: shown.clone(),
            history: History::new(),
            bytes: Arc::default(),
            marks: vec![Some(Mark { end: 0, last: None })],
            tools: WrittenTools::default(),
            head: None,
        }
    }

    pub(super) fn is_for(&self, compat: &Arc<Compat>, shown: &Shown) -> bool {
        (Arc::ptr_eq(&self.compat, compat) || self.compat == *compat) && self.shown == *shown
    }

    /// What stands before the messages; written again only when something in it is another than
    /// last time. `more` tells whether there are messages.
    pub(super) fn head(
        &mut self,
        asked: &Asked<'_>,
        more: bool,
        write: impl FnOnce(&[u8], bool) -> Vec<u8>,
        write_tools: impl FnOnce() -> Vec<u8>,
    ) -> (Arc<Vec<u8>>, Arc<OfferedTools>) {
        if let Some(held) = self.head.as_ref().filter(|held| held.is_of(asked, more)) {
            return (Arc::clone(&held.json), Arc::clone(&self.tools.offered));
        }
        let tools = self.tools(&asked.request.tools, write_tools);
        let json = Arc::new(write(&tools.json, more));
        self.head = Some(WrittenHead {
            system: asked.prompts().map(str::to_owned).collect(),
            tools: Arc::clone(&asked.request.tools),
            options: Arc::clone(&asked.request.options),
            stream: asked.stream,
            has_calls: asked.has_calls,
            more,
            json: Arc::clone(&json),
        });
        (json, Arc::clone(&self.tools.offered))
    }

    /// The tools as JSON; written again only when they are others than last time.
    fn tools(
        &mut self,
        tools: &Arc<[Arc<ToolDefinition>]>,
        write: impl FnOnce() -> Vec<u8>,
    ) -> &WrittenTools {
        let same = self.tools.tools.as_ref().is_some_and(|held| {
            Arc::ptr_eq(held, tools)
                || (held.len() == tools.len()
                    && held
                        .iter()
                        .zip(tools.iter())
                        .all(|(a, b)| Arc::ptr_eq(a, b)))
        });
        if !same {
            self.tools = WrittenTools {
                json: write(),
                offered: Arc::new(OfferedTools::new(tools.iter().map(|tool| &tool.name))),
                tools: Some(Arc::clone(tools)),
            };
        }
        &self.tools
    }

    /// Writes the messages, with commas between them and [`END`] behind, as shared bytes that
    /// are not copied. Gives those, and how many messages were written anew.
    pub(super) fn write(&mut self, history: &History) -> (Arc<Vec<u8>>, usize) {
        let old = std::mem::replace(&mut self.history, history.clone());
        let grown = old.common_prefix(history) == old.len();
        let mut marks = std::mem::take(&mut self.marks);
        let mut source = None;
        let mut writer = Writer::new(&self.compat, &self.shown);
        if grown {
            // Back to the last place at which nothing was open.
            while let Some(None) = marks.last() {
                marks.pop();
            }
            if let Some(Some(mark)) = marks.last() {
                writer.bytes = match Arc::get_mut(&mut self.bytes) {
                    Some(bytes) => std::mem::take(bytes),
                    // A request with them is still being sent, as when two runs share a memo.
                    None => self.bytes[..mark.end].to_vec(),
                };
                writer.bytes.truncate(mark.end);
                writer.last = mark.last;
            }
        } else {
            let bytes = Arc::clone(&self.bytes);
            source = Some(Source {
                history: old,
                bytes,
                marks: std::mem::take(&mut marks),
                at: 0,
            });
        }
        if marks.is_empty() {
            marks.push(writer.mark());
        }
        let mut at = marks.len() - 1;
        let mut written = 0;
        while let Some(message) = history.get(at) {
            if let Some(source) = &mut source {
                let taken = source.splice(history, at, &mut writer, &mut marks);
                if taken > 0 {
                    at += taken;
                    continue;
                }
            }
            writer.message(message);
            marks.push(writer.mark());
            written += 1;
            at += 1;
        }
        writer.finish();
        let mut bytes = writer.bytes;
        bytes.extend_from_slice(END);
        match Arc::get_mut(&mut self.bytes) {
            Some(held) => *held = bytes,
            None => self.bytes = Arc::new(bytes),
        }
        self.marks = marks;
        (Arc::clone(&self.bytes), written)
    }
}

/// What is left of another history: a window that slid on shares most of its messages.
struct Source {
    history: History,
    bytes: Arc<Vec<u8>>,
    marks: Vec<Option<Mark>>,
    /// Messages before this one were used or passed over.
    at: usize,
}

/// How far ahead a message is looked for: how far a window may slide in one turn.
const REACH: usize = 64;

impl Source {
    fn mark(&self, at: usize) -> Option<Mark> {
        self.marks.get(at).copied().flatten()
    }

    /// Copies the bytes of the messages from `at` on that are here too, if they do not depend
    /// on what stands before them. Gives how many messages that was.
    fn splice(
        &mut self,
        history: &History,
        at: usize,
        writer: &mut Writer<'_>,
        marks: &mut Vec<Option<Mark>>,
    ) -> usize {
        let same = |here: usize, there: usize| matches!((history.get(here), self.history.get(there)), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
        let ahead = self.at..self.history.len().min(self.at + REACH);
        let Some(start) = ahead.into_iter().find(|there| same(at, *there)) else {
            return 0;
        };
        let (Some(here), Some(there)) = (writer.mark(), self.mark(start)) else {
            return 0;
        };
        if here.last != there.last && writer.compat.looks_back() {
            return 0;
        }
        let run = (1..).find(|n| !same(at + n, start + n)).unwrap_or(1);
        let Some(end) = (1..=run)
            .rev()
            .find_map(|n| self.mark(start + n).map(|mark| (n, mark)))
        else {
            return 0;
        };
        let (count, last) = end;
        let mut bytes = &self.bytes[there.end..last.end];
        if !bytes.is_empty() {
            bytes = bytes.strip_prefix(b",").unwrap_or(bytes);
            if here.end > 0 {
                writer.bytes.push(b',');
            }
        }
        writer.bytes.extend_from_slice(bytes);
        let total = writer.bytes.len();
        let moved = |mark: Mark| {
            // A place before the first byte stays before the comma.
            let end = if mark.end == there.end {
                here.end
            } else {
                total - (last.end - mark.end)
            };
            Mark { end, ..mark }
        };
        marks.extend((1..=count).map(|n| self.mark(start + n).map(moved)));
        writer.last = last.last;
        self.at = start + count;
        count
    }
}

impl Compat {
    /// Whether how a message is written depends on the one before it.
    fn looks_back(&self) -> bool {
        self.merge_consecutive || self.assistant_after_tool_result
    }
}
