//! Properties of the validation, over random schemas and values.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use yiem_tools::ArgsValidator;

use crate::kit::object;

/// A schema of some value, and how deep it may go.
fn schema(depth: u32) -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "type": "integer" })),
        Just(json!({ "type": "number", "minimum": 0 })),
        Just(json!({ "type": "boolean" })),
        Just(json!({ "type": ["integer", "null"] })),
        Just(json!({ "enum": ["a", "b", 3, true, null] })),
        Just(json!({ "const": 5 })),
        Just(json!({})),
        Just(json!({ "type": "integer", "default": 7 })),
        Just(json!({ "type": "string", "default": "x" })),
        Just(json!({ "type": "integer", "default": "against itself" })),
    ];
    leaf.prop_recursive(depth, 24, 4, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|items| json!({ "type": "array", "items": items })),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|any| json!({ "anyOf": any })),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|one| json!({ "oneOf": one })),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|all| json!({ "allOf": all })),
            (
                prop::collection::vec((name(), inner), 0..4),
                any::<bool>(),
                any::<bool>()
            )
                .prop_map(|(properties, closed, first_required)| {
                    let required: Vec<_> =
                        properties.iter().take(1).map(|(n, _)| n.clone()).collect();
                    let properties: Map<String, Value> = properties.into_iter().collect();
                    let mut schema = json!({ "type": "object", "properties": properties });
                    if closed {
                        schema["additionalProperties"] = json!(false);
                    }
                    if first_required {
                        schema["required"] = json!(required);
                    }
                    schema
                }),
        ]
    })
    .boxed()
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("c"), Just("d/~e")].prop_map(str::to_owned)
}

/// A value such as models give: often nearly right.
fn value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3_i64..9).prop_map(Value::from),
        (-3_i64..9).prop_map(|n| json!(n.to_string())),
        Just(json!(1.5)),
        Just(json!(5.0)),
        Just(json!("true")),
        Just(json!("a")),
        Just(json!("[1,\"2\"]")),
        Just(json!("{\"a\":\"1\"}")),
        Just(json!("null")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
    .boxed()
}

fn arguments() -> impl Strategy<Value = Value> {
    prop::collection::vec((name(), value()), 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn object_schema() -> impl Strategy<Value = Value> {
    prop::collection::vec((name(), schema(3)), 0..4).prop_map(|properties| {
        let properties: Map<String, Value> = properties.into_iter().collect();
        json!({ "type": "object", "properties": properties })
    })
}

fn accept(validator: &ArgsValidator, args: &Value) -> Option<Value> {
    let accepted = validator.validate(object(args.clone())).ok()?;
    Some(Value::Object(accepted.into_object()))
}

/// Whether `after` is `before` with nothing but new members in objects.
fn only_adds(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => before
            .iter()
            .all(|(name, value)| after.get(name).is_some_and(|now| only_adds(value, now))),
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len() && before.iter().zip(after).all(|(b, a)| only_adds(b, a))
        }
        (before, after) => before == after,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn valid_arguments_change_only_by_defaults(schema in object_schema(), args in arguments()) {
        let validator = ArgsValidator::new(&schema).expect("it compiles");
        let plain = jsonschema::validator_for(&schema).expect("it compiles");
        if plain.is_valid(&args) {
            let accepted = accept(&validator, &args);
            let accepted = accepted.expect("what is valid is accepted");
            prop_assert!(only_adds(&args, &accepted), "{} became {} under {}", args, accepted, schema);
        }
    }

    #[test]
    fn what_is_accepted_is_valid_and_doing_it_twice_is_doing_it_once(
        schema in object_schema(),
        args in arguments(),
    ) {
        let validator = ArgsValidator::new(&schema).expect("it compiles");
        let plain = jsonschema::validator_for(&schema).expect("it compiles");
        if let Some(once) = accept(&validator, &args) {
            prop_assert!(plain.is_valid(&once), "{} is not valid under {}", once, schema);
            prop_assert_eq!(accept(&validator, &once), Some(once));
        }
    }

    #[test]
    fn a_refusal_lists_problems_and_quotes_what_came(schema in object_schema(), args in arguments()) {
        let validator = ArgsValidator::new(&schema).expect("it compiles");
        if let Err(error) = validator.validate(object(args.clone())) {
            prop_assert!(!error.problems().is_empty(), "{}", error);
            let text = error.to_string();
            prop_assert!(text.ends_with(&args.to_string()) || args.to_string().len() > 1_000, "{}", text);
            for problem in error.problems() {
                prop_assert!(!problem.expected().is_empty());
            }
        }
    }
}
