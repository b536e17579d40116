//! What idle agents cost (P-3): bytes of each beyond its history, 10,000 of them in one process.
//!
//! Counted by the allocator, so that the machine's load and the system's pages say nothing.

#![expect(clippy::print_stdout, reason = "a bench says what it measured")]

use std::time::Duration;

use cap::Cap;
use yiem_agent::{Agent, AgentBuilder, BeforeToolCall};
use yiem_core::History;
use yiem_test::{Reply, ScriptedModel, tool};

#[global_allocator]
static MEMORY: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

const AGENTS: usize = 10_000;
const AT_MOST_KIB: f64 = 16.0;

fn bare(model: &ScriptedModel) -> AgentBuilder {
    Agent::builder(model.clone())
}

/// What most agents have.
fn usual(model: &ScriptedModel) -> AgentBuilder {
    bare(model)
        .system("You are idle.")
        .tool(tool::echo())
        .tool(tool::slow("slow", Duration::ZERO, "done"))
        .listener(|_| {})
        .before_tool_call(|_| async { Ok(BeforeToolCall::Run) })
}

fn kib(bytes: usize, agents: usize) -> f64 {
    bytes as f64 / 1024.0 / agents as f64
}

fn report(what: &str, agents: usize, bytes: usize) {
    let each = kib(bytes, agents);
    println!("{what:<36} {agents:>6} agents {each:>6.1} KiB each (at most {AT_MOST_KIB})");
    assert!(each <= AT_MOST_KIB, "{what}: {each:.1} KiB each");
}

fn built(what: &str, make: fn(&ScriptedModel) -> AgentBuilder) {
    let model = ScriptedModel::answering(|_| Reply::say("hello"));
    let agent = || make(&model).build().unwrap_or_else(|e| panic!("{e}"));
    // What is made once for all agents is not an agent's cost.
    drop(agent());
    let before = MEMORY.allocated();
    let agents: Vec<Agent> = (0..AGENTS).map(|_| agent()).collect();
    report(what, AGENTS, MEMORY.allocated() - before);
    drop(agents);
}

/// Agents that have talked and wait: what is freed when only their histories stay.
async fn talked() {
    const TALKED: usize = 1_000;
    let mut agents = Vec::new();
    for _ in 0..TALKED {
        let model = ScriptedModel::new([
            Reply::call("echo", serde_json::json!({"value": "x"})),
            Reply::say("hello"),
        ]);
        let agent = usual(&model).build().unwrap_or_else(|e| panic!("{e}"));
        let outcome = agent.prompt("hi").await.unwrap_or_else(|e| panic!("{e}"));
        agents.push((agent, outcome.transcript));
    }
    let before = MEMORY.allocated();
    let histories: Vec<History> = agents.into_iter().map(|(_, history)| history).collect();
    report("usual, after a run", TALKED, before - MEMORY.allocated());
    drop(histories);
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    built("bare: a model alone", bare);
    built("usual: prompt, 2 tools, hook, listener", usual);
    talked().await;
}
