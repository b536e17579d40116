use serde_json::{Value, json};

use super::*;

fn object(value: Value) -> JsonObject {
    into_object(value)
}

fn validator(schema: Value) -> ArgsValidator {
    ArgsValidator::new(&schema).expect("the schema compiles")
}

#[cfg(feature = "schema")]
/// The accepted arguments, or the text of the refusal.
fn check(schema: Value, args: Value) -> Result<Value, String> {
    validator(schema)
        .validate(object(args))
        .map(|args| Value::Object(args.into_object()))
        .map_err(|e| e.to_string())
}

#[cfg(feature = "schema")]
/// One property `v` of this schema, given this value.
fn one(schema: Value, value: Value) -> Result<Value, String> {
    let schema = json!({ "type": "object", "properties": { "v": schema } });
    check(schema, json!({ "v": value })).map(|mut args| args["v"].take())
}

#[test]
fn missing_arguments_are_named_in_the_order_of_required() {
    let schema = json!({
        "type": "object",
        "properties": { "units": { "type": "string" }, "city": { "type": "string" } },
        "required": ["city", "units"]
    });
    for (args, want) in [
        (json!({}), Some("Missing required arguments: city, units")),
        (
            json!({ "city": 1 }),
            Some("Missing required arguments: units"),
        ),
        (
            json!({ "units": null, "cty": "x" }),
            Some("Missing required arguments: city"),
        ),
        (json!({ "city": null, "units": null }), None),
    ] {
        assert_eq!(
            validate_required_args(&object(args), &schema).as_deref(),
            want
        );
    }
    let refused = validator(schema)
        .validate(object(json!({ "city": 5 })))
        .unwrap_err();
    assert_eq!(refused.kind(), ValidationErrorKind::Missing);
    assert_eq!(refused.to_string(), "Missing required arguments: units");
}

#[test]
fn a_required_that_is_no_list_of_names_asks_for_nothing() {
    for required in [json!(null), json!("city"), json!({}), json!([1, null])] {
        let schema = json!({ "required": required });
        assert_eq!(validate_required_args(&JsonObject::new(), &schema), None);
    }
}

#[cfg(feature = "schema")]
mod with_schema {
    use super::*;

    #[test]
    fn only_what_loses_nothing_is_coerced() {
        for (schema, given, want) in [
            (json!({ "type": "integer" }), json!("42"), json!(42)),
            (json!({ "type": "number" }), json!("42"), json!(42)),
            (json!({ "type": "number" }), json!("4.5"), json!(4.5)),
            (json!({ "type": "integer" }), json!("42.0"), json!(42)),
            (json!({ "type": "boolean" }), json!("true"), json!(true)),
            (json!({ "type": "boolean" }), json!("false"), json!(false)),
            (json!({ "type": "string" }), json!(5), json!("5")),
            (json!({ "type": "string" }), json!(1.5), json!("1.5")),
            (json!({ "type": "string" }), json!(true), json!("true")),
            (json!({ "type": ["string", "null"] }), json!(7), json!("7")),
            (json!({ "type": ["integer", "null"] }), json!("7"), json!(7)),
            (
                json!({ "type": ["integer", "null"] }),
                json!(null),
                json!(null),
            ),
            (json!({ "type": "array" }), json!("[1,2]"), json!([1, 2])),
            (
                json!({ "type": "object" }),
                json!("{\"a\":1}"),
                json!({ "a": 1 }),
            ),
            (
                json!({ "type": "array", "items": { "type": "integer" } }),
                json!("[\"1\", 2]"),
                json!([1, 2]),
            ),
            (
                json!({ "type": "array", "items": { "type": "boolean" } }),
                json!(["true"]),
                json!([true]),
            ),
            (json!({ "enum": [1, 2] }), json!("2"), json!(2)),
            (json!({ "enum": ["1", "2"] }), json!(2), json!("2")),
            (json!({ "const": true }), json!("true"), json!(true)),
            (
                json!({ "type": "integer", "enum": [1, 2] }),
                json!("1"),
                json!(1),
            ),
            (
                json!({ "additionalProperties": { "type": "integer" } }),
                json!({ "x": "1" }),
                json!({ "x": 1 }),
            ),
            (
                json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }),
                json!("3"),
                json!(3),
            ),
            (
                json!({ "oneOf": [{ "type": "boolean" }, { "type": "integer" }] }),
                json!("3"),
                json!(3),
            ),
            (
                json!({ "allOf": [{ "type": "integer" }, { "minimum": 2 }] }),
                json!("3"),
                json!(3),
            ),
            // A union keeps what is valid already.
            (
                json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] }),
                json!("3"),
                json!("3"),
            ),
            (
                json!({ "type": ["string", "integer"] }),
                json!("3"),
                json!("3"),
            ),
            // An untyped schema takes anything as it is.
            (json!({}), json!("42"), json!("42")),
            (
                json!({ "anyOf": [
                    { "type": "object", "properties": { "kind": { "const": "circle" }, "r": { "type": "number" } },
                      "required": ["kind", "r"] },
                    { "type": "object", "properties": { "kind": { "const": "square" }, "side": { "type": "number" } },
                      "required": ["kind", "side"] }
                ] }),
                json!("{\"kind\":\"square\",\"side\":\"2\"}"),
                json!({ "kind": "square", "side": 2 }),
            ),
        ] {
            assert_eq!(
                one(schema.clone(), given.clone()),
                Ok(want),
                "{schema} given {given}"
            );
        }
    }

    #[test]
    fn what_would_lose_something_is_refused() {
        for (schema, given) in [
            (json!({ "type": "integer" }), json!("42.1")),
            (json!({ "type": "integer" }), json!(42.5)),
            (json!({ "type": "integer" }), json!(true)),
            (json!({ "type": "boolean" }), json!("1")),
            (json!({ "type": "boolean" }), json!(1)),
            (json!({ "type": "boolean" }), json!("yes")),
            (json!({ "type": "null" }), json!("null")),
            (json!({ "type": "number" }), json!("forty")),
            (json!({ "type": "number" }), json!("")),
            (
                json!({ "type": "number" }),
                json!("123456789012345678901234567890"),
            ),
            (json!({ "type": "array" }), json!("[1,")),
            (json!({ "type": "array" }), json!("a")),
            (json!({ "type": "array" }), json!(1)),
            (json!({ "type": "array" }), json!("{\"a\":1}")),
            (json!({ "type": "object" }), json!("[1]")),
            (json!({ "type": "string" }), json!(["a"])),
            (json!({ "type": "string" }), json!({})),
            (
                json!({ "type": "array", "items": { "type": "string" } }),
                json!([null]),
            ),
        ] {
            let refused = one(schema.clone(), given.clone());
            let text = refused.expect_err(&format!("{schema} given {given}"));
            assert!(text.contains("v"), "{text}");
            assert!(
                text.contains(&format!("Received: {}", json!({ "v": given }))),
                "{text}"
            );
        }
    }

    #[test]
    fn null_for_an_optional_property_is_absent_and_for_a_required_one_refused() {
        let schema = json!({
            "type": "object",
            "properties": {
                "city": { "type": "string" },
                "units": { "enum": ["c", "f"], "default": "c" },
                "days": { "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                "note": { "type": ["string", "null"] },
                "inner": { "type": "object", "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
                           "required": ["b"] }
            },
            "required": ["city"]
        });
        let args = json!({ "city": "x", "units": null, "days": null, "note": null, "inner": { "a": null, "b": 1 } });
        assert_eq!(
            check(schema.clone(), args),
            Ok(json!({ "city": "x", "note": null, "inner": { "b": 1 }, "units": "c" }))
        );
        let text = check(schema.clone(), json!({ "city": null })).unwrap_err();
        assert_eq!(
            text,
            "Invalid arguments, 1 problem:\n- city: got null; expected a string\nReceived: {\"city\":null}"
        );
        let text = check(schema, json!({ "city": "x", "inner": { "b": null } })).unwrap_err();
        assert!(
            text.contains("- inner.b: got null; expected an integer"),
            "{text}"
        );
    }

    #[test]
    fn unknown_keys_are_kept_and_the_order_stays() {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
        let args = check(schema, json!({ "z": 1, "a": "2", "y": null })).unwrap();
        assert_eq!(args.to_string(), r#"{"z":1,"a":2,"y":null}"#);
    }

    #[test]
    fn every_problem_is_listed_with_place_value_and_what_would_be_right() {
        let schema = json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "minLength": 2 },
                "units": { "enum": ["celsius", "fahrenheit"] },
                "days": { "type": "integer", "minimum": 1, "maximum": 14 },
                "filter": {
                    "type": "object",
                    "properties": { "tag": { "type": "string", "description": "The tag." }, "limit": { "type": "integer" } },
                    "required": ["tag"],
                    "additionalProperties": false
                },
                "steps": { "type": "array", "items": { "type": "object", "properties": { "at": { "type": "number" } } } }
            },
            "required": ["city"],
            "additionalProperties": false
        });
        let args = json!({
            "city": "x", "units": "celcius", "days": 20,
            "filter": { "limt": 3 }, "steps": [{ "at": 1 }, { "at": "soon" }], "unit": "f"
        });
        let text = check(schema, args).unwrap_err();
        for line in [
            r#"- city: got "x"; expected at least 2 characters, it has 1"#,
            r#"- units: got "celcius"; expected one of "celsius", "fahrenheit" (did you mean "celsius"?)"#,
            r#"- days: got 20; expected at most 14"#,
            r#"- filter.tag: missing; expected a string: The tag."#,
            r#"- filter.limt: got 3; this property is not known; known are tag, limit (did you mean "limit"?)"#,
            r#"- steps[1].at: got "soon"; expected a number"#,
            r#"- unit: got "f"; this property is not known; known are city, units, days, filter, steps"#,
        ] {
            assert!(text.contains(line), "{line}\nin\n{text}");
        }
        assert!(
            text.starts_with("Invalid arguments, 7 problems:\n"),
            "{text}"
        );
    }

    #[test]
    fn a_union_is_explained_by_the_branch_that_is_meant() {
        let schema = json!({ "type": "object", "properties": { "shape": { "oneOf": [
            { "type": "object", "properties": { "kind": { "const": "circle" }, "r": { "type": "number" } },
              "required": ["kind", "r"] },
            { "type": "object", "properties": { "kind": { "enum": ["square", "box"] },
              "side": { "type": "number", "description": "In metres." } },
              "required": ["kind", "side"], "additionalProperties": false }
        ] }, "either": { "anyOf": [
            { "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] },
            { "type": "string" }
        ] } } });
        for (args, line) in [
            (
                json!({ "shape": { "kind": "box" } }),
                "- shape.side: missing; expected a number: In metres.",
            ),
            (
                json!({ "shape": { "kind": "square", "side": 1, "sides": 4 } }),
                "- shape.sides: got 4; this property is not known; known are kind, side",
            ),
            (
                json!({ "shape": { "kind": "Circle", "r": 1 } }),
                r#"- shape.kind: got "Circle"; expected one of "circle", "square", "box" (did you mean "circle"?)"#,
            ),
            (
                json!({ "shape": { "r": 1 } }),
                r#"- shape: got {"r":1}; expected to fit one of 2 forms; form 1: its property "kind" is missing; form 2: "#,
            ),
            (json!({ "shape": 5 }), "- shape: got 5; expected an object"),
            (
                json!({ "either": { "a": "x" } }),
                r#"- either: got {"a":"x"}; expected to fit one of 2 forms; form 1: either.a expected an integer; form 2: expected a string"#,
            ),
            (
                json!({ "either": [] }),
                "- either: got []; expected an object or a string",
            ),
        ] {
            let text = check(schema.clone(), args.clone()).unwrap_err();
            assert!(text.contains(line), "{args}: {line}\nin\n{text}");
        }
    }

    #[test]
    fn rarer_keywords_say_what_would_be_right_as_well() {
        let schema = json!({ "type": "object", "properties": {
            "c": {}, "d": { "type": "string" }, "e": {},
            "l": { "type": "array", "uniqueItems": true },
            "k": { "type": "array", "contains": { "const": 1 }, "maxContains": 2 },
            "m": { "enum": ["a", "b"] }
        }, "dependentRequired": { "c": ["d"] }, "propertyNames": { "maxLength": 3 },
           "if": { "properties": { "m": { "const": "a" } }, "required": ["m"] },
           "then": { "required": ["e"] }, "else": { "not": { "required": ["e"] } } });
        for (args, line) in [
            (
                json!({ "c": 1 }),
                r#"- d: missing; expected a string, since "c" is given"#,
            ),
            (
                json!({ "l": [1, { "a": 1 }, 2, { "a": 1 }] }),
                "expected items that all differ; items 1 and 3, counted from 0, are the same",
            ),
            (
                json!({ "k": [2] }),
                r#"expected at least 1 item and at most 2 that fit {"const":1}"#,
            ),
            (
                json!({ "long": 1 }),
                r#"got "long"; as the name of a property: expected at most 3 characters"#,
            ),
            (json!({ "m": "a" }), "- e: missing"),
            (json!({ "m": "b", "e": 1 }), "expected anything but"),
        ] {
            let text = check(schema.clone(), args.clone()).unwrap_err();
            assert!(text.contains(line), "{args}: {line}\nin\n{text}");
        }
    }

    #[test]
    fn defaults_inside_of_defaults_are_filled_in_and_circles_of_them_are_not() {
        let schema = json!({
            "$defs": {
                "p": { "type": "object", "properties": { "q": { "$ref": "#/$defs/q", "default": {} }, "one": { "default": 1 } } },
                "q": { "type": "object", "properties": { "p": { "$ref": "#/$defs/p", "default": {} } } }
            },
            "type": "object",
            "properties": {
                "next": { "$ref": "#", "default": {} },
                "o": { "type": "object", "default": {}, "properties": {
                    "p": { "$ref": "#/$defs/p", "default": {} },
                    "inner": { "type": "object", "default": { "k": 1 }, "properties": { "l": { "default": 2 } } }
                } }
            }
        });
        let whole = json!({ "o": { "p": { "one": 1 }, "inner": { "k": 1, "l": 2 } } });
        assert_eq!(check(schema.clone(), json!({})), Ok(whole.clone()));
        assert_eq!(check(schema.clone(), whole.clone()), Ok(whole.clone()));
        let nested = json!({ "next": whole, "o": whole["o"] });
        assert_eq!(check(schema, json!({ "next": {} })), Ok(nested));
    }

    #[test]
    fn defaults_are_filled_in_deep_and_through_references_and_never_over_what_is_there() {
        let schema = json!({
            "$defs": { "page": { "type": "object", "properties": { "size": { "type": "integer", "default": 10 } } } },
            "type": "object",
            "properties": {
                "units": { "type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius" },
                "page": { "$ref": "#/$defs/page" },
                "maybe": { "anyOf": [{ "$ref": "#/$defs/page" }, { "type": "null" }] },
                "list": { "type": "array", "items": { "$ref": "#/$defs/page" } },
                "off": { "type": "boolean", "default": false }
            }
        });
        assert_eq!(
            check(schema.clone(), json!({})),
            Ok(json!({ "units": "celsius", "off": false }))
        );
        assert_eq!(
            check(
                schema,
                json!({ "units": "fahrenheit", "page": {}, "maybe": {}, "list": [{}, { "size": "3" }], "off": true })
            ),
            Ok(json!({
                "units": "fahrenheit", "page": { "size": 10 }, "maybe": { "size": 10 },
                "list": [{ "size": 10 }, { "size": 3 }], "off": true
            }))
        );
    }

    #[test]
    fn a_default_that_would_make_valid_arguments_invalid_is_left_out() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "default": "." },
                "url": { "type": "string" },
                "inner": { "type": "object", "properties": { "n": { "default": 1 } } }
            },
            "not": { "required": ["path", "url"] }
        });
        assert_eq!(
            check(schema.clone(), json!({ "url": "x", "inner": {} })),
            Ok(json!({ "url": "x", "inner": {} }))
        );
        assert_eq!(
            check(schema, json!({ "inner": {} })),
            Ok(json!({ "inner": { "n": 1 }, "path": "." }))
        );
    }

    #[test]
    fn a_default_against_its_own_schema_is_not_filled_in_and_told() {
        let schema = json!({
            "type": "object",
            "properties": {
                "n": { "type": "integer", "default": "many" },
                "m": { "type": "integer", "default": 2 },
                "in": { "type": "object", "properties": { "k": { "enum": [1], "default": 9 } } }
            }
        });
        let validator = validator(schema);
        let args = validator.validate(object(json!({ "in": {} }))).unwrap();
        assert_eq!(
            Value::Object(args.into_object()),
            json!({ "in": {}, "m": 2 })
        );
        assert_eq!(
            validator.schema().warnings(),
            [
                "the default of n is against its own schema and is not filled in",
                "the default of in.k is against its own schema and is not filled in"
            ]
        );
    }

    #[test]
    fn older_drafts_hold_by_their_schema_keyword() {
        let draft4 = json!({
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "object", "properties": { "v": { "type": "number", "minimum": 3, "exclusiveMinimum": true } }
        });
        assert!(check(draft4.clone(), json!({ "v": 3 })).is_err());
        assert!(check(draft4, json!({ "v": 4 })).is_ok());
        let draft7 = json!({
            "$schema": "https://json-schema.org/draft-07/schema",
            "type": "object", "properties": { "v": { "items": [{ "type": "string" }, { "type": "integer" }] } }
        });
        assert!(check(draft7.clone(), json!({ "v": ["a", "b"] })).is_err());
        assert_eq!(
            check(draft7, json!({ "v": ["a", "2"] })),
            Ok(json!({ "v": ["a", 2] }))
        );
    }
}
