//! Agents that ask agents: how deep, and what they come to when all of it is aborted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use yiem_agent::{Agent, AgentBuilder, ApprovalAnswer, EndKind, Limits};
use yiem_core::{Cost, ModelCost, ModelInfo};
use yiem_test::{PausedEnv, Reply, ScriptedModel, tool};

use crate::within;

#[tokio::test(start_paused = true)]
async fn an_agent_that_asks_itself_is_bounded_and_says_so() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&asked);
    let model = ScriptedModel::answering(move |request| {
        counts.fetch_add(1, Ordering::Relaxed);
        let answered = request.messages.last().unwrap().as_tool_result();
        match answered {
            Some(result) => Reply::say(result.text()),
            None => Reply::call("me", json!({"prompt": "and you?"})),
        }
    });
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .build()
        .unwrap();
    agent.add_tool(agent.as_tool("me", "Asks itself.")).unwrap();
    for _ in 0..2 {
        asked.store(0, Ordering::Relaxed);
        let outcome = within(agent.prompt("hi")).await.unwrap();
        assert_eq!(
            outcome.text(),
            "me was not asked: agents ask each other 8 deep, which is the most"
        );
        assert_eq!(asked.load(Ordering::Relaxed), 2 * 9);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_sub_agent_cost_is_told_on_an_abort_though_its_tool_hangs() {
    for depth in 1..=3 {
        let model = ScriptedModel::new(
            (0..depth)
                .map(|_| Reply::call("sub", json!({"prompt": "do"})).usage(1, 1))
                .chain([Reply::call("never", json!({})).usage(10, 10)]),
        );
        let mut agent = Agent::builder(model.clone())
            .env(PausedEnv::shared())
            .tool(tool::never("never"))
            .build()
            .unwrap();
        for _ in 0..depth {
            agent = Agent::builder(model.clone())
                .env(PausedEnv::shared())
                .tool(agent.as_tool("sub", "Does it."))
                .build()
                .unwrap();
        }
        let begun = tokio::time::Instant::now();
        let abort = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            agent.abort();
        };
        let (outcome, ()) = tokio::join!(within(agent.prompt("hi")), abort);
        let outcome = outcome.unwrap();
        assert_eq!(outcome.end.kind(), EndKind::Aborted);
        assert!(
            begun.elapsed() < Duration::from_secs(6),
            "{:?}",
            begun.elapsed()
        );
        let below = 2 * (depth - 1) + 20;
        assert_eq!(outcome.tool_usage.all(), Some(below), "{depth} deep");
    }
}

/// An agent whose model costs a unit of money for a million tokens of its answers.
fn priced(replies: impl IntoIterator<Item = Reply>) -> AgentBuilder {
    let info = ModelInfo {
        cost: ModelCost {
            output: 1.0,
            ..ModelCost::default()
        },
        ..ModelInfo::new("priced")
    };
    Agent::builder(ScriptedModel::with_info(info, replies)).env(PausedEnv::shared())
}

#[tokio::test(start_paused = true)]
async fn money_of_agents_below_is_told_and_counts_for_the_limit() {
    const MILLION: u64 = 1_000_000;
    // The one asks the lowest itself, the other has a tool of its own do it.
    for ask in ["lowest", "ask"] {
        for limit in [None, Some(7.5)] {
            let lowest = priced([Reply::say("deep").usage(0, 4 * MILLION)]).build();
            let below = priced([
                Reply::call(ask, json!({"prompt": "look"})).usage(0, 2 * MILLION),
                Reply::say("found").usage(0, MILLION),
            ])
            .tool(lowest.unwrap().as_tool("lowest", "Looks deepest."))
            .tool(tool::calling("ask", "lowest", json!({"prompt": "look"})))
            .build()
            .unwrap();
            let above = priced([
                Reply::call("below", json!({"prompt": "look"})).usage(0, MILLION),
                Reply::say("done").usage(0, MILLION),
            ])
            .tool(below.as_tool("below", "Looks."));
            let mut limits = Limits::default();
            limits.cost = limit;
            let agent = above.limits(limits).build().unwrap();
            let outcome = within(agent.prompt("hi")).await.unwrap();
            let total = |cost: Option<Cost>| cost.map(|cost| cost.total());
            assert_eq!(total(outcome.tool_cost), Some(7.0), "{ask}");
            assert_eq!(outcome.tool_usage.output, Some(7 * MILLION), "{ask}");
            let (own, end) = match limit {
                None => (2.0, EndKind::Completed),
                Some(_) => (1.0, EndKind::Limit),
            };
            assert_eq!((total(outcome.cost), outcome.end.kind()), (Some(own), end));
            assert_eq!(total(agent.state().cost), Some(own + 7.0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_of_an_agent_below_is_over_with_the_run_above() {
    let model = ScriptedModel::new([
        Reply::call("sub", json!({"prompt": "do"})).and_call("sub", json!({"prompt": "do"})),
        Reply::call("echo", json!({"value": "x"})),
        Reply::call("echo", json!({"value": "y"})),
    ]);
    let below = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .tool(tool::echo().define(|d| d.needs_approval = true))
        .build()
        .unwrap();
    let above = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(below.as_tool("sub", "Does it."))
        .build()
        .unwrap();
    let person = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let open = above.pending_approvals();
        assert_eq!(open.len(), 2);
        above.abort();
        open
    };
    let (outcome, open) = tokio::join!(within(above.prompt("hi")), person);
    assert_eq!(outcome.unwrap().end.kind(), EndKind::Aborted);
    for agent in [&below, &above] {
        assert!(agent.pending_approvals().is_empty());
        assert!(
            open.iter()
                .all(|o| !agent.answer(&o.id, ApprovalAnswer::Allow))
        );
    }
}
