//! What a run tells, shown to a person.
//!
//! Knows: which event changes what on the screen. Does not know: how the screen looks.

use std::io::Write;
use std::time::Duration;

use serde_json::Value;
use yiem::{AgentEvent, EventKind, MessageDelta, MessageRole};

use crate::screen::Show;

/// Shows events, one after another.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Whether any text of the message that is coming was shown.
    any_text: bool,
}

impl Watch {
    /// Shows an event; `now` is the time since some fixed point.
    pub(crate) fn event<O: Write, E: Write>(
        &mut self,
        show: &mut Show<O, E>,
        event: &AgentEvent,
        now: Duration,
    ) {
        match &event.kind {
            EventKind::MessageStart {
                role: MessageRole::Assistant,
                ..
            } => {
                self.any_text = false;
                show.model_asked(now);
            }
            EventKind::TurnStart => show.model_asked(now),
            EventKind::MessageUpdate { delta } => match delta {
                MessageDelta::Text { text } => {
                    self.any_text |= !text.is_empty();
                    show.text(text);
                }
                MessageDelta::Reasoning { text } => show.reasoning(text),
                MessageDelta::Restarted if std::mem::take(&mut self.any_text) => {
                    show.reply_begins_anew();
                    show.model_asked(now);
                }
                _ => {}
            },
            EventKind::MessageEnd { message } => {
                if let Some(reply) = message.as_assistant() {
                    // A model that answers whole has no pieces.
                    if !self.any_text {
                        show.text(&reply.text());
                    }
                    show.message_ended();
                }
            }
            EventKind::ToolExecutionStart {
                tool_call_id,
                tool_name,
                args,
                ..
            } => {
                let args = Value::Object((**args).clone());
                show.call_started(tool_call_id.as_str(), tool_name, &args, now);
            }
            EventKind::ToolExecutionUpdate {
                tool_call_id,
                partial_result,
                ..
            } => {
                show.call_updated(tool_call_id.as_str(), partial_result, now);
            }
            EventKind::ToolExecutionEnd {
                tool_call_id,
                result,
                is_error,
                ..
            } => {
                show.call_ended(tool_call_id.as_str(), &result.text(), *is_error, now);
            }
            EventKind::ToolCallRejected {
                tool_name, message, ..
            } => {
                show.call_rejected(tool_name, message);
            }
            EventKind::RetryScheduled {
                attempt,
                max_attempts,
                delay_ms,
                error,
            } => {
                let delay = crate::screen::duration(Duration::from_millis(*delay_ms));
                show.note(&format!(
                    "{error}; trying again in {delay} ({attempt} of {max_attempts})"
                ));
            }
            EventKind::CompactionStart { reason } => {
                show.note(&format!(
                    "the conversation is too long for the model and is shortened: {reason}"
                ));
            }
            EventKind::CompactionEnd {
                error: Some(error), ..
            } => {
                show.note(&format!("it could not be shortened: {error}"));
            }
            EventKind::ToolsChanged { added, removed, .. } => {
                let list = |sign: &str, names: &[String]| {
                    names
                        .iter()
                        .map(|name| format!("{sign}{name}"))
                        .collect::<Vec<_>>()
                };
                let names = [list("+", added), list("-", removed)].concat();
                if !names.is_empty() {
                    show.note(&format!("tools: {}", names.join(" ")));
                }
            }
            EventKind::Warning { message } => show.note(message),
            _ => {}
        }
    }
}
