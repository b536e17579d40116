//! A thousand agents that stream at once in one process (P-3): how evenly they are served, and
//! what they cost in memory at most.
//!
//! Twice: with a piece of the reply every 5 ms each, as servers send them, and with pieces that
//! are always there, so that all compete for the processor. Both on two workers.

#![expect(clippy::print_stdout, reason = "a bench says what it measured")]

use std::time::Duration;

use cap::Cap;
use tokio::task::JoinSet;
use tokio::time::Instant;
use yiem_agent::Agent;
use yiem_core::{
    ChatEvent, ChatRequest, ChatStream, FunctionModel, ModelInfo, StopReason, ToolCall, Usage,
};
use yiem_test::tool;

#[global_allocator]
static MEMORY: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

const AGENTS: usize = 1_000;
const PIECES: usize = 200;
const SLOWEST: f64 = 2.0;
const AT_MOST_MIB: f64 = 64.0;

/// Two replies of [`PIECES`] pieces; the first one calls a tool.
fn model(gap: Duration) -> FunctionModel {
    FunctionModel::streaming(ModelInfo::new("streaming"), move |request: ChatRequest| {
        let answered = request
            .messages
            .last()
            .is_some_and(|m| m.as_tool_result().is_some());
        ChatStream::unfold(0, move |at: usize| async move {
            if gap.is_zero() {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(gap).await;
            }
            let event = if at < PIECES {
                ChatEvent::Text(format!("piece {at} "))
            } else if at == PIECES && !answered {
                let args = serde_json::json!({"value": "x"}).as_object()?.clone();
                let call = Box::new(ToolCall::new("", "echo", args));
                ChatEvent::ToolCallEnded { index: 0, call }
            } else if at == PIECES + usize::from(!answered) {
                let stop = if answered {
                    StopReason::EndTurn
                } else {
                    StopReason::ToolCalls
                };
                let usage = Usage::new(10, 10);
                ChatEvent::Finished { stop, usage }
            } else {
                return None;
            };
            Some((Ok(event), at + 1))
        })
    })
}

async fn at_once(what: &str, gap: Duration) {
    let before = MEMORY.allocated();
    let start = Instant::now();
    let mut runs = JoinSet::new();
    for _ in 0..AGENTS {
        runs.spawn(async move {
            let agent = Agent::builder(model(gap))
                .system("You are one of many.")
                .tool(tool::echo())
                .listener(|_| {})
                .build()
                .unwrap_or_else(|e| panic!("{e}"));
            let outcome = agent.prompt("go").await.unwrap_or_else(|e| panic!("{e}"));
            assert!(outcome.is_ok() && outcome.tool_calls == 1);
            start.elapsed()
        });
    }
    let mut took = runs.join_all().await;
    took.sort_unstable();
    let (median, slowest) = (took[AGENTS / 2], took[AGENTS - 1]);
    let ratio = slowest.as_secs_f64() / median.as_secs_f64();
    let mib = (MEMORY.max_allocated() - before) as f64 / 1024.0 / 1024.0;
    println!(
        "{what:<16} median {:>6.0} ms, slowest {:>6.0} ms ({ratio:.2}, at most {SLOWEST}), \
         {mib:.1} MiB (at most {AT_MOST_MIB})",
        median.as_secs_f64() * 1e3,
        slowest.as_secs_f64() * 1e3,
    );
    assert!(ratio <= SLOWEST, "the slowest was starved");
    assert!(mib <= AT_MOST_MIB, "too much memory");
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    at_once("a piece in 5 ms", Duration::from_millis(5)).await;
    at_once("always a piece", Duration::ZERO).await;
    let metrics = tokio::runtime::Handle::current().metrics();
    while metrics.num_alive_tasks() > 0 {
        tokio::task::yield_now().await;
    }
    println!("no task is left");
}
