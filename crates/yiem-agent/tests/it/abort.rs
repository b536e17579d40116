//! Aborts at every place (R-8).

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use expect_test::expect;
use serde_json::json;
use tokio::sync::Notify;
use yiem_agent::{Agent, AgentEvent, EndReason, EventSink, JournalRecord, Session};
use yiem_core::{
    AssistantContent, AssistantMessage, CancelToken, LoadedTools, Message, SourceError, Timestamp,
    ToolCall, ToolSource, async_trait,
};
use yiem_test::{PausedEnv, Reply, ScriptedModel, tool};

use crate::{check_whole, within};

#[test]
fn abort_before_the_first_piece() {
    check_whole(
        r#"
model: hang
model: say "fine"
user: hi
at 1s: abort
user: again
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
            turnEnd 1 without a reply
            agentEnd aborted
            agentStart
            turnStart 1
              messageEnd user "again"
              messageEnd assistant "fine" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome aborted ""
            outcome completed "fine"
            history u u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn d2_abort_mid_stream_keeps_the_partial_message() {
    check_whole(
        r#"
model: say "Hel" "lo" & every 1s & hang
model: say "fine"
user: hi
at 3s: abort
user: again
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant "Hello" [aborted]
            turnEnd 1
            agentEnd aborted
            agentStart
            turnStart 1
              messageEnd user "again"
              messageEnd assistant "fine" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome aborted "Hello"
            outcome completed "fine"
            history u a! u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn abort_mid_stream_of_a_call_leaves_no_open_call() {
    check_whole(
        r#"
tool echo echo
model: say "let me" & call echo {"value":"x"} & hang
model: say "fine"
user: hi
at 1s: abort
user: again
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant "let me" [aborted]
            turnEnd 1
            agentEnd aborted
            agentStart
            turnStart 1
              messageEnd user "again"
              messageEnd assistant "fine" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome aborted "let me"
            outcome completed "fine"
            history u a! u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn abort_lets_a_tool_that_listens_end() {
    check_whole(
        r#"
tool a slow 10s "A"
model: call a {}
model: say "fine"
user: hi
at 1s: abort
user: again
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
            agentStart
            turnStart 1
              messageEnd user "again"
              messageEnd assistant "fine" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome aborted ""
            outcome completed "fine"
            history u a t! u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn abort_gives_a_deaf_tool_the_grace_period() {
    check_whole(
        r#"
tool a deaf 3s "A"
model: call a {}
model: say "fine"
user: hi
at 1s: abort
user: again
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
              messageEnd user "again"
              messageEnd assistant "fine" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome aborted ""
            outcome completed "fine"
            history u a t u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn abort_drops_a_tool_that_never_ends() {
    check_whole(
        r#"
tool a never
tool b slow 10s "B"
model: call a {} & call b {}
model: say "fine"
user: hi
at 1s: abort
user: again
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {}, call call_2 b {} [tool_calls]
              toolExecutionStart call_1 a {}
              toolExecutionStart call_2 b {}
              toolExecutionEnd call_2 error "cancelled"
              toolExecutionEnd call_1 error "Aborted: the run was aborted and the tool did not end in time. Whether it took effect is unknown."
              messageEnd toolResult call_1 error "Aborted: the run was aborted and the tool did not end in time. Whether it took effect is unknown."
              messageEnd toolResult call_2 error "cancelled"
            turnEnd 1, 2 results
            agentEnd aborted
            agentStart
            turnStart 1
              messageEnd user "again"
              messageEnd assistant "fine" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome aborted ""
            outcome completed "fine"
            history u a t! t! u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn d4_abort_answers_calls_that_have_not_begun_at_once() {
    check_whole(
        r#"
set max-parallel 1
tool a deaf 3s "A"
model: call a {"n":1} & call a {"n":2} & call a {"n":3}
user: hi
at 1s: abort
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {"n":1}, call call_2 a {"n":2}, call call_3 a {"n":3} [tool_calls]
              toolExecutionStart call_1 a {"n":1}
              toolCallRejected call_2 aborted "Not executed: the run was aborted before this call began."
              toolCallRejected call_3 aborted "Not executed: the run was aborted before this call began."
              toolExecutionEnd call_1 ok "A"
              messageEnd toolResult call_1 ok "A"
              messageEnd toolResult call_2 error "Not executed: the run was aborted before this call began."
              messageEnd toolResult call_3 error "Not executed: the run was aborted before this call began."
            turnEnd 1, 3 results
            agentEnd aborted
            outcome aborted ""
            history u a t t! t!
            model asked 1 times
        "#]],
    );
}

#[test]
fn abort_in_a_sequential_batch() {
    check_whole(
        r#"
set sequential
tool a deaf 2s "A"
model: call a {"n":1} & call a {"n":2} & call a {"n":3}
model: say "fine"
user: hi
at 3s: abort
user: again
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {"n":1}, call call_2 a {"n":2}, call call_3 a {"n":3} [tool_calls]
              toolExecutionStart call_1 a {"n":1}
              toolExecutionEnd call_1 ok "A"
              toolExecutionStart call_2 a {"n":2}
              toolCallRejected call_3 aborted "Not executed: the run was aborted before this call began."
              toolExecutionEnd call_2 ok "A"
              messageEnd toolResult call_1 ok "A"
              messageEnd toolResult call_2 ok "A"
              messageEnd toolResult call_3 error "Not executed: the run was aborted before this call began."
            turnEnd 1, 3 results
            agentEnd aborted
            agentStart
            turnStart 1
              messageEnd user "again"
              messageEnd assistant "fine" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome aborted ""
            outcome completed "fine"
            history u a t t t! u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn abort_during_backoff_ends_at_once() {
    check_whole(
        r#"
model: fail server "busy" 50s
model: say "fine"
user: hi
at 1s: abort
user: again
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              retryScheduled 2 of 5 in 50000 ms: busy
            turnEnd 1 without a reply
            agentEnd aborted
            agentStart
            turnStart 1
              messageEnd user "again"
              messageEnd assistant "fine" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome aborted ""
            outcome completed "fine"
            history u u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a13_abort_while_idle_does_nothing() {
    check_whole(
        r#"
model: say "fine"
model: say "fine too"
user: hi
at 5s: abort
user: again
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant "fine" [end_turn]
            turnEnd 1
            agentEnd completed
            agentStart
            turnStart 1
              messageEnd user "again"
              messageEnd assistant "fine too" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "fine"
            outcome completed "fine too"
            history u a u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn two_aborts_are_one() {
    check_whole(
        r#"
tool a deaf 3s "A"
model: call a {}
user: hi
at 1s: abort
at 2s: abort
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
            outcome aborted ""
            history u a t
            model asked 1 times
        "#]],
    );
}

#[test]
fn updates_before_an_abort_are_told() {
    check_whole(
        r#"
tool up updates 5 1s
model: call up {}
user: hi
at 2500ms: abort
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 up {} [tool_calls]
              toolExecutionStart call_1 up {}
              toolExecutionUpdate call_1 {"step":1}
              toolExecutionUpdate call_1 {"step":2}
              toolExecutionUpdate call_1 {"step":3}
              toolExecutionUpdate call_1 {"step":4}
              toolExecutionUpdate call_1 {"step":5}
              toolExecutionEnd call_1 ok "5 steps"
              messageEnd toolResult call_1 ok "5 steps"
            turnEnd 1, 1 result
            agentEnd aborted
            outcome aborted ""
            history u a t
            model asked 1 times
        "#]],
    );
}

#[test]
fn continue_after_an_abort_goes_on() {
    check_whole(
        r#"
tool a slow 10s "A"
model: call a {}
model: say "so it was aborted"
user: hi
at 1s: abort
continue:
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
            agentStart
            turnStart 1
              messageEnd assistant "so it was aborted" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome aborted ""
            outcome completed "so it was aborted"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

/// A source whose tools come when it is let.
struct WhenLet {
    let_go: Arc<Notify>,
    required: bool,
}

#[async_trait]
impl ToolSource for WhenLet {
    fn name(&self) -> &str {
        "server"
    }
    fn generation(&self) -> u64 {
        1
    }
    fn required(&self) -> bool {
        self.required
    }
    async fn load(&self, _: &CancelToken) -> Result<LoadedTools, SourceError> {
        self.let_go.notified().await;
        Ok(LoadedTools {
            generation: 1,
            ..LoadedTools::default()
        })
    }
}

fn session_with_an_open_call() -> Session {
    let args = json!({"value": "x"}).as_object().unwrap().clone();
    let call = AssistantContent::ToolCall(ToolCall::new("call_1", "echo", args));
    let reply = AssistantMessage::new(vec![call], Timestamp::default());
    let messages = [Message::user("hi", Timestamp::default()), reply.into()];
    Session::of_records(messages.map(|message| JournalRecord::Message {
        message: Arc::new(message),
    }))
}

#[tokio::test(start_paused = true)]
async fn abort_reaches_who_looks_for_the_tools_of_open_calls() {
    for goes_on in [false, true] {
        let model = ScriptedModel::answering(|_| Reply::say("fine"));
        let echo = tool::echo();
        let agent = Agent::builder(model.clone())
            .env(PausedEnv::shared())
            .tool(echo.clone())
            .source(WhenLet {
                let_go: Arc::default(),
                required: false,
            })
            .resume(session_with_an_open_call())
            .build()
            .unwrap();
        let asked = agent.clone();
        let waiting = async {
            match goes_on {
                false => asked.prompt("and?").await,
                true => asked.continue_run().await,
            }
        };
        let aborting = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(!agent.is_running(), "it waits for the source");
            agent.abort();
        };
        let before = tokio::time::Instant::now();
        let (outcome, ()) = within(async { tokio::join!(waiting, aborting) }).await;
        assert!(matches!(outcome.unwrap().end, EndReason::Aborted));
        assert_eq!(before.elapsed(), Duration::from_secs(1));
        assert_eq!((model.calls(), echo.calls().len()), (0, 0));
        // An abort is of what is going on: the next one goes on.
        let outcome = within(agent.prompt("again")).await.unwrap();
        assert!(outcome.is_ok());
        assert_eq!(model.take_breaches(), Vec::<String>::new());
    }
}

/// Never takes the first event.
struct Deaf(AtomicBool);

#[async_trait]
impl EventSink for Deaf {
    async fn on_event(&self, _: &Arc<AgentEvent>, _: &CancelToken) {
        if !self.0.swap(true, Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_aborted_beside_a_run_that_winds_down_has_an_outcome() {
    let let_go = Arc::new(Notify::new());
    let model = ScriptedModel::answering(|_| Reply::say("fine"));
    let agent = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .source(WhenLet {
            let_go: Arc::clone(&let_go),
            required: true,
        })
        .sink(Deaf(AtomicBool::new(false)))
        .build()
        .unwrap();
    agent.run("one").unwrap();
    let two = agent.prompt("two").into_future();
    let aborting = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        agent.abort();
        tokio::time::sleep(Duration::from_secs(1)).await;
        agent.run("three").unwrap();
    };
    let (two, ()) = within(async { tokio::join!(two, aborting) }).await;
    let two = two.unwrap();
    assert!(matches!(two.end, EndReason::Aborted));
    assert_eq!(two.transcript.len(), 2, "its message is in the history");
    let one = within(agent.take_response()).await.unwrap();
    assert!(matches!(one.end, EndReason::Aborted));
    // What was sent after the abort is not of it.
    let_go.notify_one();
    let three = within(agent.take_response()).await.unwrap();
    assert_eq!((three.text(), three.transcript.len()), ("fine", 4));
    assert_eq!(model.calls(), 1);
}

#[test]
fn what_calls_told_before_an_abort_is_told_before_what_the_abort_ends() {
    // The sink holds up the first update until after the abort; the second waits behind it.
    check_whole(
        r#"
set max-parallel 1
sink toolExecutionUpdate slow 2s time 1
tool up updates 9 300ms
tool echo echo
model: call up {} & call echo {"value":"x"}
user: hi
at 700ms: abort
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 up {}, call call_2 echo {"value":"x"} [tool_calls]
              toolExecutionStart call_1 up {}
              toolExecutionUpdate call_1 {"step":1}
              toolExecutionUpdate call_1 {"step":2}
              toolExecutionUpdate call_1 {"step":3}
              toolExecutionUpdate call_1 {"step":4}
              toolExecutionUpdate call_1 {"step":5}
              toolExecutionUpdate call_1 {"step":6}
              toolExecutionUpdate call_1 {"step":7}
              toolCallRejected call_2 aborted "Not executed: the run was aborted before this call began."
              toolExecutionUpdate call_1 {"step":8}
              toolExecutionUpdate call_1 {"step":9}
              toolExecutionEnd call_1 ok "9 steps"
              messageEnd toolResult call_1 ok "9 steps"
              messageEnd toolResult call_2 error "Not executed: the run was aborted before this call began."
            turnEnd 1, 2 results
            agentEnd aborted
            outcome aborted ""
            history u a t t!
            model asked 1 times
        "#]],
    );
}
