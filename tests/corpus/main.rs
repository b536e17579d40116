//! The corpus of yiem-openai where its crate alone does not lead: each reply served over loopback
//! and read by an agent, the promises of `fuzz/` held against their seeds and findings, and what
//! an agent gives out of a key. Each case is a test of its own name.

mod agent;
mod keys;
mod promises;
#[path = "../../crates/yiem-openai/tests/it/server.rs"]
#[expect(
    dead_code,
    reason = "the tests of yiem-openai use more of their server than these do"
)]
mod server;

use std::path::{Path, PathBuf};

use libtest_mimic::Arguments;

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = agent::trials();
    trials.extend(promises::trials());
    trials.extend(keys::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The folder of the workspace.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}
