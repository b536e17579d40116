//! Any text as the arguments of a call: what they were, or unusable, and never anything else.

use serde_json::{Value, json};
use yiem_core::{AssistantMessage, ToolArguments};

use super::counting::{pieces, seed};
use super::reply::Reading;

/// Any text: flags, the number that its fragments follow from, then the text.
pub fn arguments(data: &[u8]) {
    let Some((flags, rest)) = data.split_first() else {
        return;
    };
    let Some((seed, bytes)) = seed(rest) else {
        return;
    };
    let text = String::from_utf8_lossy(bytes);
    let cut = flags & 8 != 0;
    let finish = if cut { "length" } else { "tool_calls" };
    let call = |arguments: &str| json!({"index": 0, "id": "c", "function": {"name": "f", "arguments": arguments}});
    let whole = json!({"choices": [{
        "message": {"tool_calls": [call(&text)]}, "finish_reason": finish,
    }]});
    let whole = Reading::by(1).read([whole.to_string().as_bytes()]).0;
    check(&whole, &[&text], cut);

    let mut stream = String::new();
    let mut chunk = |delta: Value, finish: Option<&str>| {
        let body = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        stream.push_str(&format!("data: {body}\n\n"));
    };
    chunk(json!({"tool_calls": [call("")]}), None);
    let fragments = fragments(&text, seed);
    for fragment in &fragments {
        let fragment = json!({"index": 0, "function": {"arguments": fragment}});
        chunk(json!({"tool_calls": [fragment]}), None);
    }
    chunk(json!({}), Some(finish));
    let streamed = Reading::by(0).read([stream.as_bytes()]).0;
    check(&streamed, &fragments, cut);
}

fn fragments(text: &str, seed: u32) -> Vec<&str> {
    let mut fragments = Vec::new();
    let (mut start, mut end) = (0, 0);
    for piece in pieces(text.as_bytes(), seed) {
        end += piece.len();
        if text.is_char_boundary(end) {
            fragments.push(&text[start..end]);
            start = end;
        }
    }
    fragments
}

/// The last of fragments that each begin with the one before, as servers send them that repeat what came.
fn last_of_growing<'a>(fragments: &[&'a str]) -> Option<&'a str> {
    let said = fragments.iter().filter(|fragment| !fragment.is_empty());
    let said: Vec<&str> = said.copied().collect();
    let grow = said.windows(2).all(|two| two[1].starts_with(two[0]));
    let last = said.last().filter(|_| grow)?;
    last.trim_start().starts_with(['{', '"']).then_some(last)
}

fn check(message: &AssistantMessage, fragments: &[&str], cut: bool) {
    let text = &*fragments.concat();
    let calls: Vec<_> = message.tool_calls().collect();
    let [call] = calls.as_slice() else {
        // A reply that was cut before any arguments came may drop the call.
        assert!(cut && text.trim().is_empty(), "{} calls", calls.len());
        return;
    };
    let strict = serde_json::from_str::<Value>(text);
    let raw = call.arguments.raw();
    match &call.arguments {
        ToolArguments::Unreadable { reason, .. } => {
            assert!(
                raw == text || last_of_growing(fragments) == Some(&*raw),
                "unusable arguments are not as they came: {raw:?} of {fragments:?}"
            );
            assert!(!reason.is_empty(), "unusable without a reason");
            assert!(
                !matches!(strict, Ok(Value::Object(_))),
                "an object was called unusable: {reason}"
            );
        }
        _ => {
            let value = call.arguments().expect("usable arguments");
            match &strict {
                Ok(Value::Object(object)) => {
                    assert_eq!(raw, text, "an object is not as it came");
                    assert_eq!(value, object);
                }
                _ if value.is_empty() => {
                    let head = text.split('}').next().unwrap_or_default();
                    assert!(!head.contains(':'), "{text:?} was replaced by nothing");
                }
                _ => {}
            }
            let back: Value = serde_json::from_str(&raw).expect("usable arguments are JSON");
            assert_eq!(
                back.as_object(),
                Some(value),
                "the raw text is another object"
            );
        }
    }
}
