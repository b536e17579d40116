//! A model behind an OpenAI-compatible HTTP address (O-6).
//!
//! Knows: addresses, keys, headers, the order of a request and its answer, and which timeout
//! runs when. Does not know: the format; it calls the encoder and the decoder.
//!
//! Keys and header values are in no `Debug`, no error and no log.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use yiem_core::{
    ChatModel, ChatRequest, ChatStream, Env, ModelError, ModelErrorKind, ModelInfo, ReplyInfo,
};

use crate::classify::HttpFailure;
use crate::request::RequestEncoder;
use crate::stream::{Asked, ChunkDecoder, ReadLimits, ReadOptions};

mod body;
mod config;
mod hidden;
mod reply;
use body::RequestBody;
use config::ApiKey;
pub use config::{OpenAiConfig, Timeouts};
use reply::{Alarm, HttpReply, Reading};

/// The address of OpenAI's own API.
pub const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// A model behind an OpenAI-compatible HTTP address: streaming or whole, any server.
///
/// Cheap to clone; all clones share one pool of connections.
///
/// ```no_run
/// use yiem_openai::{OpenAiModel, Preset};
///
/// # fn main() -> Result<(), yiem_core::ModelError> {
/// let hosted = OpenAiModel::from_env()?;
/// let local = OpenAiModel::builder()
///     .base_url("http://127.0.0.1:8080/v1")
///     .model("qwen3")
///     .preset(Preset::LlamaCpp)
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OpenAiModel {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    info: ModelInfo,
    /// What a reply says of itself where the server does not.
    defaults: Arc<ReplyInfo>,
    encoder: RequestEncoder,
    http: reqwest::Client,
    url: reqwest::Url,
    key: ApiKey,
    headers: HeaderMap,
    timeouts: Timeouts,
    limits: ReadLimits,
    stream: bool,
    /// The keys that `headers` and `url` hold.
    secrets: Arc<[String]>,
    env: Arc<dyn Env>,
}

impl fmt::Debug for OpenAiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiModel")
            .field("model", &self.inner.info.id)
            .field("base_url", &self.inner.info.base_url)
            .field("key", &self.inner.key)
            .finish_non_exhaustive()
    }
}

impl OpenAiModel {
    /// The model that the environment describes: `OPENAI_API_KEY`, `OPENAI_BASE_URL`,
    /// `OPENAI_MODEL`.
    ///
    /// With a key alone the base is OpenAI's; with a base alone no Authorization is sent.
    ///
    /// # Errors
    /// Neither a key nor a base is set, or one of them cannot be used.
    pub fn from_env() -> Result<Self, ModelError> {
        OpenAiConfig::from_env()?.build()
    }

    /// Settings to begin with: OpenAI's address, no key.
    #[must_use]
    pub fn builder() -> OpenAiConfig {
        OpenAiConfig::default()
    }
}

impl ChatModel for OpenAiModel {
    fn info(&self) -> &ModelInfo {
        &self.inner.info
    }

    fn stream(&self, request: ChatRequest) -> ChatStream {
        let inner = Arc::clone(&self.inner);
        ChatStream::new(HttpReply::new(async move { inner.ask(request).await }))
    }
}

impl Inner {
    /// Sends the request; gives the reply as soon as its status is known and good.
    async fn ask(self: Arc<Self>, request: ChatRequest) -> Result<Reading, ModelError> {
        let mut alarm = Alarm::new(Arc::clone(&self.env));
        let patience = self.timeouts.first_event;
        let mut begun = alarm.now();
        let deadline = begun.saturating_add(patience);
        let Some(key) = alarm.within(deadline, self.key.get()).await else {
            return Err(timed_out("the API key's closure gave none", patience));
        };
        if self.key.waits() {
            begun = alarm.now();
        }
        let (post, asked) = self.post(&request, key?);
        // The request holds the whole history; its connection does not need it any more.
        drop(request);
        let sending = self.http.execute(post);
        let deadline = begun.saturating_add(patience);
        let response = match alarm.within(deadline, sending).await {
            Some(Ok(response)) => response,
            Some(Err(error)) => return Err(self.unreachable(error)),
            None => {
                let what = format!("{} did not answer", self.info.base_url);
                return Err(timed_out(&what, patience));
            }
        };
        if !response.status().is_success() {
            // Boxed: it is rare, and every request would have room for it.
            let error = Box::pin(self.refused(response, &mut alarm)).await;
            return Err(asked.secrets.hide(error));
        }
        let response: http::Response<reqwest::Body> = response.into();
        Ok(Reading::new(
            response.into_body(),
            ChunkDecoder::new(asked.kind, asked.options, Arc::clone(&self.env)),
            self.timeouts,
            begun,
            alarm,
            asked.secrets,
        ))
    }

    /// The request as it is sent, and what reading its answer needs.
    fn post(
        &self,
        request: &ChatRequest,
        key: Option<HeaderValue>,
    ) -> (reqwest::Request, Question) {
        let stream = request.options.stream.unwrap_or(self.stream);
        let system = request.system.as_deref();
        let encoded = self.encoder.pieces(system.as_slice(), request, stream);
        let mut post = reqwest::Request::new(Method::POST, self.url.clone());
        let headers = post.headers_mut();
        *headers = self.headers.clone();
        if let Some(key) = key {
            headers.insert(AUTHORIZATION, key);
        }
        let secrets = Secrets {
            key: headers.get(AUTHORIZATION).cloned(),
            fixed: Arc::clone(&self.secrets),
        };
        for (name, value) in request.trace.iter() {
            if let (Ok(name), Ok(value)) = (
                HeaderName::try_from(name.as_str()),
                HeaderValue::try_from(value.as_str()),
            ) {
                headers.insert(name, value);
            }
        }
        let body = RequestBody::new(encoded.head, encoded.messages);
        *post.body_mut() = Some(reqwest::Body::wrap(body));
        let compat = self.encoder.compat();
        let question = Question {
            kind: if stream { Asked::Stream } else { Asked::Whole },
            options: ReadOptions {
                offered: encoded.offered,
                recover_leaked_calls: compat.recover_leaked_calls,
                think_open_implied: compat.think_open_implied,
                defaults: Arc::clone(&self.defaults),
                limits: self.limits,
            },
            secrets,
        };
        (post, question)
    }

    /// An answer whose status says failure, with as much of its body as is of use.
    async fn refused(&self, mut response: reqwest::Response, alarm: &mut Alarm) -> ModelError {
        const MOST: usize = 64 << 10;
        let status = response.status().as_u16();
        let headers: Vec<(String, String)> = response
            .headers()
            .iter()
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
            .collect();
        let mut body = Vec::new();
        let reading = async {
            while body.len() < MOST
                && let Ok(Some(piece)) = response.chunk().await
            {
                body.extend_from_slice(&piece);
            }
        };
        // What came in time is enough: the status alone says what kind it is.
        let deadline = alarm.now().saturating_add(self.timeouts.between_events);
        let _ = alarm.within(deadline, reading).await;
        body.truncate(MOST);
        let failure = HttpFailure {
            status,
            headers: &headers,
            body: &body,
            now: self.env.now(),
        };
        let mut error = failure.classify();
        if let Some(hint) = hint(error.kind) {
            error.message = format!("{}; {hint}", error.message);
        }
        error
    }

    fn unreachable(&self, error: reqwest::Error) -> ModelError {
        let error = error.without_url();
        let server = &self.info.base_url;
        if error.is_timeout() {
            return ModelError::new(
                ModelErrorKind::Timeout,
                format!("{server} did not accept the connection in time; is the address right?"),
            )
            .with_source(error);
        }
        let what = if error.is_connect() {
            "could not be reached"
        } else {
            "broke the connection"
        };
        let cause = deepest(&error);
        ModelError::new(
            ModelErrorKind::Connection,
            format!("{server} {what}: {cause}; check the address, and that the server runs"),
        )
        .with_source(error)
    }
}

/// What was asked for, as far as reading the answer needs it.
struct Question {
    kind: Asked,
    options: ReadOptions,
    secrets: Secrets,
}

/// Keys that were sent: a server may quote them in what it says.
struct Secrets {
    /// The value of the `Authorization` header.
    key: Option<HeaderValue>,
    /// What the settings hold besides.
    fixed: Arc<[String]>,
}

impl Secrets {
    /// What headers and parameters that hold keys have in their names.
    const NAMES: [&str; 7] = [
        "key",
        "token",
        "secret",
        "auth",
        "password",
        "cookie",
        "signature",
    ];

    /// A value that is shorter could stand anywhere.
    const SHORTEST: usize = 8;

    /// The keys among the headers and the parameters of the address that every request has.
    fn fixed(headers: &HeaderMap, url: &reqwest::Url) -> Arc<[String]> {
        let of_headers = headers
            .iter()
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        let of_address = url
            .query_pairs()
            .map(|(name, value)| (name.to_lowercase(), value.into_owned()));
        of_headers
            .chain(of_address)
            .filter(|(name, _)| Self::NAMES.iter().any(|part| name.contains(part)))
            .map(|(_, value)| without_scheme(&value).to_owned())
            .filter(|value| value.len() >= Self::SHORTEST)
            .collect()
    }

    /// The same error without the keys.
    fn hide(&self, mut error: ModelError) -> ModelError {
        let key = self.key.as_ref().and_then(|header| header.to_str().ok());
        let key = key.map(without_scheme).filter(|key| !key.is_empty());
        for secret in key.into_iter().chain(self.fixed.iter().map(String::as_str)) {
            error.message = hidden::without(&error.message, secret);
            if let Some(body) = &mut error.body {
                *body = hidden::without(body, secret);
            }
        }
        error
    }
}

/// A header's value without the scheme, which is no secret: `Bearer …`, `Basic …`.
fn without_scheme(header: &str) -> &str {
    let value = header.split_once(' ').map_or(header, |(_, secret)| secret);
    value.trim()
}

fn timed_out(what: &str, after: Duration) -> ModelError {
    let message = format!("{what} within {} s", after.as_secs_f64());
    ModelError::new(ModelErrorKind::Timeout, message)
}

/// What to do about it, where that is always the same.
fn hint(kind: ModelErrorKind) -> Option<&'static str> {
    match kind {
        ModelErrorKind::Auth => Some("check the API key"),
        ModelErrorKind::Quota => Some("check the account's plan and billing"),
        ModelErrorKind::NotFound => Some("check the model's name and the base URL"),
        _ => None,
    }
}

/// The innermost cause: what the operating system said.
fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}
