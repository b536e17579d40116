//! A model of a closure that takes a request as JSON and gives a reply as JSON (YiemAgent's
//! `llmCall`, C-7).
//!
//! Knows: the encoder and the decoder. Does not know: how the closure reaches a model.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde_json::Value;
use yiem_core::{
    BoxError, BoxFuture, ChatModel, ChatRequest, ChatStream, Env, ModelError, ModelErrorKind,
    ModelInfo, ReplyInfo,
};

use crate::compat::Compat;
use crate::request::RequestEncoder;
use crate::stream::{Asked, ChunkDecoder, ReadOptions};

type Call = dyn Fn(Value) -> BoxFuture<'static, Result<Value, BoxError>> + Send + Sync;

/// A model of a closure: the OpenAI-format request as JSON in, a reply of any shape of SP-017
/// and SP-018 (or a full one with `choices`) as JSON out.
///
/// The request is written in the style of YiemAgent (SP-011 to SP-016), content as blocks.
#[derive(Clone)]
pub struct JsonModel {
    info: ModelInfo,
    encoder: RequestEncoder,
    env: Arc<dyn Env>,
    call: Arc<Call>,
}

/// A [`JsonModel`] of a closure, with the system's clock and ids.
///
/// ```
/// use serde_json::json;
/// let model = yiem_openai::llm_call(|_request| async move {
///     Ok::<_, std::io::Error>(json!({"content": [{"type": "text", "text": "Hello."}]}))
/// });
/// ```
#[cfg(feature = "system")]
#[doc(alias = "llmCall")]
pub fn llm_call<F, Fut, E>(call: F) -> JsonModel
where
    F: Fn(Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, E>> + Send + 'static,
    E: Into<BoxError>,
{
    JsonModel::new(yiem_core::SystemEnv::shared(), call)
}

impl JsonModel {
    /// A model of a closure; `env` makes ids for calls that come without.
    #[doc(alias = "llmCall")]
    pub fn new<F, Fut, E>(env: Arc<dyn Env>, call: F) -> Self
    where
        F: Fn(Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let info = ModelInfo::new("");
        let encoder = RequestEncoder::new(&info, Arc::new(Compat::blocks()));
        let call = Arc::new(
            move |request: Value| -> BoxFuture<'static, Result<Value, BoxError>> {
                let reply = call(request);
                Box::pin(async move { reply.await.map_err(Into::into) })
            },
        );
        Self {
            info,
            encoder,
            env,
            call,
        }
    }

    /// The same with what is known about the model (SP-007); its id goes into the request.
    #[must_use]
    pub fn with_info(mut self, info: ModelInfo) -> Self {
        self.encoder = RequestEncoder::new(&info, Arc::clone(self.encoder.compat()));
        self.info = info;
        self
    }

    /// The same with requests written for another server.
    #[must_use]
    pub fn with_compat(mut self, compat: Compat) -> Self {
        self.encoder = RequestEncoder::new(&self.info, Arc::new(compat));
        self
    }

    /// The same with another source of ids.
    #[must_use]
    pub fn with_env(mut self, env: Arc<dyn Env>) -> Self {
        self.env = env;
        self
    }
}

impl fmt::Debug for JsonModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonModel")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl ChatModel for JsonModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(&self, request: ChatRequest) -> ChatStream {
        let model = self.clone();
        let state = State::Asking(Box::new((model, request)));
        ChatStream::unfold(state, |state| async move {
            let mut decoder = match state {
                State::Asking(asking) => match asking.0.ask(asking.1).await {
                    Ok(decoder) => decoder,
                    Err(error) => return Some((Err(error), State::Over)),
                },
                State::Reading(decoder) => decoder,
                State::Over => return None,
            };
            let event = decoder.next()?;
            Some((event, State::Reading(decoder)))
        })
    }
}

enum State {
    Asking(Box<(JsonModel, ChatRequest)>),
    Reading(Box<ChunkDecoder>),
    Over,
}

impl JsonModel {
    async fn ask(self, request: ChatRequest) -> Result<Box<ChunkDecoder>, ModelError> {
        let encoded = self.encoder.encode(&request, false);
        drop(request);
        let json = serde_json::from_slice(&encoded.body).map_err(|error| {
            ModelError::new(ModelErrorKind::Config, "the request could not be made JSON")
                .with_source(error)
        })?;
        let reply = (self.call)(json).await.map_err(failed)?;
        let compat = self.encoder.compat();
        let options = ReadOptions {
            offered: encoded.offered,
            recover_leaked_calls: compat.recover_leaked_calls,
            think_open_implied: compat.think_open_implied,
            defaults: Arc::new(ReplyInfo {
                api: "openai".to_owned(),
                provider: self.info.provider.clone(),
                model: self.info.id.clone(),
                ..ReplyInfo::default()
            }),
            ..ReadOptions::default()
        };
        let mut decoder = ChunkDecoder::new(Asked::Whole, options, self.env);
        match reply {
            // Text that is a body itself.
            Value::String(text) => decoder.feed(text.as_bytes()),
            other => decoder.feed(other.to_string().as_bytes()),
        }
        decoder.finish();
        Ok(Box::new(decoder))
    }
}

/// The closure's error; a [`ModelError`] stays the one that it is.
fn failed(error: BoxError) -> ModelError {
    match error.downcast::<ModelError>() {
        Ok(error) => *error,
        Err(error) => ModelError::other(error),
    }
}
