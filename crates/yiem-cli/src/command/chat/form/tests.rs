//! Lines in, an answer out.

use super::*;
use serde_json::json;

fn asked(kind: Value) -> Elicitation {
    // As a server asks: through the client, which alone makes these.
    Elicitation::new(
        "weather",
        "Where do you\u{1b}[2J live?",
        match kind.get("url") {
            Some(url) => ElicitationKind::Url {
                url: url.as_str().expect("text").to_owned(),
                id: None,
            },
            None => ElicitationKind::Form { schema: kind },
        },
    )
}

fn answer(schema: Value, lines: &[&str]) -> (ElicitationAnswer, Vec<String>) {
    let mut form = Form::new(&asked(schema));
    let mut said = vec![form.begin()];
    for line in lines {
        match form.take(line) {
            Step::Ask(text) => said.push(text),
            Step::Done(answer) => return (answer, said),
        }
    }
    panic!("it asks still: {said:#?}")
}

fn accepted(values: Value) -> ElicitationAnswer {
    ElicitationAnswer::Accept(values.as_object().cloned().expect("an object"))
}

#[test]
fn fields_are_asked_one_after_another_and_held_to_their_kind() {
    let schema = json!({"type": "object", "required": ["city", "days"], "properties": {
        "city": {"type": "string", "title": "City", "description": "where you live", "minLength": 2},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "warm": {"type": "boolean", "default": true},
        "unit": {"type": "string", "enum": ["c", "f"], "enumNames": ["Celsius", "Fahrenheit"]},
        "more": {"type": "array", "items": {"anyOf": [{"const": "wind", "title": "Wind"}, {"const": "rain", "title": "Rain"}]}},
        "note": {"type": "string"},
    }});
    let lines = [
        "",
        "x",
        "Oslo",
        "many",
        "20",
        "3",
        "",
        "kelvin",
        "Fahrenheit",
        "1, rain",
        "",
    ];
    let (answer, said) = answer(schema, &lines);
    assert_eq!(
        answer,
        accepted(
            json!({"city": "Oslo", "days": 3, "warm": true, "unit": "f", "more": ["wind", "rain"]})
        )
    );
    let said = said.join("\n");
    for words in [
        "weather asks: Where do you",
        "City: where you live (text)",
        "this has to be told",
        "not long enough: at least 2",
        "that is no whole number",
        "too large: at most 14",
        "empty for true",
        "1 Celsius; 2 Fahrenheit",
        "kelvin cannot be chosen",
        "several, with commas; 1 Wind; 2 Rain",
        "empty for none",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(
        !said.contains('\u{1b}'),
        "a server does not draw on the terminal"
    );
}

#[test]
fn a_person_can_decline_at_any_time() {
    let schema = json!({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    assert_eq!(
        answer(schema.clone(), &["/no"]).0,
        ElicitationAnswer::Decline
    );
    assert_eq!(answer(schema, &["x", "/no"]).0, ElicitationAnswer::Decline);
    for (line, expected) in [
        ("y", accepted(json!({}))),
        ("yes", accepted(json!({}))),
        ("n", ElicitationAnswer::Decline),
        ("", ElicitationAnswer::Decline),
        ("what?", ElicitationAnswer::Decline),
    ] {
        assert_eq!(answer(json!({}), &[line]).0, expected, "{line}");
    }
}

#[test]
fn an_address_is_shown_whole_before_it_is_agreed_to() {
    let url = format!("https://h.example/{}", "x".repeat(900));
    let (agreed, said) = answer(json!({"url": url}), &["y"]);
    assert_eq!(agreed, accepted(json!({})));
    assert!(said[0].contains(&url), "{said:?}");
    assert_eq!(
        answer(json!({"url": url}), &["no"]).0,
        ElicitationAnswer::Decline
    );
}
