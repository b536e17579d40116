//! The calls of one reply: order, parallelism, rejection, termination (R-2 to R-5).

use expect_test::expect;

use crate::check;

#[test]
fn l09_one_sequential_tool_forces_all() {
    check(
        r#"
tool slow slow 2s "slow" sequential
tool fast slow 1s "fast"
model: call slow {} & call fast {}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call slow
              messageUpdate arguments {}
              messageUpdate call slow whole
              messageUpdate call fast
              messageUpdate arguments {}
              messageUpdate call fast whole
              messageEnd assistant call call_1 slow {}, call call_2 fast {} [tool_calls]
              toolExecutionStart call_1 slow {}
              toolExecutionEnd call_1 ok "slow"
              toolExecutionStart call_2 fast {}
              toolExecutionEnd call_2 ok "fast"
              messageStart toolResult
              messageEnd toolResult call_1 ok "slow"
              messageStart toolResult
              messageEnd toolResult call_2 ok "fast"
            turnEnd 1, 2 results
            turnStart 2
              messageStart assistant
              messageUpdate "done"
              messageEnd assistant "done" [end_turn]
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
    check(
        r#"
tool slow slow 2s "slow"
tool fast slow 1s "fast" sequential
model: call slow {} & call fast {}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call slow
              messageUpdate arguments {}
              messageUpdate call slow whole
              messageUpdate call fast
              messageUpdate arguments {}
              messageUpdate call fast whole
              messageEnd assistant call call_1 slow {}, call call_2 fast {} [tool_calls]
              toolExecutionStart call_1 slow {}
              toolExecutionEnd call_1 ok "slow"
              toolExecutionStart call_2 fast {}
              toolExecutionEnd call_2 ok "fast"
              messageStart toolResult
              messageEnd toolResult call_1 ok "slow"
              messageStart toolResult
              messageEnd toolResult call_2 ok "fast"
            turnEnd 1, 2 results
            turnStart 2
              messageStart assistant
              messageUpdate "done"
              messageEnd assistant "done" [end_turn]
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
    check(
        r#"
tool slow slow 2s "slow"
tool fast slow 1s "fast"
model: call slow {} & call fast {}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call slow
              messageUpdate arguments {}
              messageUpdate call slow whole
              messageUpdate call fast
              messageUpdate arguments {}
              messageUpdate call fast whole
              messageEnd assistant call call_1 slow {}, call call_2 fast {} [tool_calls]
              toolExecutionStart call_1 slow {}
              toolExecutionStart call_2 fast {}
              toolExecutionEnd call_2 ok "fast"
              toolExecutionEnd call_1 ok "slow"
              messageStart toolResult
              messageEnd toolResult call_1 ok "slow"
              messageStart toolResult
              messageEnd toolResult call_2 ok "fast"
            turnEnd 1, 2 results
            turnStart 2
              messageStart assistant
              messageUpdate "done"
              messageEnd assistant "done" [end_turn]
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
    check(
        r#"
set sequential
tool slow slow 2s "slow"
tool fast slow 1s "fast"
model: call slow {} & call fast {}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call slow
              messageUpdate arguments {}
              messageUpdate call slow whole
              messageUpdate call fast
              messageUpdate arguments {}
              messageUpdate call fast whole
              messageEnd assistant call call_1 slow {}, call call_2 fast {} [tool_calls]
              toolExecutionStart call_1 slow {}
              toolExecutionEnd call_1 ok "slow"
              toolExecutionStart call_2 fast {}
              toolExecutionEnd call_2 ok "fast"
              messageStart toolResult
              messageEnd toolResult call_1 ok "slow"
              messageStart toolResult
              messageEnd toolResult call_2 ok "fast"
            turnEnd 1, 2 results
            turnStart 2
              messageStart assistant
              messageUpdate "done"
              messageEnd assistant "done" [end_turn]
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
    check(
        r#"
tool slow slow 2s "slow"
tool fast slow 1s "fast"
model: call slow {} & call nope {} & call fast {}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call slow
              messageUpdate arguments {}
              messageUpdate call slow whole
              messageUpdate call nope
              messageUpdate arguments {}
              messageUpdate call nope whole
              messageUpdate call fast
              messageUpdate arguments {}
              messageUpdate call fast whole
              messageEnd assistant call call_1 slow {}, call call_2 nope {}, call call_3 fast {} [tool_calls]
              toolCallRejected call_2 unknownTool "Tool nope not found"
              toolExecutionStart call_1 slow {}
              toolExecutionStart call_3 fast {}
              toolExecutionEnd call_3 ok "fast"
              toolExecutionEnd call_1 ok "slow"
              messageStart toolResult
              messageEnd toolResult call_1 ok "slow"
              messageStart toolResult
              messageEnd toolResult call_2 error "Tool nope not found"
              messageStart toolResult
              messageEnd toolResult call_3 ok "fast"
            turnEnd 1, 3 results
            turnStart 2
              messageStart assistant
              messageUpdate "done"
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t t! t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn l28_unknown_tool() {
    check(
        r#"
tool echo echo
model: call nope {}
model: say "sorry"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call nope
              messageUpdate arguments {}
              messageUpdate call nope whole
              messageEnd assistant call call_1 nope {} [tool_calls]
              toolCallRejected call_1 unknownTool "Tool nope not found"
              messageStart toolResult
              messageEnd toolResult call_1 error "Tool nope not found"
            turnEnd 1, 1 result
            turnStart 2
              messageStart assistant
              messageUpdate "sorry"
              messageEnd assistant "sorry" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "sorry"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn l15_terminate_all() {
    check(
        r#"
set terminate all
tool a terminates "A"
tool b terminates "B"
model: call a {} & call b {}
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call a
              messageUpdate arguments {}
              messageUpdate call a whole
              messageUpdate call b
              messageUpdate arguments {}
              messageUpdate call b whole
              messageEnd assistant call call_1 a {}, call call_2 b {} [tool_calls]
              toolExecutionStart call_1 a {}
              toolExecutionStart call_2 b {}
              toolExecutionEnd call_1 ok terminate "A"
              toolExecutionEnd call_2 ok terminate "B"
              messageStart toolResult
              messageEnd toolResult call_1 ok "A"
              messageStart toolResult
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
    check(
        r#"
set terminate all
tool a terminates "A"
tool echo echo
model: call a {} & call echo {"value":"x"}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call a
              messageUpdate arguments {}
              messageUpdate call a whole
              messageUpdate call echo
              messageUpdate arguments {"value":"x"}
              messageUpdate call echo whole
              messageEnd assistant call call_1 a {}, call call_2 echo {"value":"x"} [tool_calls]
              toolExecutionStart call_1 a {}
              toolExecutionStart call_2 echo {"value":"x"}
              toolExecutionEnd call_1 ok terminate "A"
              toolExecutionEnd call_2 ok "x"
              messageStart toolResult
              messageEnd toolResult call_1 ok "A"
              messageStart toolResult
              messageEnd toolResult call_2 ok "x"
            turnEnd 1, 2 results
            turnStart 2
              messageStart assistant
              messageUpdate "done"
              messageEnd assistant "done" [end_turn]
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
    check(
        r#"
tool a terminates "A"
tool echo echo
model: call a {} & call echo {"value":"x"}
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call a
              messageUpdate arguments {}
              messageUpdate call a whole
              messageUpdate call echo
              messageUpdate arguments {"value":"x"}
              messageUpdate call echo whole
              messageEnd assistant call call_1 a {}, call call_2 echo {"value":"x"} [tool_calls]
              toolExecutionStart call_1 a {}
              toolExecutionStart call_2 echo {"value":"x"}
              toolExecutionEnd call_1 ok terminate "A"
              toolExecutionEnd call_2 ok "x"
              messageStart toolResult
              messageEnd toolResult call_1 ok "A"
              messageStart toolResult
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
    check(
        r#"
tool a terminates "A"
model: say "mine" & call a {}
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate "mine"
              messageUpdate call a
              messageUpdate arguments {}
              messageUpdate call a whole
              messageEnd assistant "mine", call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              toolExecutionEnd call_1 ok terminate "A"
              messageStart toolResult
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
    check(
        r#"
tool a terminates "A"
tool s slow 2s "slow"
model: call a {} & call s {}
model: say "and Rome"
user: hi
at 1s: steer "Rome?"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call a
              messageUpdate arguments {}
              messageUpdate call a whole
              messageUpdate call s
              messageUpdate arguments {}
              messageUpdate call s whole
              messageEnd assistant call call_1 a {}, call call_2 s {} [tool_calls]
              toolExecutionStart call_1 a {}
              toolExecutionStart call_2 s {}
              toolExecutionEnd call_1 ok terminate "A"
              queueChanged queued user "Rome?", 1 + 0 wait
              toolExecutionEnd call_2 ok "slow"
              messageStart toolResult
              messageEnd toolResult call_1 ok "A"
              messageStart toolResult
              messageEnd toolResult call_2 ok "slow"
            turnEnd 1, 2 results
              queueChanged delivered user "Rome?", 0 + 0 wait
            turnStart 2
              messageStart user
              messageEnd user "Rome?"
              messageStart assistant
              messageUpdate "and Rome"
              messageEnd assistant "and Rome" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "and Rome"
            history u a t t u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn v07_missing_two() {
    check(
        r#"
tool echo echo
model: call echo {}
model: say "sorry"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call echo
              messageUpdate arguments {}
              messageUpdate call echo whole
              messageEnd assistant call call_1 echo {} [tool_calls]
              toolCallRejected call_1 invalidArguments "Missing required arguments: value"
              messageStart toolResult
              messageEnd toolResult call_1 error "Missing required arguments: value"
            turnEnd 1, 1 result
            turnStart 2
              messageStart assistant
              messageUpdate "sorry"
              messageEnd assistant "sorry" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "sorry"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn unreadable_arguments_are_quoted_to_the_model() {
    check(
        r#"
tool echo echo
model: raw echo "{\"value\": "
model: say "sorry"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call echo
              messageUpdate arguments {"value": 
              messageUpdate call echo whole
              messageEnd assistant call call_1 echo unreadable "{\"value\": " [tool_calls]
              toolCallRejected call_1 unreadableArguments "The arguments of this call could not be read: the arguments are not valid JSON: EOF while parsing a value at line 1 column 9. What came: {\"value\": \nMake the call again with a JSON object as arguments."
              messageStart toolResult
              messageEnd toolResult call_1 error "The arguments of this call could not be read: the arguments are not valid JSON: EOF while parsing a value at line 1 column 9. What came: {\"value\": \nMake the call again with a JSON object as arguments."
            turnEnd 1, 1 result
            turnStart 2
              messageStart assistant
              messageUpdate "sorry"
              messageEnd assistant "sorry" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "sorry"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn empty_arguments_are_an_empty_object() {
    check(
        r#"
tool a slow 1s "ok"
model: raw a ""
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call a
              messageUpdate arguments 
              messageUpdate call a whole
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              toolExecutionEnd call_1 ok "ok"
              messageStart toolResult
              messageEnd toolResult call_1 ok "ok"
            turnEnd 1, 1 result
            turnStart 2
              messageStart assistant
              messageUpdate "done"
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
fn v03_wrong_type_lists_path_and_reason() {
    check(
        r#"
tool echo echo
model: call echo {"value":{"n":1}}
model: say "sorry"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call echo
              messageUpdate arguments {"value":{"n":1}}
              messageUpdate call echo whole
              messageEnd assistant call call_1 echo {"value":{"n":1}} [tool_calls]
              toolCallRejected call_1 invalidArguments "Invalid arguments, 1 problem:\n- value: got {\"n\":1}; expected a string\nReceived: {\"value\":{\"n\":1}}"
              messageStart toolResult
              messageEnd toolResult call_1 error "Invalid arguments, 1 problem:\n- value: got {\"n\":1}; expected a string\nReceived: {\"value\":{\"n\":1}}"
            turnEnd 1, 1 result
            turnStart 2
              messageStart assistant
              messageUpdate "sorry"
              messageEnd assistant "sorry" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "sorry"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn v02_number_becomes_the_wanted_string() {
    check(
        r#"
tool echo echo
model: call echo {"value":42}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call echo
              messageUpdate arguments {"value":42}
              messageUpdate call echo whole
              messageEnd assistant call call_1 echo {"value":42} [tool_calls]
              toolExecutionStart call_1 echo {"value":"42"}
              toolExecutionEnd call_1 ok "42"
              messageStart toolResult
              messageEnd toolResult call_1 ok "42"
            turnEnd 1, 1 result
            turnStart 2
              messageStart assistant
              messageUpdate "done"
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
fn a_failing_tool_is_a_result_and_its_siblings_go_on() {
    check(
        r#"
tool bad fails "broken"
tool echo echo
model: call bad {} & call echo {"value":"x"}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call bad
              messageUpdate arguments {}
              messageUpdate call bad whole
              messageUpdate call echo
              messageUpdate arguments {"value":"x"}
              messageUpdate call echo whole
              messageEnd assistant call call_1 bad {}, call call_2 echo {"value":"x"} [tool_calls]
              toolExecutionStart call_1 bad {}
              toolExecutionStart call_2 echo {"value":"x"}
              toolExecutionEnd call_1 error "broken"
              toolExecutionEnd call_2 ok "x"
              messageStart toolResult
              messageEnd toolResult call_1 error "broken"
              messageStart toolResult
              messageEnd toolResult call_2 ok "x"
            turnEnd 1, 2 results
            turnStart 2
              messageStart assistant
              messageUpdate "done"
              messageEnd assistant "done" [end_turn]
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
    check(
        r#"
tool bad panics
tool echo echo
model: call bad {} & call echo {"value":"x"}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call bad
              messageUpdate arguments {}
              messageUpdate call bad whole
              messageUpdate call echo
              messageUpdate arguments {"value":"x"}
              messageUpdate call echo whole
              messageEnd assistant call call_1 bad {}, call call_2 echo {"value":"x"} [tool_calls]
              toolExecutionStart call_1 bad {}
              toolExecutionStart call_2 echo {"value":"x"}
              toolExecutionEnd call_1 error "The tool bad panicked: the test tool was told to panic"
              toolExecutionEnd call_2 ok "x"
              messageStart toolResult
              messageEnd toolResult call_1 error "The tool bad panicked: the test tool was told to panic"
              messageStart toolResult
              messageEnd toolResult call_2 ok "x"
            turnEnd 1, 2 results
            turnStart 2
              messageStart assistant
              messageUpdate "done"
              messageEnd assistant "done" [end_turn]
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
    check(
        r#"
tool bad panics
model: call bad {}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call bad
              messageUpdate arguments {}
              messageUpdate call bad whole
              messageEnd assistant call call_1 bad {} [tool_calls]
              toolExecutionStart call_1 bad {}
              toolExecutionEnd call_1 error "The tool bad panicked: the test tool was told to panic"
              messageStart toolResult
              messageEnd toolResult call_1 error "The tool bad panicked: the test tool was told to panic"
            turnEnd 1, 1 result
            turnStart 2
              messageStart assistant
              messageUpdate "done"
              messageEnd assistant "done" [end_turn]
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
    check(
        r#"
tool up updates 3 10ms
model: call up {}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call up
              messageUpdate arguments {}
              messageUpdate call up whole
              messageEnd assistant call call_1 up {} [tool_calls]
              toolExecutionStart call_1 up {}
              toolExecutionUpdate call_1 {"step":1}
              toolExecutionUpdate call_1 {"step":2}
              toolExecutionUpdate call_1 {"step":3}
              toolExecutionEnd call_1 ok "3 steps"
              messageStart toolResult
              messageEnd toolResult call_1 ok "3 steps"
            turnEnd 1, 1 result
            turnStart 2
              messageStart assistant
              messageUpdate "done"
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
fn updates_of_a_call_that_is_done_at_once_come_before_its_end() {
    check(
        r#"
tool up updates 3 0ms
model: call up {}
model: say "done" & after 5s
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call up
              messageUpdate arguments {}
              messageUpdate call up whole
              messageEnd assistant call call_1 up {} [tool_calls]
              toolExecutionStart call_1 up {}
              toolExecutionUpdate call_1 {"step":1}
              toolExecutionUpdate call_1 {"step":2}
              toolExecutionUpdate call_1 {"step":3}
              toolExecutionEnd call_1 ok "3 steps"
              messageStart toolResult
              messageEnd toolResult call_1 ok "3 steps"
            turnEnd 1, 1 result
            turnStart 2
              messageStart assistant
              messageUpdate "done"
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
fn q15_max_parallel() {
    check(
        r#"
set max-parallel 3
tool s slow 1s "ok"
model: call s {"n":1} & call s {"n":2} & call s {"n":3} & call s {"n":4} & call s {"n":5} & call s {"n":6} & call s {"n":7} & call s {"n":8}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call s
              messageUpdate arguments {"n":1}
              messageUpdate call s whole
              messageUpdate call s
              messageUpdate arguments {"n":2}
              messageUpdate call s whole
              messageUpdate call s
              messageUpdate arguments {"n":3}
              messageUpdate call s whole
              messageUpdate call s
              messageUpdate arguments {"n":4}
              messageUpdate call s whole
              messageUpdate call s
              messageUpdate arguments {"n":5}
              messageUpdate call s whole
              messageUpdate call s
              messageUpdate arguments {"n":6}
              messageUpdate call s whole
              messageUpdate call s
              messageUpdate arguments {"n":7}
              messageUpdate call s whole
              messageUpdate call s
              messageUpdate arguments {"n":8}
              messageUpdate call s whole
              messageEnd assistant call call_1 s {"n":1}, call call_2 s {"n":2}, call call_3 s {"n":3}, call call_4 s {"n":4}, call call_5 s {"n":5}, call call_6 s {"n":6}, call call_7 s {"n":7}, call call_8 s {"n":8} [tool_calls]
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
              messageStart toolResult
              messageEnd toolResult call_1 ok "ok"
              messageStart toolResult
              messageEnd toolResult call_2 ok "ok"
              messageStart toolResult
              messageEnd toolResult call_3 ok "ok"
              messageStart toolResult
              messageEnd toolResult call_4 ok "ok"
              messageStart toolResult
              messageEnd toolResult call_5 ok "ok"
              messageStart toolResult
              messageEnd toolResult call_6 ok "ok"
              messageStart toolResult
              messageEnd toolResult call_7 ok "ok"
              messageStart toolResult
              messageEnd toolResult call_8 ok "ok"
            turnEnd 1, 8 results
            turnStart 2
              messageStart assistant
              messageUpdate "done"
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t t t t t t t t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn refused_call_has_no_start() {
    check(
        r#"
tool echo echo
refuse echo "not here"
model: call echo {"value":"x"}
model: say "all right"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call echo
              messageUpdate arguments {"value":"x"}
              messageUpdate call echo whole
              messageEnd assistant call call_1 echo {"value":"x"} [tool_calls]
              toolCallRejected call_1 blocked "not here"
              messageStart toolResult
              messageEnd toolResult call_1 error "not here"
            turnEnd 1, 1 result
            turnStart 2
              messageStart assistant
              messageUpdate "all right"
              messageEnd assistant "all right" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "all right"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn refused_call_may_end_the_run() {
    check(
        r#"
tool echo echo
refuse echo "not here" terminate
model: call echo {"value":"x"}
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call echo
              messageUpdate arguments {"value":"x"}
              messageUpdate call echo whole
              messageEnd assistant call call_1 echo {"value":"x"} [tool_calls]
              toolCallRejected call_1 blocked "not here"
              messageStart toolResult
              messageEnd toolResult call_1 error "not here"
            turnEnd 1, 1 result
            agentEnd terminated
            outcome terminated "not here"
            history u a t!
            model asked 1 times
        "#]],
    );
}

#[test]
fn a_slow_tool_is_cut_by_its_time() {
    check(
        r#"
set tool-time 3s
tool n never
model: call n {}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call n
              messageUpdate arguments {}
              messageUpdate call n whole
              messageEnd assistant call call_1 n {} [tool_calls]
              toolExecutionStart call_1 n {}
              toolExecutionEnd call_1 error "The tool n did not end within 3 s. Whether it took effect is unknown."
              messageStart toolResult
              messageEnd toolResult call_1 error "The tool n did not end within 3 s. Whether it took effect is unknown."
            turnEnd 1, 1 result
            turnStart 2
              messageStart assistant
              messageUpdate "done"
              messageEnd assistant "done" [end_turn]
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
    check(
        r#"
set result-bytes 10
tool s slow 1s "0123456789abcdefghij"
model: call s {}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate call s
              messageUpdate arguments {}
              messageUpdate call s whole
              messageEnd assistant call call_1 s {} [tool_calls]
              toolExecutionStart call_1 s {}
              toolExecutionEnd call_1 ok "01234\n[… 10 bytes left out …]\nfghij"
              messageStart toolResult
              messageEnd toolResult call_1 ok "01234\n[… 10 bytes left out …]\nfghij"
            turnEnd 1, 1 result
            turnStart 2
              messageStart assistant
              messageUpdate "done"
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t a
            model asked 2 times
        "#]],
    );
}
