//! Limits with typed outcomes (R-11, R-17).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use expect_test::expect;
use serde_json::json;
use yiem_agent::Agent;
use yiem_core::{ToolOutput, Usage};
use yiem_test::{PausedEnv, Reply, ScriptedModel, TestTool};
use yiem_tools::{FunctionTool, WHOLE_OUTPUT, WHOLE_OUTPUT_FILE, WholeOutput};

use crate::{check_whole, within};

#[test]
fn turns_end_the_run_with_its_transcript() {
    check_whole(
        r#"
set turns 2
tool echo echo
model: call echo {"value":"1"}
model: call echo {"value":"2"}
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 echo {"value":"1"} [tool_calls]
              toolExecutionStart call_1 echo {"value":"1"}
              toolExecutionEnd call_1 ok "1"
              messageEnd toolResult call_1 ok "1"
            turnEnd 1, 1 result
            turnStart 2
              messageEnd assistant call call_2 echo {"value":"2"} [tool_calls]
              toolExecutionStart call_2 echo {"value":"2"}
              toolExecutionEnd call_2 ok "2"
              messageEnd toolResult call_2 ok "2"
            turnEnd 2, 1 result
            agentEnd limit: a run may take 2 turns at most
            outcome limit (a run may take 2 turns at most) ""
            history u a t a t
            model asked 2 times
        "#]],
    );
}

#[test]
fn an_answer_in_the_last_turn_is_an_answer() {
    check_whole(
        r#"
set turns 2
tool echo echo
model: call echo {"value":"1"}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 echo {"value":"1"} [tool_calls]
              toolExecutionStart call_1 echo {"value":"1"}
              toolExecutionEnd call_1 ok "1"
              messageEnd toolResult call_1 ok "1"
            turnEnd 1, 1 result
            turnStart 2
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn continue_goes_on_after_a_limit() {
    check_whole(
        r#"
set turns 1
tool echo echo
model: call echo {"value":"1"}
model: say "done"
user: hi
continue:
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 echo {"value":"1"} [tool_calls]
              toolExecutionStart call_1 echo {"value":"1"}
              toolExecutionEnd call_1 ok "1"
              messageEnd toolResult call_1 ok "1"
            turnEnd 1, 1 result
            agentEnd limit: a run may take 1 turn at most
            agentStart
            turnStart 1
              messageEnd assistant "done" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome limit (a run may take 1 turn at most) ""
            outcome completed "done"
            history u a t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn tool_calls_beyond_the_limit_are_answered() {
    check_whole(
        r#"
set tool-calls 2
tool echo echo
model: call echo {"value":"1"} & call echo {"value":"2"} & call echo {"value":"3"}
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 echo {"value":"1"}, call call_2 echo {"value":"2"}, call call_3 echo {"value":"3"} [tool_calls]
              toolCallRejected call_3 limit "Not executed: a run may make 2 tool calls at most."
              toolExecutionStart call_1 echo {"value":"1"}
              toolExecutionStart call_2 echo {"value":"2"}
              toolExecutionEnd call_1 ok "1"
              toolExecutionEnd call_2 ok "2"
              messageEnd toolResult call_1 ok "1"
              messageEnd toolResult call_2 ok "2"
              messageEnd toolResult call_3 error "Not executed: a run may make 2 tool calls at most."
            turnEnd 1, 3 results
            agentEnd limit: a run may make 2 tool calls at most
            outcome limit (a run may make 2 tool calls at most) ""
            history u a t t t!
            model asked 1 times
        "#]],
    );
}

#[test]
fn tokens_end_the_run_before_the_next_call() {
    check_whole(
        r#"
set tokens 10
tool echo echo
model: call echo {"value":"1"} & usage 8 3
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 echo {"value":"1"} [tool_calls]
              toolExecutionStart call_1 echo {"value":"1"}
              toolExecutionEnd call_1 ok "1"
              messageEnd toolResult call_1 ok "1"
            turnEnd 1, 1 result
            agentEnd limit: 11 tokens are used, a run may use 10
            outcome limit (11 tokens are used, a run may use 10) ""
            history u a t
            model asked 1 times
        "#]],
    );
}

#[test]
fn wall_time_cuts_the_run() {
    check_whole(
        r#"
set wall 3s
tool a slow 10s "A"
model: call a {}
user: hi
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
            agentEnd limit: 3 s are the most time that a run may take
            outcome limit (3 s are the most time that a run may take) ""
            history u a t!
            model asked 1 times
        "#]],
    );
}

#[test]
fn wall_time_cuts_a_stream() {
    check_whole(
        r#"
set wall 3s
model: say "Hel" "lo" & every 1s & hang
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant "Hello" [aborted: 3 s are the most time that a run may take]
            turnEnd 1
            agentEnd limit: 3 s are the most time that a run may take
            outcome limit (3 s are the most time that a run may take) "Hello"
            history u a!
            model asked 1 times
        "#]],
    );
}

#[test]
fn identical_calls_are_warned_of_and_then_end_the_run() {
    check_whole(
        r#"
tool echo echo
model: call echo {"value":"x"}
model: call echo {"value":"x"}
model: call echo {"value":"x"}
model: call echo {"value":"x"}
model: call echo {"value":"x"}
model: call echo {"value":"x"}
model: call echo {"value":"x"}
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 echo {"value":"x"} [tool_calls]
              toolExecutionStart call_1 echo {"value":"x"}
              toolExecutionEnd call_1 ok "x"
              messageEnd toolResult call_1 ok "x"
            turnEnd 1, 1 result
            turnStart 2
              messageEnd assistant call call_2 echo {"value":"x"} [tool_calls]
              toolExecutionStart call_2 echo {"value":"x"}
              toolExecutionEnd call_2 ok "x"
              messageEnd toolResult call_2 ok "x"
            turnEnd 2, 1 result
            turnStart 3
              messageEnd assistant call call_3 echo {"value":"x"} [tool_calls]
              toolExecutionStart call_3 echo {"value":"x"}
              toolExecutionEnd call_3 ok "x\nWarning: this is call number 3 of echo with the same arguments. Calling it again will not help; use what you know, or try something else."
              messageEnd toolResult call_3 ok "x", "Warning: this is call number 3 of echo with the same arguments. Calling it again will not help; use what you know, or try something else."
            turnEnd 3, 1 result
            turnStart 4
              messageEnd assistant call call_4 echo {"value":"x"} [tool_calls]
              toolExecutionStart call_4 echo {"value":"x"}
              toolExecutionEnd call_4 ok "x\nWarning: this is call number 4 of echo with the same arguments. Calling it again will not help; use what you know, or try something else."
              messageEnd toolResult call_4 ok "x", "Warning: this is call number 4 of echo with the same arguments. Calling it again will not help; use what you know, or try something else."
            turnEnd 4, 1 result
            turnStart 5
              messageEnd assistant call call_5 echo {"value":"x"} [tool_calls]
              toolExecutionStart call_5 echo {"value":"x"}
              toolExecutionEnd call_5 ok "x\nWarning: this is call number 5 of echo with the same arguments. Calling it again will not help; use what you know, or try something else."
              messageEnd toolResult call_5 ok "x", "Warning: this is call number 5 of echo with the same arguments. Calling it again will not help; use what you know, or try something else."
            turnEnd 5, 1 result
            turnStart 6
              messageEnd assistant call call_6 echo {"value":"x"} [tool_calls]
              toolCallRejected call_6 limit "Not executed: the tool echo was called 6 times with the same arguments. The run ends here."
              messageEnd toolResult call_6 error "Not executed: the tool echo was called 6 times with the same arguments. The run ends here."
            turnEnd 6, 1 result
            agentEnd limit: the tool echo was called 6 times with the same arguments
            outcome limit (the tool echo was called 6 times with the same arguments) ""
            history u a t a t a t a t a t a t!
            model asked 6 times
        "#]],
    );
}

#[test]
fn a_limit_leaves_what_is_queued() {
    check_whole(
        r#"
set turns 1
tool a slow 2s "A"
model: call a {}
user: hi
at 1s: steer "one"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "one", 1 + 0 wait
              toolExecutionEnd call_1 ok "A"
              messageEnd toolResult call_1 ok "A"
            turnEnd 1, 1 result
            agentEnd limit: a run may take 1 turn at most
            outcome limit (a run may take 1 turn at most) ""
            history u a t
            model asked 1 times
            left over: user "one"
        "#]],
    );
}

#[tokio::test]
async fn the_whole_of_a_cut_result_is_kept_where_it_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("a file");
    std::fs::write(&nowhere, "in the way").unwrap();
    for (whole, key) in [
        (WholeOutput::Dropped, None),
        (WholeOutput::InDetails, Some(WHOLE_OUTPUT)),
        (
            WholeOutput::InFolder(folder.path().join("new")),
            Some(WHOLE_OUTPUT_FILE),
        ),
        (
            WholeOutput::InFolder(nowhere.clone()),
            Some(WHOLE_OUTPUT_FILE),
        ),
    ] {
        let model =
            ScriptedModel::new([Reply::call("long", json!({})).whole(), Reply::say("done")]);
        let agent = Agent::builder(model)
            .tool(FunctionTool::builder("long").typed(|(): (), _| async { "0123456789abcdefghij" }))
            .configure(|config| {
                config.result_bytes = 10;
                config.whole_results = whole.clone();
            })
            .build()
            .unwrap();
        let outcome = within(agent.prompt("go")).await.unwrap();
        let result = outcome
            .transcript
            .iter()
            .find_map(|m| m.as_tool_result().cloned())
            .unwrap();
        assert_eq!(result.text(), "01234\n[… 10 bytes left out …]\nfghij");
        let told = key.map(|key| result.details[key].as_str().unwrap().to_owned());
        match whole {
            WholeOutput::InDetails => assert_eq!(told.as_deref(), Some("0123456789abcdefghij")),
            WholeOutput::InFolder(at) if at == nowhere => {
                let told = told.unwrap();
                assert!(told.contains("could not be written"), "{told}");
            }
            WholeOutput::InFolder(_) => {
                assert_eq!(
                    std::fs::read_to_string(told.unwrap()).unwrap(),
                    "0123456789abcdefghij"
                );
            }
            _ => assert!(result.details.is_null()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tools_own_limit_of_calls_at_once_is_kept() {
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
    let tool = FunctionTool::builder("busy")
        .concurrency(3)
        .typed(move |(): (), context| {
            let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
            async move {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                context.env.sleep(std::time::Duration::from_secs(1)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                "done"
            }
        });
    let calls = (1..8).fold(Reply::call("busy", json!({})), |reply, _| {
        reply.and_call("busy", json!({}))
    });
    let model = ScriptedModel::new([calls.whole(), Reply::say("done")]);
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(tool)
        .build()
        .unwrap();
    let outcome = within(agent.prompt("go")).await.unwrap();
    let results = outcome
        .transcript
        .iter()
        .filter(|m| m.as_tool_result().is_some());
    assert_eq!(results.count(), 8);
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[test]
fn a_call_that_is_refused_again_and_again_is_warned_of_and_ends_the_run_too() {
    for (tools, call) in [
        ("", "call nobody {}"),
        ("tool echo echo", "call echo {}"),
        ("tool echo echo", "raw echo \"[not json\""),
        (
            "tool echo echo\nrefuse echo \"not here\"",
            "call echo {\"value\":\"x\"}",
        ),
    ] {
        let mut script = format!("{tools}\nset identical 2 4\nuser: hi\n");
        for _ in 0..4 {
            script.push_str(&format!("model: {call}\n"));
        }
        let transcript = crate::play(&script);
        let results = transcript
            .lines()
            .filter(|l| l.contains("messageEnd toolResult"));
        let warned: Vec<bool> = results
            .map(|l| l.contains("Warning: this is call number"))
            .collect();
        assert_eq!(warned, [false, true, true, false], "{transcript}");
        assert!(transcript.contains("outcome limit"), "{transcript}");
    }
}

#[tokio::test(start_paused = true)]
async fn counts_of_a_server_may_be_anything() {
    let most = || Reply::call("echo", json!({"value": "x"})).usage(u64::MAX, u64::MAX);
    let costly = TestTool::new("echo", |_, _| async {
        Ok(ToolOutput {
            usage: Some(Usage::new(u64::MAX, 1)),
            ..ToolOutput::text("x")
        })
    });
    let model = ScriptedModel::new([most(), most(), Reply::say("done").usage(1, 1), most()]);
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(costly)
        .configure(|c| c.limits.session_tokens = Some(u64::MAX))
        .build()
        .unwrap();
    for _ in 0..2 {
        let outcome = within(agent.prompt("hi")).await.unwrap();
        assert_eq!(
            outcome.end.problem().unwrap(),
            format!("{0} tokens are used, the session may use {0}", u64::MAX)
        );
    }
    assert_eq!(agent.state().usage.all(), Some(u64::MAX));
}

#[tokio::test]
async fn whole_results_of_calls_with_one_id_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let long = |c: &str| json!({"value": c.repeat(100)});
    let model = ScriptedModel::new([
        Reply::call_with_id("call_0", "echo", long("a")),
        Reply::call_with_id("call_0", "echo", long("b")),
        Reply::call_with_id("c/1", "echo", long("c")).and_call_with_id("c_1", "echo", long("d")),
        Reply::say("done"),
    ]);
    let at = folder.path().to_owned();
    let agent = Agent::builder(model)
        .tool(yiem_test::tool::echo())
        .configure(|config| {
            config.result_bytes = 10;
            config.whole_results = WholeOutput::InFolder(at);
        })
        .build()
        .unwrap();
    let outcome = within(agent.prompt("go")).await.unwrap();
    let results = outcome.transcript.iter().filter_map(|m| m.as_tool_result());
    let kept: String = results
        .map(|r| std::fs::read_to_string(r.details[WHOLE_OUTPUT_FILE].as_str().unwrap()).unwrap())
        .map(|text| text.chars().next().unwrap())
        .collect();
    assert_eq!(kept, "abcd");
}
