//! A modern server's stream of changes (`subscriptions/listen`).

use super::Shared;
use super::request::Sending;
use super::session::Session;
use crate::jsonrpc::AnswerOutcome;
use crate::protocol::method;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

impl Shared {
    /// Listens for changes of lists, where the server is modern and tells of them, for as long as this
    /// connection lasts. A stream that ends is opened again, with growing pauses; a server that refuses
    /// is left alone.
    pub(super) fn listen(self: &Arc<Self>, session: &Arc<Session>) {
        if self.listings.listed() {
            // A server that was started again may have other tools.
            self.tools_changed();
        }
        if !session.dialect.is_modern() {
            return;
        }
        let mut wanted = Map::new();
        for (capability, key) in [
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ] {
            if session.facts.tells_changes_of(capability) {
                wanted.insert(key.into(), true.into());
            }
        }
        if wanted.is_empty() {
            return;
        }
        let weak = Arc::downgrade(self);
        let session = Arc::clone(session);
        self.tasks.spawn(async move {
            let mut wait = FIRST_WAIT;
            let mut missed = false;
            loop {
                let Some(client) = weak.upgrade() else { return };
                if client.sessions.current().is_none_or(|current| current.number != session.number) {
                    return;
                }
                if missed {
                    client.tools_changed();
                }
                let mut params = Map::new();
                params.insert("notifications".into(), Value::Object(wanted.clone()));
                let sending = Sending::new(method::LISTEN, params, session.dialect, session.inbox.clone());
                let exchange = sending.into_exchange(&client);
                let transport = Arc::clone(&client.transport);
                let env = Arc::clone(&client.env);
                drop(client);
                let began = env.elapsed();
                match transport.exchange(exchange).await {
                    Ok(answer) if matches!(answer.outcome, AnswerOutcome::Error(_)) => {
                        tracing::debug!(outcome = ?answer.outcome, "a server does not let us listen");
                        return;
                    }
                    Ok(_) => missed = false,
                    Err(error) => {
                        tracing::debug!(%error, "a stream of changes broke off");
                        missed = true;
                    }
                }
                if env.elapsed().saturating_sub(began) > LONGEST_WAIT {
                    wait = FIRST_WAIT;
                }
                env.sleep(wait.mul_f64(0.5 + env.random())).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        });
    }
}
