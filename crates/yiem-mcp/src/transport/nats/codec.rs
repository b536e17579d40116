//! How a JSON-RPC message is put into the body of a NATS message.
//!
//! Knows: both codecs, in both directions. Does not know: subjects, connections.

use super::envelope::{self, EnvelopeConfig, EnvelopeHead, Unwrapped};
use crate::error::McpError;
use async_trait::async_trait;
use std::sync::Arc;
use yiem_core::{Env, IdKind};

/// How messages are put into bodies (M-3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NatsCodec {
    /// The JSON-RPC message as it is.
    #[default]
    Plain,
    /// In the envelope of the seeds' Julia agents, in base64. Answers are read with or without one.
    Envelope(EnvelopeConfig),
}

impl NatsCodec {
    /// The envelope with its defaults.
    #[must_use]
    pub fn envelope() -> Self {
        Self::Envelope(EnvelopeConfig::default())
    }
}

/// Fetches what an envelope only links to; without one, such a payload is refused.
#[async_trait]
pub trait PayloadFetcher: Send + Sync {
    /// The bytes at that address, which comes from the other side: whoever implements this decides what
    /// may be asked.
    ///
    /// # Errors
    /// It cannot or may not be fetched.
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, McpError>;
}

/// A codec with what it needs to write.
#[derive(Clone)]
pub(crate) struct Codec {
    pub(crate) kind: NatsCodec,
    pub(crate) env: Arc<dyn Env>,
}

impl Codec {
    /// A codec in which absent ids and addresses are filled in.
    pub(crate) fn new(mut kind: NatsCodec, env: Arc<dyn Env>, broker_url: &str) -> Self {
        if let NatsCodec::Envelope(config) = &mut kind {
            if config.sender_id.is_empty() {
                config.sender_id = env.new_id(IdKind::Message);
            }
            if config.broker_url.is_empty() {
                broker_url.clone_into(&mut config.broker_url);
            }
        }
        Self { kind, env }
    }

    /// A request or notification as a body.
    pub(crate) fn encode(&self, method: &str, message: Vec<u8>, subject: &str) -> Vec<u8> {
        let NatsCodec::Envelope(config) = &self.kind else {
            return message;
        };
        let head = EnvelopeHead {
            correlation_id: self.env.new_id(IdKind::Message),
            msg_id: self.env.new_id(IdKind::Message),
            timestamp: self.env.now().to_string(),
            send_to: subject.to_owned(),
            msg_purpose: envelope::purpose(method),
            sender_name: config.sender_name.clone(),
            sender_id: config.sender_id.clone(),
            broker_url: config.broker_url.clone(),
            ..EnvelopeHead::default()
        };
        envelope::write(
            &head,
            &self.env.new_id(IdKind::Message),
            &message,
            &config.fileserver_url,
        )
    }

    /// An answer to a message that came with that head, or without an envelope, as a body.
    #[cfg(any(test, feature = "gateway"))]
    pub(crate) fn encode_answer(
        &self,
        asked: Option<&EnvelopeHead>,
        message: Vec<u8>,
        subject: &str,
    ) -> Vec<u8> {
        let Some(asked) = asked else { return message };
        let fallback = EnvelopeConfig::default();
        let config = match &self.kind {
            NatsCodec::Envelope(config) => config,
            NatsCodec::Plain => &fallback,
        };
        let head = asked.answered_by(
            config,
            self.env.new_id(IdKind::Message),
            self.env.now().to_string(),
            subject,
        );
        envelope::write(
            &head,
            &self.env.new_id(IdKind::Message),
            &message,
            &config.fileserver_url,
        )
    }

    /// What a body holds.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Decoded {
        let plain = matches!(self.kind, NatsCodec::Plain);
        if plain && !looks_wrapped(bytes) {
            return Decoded::Bytes;
        }
        match envelope::read(bytes) {
            Ok(Unwrapped::Bare(value)) => Decoded::Value(value, None),
            Ok(Unwrapped::Message { head, message }) => Decoded::Value(message, Some(head)),
            Ok(Unwrapped::Link { url, head }) => Decoded::Link(url, head),
            Err(_) if plain => Decoded::Bytes,
            Err(error) => Decoded::Unreadable(error.to_string()),
        }
    }
}

/// What a body turned out to be.
#[derive(Debug)]
#[cfg_attr(
    not(any(test, feature = "gateway")),
    expect(
        dead_code,
        reason = "who only asks has no use for the heads of answers"
    )
)]
pub(crate) enum Decoded {
    /// JSON-RPC as it is: to be read from the bytes.
    Bytes,
    /// JSON-RPC as a value, and the head of the envelope that it was in.
    Value(serde_json::Value, Option<Box<EnvelopeHead>>),
    /// It lies elsewhere.
    Link(String, Box<EnvelopeHead>),
    /// It cannot be read, and why.
    Unreadable(String),
}

/// Whether a body that should be plain is an envelope all the same: a peer that is set otherwise is
/// understood.
fn looks_wrapped(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(4096)];
    memchr::memmem::find(head, b"\"payloads\"").is_some()
        && memchr::memmem::find(head, b"\"jsonrpc\"").is_none()
}
