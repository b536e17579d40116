//! What is queued outlives an abort, an error, a stop, a prompt that is dropped: nothing is lost (R-6).

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use serde_json::json;
use yiem_agent::{Agent, EndKind, Outcome};
use yiem_core::Message;
use yiem_test::{PausedEnv, Reply, ScriptedModel, tool};

use crate::{check_whole, within};

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

/// An agent whose first run was aborted and winds down, in a tool that does not listen.
async fn winding_down(replies: &[&str]) -> Agent {
    let replies = replies.iter().map(|text| Reply::say(*text));
    let model = ScriptedModel::new(std::iter::once(Reply::call("deaf", json!({}))).chain(replies));
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(tool::deaf("deaf", Duration::from_secs(4), "ok"))
        .build()
        .unwrap();
    agent.run("first").unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    agent.abort();
    agent
}

/// What users said, and the outcomes of the runs that nobody waited for.
async fn came_of(agent: &Agent) -> (Vec<String>, Vec<Outcome>) {
    within(agent.wait_idle()).await;
    let said = agent.history();
    let said = said.iter().filter_map(|m| m.as_user().map(|u| u.text()));
    let said = said.collect();
    within(agent.stop()).await;
    let mut outcomes = Vec::new();
    while let Ok(outcome) = within(agent.take_response()).await {
        outcomes.push(outcome);
    }
    (said, outcomes)
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_dropped_while_it_waits_takes_no_message_of_others_with_it() {
    let agent = winding_down(&["to them"]).await;
    let mut prompt = Box::pin(agent.prompt("mine").into_future());
    assert!(futures_util::poll!(&mut prompt).is_pending());
    let told = agent.run("theirs").unwrap();
    assert_eq!(agent.run("and theirs").unwrap(), told);
    drop(prompt);
    assert_eq!(agent.run("theirs again").unwrap(), told);
    let (said, outcomes) = came_of(&agent).await;
    assert_eq!(said, ["first", "theirs", "and theirs", "theirs again"]);
    let ends: Vec<EndKind> = outcomes.iter().map(|o| o.end.kind()).collect();
    assert_eq!(ends, [EndKind::Aborted, EndKind::Completed]);
    assert_eq!(
        (&outcomes[1].run_id, outcomes[1].text()),
        (&told, "to them")
    );
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_dropped_alone_begins_nothing_and_a_later_one_works() {
    let agent = winding_down(&["later"]).await;
    let mut prompt = Box::pin(agent.prompt("mine").into_future());
    assert!(futures_util::poll!(&mut prompt).is_pending());
    drop(prompt);
    let later = within(agent.prompt("again")).await.unwrap();
    assert_eq!(later.text(), "later");
    let (said, outcomes) = came_of(&agent).await;
    assert_eq!(said, ["first", "again"]);
    assert_eq!(outcomes.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_others_sent_to_a_prompt_that_was_dropped_is_given_back_by_stop() {
    let agent = winding_down(&[]).await;
    let mut prompt = Box::pin(agent.prompt("mine").into_future());
    assert!(futures_util::poll!(&mut prompt).is_pending());
    agent.run("theirs").unwrap();
    drop(prompt);
    let left = within(agent.stop()).await.undelivered;
    let text = |m: &Arc<Message>| m.as_user().unwrap().text();
    assert_eq!(left.iter().map(text).collect::<Vec<_>>(), ["theirs"]);
}
