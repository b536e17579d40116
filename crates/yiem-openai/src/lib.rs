//! Between Yiem's messages and the OpenAI chat format.
//!
//! - [`read_reply`] reads a recorded body in one call; [`RecordedReply`] one with its status and
//!   headers. [`ChunkDecoder`] reads what is still coming.
//! - [`RequestEncoder`] writes the body of a request as a server takes it, by its [`Compat`]
//!   settings ([`Preset`]s by name).
//! - `OpenAiModel` (feature `client`) does both over HTTP; [`JsonModel`] lets a closure carry the
//!   JSON.
//!
//! Features, each only adds. On by default: `system` (the system's clock and ids). Off: `client`
//! (`OpenAiModel`, over HTTPS), `case` (cases as JSON, for `yiem wire`).
//!
//! What is read and sent in detail stands in `docs/openai.md`. The types of the messages are
//! those of [`yiem_core`], which is at hand as `yiem_openai::yiem_core`.
//!
//! ```
//! # #[cfg(feature = "system")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use yiem_openai::yiem_core::{ChatRequest, History, Message, ModelInfo, Timestamp, UserMessage};
//! use yiem_openai::{Preset, RequestEncoder, read_reply};
//!
//! let reply = read_reply(r#"{"choices":[{"message":{"content":"22 °C"},"finish_reason":"stop"}]}"#)?;
//! assert_eq!(reply.text(), "22 °C");
//!
//! let encoder = RequestEncoder::new(&ModelInfo::new("my-model"), Arc::new(Preset::Vllm.compat()));
//! let asked = UserMessage::new("How warm is it?", Timestamp::default());
//! let history: History = [Message::User(asked), reply.into()].into_iter().collect();
//! let body = encoder.encode(&ChatRequest::new(history), true).body;
//! assert!(body.starts_with(br#"{"model":"my-model","#));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "system"))]
//! # fn main() {}
//! ```

pub use yiem_core;

mod arguments;
mod calls;
#[cfg(feature = "case")]
pub mod case;
mod classify;
#[cfg(feature = "client")]
mod client;
mod compat;
mod finish;
mod foreign;
mod json_model;
mod leak;
mod mend;
mod names;
mod parts;
mod reply;
mod request;
mod retry_after;
mod stream;
mod think;
mod usage;
mod wire;

pub use classify::HttpFailure;
#[cfg(feature = "client")]
pub use client::{OPENAI_BASE_URL, OpenAiConfig, OpenAiModel, Timeouts};
pub use compat::{
    CallIds, Compat, ContentStyle, EmptyContent, ForeignReasoning, MaxTokensField, Preset,
    ReasoningReplay, UnknownPreset,
};
pub use json_model::JsonModel;
#[cfg(feature = "system")]
pub use json_model::llm_call;
pub use names::OfferedTools;
#[cfg(feature = "system")]
pub use reply::read_reply;
pub use reply::{BrokenReply, RecordedReply};
pub use request::{EncodedRequest, RequestEncoder};
pub use stream::{Asked, ChunkDecoder, PROVIDER_DATA, ReadLimits, ReadOptions};
