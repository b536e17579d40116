//! Streamable HTTP, both eras, and the older HTTP+SSE as the last fallback.
//!
//! Knows: headers, sessions, the two shapes of an answer, streams that break off, redirects, tokens.
//! Does not know: deadlines and dialect rules; it writes what the exchange's dialect asks for.

mod answer;
mod old_sse;
mod post;
mod stream;
mod token;

pub use token::{Challenge, TokenSource};

use super::{CancelStyle, Exchange, Inbox, Notice, Response, Transport, TransportProfile};
use crate::correlate::{Correlator, Settled};
use crate::dialect::Dialect;
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::{Answer, Incoming};
use crate::protocol::method;
use crate::server::without_secrets;
use async_trait::async_trait;
use old_sse::OldSse;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use token::Bearer;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use yiem_core::Env;

/// How long the first call waits for a legacy server's own stream.
const STREAM_TIME: Duration = Duration::from_millis(500);

/// How a server behind an HTTP address is reached.
#[derive(Clone)]
pub struct HttpConfig {
    url: String,
    headers: Vec<(String, String)>,
    token: Option<Arc<dyn TokenSource>>,
    old_sse: bool,
    max_message: usize,
    connect_timeout: Duration,
}

impl HttpConfig {
    /// A server at this address, e.g. `https://example.com/mcp`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            token: None,
            old_sse: false,
            max_message: 32 << 20,
            connect_timeout: Duration::from_secs(10),
        }
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends this token with every request.
    #[must_use]
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        self.token = Some(Arc::new(Bearer::new(token.into())));
        self
    }

    /// Asks for a token before every request, and again when one was refused.
    #[must_use]
    pub fn token_source(mut self, source: Arc<dyn TokenSource>) -> Self {
        self.token = Some(source);
        self
    }

    #[cfg(feature = "oauth")]
    pub(crate) fn oauth(mut self, config: crate::oauth::OAuthConfig) -> Self {
        if !self.is_authorized() {
            let tokens = crate::oauth::OAuthTokens::new(self.url.as_str(), config);
            self.token = Some(Arc::new(tokens));
        }
        self
    }

    /// Whether it has a token of its own already.
    #[cfg(feature = "oauth")]
    pub(crate) fn is_authorized(&self) -> bool {
        let header = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
        self.token.is_some() || self.headers.iter().any(header)
    }

    /// Speaks HTTP+SSE (2024-11-05) at once, without trying Streamable HTTP first.
    #[must_use]
    pub fn old_sse(mut self) -> Self {
        self.old_sse = true;
        self
    }

    /// The longest message that is read, in bytes. Default 32 MiB (M-8).
    #[must_use]
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// A key made from the address: its host.
    pub(crate) fn default_name(&self) -> String {
        Url::parse(&self.url)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned))
            .unwrap_or_else(|| "http".to_owned())
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpConfig")
            .field("url", &without_secrets(&self.url))
            .field("headers", &names)
            .field("token", &self.token.is_some())
            .finish_non_exhaustive()
    }
}

/// A server behind an HTTP address (M-2): one pooled client, sessions opened again when they are
/// forgotten, streams read on where they broke off (legacy), redirects only to the same origin.
pub struct HttpTransport {
    shared: Arc<HttpShared>,
    tasks: Mutex<JoinSet<()>>,
    old_sse: bool,
}

/// What requests and streams share.
pub(super) struct HttpShared {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    token: Option<Arc<dyn TokenSource>>,
    env: Arc<dyn Env>,
    max_message: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    inbox: Option<Inbox>,
    session: Option<HeaderValue>,
    dialect: Option<Dialect>,
    old: Option<Arc<OldSse>>,
    /// Who waits for an answer: a legacy server may send it on another stream than the request's own.
    waiters: Correlator<oneshot::Sender<Answer>>,
}

impl HttpTransport {
    /// A server that is not connected to yet.
    ///
    /// # Errors
    /// The address or a header cannot be used, or TLS cannot be set up.
    pub fn new(config: HttpConfig, env: Arc<dyn Env>) -> Result<Self, McpError> {
        let shown = without_secrets(&config.url);
        let odd = |what: String| {
            McpError::config(format!("`{shown}` is {what}; write http://HOST:PORT/PATH"))
        };
        let url = Url::parse(&config.url).map_err(|error| odd(format!("no address ({error})")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(odd("no http or https address".to_owned()));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &config.headers {
            let name = HeaderName::try_from(name.as_str())
                .map_err(|_| McpError::config(format!("`{name}` is no name of a header")))?;
            let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| {
                McpError::config(format!("the value of the header `{name}` cannot be sent"))
            })?;
            value.set_sensitive(true);
            headers.append(name, value);
        }
        let client = client(config.connect_timeout)?;
        Ok(Self {
            shared: Arc::new(HttpShared {
                client,
                url,
                headers,
                token: config.token,
                env,
                max_message: config.max_message,
                state: Mutex::default(),
            }),
            tasks: Mutex::default(),
            old_sse: config.old_sse,
        })
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .spawn(work);
    }

    async fn fall_back(&self, refused: McpError, exchange: Exchange) -> Result<Answer, McpError> {
        let inbox = self
            .shared
            .state()
            .inbox
            .clone()
            .unwrap_or_else(Inbox::nowhere);
        match self.open_old(inbox).await {
            Ok(old) => old.exchange(exchange).await,
            Err(error) => Err(refused.with_note(format!(
                "nor does it speak the older HTTP+SSE: {}",
                error.kind()
            ))),
        }
    }

    /// Opens the stream of the older transport.
    async fn open_old(&self, inbox: Inbox) -> Result<Arc<OldSse>, McpError> {
        let (old, reading) = OldSse::connect(Arc::clone(&self.shared), inbox).await?;
        self.spawn(reading);
        self.shared.state().old = Some(Arc::clone(&old));
        Ok(old)
    }
}

/// A pooled client. Redirects are followed to the same origin only: others would get our headers.
fn client(connect_timeout: Duration) -> Result<reqwest::Client, McpError> {
    let policy = reqwest::redirect::Policy::custom(|attempt| {
        let same = attempt
            .previous()
            .last()
            .is_some_and(|from| from.origin() == attempt.url().origin());
        if !same {
            return attempt.error("a redirect to another origin is not followed");
        }
        if attempt.previous().len() > 5 {
            return attempt.error("too many redirects");
        }
        attempt.follow()
    });
    reqwest::Client::builder()
        .tls_backend_preconfigured(yiem_tls::client_config())
        .redirect(policy)
        .connect_timeout(connect_timeout)
        .pool_idle_timeout(Duration::from_secs(60))
        .tcp_nodelay(true)
        .build()
        .map_err(|error| McpError::config("the HTTP client cannot be set up").with_source(error))
}

impl HttpShared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message that came on a stream of nobody's own: an answer goes to who waits for it, all else
    /// to the inbox.
    fn take(&self, message: Incoming, inbox: &Inbox) {
        match message {
            Incoming::Answer(answer) => {
                if let Some(answer) = self.route(answer) {
                    inbox.message(Incoming::Answer(answer));
                }
            }
            other => inbox.message(other),
        }
    }

    /// Gives an answer to the request that waits for it; back comes one that nobody waits for.
    fn route(&self, answer: Answer) -> Option<Answer> {
        let id = answer.id.clone()?;
        let settled = self.state().waiters.settle(answer);
        match settled {
            Settled::Waiter(waiter, outcome) => {
                let _ = waiter.send(Answer {
                    id: Some(id),
                    outcome,
                });
                None
            }
            Settled::Late(_) | Settled::Stray(_) => None,
        }
    }

    fn session(&self) -> Option<HeaderValue> {
        self.state().session.clone()
    }

    fn old(&self) -> Option<Arc<OldSse>> {
        self.state().old.clone()
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport")
            .field("url", &without_secrets(self.shared.url.as_str()))
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for HttpTransport {
    fn profile(&self) -> TransportProfile {
        let profile = TransportProfile::detecting()
            .with_modern_cancel(CancelStyle::Drop)
            .with_mirrored_headers();
        if self.old_sse {
            return TransportProfile {
                dialect: crate::dialect::DialectChoice::Legacy,
                ..profile
            };
        }
        profile
    }

    async fn open(&self, inbox: Inbox) -> Result<(), McpError> {
        self.tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .abort_all();
        *self.shared.state() = State {
            inbox: Some(inbox.clone()),
            ..State::default()
        };
        if self.old_sse {
            self.open_old(inbox).await?;
        }
        Ok(())
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Answer, McpError> {
        if let Some(old) = self.shared.old() {
            return old.exchange(exchange).await;
        }
        if self.old_sse {
            return Err(McpError::not_sent("the server's stream is not open"));
        }
        let opens = &*exchange.method == method::INITIALIZE;
        let again = opens.then(|| exchange.clone());
        match (self.shared.exchange(exchange).await, again) {
            (Err(error), Some(exchange))
                if matches!(
                    error.kind(),
                    McpErrorKind::Http {
                        status: 400 | 404 | 405 | 406 | 415,
                        ..
                    }
                ) =>
            {
                self.fall_back(error, exchange).await
            }
            (outcome, _) => outcome,
        }
    }

    async fn notify(&self, notice: Notice) -> Result<(), McpError> {
        if let Some(old) = self.shared.old() {
            return old.send(notice.body()).await;
        }
        self.shared
            .tell(notice.body(), notice.dialect, &notice.method)
            .await
    }

    async fn respond(&self, response: Response) -> Result<(), McpError> {
        if let Some(old) = self.shared.old() {
            return old.send(response.body()).await;
        }
        self.shared
            .tell(response.body(), response.dialect, "")
            .await
    }

    async fn opened(&self, dialect: Dialect) -> Result<(), McpError> {
        let listens = {
            let mut state = self.shared.state();
            state.dialect = Some(dialect);
            state.old.is_none() && dialect.is_legacy()
        };
        if listens {
            // A server may ask on this stream in the course of the first call: it should be there by then.
            let (ready, is_ready) = oneshot::channel();
            self.spawn(stream::listen(Arc::clone(&self.shared), ready));
            tokio::select! {
                _ = is_ready => {}
                () = self.shared.env.sleep(STREAM_TIME) => {}
            }
        }
        Ok(())
    }

    async fn close(&self) {
        self.tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .abort_all();
        self.shared.end_session().await;
        *self.shared.state() = State::default();
    }
}
