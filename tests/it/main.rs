//! Tests of the whole stack, through the facade only. One binary; a module for each subject.

mod mcp_faults;
mod mcp_leaks;
