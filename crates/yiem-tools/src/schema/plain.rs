//! Schemas that can be read at a glance, and values that fit them.
//!
//! Most tools' schemas use a dozen keywords. Of those this look tells what the meta-schema and
//! the validator would tell, at a small part of their cost: the validator of such a schema is
//! made only when somebody wants to know what is wrong with a value.
//!
//! Knows: those keywords, as draft 2020-12 has them; when it cannot be sure. Does not know: why
//! a value does not fit. Whatever it is not sure of, the validator decides.

use serde_json::{Map, Value};

/// How many members are looked through one by one.
const FEW: usize = 32;

/// A schema that is surely valid in draft 2020-12.
///
/// Recurses; the caller has bounded the schema's depth.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// The types that fit, a bit each; none means any.
    types: u8,
    /// It has a keyword of which only its validity is known here.
    unsure: bool,
    options: Option<Box<[Value]>>,
    properties: Box<[(Box<str>, Plain)]>,
    required: Box<[Box<str>]>,
    additional: Additional,
    items: Option<Box<Plain>>,
}

#[derive(Debug, Default)]
enum Additional {
    #[default]
    Any,
    None,
    Like(Box<Plain>),
}

const NULL: u8 = 1;
const BOOLEAN: u8 = 1 << 1;
const INTEGER: u8 = 1 << 2;
const NUMBER: u8 = 1 << 3;
const STRING: u8 = 1 << 4;
const ARRAY: u8 = 1 << 5;
const OBJECT: u8 = 1 << 6;

impl Plain {
    /// The schema, if it is surely valid. `None` says nothing.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let mut plain = Self::default();
        match schema {
            Value::Bool(true) => {}
            Value::Bool(false) => plain.unsure = true,
            Value::Object(keywords) => {
                for (keyword, value) in keywords {
                    plain.take(keyword, value)?;
                }
            }
            _ => return None,
        }
        Some(plain)
    }

    fn take(&mut self, keyword: &str, value: &Value) -> Option<()> {
        match keyword {
            "type" => self.types = types(value)?,
            "properties" => {
                let list = value.as_object()?;
                self.unsure |= list.len() > FEW;
                self.properties = list
                    .iter()
                    .map(|(name, schema)| Some((name.as_str().into(), Self::of(schema)?)))
                    .collect::<Option<_>>()?;
            }
            "required" => {
                self.required = distinct(value)?.into_iter().map(Box::from).collect();
            }
            "additionalProperties" => {
                self.additional = match value {
                    Value::Bool(true) => Additional::Any,
                    Value::Bool(false) => Additional::None,
                    schema => Additional::Like(Box::new(Self::of(schema)?)),
                };
            }
            "items" => self.items = Some(Box::new(Self::of(value)?)),
            "enum" => {
                let options = value.as_array()?;
                // A long list times a long value has to be costed before it is checked.
                self.unsure |= options.len() > FEW;
                self.options = Some(options.as_slice().into());
            }
            // These say nothing of whether a value fits.
            "title" | "description" => return value.is_string().then_some(()),
            "examples" => return value.is_array().then_some(()),
            "deprecated" | "readOnly" | "writeOnly" => return value.is_boolean().then_some(()),
            "default" => {}
            // These do; whether it does, the validator says.
            _ => {
                self.unsure = true;
                return is_valid_keyword(keyword, value).then_some(());
            }
        }
        Some(())
    }

    /// The schema of a place that only properties lead to, given as a JSON pointer.
    pub(super) fn at(&self, pointer: &str) -> Option<&Self> {
        pointer.split('/').skip(1).try_fold(self, |schema, name| {
            let name = name.replace("~1", "/").replace("~0", "~");
            schema
                .properties
                .iter()
                .find_map(|(known, schema)| (**known == *name).then_some(schema))
        })
    }

    /// Whether the value surely fits. False says nothing.
    ///
    /// Recurses as deep as the schema does.
    pub(super) fn fits(&self, value: &Value) -> bool {
        if self.unsure || !self.fits_type(value) {
            return false;
        }
        if let Some(options) = &self.options
            && !options.contains(value)
        {
            return false;
        }
        match value {
            Value::Object(members) => self.fits_members(members),
            Value::Array(items) => self
                .items
                .as_ref()
                .is_none_or(|like| items.iter().all(|item| like.fits(item))),
            _ => true,
        }
    }

    /// Whether the object surely fits. False says nothing.
    pub(super) fn fits_object(&self, members: &Map<String, Value>) -> bool {
        let object = self.types == 0 || self.types & OBJECT != 0;
        object && !self.unsure && self.options.is_none() && self.fits_members(members)
    }

    fn fits_type(&self, value: &Value) -> bool {
        let is = match value {
            Value::Null => NULL,
            Value::Bool(_) => BOOLEAN,
            // A whole number may be written with a fraction of zero; that is left to the validator.
            Value::Number(number) if number.is_f64() => NUMBER,
            Value::Number(_) => INTEGER | NUMBER,
            Value::String(_) => STRING,
            Value::Array(_) => ARRAY,
            Value::Object(_) => OBJECT,
        };
        self.types == 0 || self.types & is != 0
    }

    fn fits_members(&self, members: &Map<String, Value>) -> bool {
        let has = |name: &str| match members.len() > FEW {
            true => members.contains_key(name),
            false => members.keys().any(|key| key == name),
        };
        self.required.iter().all(|name| has(name))
            && members.iter().all(|(name, value)| {
                let property = self.properties.iter().find(|(known, _)| **known == **name);
                match (property, &self.additional) {
                    (Some((_, like)), _) => like.fits(value),
                    (None, Additional::Any) => true,
                    (None, Additional::None) => false,
                    (None, Additional::Like(like)) => like.fits(value),
                }
            })
    }
}

/// Whether a keyword of which nothing else is known here has a value that it may have.
fn is_valid_keyword(keyword: &str, value: &Value) -> bool {
    let is_schema = |schema: &Value| Plain::of(schema).is_some();
    match keyword {
        "not" => is_schema(value),
        "anyOf" | "oneOf" | "allOf" => value
            .as_array()
            .is_some_and(|list| !list.is_empty() && list.iter().all(is_schema)),
        "const" => true,
        "format" => value.is_string(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.is_u64()
        }
        "uniqueItems" => value.is_boolean(),
        _ => false,
    }
}

fn types(value: &Value) -> Option<u8> {
    let one = |name: &str| {
        Some(match name {
            "null" => NULL,
            "boolean" => BOOLEAN,
            "integer" => INTEGER,
            "number" => NUMBER,
            "string" => STRING,
            "array" => ARRAY,
            "object" => OBJECT,
            _ => return None,
        })
    };
    match value {
        Value::String(name) => one(name),
        list => {
            let names = distinct(list).filter(|names| !names.is_empty())?;
            names
                .into_iter()
                .try_fold(0, |all, name| Some(all | one(name)?))
        }
    }
}

/// A list of texts, each there once. Long lists are left to the meta-schema.
fn distinct(value: &Value) -> Option<Vec<&str>> {
    let list = value.as_array().filter(|list| list.len() <= FEW)?;
    let names = list.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?;
    let once = names
        .iter()
        .enumerate()
        .all(|(n, name)| !names[..n].contains(name));
    once.then_some(names)
}

#[cfg(test)]
mod tests;
