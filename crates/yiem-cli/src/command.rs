//! The commands, one module each.
//!
//! Knows: which there are. Does not know: how the command line is written.

pub(crate) mod call;
pub(crate) mod chat;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod tools;
pub(crate) mod wire;
