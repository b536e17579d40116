//! The validator of the crate `jsonschema`, made so that nothing it is given can hurt.
//!
//! Knows: its options and errors. Does not know: why it is asked.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Value, json};

use super::SchemaError;

/// How often a pattern with look-around may step back before the check gives up.
const BACKTRACK_LIMIT: usize = 20_000;
/// Bytes of a compiled pattern, where there are few of them; and where there are many.
const PATTERN_SIZE: usize = 2 * 1024 * 1024;
const SMALL_PATTERN_SIZE: usize = 256 * 1024;
/// How many patterns are few.
const FEW: usize = 20;

/// Compiles a schema: no network, no files, patterns bounded. Without a dialect 2020-12 holds:
/// what older drafts write has been rewritten, and what is wrong is not passed over because some
/// older draft does not know the keyword.
pub(super) fn compile(schema: &Value, patterns: usize) -> Result<Validator, SchemaError> {
    let draft = match schema.get("$schema") {
        None => Draft::Draft202012,
        Some(dialect) => {
            dialect
                .as_str()
                .and_then(draft_of)
                .ok_or_else(|| SchemaError::Dialect {
                    dialect: crate::validate::problem::cut(dialect.as_str().unwrap_or("?"), 100),
                })?
        }
    };
    build(schema, draft, patterns).map_err(invalid)
}

fn build(
    schema: &Value,
    draft: Draft,
    patterns: usize,
) -> Result<Validator, jsonschema::ValidationError<'static>> {
    let size = if patterns > FEW {
        SMALL_PATTERN_SIZE
    } else {
        PATTERN_SIZE
    };
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(BACKTRACK_LIMIT)
        .size_limit(size)
        .dfa_size_limit(size);
    // The dialect is settled here; a spelling that the crate does not know must not undo that.
    let settled;
    let schema = if schema.get("$schema").is_some() {
        let mut copy = schema.clone();
        if let Value::Object(map) = &mut copy {
            map.shift_remove("$schema");
        }
        settled = copy;
        &settled
    } else {
        schema
    };
    jsonschema::options()
        .with_draft(draft)
        .with_pattern_options(patterns)
        .offline()
        .build(schema)
}

fn draft_of(dialect: &str) -> Option<Draft> {
    let dialect = dialect.trim().trim_end_matches(['#', '/']);
    let path = dialect
        .strip_prefix("http://json-schema.org/")
        .or_else(|| dialect.strip_prefix("https://json-schema.org/"))?;
    Some(match path {
        "draft-04/schema" => Draft::Draft4,
        // Draft 5 changed no keyword of draft 4.
        "draft-05/schema" => Draft::Draft4,
        "draft-06/schema" => Draft::Draft6,
        "draft-07/schema" => Draft::Draft7,
        "draft/2019-09/schema" => Draft::Draft201909,
        "draft/2020-12/schema" | "schema" => Draft::Draft202012,
        _ => return None,
    })
}

fn invalid(error: jsonschema::ValidationError<'static>) -> SchemaError {
    let at = error.instance_path().as_str();
    SchemaError::Invalid {
        at: if at.is_empty() {
            "the top".to_owned()
        } else {
            at.to_owned()
        },
        reason: crate::validate::problem::cut(&error.to_string(), 300),
        source: Box::new(error),
    }
}

/// Objects around a value, so that it stands at `pointer`.
pub(super) fn around(pointer: &str, value: Value) -> Value {
    pointer
        .split('/')
        .skip(1)
        .collect::<Vec<_>>()
        .iter()
        .rev()
        .fold(value, |inner, segment| {
            let name = segment.replace("~1", "/").replace("~0", "~");
            json!({ name: inner })
        })
}

/// Whether the validator finds anything wrong at this place or below it.
pub(super) fn complains_at(validator: &Validator, value: &Value, pointer: &str) -> bool {
    validator.iter_errors(value).any(|e| {
        let at = e.instance_path().as_str();
        at.strip_prefix(pointer)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}
