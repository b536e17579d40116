//! The loop: turns, order, unstreamed and odd replies (R-1, R-11).

use expect_test::expect;

use crate::check;

#[test]
fn l01_basic_events() {
    check(
        r#"
user: hi
model: say "hello" & whole
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageEnd assistant "hello" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "hello"
            history u a
            model asked 1 times
        "#]],
    );
}

#[test]
fn l04_tool_roundtrip() {
    check(
        r#"
tool echo echo
model: call echo {"value":"x"}
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
              messageUpdate arguments {"value":"x"}
              messageUpdate call echo whole
              messageEnd assistant call call_1 echo {"value":"x"} [tool_calls]
              toolExecutionStart call_1 echo {"value":"x"}
              toolExecutionEnd call_1 ok "x"
              messageStart toolResult
              messageEnd toolResult call_1 ok "x"
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
fn l24_unstreamed_reply_has_no_updates() {
    check(
        r#"
model: say "all at once" & whole
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageEnd assistant "all at once" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "all at once"
            history u a
            model asked 1 times
        "#]],
    );
}

#[test]
fn a_reply_that_begins_anew_says_so_and_what_came_before_does_not_count() {
    check(
        r#"
tool echo echo
model: say "the " "wrong" & call echo {"value":"x"} & restart & say "right"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate "the "
              messageUpdate "wrong"
              messageUpdate call echo
              messageUpdate arguments {"value":"x"}
              messageUpdate call echo whole
              messageUpdate restarted
              messageUpdate "right"
              messageEnd assistant "right" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "right"
            history u a
            model asked 1 times
        "#]],
    );
}

#[test]
fn streamed_reply_has_its_pieces() {
    check(
        r#"
model: think "hm" & say "Hel" "lo"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate reasoning "hm"
              messageUpdate "Hel"
              messageUpdate "lo"
              messageEnd assistant reasoning "hm", "Hello" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "Hello"
            history u a
            model asked 1 times
        "#]],
    );
}

#[test]
fn text_beside_a_call_is_kept() {
    check(
        r#"
tool echo echo
model: say "let me see" & call echo {"value":"x"}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate "let me see"
              messageUpdate call echo
              messageUpdate arguments {"value":"x"}
              messageUpdate call echo whole
              messageEnd assistant "let me see", call call_1 echo {"value":"x"} [tool_calls]
              toolExecutionStart call_1 echo {"value":"x"}
              toolExecutionEnd call_1 ok "x"
              messageStart toolResult
              messageEnd toolResult call_1 ok "x"
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
fn a21_second_prompt_sees_the_first_exchange() {
    check(
        r#"
model: say "one"
model: say "two"
user: first
user: second
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "first"
              messageStart assistant
              messageUpdate "one"
              messageEnd assistant "one" [end_turn]
            turnEnd 1
            agentEnd completed
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "second"
              messageStart assistant
              messageUpdate "two"
              messageEnd assistant "two" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "one"
            outcome completed "two"
            history u a u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn s12_tool_calls_without_any_is_an_error() {
    check(
        r#"
model: stop tool_calls
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageEnd assistant nothing [error: the model says that it calls tools (finish reason tool_calls), and its reply has neither a call nor text]
            turnEnd 1
            agentEnd failed: the model says that it calls tools (finish reason tool_calls), and its reply has neither a call nor text
            outcome failed (the model says that it calls tools (finish reason tool_calls), and its reply has neither a call nor text) ""
            history u a!
            model asked 1 times
        "#]],
    );
}

#[test]
fn s12_tool_calls_with_text_alone_is_an_end_with_a_warning() {
    check(
        r#"
model: say "so" & stop tool_calls
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate "so"
              warning "the model says that it calls tools, and its reply has text alone: taken as the end of its turn"
              messageEnd assistant "so" [tool_calls]
            turnEnd 1
            agentEnd completed
            outcome completed "so"
            history u a
            model asked 1 times
        "#]],
    );
}

#[test]
fn calls_with_stop_reason_end_turn_are_run() {
    check(
        r#"
tool echo echo
model: call echo {"value":"x"} & stop end_turn
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
              messageUpdate arguments {"value":"x"}
              messageUpdate call echo whole
              messageEnd assistant call call_1 echo {"value":"x"} [end_turn]
              toolExecutionStart call_1 echo {"value":"x"}
              toolExecutionEnd call_1 ok "x"
              messageStart toolResult
              messageEnd toolResult call_1 ok "x"
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
fn length_cut_calls_are_not_run_and_the_loop_goes_on() {
    check(
        r#"
tool echo echo
model: call echo {"value":"x"} & call echo {"value":"y"} & stop length
model: say "shorter"
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
              messageUpdate call echo
              messageUpdate arguments {"value":"y"}
              messageUpdate call echo whole
              messageEnd assistant call call_1 echo {"value":"x"}, call call_2 echo {"value":"y"} [length]
              toolCallRejected call_1 truncated "Not executed: the reply was cut by its length limit, so the arguments may be incomplete. Make the call again, with shorter arguments if need be."
              toolCallRejected call_2 truncated "Not executed: the reply was cut by its length limit, so the arguments may be incomplete. Make the call again, with shorter arguments if need be."
              messageStart toolResult
              messageEnd toolResult call_1 error "Not executed: the reply was cut by its length limit, so the arguments may be incomplete. Make the call again, with shorter arguments if need be."
              messageStart toolResult
              messageEnd toolResult call_2 error "Not executed: the reply was cut by its length limit, so the arguments may be incomplete. Make the call again, with shorter arguments if need be."
            turnEnd 1, 2 results
            turnStart 2
              messageStart assistant
              messageUpdate "shorter"
              messageEnd assistant "shorter" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "shorter"
            history u a t! t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn length_cut_text_ends_the_run() {
    check(
        r#"
model: say "too lo" & stop length
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageUpdate "too lo"
              messageEnd assistant "too lo" [length]
            turnEnd 1
            agentEnd completed
            outcome completed "too lo"
            history u a
            model asked 1 times
        "#]],
    );
}

#[test]
fn ids_that_are_missing_or_taken_are_made_new() {
    check(
        r#"
tool echo echo
model: call echo {"value":"1"} & call echo {"value":"2"} id=same & call echo {"value":"3"} id=same
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
              messageUpdate arguments {"value":"1"}
              messageUpdate call echo whole
              messageUpdate call echo
              messageUpdate arguments {"value":"2"}
              messageUpdate call echo whole
              messageUpdate call echo
              messageUpdate arguments {"value":"3"}
              messageUpdate call echo whole
              messageEnd assistant call call_1 echo {"value":"1"}, call same echo {"value":"2"}, call call_2 echo {"value":"3"} [tool_calls]
              toolExecutionStart call_1 echo {"value":"1"}
              toolExecutionStart same echo {"value":"2"}
              toolExecutionStart call_2 echo {"value":"3"}
              toolExecutionEnd call_1 ok "1"
              toolExecutionEnd same ok "2"
              toolExecutionEnd call_2 ok "3"
              messageStart toolResult
              messageEnd toolResult call_1 ok "1"
              messageStart toolResult
              messageEnd toolResult same ok "2"
              messageStart toolResult
              messageEnd toolResult call_2 ok "3"
            turnEnd 1, 3 results
            turnStart 2
              messageStart assistant
              messageUpdate "done"
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t t t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn an_empty_reply_is_an_end() {
    check(
        r#"
model: whole
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "hi"
              messageStart assistant
              messageEnd assistant nothing [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed ""
            history u a
            model asked 1 times
        "#]],
    );
}
