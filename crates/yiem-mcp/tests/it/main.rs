//! yiem-mcp through its public API.

#![cfg_attr(
    feature = "gateway",
    expect(clippy::unwrap_used, reason = "helpers of tests fail the test")
)]

#[cfg(feature = "gateway")]
mod gateway;
mod in_process;
#[cfg(all(feature = "gateway", feature = "nats"))]
mod nats;
mod stdio;
