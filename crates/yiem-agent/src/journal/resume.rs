//! What a session's records add up to (S-3).
//!
//! Knows: records in order. Does not know: files, tools, runs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use yiem_core::{Content, History, Message, Timestamp, ToolCallId, ToolResultMessage, Usage};

use super::{JournalRecord, OpenCall, Session};

/// What the model reads of a call whose outcome nobody knows.
pub(crate) const OUTCOME_UNKNOWN: &str = "The outcome of this call is unknown: the program ended \
while it ran. It may have taken effect or not; find out before you call it again.";

impl Session {
    /// The session that these records are of: the history with every message that was written
    /// down, and the calls of the last reply that are not all answered.
    #[must_use]
    pub fn of_records(records: impl IntoIterator<Item = JournalRecord>) -> Self {
        let mut reader = Reader::default();
        for record in records {
            reader.take(record);
        }
        reader.finish()
    }
}

/// Notes which tools are not offered any more.
pub(crate) fn note_tools(hidden: &mut BTreeSet<String>, added: &[String], removed: &[String]) {
    hidden.retain(|name| !added.contains(name));
    hidden.extend(removed.iter().cloned());
}

impl OpenCall {
    /// The result of a call whose outcome nobody knows.
    pub(crate) fn unknown(id: ToolCallId, tool: String) -> ToolResultMessage {
        ToolResultMessage {
            tool_call_id: id,
            tool_name: tool,
            content: vec![Content::text(OUTCOME_UNKNOWN)],
            is_error: true,
            ..ToolResultMessage::default()
        }
    }
}

/// A conversation as an application hands it in: calls without a result, which no model takes, get
/// one that says that the outcome is unknown. Those of the last reply are left alone where the
/// session says how far they had got.
pub(crate) fn answered(history: &History, tail_is_open: bool, now: Timestamp) -> History {
    let mut whole = History::new();
    let mut missing: Vec<(ToolCallId, String)> = Vec::new();
    let mut added = false;
    for message in history.iter() {
        match &**message {
            Message::ToolResult(result) => missing.retain(|(id, _)| *id != result.tool_call_id),
            _ => added |= answer(&mut whole, &mut missing, now),
        }
        if let Message::Assistant(reply) = &**message
            && !reply.is_broken()
        {
            missing.extend(reply.tool_calls().map(|c| (c.id.clone(), c.name.clone())));
        }
        whole.push(Arc::clone(message));
    }
    if !tail_is_open {
        added |= answer(&mut whole, &mut missing, now);
    }
    // What was handed in is shared with who handed it in, if nothing had to be added.
    if added { whole } else { history.clone() }
}

fn answer(whole: &mut History, missing: &mut Vec<(ToolCallId, String)>, now: Timestamp) -> bool {
    let any = !missing.is_empty();
    for (id, name) in missing.drain(..) {
        let mut result = OpenCall::unknown(id, name);
        result.timestamp = now;
        whole.push(Message::ToolResult(result));
    }
    any
}

#[derive(Default)]
struct Reader {
    history: History,
    shown: Option<History>,
    /// The calls of the last reply, in order.
    calls: Vec<(ToolCallId, String)>,
    results: HashMap<ToolCallId, Arc<Message>>,
    begun: HashSet<ToolCallId>,
    model: Option<String>,
    hidden_tools: BTreeSet<String>,
    usage: Usage,
    tool_usage: Usage,
    /// Messages whose tokens are counted, or are another session's: written again after a
    /// rewind, or at the beginning of a branch, they do not count again.
    paid: Vec<Arc<Message>>,
    /// How many messages of a branch are still to come.
    branched: usize,
}

impl Reader {
    fn take(&mut self, record: JournalRecord) {
        match record {
            JournalRecord::Message { message } => {
                self.close_calls();
                self.count(&message);
                if let Message::Assistant(m) = &*message
                    && !m.is_broken()
                {
                    self.calls = m
                        .tool_calls()
                        .map(|c| (c.id.clone(), c.name.clone()))
                        .collect();
                }
                self.enter(message);
            }
            JournalRecord::CallIntent { tool_call_id, .. } => {
                self.begun.insert(tool_call_id);
            }
            JournalRecord::CallResult { message } => {
                if let Some(result) = message.as_tool_result() {
                    let id = result.tool_call_id.clone();
                    self.count(&message);
                    self.results.entry(id).or_insert(message);
                }
                if self
                    .calls
                    .iter()
                    .all(|(id, _)| self.results.contains_key(id))
                {
                    self.close_calls();
                }
            }
            JournalRecord::Compaction { shown } => {
                self.close_calls();
                self.shown = Some(shown.into_iter().collect());
            }
            JournalRecord::Reset => {
                let mut paid = std::mem::take(&mut self.paid);
                paid.extend(self.history.iter().cloned());
                paid.extend(self.results.values().cloned());
                *self = Self {
                    model: self.model.take(),
                    hidden_tools: std::mem::take(&mut self.hidden_tools),
                    usage: self.usage,
                    tool_usage: self.tool_usage,
                    paid,
                    ..Self::default()
                };
            }
            JournalRecord::Usage { usage } => self.usage.add(&usage),
            JournalRecord::ModelChanged { model } => self.model = Some(model),
            JournalRecord::ToolsChanged { added, removed } => {
                note_tools(&mut self.hidden_tools, &added, &removed);
            }
            JournalRecord::Branch { messages, .. } => self.branched = messages,
            _ => {}
        }
    }

    /// Adds up what a message cost, once.
    fn count(&mut self, message: &Arc<Message>) {
        if self.branched > 0 {
            self.branched -= 1;
            return;
        }
        let (total, usage) = match &**message {
            Message::Assistant(m) => (&mut self.usage, m.usage),
            Message::ToolResult(m) => (&mut self.tool_usage, m.usage.unwrap_or_default()),
            _ => return,
        };
        if usage.is_unknown() {
            return;
        }
        match self.paid.iter().position(|paid| paid == message) {
            Some(at) => {
                self.paid.swap_remove(at);
            }
            None => total.add(&usage),
        }
    }

    fn enter(&mut self, message: Arc<Message>) {
        if let Some(shown) = &mut self.shown {
            shown.push(Arc::clone(&message));
        }
        self.history.push(message);
    }

    /// The results of the last reply enter the history, in the order of the reply. What is
    /// missing although something came after it is answered: its outcome is unknown.
    fn close_calls(&mut self) {
        for (id, name) in std::mem::take(&mut self.calls) {
            let result = self
                .results
                .remove(&id)
                .unwrap_or_else(|| Arc::new(Message::ToolResult(OpenCall::unknown(id, name))));
            self.enter(result);
        }
        self.results.clear();
        self.begun.clear();
    }

    fn finish(mut self) -> Session {
        let open = std::mem::take(&mut self.calls)
            .into_iter()
            .map(|(id, _)| OpenCall {
                result: self.results.remove(&id),
                begun: self.begun.contains(&id),
                tool_call_id: id,
            })
            .collect();
        Session {
            id: None,
            history: self.history,
            shown: self.shown,
            open,
            model: self.model,
            hidden_tools: self.hidden_tools,
            usage: self.usage,
            tool_usage: self.tool_usage,
        }
    }
}

#[cfg(test)]
mod tests;
