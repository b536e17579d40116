//! From arguments as they came to arguments as the schema wants them, without loss (T-4).
//!
//! Knows: which changes lose nothing, and that only what the validator complains about is
//! changed. Does not know: what a refusal says.
//!
//! A value that is valid is never touched other than by defaults: first the validator is asked,
//! and only where it complains something is tried. So valid arguments come out unchanged, and
//! doing all this twice is doing it once.

use std::collections::HashSet;
use std::sync::Arc;

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, JsonTypeSet, Validator};
use serde_json::Value;

use super::{ValidationError, ValidationErrorKind, describe, text};
use crate::schema::InputSchema;

/// How often the validator is asked anew after changes.
const ROUNDS: usize = 12;
/// How many changed copies are tried against the validator in one check.
const TRIALS: usize = 64;
/// How many complaints are looked at in one round.
const COMPLAINTS: usize = 500;
/// How many ways to read one branch of a union are tried.
const VARIANTS: usize = 8;

/// Defaults, coercion and the schema: the accepted value, or every problem.
pub(super) fn accept(schema: &InputSchema, args: Value) -> Result<Value, ValidationError> {
    afford(schema, &args)?;
    if schema.is_valid(&args) {
        return Ok(with_defaults(schema, args));
    }
    let Some(validator) = schema.validator() else {
        return Err(no_validator());
    };
    let mut repaired = args.clone();
    let mut repair = Repair {
        schema,
        validator,
        settled: HashSet::new(),
        trials: TRIALS,
    };
    repair.run(&mut repaired)?;
    let mut filled = repaired.clone();
    if !schema.fill_defaults(&mut filled).is_empty() {
        afford(schema, &filled)?;
        if validator.is_valid(&filled) {
            return Ok(filled);
        }
    }
    let problems = describe::problems(schema, &repaired, &args);
    if problems.is_empty() {
        return Ok(repaired);
    }
    Err(ValidationError::problems_of("arguments", problems, &args))
}

/// A result against its schema: nothing is changed.
pub(super) fn check_output(schema: &InputSchema, value: &Value) -> Result<(), ValidationError> {
    afford(schema, value)?;
    if schema.is_valid(value) {
        return Ok(());
    }
    let problems = describe::problems(schema, value, value);
    if problems.is_empty() {
        return Ok(());
    }
    Err(ValidationError::problems_of(
        "structured result",
        problems,
        value,
    ))
}

fn afford(schema: &InputSchema, value: &Value) -> Result<(), ValidationError> {
    if schema.affords(value) {
        return Ok(());
    }
    Err(ValidationError::new(
        ValidationErrorKind::TooCostly,
        "The arguments were not checked: against this tool's schema that would take too much work. \
         Try with smaller or less deeply nested arguments.",
    ))
}

/// What is said where nothing can say what is wrong.
fn no_validator() -> ValidationError {
    ValidationError::new(
        ValidationErrorKind::Schema,
        "The arguments are not as the tool's schema wants them.",
    )
}

/// Fills defaults into a valid value; if that would make it invalid, it stays as it is.
fn with_defaults(schema: &InputSchema, mut args: Value) -> Value {
    let added = schema.fill_defaults(&mut args);
    if added.is_empty() || schema.affords(&args) && schema.is_valid(&args) {
        return args;
    }
    for at in added.iter().rev() {
        take_out(&mut args, at);
    }
    args
}

/// One complaint of the validator, as far as a change could answer it.
struct Complaint {
    /// The place, as a JSON pointer.
    at: String,
    /// Whether the place is a property that the schema names.
    named: bool,
    want: Want,
}

enum Want {
    Types(JsonTypeSet),
    OneOf(Arc<Value>),
    Exactly(Arc<Value>),
    /// One of several branches: where that stands in the schema, and each branch's complaints.
    Branch {
        keyword: String,
        branches: Vec<Vec<Complaint>>,
    },
    Other,
}

struct Repair<'s> {
    schema: &'s InputSchema,
    validator: &'s Validator,
    /// Places that were changed; none is changed twice.
    settled: HashSet<String>,
    trials: usize,
}

impl Repair<'_> {
    fn run(&mut self, args: &mut Value) -> Result<(), ValidationError> {
        for _ in 0..ROUNDS {
            let mut changed = false;
            for complaint in complaints(self.validator, args) {
                if !self.settled.contains(&complaint.at) && self.answer(args, &complaint) {
                    self.settled.insert(complaint.at);
                    changed = true;
                }
            }
            if !changed {
                break;
            }
            afford(self.schema, args)?;
        }
        Ok(())
    }

    fn answer(&mut self, args: &mut Value, complaint: &Complaint) -> bool {
        let Some(current) = args.pointer(&complaint.at) else {
            return false;
        };
        if let Want::Branch { keyword, branches } = &complaint.want {
            return self.choose_branch(args, complaint, keyword, branches)
                || self.drop_null(args, complaint);
        }
        match turned(current, &complaint.want) {
            Some(value) => put(args, &complaint.at, value),
            None => self.drop_null(args, complaint),
        }
    }

    /// Reads the value as the first branch that then holds.
    fn choose_branch(
        &mut self,
        args: &mut Value,
        complaint: &Complaint,
        keyword: &str,
        branches: &[Vec<Complaint>],
    ) -> bool {
        for (i, branch) in branches.iter().enumerate() {
            let Some(current) = args.pointer(&complaint.at) else {
                return false;
            };
            let mut tried = variants(current, &complaint.at, branch);
            for _ in 0..4 {
                let mut deeper = None;
                for variant in std::mem::take(&mut tried) {
                    if self.trials == 0 {
                        return false;
                    }
                    self.trials -= 1;
                    let mut trial = args.clone();
                    if !put(&mut trial, &complaint.at, variant) || !self.schema.affords(&trial) {
                        continue;
                    }
                    let same = complaints(self.validator, &trial)
                        .into_iter()
                        .find_map(|c| match c.want {
                            Want::Branch {
                                keyword: k,
                                branches,
                            } if c.at == complaint.at && k == keyword => Some(branches),
                            _ => None,
                        });
                    match same {
                        None => {
                            *args = trial;
                            return true;
                        }
                        Some(mut left) if deeper.is_none() && i < left.len() => {
                            deeper = trial
                                .pointer(&complaint.at)
                                .map(|now| variants(now, &complaint.at, &left.swap_remove(i)));
                        }
                        Some(_) => {}
                    }
                }
                match deeper {
                    Some(next) if !next.is_empty() => tried = next,
                    _ => break,
                }
            }
        }
        false
    }

    /// Takes out a `null` that stands for an optional property that is absent.
    fn drop_null(&mut self, args: &mut Value, complaint: &Complaint) -> bool {
        let is_null = args.pointer(&complaint.at).is_some_and(Value::is_null);
        if !is_null || !complaint.named || self.trials == 0 {
            return false;
        }
        self.trials -= 1;
        let mut trial = args.clone();
        let Some((parent, name)) = take_out(&mut trial, &complaint.at) else {
            return false;
        };
        let required = self.validator.iter_errors(&trial).take(COMPLAINTS).any(|e| {
            matches!(e.kind(), Kind::Required { property } if property.as_str() == Some(name.as_str()))
                && e.instance_path().as_str() == parent
        });
        if required {
            return false;
        }
        *args = trial;
        true
    }
}

fn complaints(validator: &Validator, value: &Value) -> Vec<Complaint> {
    validator
        .iter_errors(value)
        .take(COMPLAINTS)
        .map(|e| complaint(&e))
        .collect()
}

fn complaint(error: &jsonschema::ValidationError<'_>) -> Complaint {
    let at = error.instance_path().as_str().to_owned();
    let named = at.rsplit_once('/').is_some_and(|(_, name)| {
        let path = error.evaluation_path().as_str();
        path.contains(&format!("/properties/{name}/"))
    });
    let want = match error.kind() {
        Kind::Type {
            kind: TypeKind::Single(one),
        } => Want::Types(JsonTypeSet::empty().insert(*one)),
        Kind::Type {
            kind: TypeKind::Multiple(set),
        } => Want::Types(*set),
        Kind::Enum { options } => Want::OneOf(Arc::clone(options)),
        Kind::Constant { expected_value } => Want::Exactly(Arc::clone(expected_value)),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => Want::Branch {
            keyword: error.schema_path().as_str().to_owned(),
            branches: context
                .iter()
                .map(|b| b.iter().map(complaint).collect())
                .collect(),
        },
        _ => Want::Other,
    };
    Complaint { at, named, want }
}

/// The value in another writing that answers the complaint, if one loses nothing.
fn turned(value: &Value, want: &Want) -> Option<Value> {
    match want {
        Want::Types(types) => to_types(value, *types),
        Want::OneOf(options) => options
            .as_array()?
            .iter()
            .find_map(|option| to_option(value, option)),
        Want::Exactly(option) => to_option(value, option),
        Want::Branch { .. } | Want::Other => None,
    }
}

fn to_types(value: &Value, types: JsonTypeSet) -> Option<Value> {
    let may_be = |t| types.contains(t);
    match value {
        Value::String(written) => {
            let number = if may_be(JsonType::Number) {
                text::number(written)
            } else if may_be(JsonType::Integer) {
                text::integer(written)
            } else {
                None
            };
            if let Some(number) = number {
                return Some(Value::Number(number));
            }
            match written.as_str() {
                "true" if may_be(JsonType::Boolean) => return Some(Value::Bool(true)),
                "false" if may_be(JsonType::Boolean) => return Some(Value::Bool(false)),
                _ => {}
            }
            text::compound(written).filter(|inner| {
                inner.is_array() && may_be(JsonType::Array)
                    || inner.is_object() && may_be(JsonType::Object)
            })
        }
        Value::Number(_) | Value::Bool(_) if may_be(JsonType::String) => {
            Some(Value::String(value.to_string()))
        }
        _ => None,
    }
}

fn to_option(value: &Value, option: &Value) -> Option<Value> {
    let fits = match (value, option) {
        (Value::String(written), Value::Number(wanted)) => {
            text::number(written).is_some_and(|number| {
                let either_float = number.is_f64() || wanted.is_f64();
                number == *wanted || either_float && number.as_f64() == wanted.as_f64()
            })
        }
        (Value::String(written), Value::Bool(flag)) => {
            written == if *flag { "true" } else { "false" }
        }
        (Value::String(written), Value::Array(_) | Value::Object(_)) => {
            text::compound(written).is_some_and(|inner| inner == *option)
        }
        (Value::Number(_) | Value::Bool(_), Value::String(written)) => {
            let text = value.to_string();
            *written == text
        }
        _ => false,
    };
    fits.then(|| option.clone())
}

/// The ways in which a value can be read so that the complaints of one branch are answered; a
/// complaint that cannot be answered leaves the value as it is there.
fn variants(value: &Value, at: &str, branch: &[Complaint]) -> Vec<Value> {
    let mut found = vec![value.clone()];
    for complaint in branch {
        let Some(below) = complaint.at.strip_prefix(at) else {
            continue;
        };
        let mut next = Vec::new();
        for variant in found {
            let Some(current) = variant.pointer(below) else {
                next.push(variant);
                continue;
            };
            let answers = match &complaint.want {
                Want::Branch { branches, .. } => branches
                    .iter()
                    .flat_map(|b| variants(current, &complaint.at, b))
                    .take(VARIANTS)
                    .collect(),
                want => turned(current, want).into_iter().collect::<Vec<_>>(),
            };
            let null = current.is_null() && complaint.named && !below.is_empty();
            if answers.is_empty() && null {
                let mut without = variant.clone();
                take_out(&mut without, below);
                next.push(without);
            } else if answers.is_empty() {
                next.push(variant);
            } else {
                for answer in answers {
                    let mut changed = variant.clone();
                    put(&mut changed, below, answer);
                    next.push(changed);
                }
            }
        }
        next.truncate(VARIANTS);
        found = next;
    }
    found.retain(|variant| variant != value);
    found
}

fn put(root: &mut Value, at: &str, value: Value) -> bool {
    match root.pointer_mut(at) {
        Some(place) => {
            *place = value;
            true
        }
        None => false,
    }
}

/// Takes a member out of its object; gives the object's place and the member's name.
fn take_out(root: &mut Value, at: &str) -> Option<(String, String)> {
    let (parent, name) = at.rsplit_once('/')?;
    let name = name.replace("~1", "/").replace("~0", "~");
    root.pointer_mut(parent)?
        .as_object_mut()?
        .shift_remove(&name)?;
    Some((parent.to_owned(), name))
}
