//! The agent through its public API.
//!
//! A test is a sentence: a script in, a transcript out. The names of agent loop scenarios that are
//! known by a number begin with it (`l04_…`, `q01_…`).

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![expect(
    clippy::collapsible_match,
    reason = "the grammar of events reads better arm by arm"
)]

mod abort;
mod alone;
mod answers;
mod api;
mod approvals;
mod arguments;
mod asked;
mod batches;
mod calls;
mod compactions;
mod edges;
mod events;
mod every_event;
mod failures;
mod faults;
mod hooks;
mod invariants;
#[cfg(unix)]
mod killed;
mod known;
mod lifecycle;
mod limits;
mod memory;
mod nested;
mod output;
mod panics;
mod phases;
mod prompt_stream;
mod property;
mod queues;
mod resumed;
mod rewind;
mod session_file;
mod sessions;
mod sources;
mod termination;
mod traces;
mod turns;

use expect_test::Expect;
use yiem_test::Scenario;

/// Counts what is allocated, for the tests that run alone.
#[global_allocator]
static MEMORY: cap::Cap<std::alloc::System> = cap::Cap::new(std::alloc::System, usize::MAX);

/// Plays a script through the public agent on a paused clock and compares what came of it.
fn check(script: &str, expected: Expect) {
    expected.assert_eq(&play(script));
}

/// The same, of calls and turns alone: what is said is left out.
fn check_calls(script: &str, expected: Expect) {
    const SAID: &[&str] = &[
        "agentStart",
        "turnStart",
        "  messageStart",
        "  messageUpdate",
        "  messageEnd user",
        "  messageEnd assistant",
    ];
    check_without(SAID, script, expected);
}

/// The same, of messages as they are when they are whole.
fn check_whole(script: &str, expected: Expect) {
    check_without(&["  messageStart", "  messageUpdate"], script, expected);
}

fn check_without(left_out: &[&str], script: &str, expected: Expect) {
    let transcript = play(script);
    let lines = transcript.lines();
    let told = lines.filter(|line| !left_out.iter().any(|out| line.starts_with(out)));
    expected.assert_eq(
        &told
            .map(|line| {
                format!(
                    "{line}
"
                )
            })
            .collect::<String>(),
    );
}

fn play(script: &str) -> String {
    let scenario: Scenario = script.parse().unwrap_or_else(|e| panic!("{e}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let played = runtime
        .block_on(scenario.play())
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        played.breaches,
        Vec::<String>::new(),
        "{}",
        played.transcript()
    );
    assert!(played.ended, "it did not end:\n{}", played.transcript());
    played.transcript()
}

/// Waits on the test's clock, but not for ever.
async fn within<F: std::future::IntoFuture>(work: F) -> F::Output {
    tokio::time::timeout(std::time::Duration::from_secs(3600), work.into_future())
        .await
        .expect("it takes more than an hour")
}
