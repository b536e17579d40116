//! The calls of one reply: one after another, or at once (R-3).

use expect_test::expect;

use crate::check_calls;

#[test]
fn l09_one_sequential_tool_forces_all() {
    check_calls(
        r#"
tool slow slow 2s "slow" sequential
tool fast slow 1s "fast"
model: call slow {} & call fast {}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 slow {}
              toolExecutionEnd call_1 ok "slow"
              toolExecutionStart call_2 fast {}
              toolExecutionEnd call_2 ok "fast"
              messageEnd toolResult call_1 ok "slow"
              messageEnd toolResult call_2 ok "fast"
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
fn l10_sequential_tool_second_forces_all_too() {
    check_calls(
        r#"
tool slow slow 2s "slow"
tool fast slow 1s "fast" sequential
model: call slow {} & call fast {}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 slow {}
              toolExecutionEnd call_1 ok "slow"
              toolExecutionStart call_2 fast {}
              toolExecutionEnd call_2 ok "fast"
              messageEnd toolResult call_1 ok "slow"
              messageEnd toolResult call_2 ok "fast"
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
fn parallel_ends_in_order_of_completion_results_in_order_of_reply() {
    check_calls(
        r#"
tool slow slow 2s "slow"
tool fast slow 1s "fast"
model: call slow {} & call fast {}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 slow {}
              toolExecutionStart call_2 fast {}
              toolExecutionEnd call_2 ok "fast"
              toolExecutionEnd call_1 ok "slow"
              messageEnd toolResult call_1 ok "slow"
              messageEnd toolResult call_2 ok "fast"
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
fn sequential_by_config_wins() {
    check_calls(
        r#"
set sequential
tool slow slow 2s "slow"
tool fast slow 1s "fast"
model: call slow {} & call fast {}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 slow {}
              toolExecutionEnd call_1 ok "slow"
              toolExecutionStart call_2 fast {}
              toolExecutionEnd call_2 ok "fast"
              messageEnd toolResult call_1 ok "slow"
              messageEnd toolResult call_2 ok "fast"
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
fn an_unknown_tool_changes_nothing_about_parallelism() {
    check_calls(
        r#"
tool slow slow 2s "slow"
tool fast slow 1s "fast"
model: call slow {} & call nope {} & call fast {}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolCallRejected call_2 unknownTool "Tool nope not found"
              toolExecutionStart call_1 slow {}
              toolExecutionStart call_3 fast {}
              toolExecutionEnd call_3 ok "fast"
              toolExecutionEnd call_1 ok "slow"
              messageEnd toolResult call_1 ok "slow"
              messageEnd toolResult call_2 error "Tool nope not found"
              messageEnd toolResult call_3 ok "fast"
            turnEnd 1, 3 results
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t t! t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn q15_max_parallel() {
    check_calls(
        r#"
set max-parallel 3
tool s slow 1s "ok"
model: call s {"n":1} & call s {"n":2} & call s {"n":3} & call s {"n":4} & call s {"n":5} & call s {"n":6} & call s {"n":7} & call s {"n":8}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 s {"n":1}
              toolExecutionStart call_2 s {"n":2}
              toolExecutionStart call_3 s {"n":3}
              toolExecutionEnd call_1 ok "ok"
              toolExecutionStart call_4 s {"n":4}
              toolExecutionEnd call_2 ok "ok"
              toolExecutionStart call_5 s {"n":5}
              toolExecutionEnd call_3 ok "ok"
              toolExecutionStart call_6 s {"n":6}
              toolExecutionEnd call_4 ok "ok"
              toolExecutionStart call_7 s {"n":7}
              toolExecutionEnd call_5 ok "ok"
              toolExecutionStart call_8 s {"n":8}
              toolExecutionEnd call_6 ok "ok"
              toolExecutionEnd call_7 ok "ok"
              toolExecutionEnd call_8 ok "ok"
              messageEnd toolResult call_1 ok "ok"
              messageEnd toolResult call_2 ok "ok"
              messageEnd toolResult call_3 ok "ok"
              messageEnd toolResult call_4 ok "ok"
              messageEnd toolResult call_5 ok "ok"
              messageEnd toolResult call_6 ok "ok"
              messageEnd toolResult call_7 ok "ok"
              messageEnd toolResult call_8 ok "ok"
            turnEnd 1, 8 results
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t t t t t t t t a
            model asked 2 times
        "#]],
    );
}
