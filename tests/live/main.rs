//! Tests against real servers on loopback, one after another. Each begins with
//! `let Some(servers) = yiem_tests::live("its name") else { return };`.

mod mcp_reference;
mod nats;
