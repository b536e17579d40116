//! A reply that was recorded, read in one call.
//!
//! Knows: what came (status, headers, body) and in which order the reader wants it. Does not
//! know: the format. It is the way of the HTTP model, without the network; `yiem wire decode`
//! goes it too.

use std::fmt;
use std::sync::Arc;

use yiem_core::{AssistantMessage, Env, MessageAssembler, ModelError, StopReason, Timestamp};

use crate::HttpFailure;
use crate::stream::{Asked, ChunkDecoder, ReadOptions};

/// A reply as a server sent it, to be [read](Self::read): from a file, a log, a test.
///
/// ```
/// # #[cfg(feature = "system")]
/// # {
/// use yiem_openai::{ReadOptions, RecordedReply};
/// use yiem_openai::yiem_core::{ModelErrorKind, SystemEnv};
///
/// let refused = RecordedReply::new(r#"{"error":{"message":"Slow down."}}"#)
///     .status(429)
///     .header("Retry-After", "7");
/// let broken = refused.read(&SystemEnv::shared()).unwrap_err();
/// assert_eq!(broken.error().kind, ModelErrorKind::RateLimit);
/// assert_eq!(broken.error().retry_after.unwrap().as_secs(), 7);
///
/// // A stream that broke off: the error, and what had come.
/// let cut = RecordedReply::new("data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n");
/// let broken = cut.read(&SystemEnv::shared()).unwrap_err();
/// assert!(broken.error().is_retryable());
/// assert_eq!(broken.partial().text(), "Hel");
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecordedReply {
    /// What was asked for. A stream and a whole body are both read whichever it was; what is
    /// neither is called after this. Default: [`Asked::Whole`].
    pub asked: Asked,
    /// The status. Default: 200.
    pub status: u16,
    /// The headers, names in any case. Default: none.
    pub headers: Vec<(String, String)>,
    /// When it came, which dates in headers are counted from. Default: now.
    pub now: Option<Timestamp>,
    /// The body, in the pieces in which it arrived.
    pub pieces: Vec<Vec<u8>>,
    /// How it is read.
    pub options: ReadOptions,
}

impl RecordedReply {
    /// A good answer with this body, as text or bytes: JSON, or server-sent events.
    pub fn new(body: impl AsRef<[u8]>) -> Self {
        Self {
            asked: Asked::Whole,
            status: 200,
            headers: Vec::new(),
            now: None,
            pieces: vec![body.as_ref().to_vec()],
            options: ReadOptions::default(),
        }
    }

    /// The same with another status.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The same with one header more.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same read in another way: with the tools that were offered, say.
    #[must_use]
    pub fn options(mut self, options: ReadOptions) -> Self {
        self.options = options;
        self
    }

    /// The message that it is. `env` gives its time, and ids to calls that came without.
    ///
    /// # Errors
    /// It is a failure, cannot be read, or broke off; what had come by then is with the error.
    pub fn read(&self, env: &Arc<dyn Env>) -> Result<AssistantMessage, BrokenReply> {
        if !(200..300).contains(&self.status) {
            let failure = HttpFailure {
                status: self.status,
                headers: &self.headers,
                body: &self.pieces.concat(),
                now: self.now.unwrap_or_else(|| env.now()),
            };
            let message = MessageAssembler::new().broken_off(StopReason::Error, None);
            return Err(BrokenReply::new(failure.classify(), message));
        }
        let mut decoder = ChunkDecoder::new(self.asked, self.options.clone(), Arc::clone(env));
        let mut assembler = MessageAssembler::new();
        let mut pieces = self.pieces.iter();
        loop {
            match decoder.next() {
                Some(Ok(event)) => {
                    if let Some(mut message) = assembler.push(event) {
                        message.timestamp = env.now();
                        return Ok(message);
                    }
                }
                Some(Err(error)) => {
                    let said = Some(error.message.clone());
                    let mut message = assembler.broken_off(StopReason::Error, said);
                    message.usage = decoder.usage();
                    message.timestamp = env.now();
                    return Err(BrokenReply::new(error, message));
                }
                None => match pieces.next() {
                    Some(piece) => decoder.feed(piece),
                    None => decoder.finish(),
                },
            }
        }
    }
}

/// Reads a recorded body (text or bytes), whole or streamed, in any shape of SP-017 and SP-018, with the system's
/// clock and ids. For a status, headers or settings: [`RecordedReply`].
///
/// # Errors
/// It is an error body, cannot be read, or broke off; what had come by then is with the error.
#[cfg(feature = "system")]
pub fn read_reply(body: impl AsRef<[u8]>) -> Result<AssistantMessage, BrokenReply> {
    RecordedReply::new(body).read(&yiem_core::SystemEnv::shared())
}

/// A reply that did not become a message: the error, and what had come by then.
pub struct BrokenReply(Box<(ModelError, AssistantMessage)>);

impl BrokenReply {
    fn new(error: ModelError, partial: AssistantMessage) -> Self {
        Self(Box::new((error, partial)))
    }

    /// What went wrong, and whether trying again makes sense.
    #[must_use]
    pub fn error(&self) -> &ModelError {
        &self.0.0
    }

    /// What had come, with the stop reason `error`; calls of which not all came are unusable.
    #[must_use]
    pub fn partial(&self) -> &AssistantMessage {
        &self.0.1
    }

    /// The error alone.
    #[must_use]
    pub fn into_error(self) -> ModelError {
        self.0.0
    }
}

impl fmt::Debug for BrokenReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokenReply")
            .field("error", &self.0.0)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for BrokenReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error().fmt(f)
    }
}

impl std::error::Error for BrokenReply {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(self.error())
    }
}

impl From<BrokenReply> for ModelError {
    fn from(broken: BrokenReply) -> Self {
        broken.into_error()
    }
}
