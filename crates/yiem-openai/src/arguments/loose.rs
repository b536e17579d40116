//! A reader of objects that are nearly JSON.
//!
//! Knows: control characters and odd escapes inside strings, single quotes, Python's words,
//! bare keys, commas before a closing bracket. Does not know: how to close what is open, or how
//! to choose between two readings; such text is refused.

use serde_json::{Number, Value};
use yiem_core::JsonObject;

/// As deep as serde_json itself goes.
const DEPTH: usize = 127;

/// Reads the object at the beginning of the text; gives it and where it ends.
pub(super) fn object(text: &str) -> Option<(JsonObject, usize)> {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
    };
    match reader.value()? {
        Value::Object(object) => Some((object, reader.at)),
        _ => None,
    }
}

/// Reads the keyword arguments of a Python call, from behind its opening parenthesis; gives them
/// and where the closing one ends.
pub(super) fn keywords(text: &str) -> Option<(JsonObject, usize)> {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
    };
    let mut object = JsonObject::new();
    loop {
        reader.skip_space();
        if reader.takes(')') {
            return Some((object, reader.at));
        }
        let key = reader.bare_key()?;
        reader.skip_space();
        if !reader.takes('=') {
            return None;
        }
        let value = reader.value()?;
        object.insert(key, value);
        if !reader.more(')')? {
            return Some((object, reader.at));
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn takes(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn value(&mut self) -> Option<Value> {
        self.skip_space();
        match self.peek()? {
            '{' => self.nested(Self::members),
            '[' => self.nested(Self::items),
            quote @ ('"' | '\'') => self.string(quote).map(Value::String),
            '-' | '0'..='9' => self.number(),
            _ => self.word(),
        }
    }

    fn nested(&mut self, inner: fn(&mut Self) -> Option<Value>) -> Option<Value> {
        self.next();
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let value = inner(self)?;
        self.depth -= 1;
        Some(value)
    }

    fn members(&mut self) -> Option<Value> {
        let mut object = JsonObject::new();
        loop {
            self.skip_space();
            if self.takes('}') {
                return Some(Value::Object(object));
            }
            let key = match self.peek()? {
                quote @ ('"' | '\'') => self.string(quote)?,
                _ => self.bare_key()?,
            };
            self.skip_space();
            if !self.takes(':') {
                return None;
            }
            let value = self.value()?;
            object.insert(key, value);
            if !self.more('}')? {
                return Some(Value::Object(object));
            }
        }
    }

    fn items(&mut self) -> Option<Value> {
        let mut items = Vec::new();
        loop {
            self.skip_space();
            if self.takes(']') {
                return Some(Value::Array(items));
            }
            items.push(self.value()?);
            if !self.more(']')? {
                return Some(Value::Array(items));
            }
        }
    }

    /// Whether a comma follows, or else the closing bracket; `None` when it is neither.
    fn more(&mut self, close: char) -> Option<bool> {
        self.skip_space();
        if self.takes(',') {
            return Some(true);
        }
        self.takes(close).then_some(false)
    }

    fn bare_key(&mut self) -> Option<String> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '$')))
            .filter(|end| *end > 0)?;
        let key = rest[..end].to_owned();
        self.at += end;
        Some(key)
    }

    fn word(&mut self) -> Option<Value> {
        for (word, value) in [
            ("true", Value::Bool(true)),
            ("True", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("False", Value::Bool(false)),
            ("null", Value::Null),
            ("None", Value::Null),
        ] {
            if let Some(after) = self.rest().strip_prefix(word)
                && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
            {
                self.at += word.len();
                return Some(value);
            }
        }
        None
    }

    fn number(&mut self) -> Option<Value> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E')))
            .unwrap_or(rest.len());
        let number: Number = serde_json::from_str(&rest[..end]).ok()?;
        self.at += end;
        Some(Value::Number(number))
    }

    /// A string in either kind of quotes. Control characters stand for themselves. A backslash
    /// that begins no escape is one itself, unless the string has real escapes too: `C:\new\x`
    /// could mean either, and is refused.
    fn string(&mut self, quote: char) -> Option<String> {
        self.next();
        let mut text = String::new();
        let (mut letters, mut odd) = (false, false);
        loop {
            match self.next()? {
                c if c == quote => break,
                '\\' => match self.next()? {
                    c @ ('"' | '\'' | '\\' | '/') => text.push(c),
                    'u' => {
                        letters = true;
                        text.push(self.unicode()?);
                    }
                    c => match escaped(c) {
                        Some(meant) => {
                            letters = true;
                            text.push(meant);
                        }
                        None => {
                            odd = true;
                            text.push('\\');
                            text.push(c);
                        }
                    },
                },
                c => text.push(c),
            }
        }
        (!(letters && odd)).then_some(text)
    }

    fn unicode(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first).or(Some(char::REPLACEMENT_CHARACTER));
        }
        if !self.rest().starts_with("\\u") {
            return Some(char::REPLACEMENT_CHARACTER);
        }
        let back = self.at;
        self.at += 2;
        let second = self.hex()?;
        if (0xDC00..0xE000).contains(&second) {
            return char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00));
        }
        self.at = back;
        Some(char::REPLACEMENT_CHARACTER)
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4)?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let value = u32::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(value)
    }
}

fn escaped(c: char) -> Option<char> {
    Some(match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        _ => return None,
    })
}
