//! Tests against real servers on loopback, one after another. Each begins with
//! `let Some(servers) = yiem_tests::live("its name") else { return };`.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod gateway_conformance;
mod mcp_reference;
mod nats;
mod openai_compatible;
