//! Results that end the run (R-5).

use expect_test::expect;

use crate::check_calls;

#[test]
fn l15_terminate_all() {
    check_calls(
        r#"
set terminate all
tool a terminates "A"
tool b terminates "B"
model: call a {} & call b {}
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 a {}
              toolExecutionStart call_2 b {}
              toolExecutionEnd call_1 ok terminate "A"
              toolExecutionEnd call_2 ok terminate "B"
              messageEnd toolResult call_1 ok "A"
              messageEnd toolResult call_2 ok "B"
            turnEnd 1, 2 results
            agentEnd terminated
            outcome terminated "A\nB"
            history u a t t
            model asked 1 times
        "#]],
    );
}

#[test]
fn terminate_all_needs_every_result() {
    check_calls(
        r#"
set terminate all
tool a terminates "A"
tool echo echo
model: call a {} & call echo {"value":"x"}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 a {}
              toolExecutionStart call_2 echo {"value":"x"}
              toolExecutionEnd call_1 ok terminate "A"
              toolExecutionEnd call_2 ok "x"
              messageEnd toolResult call_1 ok "A"
              messageEnd toolResult call_2 ok "x"
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
fn terminate_any_is_enough_by_default() {
    check_calls(
        r#"
tool a terminates "A"
tool echo echo
model: call a {} & call echo {"value":"x"}
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 a {}
              toolExecutionStart call_2 echo {"value":"x"}
              toolExecutionEnd call_1 ok terminate "A"
              toolExecutionEnd call_2 ok "x"
              messageEnd toolResult call_1 ok "A"
              messageEnd toolResult call_2 ok "x"
            turnEnd 1, 2 results
            agentEnd terminated
            outcome terminated "A"
            history u a t t
            model asked 1 times
        "#]],
    );
}

#[test]
fn terminating_answer_is_the_assistants_own_text_first() {
    check_calls(
        r#"
tool a terminates "A"
model: say "mine" & call a {}
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 a {}
              toolExecutionEnd call_1 ok terminate "A"
              messageEnd toolResult call_1 ok "A"
            turnEnd 1, 1 result
            agentEnd terminated
            outcome terminated "mine"
            history u a t
            model asked 1 times
        "#]],
    );
}

#[test]
fn terminated_run_goes_on_with_steering() {
    check_calls(
        r#"
tool a terminates "A"
tool s slow 2s "slow"
model: call a {} & call s {}
model: say "and Rome"
user: hi
at 1s: steer "Rome?"
"#,
        expect![[r#"
              toolExecutionStart call_1 a {}
              toolExecutionStart call_2 s {}
              toolExecutionEnd call_1 ok terminate "A"
              queueChanged queued user "Rome?", 1 + 0 wait
              toolExecutionEnd call_2 ok "slow"
              messageEnd toolResult call_1 ok "A"
              messageEnd toolResult call_2 ok "slow"
            turnEnd 1, 2 results
              queueChanged delivered user "Rome?", 0 + 0 wait
            turnEnd 2
            agentEnd completed
            outcome completed "and Rome"
            history u a t t u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn refused_call_may_end_the_run() {
    check_calls(
        r#"
tool echo echo
refuse echo "not here" terminate
model: call echo {"value":"x"}
user: hi
"#,
        expect![[r#"
              toolCallRejected call_1 blocked "not here"
              messageEnd toolResult call_1 error "not here"
            turnEnd 1, 1 result
            agentEnd terminated
            outcome terminated "not here"
            history u a t!
            model asked 1 times
        "#]],
    );
}
