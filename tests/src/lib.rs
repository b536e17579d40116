//! What the tests of the whole stack share: real servers, started and ended.

#![expect(
    clippy::print_stdout,
    reason = "a test says in one line that it was skipped"
)]

mod servers;

pub use servers::{RunningServer, Servers, live};
