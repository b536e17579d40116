//! A prompt whose events are read as they come.

use std::time::Duration;

use serde_json::json;
use yiem_agent::{Agent, Delivery, EndReason, EventKind, PromptStream, RunError};
use yiem_test::{PausedEnv, Reply, ScriptedModel, tool};

use crate::within;

fn saying(pieces: &[&str]) -> Reply {
    Reply::pieces(pieces.iter().copied())
}

fn agent(model: ScriptedModel) -> Agent {
    Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(tool::echo())
        .tool(tool::never("never"))
        .build()
        .unwrap()
}

async fn kinds(stream: &mut PromptStream) -> Vec<String> {
    let mut kinds = Vec::new();
    while let Some(Delivery::Event(event)) = within(stream.next()).await {
        let json = serde_json::to_value(&*event).unwrap();
        kinds.push(json["type"].as_str().unwrap().to_owned());
    }
    kinds
}

#[tokio::test(start_paused = true)]
async fn text_comes_piece_by_piece_over_all_turns_and_then_the_outcome() {
    let agent = agent(ScriptedModel::new([
        saying(&["Let me ", "see. "]).and_call("echo", json!({"value": "x"})),
        saying(&["It ", "is x."]),
    ]));
    let mut answer = agent.prompt("go").stream();
    let mut pieces = Vec::new();
    while let Some(text) = within(answer.next_text()).await {
        pieces.push(text);
    }
    assert_eq!(pieces, ["Let me ", "see. ", "It ", "is x."]);
    assert_eq!(within(answer.next()).await, None);
    let outcome = within(answer.outcome()).await.unwrap();
    assert_eq!((outcome.text(), outcome.tool_calls), ("It is x.", 1));
}

#[tokio::test(start_paused = true)]
async fn it_tells_its_own_run_from_the_first_event_to_the_last() {
    let agent = agent(ScriptedModel::answering(|_| Reply::say("hello")));
    // An aborted run winds down while the prompt waits to begin: its events are not the prompt's.
    for abort in [false, true] {
        if abort {
            agent.run("other").unwrap();
            agent.abort();
        }
        let mut stream = agent.prompt("hi").stream();
        let kinds = kinds(&mut stream).await;
        let starts = kinds.iter().filter(|kind| *kind == "agentStart").count();
        assert_eq!(starts, 1, "{kinds:?}");
        assert_eq!(kinds.first().map(String::as_str), Some("agentStart"));
        assert_eq!(kinds.last().map(String::as_str), Some("agentEnd"));
        assert_eq!(within(stream.outcome()).await.unwrap().text(), "hello");
    }
}

#[tokio::test(start_paused = true)]
async fn where_no_run_could_be_started_it_is_empty_and_the_outcome_says_why() {
    let agent = agent(ScriptedModel::new([Reply::call("never", json!({}))]));
    let mut empty = agent.prompt(" ").stream();
    assert_eq!(within(empty.next_text()).await, None);
    assert!(within(empty.outcome()).await.is_err());
    agent.run("go").unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut busy = agent.prompt("hi").stream();
    assert_eq!(within(busy.next()).await, None);
    let refused = within(busy.outcome()).await.unwrap_err();
    assert!(matches!(refused, RunError::Busy), "{refused:?}");
    agent.stop().await;
    let mut closed = agent.prompt("hi").stream();
    assert_eq!(within(closed.next()).await, None);
    let refused = within(closed.outcome()).await.unwrap_err();
    assert!(matches!(refused, RunError::Closed), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn the_outcome_can_be_had_without_reading_and_an_unread_stream_never_holds_the_run_up() {
    let many = |n: usize| Reply::pieces((0..n).map(|n| n.to_string()));
    let agent = Agent::builder(ScriptedModel::new([many(20), many(20)]))
        .env(PausedEnv::shared())
        .configure(|config| config.listener_buffer = 5)
        .build()
        .unwrap();
    let unread = agent.prompt("hi").stream();
    assert!(within(unread.outcome()).await.unwrap().is_ok());
    let mut slow = agent.prompt("hi").stream();
    let mut delivery = within(slow.next()).await;
    within(agent.wait_idle()).await;
    let (mut missed, mut told, mut last) = (0, 0, None);
    while let Some(this) = delivery {
        match this {
            Delivery::Missed(events) => missed += events,
            Delivery::Event(event) => {
                told += 1;
                last = Some(event);
            }
        }
        delivery = within(slow.next()).await;
    }
    // 28 events: start, turn, the user's two, the reply's two, twenty pieces, turn and run end.
    assert_eq!(missed + told, 28);
    assert!(missed > 0);
    assert!(matches!(last.unwrap().kind, EventKind::AgentEnd { .. }));
    assert!(within(slow.outcome()).await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn dropping_it_aborts_the_run_and_the_agents_end_ends_it() {
    let never = || Reply::call("never", json!({}));
    let agent = agent(ScriptedModel::new([never(), never()]));
    let mut stream = agent.prompt("go").stream();
    within(stream.next()).await.unwrap();
    drop(stream);
    within(agent.wait_idle()).await;
    assert!(!agent.is_running());
    let mut stream = agent.prompt("go").stream();
    within(stream.next()).await.unwrap();
    let (_, kinds) = tokio::join!(agent.stop(), kinds(&mut stream));
    assert_eq!(kinds.last().map(String::as_str), Some("agentEnd"));
    let outcome = within(stream.outcome()).await.unwrap();
    assert!(matches!(outcome.end, EndReason::Aborted));
}
