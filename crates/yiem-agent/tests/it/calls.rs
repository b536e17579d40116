//! One call from its start to its end: updates, failures, panics, refusals, limits (R-2, R-4, T-8).

use expect_test::expect;

use crate::check_calls;

#[test]
fn a_failing_tool_is_a_result_and_its_siblings_go_on() {
    check_calls(
        r#"
tool bad fails "broken"
tool echo echo
model: call bad {} & call echo {"value":"x"}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 bad {}
              toolExecutionStart call_2 echo {"value":"x"}
              toolExecutionEnd call_1 error "broken"
              toolExecutionEnd call_2 ok "x"
              messageEnd toolResult call_1 error "broken"
              messageEnd toolResult call_2 ok "x"
            turnEnd 1, 2 results
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t! t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a_panicking_tool_is_a_result() {
    check_calls(
        r#"
tool bad panics
tool echo echo
model: call bad {} & call echo {"value":"x"}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 bad {}
              toolExecutionStart call_2 echo {"value":"x"}
              toolExecutionEnd call_1 error "The tool bad panicked: the test tool was told to panic"
              toolExecutionEnd call_2 ok "x"
              messageEnd toolResult call_1 error "The tool bad panicked: the test tool was told to panic"
              messageEnd toolResult call_2 ok "x"
            turnEnd 1, 2 results
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t! t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a_lone_panicking_tool_is_a_result() {
    check_calls(
        r#"
tool bad panics
model: call bad {}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 bad {}
              toolExecutionEnd call_1 error "The tool bad panicked: the test tool was told to panic"
              messageEnd toolResult call_1 error "The tool bad panicked: the test tool was told to panic"
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
fn updates_come_before_the_end_and_late_ones_are_dropped() {
    check_calls(
        r#"
tool up updates 3 10ms
model: call up {}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 up {}
              toolExecutionUpdate call_1 {"step":1}
              toolExecutionUpdate call_1 {"step":2}
              toolExecutionUpdate call_1 {"step":3}
              toolExecutionEnd call_1 ok "3 steps"
              messageEnd toolResult call_1 ok "3 steps"
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
fn updates_of_a_call_that_is_done_at_once_come_before_its_end() {
    check_calls(
        r#"
tool up updates 3 0ms
model: call up {}
model: say "done" & after 5s
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 up {}
              toolExecutionUpdate call_1 {"step":1}
              toolExecutionUpdate call_1 {"step":2}
              toolExecutionUpdate call_1 {"step":3}
              toolExecutionEnd call_1 ok "3 steps"
              messageEnd toolResult call_1 ok "3 steps"
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
fn refused_call_has_no_start() {
    check_calls(
        r#"
tool echo echo
refuse echo "not here"
model: call echo {"value":"x"}
model: say "all right"
user: hi
"#,
        expect![[r#"
              toolCallRejected call_1 blocked "not here"
              messageEnd toolResult call_1 error "not here"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "all right"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a_slow_tool_is_cut_by_its_time() {
    check_calls(
        r#"
set tool-time 3s
tool n never
model: call n {}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 n {}
              toolExecutionEnd call_1 error "The tool n did not end within 3 s. Whether it took effect is unknown."
              messageEnd toolResult call_1 error "The tool n did not end within 3 s. Whether it took effect is unknown."
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
fn a_long_result_is_cut_in_the_middle() {
    check_calls(
        r#"
set result-bytes 10
tool s slow 1s "0123456789abcdefghij"
model: call s {}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 s {}
              toolExecutionEnd call_1 ok "01234\n[… 10 bytes left out …]\nfghij"
              messageEnd toolResult call_1 ok "01234\n[… 10 bytes left out …]\nfghij"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t a
            model asked 2 times
        "#]],
    );
}
