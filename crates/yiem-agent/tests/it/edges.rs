//! Limits at none, at one, exactly reached, and passed by one; of a run and of a session (R-11).

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use crate::play;

/// Plays a script once for each line of settings; tells outcomes and how often the model was
/// asked.
fn check_each(settings: &[&str], script: &str, expected: Expect) {
    let mut told = String::new();
    for setting in settings {
        let _ = writeln!(told, "{setting}");
        let transcript = play(&format!("{}\n{script}", setting.replace("; ", "\n")));
        for line in transcript.lines() {
            if ["outcome", "history", "model asked", "refused", "left"]
                .iter()
                .any(|word| line.starts_with(word))
            {
                let _ = writeln!(told, "  {line}");
            }
        }
    }
    expected.assert_eq(&told);
}

const THREE_TURNS: &str = r#"
tool echo echo
model: call echo {"value":"1"} & usage 6 4
model: call echo {"value":"2"} & usage 6 4
model: say "done" & usage 6 4
model: say "again" & usage 6 4
user: hi
"#;

#[test]
fn turns() {
    check_each(
        &[
            "set turns 0",
            "set turns 1",
            "set turns 2",
            "set turns 3",
            "set turns 4",
        ],
        THREE_TURNS,
        expect![[r#"
            set turns 0
              outcome completed "done"
              history u a t a t a
              model asked 3 times
            set turns 1
              outcome limit (a run may take 1 turn at most) ""
              history u a t
              model asked 1 times
            set turns 2
              outcome limit (a run may take 2 turns at most) ""
              history u a t a t
              model asked 2 times
            set turns 3
              outcome completed "done"
              history u a t a t a
              model asked 3 times
            set turns 4
              outcome completed "done"
              history u a t a t a
              model asked 3 times
        "#]],
    );
}

#[test]
fn tool_calls() {
    check_each(
        &[
            "set tool-calls 0",
            "set tool-calls 1",
            "set tool-calls 2",
            "set tool-calls 3",
        ],
        THREE_TURNS,
        expect![[r#"
            set tool-calls 0
              outcome limit (a run may make 0 tool calls at most) ""
              history u a t!
              model asked 1 times
            set tool-calls 1
              outcome limit (a run may make 1 tool call at most) ""
              history u a t a t!
              model asked 2 times
            set tool-calls 2
              outcome completed "done"
              history u a t a t a
              model asked 3 times
            set tool-calls 3
              outcome completed "done"
              history u a t a t a
              model asked 3 times
        "#]],
    );
}

#[test]
fn tool_calls_of_one_batch() {
    check_each(
        &["set tool-calls 1", "set tool-calls 2", "set tool-calls 3"],
        r#"
tool echo echo
model: call echo {"value":"1"} & call echo {"value":"2"} & call echo {"value":"3"}
model: say "done"
user: hi
"#,
        expect![[r#"
            set tool-calls 1
              outcome limit (a run may make 1 tool call at most) ""
              history u a t t! t!
              model asked 1 times
            set tool-calls 2
              outcome limit (a run may make 2 tool calls at most) ""
              history u a t t t!
              model asked 1 times
            set tool-calls 3
              outcome completed "done"
              history u a t t t a
              model asked 2 times
        "#]],
    );
}

#[test]
fn rejected_calls_do_not_count_as_calls() {
    check_each(
        &["set tool-calls 1"],
        r#"
tool echo echo
model: call nope {} & call echo {} & call echo {"value":"1"}
model: say "done"
user: hi
"#,
        expect![[r#"
            set tool-calls 1
              outcome completed "done"
              history u a t! t! t a
              model asked 2 times
        "#]],
    );
}

#[test]
fn tokens_of_a_run() {
    check_each(
        &[
            "set tokens 0",
            "set tokens 1",
            "set tokens 10",
            "set tokens 11",
            "set tokens 20",
            "set tokens 21",
            "set tokens 30",
        ],
        THREE_TURNS,
        expect![[r#"
            set tokens 0
              outcome limit (0 tokens are used, a run may use 0) ""
              history u
              model asked 0 times
            set tokens 1
              outcome limit (10 tokens are used, a run may use 1) ""
              history u a t
              model asked 1 times
            set tokens 10
              outcome limit (10 tokens are used, a run may use 10) ""
              history u a t
              model asked 1 times
            set tokens 11
              outcome limit (20 tokens are used, a run may use 11) ""
              history u a t a t
              model asked 2 times
            set tokens 20
              outcome limit (20 tokens are used, a run may use 20) ""
              history u a t a t
              model asked 2 times
            set tokens 21
              outcome completed "done"
              history u a t a t a
              model asked 3 times
            set tokens 30
              outcome completed "done"
              history u a t a t a
              model asked 3 times
        "#]],
    );
}

#[test]
fn tokens_of_a_session_count_earlier_runs_and_those_of_a_run_do_not() {
    check_each(
        &[
            "set session-tokens 30",
            "set session-tokens 31",
            "set tokens 30",
        ],
        &format!("{THREE_TURNS}user: more\n"),
        expect![[r#"
            set session-tokens 30
              outcome completed "done"
              outcome limit (30 tokens are used, the session may use 30) ""
              history u a t a t a u
              model asked 3 times
            set session-tokens 31
              outcome completed "done"
              outcome completed "again"
              history u a t a t a u a
              model asked 4 times
            set tokens 30
              outcome completed "done"
              outcome completed "again"
              history u a t a t a u a
              model asked 4 times
        "#]],
    );
}

#[test]
fn tokens_of_failed_attempts_and_of_sub_agents_count() {
    check_each(
        &["set tokens 25", "set tokens 26"],
        r#"
tool sub agent
model: call sub {"prompt":"do"} & usage 5 5
model: say "in it" & usage 10 5
model: say "done" & usage 5 5
user: hi
"#,
        expect![[r#"
            set tokens 25
              outcome limit (25 tokens are used, a run may use 25) ""
              history u a t
              model asked 2 times
            set tokens 26
              outcome completed "done"
              history u a t a
              model asked 3 times
        "#]],
    );
}

#[test]
fn wall_time() {
    check_each(
        &["set wall 0s", "set wall 1s", "set wall 2s", "set wall 3s"],
        r#"
model: say "a" "b" & every 1s
user: hi
"#,
        expect![[r#"
            set wall 0s
              outcome limit (0 s are the most time that a run may take) "a"
              history u a!
              model asked 1 times
            set wall 1s
              outcome limit (1 s are the most time that a run may take) "ab"
              history u a!
              model asked 1 times
            set wall 2s
              outcome completed "ab"
              history u a
              model asked 1 times
            set wall 3s
              outcome completed "ab"
              history u a
              model asked 1 times
        "#]],
    );
}

#[test]
fn identical_calls() {
    check_each(
        &[
            "set identical 0 0",
            "set identical 0 1",
            "set identical 1 0",
            "set identical 2 3",
            "set identical 0 4",
            "set identical 3 3",
        ],
        r#"
tool echo echo
model: call echo {"value":"x"}
model: call echo {"value":"x"}
model: call echo {"value":"x"}
model: say "done"
user: hi
"#,
        expect![[r#"
            set identical 0 0
              outcome completed "done"
              history u a t a t a t a
              model asked 4 times
            set identical 0 1
              outcome limit (the tool echo was called 1 time with the same arguments) ""
              history u a t!
              model asked 1 times
            set identical 1 0
              outcome completed "done"
              history u a t a t a t a
              model asked 4 times
            set identical 2 3
              outcome limit (the tool echo was called 3 times with the same arguments) ""
              history u a t a t a t!
              model asked 3 times
            set identical 0 4
              outcome completed "done"
              history u a t a t a t a
              model asked 4 times
            set identical 3 3
              outcome limit (the tool echo was called 3 times with the same arguments) ""
              history u a t a t a t!
              model asked 3 times
        "#]],
    );
}

#[test]
fn identical_calls_of_one_batch_count_one_by_one() {
    check_each(
        &["set identical 0 2", "set identical 0 3"],
        r#"
tool echo echo
model: call echo {"value":"x"} & call echo {"value":"x"} & call echo {"value":"y"}
model: say "done"
user: hi
"#,
        expect![[r#"
            set identical 0 2
              outcome limit (the tool echo was called 2 times with the same arguments) ""
              history u a t t! t
              model asked 1 times
            set identical 0 3
              outcome completed "done"
              history u a t t t a
              model asked 2 times
        "#]],
    );
}

#[test]
fn retries() {
    check_each(
        &[
            "set retries 0",
            "set retries 1",
            "set retries 2",
            "set retries 3",
        ],
        r#"
model: fail server "one"
model: fail server "two"
model: say "done"
user: hi
"#,
        expect![[r#"
            set retries 0
              outcome failed (one) ""
              history u a!
              model asked 1 times
            set retries 1
              outcome failed (two) ""
              history u a!
              model asked 2 times
            set retries 2
              outcome completed "done"
              history u a
              model asked 3 times
            set retries 3
              outcome completed "done"
              history u a
              model asked 3 times
        "#]],
    );
}

#[test]
fn calls_at_once() {
    check_each(
        &[
            "set max-parallel 0",
            "set max-parallel 1",
            "set max-parallel 2",
        ],
        r#"
tool s slow 1s "ok"
model: call s {"n":1} & call s {"n":2} & call s {"n":3}
model: say "done"
user: hi
"#,
        expect![[r#"
            set max-parallel 0
              outcome completed "done"
              history u a t t t a
              model asked 2 times
            set max-parallel 1
              outcome completed "done"
              history u a t t t a
              model asked 2 times
            set max-parallel 2
              outcome completed "done"
              history u a t t t a
              model asked 2 times
        "#]],
    );
}

#[test]
fn time_of_a_call_and_of_the_grace_period() {
    check_each(
        &[
            "set tool-time 0s",
            "set tool-time 1s",
            "set tool-time 2s",
            "set tool-time 3s",
        ],
        r#"
tool s deaf 2s "ok"
model: call s {}
model: say "done"
user: hi
"#,
        expect![[r#"
            set tool-time 0s
              outcome completed "done"
              history u a t a
              model asked 2 times
            set tool-time 1s
              outcome completed "done"
              history u a t! a
              model asked 2 times
            set tool-time 2s
              outcome completed "done"
              history u a t a
              model asked 2 times
            set tool-time 3s
              outcome completed "done"
              history u a t a
              model asked 2 times
        "#]],
    );
    check_each(
        &["set grace 0s", "set grace 1s", "set grace 2s"],
        r#"
tool s deaf 2s "ok"
model: call s {}
user: hi
at 1s: abort
"#,
        expect![[r#"
            set grace 0s
              outcome aborted ""
              history u a t!
              model asked 1 times
            set grace 1s
              outcome aborted ""
              history u a t
              model asked 1 times
            set grace 2s
              outcome aborted ""
              history u a t
              model asked 1 times
        "#]],
    );
}

#[test]
fn repairs_of_a_wanted_answer() {
    check_each(
        &["set repairs 0", "set repairs 1", "set repairs 2"],
        r#"
want {"type":"integer"}
model: say "no number"
model: call final_answer {"answer":"neither"}
model: call final_answer {"answer":3}
prompt: hi
"#,
        expect![[r#"
            set repairs 0
              outcome failed (the answer is not of the wanted shape: The answer is no JSON. Call the tool final_answer with the answer.) "no number"
              history u a
              model asked 1 times
            set repairs 1
              outcome failed (the answer is not of the wanted shape: Invalid arguments, 1 problem:
              history u a u a t!
              model asked 2 times
            set repairs 2
              outcome terminated "The answer was given."
              history u a u a t! a t
              model asked 3 times
        "#]],
    );
}
