//! What servers get wrong about schemas, put right where there is no doubt.
//!
//! Knows: the ways in which a schema is written that mean something although they are not
//! correct. Does not know: the validator.

use serde_json::{Value, json};

use super::{InputSchema, SchemaError};
use crate::validate::problem::cut;

/// A schema of arguments: an object schema, with sentences about what was changed.
pub(super) fn arguments(schema: &Value) -> Result<(Value, Vec<String>), SchemaError> {
    let (schema, warnings) = any(schema)?;
    if schema == Value::Bool(true) {
        return Ok((
            InputSchema::any_object(),
            vec!["the schema is `true`; it is read as any object".to_owned()],
        ));
    }
    if schema == Value::Bool(false) {
        return Err(SchemaError::NoObject {
            reason: "it is `false`".to_owned(),
        });
    }
    let allows_object = match schema.get("type") {
        None => true,
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|n| n == "object"),
        // Not a type at all: the validator says so.
        Some(_) => true,
    };
    if !allows_object {
        let found = cut(&schema["type"].to_string(), 60);
        return Err(SchemaError::NoObject {
            reason: format!("its type is {found}"),
        });
    }
    Ok((schema, warnings))
}

/// A schema of any value, with sentences about what was changed.
pub(super) fn any(schema: &Value) -> Result<(Value, Vec<String>), SchemaError> {
    match schema {
        Value::Bool(_) => Ok((schema.clone(), Vec::new())),
        Value::Object(_) => {
            let mut schema = schema.clone();
            let mut dropped = Vec::new();
            drop_nulls(&mut schema, &mut dropped);
            dropped.sort_unstable();
            dropped.dedup();
            let warnings = if dropped.is_empty() {
                Vec::new()
            } else {
                vec![format!(
                    "the schema has null for {}; those count as absent",
                    dropped.join(", ")
                )]
            };
            Ok((schema, warnings))
        }
        other => Err(SchemaError::NotAnObject {
            found: cut(&other.to_string(), 60),
        }),
    }
}

/// Keywords whose value is a schema, or several.
const SCHEMAS: [&str; 16] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value has schemas by name.
const NAMED: [&str; 6] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// Takes out keywords that are `null` (writers in some languages write empty lists so), except
/// where `null` is a value.
fn drop_nulls(schema: &mut Value, dropped: &mut Vec<String>) {
    let Value::Object(map) = schema else {
        return;
    };
    map.retain(|key, value| {
        let keep = !value.is_null() || matches!(key.as_str(), "default" | "const" | "example");
        if !keep {
            dropped.push(key.clone());
        }
        keep
    });
    for (key, value) in map.iter_mut() {
        if SCHEMAS.contains(&key.as_str()) {
            match value {
                Value::Array(schemas) => schemas.iter_mut().for_each(|s| drop_nulls(s, dropped)),
                schema => drop_nulls(schema, dropped),
            }
        } else if NAMED.contains(&key.as_str())
            && let Value::Object(schemas) = value
        {
            for (_, schema) in schemas.iter_mut() {
                if schema.is_null() {
                    dropped.push(key.clone());
                    *schema = json!({});
                }
                drop_nulls(schema, dropped);
            }
        }
    }
}
