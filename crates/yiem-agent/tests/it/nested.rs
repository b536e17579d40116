//! Calls that calls make: told when they are refused, and counted (R-4, R-11, T-7).

use expect_test::expect;

use crate::check_calls;

#[test]
fn a_call_of_a_call_that_is_refused_is_told_whatever_the_reason() {
    check_calls(
        r#"
tool echo echo
tool outer calls echo {"value":"x"}
tool lost calls nobody {}
tool wrong calls echo {}
tool deep calls outer {}
refuse echo "not here"
model: call outer {} call lost {} call wrong {} call deep {}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 outer {}
              toolExecutionStart call_2 lost {}
              toolExecutionStart call_3 wrong {}
              toolExecutionStart call_4 deep {}
              toolCallRejected call_5 blocked "not here"
              toolExecutionEnd call_1 error "not here"
              toolCallRejected call_6 unknownTool "Tool nobody not found"
              toolExecutionEnd call_2 error "Tool nobody not found"
              toolCallRejected call_7 invalidArguments "Missing required arguments: value"
              toolExecutionEnd call_3 error "Missing required arguments: value"
              toolExecutionStart call_8 outer {} (by call_4)
              toolCallRejected call_9 blocked "not here"
              toolExecutionEnd call_8 error "not here"
              toolExecutionEnd call_4 error "not here"
              messageEnd toolResult call_1 error "not here"
              messageEnd toolResult call_2 error "Tool nobody not found"
              messageEnd toolResult call_3 error "Missing required arguments: value"
              messageEnd toolResult call_4 error "not here"
            turnEnd 1, 4 results
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t! t! t! t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn calls_of_calls_count_for_the_limit_and_the_run_ends_where_one_is_refused() {
    check_calls(
        r#"
set tool-calls 3
tool echo echo
tool outer calls echo {"value":"x"}
model: call outer {}
model: call outer {}
model: say "never"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 outer {}
              toolExecutionStart call_2 echo {"value":"x"} (by call_1)
              toolExecutionEnd call_2 ok "x"
              toolExecutionEnd call_1 ok "x"
              messageEnd toolResult call_1 ok "x"
            turnEnd 1, 1 result
              toolExecutionStart call_3 outer {}
              toolCallRejected call_4 limit "Not executed: a run may make 3 tool calls at most."
              toolExecutionEnd call_3 error "Not executed: a run may make 3 tool calls at most."
              messageEnd toolResult call_3 error "Not executed: a run may make 3 tool calls at most."
            turnEnd 2, 1 result
            agentEnd limit: a run may make 3 tool calls at most
            outcome limit (a run may make 3 tool calls at most) ""
            history u a t a t!
            model asked 2 times
        "#]],
    );
    check_calls(
        r#"
set tool-calls 2
set sequential
tool echo echo
tool outer calls echo {"value":"x"}
model: call outer {} call echo {"value":"y"} call echo {"value":"z"}
model: say "never"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 outer {}
              toolExecutionStart call_4 echo {"value":"x"} (by call_1)
              toolExecutionEnd call_4 ok "x"
              toolExecutionEnd call_1 ok "x"
              toolCallRejected call_2 limit "Not executed: a run may make 2 tool calls at most."
              toolCallRejected call_3 limit "Not executed: a run may make 2 tool calls at most."
              messageEnd toolResult call_1 ok "x"
              messageEnd toolResult call_2 error "Not executed: a run may make 2 tool calls at most."
              messageEnd toolResult call_3 error "Not executed: a run may make 2 tool calls at most."
            turnEnd 1, 3 results
            agentEnd limit: a run may make 2 tool calls at most
            outcome limit (a run may make 2 tool calls at most) ""
            history u a t t! t!
            model asked 1 times
        "#]],
    );
    check_calls(
        r#"
set tool-calls 2
tool echo echo
tool outer calls echo {"value":"x"}
tool deep calls outer {}
model: call deep {}
model: say "never"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 deep {}
              toolExecutionStart call_2 outer {} (by call_1)
              toolCallRejected call_3 limit "Not executed: a run may make 2 tool calls at most."
              toolExecutionEnd call_2 error "Not executed: a run may make 2 tool calls at most."
              toolExecutionEnd call_1 error "Not executed: a run may make 2 tool calls at most."
              messageEnd toolResult call_1 error "Not executed: a run may make 2 tool calls at most."
            turnEnd 1, 1 result
            agentEnd limit: a run may make 2 tool calls at most
            outcome limit (a run may make 2 tool calls at most) ""
            history u a t!
            model asked 1 times
        "#]],
    );
    check_calls(
        r#"
set tool-calls 2
tool echo echo
tool outer calls echo {"value":"x"}
model: call outer {}
model: say "enough"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 outer {}
              toolExecutionStart call_2 echo {"value":"x"} (by call_1)
              toolExecutionEnd call_2 ok "x"
              toolExecutionEnd call_1 ok "x"
              messageEnd toolResult call_1 ok "x"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "enough"
            history u a t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn nobody_is_asked_about_a_call_that_the_limit_refuses() {
    check_calls(
        r#"
set tool-calls 1
tool echo echo
tool outer calls echo {"value":"x"}
ask echo "May it?"
model: call outer {}
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 outer {}
              toolCallRejected call_2 limit "Not executed: a run may make 1 tool call at most."
              toolExecutionEnd call_1 error "Not executed: a run may make 1 tool call at most."
              messageEnd toolResult call_1 error "Not executed: a run may make 1 tool call at most."
            turnEnd 1, 1 result
            agentEnd limit: a run may make 1 tool call at most
            outcome limit (a run may make 1 tool call at most) ""
            history u a t!
            model asked 1 times
        "#]],
    );
}
