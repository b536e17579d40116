//! Schemas from the wild: each is put right, or left out alone with the reason (T-4, M-8).

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use yiem_core::LoadedTools;
use yiem_tools::{InputSchema, SchemaLimits, ToolRegistry, ValidationErrorKind};

use crate::kit::{names, object, plain_tool};

/// The registry with one good tool and one with this schema; the reason if that was left out.
fn offered(schema: &Value) -> (ToolRegistry, Option<String>) {
    let mut registry = ToolRegistry::new();
    let change = registry.replace_source(
        "server",
        LoadedTools {
            tools: vec![
                plain_tool("odd", "x", schema.clone()),
                plain_tool("good", "x", json!({ "type": "object" })),
            ],
            ..LoadedTools::default()
        },
    );
    assert!(
        registry.snapshot().get("good").is_some(),
        "the other tool stands"
    );
    let reason = change.quarantined.first().map(|q| q.reason.clone());
    (registry, reason)
}

async fn accept(
    registry: &mut ToolRegistry,
    args: Value,
) -> Result<Value, (ValidationErrorKind, String)> {
    let snapshot = registry.snapshot();
    let tool = snapshot.get("odd").expect("it is offered");
    match tool.accept(object(args)).await {
        Ok(args) => Ok(Value::Object(args.into_object())),
        Err(error) => Err((error.kind(), error.to_string())),
    }
}

/// Holds a piece of work to far less than what the attack wants.
fn quickly<T>(what: &str, work: impl FnOnce() -> T) -> T {
    #[expect(clippy::disallowed_methods, reason = "the test bounds real time")]
    let start = Instant::now();
    let result = work();
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{what} took {:?}",
        start.elapsed()
    );
    result
}

#[tokio::test]
async fn odd_schemas_are_put_right() {
    for schema in [
        json!({}),
        json!(true),
        json!(null),
        json!({ "properties": { "a": { "type": "integer" } } }),
        json!({ "type": "object", "properties": null, "required": null }),
        json!({ "type": ["object", "null"] }),
        json!({ "type": "object", "properties": { "a": { "type": "integer", "enum": null, "description": null } } }),
        json!({ "type": "object", "properties": { "a": null } }),
        json!({ "type": "object", "properties": { "a": { "items": [{ "type": "string" }] } } }),
        json!({ "type": "object", "properties": { "a": { "minimum": 0, "exclusiveMinimum": true } } }),
        json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": { "a": {} } }),
        json!({ "type": "object", "properties": { "a": true, "b": false } }),
        json!({ "type": "object", "properties": { "a": { "type": "any" } }, "required": ["a", "a"] }),
        json!({ "type": "object", "properties": { "a": { "type": "integer", "required": true } } }),
        json!({ "$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "required": [] }),
        json!({ "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } },
                "type": "object", "properties": { "list": { "$ref": "#/$defs/node" } } }),
        json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } },
                "type": "object", "properties": { "x": { "$ref": "#/$defs/a" } } }),
        json!({ "type": "object", "$ref": "#" }),
    ] {
        let (mut registry, reason) = offered(&schema);
        assert_eq!(reason, None, "{schema}");
        accept(&mut registry, json!({ "a": 1 }))
            .await
            .unwrap_or_else(
                |(_, text)| match schema["properties"]["a"]["items"].is_array() {
                    true => json!(null),
                    false => panic!("{schema}: {text}"),
                },
            );
        let snapshot = registry.snapshot();
        let told = &snapshot.get("odd").unwrap().definition().input_schema;
        assert!(
            told.is_object(),
            "what the model is told is an object: {told}"
        );
    }
}

#[tokio::test]
async fn older_ways_to_say_required_are_understood() {
    let schema = json!({ "type": "object", "properties": {
        "a": { "type": "string", "required": true }, "b": { "type": "string", "required": false },
        "c": { "type": "string" } }, "required": ["c", "c"] });
    let (mut registry, reason) = offered(&schema);
    assert_eq!(reason, None);
    let snapshot = registry.snapshot();
    let tool = snapshot.get("odd").expect("it is offered");
    assert_eq!(tool.schema().required(), ["c", "a"]);
    assert_eq!(
        tool.definition().input_schema["required"],
        json!(["c", "a"])
    );
    assert_eq!(tool.warnings().len(), 2, "{:?}", tool.warnings());
    let refused = accept(&mut registry, json!({})).await.unwrap_err();
    assert_eq!(refused.1, "Missing required arguments: c, a");
}

#[tokio::test]
async fn what_older_drafts_write_means_the_same_without_a_dialect() {
    let schema = json!({ "type": "object", "properties": {
        "age": { "type": "integer", "minimum": 0, "exclusiveMinimum": true,
                 "maximum": 9, "exclusiveMaximum": false },
        "kind": { "const": "a" },
        "pair": { "type": "array", "items": [{ "type": "string" }, { "type": "integer" }],
                  "additionalItems": false },
        "open": { "type": "array", "items": [] } } });
    let (mut registry, reason) = offered(&schema);
    assert_eq!(reason, None);
    let snapshot = registry.snapshot();
    let tool = snapshot.get("odd").unwrap();
    assert_eq!(tool.warnings().len(), 1, "{:?}", tool.warnings());
    assert!(tool.warnings()[0].contains("exclusiveMaximum, exclusiveMinimum, items"));
    for good in [
        json!({ "age": 1, "kind": "a", "pair": ["x", 1], "open": [1, "x"] }),
        json!({ "age": 9, "pair": ["x"] }),
    ] {
        let accepted = accept(&mut registry, good.clone()).await.unwrap();
        assert_eq!(accepted, good);
    }
    for (bad, at) in [
        (json!({ "age": 0 }), "age"),
        (json!({ "age": 10 }), "age"),
        (json!({ "kind": "b" }), "kind"),
        (json!({ "pair": ["x", "y"] }), "pair"),
        (json!({ "pair": ["x", 1, 2] }), "pair"),
    ] {
        let (kind, text) = accept(&mut registry, bad.clone()).await.unwrap_err();
        assert_eq!(kind, ValidationErrorKind::Schema, "{bad}");
        assert!(text.contains(at), "{bad}: {text}");
    }
}

#[test]
fn a_keyword_that_is_wrong_is_not_excused_by_a_draft_that_does_not_know_it() {
    for (keyword, value) in [
        ("contains", json!(1)),
        ("const", Value::Null),
        ("propertyNames", json!("x")),
        ("if", json!(7)),
        ("exclusiveMinimum", json!(true)),
        ("exclusiveMaximum", json!("3")),
        ("prefixItems", json!({})),
        ("dependentRequired", json!([])),
    ] {
        let mut property = json!({ "type": "array" });
        property[keyword] = value.clone();
        let (_, reason) = offered(&json!({ "type": "object", "properties": { "a": property } }));
        match keyword {
            // `null` is a value that can be asked for.
            "const" => assert_eq!(reason, None),
            _ => {
                let reason = reason.unwrap_or_else(|| panic!("{keyword}: {value} is left out"));
                assert!(
                    reason.contains(&format!("/properties/a/{keyword}")),
                    "{reason}"
                );
            }
        }
    }
}

#[test]
fn bad_schemas_are_left_out_alone_with_the_reason() {
    let deep = (0..200).fold(
        json!({ "type": "string" }),
        |s, _| json!({ "properties": { "a": s } }),
    );
    let chain: Map<String, Value> = (0..5_000)
        .map(|i| {
            (
                format!("a{i}"),
                json!({ "$ref": format!("#/$defs/a{}", i + 1) }),
            )
        })
        .collect();
    let options: Vec<String> = (0..60_000).map(|i| format!("option number {i}")).collect();
    for (schema, why) in [
        (json!(false), "allows no object"),
        (json!("text"), "write a JSON object"),
        (json!([]), "write a JSON object"),
        (json!({ "type": "string" }), "its type is \"string\""),
        (json!({ "type": "objekt" }), "its type is \"objekt\""),
        (
            json!({ "type": "object", "properties": { "a": { "type": 5 } } }),
            "at /properties/a/type",
        ),
        (json!({ "type": "object", "required": "a" }), "at /required"),
        (
            json!({ "type": "object", "properties": [] }),
            "at /properties",
        ),
        (
            json!({ "$schema": "http://example.org/mine", "type": "object" }),
            "dialect",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "$ref": "http://127.0.0.1:9/x.json" } } }),
            "127.0.0.1",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "$ref": "file:///etc/passwd" } } }),
            "/etc/passwd",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/none" } } }),
            "/$defs/none",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }),
            "/properties/a/pattern",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "pattern": "(x{1000}){1000}" } } }),
            "/properties/a/pattern",
        ),
        (deep, "nested deeper than 64"),
        (json!({ "$defs": chain, "$ref": "#/$defs/a0" }), "in a row"),
        (
            json!({ "type": "object", "properties": { "a": { "enum": options } } }),
            "larger than 262144 bytes",
        ),
        (doubling(40, "allOf"), "multiply"),
        (doubling(40, "anyOf"), "multiply"),
    ] {
        let cut: String = schema.to_string().chars().take(80).collect();
        let (mut registry, reason) = quickly(&cut, || offered(&schema));
        let reason = reason.unwrap_or_else(|| panic!("{cut} is left out"));
        assert!(reason.contains(why), "{cut}: {reason}");
        assert_eq!(names(&registry.snapshot()), ["good"]);
        assert_eq!(registry.quarantined()[0].reason, reason);
    }
}

/// `n` definitions, each of which applies the next one twice: 2ⁿ steps.
fn doubling(n: usize, keyword: &str) -> Value {
    let mut definitions: Map<String, Value> = (0..n)
        .map(|i| {
            let next = json!({ "$ref": format!("#/$defs/a{}", i + 1) });
            (format!("a{i}"), json!({ keyword: [next, next] }))
        })
        .collect();
    definitions.insert(format!("a{n}"), json!({ "type": "object" }));
    json!({ "$defs": definitions, "$ref": "#/$defs/a0" })
}

#[tokio::test]
async fn exponential_checks_are_cut_off() {
    // The schema is small and harmless by itself: each level of the *value* doubles the work.
    let tree = json!({
        "$defs": { "n": { "type": "object", "properties": {
            "c": { "allOf": [{ "$ref": "#/$defs/n" }, { "$ref": "#/$defs/n" }] } } } },
        "$ref": "#/$defs/n"
    });
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({ "c": inner }));
    let (mut registry, reason) = offered(&tree);
    assert_eq!(reason, None);
    assert!(accept(&mut registry, nested(5)).await.is_ok());
    let (kind, text) = accept(&mut registry, nested(60)).await.unwrap_err();
    assert_eq!(kind, ValidationErrorKind::TooCostly);
    assert!(text.contains("too much work"), "{text}");
    // The same with branches, whose errors are gathered.
    let branches = json!({
        "$defs": { "n": { "anyOf": [
            { "type": "object", "properties": { "c": { "$ref": "#/$defs/n" } }, "required": ["x"] },
            { "type": "object", "properties": { "c": { "$ref": "#/$defs/n" } }, "required": ["y"] }] } },
        "$ref": "#/$defs/n"
    });
    let (mut registry, reason) = offered(&branches);
    assert_eq!(reason, None);
    let refused = accept(&mut registry, nested(60)).await.unwrap_err();
    assert_eq!(refused.0, ValidationErrorKind::TooCostly);
}

#[test]
fn catastrophic_patterns_end_in_bounded_time() {
    for pattern in [
        "^(a+)+$",
        "^(?=(a+)+$)(a+)+\\1$",
        "^(a|aa)+$(?!x)",
        "(.*)*\\1b(?<=x)",
    ] {
        let schema = json!({ "type": "object", "properties": {
            "s": { "type": "array", "items": { "type": "string", "pattern": pattern } } } });
        let schema = InputSchema::compile(&schema, &SchemaLimits::default()).expect("it compiles");
        let validator = yiem_tools::ArgsValidator::from_schema(schema);
        let text = format!("{}b", "a".repeat(3_000));
        for count in [1, 20, 300] {
            let args = object(json!({ "s": vec![text.clone(); count] }));
            let refused = quickly(pattern, || validator.validate(args));
            assert!(refused.is_err(), "{pattern}");
        }
    }
}

#[test]
fn deep_values_do_not_overflow_a_workers_stack() {
    let schema = json!({
        "$defs": { "n": { "anyOf": [{ "type": "array", "items": { "$ref": "#/$defs/n" } }, { "type": "integer" }] } },
        "type": "object", "properties": { "a": { "$ref": "#/$defs/n" } }
    });
    let check = move || {
        let validator = yiem_tools::ArgsValidator::new(&schema).expect("it compiles");
        for depth in [1, 10, 60, 127, 1_000] {
            let deep = (0..depth).fold(json!("x"), |inner, _| json!([inner]));
            assert!(
                validator.validate(object(json!({ "a": deep }))).is_err(),
                "{depth}"
            );
        }
    };
    let worker = std::thread::Builder::new()
        .stack_size(2 * 1024 * 1024)
        .spawn(check);
    worker
        .expect("a thread")
        .join()
        .expect("no overflow, no panic");
}
