//! Tests of the whole stack, through the facade only. One binary; a module for each subject.

mod facade_paths;
mod mcp_client;
mod mcp_faults;
mod mcp_leaks;
mod tool_source;
