//! The validator's complaints as sentences that a model can act on.
//!
//! Knows: what each keyword means in plain words, and where in the schema to look for names and
//! descriptions. Does not know: how anything is repaired.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use super::nearest::nearest;
use super::problem::{Problem, cut, dotted};
use crate::schema::InputSchema;
use crate::schema::outline::push_segment;

/// How much of a value is quoted, in bytes.
const QUOTE: usize = 120;
/// How many options, names or forms are listed.
const LISTED: usize = 12;
/// How many problems are described.
const DESCRIBED: usize = 200;

/// Every problem that the validator has with `value`. What came is quoted from `original`.
pub(super) fn problems(schema: &InputSchema, value: &Value, original: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    let Some(validator) = schema.validator() else {
        return problems;
    };
    for error in validator.iter_errors(value) {
        if problems.len() >= DESCRIBED {
            break;
        }
        describe(schema.as_value(), &error, original, &mut problems);
    }
    let mut seen = std::collections::HashSet::new();
    problems.retain(|p| seen.insert(p.to_string()));
    problems
}

fn describe(root: &Value, error: &ValidationError<'_>, original: &Value, out: &mut Vec<Problem>) {
    let at = error.instance_path().as_str();
    let here = root.pointer(parent(error.schema_path().as_str()));
    let instance = error.instance();
    let came = original.pointer(at).unwrap_or(instance);
    match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            out.push(missing(root, here, at, name, instance));
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context }
            if by_mark(root, context, at, original, out) => {}
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let known = property_names(root, here);
            for name in unexpected {
                let free: Vec<&str> = known
                    .iter()
                    .copied()
                    .filter(|k| instance.get(k).is_none())
                    .collect();
                let hint = nearest(name, free).map(|n| format!("did you mean {}?", quoted(n)));
                let expected = if known.is_empty() {
                    "this property is not known; leave it out".to_owned()
                } else {
                    format!(
                        "this property is not known; known are {}",
                        listed(known.iter().map(|n| (*n).to_owned()))
                    )
                };
                out.push(Problem::new(
                    dotted(&below(at, name)),
                    came.get(name).map(quote),
                    expected,
                    hint,
                ));
            }
        }
        Kind::PropertyNames { error: inner } => out.push(Problem::new(
            dotted(at),
            Some(quote(inner.instance())),
            format!("as the name of a property: {}", expected(root, inner).0),
            None,
        )),
        _ => {
            let (expected, hint) = expected(root, error);
            out.push(Problem::new(dotted(at), Some(quote(came)), expected, hint));
        }
    }
}

/// Describes a union whose branches tell themselves apart by a mark, such as `kind`: only the
/// branch whose mark came, or, when none did, the marks that there are. False if this is none.
fn by_mark(
    root: &Value,
    context: &[Vec<ValidationError<'static>>],
    at: &str,
    original: &Value,
    out: &mut Vec<Problem>,
) -> bool {
    let mark = |branch: &[ValidationError<'static>]| {
        let mut wrong = branch.iter().filter_map(|error| {
            let options = match error.kind() {
                Kind::Constant { expected_value } => vec![(**expected_value).clone()],
                Kind::Enum { options } => options.as_array().cloned().unwrap_or_default(),
                _ => return None,
            };
            let place = error.instance_path().as_str();
            (parent(place) == at && place != at).then(|| (place.to_owned(), options))
        });
        wrong.next()
    };
    let marks: Vec<_> = context.iter().map(|branch| mark(branch)).collect();
    let mut meant = marks.iter().enumerate().filter(|(_, mark)| mark.is_none());
    match (meant.next(), meant.next()) {
        (Some((one, _)), None) if marks.len() > 1 => {
            for error in &context[one] {
                describe(root, error, original, out);
            }
            true
        }
        (None, _) => {
            let mut marks = marks.into_iter().flatten();
            let Some((place, mut options)) = marks.next() else {
                return false;
            };
            for (other, more) in marks {
                if other != place {
                    return false;
                }
                options.extend(more);
            }
            let Some(came) = original.pointer(&place) else {
                return false;
            };
            let (expected, hint) = one_of(came, &options);
            out.push(Problem::new(
                dotted(&place),
                Some(quote(came)),
                expected,
                hint,
            ));
            true
        }
        _ => false,
    }
}

/// The property whose presence asks for another.
fn because<'v>(here: Option<&'v Value>, name: &str, instance: &Value) -> Option<&'v str> {
    let lists = ["dependentRequired", "dependencies"];
    let mut asking = lists
        .iter()
        .filter_map(|keyword| here?.get(keyword)?.as_object())
        .flatten()
        .filter(|(_, asked)| {
            asked
                .as_array()
                .is_some_and(|a| a.iter().any(|a| a == name))
        })
        .map(|(asking, _)| asking.as_str());
    asking.find(|asking| instance.get(asking).is_some())
}

fn missing(root: &Value, here: Option<&Value>, at: &str, name: &str, instance: &Value) -> Problem {
    let property = here.and_then(|h| find_property(root, h, name, 0));
    let brief = property.map(|p| brief(root, p)).unwrap_or_default();
    let known = property_names(root, here);
    let hint = instance.as_object().and_then(|object| {
        let strangers = object
            .keys()
            .map(String::as_str)
            .filter(|k| !known.contains(k));
        nearest(name, strangers).map(|n| format!("it may be what came as {}", quoted(n)))
    });
    let mut expected = if brief.is_empty() {
        "missing; it is required".to_owned()
    } else {
        format!("missing; expected {brief}")
    };
    let is_required = here
        .and_then(|h| h.get("required")?.as_array())
        .is_some_and(|all| all.iter().any(|n| n == name));
    if let Some(other) = because(here, name, instance).filter(|_| !is_required) {
        expected.push_str(&format!(", since {} is given", quoted(other)));
    }
    Problem::new(dotted(&below(at, name)), None, expected, hint)
}

/// What would be right, and a guess.
fn expected(root: &Value, error: &ValidationError<'_>) -> (String, Option<String>) {
    let instance = error.instance();
    let text = match error.kind() {
        Kind::Type { kind } => format!("expected {}", types(kind)),
        Kind::Enum { options } => {
            return one_of(instance, options.as_array().map_or(&[], Vec::as_slice));
        }
        Kind::Constant { expected_value } => {
            return one_of(instance, std::slice::from_ref(&**expected_value));
        }
        Kind::Minimum { limit } => format!("expected at least {limit}"),
        Kind::Maximum { limit } => format!("expected at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("expected more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("expected less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("expected a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!(
            "expected at least {}{}",
            count(*limit, "character"),
            has(instance)
        ),
        Kind::MaxLength { limit } => format!(
            "expected at most {}{}",
            count(*limit, "character"),
            has(instance)
        ),
        Kind::MinItems { limit } => format!(
            "expected at least {}{}",
            count(*limit, "item"),
            has(instance)
        ),
        Kind::MaxItems { limit } => format!(
            "expected at most {}{}",
            count(*limit, "item"),
            has(instance)
        ),
        Kind::AdditionalItems { limit } => {
            format!(
                "expected at most {}{}",
                count(*limit as u64, "item"),
                has(instance)
            )
        }
        Kind::UnevaluatedItems { .. } => format!("expected fewer items{}", has(instance)),
        Kind::MinProperties { limit } => {
            format!("expected at least {} properties{}", limit, has(instance))
        }
        Kind::MaxProperties { limit } => {
            format!("expected at most {} properties{}", limit, has(instance))
        }
        Kind::UniqueItems => format!("expected items that all differ{}", alike(instance)),
        Kind::Contains => contained(root.pointer(parent(error.schema_path().as_str()))),
        Kind::Pattern { pattern } => format!(
            "expected text that matches the pattern {}",
            cut(pattern, 200)
        ),
        Kind::Format { format } => format_text(format),
        Kind::Not { schema } => format!("expected anything but {}", cut(&schema.to_string(), 200)),
        Kind::FalseSchema => "nothing is allowed here; leave it out".to_owned(),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            forms(root, context, error.instance_path().as_str())
        }
        Kind::OneOfMultipleValid { context } => format!(
            "expected to fit exactly one of {} forms, and it fits several; say more exactly which is meant",
            context.len()
        ),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "could not be held against its pattern in bounded time; try a shorter text".to_owned()
        }
        Kind::Required { property } => {
            format!("its property {} is missing", quote(property))
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!(
                "its property {} is not known",
                listed(unexpected.iter().map(|n| quoted(n)))
            )
        }
        _ => cut(&error.to_string(), 200),
    };
    (text, None)
}

/// Which two items are the same, where that is soon found.
fn alike(instance: &Value) -> String {
    let mut seen = std::collections::HashMap::new();
    let items = instance.as_array().into_iter().flatten().take(1_000);
    for (i, item) in items.enumerate() {
        if let Some(first) = seen.insert(item.to_string(), i) {
            return format!("; items {first} and {i}, counted from 0, are the same");
        }
    }
    String::new()
}

/// What an array has to contain, by the schema that says so.
fn contained(here: Option<&Value>) -> String {
    let number = |name: &str| here.and_then(|h| h.get(name)).and_then(Value::as_u64);
    let least = number("minContains").unwrap_or(1);
    let most = number("maxContains").map(|most| format!(" and at most {most}"));
    let what = here.and_then(|h| h.get("contains"));
    let what = what.map(|w| format!(" that fit {}", cut(&w.to_string(), 200)));
    format!(
        "expected at least {}{}{}",
        count(least, "item"),
        most.unwrap_or_default(),
        what.unwrap_or_default()
    )
}

fn one_of(instance: &Value, options: &[Value]) -> (String, Option<String>) {
    let hint = instance.as_str().and_then(|came| {
        nearest(came, options.iter().filter_map(Value::as_str))
            .map(|n| format!("did you mean {}?", quoted(n)))
    });
    let text = match options {
        [one] => format!("expected exactly {}", quote(one)),
        many => format!("expected one of {}", listed(many.iter().map(quote))),
    };
    (text, hint)
}

/// The branches of a union: only types if that is all there is to them, else each with what
/// stands in its way.
fn forms(root: &Value, context: &[Vec<ValidationError<'static>>], at: &str) -> String {
    let only_types: Option<Vec<String>> = context
        .iter()
        .map(|branch| match branch.as_slice() {
            [one] => match one.kind() {
                Kind::Type { kind } if one.instance_path().as_str() == at => Some(types(kind)),
                _ => None,
            },
            _ => None,
        })
        .collect();
    if let Some(mut names) = only_types.filter(|names| !names.is_empty()) {
        names.dedup();
        return format!("expected {}", names.join(" or "));
    }
    let mut text = format!("expected to fit one of {} forms", context.len());
    for (i, branch) in context.iter().enumerate().take(4) {
        let reasons: Vec<String> = branch
            .iter()
            .take(2)
            .map(|e| {
                let place = e.instance_path().as_str();
                let reason = expected(root, e).0;
                if place == at {
                    reason
                } else {
                    format!("{} {reason}", dotted(place))
                }
            })
            .collect();
        text.push_str(&format!(
            "; form {}: {}",
            i + 1,
            cut(&reasons.join(", "), 250)
        ));
    }
    text
}

/// What a property wants, in a few words, with its description.
fn brief(root: &Value, property: &Value) -> String {
    let property = followed(root, property, 0);
    let mut text = match property.get("type") {
        Some(Value::String(name)) => with_article(name).to_owned(),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .map(with_article)
            .collect::<Vec<_>>()
            .join(" or "),
        _ => String::new(),
    };
    if let Some(options) = property.get("enum").and_then(Value::as_array) {
        text = format!("one of {}", listed(options.iter().map(quote)));
    }
    if let Some(description) = property.get("description").and_then(Value::as_str) {
        let description = cut(description.lines().next().unwrap_or_default().trim(), QUOTE);
        text = if text.is_empty() {
            description
        } else {
            format!("{text}: {description}")
        };
    }
    text
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => with_article(one.as_str()).to_owned(),
        TypeKind::Multiple(set) => {
            let mut names: Vec<JsonType> = set.iter().collect();
            names.sort_by_key(|t| *t == JsonType::Null);
            names
                .iter()
                .map(|t| with_article(t.as_str()))
                .collect::<Vec<_>>()
                .join(" or ")
        }
    }
}

fn with_article(name: &str) -> &str {
    match name {
        "integer" => "an integer",
        "number" => "a number",
        "string" => "a string",
        "boolean" => "true or false",
        "array" => "an array",
        "object" => "an object",
        other => other,
    }
}

fn format_text(format: &str) -> String {
    let example = match format {
        "date-time" => "2026-11-30T03:17:12Z",
        "date" => "2026-11-30",
        "time" => "03:17:12Z",
        "duration" => "PT1H30M",
        "email" => "name@example.org",
        "uri" => "https://example.org/path",
        "uuid" => "0190a5c2-7b1e-7c3f-9d2a-1f2e3d4c5b6a",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "hostname" => "example.org",
        _ => return format!("expected text in the format {format}"),
    };
    format!("expected text in the format {format}, e.g. {example}")
}

fn has(instance: &Value) -> String {
    match instance {
        Value::String(text) => format!(", it has {}", text.chars().count()),
        Value::Array(items) => format!(", it has {}", items.len()),
        Value::Object(map) => format!(", it has {}", map.len()),
        _ => String::new(),
    }
}

fn count(n: u64, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

fn listed(items: impl ExactSizeIterator<Item = String>) -> String {
    let total = items.len();
    let mut text = items
        .take(LISTED)
        .map(|i| cut(&i, 80))
        .collect::<Vec<_>>()
        .join(", ");
    if total > LISTED {
        text.push_str(&format!(" and {} more", total - LISTED));
    }
    text
}

fn quote(value: &Value) -> String {
    cut(&value.to_string(), QUOTE)
}

fn quoted(text: &str) -> String {
    quote(&Value::String(text.to_owned()))
}

fn parent(pointer: &str) -> &str {
    pointer.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn below(at: &str, name: &str) -> String {
    let mut pointer = at.to_owned();
    push_segment(&mut pointer, name);
    pointer
}

/// The schema that a chain of local references ends at.
fn followed<'v>(root: &'v Value, schema: &'v Value, depth: usize) -> &'v Value {
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|target| target.strip_prefix('#'))
        .and_then(|pointer| root.pointer(pointer));
    match target {
        Some(next) if depth < 16 && schema.get("type").is_none() => followed(root, next, depth + 1),
        _ => schema,
    }
}

/// A property of a schema, through `$ref` and `allOf`.
fn find_property<'v>(
    root: &'v Value,
    schema: &'v Value,
    name: &str,
    depth: usize,
) -> Option<&'v Value> {
    if depth > 16 {
        return None;
    }
    let schema = followed(root, schema, 0);
    schema
        .get("properties")
        .and_then(|p| p.get(name))
        .or_else(|| {
            let parts = schema.get("allOf")?.as_array()?;
            parts
                .iter()
                .find_map(|part| find_property(root, part, name, depth + 1))
        })
}

/// The names of a schema's properties, those of its parts and branches included.
fn property_names<'v>(root: &'v Value, schema: Option<&'v Value>) -> Vec<&'v str> {
    fn gather<'v>(root: &'v Value, schema: &'v Value, names: &mut Vec<&'v str>, depth: usize) {
        if depth > 8 || names.len() > 1_000 {
            return;
        }
        let schema = followed(root, schema, 0);
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for name in properties.keys() {
                if !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for part in schema
                .get(keyword)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                gather(root, part, names, depth + 1);
            }
        }
    }
    let mut names = Vec::new();
    if let Some(schema) = schema {
        gather(root, schema, &mut names, 0);
    }
    names
}
