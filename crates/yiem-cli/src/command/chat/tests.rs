//! When a question is closed.

use super::*;
use yiem::mcp::ElicitationKind;

fn form() -> (Question, oneshot::Receiver<ElicitationAnswer>) {
    let schema = serde_json::json!({"type": "object"});
    let asked = Elicitation::new("shell", "May I?", ElicitationKind::Form { schema });
    let (send, answer) = oneshot::channel();
    (Question::Form(Form::new(&asked), send), answer)
}

#[tokio::test]
async fn a_form_is_closed_when_nobody_waits_for_its_answer_and_the_next_comes_up() {
    let (first, waits) = form();
    let (second, also_waits) = form();
    let mut all = Questions::new();
    all.push(first);
    all.push(second);
    assert!(all.show_next().is_some());
    let seen = all.on_screen();
    assert!(!all.retain(Question::is_open));
    drop(waits);
    nobody_waits(all.front_mut()).await;
    assert!(all.retain(Question::is_open));
    assert_eq!(all.means("y", seen), Means::Late);
    let text = all.show_next().map(Question::text);
    assert_eq!(text.as_deref(), Some("shell asks: May I? — [y]es or [n]o"));
    assert_eq!(all.means("y", all.on_screen()), Means::Answer);
    drop(also_waits);
}

#[test]
fn only_a_yes_gives_leave() {
    for yes in ["y", "Yes"] {
        assert_eq!(leave(yes), ApprovalAnswer::Allow);
    }
    for no in ["", "n", "NO", "/no", "/No thanks"] {
        assert_eq!(leave(no), ApprovalAnswer::deny("the user said no"));
    }
    let why = ApprovalAnswer::deny("the user said no: yes but later");
    assert_eq!(leave("yes but later"), why);
}
