//! A model of our own that answers when a server asks for one (sampling).
//!
//! Knows: what `sampling/createMessage` looks like, and how its messages are ours. Does not know: which model
//! it is, or whether a person should have been asked; whoever enables it decides.

use super::asked::Sample;
use crate::jsonrpc::{INTERNAL_ERROR, INVALID_PARAMS, JsonRpcError};
use crate::protocol::content_from_wire;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use yiem_core::{
    AssistantContent, AssistantMessage, ChatModel, ChatModelExt as _, ChatOptions, ChatRequest,
    Content, History, Message, StopReason, TextContent, Timestamp, UserMessage,
};

/// How many tokens a server gets at most, unless said otherwise.
const MAX_TOKENS: u64 = 4_096;
/// How many messages a server may send.
const MAX_MESSAGES: usize = 1_000;

/// Answers sampling requests of a server by a model (M-9).
///
/// A server that is given one spends this model's tokens, without a person being asked: give it to servers
/// that you trust, or put an approval of your own around it by implementing [`Sample`]. The server's wishes
/// for a model and for context of others are not followed; its system prompt, temperature, stop texts and
/// limit are, the limit up to [`ModelSampler::max_tokens`]. Tools in the request are refused: they are not
/// declared.
#[derive(Clone)]
pub struct ModelSampler {
    model: Arc<dyn ChatModel>,
    max_tokens: u64,
}

impl ModelSampler {
    /// Answers by that model.
    pub fn new(model: impl ChatModel) -> Self {
        Self {
            model: Arc::new(model),
            max_tokens: MAX_TOKENS,
        }
    }

    /// The most tokens that one request may take, whatever the server asks for. Default 4,096.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = tokens;
        self
    }
}

impl fmt::Debug for ModelSampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSampler")
            .field("model", &self.model.info().id)
            .field("max_tokens", &self.max_tokens)
            .finish()
    }
}

#[async_trait]
impl Sample for ModelSampler {
    async fn sample(&self, server: &str, params: Value) -> Result<Value, JsonRpcError> {
        let request = request(&params, self.max_tokens)?;
        let message = self.model.complete(request).await.map_err(|error| {
            tracing::warn!(server, %error, "a server's sampling request failed");
            // What went wrong with our provider is not the server's to know.
            JsonRpcError::new(INTERNAL_ERROR, "the client's model could not answer")
        })?;
        answer(&message, &self.model.info().id)
    }
}

fn wrong(why: impl Into<String>) -> JsonRpcError {
    JsonRpcError::new(INVALID_PARAMS, why)
}

fn request(params: &Value, most: u64) -> Result<ChatRequest, JsonRpcError> {
    let asks_for_tools = |key: &str| match params.get(key) {
        Some(Value::Array(tools)) => !tools.is_empty(),
        Some(Value::Null) | None => false,
        Some(_) => true,
    };
    if asks_for_tools("tools") {
        return Err(wrong("this client does not declare tools in sampling"));
    }
    let messages = params
        .get("messages")
        .and_then(Value::as_array)
        .ok_or_else(|| wrong("messages must be a list"))?;
    if messages.is_empty() || messages.len() > MAX_MESSAGES {
        return Err(wrong(format!(
            "there must be 1 to {MAX_MESSAGES} messages, not {}",
            messages.len()
        )));
    }
    let mut history = History::new();
    for message in messages {
        history.push(read_message(message)?);
    }
    let number = |key: &str| params.get(key).and_then(Value::as_f64);
    let texts = params.get("stopSequences").and_then(Value::as_array);
    let limit = params.get("maxTokens").and_then(Value::as_u64);
    let options = ChatOptions {
        max_tokens: Some(limit.unwrap_or(most).clamp(1, most.max(1))),
        temperature: number("temperature").filter(|value| (0.0..=2.0).contains(value)),
        stop: texts
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        ..ChatOptions::default()
    };
    let system = params.get("systemPrompt").and_then(Value::as_str);
    Ok(ChatRequest {
        system: system.filter(|text| !text.is_empty()).map(Into::into),
        options: Arc::new(options),
        ..ChatRequest::new(history)
    })
}

fn read_message(message: &Value) -> Result<Message, JsonRpcError> {
    let blocks: Vec<Content> = match message.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().cloned().map(content_from_wire).collect(),
        Some(block @ (Value::Object(_) | Value::String(_))) => {
            vec![content_from_wire(block.clone())]
        }
        _ => return Err(wrong("a message needs content")),
    };
    match message.get("role").and_then(Value::as_str) {
        Some("user") => Ok(Message::User(UserMessage {
            content: blocks,
            ..UserMessage::default()
        })),
        Some("assistant") => {
            let texts = blocks.iter().map(|block| {
                AssistantContent::Text(TextContent {
                    text: block.to_plain_text(),
                    ..TextContent::default()
                })
            });
            Ok(Message::Assistant(AssistantMessage::new(
                texts.collect(),
                Timestamp::default(),
            )))
        }
        other => Err(wrong(format!(
            "a message's role must be user or assistant, not {}",
            other.unwrap_or("nothing")
        ))),
    }
}

fn answer(message: &AssistantMessage, model: &str) -> Result<Value, JsonRpcError> {
    let stop = match &message.stop_reason {
        StopReason::EndTurn => "endTurn",
        StopReason::Length => "maxTokens",
        StopReason::Other(reason) => reason,
        StopReason::ContentFilter => "contentFilter",
        StopReason::Error
        | StopReason::Aborted
        | StopReason::Terminated
        | StopReason::ToolCalls => {
            return Err(JsonRpcError::new(
                INTERNAL_ERROR,
                "the client's model did not come to an answer",
            ));
        }
    };
    let named = if message.model.is_empty() {
        model
    } else {
        &message.model
    };
    Ok(json!({
        "role": "assistant",
        "content": {"type": "text", "text": message.text()},
        "model": named,
        "stopReason": stop,
    }))
}

#[cfg(test)]
mod tests;
