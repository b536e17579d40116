//! Steering and follow-ups (R-6): when they are delivered, in which order.

mod left;
mod told;

use expect_test::expect;

use crate::check_whole;

#[test]
fn q01_steer_waits_for_the_batch() {
    check_whole(
        r#"
tool a slow 2s "A"
tool b slow 3s "B"
model: call a {} & call b {}
model: say "done"
user: hi
at 1s: steer "and Rome?"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {}, call call_2 b {} [tool_calls]
              toolExecutionStart call_1 a {}
              toolExecutionStart call_2 b {}
              queueChanged queued user "and Rome?", 1 + 0 wait
              toolExecutionEnd call_1 ok "A"
              toolExecutionEnd call_2 ok "B"
              messageEnd toolResult call_1 ok "A"
              messageEnd toolResult call_2 ok "B"
            turnEnd 1, 2 results
              queueChanged delivered user "and Rome?", 0 + 0 wait
            turnStart 2
              messageEnd user "and Rome?"
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t t u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn q01_steer_waits_for_a_sequential_batch() {
    check_whole(
        r#"
set sequential
tool a slow 2s "A"
tool b slow 3s "B"
model: call a {} & call b {}
model: say "done"
user: hi
at 1s: steer "and Rome?"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {}, call call_2 b {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "and Rome?", 1 + 0 wait
              toolExecutionEnd call_1 ok "A"
              toolExecutionStart call_2 b {}
              toolExecutionEnd call_2 ok "B"
              messageEnd toolResult call_1 ok "A"
              messageEnd toolResult call_2 ok "B"
            turnEnd 1, 2 results
              queueChanged delivered user "and Rome?", 0 + 0 wait
            turnStart 2
              messageEnd user "and Rome?"
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t t u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn q02_steer_during_text_lets_the_reply_complete() {
    check_whole(
        r#"
model: say "a" "b" "c" & every 1s
model: say "done"
user: hi
at 1s: steer "and Rome?"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              queueChanged queued user "and Rome?", 1 + 0 wait
              messageEnd assistant "abc" [end_turn]
            turnEnd 1
              queueChanged delivered user "and Rome?", 0 + 0 wait
            turnStart 2
              messageEnd user "and Rome?"
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn q03_steer_all_is_one_call_that_sees_both() {
    check_whole(
        r#"
tool a slow 2s "A"
model: call a {}
model: say "done"
user: hi
at 1s: steer "one"
at 1s: steer "two"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "one", 1 + 0 wait
              queueChanged queued user "two", 2 + 0 wait
              toolExecutionEnd call_1 ok "A"
              messageEnd toolResult call_1 ok "A"
            turnEnd 1, 1 result
              queueChanged delivered user "one" user "two", 0 + 0 wait
            turnStart 2
              messageEnd user "one"
              messageEnd user "two"
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t u u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn q04_steer_one_at_a_time_is_a_call_each() {
    check_whole(
        r#"
set steering one-at-a-time
tool a slow 2s "A"
model: call a {}
model: say "to one"
model: say "to two"
user: hi
at 1s: steer "one"
at 1s: steer "two"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "one", 1 + 0 wait
              queueChanged queued user "two", 2 + 0 wait
              toolExecutionEnd call_1 ok "A"
              messageEnd toolResult call_1 ok "A"
            turnEnd 1, 1 result
              queueChanged delivered user "one", 1 + 0 wait
            turnStart 2
              messageEnd user "one"
              messageEnd assistant "to one" [end_turn]
            turnEnd 2
              queueChanged delivered user "two", 0 + 0 wait
            turnStart 3
              messageEnd user "two"
              messageEnd assistant "to two" [end_turn]
            turnEnd 3
            agentEnd completed
            outcome completed "to two"
            history u a t u a u a
            model asked 3 times
        "#]],
    );
}

#[test]
fn q05_follow_ups_one_at_a_time() {
    check_whole(
        r#"
tool a slow 2s "A"
model: call a {}
model: say "answer"
model: say "to one"
model: say "to two"
user: hi
at 1s: follow-up "one"
at 1s: follow-up "two"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "one", 0 + 1 wait
              queueChanged queued user "two", 0 + 2 wait
              toolExecutionEnd call_1 ok "A"
              messageEnd toolResult call_1 ok "A"
            turnEnd 1, 1 result
            turnStart 2
              messageEnd assistant "answer" [end_turn]
            turnEnd 2
              queueChanged delivered user "one", 0 + 1 wait
            turnStart 3
              messageEnd user "one"
              messageEnd assistant "to one" [end_turn]
            turnEnd 3
              queueChanged delivered user "two", 0 + 0 wait
            turnStart 4
              messageEnd user "two"
              messageEnd assistant "to two" [end_turn]
            turnEnd 4
            agentEnd completed
            outcome completed "to two"
            history u a t a u a u a
            model asked 4 times
        "#]],
    );
}

#[test]
fn q05_follow_ups_all() {
    check_whole(
        r#"
set follow-ups all
tool a slow 2s "A"
model: call a {}
model: say "answer"
model: say "to both"
user: hi
at 1s: follow-up "one"
at 1s: follow-up "two"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {} [tool_calls]
              toolExecutionStart call_1 a {}
              queueChanged queued user "one", 0 + 1 wait
              queueChanged queued user "two", 0 + 2 wait
              toolExecutionEnd call_1 ok "A"
              messageEnd toolResult call_1 ok "A"
            turnEnd 1, 1 result
            turnStart 2
              messageEnd assistant "answer" [end_turn]
            turnEnd 2
              queueChanged delivered user "one" user "two", 0 + 0 wait
            turnStart 3
              messageEnd user "one"
              messageEnd user "two"
              messageEnd assistant "to both" [end_turn]
            turnEnd 3
            agentEnd completed
            outcome completed "to both"
            history u a t a u u a
            model asked 3 times
        "#]],
    );
}

#[test]
fn steering_goes_before_follow_ups() {
    check_whole(
        r#"
model: say "x" & after 2s
model: say "to steering"
model: say "to follow-up"
user: hi
at 1s: follow-up "later"
at 1s: steer "now"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              queueChanged queued user "later", 0 + 1 wait
              queueChanged queued user "now", 1 + 1 wait
              messageEnd assistant "x" [end_turn]
            turnEnd 1
              queueChanged delivered user "now", 0 + 1 wait
            turnStart 2
              messageEnd user "now"
              messageEnd assistant "to steering" [end_turn]
            turnEnd 2
              queueChanged delivered user "later", 0 + 0 wait
            turnStart 3
              messageEnd user "later"
              messageEnd assistant "to follow-up" [end_turn]
            turnEnd 3
            agentEnd completed
            outcome completed "to follow-up"
            history u a u a u a
            model asked 3 times
        "#]],
    );
}

#[test]
fn interrupt_lets_steering_in_between_sequential_calls() {
    check_whole(
        r#"
set sequential
set interrupt
tool a slow 2s "A"
model: call a {"n":1} & call a {"n":2} & call a {"n":3}
model: say "done"
user: hi
at 1s: steer "stop that"
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant call call_1 a {"n":1}, call call_2 a {"n":2}, call call_3 a {"n":3} [tool_calls]
              toolExecutionStart call_1 a {"n":1}
              queueChanged queued user "stop that", 1 + 0 wait
              toolExecutionEnd call_1 ok "A"
              toolCallRejected call_2 interrupted "Not executed: a new message came in before this call began."
              toolCallRejected call_3 interrupted "Not executed: a new message came in before this call began."
              messageEnd toolResult call_1 ok "A"
              messageEnd toolResult call_2 error "Not executed: a new message came in before this call began."
              messageEnd toolResult call_3 error "Not executed: a new message came in before this call began."
            turnEnd 1, 3 results
              queueChanged delivered user "stop that", 0 + 0 wait
            turnStart 2
              messageEnd user "stop that"
              messageEnd assistant "done" [end_turn]
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t t! t! u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn a16_continue_delivers_a_follow_up() {
    check_whole(
        r#"
model: say "answer"
model: say "more"
user: hi
at 5s: follow-up "go on"
continue:
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant "answer" [end_turn]
            turnEnd 1
            agentEnd completed
            agentStart
              queueChanged delivered user "go on", 0 + 0 wait
            turnStart 1
              messageEnd user "go on"
              messageEnd assistant "more" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "answer"
            outcome completed "more"
            history u a u a
            model asked 2 times
        "#]],
    );
}

#[test]
fn l21_continue_after_a_good_answer_is_refused() {
    check_whole(
        r#"
model: say "answer"
user: hi
continue:
"#,
        expect![[r#"
            agentStart
            turnStart 1
              messageEnd user "hi"
              messageEnd assistant "answer" [end_turn]
            turnEnd 1
            agentEnd completed
            outcome completed "answer"
            refused: there is nothing to continue: the history ends with an answer and nothing is queued; send a message instead
            history u a
            model asked 1 times
        "#]],
    );
}
