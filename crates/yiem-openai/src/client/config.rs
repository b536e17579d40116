//! The settings of an [`OpenAiModel`].
//!
//! Knows: defaults, the environment's names, what cannot work. Does not know: requests.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use yiem_core::{
    BoxError, BoxFuture, Env, ModelError, ModelErrorKind, ModelInfo, ReplyInfo, SystemEnv,
};

use super::{Inner, OPENAI_BASE_URL, OpenAiModel, Secrets};
use crate::compat::{Compat, Preset};
use crate::request::RequestEncoder;
use crate::stream::ReadLimits;

/// The model that is asked for at OpenAI when none is named.
const OPENAI_MODEL: &str = "gpt-4o-mini";

/// How long to wait for what. Time is the `Env`'s, but for connecting, which is the network
/// library's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection. Default: 10 s.
    pub connect: Duration,
    /// From the request to the first event of the answer. Default: 300 s.
    pub first_event: Duration,
    /// Between two events; keep-alive comments are none. Default: 120 s.
    pub between_events: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_event: Duration::from_secs(300),
            between_events: Duration::from_secs(120),
        }
    }
}

type KeyFn = dyn Fn() -> BoxFuture<'static, Result<String, BoxError>> + Send + Sync;

/// Where the key comes from. Its `Debug` shows only that.
#[derive(Clone, Default)]
pub(super) enum ApiKey {
    #[default]
    None,
    Value(HeaderValue),
    Env(String),
    Fn(Arc<KeyFn>),
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Value(_) => f.write_str("given"),
            Self::Env(name) => write!(f, "from ${name}"),
            Self::Fn(_) => f.write_str("from a closure"),
        }
    }
}

impl ApiKey {
    /// Whether it may take time to have it.
    pub(super) fn waits(&self) -> bool {
        matches!(self, Self::Fn(_))
    }

    /// The value of the `Authorization` header.
    pub(super) async fn get(&self) -> Result<Option<HeaderValue>, ModelError> {
        match self {
            Self::None => Ok(None),
            Self::Value(header) => Ok(Some(header.clone())),
            Self::Env(name) => match std::env::var(name) {
                Ok(key) if !key.trim().is_empty() => bearer(&key).map(Some),
                _ => Err(config_error(format!(
                    "the environment variable {name} holds no API key; set it"
                ))),
            },
            Self::Fn(key) => match key().await {
                Ok(key) => bearer(&key).map(Some),
                Err(error) => Err(ModelError {
                    source: Some(error),
                    ..ModelError::new(
                        ModelErrorKind::Auth,
                        "the API key could not be had from its closure",
                    )
                }),
            },
        }
    }
}

fn bearer(key: &str) -> Result<HeaderValue, ModelError> {
    let mut header = HeaderValue::try_from(format!("Bearer {}", key.trim()))
        .map_err(|_| config_error("the API key has characters that no header can hold"))?;
    header.set_sensitive(true);
    Ok(header)
}

fn config_error(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Config, message)
}

/// The settings of an [`OpenAiModel`]; [`build`](Self::build) makes it.
#[derive(Clone)]
pub struct OpenAiConfig {
    base_url: Option<String>,
    info: ModelInfo,
    key: Result<ApiKey, &'static str>,
    headers: Vec<(String, String)>,
    proxy: Proxy,
    timeouts: Timeouts,
    limits: ReadLimits,
    compat: Option<Compat>,
    stream: bool,
    env: Arc<dyn Env>,
}

#[derive(Clone)]
enum Proxy {
    System,
    None,
    Address(String),
}

impl Default for OpenAiConfig {
    fn default() -> Self {
        Self {
            base_url: None,
            info: ModelInfo::new(""),
            key: Ok(ApiKey::None),
            headers: Vec::new(),
            proxy: Proxy::System,
            timeouts: Timeouts::default(),
            limits: ReadLimits::default(),
            compat: None,
            stream: true,
            env: SystemEnv::shared(),
        }
    }
}

impl fmt::Debug for OpenAiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("OpenAiConfig")
            .field("base_url", &self.base_url.as_deref().map(shown))
            .field("model", &self.info.id)
            .field("key", &self.key)
            .field("headers", &names)
            .field("timeouts", &self.timeouts)
            .field("compat", &self.compat)
            .finish_non_exhaustive()
    }
}

impl OpenAiConfig {
    /// What the environment says; see [`OpenAiModel::from_env`].
    ///
    /// # Errors
    /// Neither `OPENAI_API_KEY` nor `OPENAI_BASE_URL` is set.
    pub fn from_env() -> Result<Self, ModelError> {
        Self::from_vars(|name| std::env::var(name).ok())
    }

    /// The same, with the variables from elsewhere.
    pub(super) fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let var = |name: &str| var(name).filter(|value| !value.trim().is_empty());
        let mut config = Self::default();
        let (key, base) = (var("OPENAI_API_KEY"), var("OPENAI_BASE_URL"));
        if key.is_none() && base.is_none() {
            return Err(config_error(
                "no model is set up: set OPENAI_API_KEY for OpenAI, or OPENAI_BASE_URL for another server",
            ));
        }
        if let Some(key) = key {
            config = config.api_key(key);
        }
        if let Some(base) = base {
            config = config.base_url(base);
        }
        if let Some(model) = var("OPENAI_MODEL") {
            config = config.model(model);
        }
        Ok(config)
    }

    /// The address of the API, such as `http://127.0.0.1:8080/v1`. Default: OpenAI's.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// The id of the model. Default: at OpenAI `gpt-4o-mini`; elsewhere none is sent, which
    /// servers of one model accept.
    #[must_use]
    pub fn model(mut self, id: impl Into<String>) -> Self {
        let id = id.into();
        self.info.name.clone_from(&id);
        self.info.id = id;
        self
    }

    /// All that is known about the model (SP-007). Its `base_url`, if it has one, counts.
    #[must_use]
    pub fn info(mut self, info: ModelInfo) -> Self {
        if !info.base_url.is_empty() {
            self.base_url = Some(info.base_url.clone());
        }
        self.info = info;
        self
    }

    /// The API key. It is sent as `Authorization: Bearer` and shown nowhere.
    #[must_use]
    pub fn api_key(mut self, key: impl AsRef<str>) -> Self {
        self.key = match bearer(key.as_ref()) {
            Ok(header) => Ok(ApiKey::Value(header)),
            Err(_) => Err("the API key has characters that no header can hold"),
        };
        self
    }

    /// The environment variable that holds the API key, read for every request.
    #[must_use]
    pub fn api_key_env(mut self, name: impl Into<String>) -> Self {
        self.key = Ok(ApiKey::Env(name.into()));
        self
    }

    /// A closure that gives the API key, called for every request; for keys that are short-lived.
    #[must_use]
    pub fn api_key_fn<F, Fut, E>(mut self, key: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.key = Ok(ApiKey::Fn(Arc::new(move || {
            let key = key();
            Box::pin(async move { key.await.map_err(Into::into) })
        })));
        self
    }

    /// A header to send with every request. Its value is shown nowhere.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The proxy to go through. Default: what the system's environment says.
    #[must_use]
    pub fn proxy(mut self, address: impl Into<String>) -> Self {
        self.proxy = Proxy::Address(address.into());
        self
    }

    /// No proxy, whatever the environment says.
    #[must_use]
    pub fn no_proxy(mut self) -> Self {
        self.proxy = Proxy::None;
        self
    }

    /// How long to wait for what.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// How much of a reply is read before it is refused.
    #[must_use]
    pub fn limits(mut self, limits: ReadLimits) -> Self {
        self.limits = limits;
        self
    }

    /// What the server wants. Default: OpenAI's preset where no base URL is set, else
    /// [`Compat::default`].
    #[must_use]
    pub fn compat(mut self, compat: Compat) -> Self {
        self.compat = Some(compat);
        self
    }

    /// The settings of a known server.
    #[must_use]
    pub fn preset(self, preset: Preset) -> Self {
        self.compat(preset.compat())
    }

    /// Whether replies come in pieces, where the request does not say. Default: yes.
    #[must_use]
    pub fn stream(mut self, stream: bool) -> Self {
        self.stream = stream;
        self
    }

    /// Clock, timer and ids. Default: the system's.
    #[must_use]
    pub fn env(mut self, env: Arc<dyn Env>) -> Self {
        self.env = env;
        self
    }

    /// The model.
    ///
    /// # Errors
    /// An address, a header or the key cannot be used; the error says which, and never shows
    /// the key.
    pub fn build(self) -> Result<OpenAiModel, ModelError> {
        let key = self.key.map_err(config_error)?;
        let own = self.base_url.is_none();
        let base = self.base_url.unwrap_or_else(|| OPENAI_BASE_URL.to_owned());
        let url = endpoint(&base)?;
        let mut info = self.info;
        if own && info.id.is_empty() {
            info.id = OPENAI_MODEL.to_owned();
            info.name = OPENAI_MODEL.to_owned();
        }
        if own && info.provider.is_empty() {
            info.provider = "openai".to_owned();
        }
        info.base_url = shown(&base);
        let compat = self.compat.unwrap_or_else(|| {
            if own {
                Preset::OpenAi.compat()
            } else {
                Compat::default()
            }
        });
        let mut headers = headers(&self.headers)?;
        let mut http = reqwest::Client::builder()
            .tls_backend_preconfigured(yiem_tls::client_config())
            // A redirect could lead the key and the conversation elsewhere.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.timeouts.connect)
            .tcp_nodelay(true);
        match self.proxy {
            Proxy::System => {}
            Proxy::None => http = http.no_proxy(),
            Proxy::Address(address) => {
                // It may hold a password and is not shown.
                let proxy = reqwest::Proxy::all(&address)
                    .map_err(|_| config_error("the address of the proxy is none"))?;
                http = http.proxy(proxy);
            }
        }
        let http = http.build().map_err(|error| {
            config_error("the HTTP client could not be set up").with_source(error)
        })?;
        // User and password go in a header: whoever traces addresses would show them.
        let plain = http
            .post(url)
            .build()
            .map_err(|error| config_error("the address cannot be asked").with_source(error))?;
        if let Some(given) = plain.headers().get(AUTHORIZATION) {
            headers
                .entry(AUTHORIZATION)
                .or_insert_with(|| given.clone())
                .set_sensitive(true);
        }
        let url = plain.url().clone();
        Ok(OpenAiModel {
            inner: Arc::new(Inner {
                encoder: RequestEncoder::new(&info, Arc::new(compat)),
                defaults: Arc::new(ReplyInfo {
                    api: "openai".to_owned(),
                    provider: info.provider.clone(),
                    model: info.id.clone(),
                    ..ReplyInfo::default()
                }),
                info,
                secrets: Secrets::fixed(&headers, &url),
                http,
                url,
                key,
                headers,
                timeouts: self.timeouts,
                limits: self.limits,
                stream: self.stream,
                env: self.env,
            }),
        })
    }
}

fn headers(given: &[(String, String)]) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(
        ACCEPT,
        HeaderValue::from_static("text/event-stream, application/json"),
    );
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("yiem/", env!("CARGO_PKG_VERSION"))),
    );
    for (name, value) in given {
        let header = HeaderName::try_from(name.as_str())
            .map_err(|_| config_error(format!("{name:?} is no name of a header")))?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| {
            config_error(format!(
                "the value of the header {name} has characters that no header can hold"
            ))
        })?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

/// The address of chat completions under a base.
fn endpoint(base: &str) -> Result<reqwest::Url, ModelError> {
    let wrong = || {
        config_error(format!(
            "{} is no address of an API; write something like http://127.0.0.1:8080/v1",
            shown(base)
        ))
    };
    let mut url = reqwest::Url::parse(base.trim()).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong());
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with("/chat/completions") {
        url.set_path(&format!("{path}/chat/completions"));
    }
    Ok(url)
}

/// An address as it may be shown: without user, password and query.
fn shown(address: &str) -> String {
    let address = address.trim();
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = address
        .split_once("://")
        .map_or(("", address), |(s, r)| (s, r));
    let (host, path) = rest.split_once('/').map_or((rest, ""), |(h, p)| (h, p));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let mut shown = String::new();
    if !scheme.is_empty() {
        shown.push_str(scheme);
        shown.push_str("://");
    }
    shown.push_str(host);
    if !path.is_empty() {
        shown.push('/');
        shown.push_str(path.trim_end_matches('/'));
    }
    shown
}
