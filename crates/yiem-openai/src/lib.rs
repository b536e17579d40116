//! Between Yiem's messages and the OpenAI chat format.

mod arguments;
mod calls;
#[cfg(feature = "case")]
pub mod case;
mod classify;
mod finish;
mod leak;
mod names;
mod parts;
mod retry_after;
mod stream;
mod think;
mod usage;
mod wire;

pub use classify::HttpFailure;
pub use names::OfferedTools;
pub use stream::{Asked, ChunkDecoder, PROVIDER_DATA, ReadLimits, ReadOptions};
