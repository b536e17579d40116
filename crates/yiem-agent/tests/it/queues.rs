//! Steering and follow-ups (R-6).

use std::sync::Arc;

use expect_test::expect;
use tokio::sync::Notify;
use yiem_agent::{Agent, EventKind, QueueChange, event_sink};
use yiem_core::Message;
use yiem_test::{Events, PausedEnv, Reply, ScriptedModel};

use crate::{check_whole, invariants, within};

#[test]
fn q01_steer_waits_for_the_batch() {
    check_whole(
        r#"
tool a slow 2s "A"
tool b slow 3s "B"
model: call a {} & call b {}
model: say "done"
user: hi
at 1s: steer "and Rome?"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {}, call call_2 b {} [tool_calls]
              toolExecutionStart call_1 a {}
              toolExecutionStart call_2 b {}
              queueChanged queued user "and Rome?", 1 + 0 wait
              toolExecutionEnd call_1 ok "A"
              toolExecutionEnd call_2 ok "B"
              messageEnd toolResult call_1 ok "A"
              messageEnd toolResult call_2 ok "B"
            turnEnd 1, 2 results
              queueChanged delivered user "and Rome?", 0 + 0 wait
            turnStart 2
              messageEnd user "and Rome?"
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t t u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn q01_steer_waits_for_a_sequential_batch() {
    check_whole(
        r#"
set sequential
tool a slow 2s "A"
tool b slow 3s "B"
model: call a {} & call b {}
model: say "done"
user: hi
at 1s: steer "and Rome?"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {}, call call_2 b {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "and Rome?", 1 + 0 wait
              toolExecutionEnd call_1 ok "A"
              toolExecutionStart call_2 b {}
              toolExecutionEnd call_2 ok "B"
              messageEnd toolResult call_1 ok "A"
              messageEnd toolResult call_2 ok "B"
            turnEnd 1, 2 results
              queueChanged delivered user "and Rome?", 0 + 0 wait
            turnStart 2
              messageEnd user "and Rome?"
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t t u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn q02_steer_during_text_lets_the_reply_complete() {
    check_whole(
        r#"
model: say "a" "b" "c" & every 1s
model: say "done"
user: hi
at 1s: steer "and Rome?"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              queueChanged queued user "and Rome?", 1 + 0 wait
              messageEnd assistant "abc" [end_turn]
            turnEnd 1
              queueChanged delivered user "and Rome?", 0 + 0 wait
            turnStart 2
              messageEnd user "and Rome?"
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn q03_steer_all_is_one_call_that_sees_both() {
    check_whole(
        r#"
tool a slow 2s "A"
model: call a {}
model: say "done"
user: hi
at 1s: steer "one"
at 1s: steer "two"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "one", 1 + 0 wait
              queueChanged queued user "two", 2 + 0 wait
              toolExecutionEnd call_1 ok "A"
              messageEnd toolResult call_1 ok "A"
            turnEnd 1, 1 result
              queueChanged delivered user "one" user "two", 0 + 0 wait
            turnStart 2
              messageEnd user "one"
              messageEnd user "two"
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t u u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn q04_steer_one_at_a_time_is_a_call_each() {
    check_whole(
        r#"
set steering one-at-a-time
tool a slow 2s "A"
model: call a {}
model: say "to one"
model: say "to two"
user: hi
at 1s: steer "one"
at 1s: steer "two"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "one", 1 + 0 wait
              queueChanged queued user "two", 2 + 0 wait
              toolExecutionEnd call_1 ok "A"
              messageEnd toolResult call_1 ok "A"
            turnEnd 1, 1 result
              queueChanged delivered user "one", 1 + 0 wait
            turnStart 2
              messageEnd user "one"
              messageEnd assistant "to one" [end_turn]
            turnEnd 2
              queueChanged delivered user "two", 0 + 0 wait
            turnStart 3
              messageEnd user "two"
              messageEnd assistant "to two" [end_turn]
            turnEnd 3
            agentEnd completed
            outcome completed "to two"
            history u a t u a u a
            model asked 3 times
        "#]],
    );
}

#[test]
fn q05_follow_ups_one_at_a_time() {
    check_whole(
        r#"
tool a slow 2s "A"
model: call a {}
model: say "answer"
model: say "to one"
model: say "to two"
user: hi
at 1s: follow-up "one"
at 1s: follow-up "two"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "one", 0 + 1 wait
              queueChanged queued user "two", 0 + 2 wait
              toolExecutionEnd call_1 ok "A"
              messageEnd toolResult call_1 ok "A"
            turnEnd 1, 1 result
            turnStart 2
              messageEnd assistant "answer" [end_turn]
            turnEnd 2
              queueChanged delivered user "one", 0 + 1 wait
            turnStart 3
              messageEnd user "one"
              messageEnd assistant "to one" [end_turn]
            turnEnd 3
              queueChanged delivered user "two", 0 + 0 wait
            turnStart 4
              messageEnd user "two"
              messageEnd assistant "to two" [end_turn]
            turnEnd 4
            agentEnd completed
            outcome completed "to two"
            history u a t a u a u a
            model asked 4 times
        "#]],
    );
}

#[test]
fn q05_follow_ups_all() {
    check_whole(
        r#"
set follow-ups all
tool a slow 2s "A"
model: call a {}
model: say "answer"
model: say "to both"
user: hi
at 1s: follow-up "one"
at 1s: follow-up "two"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "one", 0 + 1 wait
              queueChanged queued user "two", 0 + 2 wait
              toolExecutionEnd call_1 ok "A"
              messageEnd toolResult call_1 ok "A"
            turnEnd 1, 1 result
            turnStart 2
              messageEnd assistant "answer" [end_turn]
            turnEnd 2
              queueChanged delivered user "one" user "two", 0 + 0 wait
            turnStart 3
              messageEnd user "one"
              messageEnd user "two"
              messageEnd assistant "to both" [end_turn]
            turnEnd 3
            agentEnd completed
            outcome completed "to both"
            history u a t a u u a
            model asked 3 times
        "#]],
    );
}

#[test]
fn steering_goes_before_follow_ups() {
    check_whole(
        r#"
model: say "x" & after 2s
model: say "to steering"
model: say "to follow-up"
user: hi
at 1s: follow-up "later"
at 1s: steer "now"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              queueChanged queued user "later", 0 + 1 wait
              queueChanged queued user "now", 1 + 1 wait
              messageEnd assistant "x" [end_turn]
            turnEnd 1
              queueChanged delivered user "now", 0 + 1 wait
            turnStart 2
              messageEnd user "now"
              messageEnd assistant "to steering" [end_turn]
            turnEnd 2
              queueChanged delivered user "later", 0 + 0 wait
            turnStart 3
              messageEnd user "later"
              messageEnd assistant "to follow-up" [end_turn]
            turnEnd 3
            agentEnd completed
            outcome completed "to follow-up"
            history u a u a u a
            model asked 3 times
        "#]],
    );
}

#[test]
fn interrupt_lets_steering_in_between_sequential_calls() {
    check_whole(
        r#"
set sequential
set interrupt
tool a slow 2s "A"
model: call a {"n":1} & call a {"n":2} & call a {"n":3}
model: say "done"
user: hi
at 1s: steer "stop that"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {"n":1}, call call_2 a {"n":2}, call call_3 a {"n":3} [tool_calls]
              toolExecutionStart call_1 a {"n":1}
              queueChanged queued user "stop that", 1 + 0 wait
              toolExecutionEnd call_1 ok "A"
              toolCallRejected call_2 interrupted "Not executed: a new message came in before this call began."
              toolCallRejected call_3 interrupted "Not executed: a new message came in before this call began."
              messageEnd toolResult call_1 ok "A"
              messageEnd toolResult call_2 error "Not executed: a new message came in before this call began."
              messageEnd toolResult call_3 error "Not executed: a new message came in before this call began."
            turnEnd 1, 3 results
              queueChanged delivered user "stop that", 0 + 0 wait
            turnStart 2
              messageEnd user "stop that"
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t t! t! u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a16_continue_delivers_a_follow_up() {
    check_whole(
        r#"
model: say "answer"
model: say "more"
user: hi
at 5s: follow-up "go on"
continue:
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant "answer" [end_turn]
            turnEnd 1
            agentEnd completed
            agentStart
              queueChanged delivered user "go on", 0 + 0 wait
            turnStart 1
              messageEnd user "go on"
              messageEnd assistant "more" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "answer"
            outcome completed "more"
            history u a u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn l21_continue_after_a_good_answer_is_refused() {
    check_whole(
        r#"
model: say "answer"
user: hi
continue:
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant "answer" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "answer"
            refused: there is nothing to continue: the history ends with an answer and nothing is queued; send a message instead
            history u a
            model asked 1 times
        "#]],
    );
}

#[test]
fn abort_leaves_what_is_queued_in_order() {
    check_whole(
        r#"
tool a slow 10s "A"
model: call a {}
user: hi
at 1s: steer "one"
at 1s: steer "two"
at 1s: follow-up "three"
at 2s: abort
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "one", 1 + 0 wait
              queueChanged queued user "two", 2 + 0 wait
              queueChanged queued user "three", 2 + 1 wait
              toolExecutionEnd call_1 error "cancelled"
              messageEnd toolResult call_1 error "cancelled"
            turnEnd 1, 1 result
            agentEnd aborted
            outcome aborted ""
            history u a t!
            model asked 1 times
            left over: user "one"
            left over: user "two"
            left over: user "three"
        "#]],
    );
}

#[test]
fn what_an_abort_left_comes_first_in_the_next_run() {
    check_whole(
        r#"
tool a slow 10s "A"
model: call a {}
model: say "all seen"
model: say "three seen"
user: hi
at 1s: steer "one"
at 1s: follow-up "three"
at 2s: abort
user: again
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "one", 1 + 0 wait
              queueChanged queued user "three", 1 + 1 wait
              toolExecutionEnd call_1 error "cancelled"
              messageEnd toolResult call_1 error "cancelled"
            turnEnd 1, 1 result
            agentEnd aborted
            agentStart
              queueChanged delivered user "one", 0 + 1 wait
            turnStart 1
              messageEnd user "one"
              messageEnd user "again"
              messageEnd assistant "all seen" [end_turn]
            turnEnd 1
              queueChanged delivered user "three", 0 + 0 wait
            turnStart 2
              messageEnd user "three"
              messageEnd assistant "three seen" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome aborted ""
            outcome completed "three seen"
            history u a t! u u a u a
            model asked 3 times
        "#]],
    );
}

#[test]
fn q11_clear_during_abort_restores_nothing() {
    check_whole(
        r#"
tool a deaf 3s "A"
model: call a {}
model: say "ok"
user: hi
at 1s: steer "one"
at 2s: abort
at 2s: clear
user: again
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "one", 1 + 0 wait
              queueChanged givenBack user "one", 0 + 0 wait
              toolExecutionEnd call_1 ok "A"
              messageEnd toolResult call_1 ok "A"
            turnEnd 1, 1 result
            agentEnd aborted
            agentStart
            turnStart 1
              messageEnd user "again"
              messageEnd assistant "ok" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome aborted ""
            outcome completed "ok"
            history u a t u a
            model asked 2 times
            left over: user "one"
        "#]],
    );
}

#[test]
fn stop_gives_back_what_is_queued() {
    check_whole(
        r#"
tool a slow 10s "A"
model: call a {}
model: say "done"
user: hi
at 1s: steer "one"
at 1s: follow-up "two"
at 2s: stop
user: too late
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "one", 1 + 0 wait
              queueChanged queued user "two", 1 + 1 wait
              queueChanged givenBack user "one" user "two", 0 + 0 wait
              toolExecutionEnd call_1 ok "A"
              messageEnd toolResult call_1 ok "A"
            turnEnd 1, 1 result
            turnStart 2
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            refused: the agent was stopped and takes nothing more in; build a new one
            history u a t a
            model asked 2 times
            left over: user "one"
            left over: user "two"
        "#]],
    );
}

#[test]
fn stop_aborts_after_its_deadline() {
    check_whole(
        r#"
tool a slow 100s "A"
model: call a {}
user: hi
at 2s: stop
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              toolExecutionEnd call_1 error "cancelled"
              messageEnd toolResult call_1 error "cancelled"
            turnEnd 1, 1 result
            agentEnd aborted
            outcome aborted ""
            history u a t!
            model asked 1 times
        "#]],
    );
}

#[test]
fn a_message_sent_after_abort_begins_the_next_run() {
    check_whole(
        r#"
tool a deaf 3s "A"
model: call a {}
model: say "hello again"
user: hi
at 1s: abort
at 2s: steer "next"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              toolExecutionEnd call_1 ok "A"
              messageEnd toolResult call_1 ok "A"
            turnEnd 1, 1 result
            agentEnd aborted
            agentStart
            turnStart 1
              messageEnd user "next"
              messageEnd assistant "hello again" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome aborted ""
            outcome completed "hello again"
            history u a t u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn error_leaves_what_is_queued() {
    check_whole(
        r#"
model: say "x" & after 2s & fail auth "no key"
user: hi
at 1s: steer "one"
at 1s: follow-up "two"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              queueChanged queued user "one", 1 + 0 wait
              queueChanged queued user "two", 1 + 1 wait
              messageEnd assistant "x" [error: no key]
            turnEnd 1
            agentEnd failed: no key
            outcome failed (no key) "x"
            history u a!
            model asked 1 times
            left over: user "one"
            left over: user "two"
        "#]],
    );
}

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
