//! Whatever is done at any event of a run, from within the run itself.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use yiem_agent::{Agent, ApprovalAnswer, EndKind, EventKind, Outcome, WeakAgent};
use yiem_core::{Message, ModelErrorKind};
use yiem_test::{Events, PausedEnv, Reply, ScriptedModel, tool};

use crate::{invariants, within};

/// What is done at an event.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Nothing,
    Abort,
    Steer,
    SteerAndAbort,
    AbortAndSteer,
    FollowUpAndAbort,
    FollowUp,
    FollowUpAndTakeBack,
    Deny,
}

const ACTS: &[Act] = &[
    Act::Abort,
    Act::Steer,
    Act::SteerAndAbort,
    Act::AbortAndSteer,
    Act::FollowUpAndAbort,
    Act::FollowUp,
    Act::FollowUpAndTakeBack,
    Act::Deny,
];

/// A run with a reply that breaks off, calls of calls, progress, a question to a person, and a
/// context that overflows.
fn replies() -> VecDeque<Reply> {
    VecDeque::from([
        Reply::say("half").then_fail(ModelErrorKind::Server, "gone"),
        Reply::say("I look")
            .and_call("outer", json!({}))
            .and_call("up", json!({}))
            .and_call("nobody", json!({}))
            .and_call("asks", json!({})),
        Reply::say("too much").then_fail(ModelErrorKind::ContextLength, "too long"),
        Reply::say("a summary").usage(5, 5),
        Reply::say("done"),
    ])
}

/// What came of it.
struct Came {
    agent: Agent,
    model: ScriptedModel,
    events: Events,
    outcome: Outcome,
    /// What was sent and taken in.
    sent: Vec<&'static str>,
}

async fn act_at(seq: Option<u64>, act: Act, awaited: bool, sequential: bool) -> Came {
    let script: Arc<Mutex<VecDeque<Reply>>> = Arc::default();
    let left = Arc::clone(&script);
    let model = ScriptedModel::answering(move |_| {
        let next = left.lock().unwrap().pop_front();
        next.unwrap_or_else(|| Reply::say("ok"))
    });
    let events = Events::new();
    let seen: Arc<Mutex<Option<WeakAgent>>> = Arc::default();
    let sent: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let does = {
        let (seen, sent) = (Arc::clone(&seen), Arc::clone(&sent));
        let done = AtomicBool::new(false);
        move |event: &yiem_agent::AgentEvent| {
            let Some(agent) = seen.lock().unwrap().as_ref().and_then(WeakAgent::upgrade) else {
                return;
            };
            if let EventKind::ApprovalRequested { approval_id, .. } = &event.kind {
                agent.answer(approval_id, ApprovalAnswer::Allow);
            }
            if Some(event.seq) != seq || done.swap(true, Ordering::Relaxed) {
                return;
            }
            let mut sent = sent.lock().unwrap();
            let mut steer = || {
                agent.run("steered").unwrap();
                sent.push("steered");
            };
            match act {
                Act::Nothing => {}
                Act::Abort => agent.abort(),
                Act::Steer => steer(),
                Act::SteerAndAbort => {
                    steer();
                    agent.abort();
                }
                Act::AbortAndSteer => {
                    agent.abort();
                    steer();
                }
                Act::FollowUpAndAbort => {
                    agent.follow_up("later").unwrap();
                    sent.push("later");
                    agent.abort();
                }
                Act::FollowUp => {
                    agent.follow_up("later").unwrap();
                    sent.push("later");
                }
                Act::FollowUpAndTakeBack => {
                    agent.follow_up("later").unwrap();
                    assert_eq!(agent.clear_queues().len(), 1);
                }
                Act::Deny => {
                    for open in agent.pending_approvals() {
                        agent.answer(&open.id, ApprovalAnswer::deny("no"));
                    }
                }
            }
        }
    };
    let mut builder = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .tool(tool::echo())
        .tool(tool::calling("outer", "echo", json!({"value": "x"})))
        .tool(tool::updating("up", 3, Duration::from_millis(10)))
        .tool(
            tool::slow("asks", Duration::from_secs(1), "asked").define(|d| d.needs_approval = true),
        )
        .listener(events.listener());
    if sequential {
        builder = builder.sequential();
    }
    builder = if awaited {
        let does = Arc::new(does);
        builder.sink(yiem_agent::event_sink(move |event| {
            let does = Arc::clone(&does);
            async move {
                tokio::task::yield_now().await;
                does(&event);
            }
        }))
    } else {
        builder.listener(does)
    };
    let agent = builder.build().unwrap();
    // Something older, that can be summarised.
    within(agent.prompt("earlier")).await.unwrap();
    drop(events.take());
    *script.lock().unwrap() = replies();
    *seen.lock().unwrap() = Some(agent.downgrade());
    let outcome = within(agent.prompt("hi")).await.unwrap();
    within(agent.wait_idle()).await;
    let sent = sent.lock().unwrap().clone();
    Came {
        agent,
        model,
        events,
        outcome,
        sent,
    }
}

fn count(messages: impl IntoIterator<Item = Arc<Message>>, text: &str) -> usize {
    let is = |m: &Arc<Message>| m.as_user().is_some_and(|u| u.text() == text);
    messages.into_iter().filter(is).count()
}

#[tokio::test(start_paused = true)]
async fn whatever_is_done_at_any_event_the_run_ends_well_and_the_next_one_works() {
    for (awaited, sequential) in [(false, false), (true, false), (false, true), (true, true)] {
        let plain = act_at(None, Act::Nothing, awaited, sequential).await;
        let last = plain.events.all().last().unwrap().seq;
        assert!(last > 40, "{}", plain.events.transcript());
        for seq in 0..=last {
            for act in ACTS {
                let came = act_at(Some(seq), *act, awaited, sequential).await;
                let about = || {
                    format!(
                        "{act:?} at {seq}, awaited {awaited}, sequential {sequential}:\n{}",
                        came.events.transcript()
                    )
                };
                invariants::events_nest(&came.events.all())
                    .unwrap_or_else(|e| panic!("{e}: {}", about()));
                let history = came.agent.history();
                invariants::calls_are_answered(&history)
                    .unwrap_or_else(|e| panic!("{e}: {}", about()));
                let aborts = matches!(
                    act,
                    Act::Abort | Act::SteerAndAbort | Act::AbortAndSteer | Act::FollowUpAndAbort
                );
                let end = came.outcome.end.kind();
                // At the last event it is over already.
                let expected = match aborts && seq < last {
                    true => EndKind::Aborted,
                    false => EndKind::Completed,
                };
                assert_eq!(end, expected, "{}", about());
                // No message is lost, and none is there twice.
                let state = came.agent.state();
                let there: Vec<Arc<Message>> = history
                    .iter()
                    .chain(&state.steering)
                    .chain(&state.follow_ups)
                    .cloned()
                    .collect();
                for text in &came.sent {
                    assert_eq!(count(there.clone(), text), 1, "{text}: {}", about());
                }
                // What steers without an abort is delivered, if it comes before the end.
                if *act == Act::Steer || (*act == Act::FollowUp && seq < last) {
                    assert!(!came.agent.has_queued_messages(), "{}", about());
                }
                let next = within(came.agent.prompt("next")).await.unwrap();
                assert!(next.is_ok(), "{}", about());
                assert!(!came.agent.has_queued_messages(), "{}", about());
                assert_eq!(
                    came.model.take_breaches(),
                    Vec::<String>::new(),
                    "{}",
                    about()
                );
            }
        }
    }
}
