//! The way back: one subscription for the answers of all requests of a connection.
//!
//! Knows: which request waits under which last token of a reply subject. Does not know: what a message
//! says, or when a request has waited long enough.

use async_nats::{Message, Subscriber};
use futures_util::StreamExt as _;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How many messages of one request may wait to be read; more are dropped.
const WAITING: usize = 1_024;

type Routes = BTreeMap<String, mpsc::Sender<Message>>;

/// Who waits for which answers. Dropping it ends its task.
pub(super) struct AnswerInbox {
    subject: String,
    routes: Arc<Mutex<Option<Routes>>>,
    _reader: JoinSet<()>,
}

fn lock(routes: &Mutex<Option<Routes>>) -> MutexGuard<'_, Option<Routes>> {
    routes.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AnswerInbox {
    /// Hands what comes under `subject` to whoever waits for it. `messages` is subscribed to `{subject}.*`.
    pub(super) fn new(subject: String, mut messages: Subscriber) -> Self {
        let routes = Arc::new(Mutex::new(Some(Routes::new())));
        let shared = Arc::clone(&routes);
        let head = subject.len() + 1;
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            while let Some(message) = messages.next().await {
                let route = message.subject.get(head..).and_then(|token| lock(&shared).as_ref()?.get(token).cloned());
                // Nobody waits for what comes too late.
                if let Some(route) = route
                    && route.try_send(message).is_err()
                {
                    tracing::warn!("messages of a server on NATS come faster than they are taken; one was dropped");
                }
            }
            // The connection is gone: whoever waits is told by the end of their messages.
            *lock(&shared) = None;
        });
        Self {
            subject,
            routes,
            _reader: reader,
        }
    }

    /// What reply subjects begin with.
    pub(super) fn subject(&self) -> &str {
        &self.subject
    }

    /// Whether messages can still come.
    pub(super) fn is_open(&self) -> bool {
        lock(&self.routes).is_some()
    }

    /// The reply subject of a token.
    pub(super) fn reply(&self, token: &str) -> String {
        format!("{}.{token}", self.subject)
    }

    /// Waits under a token; under another one when somebody waits there already. `None` when the connection
    /// is gone.
    pub(super) fn wait(&self, token: String) -> Option<Waiting> {
        let mut routes = lock(&self.routes);
        let routes = routes.as_mut()?;
        let mut free = token.clone();
        let mut number = 1;
        while routes.contains_key(&free) {
            number += 1;
            free = format!("{token}-{number}");
        }
        let (send, messages) = mpsc::channel(WAITING);
        routes.insert(free.clone(), send);
        Some(Waiting {
            token: free,
            messages,
            routes: Arc::clone(&self.routes),
        })
    }
}

/// One that waits. Its drop ends the waiting.
pub(super) struct Waiting {
    pub(super) token: String,
    messages: mpsc::Receiver<Message>,
    routes: Arc<Mutex<Option<Routes>>>,
}

impl Waiting {
    /// The next message; `None` when the connection is gone.
    pub(super) async fn next(&mut self) -> Option<Message> {
        self.messages.recv().await
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(routes) = lock(&self.routes).as_mut() {
            routes.remove(&self.token);
        }
    }
}
