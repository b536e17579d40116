//! One message as it goes out.
//!
//! Knows: its JSON in either content style, and how two of one role become one.
//! Does not know: history, and which messages are sent.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::json_into;
use crate::compat::{Compat, ContentStyle, EmptyContent};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// A part of a message's content.
#[derive(Debug, Clone)]
pub(super) enum Part<'a> {
    Text(Cow<'a, str>),
    Image { mime: &'a str, data: &'a str },
    Audio { mime: &'a str, data: &'a str },
}

/// A call as it goes out.
#[derive(Debug, Clone)]
pub(super) struct OutgoingCall<'a> {
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub arguments: Cow<'a, str>,
    pub data: Option<&'a serde_json::Map<String, Value>>,
}

/// A message as it goes out.
#[derive(Debug, Clone)]
pub(super) struct Outgoing<'a> {
    pub role: Role,
    pub parts: Vec<Part<'a>>,
    pub calls: Vec<OutgoingCall<'a>>,
    /// Further fields, in order.
    pub fields: Vec<(Cow<'a, str>, Cow<'a, Value>)>,
    pub tool_call_id: Option<Cow<'a, str>>,
    pub name: Option<Cow<'a, str>>,
}

impl<'a> Outgoing<'a> {
    pub(super) fn new(role: Role, parts: Vec<Part<'a>>) -> Self {
        Self {
            role,
            parts,
            calls: Vec::new(),
            fields: Vec::new(),
            tool_call_id: None,
            name: None,
        }
    }

    pub(super) fn text(role: Role, text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(role, vec![Part::Text(text.into())])
    }

    /// Whether its content says nothing: no part but blank text.
    pub(super) fn is_silent(&self) -> bool {
        self.parts
            .iter()
            .all(|part| matches!(part, Part::Text(text) if text.trim().is_empty()))
    }

    /// Takes in a message of the same role that follows.
    pub(super) fn merge(&mut self, next: Self) {
        if !self.is_silent() && !next.is_silent() && self.role != Role::Tool {
            self.parts.push(Part::Text(Cow::Borrowed("\n\n")));
        }
        self.parts.extend(next.parts);
        self.calls.extend(next.calls);
        for (key, value) in next.fields {
            match self.fields.iter_mut().find(|(held, _)| *held == key) {
                Some((_, held)) => join(held, &value),
                None => self.fields.push((key, value)),
            }
        }
    }

    /// Writes it as JSON.
    pub(super) fn write(&self, compat: &Compat, out: &mut Vec<u8>) {
        let (role, style, between) = match self.role {
            Role::System if compat.developer_role => ("developer", compat.content, "\n"),
            Role::System => ("system", compat.content, "\n"),
            Role::User => ("user", compat.content, "\n"),
            Role::Assistant => ("assistant", compat.assistant_content, ""),
            Role::Tool => ("tool", compat.tool_content, "\n"),
        };
        out.extend_from_slice(b"{\"role\":\"");
        out.extend_from_slice(role.as_bytes());
        out.push(b'"');
        if let Some(id) = &self.tool_call_id {
            out.extend_from_slice(b",\"tool_call_id\":");
            json_into(out, id);
        }
        if let Some(name) = &self.name {
            out.extend_from_slice(b",\"name\":");
            json_into(out, name);
        }
        self.write_content(style, between, compat.empty_assistant_content, out);
        for (key, value) in &self.fields {
            out.push(b',');
            json_into(out, key);
            out.push(b':');
            json_into(out, &**value);
        }
        if !self.calls.is_empty() {
            out.extend_from_slice(b",\"tool_calls\":[");
            for (n, call) in self.calls.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                call.write(out);
            }
            out.push(b']');
        }
        out.push(b'}');
    }

    fn write_content(
        &self,
        style: ContentStyle,
        between: &str,
        empty: EmptyContent,
        out: &mut Vec<u8>,
    ) {
        const CONTENT: &[u8] = b",\"content\":";
        if self.is_silent() {
            match empty {
                EmptyContent::Omit => {}
                EmptyContent::Null => out.extend_from_slice(b",\"content\":null"),
                EmptyContent::EmptyString => out.extend_from_slice(b",\"content\":\"\""),
            }
            return;
        }
        out.extend_from_slice(CONTENT);
        let text_only = self.parts.iter().all(|part| matches!(part, Part::Text(_)));
        if text_only && style == ContentStyle::String {
            return self.write_string(between, out);
        }
        out.push(b'[');
        let mut first = true;
        for part in &self.parts {
            let block = match part {
                // Servers refuse blank text.
                Part::Text(text) if text.trim().is_empty() => continue,
                Part::Text(text) => {
                    separate(&mut first, out);
                    out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
                    json_into(out, text);
                    out.push(b'}');
                    continue;
                }
                Part::Image { mime, data } => {
                    let mime = if mime.is_empty() { "image/png" } else { mime };
                    json!({"type": "image_url", "image_url": {"url": format!("data:{mime};base64,{data}")}})
                }
                Part::Audio { mime, data } => {
                    let format = match mime.rsplit('/').next() {
                        Some("mpeg" | "mp3") => "mp3",
                        Some(other) if !other.is_empty() => other.trim_start_matches("x-"),
                        _ => "wav",
                    };
                    json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
                }
            };
            separate(&mut first, out);
            json_into(out, &block);
        }
        out.push(b']');
    }

    fn write_string(&self, between: &str, out: &mut Vec<u8>) {
        let texts = || {
            self.parts.iter().filter_map(|part| match part {
                Part::Text(text) if !text.is_empty() => Some(&**text),
                _ => None,
            })
        };
        let mut all = texts();
        let joined;
        let text = match (all.next(), all.next()) {
            (Some(single), None) => single,
            _ => {
                let mut whole = String::new();
                for text in texts() {
                    // A break that a merge put there needs none beside it.
                    let apart = !whole.is_empty() && text != "\n\n" && !whole.ends_with("\n\n");
                    if apart {
                        whole.push_str(between);
                    }
                    whole.push_str(text);
                }
                joined = whole;
                &joined
            }
        };
        json_into(out, text);
    }
}

impl OutgoingCall<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"id\":");
        json_into(out, &self.id);
        out.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
        json_into(out, &self.name);
        out.extend_from_slice(b",\"arguments\":");
        json_into(out, &self.arguments);
        out.push(b'}');
        for (key, value) in self.data.into_iter().flatten() {
            if matches!(key.as_str(), "id" | "type" | "function") {
                continue;
            }
            out.push(b',');
            json_into(out, key);
            out.push(b':');
            json_into(out, value);
        }
        out.push(b'}');
    }
}

fn separate(first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::take(first) {
        out.push(b',');
    }
}

fn join(held: &mut Cow<'_, Value>, next: &Value) {
    match (held.to_mut(), next) {
        (Value::String(held), Value::String(next)) => held.push_str(next),
        (Value::Array(held), Value::Array(next)) => held.extend(next.iter().cloned()),
        (held, next) => *held = next.clone(),
    }
}
