//! yiem-mcp through its public API.

#[cfg(feature = "gateway")]
mod gateway;
mod in_process;
#[cfg(all(feature = "gateway", feature = "nats"))]
mod nats;
mod stdio;
