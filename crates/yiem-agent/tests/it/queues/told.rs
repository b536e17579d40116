//! What is told of the queues while a run goes on (R-6, R-10).

use std::sync::Arc;

use expect_test::expect;
use tokio::sync::Notify;
use yiem_agent::{Agent, EventKind, QueueChange, event_sink};
use yiem_core::Message;
use yiem_test::{Events, PausedEnv, Reply, ScriptedModel};

use crate::{check_whole, invariants, within};

#[test]
fn what_waits_is_told_from_first_to_last() {
    check_whole(
        r#"
model: say "a" "b" & every 2s
model: say "to now"
model: say "to later"
model: say "to last"
user: hi
at 1s: follow-up "later"
at 1s: follow-up "last"
at 3s: steer "now"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              queueChanged queued user "later", 0 + 1 wait
              queueChanged queued user "last", 0 + 2 wait
              queueChanged queued user "now", 1 + 2 wait
              messageEnd assistant "ab" [end_turn]
            turnEnd 1
              queueChanged delivered user "now", 0 + 2 wait
            turnStart 2
              messageEnd user "now"
              messageEnd assistant "to now" [end_turn]
            turnEnd 2
              queueChanged delivered user "later", 0 + 1 wait
            turnStart 3
              messageEnd user "later"
              messageEnd assistant "to later" [end_turn]
            turnEnd 3
              queueChanged delivered user "last", 0 + 0 wait
            turnStart 4
              messageEnd user "last"
              messageEnd assistant "to last" [end_turn]
            turnEnd 4
            agentEnd completed
            outcome completed "to last"
            history u a u a u a u a
            model asked 4 times
        "#]],
    );
}

#[test]
fn what_is_given_back_is_told() {
    check_whole(
        r#"
model: hang
user: hi
at 1s: steer "one"
at 1s: follow-up "two"
at 2s: clear
at 3s: clear
at 4s: follow-up "three"
at 5s: abort
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              queueChanged queued user "one", 1 + 0 wait
              queueChanged queued user "two", 1 + 1 wait
              queueChanged givenBack user "one" user "two", 0 + 0 wait
              queueChanged queued user "three", 0 + 1 wait
            turnEnd 1 without a reply
            agentEnd aborted
            outcome aborted ""
            history u
            model asked 1 times
            left over: user "one"
            left over: user "two"
            left over: user "three"
        "#]],
    );
}

#[test]
fn what_waits_when_a_run_begins_is_told_after_its_start() {
    check_whole(
        r#"
model: say "x" & after 2s & fail auth "no key"
model: say "to hi again"
model: say "to later"
user: hi
at 1s: follow-up "later"
user: hi again
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              queueChanged queued user "later", 0 + 1 wait
              messageEnd assistant "x" [error: no key]
            turnEnd 1
            agentEnd failed: no key
            agentStart
              queueChanged waiting, 0 + 1 wait
            turnStart 1
              messageEnd user "hi again"
              messageEnd assistant "to hi again" [end_turn]
            turnEnd 1
              queueChanged delivered user "later", 0 + 0 wait
            turnStart 2
              messageEnd user "later"
              messageEnd assistant "to later" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome failed (no key) "x"
            outcome completed "to later"
            history u a! u a u a
            model asked 3 times
        "#]],
    );
}

#[test]
fn what_is_queued_while_a_run_winds_down_is_told_before_its_end() {
    check_whole(
        r#"
tool a deaf 3s "A"
model: call a {}
user: hi
at 1s: abort
at 2s: follow-up "later"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "later", 0 + 1 wait
              toolExecutionEnd call_1 ok "A"
              messageEnd toolResult call_1 ok "A"
            turnEnd 1, 1 result
            agentEnd aborted
            outcome aborted ""
            history u a t
            model asked 1 times
            left over: user "later"
        "#]],
    );
}

#[test]
fn what_stop_gives_back_is_told_in_the_run_that_comes_to_its_end() {
    check_whole(
        r#"
model: say "a" "b" & every 2s
user: hi
at 1s: steer "one"
at 2s: stop
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              queueChanged queued user "one", 1 + 0 wait
              queueChanged givenBack user "one", 0 + 0 wait
              messageEnd assistant "ab" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "ab"
            history u a
            model asked 1 times
            left over: user "one"
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_queued_and_given_back_while_a_sink_hangs_does_not_pile_up() {
    let (hangs, let_go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (told, opened) = (Events::new(), (Arc::clone(&hangs), Arc::clone(&let_go)));
    let sink = {
        let told = told.clone();
        event_sink(move |event| {
            let (told, (hangs, let_go)) = (told.clone(), opened.clone());
            async move {
                let first = matches!(event.kind, EventKind::AgentStart);
                told.push((*event).clone());
                if first {
                    hangs.notify_one();
                    let_go.notified().await;
                }
            }
        })
    };
    let agent = Agent::builder(ScriptedModel::answering(|_| Reply::say("fine")))
        .env(PausedEnv::shared())
        .sink(sink)
        .build()
        .unwrap();
    agent.run("hi").unwrap();
    within(hangs.notified()).await;
    agent.follow_up("first").unwrap();
    for n in 0..1000 {
        agent.follow_up(format!("{n}")).unwrap();
        assert_eq!(agent.clear_queues().len(), if n == 0 { 2 } else { 1 });
    }
    agent.follow_up("last").unwrap();
    let_go.notify_one();
    let outcome = within(agent.take_response()).await.unwrap();
    assert_eq!(outcome.transcript.len(), 4);
    let told = told.all();
    invariants::events_nest(&told).unwrap();
    let mut waiting: Vec<String> = Vec::new();
    let mut changes = 0;
    for event in &told {
        let EventKind::QueueChanged {
            change,
            messages,
            follow_ups,
            ..
        } = &event.kind
        else {
            continue;
        };
        changes += 1;
        let text = |m: &Arc<Message>| m.as_user().unwrap().text();
        match change {
            QueueChange::Queued => waiting.extend(messages.iter().map(text)),
            _ => waiting.retain(|w| !messages.iter().any(|m| text(m) == *w)),
        }
        assert_eq!(follow_ups.iter().map(text).collect::<Vec<_>>(), waiting);
    }
    assert!(waiting.is_empty(), "{waiting:?}");
    assert!(changes < 80, "{changes} changes were told");
}
