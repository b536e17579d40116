//! What agents cost in memory, idle and at work (P-3). Each test counts in a process of its own.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use yiem_agent::{Agent, AgentBuilder, BeforeToolCall};
use yiem_core::{
    ChatEvent, ChatRequest, ChatStream, FunctionModel, History, ModelInfo, StopReason, ToolCall,
    Usage,
};
use yiem_test::tool;

use crate::{MEMORY, alone, within};

const KIB: usize = 1024;
/// P-3: an idle agent beyond its history.
const IDLE: usize = 16 * KIB;
/// P-3: a thousand that stream at once.
const STREAMING: usize = 64 * KIB * KIB;

/// A reply of 200 pieces that calls a tool, then one that says that it is done. Whoever waits
/// for a piece lets the others go on.
fn streaming() -> FunctionModel {
    FunctionModel::streaming(ModelInfo::new("streaming"), |request: ChatRequest| {
        let answered = request
            .messages
            .last()
            .is_some_and(|m| m.as_tool_result().is_some());
        ChatStream::unfold(0, move |at: usize| async move {
            tokio::task::yield_now().await;
            let event = match (at, answered) {
                (..200, _) => ChatEvent::Text(format!("piece {at} ")),
                (200, false) => ChatEvent::ToolCallEnded {
                    index: 0,
                    call: Box::new(ToolCall::new(
                        "",
                        "echo",
                        json!({"value": "x"}).as_object()?.clone(),
                    )),
                },
                (200, true) | (201, false) => ChatEvent::Finished {
                    stop: if answered {
                        StopReason::EndTurn
                    } else {
                        StopReason::ToolCalls
                    },
                    usage: Usage::new(10, 10),
                },
                _ => return None,
            };
            Some((Ok(event), at + 1))
        })
    })
}

/// What most agents have: a prompt, two tools, a hook, a listener.
fn usual() -> AgentBuilder {
    Agent::builder(streaming())
        .system("You are one of many.")
        .tool(tool::echo())
        .tool(tool::slow("slow", Duration::ZERO, "done"))
        .listener(|_| {})
        .before_tool_call(|_| async { Ok(BeforeToolCall::Run) })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

fn each(bytes: usize, agents: usize, what: &str) {
    let each = bytes / agents;
    assert!(each <= IDLE, "{what}: {each} bytes each");
}

#[test]
fn an_idle_agent_costs_little_beyond_its_history() {
    alone::run(
        "memory::an_idle_agent_costs_little_beyond_its_history",
        || {
            const AGENTS: usize = 1_000;
            let runtime = runtime();
            runtime.block_on(async {
                // What is made once for all agents is not an agent's cost.
                let first = usual().build().unwrap();
                within(first.prompt("hi")).await.unwrap();
                let before = MEMORY.allocated();
                let agents: Vec<Agent> = (0..AGENTS).map(|_| usual().build().unwrap()).collect();
                each(MEMORY.allocated() - before, AGENTS, "new");
                let mut talked = Vec::new();
                for agent in agents {
                    let outcome = within(agent.prompt("hi")).await.unwrap();
                    assert_eq!(outcome.tool_calls, 1);
                    talked.push((agent, outcome.transcript));
                }
                // What is freed when only the histories stay is what the agents cost beyond them.
                let before = MEMORY.allocated();
                let histories: Vec<History> = talked.into_iter().map(|(_, h)| h).collect();
                each(before - MEMORY.allocated(), AGENTS, "after a run");
                assert_eq!(histories.len(), AGENTS);
            });
        },
    );
}

#[test]
fn agents_of_the_same_tools_share_what_their_schemas_were_compiled_to() {
    alone::run(
        "memory::agents_of_the_same_tools_share_what_their_schemas_were_compiled_to",
        || {
            let tools: Vec<_> = (0..20)
                .map(|n| {
                    tool::slow(format!("tool_{n}"), Duration::ZERO, "done").schema(json!({
                        "type": "object",
                        "properties": {
                            "city": {"type": "string", "minLength": 1},
                            "units": {"enum": ["metric", "imperial"], "default": "metric"},
                            "days": {"type": "integer", "minimum": n},
                        },
                        "required": ["city"],
                    }))
                })
                .collect();
            let built = || {
                Agent::builder(streaming())
                    .tools(tools.clone())
                    .build()
                    .unwrap()
            };
            let first = built();
            let before = MEMORY.allocated();
            let agents: Vec<Agent> = (0..100).map(|_| built()).collect();
            each(MEMORY.allocated() - before, agents.len(), "with 20 tools");
            drop(first);
        },
    );
}

#[test]
fn a_thousand_agents_that_stream_at_once_finish_within_bounded_memory() {
    alone::run(
        "memory::a_thousand_agents_that_stream_at_once_finish_within_bounded_memory",
        || {
            const AGENTS: usize = 1_000;
            // What is made once for all agents is no agent's.
            runtime().block_on(async { usual().build().unwrap().prompt("hi").await.unwrap() });
            let start = MEMORY.allocated();
            let runtime = runtime();
            runtime.block_on(async {
                let metrics = tokio::runtime::Handle::current().metrics();
                let mut runs = JoinSet::new();
                for _ in 0..AGENTS {
                    runs.spawn(async {
                        let agent = usual().build().unwrap();
                        let outcome = within(agent.prompt("go")).await.unwrap();
                        (outcome.turns, outcome.tool_calls, outcome.text().len())
                    });
                }
                let done = runs.join_all().await;
                let whole: usize = (0..200).map(|at| format!("piece {at} ").len()).sum();
                assert_eq!(done, vec![(2, 1, whole); AGENTS]);
                let most = MEMORY.max_allocated() - start;
                assert!(most <= STREAMING, "{most} bytes at most");
                // Tasks that were ended are gone when their worker has looked at them.
                within(async {
                    while metrics.num_alive_tasks() > 0 {
                        tokio::task::yield_now().await;
                    }
                })
                .await;
            });
            drop(runtime);
            let left = MEMORY.allocated().saturating_sub(start);
            assert!(left <= 64 * KIB, "{left} bytes are left");
        },
    );
}
