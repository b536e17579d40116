//! yiem-mcp through its public API.

mod in_process;
mod stdio;
