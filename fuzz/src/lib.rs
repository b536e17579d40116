//! What must hold for any input, as functions of bytes: each panics when it does not hold.
//!
//! Knows: which promises there are, how bytes become an input of each, and seeds to begin with.
//! Does not know: who makes the bytes. libFuzzer does in the fuzz targets; the package yiem-tests
//! feeds the seeds and all that was found before.

mod arguments;
mod counting;
mod mcp;
mod reply;
mod round_trip;
mod seeds;
mod sse;
#[path = "../../crates/yiem-openai/tests/it/strict.rs"]
pub(crate) mod strict;

pub use arguments::arguments;
pub use mcp::{correlate, dialect, jsonrpc};
pub use reply::{stream_reply, whole_reply};
pub use round_trip::round_trip;
pub use seeds::{Seed, seeds};
pub use sse::sse;

/// A promise: it takes an input and panics when it does not hold.
pub type Promise = fn(&[u8]);

/// All promises, by the names of their fuzz targets.
pub const PROMISES: [(&str, Promise); 8] = [
    ("whole_reply", whole_reply),
    ("stream_reply", stream_reply),
    ("arguments", arguments),
    ("round_trip", round_trip),
    ("sse", sse),
    ("jsonrpc", jsonrpc),
    ("correlate", correlate),
    ("dialect", dialect),
];
