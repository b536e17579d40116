//! A tool's schema, compiled once and bounded (T-4).
//!
//! Knows: how large, deep and costly a schema may be, how to put right what servers get wrong,
//! how to ask the validator. Does not know: tools, and what the model is told.
//!
//! The validator is the crate `jsonschema` behind the feature `schema`, without its resolvers:
//! a `$ref` never opens a file or an address. Without the feature a schema still gives its
//! required names and its defaults, and every object is valid.

use std::sync::Arc;
#[cfg(feature = "schema")]
use std::sync::OnceLock;

use serde_json::{Value, json};
use yiem_core::{BoxError, JsonObject};

mod alike;
pub(crate) mod normal;
pub(crate) mod outline;

use alike::Likeness;
use outline::Outline;

/// How large a schema may be, and how much work checking one value may be.
///
/// The default is for schemas that come from others (MCP servers); for one's own tools the
/// registry uses [`SchemaLimits::own`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SchemaLimits {
    /// Bytes of its compact JSON; default 256 KiB.
    pub max_bytes: usize,
    /// How deep schemas may be nested in each other; default 64.
    pub max_depth: usize,
    /// How many schemas one document may hold, every property counted; default 10,000.
    pub max_schemas: usize,
    /// How many steps checking one value may take, a step being one schema that meets one
    /// value; default 1,000,000, which is some tens of milliseconds.
    pub max_steps: u64,
}

impl Default for SchemaLimits {
    fn default() -> Self {
        Self {
            max_bytes: 256 * 1024,
            max_depth: 64,
            max_schemas: 10_000,
            max_steps: 1_000_000,
        }
    }
}

impl SchemaLimits {
    /// Limits for one's own tools: larger schemas (4 MiB), the same depth and time.
    #[must_use]
    pub fn own() -> Self {
        Self {
            max_bytes: 4 * 1024 * 1024,
            max_schemas: 50_000,
            ..Self::default()
        }
    }
}

/// Why a schema cannot be used. A tool of one's own with such a schema is an error of `build()`,
/// a server's tool with one is quarantined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It is no JSON object and not `true`.
    #[error(
        "the schema is {found}; write a JSON object such as {{\"type\":\"object\",\"properties\":{{}}}}"
    )]
    NotAnObject {
        /// What it is, cut.
        found: String,
    },
    /// Arguments are always an object, and it allows none.
    #[error("the schema allows no object as arguments ({reason}); its type has to be \"object\"")]
    NoObject {
        /// What stands in the way.
        reason: String,
    },
    /// More bytes than [`SchemaLimits::max_bytes`].
    #[error("the schema is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// Nested deeper than [`SchemaLimits::max_depth`].
    #[error("the schema is nested deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// More schemas than [`SchemaLimits::max_schemas`].
    #[error("the schema holds more than {limit} schemas")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// Names of properties that are too long, those around them included.
    #[error("the names that lead to one of the schema's properties have more than {limit} bytes")]
    LongNames {
        /// The limit.
        limit: usize,
    },
    /// Too many patterns, or one that is too long.
    #[error("the schema has more than {limit} patterns, or one of more than 4,096 bytes")]
    Patterns {
        /// The most patterns.
        limit: usize,
    },
    /// Too many references or combinations in a row.
    #[error("the schema leads through more than {limit} references or combinations in a row")]
    Chain {
        /// The limit.
        limit: usize,
    },
    /// Checking it would take exponential time.
    #[error(
        "the schema would be applied more than {limit} times to a single value; its allOf, anyOf, oneOf and $ref multiply"
    )]
    Fanout {
        /// The limit.
        limit: u64,
    },
    /// A `$schema` that is no draft of JSON Schema that is known here.
    #[error(
        "the schema's dialect {dialect:?} is not known; known are drafts 4, 6, 7, 2019-09 and 2020-12"
    )]
    Dialect {
        /// The value of `$schema`, cut.
        dialect: String,
    },
    /// The validator refuses it.
    #[error("the schema is not valid JSON Schema: at {at}: {reason}")]
    Invalid {
        /// Where in the schema, as a JSON pointer; `the top` for the schema itself.
        at: String,
        /// What is wrong there.
        reason: String,
        /// The validator's own error.
        #[source]
        source: BoxError,
    },
}

/// A compiled schema of a tool's arguments or result (T-4).
///
/// Compiled once, when the tool is registered. Clones share it, and so do schemas of the same
/// text that are held at the same time.
#[derive(Clone, Debug)]
pub struct InputSchema(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// As it was given, with what had to be put right.
    schema: Value,
    required: Vec<String>,
    outline: Outline,
    warnings: Vec<String>,
    /// Places whose default is against its own schema; those are not filled in.
    bad_defaults: Vec<String>,
    max_steps: u64,
    #[cfg(feature = "schema")]
    plain: Option<plain::Plain>,
    /// Made when it is first needed, if the schema is plain.
    #[cfg(feature = "schema")]
    validator: OnceLock<Option<jsonschema::Validator>>,
}

impl InputSchema {
    /// Compiles a schema of arguments within limits.
    ///
    /// What servers get wrong without doubt is put right and told in [`InputSchema::warnings`]:
    /// `true` and a missing `type` mean any object, keywords that are `null` count as absent,
    /// tuples and limits as older drafts write them are rewritten where no `$schema` says that
    /// they are meant so. Drafts 4, 6, 7, 2019-09 and 2020-12
    /// are known, 2020-12 holds without a `$schema`.
    ///
    /// # Errors
    /// The schema is too large, too deep or too costly, allows no object, or is not valid.
    pub fn compile(schema: &Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        check_size(schema, limits)?;
        Self::shared(schema, true, limits)
    }

    /// Compiles a schema of any value, such as a tool's `outputSchema`, within limits.
    ///
    /// # Errors
    /// The schema is too large, too deep or too costly, or is not valid.
    pub fn compile_any(schema: &Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        check_size(schema, limits)?;
        Self::shared(schema, false, limits)
    }

    fn shared(schema: &Value, arguments: bool, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        let likeness = Likeness::of(schema, arguments, limits);
        if let Some(held) = alike::held(&likeness) {
            return Ok(Self(held));
        }
        let (schema, warnings) = match arguments {
            true => normal::arguments(schema)?,
            false => normal::any(schema)?,
        };
        let built = Self::build(schema, warnings, limits)?;
        alike::remember(likeness, &built.0);
        Ok(built)
    }

    fn build(
        schema: Value,
        warnings: Vec<String>,
        limits: &SchemaLimits,
    ) -> Result<Self, SchemaError> {
        let outline = Outline::new(&schema, limits)?;
        #[cfg(feature = "schema")]
        let plain = plain::Plain::of(&schema);
        // A schema that is read at a glance is surely valid; its validator can wait.
        #[cfg(feature = "schema")]
        let validator = match plain {
            Some(_) => OnceLock::new(),
            None => OnceLock::from(Some(compiled::compile(&schema, outline.patterns())?)),
        };
        let mut inner = Inner {
            required: required_names(&schema),
            schema,
            outline,
            warnings,
            bad_defaults: Vec::new(),
            max_steps: limits.max_steps,
            #[cfg(feature = "schema")]
            plain,
            #[cfg(feature = "schema")]
            validator,
        };
        inner.find_bad_defaults();
        Ok(Self(Arc::new(inner)))
    }

    /// The schema that accepts any object.
    #[must_use]
    pub fn any_object() -> Value {
        json!({ "type": "object", "properties": {} })
    }

    /// The schema as JSON: as it was given, with what had to be put right.
    #[must_use]
    pub fn as_value(&self) -> &Value {
        &self.0.schema
    }

    /// The names that `required` lists at the top, in its order (SP-023).
    #[must_use]
    pub fn required(&self) -> &[String] {
        &self.0.required
    }

    /// What was odd about the schema and how it was taken, as short sentences.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// Fills absent properties with their defaults; a default that is against its own schema is
    /// left out. Gives the places that were filled, as pointers.
    pub(crate) fn fill_defaults(&self, args: &mut Value) -> Vec<String> {
        let bad = &self.0.bad_defaults;
        self.0
            .outline
            .fill_defaults(args, &|at| bad.is_empty() || !bad.iter().any(|b| b == at))
    }

    /// Whether checking this value stays within the limit of steps.
    #[cfg_attr(
        not(feature = "schema"),
        expect(dead_code, reason = "asked by the schema stage")
    )]
    pub(crate) fn affords(&self, value: &Value) -> bool {
        self.0.outline.affords(value, self.0.max_steps).is_ok()
    }

    /// What says of a value what is wrong with it. There is always one: a schema whose validator
    /// could not be made was refused.
    #[cfg(feature = "schema")]
    pub(crate) fn validator(&self) -> Option<&jsonschema::Validator> {
        self.0.validator()
    }

    /// Whether the arguments surely are as the schema wants them, and nothing has to be filled in.
    #[cfg(feature = "schema")]
    pub(crate) fn fits_unchanged(&self, args: &JsonObject) -> bool {
        !self.0.outline.has_defaults() && self.0.plain.as_ref().is_some_and(|p| p.fits_object(args))
    }

    /// Without the feature `schema` nothing is sure.
    #[cfg(not(feature = "schema"))]
    pub(crate) fn fits_unchanged(&self, _: &JsonObject) -> bool {
        false
    }

    /// Whether the value is as the schema wants it.
    #[cfg(feature = "schema")]
    pub(crate) fn is_valid(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }
}

impl Inner {
    #[cfg(feature = "schema")]
    fn validator(&self) -> Option<&jsonschema::Validator> {
        self.validator
            .get_or_init(|| compiled::compile(&self.schema, self.outline.patterns()).ok())
            .as_ref()
    }

    #[cfg(feature = "schema")]
    fn is_valid(&self, value: &Value) -> bool {
        self.plain.as_ref().is_some_and(|plain| plain.fits(value))
            || self.validator().is_some_and(|v| v.is_valid(value))
    }

    /// Whether the default of this place is against the schema there.
    #[cfg(feature = "schema")]
    fn complains_at(&self, at: &str, default: &Value, probe: &Value) -> bool {
        let here = self.plain.as_ref().and_then(|plain| plain.at(at));
        !here.is_some_and(|plain| plain.fits(default))
            && self
                .validator()
                .is_none_or(|v| compiled::complains_at(v, probe, at))
    }

    #[cfg(feature = "schema")]
    fn find_bad_defaults(&mut self) {
        for (at, default) in self.outline.defaults() {
            let probe = compiled::around(&at, default.clone());
            if self.outline.affords(&probe, self.max_steps).is_err()
                || self.complains_at(&at, &default, &probe)
            {
                self.warnings.push(format!(
                    "the default of {} is against its own schema and is not filled in",
                    crate::validate::problem::dotted(&at)
                ));
                self.bad_defaults.push(at);
            }
        }
    }

    #[cfg(not(feature = "schema"))]
    fn find_bad_defaults(&mut self) {
        let _ = self.outline.defaults();
    }
}

/// The names that a schema's `required` lists; what is no text is passed over (SP-023).
pub(crate) fn required_names(schema: &Value) -> Vec<String> {
    match schema.get("required") {
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(|n| n.as_str().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    }
}

/// Refuses a schema of too many bytes, or nested too deep for anything that recurses.
fn check_size(schema: &Value, limits: &SchemaLimits) -> Result<(), SchemaError> {
    // Values nest deeper than schemas do: `properties` and its members are two levels.
    let max_depth = limits.max_depth.saturating_mul(3).saturating_add(8);
    let mut bytes = 0_usize;
    let mut open = vec![(schema, 0_usize)];
    while let Some((value, depth)) = open.pop() {
        if depth > max_depth {
            return Err(SchemaError::TooDeep {
                limit: limits.max_depth,
            });
        }
        bytes += match value {
            Value::Object(map) => {
                open.extend(map.values().map(|v| (v, depth + 1)));
                2 + map.keys().map(|k| k.len() + 4).sum::<usize>()
            }
            Value::Array(items) => {
                open.extend(items.iter().map(|v| (v, depth + 1)));
                2 + items.len()
            }
            Value::String(text) => text.len() + 2,
            _ => 4,
        };
        if bytes > limits.max_bytes {
            return Err(SchemaError::TooLarge {
                limit: limits.max_bytes,
            });
        }
    }
    Ok(())
}

/// The object inside a value that is known to be one.
pub(crate) fn into_object(value: Value) -> JsonObject {
    match value {
        Value::Object(map) => map,
        _ => JsonObject::new(),
    }
}

#[cfg(feature = "schema")]
mod compiled;
#[cfg(feature = "schema")]
mod plain;
