//! Models: what is asked of them, what they say of themselves, how they fail (C-7, SP-007).
//!
//! Knows: the contract between whoever runs a conversation and whoever reaches a model.
//! Does not know: any provider, any wire. The events of a reply are in [`stream`](crate::stream).

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::env::Env;
use crate::error::BoxError;
use crate::history::{History, Memo};
use crate::id::SessionId;
use crate::json::JsonObject;
use crate::message::AssistantMessage;
use crate::stream::{ChatEvent, ChatStream};
use crate::tool::ToolDefinition;
use crate::usage::ModelCost;

mod retry;
pub use retry::{RetryPolicy, RetryingModel};

/// One model at one provider (C-7). Object-safe; passed about as `Arc<dyn ChatModel>`.
///
/// A closure makes one: [`model_fn`].
pub trait ChatModel: Send + Sync + 'static {
    /// What is known about the model (SP-007).
    fn info(&self) -> &ModelInfo;

    /// Asks for a reply. Returns at once; the work is done as the stream is polled, and
    /// dropping the stream ends it.
    ///
    /// The stream ends in exactly one [`ChatEvent::Finished`], [`ChatEvent::Message`] or error.
    /// What came before is the partial message, held by the assembler of whoever reads.
    #[doc(alias = "formatMsgForLLM")]
    #[doc(alias = "llmCall")]
    fn stream(&self, request: ChatRequest) -> ChatStream;
}

#[deny(clippy::missing_trait_methods)]
impl<M: ChatModel + ?Sized> ChatModel for Arc<M> {
    fn info(&self) -> &ModelInfo {
        (**self).info()
    }
    fn stream(&self, request: ChatRequest) -> ChatStream {
        (**self).stream(request)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<M: ChatModel + ?Sized> ChatModel for Box<M> {
    fn info(&self) -> &ModelInfo {
        (**self).info()
    }
    fn stream(&self, request: ChatRequest) -> ChatStream {
        (**self).stream(request)
    }
}

/// Comfort for callers of a model alone.
pub trait ChatModelExt: ChatModel {
    /// Asks, and waits for the whole message.
    ///
    /// # Errors
    /// As the stream's; the partial message is lost, read the stream to have it.
    fn complete(
        &self,
        request: ChatRequest,
    ) -> impl Future<Output = Result<AssistantMessage, ModelError>> + Send {
        let stream = self.stream(request);
        async move { stream.into_message().await }
    }

    /// The same model, asking again after failures that allow it (O-6). A reply that broke off
    /// after its first event begins anew with [`ChatEvent::Restarted`]. An agent needs no such wrapper: it waits by itself (R-12).
    fn with_retry(self, policy: RetryPolicy, env: Arc<dyn Env>) -> RetryingModel
    where
        Self: Sized,
    {
        RetryingModel::new(Arc::new(self), policy, env)
    }
}

impl<M: ChatModel + ?Sized> ChatModelExt for M {}

/// What is known about a model (SP-007).
#[doc(alias = "llmModel")]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelInfo {
    /// The id that its provider knows it by.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The provider, such as `openai`.
    pub provider: String,
    /// The address of the API.
    pub base_url: String,
    /// Whether it can reason before it answers.
    pub reasoning: bool,
    /// What it can be shown. Without [`Modality::Image`], images become a line of text (C-10).
    pub input: Vec<Modality>,
    /// What its tokens cost.
    pub cost: ModelCost,
    /// The most tokens of prompt and answer together; 0 = unknown.
    pub context_window: u64,
    /// The most tokens of an answer; 0 = unknown. Sent only when asked for (C-10).
    pub max_tokens: u64,
}

impl ModelInfo {
    /// A model of that id of which nothing else is known; it is shown text and images.
    pub fn new(id: impl Into<String>) -> Self {
        let id = id.into();
        Self {
            name: id.clone(),
            id,
            input: vec![Modality::Text, Modality::Image],
            ..Self::default()
        }
    }

    /// Whether it can be shown images.
    #[must_use]
    pub fn sees_images(&self) -> bool {
        self.input.contains(&Modality::Image)
    }
}

/// A kind of content that a model can be shown (SP-007 `input`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Modality {
    /// Text.
    Text,
    /// Images.
    Image,
    /// Sound.
    Audio,
    /// Any other, by its name.
    #[serde(untagged)]
    Other(String),
}

/// What a model is asked: owned, cheap to clone (C-7).
#[derive(Clone, Debug, Default)]
pub struct ChatRequest {
    /// The system prompt.
    pub system: Option<Arc<str>>,
    /// The messages, in order. Not yet repaired: whoever writes them for a wire does that.
    pub messages: History,
    /// The tools that the model may call, in order.
    pub tools: Arc<[Arc<ToolDefinition>]>,
    /// How to answer. Shared, since it seldom changes.
    pub options: Arc<ChatOptions>,
    /// The conversation's slot for the encoder (O-7).
    pub memo: Memo,
    /// Trace context to hand on (`traceparent`, `tracestate`), as name and value (R-16).
    pub trace: Arc<[(String, String)]>,
}

impl ChatRequest {
    /// A request of these messages alone.
    #[must_use]
    pub fn new(messages: History) -> Self {
        Self {
            messages,
            ..Self::default()
        }
    }

    /// The same with a system prompt.
    #[must_use]
    pub fn system(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.system = Some(prompt.into());
        self
    }

    /// The same with these tools to call.
    #[must_use]
    pub fn tools<T: Into<Arc<ToolDefinition>>>(
        mut self,
        tools: impl IntoIterator<Item = T>,
    ) -> Self {
        self.tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// The same, answered in another way.
    #[must_use]
    pub fn options(mut self, options: impl Into<Arc<ChatOptions>>) -> Self {
        self.options = options.into();
        self
    }
}

/// How a model should answer. What is `None` is left to the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatOptions {
    /// The conversation, for providers that keep a cache for it (SP-009 `sessionId`).
    pub session_id: Option<SessionId>,
    /// The most tokens of the answer.
    pub max_tokens: Option<u64>,
    /// How freely to choose words.
    pub temperature: Option<f64>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Whether tools must or may be called.
    pub tool_choice: Option<ToolChoice>,
    /// Whether several tools may be called in one reply.
    pub parallel_tool_calls: Option<bool>,
    /// How hard to think, in the provider's word (`low`, `medium`, `high`, …).
    pub reasoning_effort: Option<String>,
    /// The form of the answer (R-13).
    pub response_format: Option<ResponseFormat>,
    /// Whether the reply should come in pieces, where the model can do both; `None` = yes.
    pub stream: Option<bool>,
    /// Fields of the provider's own, put into the request as they are.
    pub extra: JsonObject,
}

/// Whether tools must or may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// As the model likes.
    Auto,
    /// None.
    None,
    /// At least one.
    Required,
    /// This one.
    Tool(String),
}

/// The form that an answer should have (R-13).
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseFormat {
    /// Any JSON object.
    JsonObject,
    /// JSON that fits a schema.
    JsonSchema {
        /// A name for the schema: `^[a-zA-Z0-9_-]{1,64}$`.
        name: String,
        /// The schema.
        schema: Value,
        /// Whether the provider should hold the model to it strictly.
        strict: bool,
    },
}

/// A model of an async function: request in, whole message (or anything that makes one) out.
///
/// ```
/// use yiem_core::{model_fn, AssistantContent, AssistantMessage, ModelError, Timestamp};
/// let parrot = model_fn("parrot", |request: yiem_core::ChatRequest| async move {
///     let said = request.messages.last().and_then(|m| m.as_user().map(|u| u.text()));
///     let text = AssistantContent::text(said.unwrap_or_default());
///     Ok::<_, ModelError>(AssistantMessage::new(vec![text], Timestamp::default()))
/// });
/// ```
pub fn model_fn<F, Fut>(id: impl Into<String>, reply: F) -> FunctionModel
where
    F: Fn(ChatRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<AssistantMessage, ModelError>> + Send + 'static,
{
    let info = ModelInfo::new(id);
    FunctionModel {
        info,
        reply: Box::new(move |request| {
            let reply = reply(request);
            ChatStream::once(async move {
                reply
                    .await
                    .map(|message| ChatEvent::Message(Box::new(message)))
            })
        }),
    }
}

/// A model of a function; made by [`model_fn`].
pub struct FunctionModel {
    info: ModelInfo,
    reply: Box<dyn Fn(ChatRequest) -> ChatStream + Send + Sync>,
}

impl FunctionModel {
    /// A model of a function that makes the stream itself.
    pub fn streaming<F>(info: ModelInfo, reply: F) -> Self
    where
        F: Fn(ChatRequest) -> ChatStream + Send + Sync + 'static,
    {
        Self {
            info,
            reply: Box::new(reply),
        }
    }

    /// The same with another description.
    #[must_use]
    pub fn with_info(mut self, info: ModelInfo) -> Self {
        self.info = info;
        self
    }
}

impl fmt::Debug for FunctionModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionModel")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl ChatModel for FunctionModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }
    fn stream(&self, request: ChatRequest) -> ChatStream {
        (self.reply)(request)
    }
}

/// A model that failed to answer: what happened, whether asking again makes sense, and when.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of failure.
    pub kind: ModelErrorKind,
    /// What happened and what to do, for people; never a key.
    pub message: String,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// How long the server asked to wait.
    pub retry_after: Option<Duration>,
    /// Whether sending the same request again makes sense.
    pub retryable: bool,
    /// What the server said, cut to a sane length.
    pub body: Option<String>,
    /// What caused it.
    #[source]
    pub source: Option<BoxError>,
}

/// What kind of failure a [`ModelError`] is: by what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The request does not fit the model's window: shorten it.
    ContextLength,
    /// Too many requests: wait.
    RateLimit,
    /// The account has no money or allowance left.
    Quota,
    /// The server has too much to do: wait.
    Overloaded,
    /// The server failed.
    Server,
    /// The key is missing, wrong, or may not do this.
    Auth,
    /// No such model or address.
    NotFound,
    /// The server refuses the request as it is.
    InvalidRequest,
    /// A filter refused the request or the answer.
    ContentFilter,
    /// The reply could not be read, or breaks the rules.
    Malformed,
    /// The reply broke off.
    TruncatedStream,
    /// The server could not be reached, or the connection broke.
    Connection,
    /// Nothing came in time.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// The model is not set up: nothing was sent.
    Config,
    /// Anything else.
    Other,
}

impl ModelErrorKind {
    /// Whether a failure of this kind may go away by itself (O-6).
    #[must_use]
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimit
                | Self::Overloaded
                | Self::Server
                | Self::TruncatedStream
                | Self::Connection
                | Self::Timeout
        )
    }

    /// The word that it is written as, such as `rate_limit`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ContextLength => "context_length",
            Self::RateLimit => "rate_limit",
            Self::Quota => "quota",
            Self::Overloaded => "overloaded",
            Self::Server => "server",
            Self::Auth => "auth",
            Self::NotFound => "not_found",
            Self::InvalidRequest => "invalid_request",
            Self::ContentFilter => "content_filter",
            Self::Malformed => "malformed",
            Self::TruncatedStream => "truncated_stream",
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Config => "config",
            Self::Other => "other",
        }
    }
}

impl ModelError {
    /// A failure of that kind; retryable if the kind is.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
            retryable: kind.is_retryable(),
            body: None,
            source: None,
        }
    }

    /// Any error as a failure of the kind [`ModelErrorKind::Other`].
    pub fn other(error: impl Into<BoxError>) -> Self {
        let source: BoxError = error.into();
        Self {
            source: Some(source),
            ..Self::new(ModelErrorKind::Other, String::new())
        }
        .with_message_of_source()
    }

    fn with_message_of_source(mut self) -> Self {
        if let Some(source) = &self.source {
            self.message = source.to_string();
        }
        self
    }

    /// The same with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Whether sending the same request again makes sense.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }
}

#[cfg(test)]
mod tests;
