//! What happened, as lines that can be read and compared.
//!
//! Knows: one line per event or message. Does not know: how it came about.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use yiem_agent::{AgentEvent, EventKind, MessageDelta, MessageRole, Outcome};
use yiem_core::{AssistantContent, AssistantMessage, Content, Message, ToolArguments};

/// Collects events; its clone is the listener.
#[derive(Clone, Debug, Default)]
pub struct Events(Arc<Mutex<Vec<AgentEvent>>>);

impl Events {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A listener that puts every event here.
    pub fn listener(&self) -> impl Fn(&AgentEvent) + Send + Sync + 'static {
        let events = self.clone();
        move |event| events.push(event.clone())
    }

    /// Puts an event here.
    pub fn push(&self, event: AgentEvent) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(event);
    }

    /// The events so far.
    #[must_use]
    pub fn all(&self) -> Vec<AgentEvent> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The events so far, taken out.
    #[must_use]
    pub fn take(&self) -> Vec<AgentEvent> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The events so far as a transcript.
    #[must_use]
    pub fn transcript(&self) -> String {
        of_events(&self.all())
    }
}

/// Events, one line each; what belongs to a turn is indented.
#[must_use]
pub fn of_events(events: &[AgentEvent]) -> String {
    let mut text = String::new();
    for event in events {
        let _ = writeln!(text, "{}", line(event));
    }
    text
}

/// An event as a line.
#[must_use]
pub fn line(event: &AgentEvent) -> String {
    match &event.kind {
        EventKind::AgentStart => "agentStart".to_owned(),
        EventKind::AgentEnd { reason, error, .. } => {
            let error = error.as_ref().map(|e| format!(": {e}")).unwrap_or_default();
            format!("agentEnd {}{error}", word(reason))
        }
        EventKind::TurnStart => format!("turnStart {}", event.turn),
        EventKind::TurnEnd {
            message,
            tool_results,
        } => {
            let message = if message.is_some() {
                ""
            } else {
                " without a reply"
            };
            match tool_results.len() {
                0 => format!("turnEnd {}{message}", event.turn),
                1 => format!("turnEnd {}{message}, 1 result", event.turn),
                n => format!("turnEnd {}{message}, {n} results", event.turn),
            }
        }
        EventKind::MessageStart { role, .. } => format!("  messageStart {}", role_word(*role)),
        EventKind::MessageUpdate { delta } => format!("  messageUpdate {}", delta_line(delta)),
        EventKind::MessageEnd { message } => format!("  messageEnd {}", message_line(message)),
        EventKind::ToolExecutionStart {
            tool_call_id,
            tool_name,
            args,
            parent_tool_call_id,
        } => {
            let parent = parent_tool_call_id
                .as_ref()
                .map(|id| format!(" (by {id})"))
                .unwrap_or_default();
            let args = serde_json::to_string(args).unwrap_or_default();
            format!("  toolExecutionStart {tool_call_id} {tool_name} {args}{parent}")
        }
        EventKind::ToolExecutionUpdate {
            tool_call_id,
            partial_result,
            ..
        } => {
            format!("  toolExecutionUpdate {tool_call_id} {partial_result}")
        }
        EventKind::ToolExecutionEnd {
            tool_call_id,
            result,
            is_error,
            ..
        } => {
            let how = if *is_error { "error" } else { "ok" };
            let end = if result.terminate() { " terminate" } else { "" };
            format!(
                "  toolExecutionEnd {tool_call_id} {how}{end} {:?}",
                result.text()
            )
        }
        EventKind::ToolCallRejected {
            tool_call_id,
            reason,
            message,
            ..
        } => {
            format!(
                "  toolCallRejected {tool_call_id} {} {message:?}",
                word(reason)
            )
        }
        EventKind::ApprovalRequested {
            tool_call_id,
            tool_name,
            question,
            ..
        } => {
            format!("  approvalRequested {tool_call_id} {tool_name} {question:?}")
        }
        EventKind::ApprovalResolved {
            tool_call_id,
            resolution,
            reason,
            ..
        } => {
            let reason = reason
                .as_ref()
                .map(|r| format!(" {r:?}"))
                .unwrap_or_default();
            format!(
                "  approvalResolved {tool_call_id} {}{reason}",
                word(resolution)
            )
        }
        EventKind::RetryScheduled {
            attempt,
            max_attempts,
            delay_ms,
            error,
        } => {
            format!("  retryScheduled {attempt} of {max_attempts} in {delay_ms} ms: {error}")
        }
        EventKind::CompactionStart { reason } => format!("  compactionStart: {reason}"),
        EventKind::CompactionEnd {
            messages_before,
            messages_after,
            error,
        } => match error {
            None => format!("  compactionEnd {messages_before} to {messages_after} messages"),
            Some(error) => format!("  compactionEnd failed: {error}"),
        },
        EventKind::QueueChanged {
            change,
            messages,
            steering,
            follow_ups,
        } => {
            let mut texts = String::new();
            for message in messages {
                let _ = write!(texts, " {}", message_line(message));
            }
            let (now, later) = (steering.len(), follow_ups.len());
            format!(
                "  queueChanged {}{texts}, {now} + {later} wait",
                word(change)
            )
        }
        EventKind::ToolsChanged {
            added,
            removed,
            changed,
        } => {
            format!("  toolsChanged +{added:?} -{removed:?} ~{changed:?}")
        }
        EventKind::Warning { message } => format!("  warning {message:?}"),
        other => format!("  {}", serde_json::to_string(other).unwrap_or_default()),
    }
}

/// Messages, one line each.
pub fn of_messages<'m>(messages: impl IntoIterator<Item = &'m Arc<Message>>) -> String {
    let mut text = String::new();
    for message in messages {
        let _ = writeln!(text, "{}", message_line(message));
    }
    text
}

/// A message as a line.
#[must_use]
pub fn message_line(message: &Message) -> String {
    match message {
        Message::User(m) => format!("user {}", content(&m.content)),
        Message::Assistant(m) => format!("assistant {}", assistant(m)),
        Message::ToolResult(m) => {
            let how = if m.is_error { "error" } else { "ok" };
            format!(
                "toolResult {} {how} {}",
                m.tool_call_id,
                content(&m.content)
            )
        }
        Message::Custom(m) => format!("custom {} {}", m.kind, m.data),
    }
}

/// What a run came to, on a line.
#[must_use]
pub fn outcome_line(outcome: &Outcome) -> String {
    let problem = outcome
        .end
        .problem()
        .map(|p| format!(" ({p})"))
        .unwrap_or_default();
    format!(
        "outcome {}{problem} {:?}",
        word(&outcome.end.kind()),
        outcome.text
    )
}

fn assistant(message: &AssistantMessage) -> String {
    let mut parts: Vec<String> = message
        .content
        .iter()
        .map(|block| match block {
            AssistantContent::Text(text) => format!("{:?}", text.text),
            AssistantContent::Reasoning(r) => format!("reasoning {:?}", r.text),
            AssistantContent::ToolCall(call) => match &call.arguments {
                ToolArguments::Object { .. } => {
                    format!("call {} {} {}", call.id, call.name, call.arguments.raw())
                }
                ToolArguments::Unreadable { raw, .. } => {
                    format!("call {} {} unreadable {raw:?}", call.id, call.name)
                }
            },
            AssistantContent::Image(_) => "image".to_owned(),
            AssistantContent::Other(_) => "other".to_owned(),
        })
        .collect();
    if parts.is_empty() {
        parts.push("nothing".to_owned());
    }
    let error = message
        .error_message
        .as_ref()
        .map(|e| format!(": {e}"))
        .unwrap_or_default();
    format!("{} [{}{error}]", parts.join(", "), message.stop_reason)
}

fn content(blocks: &[Content]) -> String {
    let parts: Vec<String> = blocks
        .iter()
        .map(|b| format!("{:?}", b.to_plain_text()))
        .collect();
    if parts.is_empty() {
        "nothing".to_owned()
    } else {
        parts.join(", ")
    }
}

fn delta_line(delta: &MessageDelta) -> String {
    match delta {
        MessageDelta::Text { text } => format!("{text:?}"),
        MessageDelta::Reasoning { text } => format!("reasoning {text:?}"),
        MessageDelta::ToolCallStart { name, .. } => format!("call {name}"),
        MessageDelta::ToolCallArguments { delta, .. } => format!("arguments {delta}"),
        MessageDelta::ToolCallEnd { name, .. } => format!("call {name} whole"),
        MessageDelta::Restarted => "restarted".to_owned(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

fn role_word(role: MessageRole) -> &'static str {
    match role {
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
        MessageRole::ToolResult => "toolResult",
        MessageRole::Custom => "custom",
    }
}

fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
