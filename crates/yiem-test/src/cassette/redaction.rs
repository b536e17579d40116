//! What a cassette leaves out.
//!
//! Knows: how keys look, and the texts and patterns that it was given. Does not know: requests and
//! replies.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use yiem_core::Error;

/// What stands in the place of what was redacted.
pub(super) const REDACTED: &str = "[redacted]";

/// How keys and tokens of well-known services look.
static KEYS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let shapes = [
        r"\bsk-[A-Za-z0-9_-]{16,}",
        r"\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}",
        r"\bBearer\s+[A-Za-z0-9._~+/-]{16,}=*",
        r"\bgh[pousr]_[A-Za-z0-9]{20,}",
        r"\bgithub_pat_[A-Za-z0-9_]{20,}",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\bAIza[0-9A-Za-z_-]{30,}",
        r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
        r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+",
    ];
    Regex::new(&shapes.join("|")).ok()
});

/// Fields whose values are anybody's JSON: there the names of fields may be secret as well.
const FREE: [&str; 6] = [
    "arguments",
    "args",
    "data",
    "details",
    "inputSchema",
    "extra",
];

/// What is replaced, beside what looks like a key.
#[derive(Clone, Debug, Default)]
pub(super) struct Redaction {
    texts: Vec<String>,
    patterns: Vec<Regex>,
}

impl Redaction {
    pub(super) fn texts<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        let texts = texts.into_iter().map(Into::into);
        self.texts.extend(texts.filter(|text| !text.is_empty()));
        self
    }

    pub(super) fn patterns<'p>(
        mut self,
        patterns: impl IntoIterator<Item = &'p str>,
    ) -> Result<Self, Error> {
        for pattern in patterns {
            self.patterns.push(Regex::new(pattern)?);
        }
        Ok(self)
    }

    pub(super) fn apply(&self, value: &mut Value) {
        self.apply_in(value, false);
    }

    fn apply_in(&self, value: &mut Value, free: bool) {
        match value {
            Value::String(text) => {
                if let Some(redacted) = self.redacted(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.apply_in(item, free)),
            Value::Object(object) => {
                for (key, value) in object.iter_mut() {
                    self.apply_in(value, free || FREE.contains(&key.as_str()));
                }
                if free && object.keys().any(|key| self.redacted(key).is_some()) {
                    *object = std::mem::take(object)
                        .into_iter()
                        .map(|(key, value)| (self.redacted(&key).unwrap_or(key), value))
                        .collect();
                }
            }
            _ => {}
        }
    }

    /// The text without what is secret in it, where there is any.
    fn redacted(&self, text: &str) -> Option<String> {
        let mut left = Cow::Borrowed(text);
        for secret in &self.texts {
            if left.contains(secret.as_str()) {
                left = Cow::Owned(left.replace(secret.as_str(), REDACTED));
            }
        }
        for pattern in KEYS.iter().chain(&self.patterns) {
            if let Cow::Owned(changed) = pattern.replace_all(&left, REDACTED) {
                left = Cow::Owned(changed);
            }
        }
        match left {
            Cow::Owned(changed) if changed != text => Some(changed),
            _ => None,
        }
    }
}
