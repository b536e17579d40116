//! The handle: prompts, outcomes, sinks, subscriptions, dropping.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use yiem_agent::{
    Agent, AgentEvent, Delivery, EndReason, EventKind, EventSink, PrepareNextTurn, QueueKind,
    RunError, event_sink,
};
use yiem_core::{CancelToken, ChatOptions, StopReason, async_trait};
use yiem_test::{Events, PausedEnv, Reply, ScriptedModel, tool};

use crate::{invariants, within};

fn answering() -> ScriptedModel {
    ScriptedModel::answering(|_| Reply::say("hello"))
}

fn slow_tool_model() -> ScriptedModel {
    ScriptedModel::new([Reply::call("slow", json!({})), Reply::say("done")])
}

fn slow_agent() -> yiem_agent::AgentBuilder {
    Agent::builder(slow_tool_model())
        .env(PausedEnv::shared())
        .tool(tool::slow("slow", Duration::from_secs(10), "ok"))
}

async fn until_busy() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a01_default_state_and_a02_overrides() {
    let agent = Agent::builder(answering())
        .env(PausedEnv::shared())
        .build()
        .unwrap();
    let state = agent.state();
    assert_eq!(
        (
            &*state.system_prompt,
            state.messages.len(),
            state.tools.len()
        ),
        ("", 0, 0)
    );
    assert!(!state.is_running() && state.error_message.is_none() && !state.closed);
    let agent = Agent::builder(answering())
        .env(PausedEnv::shared())
        .system("be brief")
        .tool(tool::echo())
        .session_id("s-1")
        .build()
        .unwrap();
    let state = agent.state();
    assert_eq!((&*state.system_prompt, state.tools.len()), ("be brief", 1));
    assert_eq!(state.session_id, "s-1");
    assert_eq!(state.model.id, "scripted");
}

#[tokio::test(start_paused = true)]
async fn a12_a_follow_up_while_idle_is_queued_and_not_in_the_history() {
    let agent = Agent::builder(answering())
        .env(PausedEnv::shared())
        .build()
        .unwrap();
    agent.follow_up("later").unwrap();
    assert!(agent.has_queued_messages());
    assert_eq!(
        (
            agent.history().len(),
            agent.queued(QueueKind::FollowUp).len()
        ),
        (0, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a14_reset_and_a15_prompt_and_continue_are_refused_while_running() {
    let agent = slow_agent().build().unwrap();
    agent.run("hi").unwrap();
    until_busy().await;
    assert!(matches!(agent.reset().await, Err(RunError::Busy)));
    assert!(matches!(agent.prompt("no").await, Err(RunError::Busy)));
    assert!(matches!(agent.continue_run().await, Err(RunError::Busy)));
    assert_eq!(agent.history().len(), 2);
    let outcome = within(agent.take_response()).await.unwrap();
    assert_eq!(outcome.text(), "done");
    agent.follow_up("left").unwrap();
    assert_eq!(agent.reset().await.unwrap().len(), 1);
    assert_eq!(agent.history().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a18_session_id_reaches_the_model_and_can_change() {
    let model = answering();
    let agent = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .session_id("one")
        .build()
        .unwrap();
    within(agent.prompt("hi")).await.unwrap();
    agent.set_session_id("two");
    within(agent.prompt("hi")).await.unwrap();
    let ids: Vec<_> = model
        .requests()
        .iter()
        .map(|r| r.options.session_id.clone().unwrap().to_string())
        .collect();
    assert_eq!(ids, ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a22_pending_calls_are_there_while_they_run() {
    let agent = slow_agent().build().unwrap();
    agent.run("hi").unwrap();
    until_busy().await;
    let state = agent.state();
    assert_eq!(state.pending_tool_calls, ["call_1"]);
    assert_eq!((state.turn, state.is_running()), (1, true));
    within(agent.wait_idle()).await;
    assert_eq!(agent.state().pending_tool_calls.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn empty_and_foreign_input_begins_nothing() {
    let agent = Agent::builder(answering())
        .env(PausedEnv::shared())
        .build()
        .unwrap();
    for blank in ["", "  \n"] {
        assert!(matches!(agent.run(blank), Err(RunError::EmptyInput)));
        assert!(matches!(
            agent.prompt(blank).await,
            Err(RunError::EmptyInput)
        ));
        assert!(matches!(agent.follow_up(blank), Err(RunError::EmptyInput)));
    }
    let reply = yiem_core::Message::Assistant(yiem_core::AssistantMessage::default());
    assert!(matches!(
        agent.run(reply),
        Err(RunError::WrongRole("assistant"))
    ));
    assert_eq!(agent.history().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn every_run_has_one_outcome_and_prompts_are_not_among_the_taken() {
    let agent = Agent::builder(answering())
        .env(PausedEnv::shared())
        .build()
        .unwrap();
    let first = agent.run("one").unwrap();
    within(agent.wait_idle()).await;
    let prompted = within(agent.prompt("two")).await.unwrap();
    let third = agent.run("three").unwrap();
    let taken = [
        within(agent.take_response()).await,
        within(agent.take_response()).await,
    ];
    let ids: Vec<_> = taken
        .iter()
        .map(|o| o.as_ref().unwrap().run_id.clone())
        .collect();
    assert_eq!(ids, [first, third]);
    assert_eq!(prompted.messages().len(), 2);
    assert_eq!(prompted.transcript.len(), 4);
    let stopped = within(agent.stop()).await;
    assert!(stopped.in_time && stopped.undelivered.is_empty());
    assert!(matches!(
        within(agent.take_response()).await,
        Err(RunError::Closed)
    ));
    assert!(matches!(agent.run("late"), Err(RunError::Closed)));
    assert!(matches!(agent.prompt("late").await, Err(RunError::Closed)));
}

#[tokio::test(start_paused = true)]
async fn stop_wakes_whoever_waits_for_an_outcome() {
    let agent = Agent::builder(answering())
        .env(PausedEnv::shared())
        .build()
        .unwrap();
    let other = agent.clone();
    let (response, _) = within(async {
        tokio::join!(agent.take_response(), async {
            until_busy().await;
            other.stop().await
        })
    })
    .await;
    assert!(matches!(response, Err(RunError::Closed)));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_prompt_aborts_its_run_and_the_next_prompt_works_at_once() {
    let model = ScriptedModel::new([Reply::call("slow", json!({})), Reply::say("second")]);
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(tool::slow("slow", Duration::from_secs(10), "ok"))
        .build()
        .unwrap();
    let dropped = tokio::time::timeout(Duration::from_secs(1), agent.prompt("one")).await;
    assert!(dropped.is_err());
    let outcome = within(agent.prompt("two")).await.unwrap();
    assert_eq!(outcome.text(), "second");
    // The aborted run's outcome is nobody's.
    let none = tokio::time::timeout(Duration::from_secs(1), agent.take_response()).await;
    assert!(none.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_prompt_after_abort_waits_for_the_grace_period_and_then_works() {
    let model = ScriptedModel::new([Reply::call("deaf", json!({})), Reply::say("second")]);
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(tool::deaf("deaf", Duration::from_secs(4), "ok"))
        .build()
        .unwrap();
    agent.run("one").unwrap();
    until_busy().await;
    agent.abort();
    let outcome = within(agent.prompt("two")).await.unwrap();
    assert_eq!(outcome.text(), "second");
    assert!(matches!(
        within(agent.take_response()).await.unwrap().end,
        EndReason::Aborted
    ));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_ends_everything() {
    let metrics = tokio::runtime::Handle::current().metrics();
    let agent = Agent::builder(ScriptedModel::new([
        Reply::call("never", json!({})).and_call("never", json!({"n": 2}))
    ]))
    .env(PausedEnv::shared())
    .tool(tool::never("never"))
    .build()
    .unwrap();
    let mut heard = agent.subscribe();
    agent.run("hi").unwrap();
    until_busy().await;
    assert_eq!(metrics.num_alive_tasks(), 3);
    drop(agent);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(metrics.num_alive_tasks(), 0);
    while within(heard.next()).await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn sinks_are_awaited_in_order_and_the_outcome_comes_after_the_last_event() {
    let log = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut builder = Agent::builder(answering()).env(PausedEnv::shared());
    for name in ["a", "b"] {
        let log = Arc::clone(&log);
        builder = builder.sink(event_sink(move |event| {
            let log = Arc::clone(&log);
            async move {
                tokio::time::sleep(Duration::from_millis(10)).await;
                log.lock().unwrap().push(format!("{name}{}", event.seq));
            }
        }));
    }
    let agent = builder.build().unwrap();
    let outcome = within(agent.prompt("hi")).await.unwrap();
    let expected: Vec<String> = (0..9)
        .flat_map(|n| [format!("a{n}"), format!("b{n}")])
        .collect();
    assert_eq!(*log.lock().unwrap(), expected);
    assert_eq!(outcome.text(), "hello");
}

#[tokio::test(start_paused = true)]
async fn the_replys_end_is_delivered_before_any_preflight_of_its_calls() {
    let delivered = Arc::new(AtomicUsize::new(0));
    let (count, seen) = (Arc::clone(&delivered), Arc::new(AtomicUsize::new(99)));
    let at_hook = Arc::clone(&seen);
    let agent = Agent::builder(ScriptedModel::new([
        Reply::call("echo", json!({"value": "x"})),
        Reply::say("done"),
    ]))
    .env(PausedEnv::shared())
    .tool(tool::echo())
    .sink(event_sink(move |event| {
        let count = Arc::clone(&count);
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if let EventKind::MessageEnd { message } = &event.kind
                && message.as_assistant().is_some()
            {
                count.fetch_add(1, Ordering::SeqCst);
            }
        }
    }))
    .before_tool_call(move |_| {
        at_hook.store(delivered.load(Ordering::SeqCst), Ordering::SeqCst);
        async { Ok(yiem_agent::BeforeToolCall::Run) }
    })
    .build()
    .unwrap();
    within(agent.prompt("hi")).await.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a06_wait_idle_waits_for_the_listeners() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let held = Arc::clone(&gate);
    let agent = Agent::builder(answering())
        .env(PausedEnv::shared())
        .sink(event_sink(move |event| {
            let held = Arc::clone(&held);
            async move {
                if matches!(event.kind, EventKind::AgentEnd { .. }) {
                    let _ = held.acquire().await;
                }
            }
        }))
        .build()
        .unwrap();
    agent.run("hi").unwrap();
    assert!(
        tokio::time::timeout(Duration::from_secs(9), agent.wait_idle())
            .await
            .is_err()
    );
    gate.add_permits(1);
    within(agent.wait_idle()).await;
}

#[tokio::test(start_paused = true)]
async fn a_hanging_sink_is_left_behind_after_the_grace_period() {
    struct Hangs(Events);
    #[async_trait]
    impl EventSink for Hangs {
        async fn on_event(&self, event: &Arc<AgentEvent>, cancel: &CancelToken) {
            self.0.push((**event).clone());
            if matches!(event.kind, EventKind::ToolExecutionStart { .. }) {
                cancel.cancelled().await;
                std::future::pending::<()>().await;
            }
        }
    }
    let events = Events::new();
    let agent = slow_agent().sink(Hangs(events.clone())).build().unwrap();
    agent.run("hi").unwrap();
    until_busy().await;
    let before = tokio::time::Instant::now();
    agent.abort();
    let outcome = within(agent.take_response()).await.unwrap();
    assert!(matches!(outcome.end, EndReason::Aborted));
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    invariants::events_nest(&events.all()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a07_a_listener_is_told_of_the_abort_and_a_panicking_one_is_passed_over() {
    struct Listens(Arc<AtomicUsize>);
    #[async_trait]
    impl EventSink for Listens {
        async fn on_event(&self, event: &Arc<AgentEvent>, cancel: &CancelToken) {
            if matches!(event.kind, EventKind::ToolExecutionStart { .. }) {
                assert!(!cancel.is_cancelled());
                cancel.cancelled().await;
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
    let told = Arc::new(AtomicUsize::new(0));
    let agent = slow_agent()
        .sink(Listens(Arc::clone(&told)))
        .sink(event_sink(|_| async {
            panic!("the sink was told to panic")
        }))
        .listener(|_| panic!("the listener was told to panic"))
        .build()
        .unwrap();
    agent.run("hi").unwrap();
    until_busy().await;
    agent.abort();
    let outcome = within(agent.take_response()).await.unwrap();
    assert!(matches!(outcome.end, EndReason::Aborted));
    assert_eq!(told.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_subscriber_misses_the_oldest_and_is_told_how_many() {
    let agent = Agent::builder(ScriptedModel::new([Reply::pieces(
        (0..20).map(|n| n.to_string()),
    )]))
    .env(PausedEnv::shared())
    .configure(|c| c.listener_buffer = 5)
    .build()
    .unwrap();
    let mut heard = agent.subscribe();
    let unsubscribed = agent.subscribe();
    drop(unsubscribed);
    within(agent.prompt("hi")).await.unwrap();
    // 28 events: start, turn, the user's two, the reply's two, twenty pieces, turn and run end.
    assert_eq!(heard.try_next(), Some(Delivery::Missed(23)));
    let mut seqs = Vec::new();
    while let Some(Delivery::Event(event)) = heard.try_next() {
        seqs.push(event.seq);
    }
    assert_eq!(seqs, [23, 24, 25, 26, 27]);
}

#[tokio::test(start_paused = true)]
async fn changes_between_runs_hold_and_what_a_caller_keeps_does_not() {
    let model = answering();
    let agent = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .system("old")
        .build()
        .unwrap();
    let mut options = ChatOptions {
        temperature: Some(0.5),
        ..ChatOptions::default()
    };
    agent.change(
        PrepareNextTurn::keep()
            .system("new")
            .options(options.clone()),
    );
    options.temperature = Some(0.9);
    agent.add_tool(tool::echo()).unwrap();
    let events = agent.subscribe();
    within(agent.prompt("hi")).await.unwrap();
    drop(events);
    let request = &model.requests()[0];
    assert_eq!(request.system.as_deref(), Some("new"));
    assert_eq!(request.options.temperature, Some(0.5));
    assert!(request.options.session_id.is_some());
    assert_eq!(request.tools.len(), 1);
}

#[test]
fn without_a_runtime_nothing_begins_and_nothing_panics() {
    let agent = Agent::builder(answering()).build().unwrap();
    assert!(matches!(agent.run("hi"), Err(RunError::NoRuntime)));
    agent.follow_up("later").unwrap();
    agent.abort();
    assert!(agent.has_queued_messages());
}

#[test]
fn a_runtime_that_goes_away_leaves_an_outcome() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let agent = Agent::builder(ScriptedModel::new([Reply::hang()]))
        .build()
        .unwrap();
    runtime.block_on(async {
        agent.run("hi").unwrap();
        tokio::task::yield_now().await;
    });
    drop(runtime);
    assert!(!agent.is_running());
    let second = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let outcome = second.block_on(agent.take_response()).unwrap();
    assert!(matches!(outcome.end, EndReason::Failed(_)));
    assert_eq!(outcome.transcript.len(), 1);
}

#[test]
fn every_fault_of_the_configuration_is_told_by_build() {
    let bad =
        tool::echo().schema(json!({"type": "object", "properties": {"a": {"type": "nonsense"}}}));
    let error = Agent::builder(answering()).tool(bad).build().unwrap_err();
    assert!(error.to_string().contains("echo"), "{error}");
    let error = Agent::builder(answering())
        .tool(tool::echo())
        .tool(tool::echo())
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("already a tool"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_agents_at_once_finish_and_leave_no_task() {
    let metrics = tokio::runtime::Handle::current().metrics();
    let before = metrics.num_alive_tasks();
    let mut agents = tokio::task::JoinSet::new();
    for n in 0..1_000 {
        agents.spawn(async move {
            let model = ScriptedModel::new([
                Reply::pieces((0..50).map(|p| format!("{p} ")))
                    .and_call("echo", json!({"value": "x"})),
                Reply::pieces(["done", " ", &n.to_string()]),
            ]);
            let agent = Agent::builder(model).tool(tool::echo()).build().unwrap();
            agent.prompt("go").await.unwrap().text().to_owned()
        });
    }
    let mut texts = within(agents.join_all()).await;
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), 1_000);
    // Tasks that were ended are gone when their worker has looked at them.
    within(async {
        while metrics.num_alive_tasks() > before {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_and_loses_nothing() {
    let agent = Agent::builder(ScriptedModel::new([Reply::hang()]))
        .env(PausedEnv::shared())
        .configure(|config| config.queue_capacity = 2)
        .build()
        .unwrap();
    agent.run("first").unwrap();
    until_busy().await;
    for text in ["s1", "s2"] {
        agent.run(text).unwrap();
    }
    assert!(matches!(
        agent.run("s3"),
        Err(RunError::QueueFull { waiting: 2 })
    ));
    for text in ["f1", "f2"] {
        agent.follow_up(text).unwrap();
    }
    assert!(matches!(
        agent.follow_up("f3"),
        Err(RunError::QueueFull { waiting: 2 })
    ));
    agent.abort();
    let stopped = within(agent.stop()).await;
    let left: Vec<String> = stopped
        .undelivered
        .iter()
        .filter_map(|m| m.as_user().map(yiem_core::UserMessage::text))
        .collect();
    assert_eq!(left, ["s1", "s2", "f1", "f2"]);
}

#[tokio::test(start_paused = true)]
async fn an_aborted_outcome_says_so_in_every_word_it_has() {
    let agent = Agent::builder(ScriptedModel::new([Reply::hang()]))
        .env(PausedEnv::shared())
        .build()
        .unwrap();
    agent.run("hi").unwrap();
    until_busy().await;
    agent.abort();
    let outcome = within(agent.take_response()).await.unwrap();
    assert!(matches!(outcome.end, EndReason::Aborted));
    assert_eq!(outcome.stop_reason, StopReason::Aborted);
    assert!(outcome.ok().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_never_ends_is_gone_when_its_run_is() {
    let metrics = tokio::runtime::Handle::current().metrics();
    let calls = Reply::call("never", json!({})).and_call("never", json!({"n": 2}));
    let agent = Agent::builder(ScriptedModel::new([calls]))
        .env(PausedEnv::shared())
        .tool(tool::never("never"))
        .build()
        .unwrap();
    agent.run("hi").unwrap();
    until_busy().await;
    agent.abort();
    within(agent.take_response()).await.unwrap();
    within(agent.wait_idle()).await;
    // The driver's own task may still be on its way out.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(metrics.num_alive_tasks(), 0);
}
