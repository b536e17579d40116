//! Questions to a person (R-9): asked, answered, not answered, given up.

use std::time::Duration;

use expect_test::expect;
use serde_json::json;
use yiem_agent::{Agent, ApprovalAnswer};
use yiem_core::ToolError;
use yiem_test::{PausedEnv, Reply, ScriptedModel, TestTool, tool};

use crate::{check_calls, within};

#[test]
fn a_call_that_was_allowed_runs() {
    check_calls(
        r#"
ask echo "May it?"
tool echo echo
model: call echo {"value":"x"}
model: say "done"
user: hi
at 1s: allow
"#,
        expect![[r#"
              approvalRequested call_1 echo "May it?"
              approvalResolved call_1 allowed
              toolExecutionStart call_1 echo {"value":"x"}
              toolExecutionEnd call_1 ok "x"
              messageEnd toolResult call_1 ok "x"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a_call_that_was_denied_is_told_why() {
    check_calls(
        r#"
ask echo "May it?"
tool echo echo
model: call echo {"value":"x"}
model: say "done"
user: hi
at 1s: deny "rather not"
"#,
        expect![[r#"
              approvalRequested call_1 echo "May it?"
              approvalResolved call_1 denied "rather not"
              toolCallRejected call_1 blocked "rather not"
              messageEnd toolResult call_1 error "rather not"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a_denial_without_words_says_that_the_user_refused() {
    check_calls(
        r#"
ask echo "May it?"
tool echo echo
model: call echo {"value":"x"}
model: say "done"
user: hi
at 1s: deny ""
"#,
        expect![[r#"
              approvalRequested call_1 echo "May it?"
              approvalResolved call_1 denied ""
              toolCallRejected call_1 blocked "The user refused this call."
              messageEnd toolResult call_1 error "The user refused this call."
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn arguments_of_a_person_are_those_that_run() {
    check_calls(
        r#"
ask echo "May it?"
tool echo echo
model: call echo {"value":"x"}
model: say "done"
user: hi
at 1s: allow {"value":"z"}
"#,
        expect![[r#"
              approvalRequested call_1 echo "May it?"
              approvalResolved call_1 allowedWithChanges
              toolExecutionStart call_1 echo {"value":"z"}
              toolExecutionEnd call_1 ok "z"
              messageEnd toolResult call_1 ok "z"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn arguments_of_a_person_are_validated_too() {
    check_calls(
        r#"
ask echo "May it?"
tool echo echo
model: call echo {"value":"x"}
model: say "done"
user: hi
at 1s: allow {"other":"z"}
"#,
        expect![[r#"
              approvalRequested call_1 echo "May it?"
              approvalResolved call_1 allowedWithChanges
              toolCallRejected call_1 invalidArguments "Missing required arguments: value"
              messageEnd toolResult call_1 error "Missing required arguments: value"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a_question_times_out_as_a_no() {
    check_calls(
        r#"
ask echo "May it?" 30s
tool echo echo
model: call echo {"value":"x"}
model: say "done"
user: hi
"#,
        expect![[r#"
              approvalRequested call_1 echo "May it?"
              approvalResolved call_1 timedOut
              toolCallRejected call_1 blocked "Nobody allowed this call in time, so it was not run."
              messageEnd toolResult call_1 error "Nobody allowed this call in time, so it was not run."
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn an_answer_after_the_time_is_none() {
    check_calls(
        r#"
ask echo "May it?" 3s
tool echo echo
model: call echo {"value":"x"}
model: say "done" & after 5s
user: hi
at 4s: allow
"#,
        expect![[r#"
              approvalRequested call_1 echo "May it?"
              approvalResolved call_1 timedOut
              toolCallRejected call_1 blocked "Nobody allowed this call in time, so it was not run."
              messageEnd toolResult call_1 error "Nobody allowed this call in time, so it was not run."
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            refused: no question is open
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn an_abort_ends_the_wait_for_a_person() {
    check_calls(
        r#"
ask slow "May it?"
tool slow slow 1s "done"
tool echo echo
model: call slow {} & call echo {"value":"y"}
user: hi
at 1s: abort
at 2s: allow
"#,
        expect![[r#"
              approvalRequested call_1 slow "May it?"
              approvalResolved call_1 aborted
              toolCallRejected call_1 aborted "Not executed: the run was aborted before this call began."
              toolCallRejected call_2 aborted "Not executed: the run was aborted before this call began."
              messageEnd toolResult call_1 error "Not executed: the run was aborted before this call began."
              messageEnd toolResult call_2 error "Not executed: the run was aborted before this call began."
            turnEnd 1, 2 results
            agentEnd aborted
            outcome aborted ""
            refused: no question is open
            history u a t! t!
            model asked 1 times
        "#]],
    );
}

#[test]
fn the_calls_of_a_batch_are_asked_about_one_after_another_and_then_run_at_once() {
    check_calls(
        r#"
ask slow "May it?"
tool slow slow 2s "done"
tool echo echo
model: call slow {"n":1} & call echo {"value":"y"} & call slow {"n":3}
model: say "done"
user: hi
at 1s: allow
at 2s: deny "not twice"
"#,
        expect![[r#"
              approvalRequested call_1 slow "May it?"
              approvalResolved call_1 allowed
              approvalRequested call_3 slow "May it?"
              approvalResolved call_3 denied "not twice"
              toolCallRejected call_3 blocked "not twice"
              toolExecutionStart call_1 slow {"n":1}
              toolExecutionStart call_2 echo {"value":"y"}
              toolExecutionEnd call_2 ok "y"
              toolExecutionEnd call_1 ok "done"
              messageEnd toolResult call_1 ok "done"
              messageEnd toolResult call_2 ok "y"
              messageEnd toolResult call_3 error "not twice"
            turnEnd 1, 3 results
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t t t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn in_a_sequential_batch_each_is_asked_about_when_it_is_its_turn() {
    check_calls(
        r#"
set sequential
ask slow "May it?"
tool slow slow 2s "done"
model: call slow {"n":1} & call slow {"n":2}
model: say "done"
user: hi
at 1s: allow
at 4s: allow
"#,
        expect![[r#"
              approvalRequested call_1 slow "May it?"
              approvalResolved call_1 allowed
              toolExecutionStart call_1 slow {"n":1}
              toolExecutionEnd call_1 ok "done"
              approvalRequested call_2 slow "May it?"
              approvalResolved call_2 allowed
              toolExecutionStart call_2 slow {"n":2}
              toolExecutionEnd call_2 ok "done"
              messageEnd toolResult call_1 ok "done"
              messageEnd toolResult call_2 ok "done"
            turnEnd 1, 2 results
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a_tool_that_needs_approval_asks_by_itself() {
    check_calls(
        r#"
tool echo echo asks
model: call echo {"value":"x"}
model: say "done"
user: hi
at 1s: allow
"#,
        expect![[r#"
              approvalRequested call_1 echo "May the tool echo run?"
              approvalResolved call_1 allowed
              toolExecutionStart call_1 echo {"value":"x"}
              toolExecutionEnd call_1 ok "x"
              messageEnd toolResult call_1 ok "x"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a_tool_that_needs_approval_is_asked_about_once_when_a_hook_asks_too() {
    check_calls(
        r#"
ask echo "May it?"
tool echo echo asks
model: call echo {"value":"x"}
model: say "done"
user: hi
at 1s: allow
"#,
        expect![[r#"
              approvalRequested call_1 echo "May it?"
              approvalResolved call_1 allowed
              toolExecutionStart call_1 echo {"value":"x"}
              toolExecutionEnd call_1 ok "x"
              messageEnd toolResult call_1 ok "x"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a_call_with_bad_arguments_is_not_asked_about() {
    check_calls(
        r#"
ask echo "May it?"
tool echo echo
model: call echo {} & call nope {}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolCallRejected call_1 invalidArguments "Missing required arguments: value"
              toolCallRejected call_2 unknownTool "Tool nope not found"
              messageEnd toolResult call_1 error "Missing required arguments: value"
              messageEnd toolResult call_2 error "Tool nope not found"
            turnEnd 1, 2 results
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t! t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a_call_that_a_call_makes_is_asked_about_too() {
    check_calls(
        r#"
ask echo "May it?"
tool echo echo
tool outer calls echo {"value":"inner"}
model: call outer {}
model: say "done"
user: hi
at 1s: deny "not from inside"
"#,
        expect![[r#"
              toolExecutionStart call_1 outer {}
              approvalRequested call_2 echo "May it?"
              approvalResolved call_2 denied "not from inside"
              toolCallRejected call_2 blocked "not from inside"
              toolExecutionEnd call_1 error "not from inside"
              messageEnd toolResult call_1 error "not from inside"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn steering_while_a_person_is_asked_waits_for_the_batch() {
    check_calls(
        r#"
ask echo "May it?"
tool echo echo
model: call echo {"value":"x"}
model: say "done"
user: hi
at 1s: steer "hurry"
at 2s: allow
"#,
        expect![[r#"
              approvalRequested call_1 echo "May it?"
              queueChanged queued user "hurry", 1 + 0 wait
              approvalResolved call_1 allowed
              toolExecutionStart call_1 echo {"value":"x"}
              toolExecutionEnd call_1 ok "x"
              messageEnd toolResult call_1 ok "x"
            turnEnd 1, 1 result
              queueChanged delivered user "hurry", 0 + 0 wait
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn stop_gives_a_question_its_deadline_and_then_ends_it() {
    check_calls(
        r#"
ask echo "May it?"
tool echo echo
model: call echo {"value":"x"}
user: hi
at 1s: stop
"#,
        expect![[r#"
              approvalRequested call_1 echo "May it?"
              approvalResolved call_1 aborted
              toolCallRejected call_1 aborted "Not executed: the run was aborted before this call began."
              messageEnd toolResult call_1 error "Not executed: the run was aborted before this call began."
            turnEnd 1, 1 result
            agentEnd aborted
            outcome aborted ""
            history u a t!
            model asked 1 times
        "#]],
    );
}

#[test]
fn the_time_of_a_call_stands_still_while_a_person_is_asked_about_a_call_that_it_makes() {
    let came_of = |tools: &str, allowed: &str| {
        crate::play(&format!(
            r#"
tool echo echo
{tools}
ask echo "May it?"
set tool-time 10s
model: call outer {{}}
model: say "done"
user: hi
{allowed}
"#
        ))
    };
    let outer = "tool outer calls echo {\"value\":\"x\"}";
    let deep = "tool inner calls echo {\"value\":\"x\"}\ntool outer calls inner {}";
    for tools in [outer, deep] {
        for allowed in ["at 9s: allow", "at 11s: allow", "at 600s: allow"] {
            let played = came_of(tools, allowed);
            assert!(
                played.contains("toolExecutionEnd call_1 ok \"x\""),
                "{played}"
            );
        }
        let denied = came_of(tools, "at 600s: deny \"no\"");
        assert!(
            denied.contains("toolExecutionEnd call_1 error \"no\""),
            "{denied}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_question_the_time_of_the_call_that_asked_goes_on() {
    let hangs = |before: u64, after: Duration| {
        TestTool::new("outer", move |_, context| async move {
            tokio::time::sleep(Duration::from_secs(before)).await;
            let args = json!({"value": "x"})
                .as_object()
                .cloned()
                .unwrap_or_default();
            let caller = context.caller().ok_or(ToolError::new("it may not call"))?;
            let output = caller.call_tool("echo", args).await?;
            tokio::time::sleep(after).await;
            Ok(output)
        })
    };
    // Ten seconds of its own, and a minute for the person.
    for (before, after, ended, took) in [
        (4, Duration::from_secs(5), true, 69),
        (4, Duration::from_secs(7), false, 70),
        (4, Duration::MAX, false, 70),
        (11, Duration::ZERO, false, 10),
    ] {
        let model = ScriptedModel::new([Reply::call("outer", json!({})), Reply::say("done")]);
        let agent = Agent::builder(model)
            .env(PausedEnv::shared())
            .tool(hangs(before, after))
            .tool(tool::echo().define(|d| d.needs_approval = true))
            .configure(|c| c.tool_time = Duration::from_secs(10))
            .build()
            .unwrap();
        let person = async {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let Some(open) = agent.pending_approvals().pop() else {
                    if !agent.is_running() {
                        break;
                    }
                    continue;
                };
                tokio::time::sleep(Duration::from_secs(60 - 1)).await;
                agent.answer(&open.id, ApprovalAnswer::Allow);
            }
        };
        let begun = tokio::time::Instant::now();
        let run = async {
            let outcome = within(agent.prompt("hi")).await.unwrap();
            (outcome, begun.elapsed())
        };
        let ((outcome, elapsed), ()) = tokio::join!(run, person);
        let result = outcome.messages().find_map(|m| m.as_tool_result().cloned());
        let result = result.unwrap();
        assert_eq!(!result.is_error, ended, "{}", result.text());
        let off = elapsed.as_secs().abs_diff(took);
        assert!(off <= 1, "{elapsed:?} is not {took} s");
    }
}
