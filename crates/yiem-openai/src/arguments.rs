//! The arguments of a call, out of what the server sent as them.
//!
//! Knows: what means no arguments, how fragments add up, which faults can be mended without
//! guessing, and that a cut reply is never mended.
//! Does not know: calls, tools, schemas.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use yiem_core::{JsonObject, ToolArguments};

mod loose;
/// Whether the reply is whole. Arguments of one that was cut are never mended (O-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Whole,
    Cut,
}

/// How often arguments may be text within text.
const WRAPPINGS: usize = 3;

/// Reads arguments that came in one piece.
pub(crate) fn read(text: &str, reply: Reply) -> ToolArguments {
    match strict(text, reply, WRAPPINGS) {
        Ok(arguments) => arguments,
        Err(reason) if reply == Reply::Cut => ToolArguments::unreadable(
            text,
            format!("the reply was cut before the arguments were whole ({reason})"),
        ),
        Err(reason) => {
            mended(text, WRAPPINGS).unwrap_or_else(|| ToolArguments::unreadable(text, reason))
        }
    }
}

/// Reads arguments that came in fragments: all but the last end at `ends` in `text`.
///
/// Precedence: the fragments appended; only when that gives no object, the cumulative reading;
/// then what [`read`] mends.
pub(crate) fn read_fragments(text: &str, ends: &[usize], reply: Reply) -> ToolArguments {
    if let Ok(arguments) = strict(text, reply, WRAPPINGS) {
        return arguments;
    }
    for skip_empty_object in [false, true] {
        if let Some(whole) = cumulative(text, ends, skip_empty_object)
            && let Ok(arguments) = strict(whole, reply, WRAPPINGS)
        {
            return arguments;
        }
    }
    read(last_of_growing(text, ends).unwrap_or(text), reply)
}

/// Keyword arguments as Python writes them, from behind the opening parenthesis; and where they
/// end.
pub(crate) fn keywords(text: &str) -> Option<(String, usize)> {
    loose::keywords(text)
}

/// Whether the text is one whole JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_end().ends_with('}')
        && matches!(serde_json::from_str::<Value>(text), Ok(Value::Object(_)))
}

/// The last fragment, if each that says anything begins with all of the one before, and all begin
/// as arguments do: whatever is wrong with it, the others are only its beginnings. Other fragments
/// that are alike (blanks, digits) follow one another.
fn last_of_growing<'a>(text: &'a str, ends: &[usize]) -> Option<&'a str> {
    let (mut last, mut count, mut from) = ("", 0, 0);
    for end in ends.iter().copied().chain([text.len()]) {
        let fragment = &text[from..end];
        from = end;
        if fragment.is_empty() {
            continue;
        }
        if !fragment.starts_with(last) {
            return None;
        }
        last = fragment;
        count += 1;
    }
    let begins = last.trim_start().starts_with(['{', '"']);
    (count > 1 && begins).then_some(last)
}

/// Each fragment that begins with all that came before replaces it. `None` when that is no
/// other reading than appending, or when what is left is not one piece of the text.
fn cumulative<'a>(text: &'a str, ends: &[usize], skip_empty_object: bool) -> Option<&'a str> {
    let (mut start, mut replaced, mut from) = (0, false, 0);
    let mut fresh = true;
    for end in ends.iter().copied().chain([text.len()]) {
        let fragment = &text[from..end];
        if fresh && skip_empty_object && fragment.trim() == "{}" {
            (start, replaced) = (end, true);
        } else if from > start && !fragment.is_empty() && fragment.starts_with(&text[start..from]) {
            (start, replaced) = (from, true);
        }
        fresh = fresh && fragment.trim().is_empty();
        from = end;
    }
    replaced.then(|| &text[start..])
}

/// What the text is without any mending: an object, nothing, or text that holds one of these.
fn strict(text: &str, reply: Reply, wrappings: usize) -> Result<ToolArguments, String> {
    let trimmed = text.trim();
    match trimmed {
        "" if reply == Reply::Cut => return Err("nothing had come".to_owned()),
        // An empty list is how some servers' languages write an empty object.
        "" | "null" | "[]" => return Ok(ToolArguments::default()),
        _ => {}
    }
    match serde_json::from_str::<Value>(trimmed) {
        Ok(Value::Object(value)) => Ok(object(value, text)),
        Ok(Value::String(inner)) if wrappings > 0 => strict(&inner, reply, wrappings - 1),
        Ok(other) => Err(format!(
            "the arguments are {}, not a JSON object",
            kind(&other)
        )),
        Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
    }
}

/// An object with its text, byte for byte; white space around it that JSON has not (a vertical
/// tab, a no-break space) would make the text unreadable for the server that it goes back to.
fn object(value: JsonObject, raw: &str) -> ToolArguments {
    let trimmed = raw.trim();
    let json = raw.trim_matches([' ', '\t', '\n', '\r']).len() == trimmed.len();
    ToolArguments::Object {
        value: Arc::new(value),
        raw: Some(if json { raw } else { trimmed }.into()),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Mends what can be mended without guessing; the text that goes back is then valid JSON.
fn mended(text: &str, wrappings: usize) -> Option<ToolArguments> {
    let text = unfenced(text.trim());
    if wrappings > 0
        && text.starts_with('"')
        && let Ok(Value::String(inner)) = serde_json::from_str::<Value>(text)
    {
        return mended(&inner, wrappings - 1);
    }
    if !text.starts_with('{') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    if let Some(Ok(Value::Object(first))) = values.next() {
        let end = values.byte_offset();
        return unglued(first, text, end, wrappings);
    }
    let (json, end) = loose::object(text)?;
    if !is_prose(text[end..].trim_start()) {
        return None;
    }
    // Its text goes along: numbers that no machine number holds stay in it to the last digit.
    let value = serde_json::from_str(&json).ok()?;
    Some(object(value, &json))
}

/// An object and what stands after it: equal copies and prose are dropped, an empty object
/// before another is dropped; two different objects are nobody's arguments.
fn unglued(first: JsonObject, text: &str, end: usize, wrappings: usize) -> Option<ToolArguments> {
    let rest = text[end..].trim_start();
    if first.is_empty() && rest.starts_with('{') {
        return match strict(rest, Reply::Whole, 0) {
            Ok(arguments) => Some(arguments),
            Err(_) if wrappings > 0 => mended(rest, wrappings - 1),
            Err(_) => None,
        };
    }
    let raw = &text[..end];
    let mut left = rest;
    while left.starts_with('{') {
        let mut values = serde_json::Deserializer::from_str(left).into_iter::<Value>();
        match values.next() {
            Some(Ok(Value::Object(copy))) if copy == first => {}
            _ => return None,
        }
        // Numbers that no machine number holds are equal to others of their size.
        let copy = &left[..values.byte_offset()];
        if copy != raw && holds_huge(&first) {
            return None;
        }
        left = left[values.byte_offset()..].trim_start();
    }
    is_prose(left).then(|| object(first, raw))
}

/// Whether there is a number in it of which the machine's number may not hold every digit.
fn holds_huge(object: &JsonObject) -> bool {
    fn is_huge(value: &Value) -> bool {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match value {
            Value::Number(number) => {
                number.is_f64() && number.as_f64().is_none_or(|number| number.abs() >= EXACT)
            }
            Value::Array(items) => items.iter().any(is_huge),
            Value::Object(object) => holds_huge(object),
            _ => false,
        }
    }
    object.values().any(is_huge)
}

/// Whether text after an object can be words about it, and not more of the arguments.
fn is_prose(rest: &str) -> bool {
    !rest.starts_with(['{', '[', '"', '\'', ',', ':', ';'])
}

/// The text inside a Markdown code fence.
fn unfenced(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```") else {
        return text;
    };
    let inner = inner.strip_prefix("json").unwrap_or(inner).trim_start();
    inner
        .trim_end()
        .strip_suffix("```")
        .unwrap_or(inner)
        .trim_end()
}

/// The text of arguments that stand as JSON in the body: a string's content, or the JSON itself.
pub(crate) fn text_of(raw: &serde_json::value::RawValue) -> Cow<'_, str> {
    let text = raw.get();
    if text.starts_with('"')
        && let Ok(inner) = serde_json::from_str::<Borrowed<'_>>(text)
    {
        return inner.0;
    }
    Cow::Borrowed(text)
}

#[derive(serde::Deserialize)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);
