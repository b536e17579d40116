//! Suites that every implementor of a contract runs.
//!
//! Knows: the promises. Does not know: the implementors.

pub mod chat_model;
pub mod tool_source;
pub mod transport;
