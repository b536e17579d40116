//! One connection to NATS, and what is known of its health.
//!
//! Knows: how to connect, what the connection's own events said, how large a message may be.
//! Does not know: MCP, requests, answers.

use super::config::{NatsAuth, NatsConfig};
use super::fault::{self, Denied};
use crate::error::McpError;
use async_nats::{Client, ClientError, ConnectOptions, Event, ServerError};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use yiem_core::Env;

/// How often a lost connection is tried again before it is given up: about ten minutes.
const RECONNECTS: usize = 160;
/// The longest pause between two tries.
const RECONNECT_PAUSE: Duration = Duration::from_secs(4);
/// How many refused permissions are remembered.
const DENIED_KEPT: usize = 32;
/// How long the other side may take to be back after the broker is: nats-py waits 2 s between tries.
const SETTLING: Duration = Duration::from_millis(2_500);

/// A connection. Dropping it ends it, and the tries to get it back.
pub(crate) struct Link {
    pub(crate) client: Client,
    pub(crate) health: Arc<Health>,
    alive: Arc<AtomicBool>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.alive.store(false, Ordering::Relaxed);
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("connected", &self.health.lock().connected)
            .finish_non_exhaustive()
    }
}

impl Link {
    /// Connects to one of the configuration's servers. May be dropped at any await.
    pub(crate) async fn connect(config: &NatsConfig, env: Arc<dyn Env>) -> Result<Self, McpError> {
        ensure_crypto();
        let servers = config.shown_servers();
        let health = Arc::new(Health::new(env, servers.clone()));
        let alive = Arc::new(AtomicBool::new(true));
        let told = Arc::clone(&health);
        let owned = Arc::clone(&alive);
        let options = authenticated(ConnectOptions::new(), &config.auth)
            .await?
            .name(&config.name)
            .connection_timeout(config.connect_timeout)
            .request_timeout(None)
            .ping_interval(Duration::from_secs(20))
            .max_reconnects(RECONNECTS)
            .reconnect_delay_callback(move |tries| {
                // Nobody waits for it any more: the rest of the tries is used up at once.
                if owned.load(Ordering::Relaxed) {
                    pause(tries)
                } else {
                    Duration::ZERO
                }
            })
            .event_callback(move |event| {
                let told = Arc::clone(&told);
                async move { told.event(&event) }
            });
        let options = protected(options, config);
        let options = match &config.inbox_prefix {
            Some(prefix) => options.custom_inbox_prefix(checked_prefix(prefix)?),
            None => options,
        };
        let client = options
            .connect(config.servers.as_slice())
            .await
            .map_err(|error| fault::of_connect(error.kind(), &servers, error))?;
        health.connected();
        Ok(Self {
            client,
            health,
            alive,
        })
    }

    /// Refuses a message that the broker would.
    pub(crate) fn check_size(&self, what: &str, size: usize) -> Result<(), McpError> {
        let limit = self.client.max_payload();
        if size > limit {
            Err(fault::too_large(what, size, limit))
        } else {
            Ok(())
        }
    }

    /// Whether it can still be used: connected, or on its way back.
    pub(crate) fn is_usable(&self) -> bool {
        !self.health.lock().given_up
    }
}

/// 0, 50, 100, 200 ms, … up to the longest.
fn pause(tries: usize) -> Duration {
    match u32::try_from(tries.saturating_sub(2)) {
        _ if tries <= 1 => Duration::ZERO,
        Ok(doublings) => (Duration::from_millis(50) * 2_u32.saturating_pow(doublings.min(10)))
            .min(RECONNECT_PAUSE),
        Err(_) => RECONNECT_PAUSE,
    }
}

/// The client library asks rustls for its default provider; where a program has set none, ring is it.
fn ensure_crypto() {
    use async_nats::rustls::crypto::{CryptoProvider, ring};
    if CryptoProvider::get_default().is_none() {
        // Another thread may be first, which is as good.
        let _ = ring::default_provider().install_default();
    }
}

fn checked_prefix(prefix: &str) -> Result<String, McpError> {
    let prefix = prefix.trim_end_matches('.');
    super::subject::Subjects::new(prefix, super::subject::SubjectStyle::Fixed).map_err(|_| {
        McpError::config(format!(
            "`{prefix}` cannot be the beginning of an inbox on NATS"
        ))
    })?;
    Ok(prefix.to_owned())
}

fn protected(mut options: ConnectOptions, config: &NatsConfig) -> ConnectOptions {
    if config.tls.required {
        options = options.require_tls(true);
    }
    if config.tls.first {
        options = options.tls_first();
    }
    if let Some(path) = &config.tls.ca_file {
        options = options.add_root_certificates(path.clone());
    }
    if let Some((certificate, key)) = &config.tls.client {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    options
}

async fn authenticated(
    options: ConnectOptions,
    auth: &NatsAuth,
) -> Result<ConnectOptions, McpError> {
    Ok(match auth {
        NatsAuth::None => options,
        NatsAuth::Token(token) => options.token(token.clone()),
        NatsAuth::TokenEnv(name) => options.token(variable(name)?),
        NatsAuth::UserPassword { user, password } => {
            options.user_and_password(user.clone(), password.clone())
        }
        NatsAuth::UserEnv {
            user,
            password: Some(password),
        } => options.user_and_password(variable(user)?, variable(password)?),
        NatsAuth::UserEnv {
            user: name,
            password: None,
        } => {
            let both = variable(name)?;
            let (user, password) = both.split_once(':').ok_or_else(|| {
                McpError::config(format!(
                    "the environment variable {name} must hold `user:password` for the NATS server"
                ))
            })?;
            options.user_and_password(user.to_owned(), password.to_owned())
        }
        NatsAuth::Nkey(seed) => options.nkey(seed.clone()),
        NatsAuth::NkeyEnv(name) => options.nkey(variable(name)?),
        NatsAuth::CredentialsFile(path) => {
            options.credentials_file(path).await.map_err(|error| {
                McpError::config(format!(
                    "the credentials file {} cannot be read: {error}",
                    path.display()
                ))
                .with_source(error)
            })?
        }
        NatsAuth::Credentials(text) => options.credentials(text).map_err(|error| {
            McpError::config(
                "the credentials for the NATS server are no text of a credentials file",
            )
            .with_source(error)
        })?,
    })
}

fn variable(name: &str) -> Result<String, McpError> {
    match std::env::var(name) {
        Ok(value) if !value.trim().is_empty() => Ok(value.trim().to_owned()),
        _ => Err(McpError::config(format!(
            "the environment variable {name} with credentials for the NATS server is not set"
        ))),
    }
}

/// Whom to tell that the connection is given up.
type OnEnd = Box<dyn Fn(McpError) + Send>;

/// What the connection's events said.
pub(crate) struct Health {
    env: Arc<dyn Env>,
    servers: String,
    state: Mutex<State>,
    changed: Notify,
    on_end: Mutex<Option<OnEnd>>,
}

#[derive(Debug, Default)]
struct State {
    connected: bool,
    given_up: bool,
    /// How often a connection was made.
    connects: u64,
    connected_at: Duration,
    lost_at: Option<Duration>,
    last_error: Option<(Duration, String)>,
    denied: VecDeque<(Duration, Denied)>,
    overflowed_at: Option<Duration>,
}

impl Health {
    pub(crate) fn new(env: Arc<dyn Env>, servers: String) -> Self {
        Self {
            env,
            servers,
            state: Mutex::default(),
            changed: Notify::new(),
            on_end: Mutex::new(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Says whom to tell when the connection is given up.
    pub(crate) fn on_end(&self, tell: impl Fn(McpError) + Send + 'static) {
        *self
            .on_end
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Box::new(tell));
    }

    pub(crate) fn connected(&self) {
        let now = self.env.elapsed();
        let mut state = self.lock();
        // The event of the first connection may come before or after connecting has returned.
        if !state.connected {
            state.connected = true;
            state.connects += 1;
            state.connected_at = now;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    pub(crate) fn event(&self, event: &Event) {
        let now = self.env.elapsed();
        match event {
            Event::Connected => self.connected(),
            Event::Disconnected => {
                let mut state = self.lock();
                state.connected = false;
                state.lost_at = Some(now);
            }
            Event::ServerError(ServerError::AuthorizationViolation) => {
                self.lock().last_error =
                    Some((now, "the NATS server refused the credentials".into()));
            }
            Event::ServerError(ServerError::Other(text)) => match Denied::read(text) {
                Some(denied) => {
                    let mut state = self.lock();
                    if state.denied.len() == DENIED_KEPT {
                        state.denied.pop_front();
                    }
                    state.denied.push_back((now, denied));
                }
                None => {
                    self.lock().last_error = Some((now, format!("the NATS server said: {text}")))
                }
            },
            Event::ServerError(ServerError::SlowConsumer(_)) | Event::SlowConsumer(_) => {
                self.lock().overflowed_at = Some(now);
            }
            Event::ClientError(ClientError::MaxReconnects) => {
                self.give_up("every try to connect again failed")
            }
            Event::ClientError(error) => self.lock().last_error = Some((now, error.to_string())),
            Event::Closed => self.give_up("the connection was closed"),
            Event::LameDuckMode | Event::Draining => {}
        }
    }

    fn give_up(&self, why: &str) {
        let mut state = self.lock();
        if state.given_up {
            return;
        }
        state.given_up = true;
        state.connected = false;
        drop(state);
        self.changed.notify_waiters();
        let tell = self
            .on_end
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(tell) = &*tell {
            tell(self.lost(why));
        }
    }

    /// The error of a connection that is gone.
    pub(crate) fn lost(&self, why: &str) -> McpError {
        let error = McpError::lost(format!(
            "the connection to the NATS server at {} is gone: {why}",
            self.servers
        ));
        match &self.lock().last_error {
            Some((_, text)) => error.with_note(text.clone()),
            None => error,
        }
    }

    /// How often a connection was made; another number later means that it was lost in between.
    pub(crate) fn connects(&self) -> u64 {
        self.lock().connects
    }

    /// Whether "nobody listens" may only mean that the other side is not back yet: the connection was lost
    /// since it was made `connects` times, or came back a moment ago.
    pub(crate) fn is_unsettled(&self, connects: u64) -> bool {
        let state = self.lock();
        !state.connected
            || state.connects != connects
            || (state.connects > 1
                && self.env.elapsed().saturating_sub(state.connected_at) < SETTLING)
    }

    /// Ends when the connection has been back long enough for the other side to be back too.
    pub(crate) async fn settled(&self) {
        loop {
            let changed = self.changed.notified();
            let rest = {
                let state = self.lock();
                if state.given_up {
                    return;
                }
                state.connected.then(|| {
                    SETTLING.saturating_sub(self.env.elapsed().saturating_sub(state.connected_at))
                })
            };
            match rest {
                Some(Duration::ZERO) => return,
                Some(rest) => self.env.sleep(rest).await,
                None => changed.await,
            }
        }
    }

    /// The broker's words, when it refused a subscription to that subject.
    #[cfg(feature = "gateway")]
    pub(crate) fn denied_subscription(&self, subject: &str) -> Option<String> {
        let state = self.lock();
        let denied = state
            .denied
            .iter()
            .find(|(_, denied)| !denied.publish && denied.subject == subject);
        denied.map(|(_, denied)| denied.text.clone())
    }

    /// What explains that a request to `subject`, with its answer under `inbox`, got none in the last
    /// `waited` (M-7).
    pub(crate) fn trouble(&self, subject: &str, inbox: &str, waited: Duration) -> Option<String> {
        let now = self.env.elapsed();
        // What happened a moment before the request was sent matters as well.
        let since = now.saturating_sub(waited + Duration::from_secs(1));
        let state = self.lock();
        let mut known = Vec::new();
        if let Some((_, denied)) = state
            .denied
            .iter()
            .rev()
            .find(|(_, denied)| denied.explains(subject, inbox))
        {
            known.push(format!(
                "the NATS server refused a permission: {}",
                denied.text
            ));
        }
        let error = state
            .last_error
            .as_ref()
            .filter(|(at, _)| *at >= since)
            .map(|(_, text)| text.as_str());
        let because = error.map(|text| format!(": {text}")).unwrap_or_default();
        if !state.connected {
            known.push(format!(
                "the connection to the NATS server at {} is lost and not yet back{because}",
                self.servers
            ));
        } else if state.lost_at.is_some_and(|at| at >= since) {
            known.push(format!(
                "the connection to the NATS server at {} was lost in the meantime and is back{because}",
                self.servers
            ));
        } else if let Some(text) = error {
            known.push(text.to_owned());
        }
        if state.overflowed_at.is_some_and(|at| at >= since) {
            known.push("messages of the NATS server came faster than they were taken, and some were dropped".into());
        }
        (!known.is_empty()).then(|| known.join("; "))
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health")
            .field("state", &*self.lock())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
