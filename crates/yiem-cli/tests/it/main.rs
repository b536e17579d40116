//! The command as people call it: the real binary, against small servers on loopback.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests stand outside of test functions"
)]

mod chat;
mod command;
mod demonstration;
mod endpoint;
mod model_server;
mod run;
mod serve;
mod tools;
mod wire;
mod writers;
mod wrong_use;
