//! What servers get wrong about schemas, put right where there is no doubt.
//!
//! Knows: the ways in which a schema is written that mean something although they are not
//! correct. Does not know: the validator.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value, json};

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
            let mut mended = Mended {
                any_draft: schema.get("$schema").is_none(),
                ..Mended::default()
            };
            mended.mend(&mut schema);
            Ok((schema, mended.warnings()))
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

/// What was put right in one schema.
#[derive(Default)]
struct Mended {
    /// Keywords that were `null`.
    nulls: BTreeSet<String>,
    /// Names that `required` listed twice.
    twice: BTreeSet<String>,
    /// Properties that say of themselves that they are required.
    flagged: BTreeSet<String>,
    /// Whether something was of the type `any`.
    any: bool,
    /// Whether the schema names no dialect, so that what older drafts write is rewritten.
    any_draft: bool,
    /// Older drafts' keywords that were rewritten.
    older: BTreeSet<&'static str>,
}

impl Mended {
    /// Takes out keywords that are `null` (writers in some languages write empty lists so),
    /// except where `null` is a value, and mends `required` and `type` as older habits have them.
    fn mend(&mut self, schema: &mut Value) {
        let Value::Object(map) = schema else {
            return;
        };
        map.retain(|key, value| {
            let keep = !value.is_null() || matches!(key.as_str(), "default" | "const" | "example");
            if !keep {
                self.nulls.insert(key.clone());
            }
            keep
        });
        if map.get("type").is_some_and(|t| t == "any") {
            map.shift_remove("type");
            self.any = true;
        }
        if self.any_draft {
            self.mend_limits(map);
            self.mend_tuple(map);
        }
        for (key, value) in map.iter_mut() {
            if SCHEMAS.contains(&key.as_str()) {
                match value {
                    Value::Array(schemas) => schemas.iter_mut().for_each(|s| self.mend(s)),
                    schema => self.mend(schema),
                }
            } else if NAMED.contains(&key.as_str())
                && let Value::Object(schemas) = value
            {
                for (_, schema) in schemas.iter_mut() {
                    if schema.is_null() {
                        self.nulls.insert(key.clone());
                        *schema = json!({});
                    }
                    self.mend(schema);
                }
            }
        }
        self.mend_required(map);
    }

    /// Draft 4's `minimum: 0, exclusiveMinimum: true` is `exclusiveMinimum: 0` today.
    fn mend_limits(&mut self, map: &mut Map<String, Value>) {
        for (exclusive, limit) in [
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ] {
            match map.get(exclusive) {
                Some(Value::Bool(false)) => {
                    map.shift_remove(exclusive);
                }
                Some(Value::Bool(true)) if map.get(limit).is_some_and(Value::is_number) => {
                    let bound = map.shift_remove(limit).unwrap_or_default();
                    map.insert(exclusive.to_owned(), bound);
                }
                _ => continue,
            }
            self.older.insert(exclusive);
        }
    }

    /// A list as `items` (up to draft 2019-09) is `prefixItems` today, and what was
    /// `additionalItems` is `items`.
    fn mend_tuple(&mut self, map: &mut Map<String, Value>) {
        if !map.get("items").is_some_and(Value::is_array) || map.contains_key("prefixItems") {
            return;
        }
        let tuple = map.shift_remove("items").unwrap_or_default();
        if tuple.as_array().is_some_and(|items| !items.is_empty()) {
            map.insert("prefixItems".to_owned(), tuple);
        }
        if let Some(rest) = map.shift_remove("additionalItems") {
            map.insert("items".to_owned(), rest);
        }
        self.older.insert("items");
    }

    /// Names listed once; draft 3's `required: true` of a property is a name in the list.
    fn mend_required(&mut self, map: &mut Map<String, Value>) {
        let mut flagged = Vec::new();
        if let Some(Value::Object(properties)) = map.get_mut("properties") {
            for (name, property) in properties.iter_mut() {
                let flag = property.get("required").and_then(Value::as_bool);
                if let (Some(flag), Some(property)) = (flag, property.as_object_mut()) {
                    property.shift_remove("required");
                    self.flagged.insert(name.clone());
                    if flag {
                        flagged.push(name.clone());
                    }
                }
            }
        }
        if !flagged.is_empty() && !map.contains_key("required") {
            map.insert("required".to_owned(), json!([]));
        }
        let Some(Value::Array(required)) = map.get_mut("required") else {
            return;
        };
        let mut seen = HashSet::new();
        required.retain(|name| {
            let new = name
                .as_str()
                .is_none_or(|name| seen.insert(name.to_owned()));
            if !new {
                self.twice
                    .insert(name.as_str().unwrap_or_default().to_owned());
            }
            new
        });
        required.extend(
            flagged
                .into_iter()
                .filter(|name| seen.insert(name.clone()))
                .map(Value::from),
        );
        // Draft 4 allows no empty list; in every draft it says nothing.
        let draft4 = map
            .get("$schema")
            .and_then(Value::as_str)
            .is_some_and(|s| s.contains("draft-04"));
        if draft4
            && map
                .get("required")
                .is_some_and(|r| r.as_array().is_some_and(Vec::is_empty))
        {
            map.shift_remove("required");
        }
    }

    fn warnings(self) -> Vec<String> {
        let listed =
            |names: BTreeSet<String>| cut(&names.into_iter().collect::<Vec<_>>().join(", "), 200);
        let mut warnings = Vec::new();
        if !self.nulls.is_empty() {
            warnings.push(format!(
                "the schema has null for {}; those count as absent",
                listed(self.nulls)
            ));
        }
        if !self.twice.is_empty() {
            warnings.push(format!(
                "the schema's required lists {} twice",
                listed(self.twice)
            ));
        }
        if !self.flagged.is_empty() {
            warnings.push(format!(
                "the properties {} say themselves whether they are required; it is read as the list beside them",
                listed(self.flagged)
            ));
        }
        if !self.older.is_empty() {
            let older: Vec<&str> = self.older.into_iter().collect();
            warnings.push(format!(
                "the schema names no dialect and writes {} as older drafts do; it is read as meant there",
                older.join(", ")
            ));
        }
        if self.any {
            warnings.push("the schema has the type \"any\"; it is read as no type".to_owned());
        }
        warnings
    }
}
