//! Opening a connection, once, and again after it was lost.

use super::inbox::SessionInbox;
use super::request::{Sending, raw_exchange};
use super::{McpEvent, Shared};
use crate::dialect::{
    Dialect, DialectChoice, Opening, OpeningFailure, OpeningReply, OpeningStep, ProtocolVersion,
};
use crate::error::{McpError, McpErrorKind};
use crate::jsonrpc::AnswerOutcome;
use crate::protocol::{ServerFacts, method};
use crate::transport::{Inbox, Notice};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use yiem_core::CancelToken;

/// The longest wait between two attempts to connect.
const BACKOFF_CAP: Duration = Duration::from_secs(5);
const BACKOFF_BASE: Duration = Duration::from_millis(250);

/// An open connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) number: u64,
    pub(crate) dialect: Dialect,
    pub(crate) facts: ServerFacts,
    pub(crate) inbox: Inbox,
}

/// The connection of a client, if there is one, and how the last ones went.
#[derive(Debug)]
pub(crate) struct Sessions {
    state: Mutex<State>,
    /// One opens at a time; the others wait for it.
    opener: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Arc<Session>>,
    numbers: u64,
    /// Found out before; asked anew when it no longer works.
    known: Option<Dialect>,
    /// Connections that failed or were lost, since one was of use.
    failures: u32,
    last_failure: Duration,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            opener: Semaphore::new(1),
        }
    }
}

impl Sessions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn current(&self) -> Option<Arc<Session>> {
        self.state().current.clone()
    }

    /// The connection of that number is gone. False when it was gone already.
    pub(crate) fn end(&self, number: u64, now: Duration) -> bool {
        let mut state = self.state();
        if state
            .current
            .as_ref()
            .is_none_or(|session| session.number != number)
        {
            return false;
        }
        state.current = None;
        state.failures = state.failures.saturating_add(1);
        state.last_failure = now;
        true
    }

    /// The connection is let go of on purpose.
    pub(crate) fn forget(&self) {
        self.state().current = None;
    }

    /// A request was answered: the connection is of use.
    pub(crate) fn was_of_use(&self) {
        self.state().failures = 0;
    }

    fn failed(&self, now: Duration) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        state.last_failure = now;
        state.known = None;
    }

    /// How long to wait before the next attempt: none after the first loss, then longer each time.
    fn backoff(&self, now: Duration) -> Duration {
        let state = self.state();
        if state.failures < 2 {
            return Duration::ZERO;
        }
        let wait = BACKOFF_BASE
            .saturating_mul(1 << (state.failures - 2).min(8))
            .min(BACKOFF_CAP);
        (state.last_failure + wait).saturating_sub(now)
    }
}

impl Shared {
    /// The open connection; opens one if there is none.
    pub(crate) async fn session(
        self: &Arc<Self>,
        cancel: &CancelToken,
    ) -> Result<Arc<Session>, McpError> {
        if let Some(session) = self.sessions.current() {
            return Ok(session);
        }
        let opening = async {
            let _turn = self
                .sessions
                .opener
                .acquire()
                .await
                .expect("the semaphore is never closed");
            if let Some(session) = self.sessions.current() {
                return Ok(session);
            }
            let wait = self.sessions.backoff(self.env.elapsed());
            if !wait.is_zero() {
                self.env.sleep(wait).await;
            }
            let limit = self.config.timeouts.connect;
            let opened = tokio::select! {
                opened = self.open() => opened,
                () = self.env.sleep(limit) => {
                    self.transport.close().await;
                    Err(McpError::unreachable(format!("not connected within {} s", limit.as_secs_f64())))
                }
            };
            opened.inspect_err(|_| self.sessions.failed(self.env.elapsed()))
        };
        let opened = cancel
            .run_until_cancelled(opening)
            .await
            .unwrap_or_else(|| Err(McpError::cancelled()));
        opened.map_err(|error| error.at(&self.name).doing("connecting"))
    }

    async fn open(self: &Arc<Self>) -> Result<Arc<Session>, McpError> {
        let (number, known) = {
            let mut state = self.sessions.state();
            state.numbers += 1;
            (state.numbers, state.known)
        };
        let choice = match (self.dialect_choice(), known) {
            (DialectChoice::Auto | DialectChoice::Detect, Some(Dialect::Legacy(_))) => {
                DialectChoice::Legacy
            }
            (DialectChoice::Auto, _) => DialectChoice::Detect,
            (choice, _) => choice,
        };
        let inbox = Inbox::new(Arc::new(SessionInbox::new(self, number)));
        self.transport.open(inbox.clone()).await?;
        let (dialect, facts) = match self.find_dialect(choice, &inbox).await {
            Ok(found) => found,
            Err(error) => {
                self.transport.close().await;
                return Err(error);
            }
        };
        if dialect.is_legacy() {
            self.transport
                .notify(Notice::new(method::INITIALIZED, Map::new(), dialect))
                .await?;
        }
        self.transport.opened(dialect).await?;
        let session = Arc::new(Session {
            number,
            dialect,
            facts,
            inbox,
        });
        {
            let mut state = self.sessions.state();
            state.current = Some(Arc::clone(&session));
            state.known = Some(dialect);
        }
        tracing::debug!(server = %self.name, %dialect, "an MCP connection is open");
        self.tell(McpEvent::Connected(dialect));
        self.listen(&session);
        Ok(session)
    }

    fn dialect_choice(&self) -> DialectChoice {
        match self.config.dialect {
            DialectChoice::Auto => self.transport.profile().dialect,
            set => set,
        }
    }

    async fn find_dialect(
        self: &Arc<Self>,
        choice: DialectChoice,
        inbox: &Inbox,
    ) -> Result<(Dialect, ServerFacts), McpError> {
        let (mut opening, mut step) = Opening::start(choice);
        loop {
            let reply = match step {
                OpeningStep::Done(dialect, facts) => return Ok((dialect, facts)),
                OpeningStep::Failed(failure) => return Err(failure_error(failure)),
                OpeningStep::Discover(version) => self.discover(version, choice, inbox).await?,
                OpeningStep::Initialize(version) => self.initialize(version, inbox).await?,
            };
            step = opening.reply(reply);
        }
    }

    async fn discover(
        self: &Arc<Self>,
        version: ProtocolVersion,
        choice: DialectChoice,
        inbox: &Inbox,
    ) -> Result<OpeningReply, McpError> {
        let sending = Sending::new(
            method::DISCOVER,
            Map::new(),
            Dialect::Modern(version),
            inbox.clone(),
        );
        let answer = tokio::select! {
            answer = raw_exchange(self, sending) => answer,
            () = self.env.sleep(self.config.timeouts.probe) => return Ok(OpeningReply::Nothing),
        };
        match answer {
            Ok(AnswerOutcome::Result(result)) => Ok(OpeningReply::Result(result)),
            Ok(AnswerOutcome::Error(error)) => Ok(OpeningReply::Error(error)),
            Ok(AnswerOutcome::Malformed(_)) => Ok(OpeningReply::Nothing),
            Err(error) if choice == DialectChoice::Modern => Err(error),
            // A server that dies of a method that it does not know: again, with the handshake.
            Err(error) if matches!(error.kind(), McpErrorKind::Lost(_)) => {
                self.transport
                    .open(inbox.clone())
                    .await
                    .map_err(|again| again.with_note(error.to_string()))?;
                Ok(OpeningReply::Nothing)
            }
            Err(error)
                if matches!(
                    error.kind(),
                    McpErrorKind::Http { .. }
                        | McpErrorKind::Unreadable(_)
                        | McpErrorKind::TooLarge { .. }
                ) =>
            {
                Ok(OpeningReply::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    async fn initialize(
        self: &Arc<Self>,
        version: ProtocolVersion,
        inbox: &Inbox,
    ) -> Result<OpeningReply, McpError> {
        let mut params = Map::new();
        params.insert("protocolVersion".into(), version.as_str().into());
        params.insert("capabilities".into(), Value::Object(self.declared()));
        params.insert("clientInfo".into(), self.client_info());
        let sending = Sending::new(
            method::INITIALIZE,
            params,
            Dialect::Legacy(version),
            inbox.clone(),
        );
        Ok(match raw_exchange(self, sending).await? {
            AnswerOutcome::Result(result) => OpeningReply::Result(result),
            AnswerOutcome::Error(error) => OpeningReply::Error(error),
            AnswerOutcome::Malformed(what) => return Err(McpError::unreadable(what)),
        })
    }

    pub(crate) fn client_info(&self) -> Value {
        json!({"name": &*self.config.client_name, "version": &*self.config.client_version})
    }

    /// What this client can do, as it is declared.
    pub(crate) fn capabilities(&self) -> Map<String, Value> {
        let mut capabilities = Map::new();
        if self.config.elicit.is_some() {
            capabilities.insert("elicitation".into(), json!({"form": {}, "url": {}}));
        }
        if self.config.sample.is_some() {
            capabilities.insert("sampling".into(), json!({}));
        }
        if self.config.roots.is_some() {
            capabilities.insert("roots".into(), json!({}));
        }
        capabilities
    }

    /// What is declared in the handshake: with callers behind this client, also what they may be able to
    /// do. The handshake comes before them.
    fn declared(&self) -> Map<String, Value> {
        let mut capabilities = self.capabilities();
        if self.hand_on.get().is_some() {
            for (key, details) in [
                ("elicitation", json!({"form": {}, "url": {}})),
                ("sampling", json!({})),
                ("roots", json!({"listChanged": true})),
            ] {
                capabilities.entry(key).or_insert(details);
            }
        }
        capabilities
    }
}

fn failure_error(failure: OpeningFailure) -> McpError {
    match failure {
        OpeningFailure::Versions(text) => McpError::protocol(text),
        OpeningFailure::Refused(error) => {
            McpError::from(error).with_note("it refused `initialize`")
        }
        OpeningFailure::Unreadable(text) => McpError::unreadable(text),
    }
}
