//! What idle agents cost (P-3): 10,000 in one process, memory per agent beyond its history.
//!
//! Linux only: it reads what the system says of this process.

#![expect(clippy::print_stdout, reason = "a bench says what it measured")]

use yiem_agent::Agent;
use yiem_test::{Reply, ScriptedModel, tool};

const AGENTS: usize = 10_000;
const AT_MOST_KIB: f64 = 16.0;

/// Resident memory of this process in KiB.
fn resident_kib() -> f64 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|l| l.starts_with("VmRSS"))?.to_owned();
            line.split_whitespace().nth(1)?.parse().ok()
        })
        .unwrap_or_default()
}

fn agent(model: &ScriptedModel) -> Agent {
    Agent::builder(model.clone())
        .system("You are idle.")
        .tool(tool::echo())
        .listener(|_| {})
        .build()
        .unwrap_or_else(|e| panic!("{e}"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let model = ScriptedModel::answering(|_| Reply::say("hello"));
    // What is made once for all agents is not an agent's cost.
    let warm: Vec<Agent> = (0..100).map(|_| agent(&model)).collect();
    let before = resident_kib();
    let agents: Vec<Agent> = (0..AGENTS).map(|_| agent(&model)).collect();
    let each = (resident_kib() - before) / AGENTS as f64;
    println!("{AGENTS} idle agents: {each:.1} KiB each (at most {AT_MOST_KIB})");
    assert!(each <= AT_MOST_KIB, "an idle agent costs {each:.1} KiB");
    drop((warm, agents));
}
