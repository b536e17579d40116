//! A reader of objects that are nearly JSON.
//!
//! Knows: control characters and odd escapes inside strings, single quotes, Python's words,
//! bare keys, commas before a closing bracket; it gives the same as JSON, numbers as they stand.
//! Does not know: how to close what is open, or how to choose between two readings; such text
//! is refused.

use serde_json::Number;

/// As deep as serde_json itself goes.
const DEPTH: usize = 127;

/// Reads the object at the beginning of the text; gives it as JSON, and where it ends.
pub(super) fn object(text: &str) -> Option<(String, usize)> {
    let mut reader = Reader::new(text);
    reader.peek().filter(|c| *c == '{')?;
    reader.value()?;
    Some((reader.json, reader.at))
}

/// Reads the keyword arguments of a Python call, from behind its opening parenthesis; gives them
/// as a JSON object, and where the closing one ends.
pub(super) fn keywords(text: &str) -> Option<(String, usize)> {
    let mut reader = Reader::new(text);
    reader.json.push('{');
    reader.members('=', ')', Reader::bare_key)?;
    reader.json.push('}');
    Some((reader.json, reader.at))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// What was read, as JSON.
    json: String,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            json: String::with_capacity(text.len()),
        }
    }

    fn rest(&self) -> &'a str {
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

    fn value(&mut self) -> Option<()> {
        self.skip_space();
        match self.peek()? {
            '{' => self.nested('}', |reader| reader.members(':', '}', Self::key)),
            '[' => self.nested(']', Self::items),
            quote @ ('"' | '\'') => self.string(quote),
            '-' | '0'..='9' => self.number(),
            _ => self.word(),
        }
    }

    fn nested(&mut self, close: char, inner: impl Fn(&mut Self) -> Option<()>) -> Option<()> {
        let open = self.next()?;
        self.json.push(open);
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        inner(self)?;
        self.depth -= 1;
        self.json.push(close);
        Some(())
    }

    fn members(
        &mut self,
        between: char,
        close: char,
        key: fn(&mut Self) -> Option<()>,
    ) -> Option<()> {
        let mut first = true;
        loop {
            self.skip_space();
            if self.takes(close) {
                return Some(());
            }
            self.separate(&mut first);
            key(self)?;
            self.skip_space();
            if !self.takes(between) {
                return None;
            }
            self.json.push(':');
            self.value()?;
            if !self.more(close)? {
                return Some(());
            }
        }
    }

    fn items(&mut self) -> Option<()> {
        let mut first = true;
        loop {
            self.skip_space();
            if self.takes(']') {
                return Some(());
            }
            self.separate(&mut first);
            self.value()?;
            if !self.more(']')? {
                return Some(());
            }
        }
    }

    fn separate(&mut self, first: &mut bool) {
        if !std::mem::take(first) {
            self.json.push(',');
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

    fn key(&mut self) -> Option<()> {
        match self.peek()? {
            quote @ ('"' | '\'') => self.string(quote),
            _ => self.bare_key(),
        }
    }

    fn bare_key(&mut self) -> Option<()> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '$')))
            .filter(|end| *end > 0)?;
        self.quoted(&rest[..end])?;
        self.at += end;
        Some(())
    }

    /// Writes a text as a JSON string.
    fn quoted(&mut self, text: &str) -> Option<()> {
        self.json.push_str(&serde_json::to_string(text).ok()?);
        Some(())
    }

    fn word(&mut self) -> Option<()> {
        for (word, meant) in [
            ("true", "true"),
            ("True", "true"),
            ("false", "false"),
            ("False", "false"),
            ("null", "null"),
            ("None", "null"),
        ] {
            if let Some(after) = self.rest().strip_prefix(word)
                && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
            {
                self.at += word.len();
                self.json.push_str(meant);
                return Some(());
            }
        }
        None
    }

    fn number(&mut self) -> Option<()> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E')))
            .unwrap_or(rest.len());
        serde_json::from_str::<Number>(&rest[..end]).ok()?;
        self.json.push_str(&rest[..end]);
        self.at += end;
        Some(())
    }

    /// A string in either kind of quotes. Control characters stand for themselves. A backslash
    /// that begins no escape is one itself, unless the string has real escapes too: `C:\new\x`
    /// could mean either, and is refused.
    fn string(&mut self, quote: char) -> Option<()> {
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
        if letters && odd {
            return None;
        }
        self.quoted(&text)
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
