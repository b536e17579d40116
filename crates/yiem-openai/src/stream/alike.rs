//! Chunks that are like the one before them but for one piece of text, or for their choices.
//!
//! Most chunks of a stream repeat id, model, time and shape, and bring some letters. Where all
//! the bytes around those letters are the same, all that they mean is the same, and only the
//! letters have to be read: that is several times faster than reading the JSON again. Of the
//! others most repeat at least what stands around their choices.
//!
//! Knows: which chunks are so simple that this holds, and where their text stands. Does not
//! know: what the text does; whatever is not exactly like the one before is read as JSON.

use std::borrow::Cow;

use crate::wire::{Body, Call, Choice, List, Said, Text};

/// What the one piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    Content,
    Reasoning,
    /// Of the arguments of the call with that index.
    Arguments(Option<i64>),
}

/// The bytes around the text of the last simple chunk.
#[derive(Debug, Default)]
pub(super) struct Alike {
    of: Option<Piece>,
    /// Up to the text's opening quote.
    before: String,
    /// From the text's closing quote.
    after: String,
}

impl Alike {
    /// The text of a chunk that is like the one before, and what it is.
    pub(super) fn text<'a>(&self, data: &'a str) -> Option<(Piece, Cow<'a, str>)> {
        let of = self.of?;
        let rest = data.strip_prefix(&*self.before)?;
        let text = rest.strip_suffix(&*self.after)?;
        let mut escaped = false;
        for byte in text.bytes() {
            match byte {
                b'\\' => escaped = true,
                // Not within a JSON text; a quote may be an escaped one.
                0..0x20 => return None,
                b'"' if !escaped => return None,
                _ => {}
            }
        }
        if !escaped {
            return Some((of, Cow::Borrowed(text)));
        }
        let quoted = &data[self.before.len() - 1..=self.before.len() + text.len()];
        Some((of, Cow::Owned(serde_json::from_str(quoted).ok()?)))
    }

    /// Remembers a chunk that was read as JSON, if it is simple; else forgets the one before.
    /// Around these choices it says nothing.
    pub(super) fn remember(&mut self, choices: &[Choice<'_>], data: &str) {
        self.of = None;
        let Some((of, text)) = simple(choices) else {
            return;
        };
        // Where the text is a part of the data, which it is unless it had escapes.
        let Some(start) = (text.as_ptr() as usize).checked_sub(data.as_ptr() as usize) else {
            return;
        };
        let (Some(before), Some(after)) = (data.get(..start), data.get(start + text.len()..))
        else {
            return;
        };
        if before.ends_with('"') && after.starts_with('"') {
            self.before.clear();
            self.before.push_str(before);
            self.after.clear();
            self.after.push_str(after);
            self.of = Some(of);
        }
    }
}

/// The bytes around the choices of a chunk that says nothing else.
#[derive(Debug, Default)]
pub(super) struct Frame {
    known: bool,
    /// Up to the choices.
    before: String,
    /// From behind the choices.
    after: String,
}

impl Frame {
    /// The choices of a chunk that is otherwise like the one before.
    pub(super) fn choices<'a>(&self, data: &'a str) -> Option<List<Choice<'a>>> {
        if !self.known {
            return None;
        }
        let rest = data.strip_prefix(&*self.before)?;
        let choices = rest.strip_suffix(&*self.after)?;
        serde_json::from_str(choices).ok()
    }

    /// Remembers what stands around the choices of a chunk that was read as JSON and says
    /// nothing there.
    pub(super) fn remember(&mut self, data: &str) {
        const FIELD: &str = "\"choices\":";
        self.known = false;
        // Within a string its quotes would be escaped: this is the name of a field.
        let (Some(at), Some(end)) = (data.find(FIELD), data.rfind(']')) else {
            return;
        };
        let Some((before, rest)) = data.split_at_checked(at + FIELD.len()) else {
            return;
        };
        let after = &data[end + 1..];
        // A field of the chunk itself and of nothing within it, and the only one of its name,
        // however that is written. Where the choices end elsewhere, they cannot be read alone.
        let sound = before.rfind('{') == Some(0)
            && rest.starts_with('[')
            && !after.contains("choices")
            && !after.contains('\\');
        if sound && end > at {
            self.before.clear();
            self.before.push_str(before);
            self.after.clear();
            self.after.push_str(after);
            self.known = true;
        }
    }
}

/// Whether the chunk says nothing beside its choices.
pub(super) fn says_choices_alone(body: &Body<'_>) -> bool {
    body.rare().is_none() && body.usage.is_none() && body.error.is_none()
}

/// The one piece of text of a chunk that says nothing else, as it stands in the data.
fn simple<'b>(choices: &'b [Choice<'_>]) -> Option<(Piece, &'b str)> {
    let [choice] = choices else {
        return None;
    };
    let says_more = choice.rare().is_some() || !matches!(choice.finish_reason, Text::Missing);
    let said = choice.delta.0.as_ref().filter(|_| !says_more)?;
    if said.rare().is_some() {
        return None;
    }
    let Said {
        content,
        reasoning_content,
        tool_calls: List(calls),
        ..
    } = said;
    match (content, reasoning_content, &**calls) {
        (Text::Is(Cow::Borrowed(text)), Text::Missing, []) => Some((Piece::Content, text)),
        (Text::Missing, Text::Is(Cow::Borrowed(text)), []) => Some((Piece::Reasoning, text)),
        (Text::Missing, Text::Missing, [call]) => arguments(call),
        _ => None,
    }
}

fn arguments<'b>(call: &'b Call<'_>) -> Option<(Piece, &'b str)> {
    let function = call.function.0.as_ref()?;
    let says_more = call.rare().is_some()
        || function.rare().is_some()
        || !matches!(call.id, Text::Missing)
        || !matches!(function.name, Text::Missing);
    if says_more {
        return None;
    }
    let quoted = function.arguments?.get();
    let text = quoted.strip_prefix('"')?.strip_suffix('"')?;
    Some((Piece::Arguments(call.index.index()), text))
}

#[cfg(test)]
mod tests;
