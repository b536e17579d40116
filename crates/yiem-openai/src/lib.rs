//! Between Yiem's messages and the OpenAI chat format.

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
pub use request::{EncodedRequest, RequestEncoder};
pub use stream::{Asked, ChunkDecoder, PROVIDER_DATA, ReadLimits, ReadOptions};
