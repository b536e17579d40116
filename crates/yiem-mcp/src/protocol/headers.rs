//! `x-mcp-header`: arguments that a modern HTTP request repeats in its headers.

use super::BadDefinition;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// How deep a schema is searched for marks.
const DEPTH_CAP: usize = 32;

/// An argument that goes into a header as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamHeader {
    /// The header without `Mcp-Param-`, as the schema spells it.
    pub header: String,
    /// The keys that lead to the argument.
    pub path: Vec<String>,
}

/// The arguments that a tool's schema marks with `x-mcp-header`.
///
/// # Errors
/// A mark is invalid: empty, no HTTP token, twice the same name in any case, not on a text, whole
/// number or truth value, or not reachable through `properties` alone. The tool is then left out.
pub fn param_headers(name: &str, input_schema: &Value) -> Result<Vec<ParamHeader>, BadDefinition> {
    let mut found: Vec<ParamHeader> = Vec::new();
    let bad = |reason: String| BadDefinition {
        name: name.to_owned(),
        reason,
    };
    let mut reachable = 0;
    collect(input_schema, &mut Vec::new(), &mut found, &mut reachable).map_err(bad)?;
    if marks(input_schema, 0) > reachable {
        return Err(bad(
            "an x-mcp-header stands where no argument can be reached by properties alone".into(),
        ));
    }
    for (at, header) in found.iter().enumerate() {
        if found[..at]
            .iter()
            .any(|other| other.header.eq_ignore_ascii_case(&header.header))
        {
            return Err(bad(format!(
                "the x-mcp-header `{}` is there twice",
                header.header
            )));
        }
    }
    Ok(found)
}

fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<ParamHeader>,
    reachable: &mut usize,
) -> Result<(), String> {
    if path.len() > DEPTH_CAP {
        return Ok(());
    }
    if let Some(mark) = mark_of(schema)
        && !path.is_empty()
    {
        *reachable += 1;
        let header = mark.as_str().unwrap_or_default();
        if header.is_empty() || !header.bytes().all(is_token_byte) {
            return Err(format!("the x-mcp-header {mark} is no HTTP token"));
        }
        let kind = schema
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !matches!(kind, "string" | "integer" | "boolean") {
            return Err(format!(
                "the x-mcp-header `{header}` is not on a string, integer or boolean"
            ));
        }
        found.push(ParamHeader {
            header: header.to_owned(),
            path: path.clone(),
        });
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for (key, property) in properties {
        path.push(key.clone());
        collect(property, path, found, reachable)?;
        path.pop();
    }
    Ok(())
}

fn mark_of(schema: &Value) -> Option<&Value> {
    schema.as_object()?.get("x-mcp-header")
}

/// How many marks there are anywhere, but for texts that only look like one (`const`, `enum`, …).
fn marks(schema: &Value, depth: usize) -> usize {
    if depth > 2 * DEPTH_CAP {
        return 0;
    }
    match schema {
        Value::Object(object) => {
            let here = usize::from(object.contains_key("x-mcp-header"));
            let below: usize = object
                .iter()
                .map(|(key, value)| match key.as_str() {
                    "const" | "enum" | "default" | "examples" | "x-mcp-header" => 0,
                    "properties" | "patternProperties" | "$defs" | "definitions"
                    | "dependentSchemas" => value.as_object().map_or(0, |map| {
                        map.values().map(|value| marks(value, depth + 1)).sum()
                    }),
                    _ => marks(value, depth + 1),
                })
                .sum();
            here + below
        }
        Value::Array(items) => items.iter().map(|item| marks(item, depth + 1)).sum(),
        _ => 0,
    }
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The headers of one call: names with `Mcp-Param-` and values. What is absent or null has none.
#[must_use]
pub fn values_for_headers(
    marked: &[ParamHeader],
    arguments: &Map<String, Value>,
) -> Vec<(String, String)> {
    marked
        .iter()
        .filter_map(|header| {
            let (first, rest) = header.path.split_first()?;
            let mut value = arguments.get(first)?;
            for key in rest {
                value = value.get(key)?;
            }
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                _ => return None,
            };
            Some((
                format!("Mcp-Param-{}", header.header),
                encode_header_value(&text),
            ))
        })
        .collect()
}

/// A text as a header's value: as it is when it is plain ASCII, unpadded and not like the sentinel, else
/// `=?base64?…?=`.
#[must_use]
pub fn encode_header_value(text: &str) -> String {
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let padded = text.trim() != text;
    let like_sentinel = text.starts_with("=?base64?") && text.ends_with("?=");
    if plain && !padded && !like_sentinel {
        return text.to_owned();
    }
    format!("=?base64?{}?=", STANDARD.encode(text))
}
