//! Models that fail: retries, overflow, giving up (R-12).

use expect_test::expect;

use crate::check_whole;

#[test]
fn a04_model_error_is_a_message_and_an_outcome() {
    check_whole(
        r#"
model: fail auth "boom"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant nothing [error: boom]
            turnEnd 1
            agentEnd failed: boom
            outcome failed (boom) ""
            history u a!
            model asked 1 times
        "#]],
    );
}

#[test]
fn a_panicking_model_is_an_error() {
    check_whole(
        r#"
model: say "Hel" & panic
model: say "fine"
user: hi
user: again
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant "Hel" [error: the model panicked: the scripted model was told to panic]
            turnEnd 1
            agentEnd failed: the model panicked: the scripted model was told to panic
            agentStart
            turnStart 1
              messageEnd user "again"
              messageEnd assistant "fine" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome failed (the model panicked: the scripted model was told to panic) "Hel"
            outcome completed "fine"
            history u a! u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn q16_retry_then_success() {
    check_whole(
        r#"
model: fail server "busy"
model: say "fine"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              retryScheduled 2 of 5 in 250 ms: busy
              messageEnd assistant "fine" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "fine"
            history u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn q16_retry_leaves_the_partial_message_out() {
    check_whole(
        r#"
model: say "Hel" & fail connection "reset"
model: say "Hello"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant "Hel" [error: reset]
              retryScheduled 2 of 5 in 250 ms: reset
              messageEnd assistant "Hello" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "Hello"
            history u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn q17_retries_exhausted_keep_the_last_error() {
    check_whole(
        r#"
set retries 2
model: fail server "one"
model: fail server "two"
model: fail overloaded "three"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              retryScheduled 2 of 3 in 250 ms: one
              retryScheduled 3 of 3 in 500 ms: two
              messageEnd assistant nothing [error: three]
            turnEnd 1
            agentEnd failed: three
            outcome failed (three) ""
            history u a!
            model asked 3 times
        "#]],
    );
}

#[test]
fn q18_retries_off() {
    check_whole(
        r#"
set retries 0
model: fail server "busy"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant nothing [error: busy]
            turnEnd 1
            agentEnd failed: busy
            outcome failed (busy) ""
            history u a!
            model asked 1 times
        "#]],
    );
}

#[test]
fn q19_quota_is_not_retried() {
    check_whole(
        r#"
model: fail quota "no money"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant nothing [error: no money]
            turnEnd 1
            agentEnd failed: no money
            outcome failed (no money) ""
            history u a!
            model asked 1 times
        "#]],
    );
}

#[test]
fn q21_reply_of_a_retry_may_call() {
    check_whole(
        r#"
tool echo echo
model: fail server "busy"
model: call echo {"value":"x"}
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              retryScheduled 2 of 5 in 250 ms: busy
              messageEnd assistant call call_1 echo {"value":"x"} [tool_calls]
              toolExecutionStart call_1 echo {"value":"x"}
              toolExecutionEnd call_1 ok "x"
              messageEnd toolResult call_1 ok "x"
            turnEnd 1, 1 result
            turnStart 2
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t a
            model asked 3 times
        "#]],
    );
}

#[test]
fn r05_the_server_says_how_long() {
    check_whole(
        r#"
model: fail rate_limit "slow down" 2s
model: say "fine"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              retryScheduled 2 of 5 in 2000 ms: slow down
              messageEnd assistant "fine" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "fine"
            history u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a_wait_above_the_cap_is_an_error_that_names_both() {
    check_whole(
        r#"
model: fail rate_limit "slow down" 90s
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant nothing [error: slow down; the server asks to wait 90 s, more than the 60 s that are allowed: try later, or raise the longest wait]
            turnEnd 1
            agentEnd failed: slow down; the server asks to wait 90 s, more than the 60 s that are allowed: try later, or raise the longest wait
            outcome failed (slow down; the server asks to wait 90 s, more than the 60 s that are allowed: try later, or raise the longest wait) ""
            history u a!
            model asked 1 times
        "#]],
    );
}

#[test]
fn a_stream_that_breaks_off_is_retried() {
    check_whole(
        r#"
model: say "Hel" & break-off
model: say "Hello"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant "Hel" [error: the model's reply ended without saying that it was done]
              retryScheduled 2 of 5 in 250 ms: the model's reply ended without saying that it was done
              messageEnd assistant "Hello" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "Hello"
            history u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn overflow_is_compacted_once_and_tried_again() {
    check_whole(
        r#"
model: say "one"
model: say "two"
model: say "three"
model: fail context_length "too long"
model: say "the summary"
model: say "four"
user: first
user: second
user: third
user: fourth
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "first"
              messageEnd assistant "one" [end_turn]
            turnEnd 1
            agentEnd completed
            agentStart
            turnStart 1
              messageEnd user "second"
              messageEnd assistant "two" [end_turn]
            turnEnd 1
            agentEnd completed
            agentStart
            turnStart 1
              messageEnd user "third"
              messageEnd assistant "three" [end_turn]
            turnEnd 1
            agentEnd completed
            agentStart
            turnStart 1
              messageEnd user "fourth"
              compactionStart: too long
              compactionEnd 7 to 4 messages
              messageEnd assistant "four" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "one"
            outcome completed "two"
            outcome completed "three"
            outcome completed "four"
            history u a u a u a u a
            model asked 6 times
        "#]],
    );
}

#[test]
fn overflow_again_after_compaction_is_an_error() {
    check_whole(
        r#"
model: say "one"
model: say "two"
model: say "three"
model: fail context_length "too long"
model: say "the summary"
model: fail context_length "still too long"
user: first
user: second
user: third
user: fourth
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "first"
              messageEnd assistant "one" [end_turn]
            turnEnd 1
            agentEnd completed
            agentStart
            turnStart 1
              messageEnd user "second"
              messageEnd assistant "two" [end_turn]
            turnEnd 1
            agentEnd completed
            agentStart
            turnStart 1
              messageEnd user "third"
              messageEnd assistant "three" [end_turn]
            turnEnd 1
            agentEnd completed
            agentStart
            turnStart 1
              messageEnd user "fourth"
              compactionStart: too long
              compactionEnd 7 to 4 messages
              messageEnd assistant nothing [error: still too long]
            turnEnd 1
            agentEnd failed: still too long
            outcome completed "one"
            outcome completed "two"
            outcome completed "three"
            outcome failed (still too long) ""
            history u a u a u a u a!
            model asked 6 times
        "#]],
    );
}

#[test]
fn overflow_with_nothing_to_shorten_is_an_error() {
    check_whole(
        r#"
model: fail context_length "too long"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              compactionStart: too long
              compactionEnd failed: there is nothing older that could be summarised
              messageEnd assistant nothing [error: too long; it could not be shortened: there is nothing older that could be summarised]
            turnEnd 1
            agentEnd failed: too long; it could not be shortened: there is nothing older that could be summarised
            outcome failed (too long; it could not be shortened: there is nothing older that could be summarised) ""
            history u a!
            model asked 1 times
        "#]],
    );
}

#[test]
fn continue_after_an_error() {
    check_whole(
        r#"
model: fail auth "no key"
model: say "fine"
user: hi
continue:
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant nothing [error: no key]
            turnEnd 1
            agentEnd failed: no key
            agentStart
            turnStart 1
              messageEnd assistant "fine" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome failed (no key) ""
            outcome completed "fine"
            history u a! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a_retry_after_many_failures_begins_anew_in_the_next_turn() {
    check_whole(
        r#"
set retries 1
tool echo echo
model: fail server "busy"
model: call echo {"value":"x"}
model: fail server "busy"
model: say "done"
user: hi
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              retryScheduled 2 of 2 in 250 ms: busy
              messageEnd assistant call call_1 echo {"value":"x"} [tool_calls]
              toolExecutionStart call_1 echo {"value":"x"}
              toolExecutionEnd call_1 ok "x"
              messageEnd toolResult call_1 ok "x"
            turnEnd 1, 1 result
            turnStart 2
              retryScheduled 2 of 2 in 250 ms: busy
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t a
            model asked 4 times
        "#]],
    );
}

#[test]
fn the_message_of_a_failure_says_all_of_it_with_and_without_what_had_come() {
    for begun in ["", "say \"half\" & "] {
        for (fails, why) in [
            ("fail rate_limit \"slow\" 61s", "asks to wait 61 s"),
            ("fail auth \"no key\"", "no key"),
            ("break-off", "ended without saying"),
            ("fail context_length \"long\"", "could not be shortened"),
        ] {
            let reply = format!("model: {begun}{fails}\n");
            let script = format!("set retries 1\n{reply}{reply}user: hi\n");
            let transcript = crate::play(&script);
            let last = |start: &str| {
                let mut lines = transcript
                    .lines()
                    .filter(|l| l.trim_start().starts_with(start));
                lines.next_back().unwrap_or_default().to_owned()
            };
            let message = last("messageEnd assistant");
            let (_, told) = message.split_once("[error: ").unwrap();
            let told = told.trim_end_matches(']');
            assert!(told.contains(why), "{transcript}");
            assert_eq!(last("agentEnd"), format!("agentEnd failed: {told}"));
        }
    }
}
