use proptest::prelude::*;
use serde_json::{Value, json};

use super::Plain;

fn validator(schema: &Value) -> Option<jsonschema::Validator> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .offline()
        .build(schema)
        .ok()
}

#[test]
fn what_most_tools_have_is_read_at_a_glance() {
    for (schema, fits) in [
        (
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
            json!({"a": 3}),
        ),
        (
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
            json!({}),
        ),
        (
            json!({"type": ["string", "null"], "enum": ["a", null], "default": "a", "title": "A"}),
            json!(null),
        ),
        (
            json!({"type": "array", "items": {"type": "number", "description": "n"}}),
            json!([1, 2.5]),
        ),
        (
            json!({"additionalProperties": {"type": "boolean"}}),
            json!({"x": true}),
        ),
    ] {
        let plain = Plain::of(&schema).unwrap_or_else(|| panic!("{schema}"));
        assert!(plain.fits(&fits), "{schema} {fits}");
        assert!(
            validator(&schema).is_some_and(|v| v.is_valid(&fits)),
            "{schema} {fits}"
        );
    }
}

#[test]
fn what_it_is_not_sure_of_is_left_to_the_validator() {
    for (schema, value) in [
        (json!({"type": "integer"}), json!(1.0)),
        (
            json!({"type": "string", "format": "date"}),
            json!("2026-11-30"),
        ),
        (json!({"minimum": 3}), json!(4)),
        (json!({"const": 1}), json!(1)),
        (json!({"enum": [1]}), json!(1.0)),
        (json!(false), json!(1)),
        (json!({"anyOf": [{"type": "string"}]}), json!("a")),
    ] {
        let plain = Plain::of(&schema).unwrap_or_else(|| panic!("{schema}"));
        assert!(!plain.fits(&value), "{schema} {value}");
    }
}

#[test]
fn what_is_wrong_or_not_known_is_left_to_the_meta_schema() {
    for schema in [
        json!({"type": "strin"}),
        json!({"type": []}),
        json!({"type": ["string", "string"]}),
        json!({"type": 3}),
        json!({"required": "a"}),
        json!({"required": ["a", "a"]}),
        json!({"required": [1]}),
        json!({"properties": {"a": 3}}),
        json!({"properties": []}),
        json!({"anyOf": []}),
        json!({"minLength": -1}),
        json!({"minLength": 1.5}),
        json!({"minimum": "1"}),
        json!({"title": 3}),
        json!({"items": [{"type": "string"}]}),
        json!({"uniqueItems": "yes"}),
        json!({"properties": {"a": {"properties": {"b": {"type": "nothing"}}}}}),
        json!({"pattern": "("}),
        json!({"$ref": "#/nowhere"}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
        json!("object"),
        json!(null),
    ] {
        assert!(Plain::of(&schema).is_none(), "{schema}");
    }
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        Just(json!(1.0)),
        Just(json!(1.5)),
        Just(json!("string")),
        Just(json!("object")),
        Just(json!("a")),
        Just(json!([])),
        Just(json!({})),
        Just(json!(["a"])),
        Just(json!(["a", "a"])),
        Just(json!(["string", "null"])),
    ]
}

/// Keywords with values that fit, and with values that do not.
fn any_schema() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 24, 4, |inner| {
        let keyword = prop::sample::select(vec![
            "type",
            "properties",
            "items",
            "additionalProperties",
            "not",
            "required",
            "anyOf",
            "oneOf",
            "allOf",
            "enum",
            "examples",
            "default",
            "const",
            "title",
            "description",
            "format",
            "minimum",
            "exclusiveMaximum",
            "minLength",
            "maxItems",
            "uniqueItems",
            "deprecated",
            "a",
            "if",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((keyword, inner), 0..4).prop_map(object),
        ]
    })
}

/// Schemas such as tools have.
fn usual_schema() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        "null", "boolean", "integer", "number", "string", "array", "object",
    ]);
    let kinds = prop_oneof![
        kind.clone().prop_map(Value::from),
        prop::collection::btree_set(kind, 1..3).prop_map(|set| json!(set)),
    ];
    let leaf = prop_oneof![
        kinds.clone().prop_map(|kinds| json!({"type": kinds})),
        prop::collection::vec(super::tests::leaf(), 1..4).prop_map(|list| json!({"enum": list})),
        any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        let names = || prop::sample::select(vec!["a", "b", "c"]);
        let members = prop::collection::btree_map(names(), inner.clone(), 0..3);
        let required = prop::collection::btree_set(names(), 0..2);
        prop_oneof![
            (members, required, inner.clone(), any::<bool>()).prop_map(
                |(members, required, rest, closed)| {
                    let mut schema = json!({"properties": members, "required": required});
                    if closed {
                        schema["additionalProperties"] = rest;
                    }
                    schema
                }
            ),
            inner.prop_map(|items| json!({"type": "array", "items": items})),
        ]
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 16, 4, |inner| {
        let name = prop::sample::select(vec!["a", "b", "c", "d"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..4).prop_map(object),
        ]
    })
}

fn object(members: Vec<(&str, Value)>) -> Value {
    let members = members.into_iter().map(|(k, v)| (k.to_owned(), v));
    Value::Object(members.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// It may know too few, never too many.
    #[test]
    fn what_is_read_at_a_glance_is_valid(schema in any_schema()) {
        if Plain::of(&schema).is_some() {
            prop_assert!(validator(&schema).is_some(), "{schema}");
        }
    }

    /// It may find too few that fit, never too many.
    #[test]
    fn what_fits_at_a_glance_is_valid(
        schema in prop_oneof![usual_schema(), any_schema()],
        values in prop::collection::vec(any_value(), 1..8),
    ) {
        let Some(plain) = Plain::of(&schema) else { return Ok(()) };
        let Some(validator) = validator(&schema) else { return Ok(()) };
        for value in values.iter().filter(|value| plain.fits(value)) {
            prop_assert!(validator.is_valid(value), "{schema} {value}");
        }
    }
}
