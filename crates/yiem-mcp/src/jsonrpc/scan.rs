//! Finds the id of a message that is too long or too broken to be parsed.

use super::RequestId;

/// How many bytes of one key or id are kept.
const TEXT_CAP: usize = 256;

/// Reads bytes in any pieces and notes what stands at `id` in the outermost object, with a few bytes of
/// memory however long the message is.
#[derive(Debug, Default)]
pub struct IdScanner {
    depth: u32,
    state: State,
    text: Vec<u8>,
    /// The key that was read last in the outermost object.
    key: Vec<u8>,
    after_colon: bool,
    id: Option<RequestId>,
    has_method: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Between,
    InText,
    InEscape,
    InNumber,
}

impl IdScanner {
    /// A scanner at the beginning of a message.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    /// The id, if the message has one and is not a request.
    #[must_use]
    pub fn answer_id(&self) -> Option<RequestId> {
        self.id.clone().filter(|_| !self.has_method)
    }

    fn step(&mut self, byte: u8) {
        match self.state {
            State::InEscape => {
                self.push(byte);
                self.state = State::InText;
            }
            State::InText => match byte {
                b'\\' => self.state = State::InEscape,
                b'"' => self.end_text(),
                _ => self.push(byte),
            },
            State::InNumber => {
                if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.') {
                    self.push(byte);
                } else {
                    self.end_number();
                    self.between(byte);
                }
            }
            State::Between => self.between(byte),
        }
    }

    fn between(&mut self, byte: u8) {
        match byte {
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                self.after_colon = false;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.after_colon = false;
            }
            b'"' => {
                self.text.clear();
                self.state = State::InText;
            }
            b':' if self.depth == 1 => self.after_colon = true,
            b',' => self.after_colon = false,
            b'-' | b'0'..=b'9' if self.depth == 1 && self.after_colon => {
                self.text.clear();
                self.text.push(byte);
                self.state = State::InNumber;
            }
            _ => {}
        }
    }

    fn push(&mut self, byte: u8) {
        if self.depth == 1 && self.text.len() < TEXT_CAP {
            self.text.push(byte);
        }
    }

    fn end_text(&mut self) {
        self.state = State::Between;
        if self.depth != 1 {
            return;
        }
        if !self.after_colon {
            std::mem::swap(&mut self.key, &mut self.text);
            return;
        }
        self.after_colon = false;
        match self.key.as_slice() {
            b"id" => {
                self.id = std::str::from_utf8(&self.text)
                    .ok()
                    .map(|text| RequestId::Text(text.into()));
            }
            b"method" => self.has_method = true,
            _ => {}
        }
    }

    fn end_number(&mut self) {
        self.state = State::Between;
        self.after_colon = false;
        if self.key == b"id" {
            self.id = std::str::from_utf8(&self.text)
                .ok()
                .and_then(|text| serde_json::from_str(text).ok())
                .as_ref()
                .and_then(RequestId::from_value);
        }
    }
}
