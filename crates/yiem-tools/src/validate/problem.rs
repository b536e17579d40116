//! One thing that is wrong with arguments, as a model can use it.
//!
//! Knows: how places and values are written for reading. Does not know: how problems are found.

use std::fmt;

/// One thing that is wrong: where, what came, what would be right.
///
/// `Display`: `where: got what came; expected what would be right (hint)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    path: String,
    received: Option<String>,
    expected: String,
    hint: Option<String>,
}

impl Problem {
    #[cfg(feature = "schema")]
    pub(crate) fn new(
        path: String,
        received: Option<String>,
        expected: String,
        hint: Option<String>,
    ) -> Self {
        Self {
            path,
            received,
            expected,
            hint,
        }
    }

    /// Where: names and indices as in `filters.tags[2]`; empty for the arguments themselves.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What came there, as JSON, cut to a readable length; `None` when nothing did.
    #[must_use]
    pub fn received(&self) -> Option<&str> {
        self.received.as_deref()
    }

    /// What would be right there.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// A guess at what was meant, such as the nearest name.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.is_empty() {
            "arguments"
        } else {
            &self.path
        };
        write!(f, "{place}: ")?;
        match &self.received {
            Some(received) => write!(f, "got {received}; {}", self.expected)?,
            None => f.write_str(&self.expected)?,
        }
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// A JSON pointer as people write places: `/a/0/b c` is `a[0]["b c"]`.
#[cfg(feature = "schema")]
pub(crate) fn dotted(pointer: &str) -> String {
    let mut out = String::new();
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        let plain = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'));
        if plain && name.bytes().all(|b| b.is_ascii_digit()) {
            out.push_str(&format!("[{name}]"));
        } else if plain {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        } else {
            out.push_str(&format!("[{}]", serde_json::Value::String(name)));
        }
    }
    out
}

/// At most `limit` bytes of a text, whole characters, with a mark where it was cut.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}
