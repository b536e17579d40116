//! The agent's own compactor: the oldest turns become a summary.
//!
//! Knows: where a conversation may be cut without parting a call from its result, and how the
//! model is asked for a summary. Does not know: when; the run does.

use std::collections::HashSet;
use std::sync::Arc;

use yiem_core::{
    AssistantContent, ChatModelExt, ChatOptions, ChatRequest, Content, History, Message,
    RetryPolicy, ToolCallId, Usage,
};

use crate::hook::CompactionView;

const ASK: &str = "Summarise the conversation so far for yourself, so that you can go on with it \
from the summary alone. Keep: what the user wants and what was decided; facts, names, numbers, \
paths and identifiers that may be needed again; what was tried and what came of it; what is still \
open. Leave out everything else. Answer with the summary only.";

/// The most characters of one message that go into the request for a summary.
const MESSAGE_CHARS: usize = 4_000;
/// The most characters of the request for a summary.
const REQUEST_CHARS: usize = 120_000;

/// Summarises the oldest turns with the model and keeps the last ones as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compactor {
    /// How many of the last user turns stay as they are. Default 2; at least the last message
    /// of a user and what followed it stays when there is room.
    pub keep_turns: usize,
}

impl Default for Compactor {
    fn default() -> Self {
        Self { keep_turns: 2 }
    }
}

impl Compactor {
    /// The messages to be shown from now on.
    ///
    /// The model is asked again by `retry` where its failure allows it; what it took is added to
    /// `spent`, also when nothing comes of it.
    pub(crate) async fn compact(
        &self,
        view: CompactionView,
        retry: RetryPolicy,
        spent: &mut Usage,
    ) -> Result<History, String> {
        let cut = self
            .cut_at(&view.messages)
            .ok_or("there is nothing older that could be summarised")?;
        let old: Vec<Arc<Message>> = view.messages.iter().take(cut).cloned().collect();
        let mut messages = History::new();
        messages.push(Message::user(
            format!("{}\n\n{ASK}", told(&old)),
            view.env.now(),
        ));
        let request = ChatRequest {
            system: Some("You summarise conversations.".into()),
            options: Arc::new(ChatOptions {
                stream: Some(false),
                ..ChatOptions::default()
            }),
            ..ChatRequest::new(messages)
        };
        let model = Arc::clone(&view.model).with_retry(retry, Arc::clone(&view.env));
        let answer = view
            .cancel
            .run_until_cancelled(model.complete(request))
            .await
            .ok_or("the run was cut")?
            .map_err(|error| format!("the model could not summarise it: {error}"))?;
        spent.add(&answer.usage);
        if answer.is_broken() {
            let said = answer.error_message.as_deref();
            let said = said.unwrap_or("its reply says that it failed");
            return Err(format!("the model could not summarise it: {said}"));
        }
        let summary = answer.text();
        if summary.trim().is_empty() {
            return Err("the model's summary is empty".to_owned());
        }
        let mut shown = History::new();
        let head = format!("Summary of the conversation before this message:\n\n{summary}");
        shown.push(Message::user(head, view.env.now()));
        shown.extend(view.messages.range(cut).cloned());
        Ok(shown)
    }

    /// How many of the oldest messages are summarised: up to a place where no call is open.
    fn cut_at(&self, messages: &History) -> Option<usize> {
        let mut users: Vec<usize> = messages
            .iter()
            .enumerate()
            .filter(|(_, m)| m.as_user().is_some())
            .map(|(at, _)| at)
            .collect();
        // The first message is never a place to cut: nothing is before it.
        users.retain(|at| *at > 0);
        let wanted = users.len().checked_sub(self.keep_turns.max(1));
        let by_turns = wanted
            .and_then(|at| users.get(at).copied())
            .or(users.first().copied());
        // One long turn: cut inside it, keeping its latest third.
        let inside = || (messages.len() > 3).then(|| messages.len() - messages.len().div_ceil(3));
        let cut = by_turns.or_else(inside)?;
        let safe = without_open_calls(messages, cut);
        (safe > 0).then_some(safe)
    }
}

/// The last place at or before `cut` where no call waits for its result.
pub(crate) fn without_open_calls(messages: &History, cut: usize) -> usize {
    let mut open: HashSet<&ToolCallId> = HashSet::new();
    let mut safe = 0;
    for (at, message) in messages.iter().enumerate() {
        if open.is_empty() && at <= cut {
            safe = at;
        }
        if at >= cut {
            break;
        }
        match &**message {
            Message::Assistant(m) if !m.is_broken() => {
                open.extend(m.tool_calls().map(|c| &c.id));
            }
            Message::ToolResult(m) => {
                open.remove(&m.tool_call_id);
            }
            _ => {}
        }
    }
    if open.is_empty() && cut >= messages.len() {
        safe = messages.len();
    }
    safe
}

/// A conversation as one text.
fn told(messages: &[Arc<Message>]) -> String {
    let mut parts: Vec<String> = Vec::with_capacity(messages.len());
    for message in messages {
        let text = match &**message {
            Message::User(m) => format!("User: {}", plain(&m.content)),
            Message::Assistant(m) => {
                let said = m.content.iter().filter_map(|block| match block {
                    AssistantContent::Text(text) => Some(text.text.clone()),
                    AssistantContent::ToolCall(call) => Some(format!(
                        "[calls {} with {}]",
                        call.name,
                        call.arguments.raw()
                    )),
                    _ => None,
                });
                format!("Assistant: {}", said.collect::<Vec<_>>().join(" "))
            }
            Message::ToolResult(m) => format!("Result of {}: {}", m.tool_name, plain(&m.content)),
            Message::Custom(_) => continue,
        };
        parts.push(shortened(&text, MESSAGE_CHARS));
    }
    // When even that is too much, the oldest go first.
    let mut total: usize = parts.iter().map(String::len).sum();
    let mut from = 0;
    while total > REQUEST_CHARS && from + 1 < parts.len() {
        total -= parts[from].len();
        from += 1;
    }
    parts[from..].join("\n\n")
}

fn plain(content: &[Content]) -> String {
    content
        .iter()
        .map(Content::to_plain_text)
        .collect::<Vec<_>>()
        .join("\n")
}

fn shortened(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} […]", &text[..at]),
    }
}

#[cfg(test)]
mod tests;
