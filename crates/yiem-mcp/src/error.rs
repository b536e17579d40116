//! What can go wrong between a client and an MCP server, by how far a request got and what can be done.
//!
//! Knows: kinds of failure, their words, whether a retry is safe. Does not know: transports or tasks.

use crate::jsonrpc::JsonRpcError;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

type Source = Box<dyn StdError + Send + Sync>;

/// A failure of an MCP request: which server, which request, what happened (M-5, M-7).
///
/// Its text names the server and the cause and can be shown to a model or a person; it never holds a
/// secret. [`McpError::kind`] is what code decides on.
pub struct McpError(Box<Inner>);

struct Inner {
    server: Option<Arc<str>>,
    doing: Option<String>,
    kind: McpErrorKind,
    /// What was known besides, e.g. the last words of a process.
    notes: Vec<String>,
    /// What is only for people.
    asides: Vec<String>,
    source: Option<Source>,
}

/// The kinds of [`McpError`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum McpErrorKind {
    /// What was asked for cannot be built: a bad address, a bad configuration. Nothing was sent.
    Config(String),
    /// The server could not be started or connected to. Nothing was sent.
    Unreachable(String),
    /// The way is open and nobody is at its end: nothing listens on the subject. Nothing was sent.
    NoServer(String),
    /// The request was not sent: the connection is closed, or the message is over a limit.
    NotSent(String),
    /// The message, or the answer, is larger than allowed.
    TooLarge {
        /// What is too large, e.g. `the answer`.
        what: String,
        /// Its size in bytes.
        size: u64,
        /// What is allowed, in bytes.
        limit: u64,
    },
    /// The connection broke, or the process died, after the request had been sent: it may have run.
    Lost(String),
    /// No answer came in time: it may have run. The server was told, where its dialect allows.
    TimedOut {
        /// How long was waited.
        after: Duration,
        /// Whether it was the hard cap, which progress does not renew.
        hard_cap: bool,
    },
    /// The server answered with a JSON-RPC error: a refusal.
    Refused(JsonRpcError),
    /// An HTTP answer that is no answer to the request.
    Http {
        /// The status code.
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// The server wants credentials, or others than were given.
    Unauthorized(String),
    /// An answer came that cannot be read.
    Unreadable(String),
    /// The server does not keep to the protocol in a way that leaves nothing to do.
    Protocol(String),
    /// The caller gave up.
    Cancelled,
}

/// How far a request got when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reached {
    /// It was not sent: to send it again is safe.
    NotSent,
    /// It may have run.
    MaybeSent,
    /// The server answered.
    Answered,
}

impl McpError {
    /// An error of that kind.
    #[must_use]
    pub fn new(kind: McpErrorKind) -> Self {
        Self(Box::new(Inner {
            server: None,
            doing: None,
            kind,
            notes: Vec::new(),
            asides: Vec::new(),
            source: None,
        }))
    }

    pub(crate) fn config(what: impl Into<String>) -> Self {
        Self::new(McpErrorKind::Config(what.into()))
    }

    /// The server cannot be reached; nothing was sent. For transports.
    pub fn unreachable(what: impl Into<String>) -> Self {
        Self::new(McpErrorKind::Unreachable(what.into()))
    }

    /// The request was not sent. For transports.
    pub fn not_sent(what: impl Into<String>) -> Self {
        Self::new(McpErrorKind::NotSent(what.into()))
    }

    /// The connection broke after the request was sent. For transports.
    pub fn lost(what: impl Into<String>) -> Self {
        Self::new(McpErrorKind::Lost(what.into()))
    }

    /// The answer cannot be read. For transports.
    pub fn unreadable(what: impl Into<String>) -> Self {
        Self::new(McpErrorKind::Unreadable(what.into()))
    }

    pub(crate) fn protocol(what: impl Into<String>) -> Self {
        Self::new(McpErrorKind::Protocol(what.into()))
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(McpErrorKind::Cancelled)
    }

    /// Keeps the error that this one comes from.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds something that was known besides; shown after the cause. Empty notes are left out.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        let note = note.into();
        if !note.trim().is_empty() && !self.0.notes.contains(&note) {
            self.0.notes.push(note);
        }
        self
    }

    /// Adds something that helps a person and is of no use to a model, such as a long list; see
    /// [`McpError::in_brief`].
    #[must_use]
    pub fn with_aside(mut self, aside: impl Into<String>) -> Self {
        self.0.asides.push(aside.into());
        self
    }

    /// The words of the error without what is only for people: for a model.
    #[must_use]
    pub fn in_brief(&self) -> String {
        Words(&self.0, false).to_string()
    }

    /// Names the server, unless one is named.
    #[must_use]
    pub(crate) fn at(mut self, server: &Arc<str>) -> Self {
        self.0.server.get_or_insert_with(|| Arc::clone(server));
        self
    }

    /// Says what was being done, unless that is said.
    #[must_use]
    pub(crate) fn doing(mut self, what: impl Into<String>) -> Self {
        self.0.doing.get_or_insert_with(|| what.into());
        self
    }

    /// The kind, to decide on.
    #[must_use]
    pub fn kind(&self) -> &McpErrorKind {
        &self.0.kind
    }

    /// The configured name of the server, where known.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.0.server.as_deref()
    }

    /// The server's own error, when it is one.
    #[must_use]
    pub fn refusal(&self) -> Option<&JsonRpcError> {
        match &self.0.kind {
            McpErrorKind::Refused(error) => Some(error),
            _ => None,
        }
    }

    /// How far the request got.
    #[must_use]
    pub fn reached(&self) -> Reached {
        match &self.0.kind {
            McpErrorKind::Config(_)
            | McpErrorKind::Unreachable(_)
            | McpErrorKind::NoServer(_)
            | McpErrorKind::NotSent(_)
            | McpErrorKind::Unauthorized(_) => Reached::NotSent,
            McpErrorKind::TooLarge { what, .. } if what.contains("request") => Reached::NotSent,
            McpErrorKind::Lost(_) | McpErrorKind::TimedOut { .. } | McpErrorKind::Cancelled => {
                Reached::MaybeSent
            }
            _ => Reached::Answered,
        }
    }

    /// Whether the same request may be sent again without a risk that it runs twice, and might succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.0.kind,
            McpErrorKind::Unreachable(_) | McpErrorKind::NoServer(_) | McpErrorKind::NotSent(_)
        )
    }

    /// Whether the connection is gone with this error, so that the next use has to open it again.
    pub(crate) fn ends_connection(&self) -> bool {
        matches!(
            self.0.kind,
            McpErrorKind::Lost(_) | McpErrorKind::NotSent(_) | McpErrorKind::Unreachable(_)
        )
    }

    /// The same failure, of a request that was certainly not sent.
    #[cfg(feature = "stdio")]
    #[must_use]
    pub(crate) fn before_sending(mut self) -> Self {
        self.0.kind = McpErrorKind::NotSent(self.0.kind.to_string());
        self
    }

    /// The same failure again, for a second one that waits for the same thing. The source stays with
    /// the first, its words come along.
    #[must_use]
    pub fn again(&self) -> Self {
        let mut notes = self.0.notes.clone();
        if let Some(source) = &self.0.source {
            let text = source.to_string();
            if !notes.contains(&text) {
                notes.push(text);
            }
        }
        Self(Box::new(Inner {
            server: self.0.server.clone(),
            doing: self.0.doing.clone(),
            kind: self.0.kind.clone(),
            notes,
            asides: self.0.asides.clone(),
            source: None,
        }))
    }
}

impl From<JsonRpcError> for McpError {
    fn from(error: JsonRpcError) -> Self {
        Self::new(McpErrorKind::Refused(error))
    }
}

impl fmt::Display for McpErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(what)
            | Self::Unreachable(what)
            | Self::NoServer(what)
            | Self::NotSent(what)
            | Self::Lost(what)
            | Self::Protocol(what)
            | Self::Unauthorized(what) => f.write_str(what),
            Self::TooLarge { what, size, limit } => {
                write!(f, "{what} is too large: {size} bytes, allowed are {limit}")
            }
            Self::TimedOut {
                after,
                hard_cap: false,
            } => {
                write!(f, "no answer within {}", Span(*after))
            }
            Self::TimedOut {
                after,
                hard_cap: true,
            } => {
                write!(
                    f,
                    "no answer within {}, the longest that progress can extend a request to",
                    Span(*after)
                )
            }
            Self::Refused(error) => write!(f, "the server refused: {error}"),
            Self::Http { status, body } if body.is_empty() => write!(f, "HTTP status {status}"),
            Self::Http { status, body } => write!(f, "HTTP status {status}: {body}"),
            Self::Unreadable(what) => write!(f, "the answer cannot be read: {what}"),
            Self::Cancelled => f.write_str("cancelled by the caller"),
        }
    }
}

/// A duration in the words of a person: `60 s`, `250 ms`, `10 min`.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        if millis.is_multiple_of(60_000) && millis > 60_000 {
            write!(f, "{} min", millis / 60_000)
        } else if millis.is_multiple_of(1000) {
            write!(f, "{} s", millis / 1000)
        } else {
            write!(f, "{millis} ms")
        }
    }
}

/// The words of an error, with or without what is only for people.
struct Words<'a>(&'a Inner, bool);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(error, whole) = *self;
        match &error.server {
            Some(server) => write!(f, "MCP server `{server}`")?,
            None => f.write_str("MCP")?,
        }
        if let Some(doing) = &error.doing {
            write!(f, ", {doing}")?;
        }
        write!(f, ": {}", error.kind)?;
        let asides = error.asides.iter().filter(|_| whole);
        for note in error.notes.iter().chain(asides) {
            write!(f, "; {note}")?;
        }
        Ok(())
    }
}

impl fmt::Display for McpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Words(&self.0, true).fmt(f)
    }
}

impl fmt::Debug for McpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpError")
            .field("server", &self.0.server)
            .field("doing", &self.0.doing)
            .field("kind", &self.0.kind)
            .field("notes", &self.0.notes)
            .field("asides", &self.0.asides)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for McpError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
