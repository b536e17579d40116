//! The same call again and again.
//!
//! Knows: how often a call with the same tool and the same arguments has come. A call counts as
//! a repetition when it follows its like directly, or when its like gave the same result: a file
//! that is read again after it was changed is no repetition, a loop over two calls is one.
//! Does not know: what is done about it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;
use yiem_core::{Content, JsonObject, ToolArguments, ToolCall, ToolResultMessage};

/// What is remembered of a call.
#[derive(Clone, Debug, Default)]
struct Seen {
    times: u32,
    /// Whether the latest of its kind came right after another of its kind.
    in_a_row: bool,
    result: Option<u64>,
}

/// Counts identical calls of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeats {
    /// By keys that are mixed already.
    seen: HashMap<u64, Seen, BuildHasherDefault<Mix>>,
    last: Option<u64>,
    last_call: Option<(u64, Arc<ToolCall>)>,
}

impl Repeats {
    /// Counts a call that is about to run; gives the how-manieth of its kind it is.
    pub(crate) fn count(&mut self, call: &Arc<ToolCall>) -> u32 {
        let key = key_of(call);
        self.last_call = Some((key, Arc::clone(call)));
        let in_a_row = self.last.replace(key) == Some(key);
        let seen = self.seen.entry(key).or_default();
        seen.times += 1;
        seen.in_a_row = in_a_row;
        seen.times
    }

    /// Takes in what came of a call that was counted.
    pub(crate) fn settled(&mut self, call: &ToolCall, result: &ToolResultMessage) {
        // Mostly the one that was counted last.
        let key = match &self.last_call {
            Some((key, last)) if std::ptr::eq(&**last, call) => *key,
            _ => key_of(call),
        };
        let Some(seen) = self.seen.get_mut(&key) else {
            return;
        };
        let now = hash_result(result);
        let before = seen.result.replace(now);
        if !seen.in_a_row && before.is_some_and(|before| before != now) {
            seen.times = 1;
        }
    }
}

/// A quick mix of eight bytes at a time: calls are few and short, and nobody gains by two that
/// are taken for one.
struct Mix(u64);

impl Default for Mix {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn key_of(call: &ToolCall) -> u64 {
    let mut hasher = Mix::default();
    call.name.hash(&mut hasher);
    match &call.arguments {
        ToolArguments::Object { value, .. } => hash_object(value, &mut hasher),
        ToolArguments::Unreadable { raw, .. } => raw.hash(&mut hasher),
    }
    hasher.finish()
}

fn hash_result(result: &ToolResultMessage) -> u64 {
    let mut hasher = Mix::default();
    result.is_error.hash(&mut hasher);
    for block in &result.content {
        match block {
            Content::Text(text) => text.text.hash(&mut hasher),
            other => other.to_plain_text().hash(&mut hasher),
        }
    }
    hasher.finish()
}

fn hash_object(object: &JsonObject, hasher: &mut Mix) {
    // The order of keys says nothing: their hashes are added up.
    let sum = object
        .iter()
        .fold(object.len() as u64, |sum, (key, value)| {
            let mut one = Mix::default();
            key.hash(&mut one);
            hash_value(value, &mut one);
            sum.wrapping_add(one.finish())
        });
    sum.hash(hasher);
}

fn hash_value(value: &Value, hasher: &mut Mix) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Value::Null => {}
        Value::Bool(b) => b.hash(hasher),
        Value::Number(n) => n.hash(hasher),
        Value::String(s) => s.hash(hasher),
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| hash_value(item, hasher));
        }
        Value::Object(object) => hash_object(object, hasher),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(args: Value) -> Arc<ToolCall> {
        Arc::new(ToolCall::new("c", "t", args.as_object().unwrap().clone()))
    }

    fn result(text: &str) -> ToolResultMessage {
        ToolResultMessage {
            content: vec![Content::text(text)],
            ..Default::default()
        }
    }

    #[test]
    fn the_order_of_keys_says_nothing() {
        let mut repeats = Repeats::default();
        assert_eq!(
            repeats.count(&call(json!({"a":1,"b":[1,{"x":1,"y":2}]}))),
            1
        );
        assert_eq!(
            repeats.count(&call(json!({"b":[1,{"y":2,"x":1}],"a":1}))),
            2
        );
        assert_eq!(
            repeats.count(&call(json!({"a":1,"b":[{"x":1,"y":2},1]}))),
            1
        );
    }

    #[test]
    fn a_call_in_between_starts_anew_only_when_the_result_is_another() {
        let (a, b) = (call(json!({"k":"a"})), call(json!({"k":"b"})));
        let mut loops = Repeats::default();
        let mut reads = Repeats::default();
        for round in 1..=4u32 {
            assert_eq!(loops.count(&a), round);
            loops.settled(&a, &result("same"));
            loops.count(&b);
            loops.settled(&b, &result("same"));
            assert!(reads.count(&a) <= 2);
            reads.settled(&a, &result(&format!("version {round}")));
            reads.count(&call(json!({"edit":round})));
        }
    }

    #[test]
    fn in_a_row_counts_whatever_comes_of_it() {
        let a = call(json!({}));
        let mut repeats = Repeats::default();
        for round in 1..=4 {
            assert_eq!(repeats.count(&a), round);
            repeats.settled(&a, &result(&round.to_string()));
        }
    }
}
