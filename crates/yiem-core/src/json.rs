//! JSON as the messages hold it: objects that keep their order, keys that nobody knows, and
//! text that goes back byte for byte.
//!
//! Knows: how to keep what a later version wrote. Does not know: what any key means.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A JSON object that keeps the order of its keys.
pub type JsonObject = Map<String, Value>;

/// Keys of a JSON object that this version does not know; kept and written back (C-2).
///
/// One machine word when empty, which it nearly always is. An empty object is the same as none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Extra(Option<Box<JsonObject>>);

impl Extra {
    /// No keys.
    pub const NONE: Self = Self(None);

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|m| m.is_empty())
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.as_ref()?.get(key)
    }

    /// Sets a key.
    pub fn insert(&mut self, key: impl Into<String>, value: Value) {
        self.0.get_or_insert_default().insert(key.into(), value);
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let value = self.0.as_mut()?.shift_remove(key);
        if self.is_empty() {
            self.0 = None;
        }
        value
    }

    /// The keys and values, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().flat_map(|m| m.iter())
    }
}

impl From<JsonObject> for Extra {
    fn from(map: JsonObject) -> Self {
        Self((!map.is_empty()).then(|| Box::new(map)))
    }
}

impl From<Extra> for JsonObject {
    fn from(extra: Extra) -> Self {
        extra.0.map(|m| *m).unwrap_or_default()
    }
}

impl FromIterator<(String, Value)> for Extra {
    fn from_iter<T: IntoIterator<Item = (String, Value)>>(iter: T) -> Self {
        JsonObject::from_iter(iter).into()
    }
}

/// Reads the fields of one JSON object one after another, under any of several names, and
/// leaves what nobody asked for.
///
/// Tolerant on purpose: a stored message of another version, or of another writer, still opens.
/// `null` counts as absent.
#[derive(Debug)]
pub(crate) struct Fields(JsonObject);

impl Fields {
    pub(crate) fn new(map: JsonObject) -> Self {
        Self(map)
    }

    /// The first present, non-null value of these names; all of the names are taken out.
    pub(crate) fn take(&mut self, names: &[&str]) -> Option<Value> {
        let mut found = None;
        for name in names {
            match self.0.shift_remove(*name) {
                None | Some(Value::Null) => {}
                Some(v) => {
                    found.get_or_insert(v);
                }
            }
        }
        found
    }

    /// A text; a value of another kind is set aside and counts as absent.
    pub(crate) fn text(&mut self, names: &[&str]) -> Option<String> {
        match self.take(names)? {
            Value::String(s) => Some(s),
            other => {
                self.set_aside(names[0], other);
                None
            }
        }
    }

    pub(crate) fn flag(&mut self, names: &[&str]) -> Option<bool> {
        match self.take(names)? {
            Value::Bool(b) => Some(b),
            other => {
                self.set_aside(names[0], other);
                None
            }
        }
    }

    pub(crate) fn parsed<T: serde::de::DeserializeOwned>(&mut self, names: &[&str]) -> Option<T> {
        let value = self.take(names)?;
        match T::deserialize(&value) {
            Ok(t) => Some(t),
            Err(_) => {
                self.set_aside(names[0], value);
                None
            }
        }
    }

    /// Keeps a value that a known key should not have, under a name that no known key has.
    fn set_aside(&mut self, name: &str, value: Value) {
        self.0.insert(format!("?{name}"), value);
    }

    pub(crate) fn put_back(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    pub(crate) fn rest(self) -> Extra {
        self.0.into()
    }
}
