use super::*;

fn spec(schema: Value) -> OutputSpec {
    OutputSpec::new(schema, OutputMode::ResponseFormat).unwrap()
}

fn good(check: AnswerCheck) -> Option<Value> {
    match check {
        AnswerCheck::Good(value) => Some(value),
        AnswerCheck::Wrong(_) => None,
    }
}

#[test]
fn json_is_found_in_a_text() {
    for text in [
        "{\"a\":1}",
        "Here: ```json\n{\"a\":1}\n```",
        "Well, {\"a\":1} it is.",
    ] {
        assert_eq!(json_in(text), Some(json!({"a": 1})), "{text}");
    }
    assert_eq!(json_in("nothing here"), None);
    assert_eq!(json_in("} backwards {"), None);
}

#[test]
fn an_object_is_held_against_its_schema() {
    let spec =
        spec(json!({"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}));
    assert_eq!(good(spec.check_text("{\"n\": 1}")), Some(json!({"n": 1})));
    for wrong in ["{}", "[1]", "one", "{\"n\": \"x\"}"] {
        assert_eq!(good(spec.check_text(wrong)), None, "{wrong}");
    }
}

#[test]
fn another_shape_is_wrapped_and_unwrapped_with_its_definitions() {
    let spec = spec(json!({
        "type": "array",
        "items": {"$ref": "#/$defs/N"},
        "$defs": {"N": {"type": "integer"}},
    }));
    assert_eq!(good(spec.check_text("[1, 2]")), Some(json!([1, 2])));
    assert_eq!(good(spec.check_text("{\"answer\": [3]}")), Some(json!([3])));
    assert_eq!(good(spec.check_text("[\"x\"]")), None);
}
