//! Schemas of Rust types, as models read them well.
//!
//! Knows: what schemars makes of types, and what of that helps nobody. Does not know: tools.

use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

/// A generator for arguments (`serialize = false`) or results.
pub(super) fn generator(serialize: bool) -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|s| s.meta_schema = None);
    let settings = if serialize {
        settings.for_serialize()
    } else {
        settings
    };
    settings.with_transform(Tidy).into_generator()
}

/// The schema of a type of arguments, and its doc comment.
pub(super) fn arguments<T: JsonSchema>() -> (Value, Option<String>) {
    let mut schema = generator(false).into_root_schema_for::<T>().to_value();
    let description = schema.as_object_mut().and_then(|map| {
        map.shift_remove("title");
        map.shift_remove("description")
    });
    let description = match description {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    if let Some(map) = schema.as_object_mut()
        && map.get("type").is_some_and(|t| t == "null")
    {
        // `()` takes no arguments.
        return (json!({ "type": "object", "properties": {} }), description);
    }
    (schema, description)
}

/// The schema of a type of results.
pub(super) fn output<T: JsonSchema>() -> Value {
    let mut schema = generator(true).into_root_schema_for::<T>().to_value();
    if let Some(map) = schema.as_object_mut() {
        map.shift_remove("title");
    }
    schema
}

/// Takes out formats that only Rust knows (`uint32`, `float`), which some providers refuse, and
/// says their ranges in their place.
#[derive(Clone)]
struct Tidy;

impl Transform for Tidy {
    fn transform(&mut self, schema: &mut Schema) {
        let range: Option<(Value, Value)> = match schema.get("format").and_then(Value::as_str) {
            Some("int8") => Some((json!(i8::MIN), json!(i8::MAX))),
            Some("int16") => Some((json!(i16::MIN), json!(i16::MAX))),
            Some("int32") => Some((json!(i32::MIN), json!(i32::MAX))),
            Some("uint8") => Some((json!(0), json!(u8::MAX))),
            Some("uint16") => Some((json!(0), json!(u16::MAX))),
            Some("uint32") => Some((json!(0), json!(u32::MAX))),
            Some(
                "int" | "int64" | "int128" | "uint" | "uint64" | "uint128" | "float" | "double",
            ) => None,
            _ => {
                transform_subschemas(self, schema);
                return;
            }
        };
        schema.remove("format");
        if let Some((least, most)) = range {
            for (keyword, limit) in [("minimum", least), ("maximum", most)] {
                if schema.get(keyword).is_none() {
                    schema.insert(keyword.to_owned(), limit);
                }
            }
        }
        transform_subschemas(self, schema);
    }
}
