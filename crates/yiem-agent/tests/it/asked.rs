//! Agents that ask agents: how deep, and what they come to when all of it is aborted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use yiem_agent::{Agent, ApprovalAnswer, EndKind};
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

#[tokio::test(start_paused = true)]
async fn a_question_of_an_agent_below_is_answered_on_it_or_on_any_above_and_once() {
    for (answers, env) in [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)] {
        let shared = PausedEnv::shared();
        let env = || {
            if env == 0 {
                Arc::clone(&shared)
            } else {
                PausedEnv::shared()
            }
        };
        let model = ScriptedModel::new([
            Reply::call("sub", json!({"prompt": "do"})),
            Reply::call("sub", json!({"prompt": "do"})),
            Reply::call("echo", json!({"value": "x"})),
            Reply::say("below"),
            Reply::say("between"),
            Reply::say("above"),
        ]);
        let below = Agent::builder(model.clone())
            .env(env())
            .tool(tool::echo().define(|d| d.needs_approval = true))
            .build()
            .unwrap();
        let mut agents = vec![below];
        for _ in 0..2 {
            let sub = agents.last().unwrap().as_tool("sub", "Does it.");
            let above = Agent::builder(model.clone()).env(env()).tool(sub).build();
            agents.push(above.unwrap());
        }
        let person = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let open: Vec<_> = agents.iter().map(|a| a.pending_approvals()).collect();
            assert!(
                open.iter()
                    .all(|o| o.len() == 1 && o[0].tool_name.as_ref() == "echo")
            );
            let id = &open[0][0].id;
            let given: Vec<bool> = (0..3)
                .map(|n| agents[(answers + n) % 3].answer(id, ApprovalAnswer::Allow))
                .collect();
            assert_eq!(given, [true, false, false]);
            assert!(agents.iter().all(|a| a.pending_approvals().is_empty()));
        };
        let (outcome, ()) = tokio::join!(within(agents[2].prompt("hi")), person);
        assert_eq!(outcome.unwrap().text(), "above");
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
