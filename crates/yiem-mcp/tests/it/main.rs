//! yiem-mcp through its public API.

#[cfg(feature = "gateway")]
mod gateway;
mod in_process;
mod stdio;
