//! Reading the JSON that a script writes.
//!
//! Knows: that JavaScript's texts may hold halves of characters, which no Rust text can.
//! Does not know: what any of it means.

use std::borrow::Cow;

use serde_json::Value;

/// Reads JSON as the script engine writes it; a lone surrogate becomes U+FFFD.
pub(crate) fn read(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&without_lone_surrogates(text))
}

fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    // The engine escapes only lone surrogates, always as `\ud…` in lower case.
    if !text.contains("\\ud") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let lone = escape.get(2..6).is_some_and(|hex| {
            escape.starts_with("\\u")
                && u16::from_str_radix(hex, 16).is_ok_and(|unit| (0xD800..0xE000).contains(&unit))
        });
        let (taken, after) = escape
            .split_at_checked(if lone { 6 } else { 2 })
            .unwrap_or((escape, ""));
        out.push_str(if lone { "\\ufffd" } else { taken });
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}
