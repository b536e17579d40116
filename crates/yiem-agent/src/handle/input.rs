//! What can be sent to an agent.

use std::sync::Arc;

use yiem_core::{Content, CustomMessage, Env, Message, Timestamp, UserMessage};

use crate::error::RunError;

/// What makes a message that can be sent: text, content blocks, a user's message, an
/// application's own message.
pub trait IntoMessage {
    /// The message; `now` is for those that have no time of their own.
    fn into_message(self, now: Timestamp) -> Message;
}

impl IntoMessage for &str {
    fn into_message(self, now: Timestamp) -> Message {
        Message::user(self, now)
    }
}

impl IntoMessage for String {
    fn into_message(self, now: Timestamp) -> Message {
        Message::user(self, now)
    }
}

impl IntoMessage for &String {
    fn into_message(self, now: Timestamp) -> Message {
        Message::user(self.as_str(), now)
    }
}

impl IntoMessage for Vec<Content> {
    fn into_message(self, now: Timestamp) -> Message {
        Message::User(UserMessage {
            content: self,
            timestamp: now,
            ..UserMessage::default()
        })
    }
}

impl IntoMessage for UserMessage {
    fn into_message(self, now: Timestamp) -> Message {
        Message::User(self).into_message(now)
    }
}

impl IntoMessage for CustomMessage {
    fn into_message(self, now: Timestamp) -> Message {
        Message::Custom(self).into_message(now)
    }
}

impl IntoMessage for Message {
    fn into_message(mut self, now: Timestamp) -> Message {
        let timestamp = match &mut self {
            Self::User(m) => &mut m.timestamp,
            Self::Assistant(m) => &mut m.timestamp,
            Self::ToolResult(m) => &mut m.timestamp,
            Self::Custom(m) => &mut m.timestamp,
        };
        if *timestamp == Timestamp::default() {
            *timestamp = now;
        }
        self
    }
}

/// The message, if it can be sent.
pub(super) fn accepted(message: impl IntoMessage, env: &dyn Env) -> Result<Arc<Message>, RunError> {
    let message = message.into_message(env.now());
    match &message {
        Message::User(m) if m.is_blank() => Err(RunError::EmptyInput),
        Message::User(_) | Message::Custom(_) => Ok(Arc::new(message)),
        other => Err(RunError::WrongRole(other.role())),
    }
}
