//! Arguments that are still coming, as far as they can be shown.
//!
//! Knows: JSON that stops anywhere. Does not know: what is done with it; a call is only ever run
//! with arguments that came whole.

use serde_json::Value;

use crate::json::JsonObject;

/// How deep values may be nested.
const DEPTH: usize = 128;

/// What has come of a call's arguments so far, for showing a call while it streams; never for
/// running it.
///
/// A text that stops in a string gives the string so far, one that stops in a key, a number's
/// sign or a word leaves that out. Nothing at all is an empty object; what cannot become a JSON
/// object is `None`. Linear in the text: who asks again for every piece of a long text does the
/// square of that work, and asks better once for each picture that is drawn.
///
/// ```
/// use yiem_core::growing_arguments;
/// let shown = growing_arguments(r#"{"a":1,"b":"he"#).unwrap();
/// assert_eq!(serde_json::to_string(&shown).unwrap(), r#"{"a":1,"b":"he"}"#);
/// assert!(growing_arguments("[1").is_none());
/// ```
#[must_use]
pub fn growing_arguments(text: &str) -> Option<JsonObject> {
    let mut reader = Reader { text, at: 0 };
    reader.space();
    if reader.rest().is_empty() {
        return Some(JsonObject::new());
    }
    let value = reader.value(0).ok()?;
    reader.space();
    match value {
        Some(Value::Object(object)) if reader.rest().is_empty() => Some(object),
        _ => None,
    }
}

/// It cannot become JSON any more.
struct Garbage;

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        let space = |c| matches!(c, ' ' | '\t' | '\n' | '\r');
        self.at = self.text.len() - self.rest().trim_start_matches(space).len();
    }

    fn next_is(&mut self, wanted: char) -> bool {
        let is = self.rest().starts_with(wanted);
        self.at += usize::from(is);
        is
    }

    /// The value that comes; `None` when too little of it is there.
    fn value(&mut self, depth: usize) -> Result<Option<Value>, Garbage> {
        self.space();
        let Some(first) = self.rest().chars().next() else {
            return Ok(None);
        };
        match first {
            _ if depth > DEPTH => Err(Garbage),
            '{' => self.object(depth).map(|o| Some(Value::Object(o))),
            '[' => self.array(depth).map(|a| Some(Value::Array(a))),
            '"' => self.string().map(|(text, _)| Some(Value::String(text))),
            _ => self.scalar(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<JsonObject, Garbage> {
        self.at += 1;
        let mut object = JsonObject::new();
        self.space();
        if self.next_is('}') {
            return Ok(object);
        }
        loop {
            self.space();
            if self.rest().is_empty() {
                return Ok(object);
            }
            let (key, whole) = self.string()?;
            self.space();
            if !whole || self.rest().is_empty() {
                return Ok(object);
            }
            if !self.next_is(':') {
                return Err(Garbage);
            }
            match self.value(depth + 1)? {
                Some(value) => object.insert(key, value),
                None => return Ok(object),
            };
            if self.ends('}')? {
                return Ok(object);
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Value>, Garbage> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.next_is(']') {
            return Ok(items);
        }
        loop {
            match self.value(depth + 1)? {
                Some(value) => items.push(value),
                None => return Ok(items),
            }
            if self.ends(']')? {
                return Ok(items);
            }
        }
    }

    /// After a member: whether the list ends here, or the text does.
    fn ends(&mut self, close: char) -> Result<bool, Garbage> {
        self.space();
        if self.rest().is_empty() || self.next_is(close) {
            return Ok(true);
        }
        if self.next_is(',') {
            Ok(false)
        } else {
            Err(Garbage)
        }
    }

    /// A string, and whether it is whole.
    fn string(&mut self) -> Result<(String, bool), Garbage> {
        let rest = self.rest();
        if !rest.starts_with('"') {
            return Err(Garbage);
        }
        let mut escaped = false;
        let close = rest.bytes().enumerate().skip(1).find(|(_, byte)| {
            let closes = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            closes
        });
        if let Some((end, _)) = close {
            let text = serde_json::from_str(&rest[..=end]).map_err(|_| Garbage)?;
            self.at += end + 1;
            return Ok((text, true));
        }
        // The last escape may be there in part: at most `\uD83D\uDE0` is left out.
        let longest = rest.len();
        let text = (0..=11.min(longest - 1))
            .filter_map(|less| rest.get(..longest - less))
            .filter(|cut| !cut.is_empty())
            .find_map(|cut| serde_json::from_str::<String>(&format!("{cut}\"")).ok())
            .ok_or(Garbage)?;
        self.at = self.text.len();
        Ok((text, false))
    }

    /// A number or a word.
    fn scalar(&mut self) -> Result<Option<Value>, Garbage> {
        let rest = self.rest();
        let end = rest
            .find([',', '}', ']', ' ', '\t', '\n', '\r'])
            .unwrap_or(rest.len());
        let (token, is_last) = (&rest[..end], end == rest.len());
        let value = serde_json::from_str::<Value>(token);
        let begins = |word: &&str| word.starts_with(token);
        let unfinished = is_last
            && (["true", "false", "null"].iter().any(begins)
                || serde_json::from_str::<Value>(&format!("{token}0"))
                    .is_ok_and(|v| v.is_number()));
        self.at += end;
        match value {
            Ok(value) => Ok(Some(value)),
            Err(_) if unfinished => Ok(None),
            Err(_) => Err(Garbage),
        }
    }
}

#[cfg(test)]
mod tests;
