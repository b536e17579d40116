//! What a model gives as arguments, and what becomes of the call (T-4, O-4, R-2).

use expect_test::expect;

use crate::check_calls;

#[test]
fn v07_missing_two() {
    check_calls(
        r#"
tool echo echo
model: call echo {}
model: say "sorry"
user: hi
"#,
        expect![[r#"
              toolCallRejected call_1 invalidArguments "Missing required arguments: value"
              messageEnd toolResult call_1 error "Missing required arguments: value"
            turnEnd 1, 1 result
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
    check_calls(
        r#"
tool echo echo
model: raw echo "{\"value\": "
model: say "sorry"
user: hi
"#,
        expect![[r#"
              toolCallRejected call_1 unreadableArguments "The arguments of this call could not be read: the arguments are not valid JSON: EOF while parsing a value at line 1 column 9. What came: {\"value\": \nMake the call again with a JSON object as arguments."
              messageEnd toolResult call_1 error "The arguments of this call could not be read: the arguments are not valid JSON: EOF while parsing a value at line 1 column 9. What came: {\"value\": \nMake the call again with a JSON object as arguments."
            turnEnd 1, 1 result
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
    check_calls(
        r#"
tool a slow 1s "ok"
model: raw a ""
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 a {}
              toolExecutionEnd call_1 ok "ok"
              messageEnd toolResult call_1 ok "ok"
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
fn v03_wrong_type_lists_path_and_reason() {
    check_calls(
        r#"
tool echo echo
model: call echo {"value":{"n":1}}
model: say "sorry"
user: hi
"#,
        expect![[r#"
              toolCallRejected call_1 invalidArguments "Invalid arguments, 1 problem:\n- value: got {\"n\":1}; expected a string\nReceived: {\"value\":{\"n\":1}}"
              messageEnd toolResult call_1 error "Invalid arguments, 1 problem:\n- value: got {\"n\":1}; expected a string\nReceived: {\"value\":{\"n\":1}}"
            turnEnd 1, 1 result
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
    check_calls(
        r#"
tool echo echo
model: call echo {"value":42}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 echo {"value":"42"}
              toolExecutionEnd call_1 ok "42"
              messageEnd toolResult call_1 ok "42"
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
fn l28_unknown_tool() {
    check_calls(
        r#"
tool echo echo
model: call nope {}
model: say "sorry"
user: hi
"#,
        expect![[r#"
              toolCallRejected call_1 unknownTool "Tool nope not found"
              messageEnd toolResult call_1 error "Tool nope not found"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "sorry"
            history u a t! a
            model asked 2 times
        "#]],
    );
}
