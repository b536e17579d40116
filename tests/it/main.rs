//! Tests of the whole stack, through the facade only. One binary; a module for each subject.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod facade_paths;
mod gateway_asks;
mod gateway_subscriptions;
mod many_streams;
mod mcp_client;
mod mcp_faults;
mod mcp_leaks;
mod mcp_oauth;
mod mcp_odd;
mod mcp_questions;
mod mcp_rmcp;
mod mcp_sources;
mod mcp_transports;
mod mcp_trust;
mod tool_source;
