//! A test in a process of its own: what counts the whole process's memory, or is killed.

use std::process::{Command, Stdio};

const ALONE: &str = "YIEM_TEST_ALONE";

/// Whether this process was started for this test alone.
pub(crate) fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

/// This test binary again, for that test and no other, with `argument` for it.
pub(crate) fn command(test: &str, argument: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ALONE, argument)
        .stdin(Stdio::null());
    command
}

/// What [`command`] was given.
pub(crate) fn argument() -> String {
    std::env::var(ALONE).unwrap_or_default()
}

/// Runs `work` in a process of its own, which has to succeed.
pub(crate) fn run(test: &str, work: impl FnOnce()) {
    if is_alone() {
        return work();
    }
    let output = command(test, "1").output().unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
