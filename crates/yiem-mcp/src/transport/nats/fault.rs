//! What NATS says went wrong, as our errors.
//!
//! Knows: the kinds and wordings of the client library and of brokers, and which of our kinds each is.
//! Does not know: connections, time.

use crate::error::{McpError, McpErrorKind};
use async_nats::ConnectErrorKind;
use std::error::Error as StdError;

/// A permission that a broker refused, from its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denied {
    /// Whether sending was refused; else it was receiving.
    pub(crate) publish: bool,
    /// The subject that it was refused for.
    pub(crate) subject: String,
    /// The broker's words.
    pub(crate) text: String,
}

impl Denied {
    /// Reads `Permissions Violation for Publish to "x"` and `… for Subscription to "x" using queue "q"`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let low = text.to_lowercase();
        let at = low.find("permissions violation for ")?;
        let publish = low[at..].starts_with("permissions violation for publish");
        let subject = text.get(at..)?.split('"').nth(1)?.to_owned();
        Some(Self {
            publish,
            subject,
            text: text.trim_matches('\'').to_owned(),
        })
    }

    /// Whether it explains that a request to `subject` with its answer under `inbox` got none.
    pub(crate) fn explains(&self, subject: &str, inbox: &str) -> bool {
        if self.publish {
            self.subject == subject
        } else {
            self.subject.starts_with(inbox)
        }
    }
}

/// A failure to connect, as ours. `servers` is shown and must hold no credentials.
pub(crate) fn of_connect(
    kind: ConnectErrorKind,
    servers: &str,
    source: impl StdError + Send + Sync + 'static,
) -> McpError {
    let cause = innermost(&source);
    let error = match kind {
        ConnectErrorKind::ServerParse => {
            McpError::config(format!("no address of a NATS server: {servers}: {cause}"))
        }
        ConnectErrorKind::AuthorizationViolation => {
            McpError::new(McpErrorKind::Unauthorized(format!(
                "the NATS server at {servers} refused the credentials; check token, user, nkey or credentials file"
            )))
        }
        ConnectErrorKind::Authentication => McpError::new(McpErrorKind::Unauthorized(format!(
            "the credentials for the NATS server at {servers} cannot be used: {cause}"
        ))),
        ConnectErrorKind::Dns => McpError::unreachable(format!(
            "no NATS server at {servers}: the name has no address: {cause}"
        )),
        ConnectErrorKind::TimedOut => McpError::unreachable(format!(
            "the NATS server at {servers} did not answer in time"
        )),
        ConnectErrorKind::Tls => McpError::unreachable(format!(
            "no TLS connection to the NATS server at {servers}: {cause}"
        )),
        _ if is_about_tls(&cause) => McpError::unreachable(format!(
            "no TLS connection to the NATS server at {servers}: {cause}"
        )),
        _ => McpError::unreachable(format!(
            "no NATS server at {servers}: {cause}; check that it runs and the address"
        )),
    };
    error.with_source(source)
}

fn is_about_tls(cause: &str) -> bool {
    let cause = cause.to_lowercase();
    ["certificate", "tls", "unknownissuer"]
        .iter()
        .any(|word| cause.contains(word))
}

/// A message that is too large for the broker.
pub(crate) fn too_large(what: &str, size: usize, limit: usize) -> McpError {
    McpError::new(McpErrorKind::TooLarge {
        what: what.to_owned(),
        size: size as u64,
        limit: limit as u64,
    })
    .with_note("the limit is the NATS server's max_payload")
}

/// Nobody listens on the subject.
pub(crate) fn no_server(subject: &str) -> McpError {
    McpError::new(McpErrorKind::NoServer(format!(
        "no server on {subject}: the NATS server knows nobody who listens there; start the MCP server or check the subject"
    )))
}

/// The innermost cause of an error, in its own words.
pub(crate) fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut at = error;
    while let Some(cause) = at.source() {
        at = cause;
    }
    at.to_string()
}

#[cfg(test)]
mod tests;
