//! Questions in, lines in, what they are for out.

use super::*;

/// The questions, the first of them shown, as the conversation does.
fn asked(questions: &[&'static str]) -> Questions<&'static str> {
    let mut all = Questions::new();
    for question in questions {
        all.push(*question);
    }
    all.show_next();
    all
}

#[test]
fn only_the_first_is_shown_and_once() {
    let mut all = Questions::new();
    assert_eq!(all.show_next(), None);
    assert_eq!(all.on_screen(), None);
    all.push("form 1");
    assert_eq!(all.on_screen(), None, "not shown yet");
    assert_eq!(all.show_next(), Some(&"form 1"));
    all.push("form 2");
    assert_eq!(all.show_next(), None);
    assert_eq!(all.pop(), Some("form 1"));
    assert_eq!(all.on_screen(), None, "the second was never seen");
    assert_eq!(all.show_next(), Some(&"form 2"));
    assert_eq!(all.show_next(), None);
}

#[test]
fn of_two_forms_each_gets_the_line_that_was_begun_under_it() {
    let mut all = asked(&["form 1", "form 2"]);
    let first = all.on_screen();
    assert_eq!(all.means("Ada", first), Means::Answer);
    all.pop();
    // The same key twice: the second stroke was for the first form as well.
    assert_eq!(all.means("Ada", first), Means::Late);
    all.show_next();
    assert_eq!(all.means("Ada", first), Means::Late);
    assert_ne!(all.on_screen(), first);
    assert_eq!(all.means("Oslo", all.on_screen()), Means::Answer);
}

#[test]
fn each_field_of_a_form_wants_a_line_that_was_begun_under_it() {
    let mut all = asked(&["form", "approval"]);
    let first = all.on_screen();
    all.asks_anew();
    assert_eq!(all.means("y", first), Means::Late);
    assert_eq!(all.show_next(), Some(&"form"));
    assert_eq!(
        all.means("y", first),
        Means::Late,
        "it was for the field before"
    );
    assert_eq!(all.means("y", all.on_screen()), Means::Answer);
}

#[test]
fn a_form_and_an_approval_are_answered_in_the_order_they_came() {
    for order in [["approval", "form"], ["form", "approval"]] {
        let mut all = asked(&order);
        let first = all.on_screen();
        assert_eq!(all.means("y", first), Means::Answer);
        assert_eq!(all.front_mut().copied(), Some(order[0]));
        assert_eq!(all.pop(), Some(order[0]));
        assert_eq!(all.means("y", first), Means::Late);
        assert_eq!(all.show_next(), Some(&order[1]));
        assert_eq!(all.means("y", all.on_screen()), Means::Answer);
        assert_eq!(all.pop(), Some(order[1]));
        assert_eq!(all.means("y", None), Means::Say);
    }
}

#[test]
fn a_yes_to_a_question_that_closed_meanwhile_is_for_nobody() {
    for next in [None, Some("approval"), Some("form 2")] {
        let mut all = asked(&["form 1"]);
        let begun = all.on_screen();
        all.show_next();
        if let Some(next) = next {
            all.push(next);
        }
        assert!(all.retain(|question| *question != "form 1"));
        // Neither before the next one is shown nor after.
        assert_eq!(all.means("yes", begun), Means::Late);
        assert_eq!(all.show_next(), next.as_ref());
        assert_eq!(all.means("yes", begun), Means::Late);
        assert_eq!(all.means("  ", begun), Means::Nothing);
    }
}

#[test]
fn one_that_closes_behind_the_first_changes_nothing_for_the_line() {
    let mut all = asked(&["approval", "form 1", "form 2"]);
    let begun = all.on_screen();
    assert!(!all.retain(|question| *question != "form 1"));
    assert_eq!(all.show_next(), None);
    assert_eq!(all.means("y", begun), Means::Answer);
    all.pop();
    assert_eq!(all.show_next(), Some(&"form 2"));
}

#[test]
fn what_was_begun_before_a_question_came_is_said_to_the_agent() {
    let mut all = asked(&["form"]);
    assert_eq!(all.means("and in Rome?", None), Means::SayBeside);
    assert_eq!(all.means("y", None), Means::SayBeside);
    assert_eq!(all.means("", None), Means::Nothing);
    // One that was not shown is never answered, whatever is claimed.
    all.push("approval");
    all.pop();
    assert_eq!(all.means("y", None), Means::SayBeside);
    assert_eq!(all.means("y", Some(Number::MIN)), Means::Late);
}

#[test]
fn commands_are_never_answers() {
    let mut all = asked(&["form"]);
    let begun = all.on_screen();
    for begun in [begun, None] {
        assert_eq!(all.means("/quit", begun), Means::Command(Slash::Quit));
        assert_eq!(all.means(" /HELP ", begun), Means::Command(Slash::Help));
        let unknown = Slash::Unknown("yes".into());
        assert_eq!(all.means("/yes", begun), Means::Command(unknown));
    }
    // A path is none.
    assert_eq!(all.means("/etc/hosts", begun), Means::Answer);
    // `/no` declines what was seen, and nothing else.
    assert_eq!(all.means("/no", begun), Means::Answer);
    assert_eq!(all.means("/no", None), Means::Command(Slash::No));
    all.clear();
    assert_eq!(all.means("/no", begun), Means::Command(Slash::No));
}

#[test]
fn an_empty_line_answers_what_was_seen() {
    let all = asked(&["approval"]);
    assert_eq!(all.means("", all.on_screen()), Means::Answer);
    assert_eq!(Questions::<()>::new().means("", None), Means::Nothing);
}
