//! Serde twins of what servers send: chat completions, their chunks, and their relatives.
//!
//! Knows: the names of the fields, and that any of them may be null, missing, twice there or of
//! another type; reading such a field never fails. Borrows from the body wherever it can.
//! Does not know: what the fields mean together.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// A field that should be text. Null and false count as missing; a number or `true` is its text.
#[derive(Debug, Default, Clone)]
pub(crate) enum Text<'a> {
    #[default]
    Missing,
    Is(Cow<'a, str>),
    /// A list or an object stands where text should.
    Other(Box<Value>),
}

impl<'a> Text<'a> {
    /// The text, unless there is none or it is empty.
    pub(crate) fn get(&self) -> Option<&str> {
        match self {
            Self::Is(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    pub(crate) fn or_empty(&self) -> &str {
        self.get().unwrap_or_default()
    }
}

/// A field that should be a whole number.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Number(pub(crate) Option<f64>);

impl Number {
    pub(crate) fn index(self) -> Option<i64> {
        self.0.filter(|n| n.is_finite()).map(|n| n as i64)
    }
}

/// With the feature `arbitrary_precision` of serde_json, which another crate of a program may
/// switch on, a number with a fraction comes as a map with this key and its text.
pub(crate) const NUMBER: &str = "$serde_json::private::Number";

/// The text of a number that comes as a map; of any other map none.
fn number_of<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<String>, A::Error> {
    let mut number = None;
    while let Some(Key(key)) = map.next_key()? {
        match &*key {
            NUMBER => number = Some(map.next_value()?),
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
    }
    Ok(number)
}

/// A field that should be a list; a single object is a list of one, anything else an empty one.
#[derive(Debug, Clone)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// A field that should be an object; anything else counts as missing.
#[derive(Debug, Clone)]
pub(crate) struct Object<T>(pub(crate) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// A field that is looked at later, if at all. Null counts as missing.
pub(crate) type Raw<'a> = Option<&'a RawValue>;

/// Data that has to go back as it came, by the field it stood in.
pub(crate) type Kept<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

macro_rules! scalar_visits {
    ($value:ident => $made:expr) => {
        fn visit_bool<E>(self, $value: bool) -> Result<Self::Value, E> {
            Ok($made)
        }
        number_visits!($value => $made);
    };
}

macro_rules! number_visits {
    ($value:ident => $made:expr) => {
        fn visit_i64<E>(self, $value: i64) -> Result<Self::Value, E> {
            Ok($made)
        }
        fn visit_u64<E>(self, $value: u64) -> Result<Self::Value, E> {
            Ok($made)
        }
        fn visit_f64<E>(self, $value: f64) -> Result<Self::Value, E> {
            Ok($made)
        }
    };
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for V<'a> {
            type Value = Text<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text::Is(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text::Is(Cow::Owned(text.to_owned())))
            }
            fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
                Ok(Text::Is(Cow::Owned(text)))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Text::Missing)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
                Ok(match value {
                    true => Text::Is(Cow::Borrowed("true")),
                    false => Text::Missing,
                })
            }
            number_visits!(value => Text::Is(Cow::Owned(value.to_string())));
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                Ok(match Value::deserialize(map)? {
                    // See `NUMBER`.
                    Value::Number(number) => Text::Is(Cow::Owned(number.to_string())),
                    value => Text::Other(Box::new(value)),
                })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Value::deserialize(serde::de::value::SeqAccessDeserializer::new(seq))
                    .map(|value| Text::Other(Box::new(value)))
            }
        }
        deserializer.deserialize_any(V(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_i64<E>(self, n: i64) -> Result<Number, E> {
                Ok(Number(Some(n as f64)))
            }
            fn visit_u64<E>(self, n: u64) -> Result<Number, E> {
                Ok(Number(Some(n as f64)))
            }
            fn visit_f64<E>(self, n: f64) -> Result<Number, E> {
                Ok(Number(Some(n)))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Number, E> {
                Ok(Number(None))
            }
            fn visit_unit<E>(self) -> Result<Number, E> {
                Ok(Number(None))
            }
            fn visit_str<E>(self, text: &str) -> Result<Number, E> {
                Ok(Number(text.trim().parse().ok()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Number, A::Error> {
                let text = number_of(map)?;
                Ok(Number(text.and_then(|text| text.parse().ok())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Number, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Number(None))
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for V<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of objects")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T>, A::Error> {
                let mut items = Vec::new();
                while let Some(Object(item)) = seq.next_element::<Object<T>>()? {
                    if let Some(item) = item {
                        // Most lists have one.
                        if items.is_empty() {
                            items.reserve_exact(1);
                        }
                        items.push(item);
                    }
                }
                Ok(List(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<List<T>, A::Error> {
                T::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    .map(|item| List(vec![item]))
            }
            fn visit_str<E>(self, _: &str) -> Result<List<T>, E> {
                Ok(List::default())
            }
            fn visit_unit<E>(self) -> Result<List<T>, E> {
                Ok(List::default())
            }
            scalar_visits!(_value => List::default());
        }
        deserializer.deserialize_any(V(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for V<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    .map(|object| Object(Some(object)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Object<T>, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Object(None))
            }
            fn visit_str<E>(self, _: &str) -> Result<Object<T>, E> {
                Ok(Object(None))
            }
            fn visit_unit<E>(self) -> Result<Object<T>, E> {
                Ok(Object(None))
            }
            scalar_visits!(_value => Object(None));
        }
        deserializer.deserialize_any(V(PhantomData))
    }
}

/// A key of an object, borrowed when it has no escapes.
pub(crate) struct Key<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for V<'a> {
            type Value = Key<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(V(PhantomData))
    }
}

/// What counts as missing: it is then as if the field were not there.
trait Missing {
    fn is_missing(&self) -> bool;
}

impl Missing for Text<'_> {
    fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }
}

impl Missing for Raw<'_> {
    fn is_missing(&self) -> bool {
        self.is_none()
    }
}

impl<T> Missing for List<T> {
    fn is_missing(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Missing for Object<T> {
    fn is_missing(&self) -> bool {
        self.0.is_none()
    }
}

/// A struct whose fields are read by any of their names, the last one that is there counting;
/// keys that `keep` names go into `kept`, all others are skipped. Fields that few servers send
/// stand in a box of their own, which is there only when one of them came: most replies are
/// streams of small chunks, and moving large structs would cost more than reading them.
macro_rules! tolerant {
    (
        $(#[$meta:meta])*
        $name:ident, keep $keep:expr,
        { $( $(#[$fmeta:meta])* $field:ident : $type:ty = $($key:literal)|+ ),+ $(,)? }
        $rare:ident { $( $(#[$rmeta:meta])* $rfield:ident : $rtype:ty = $($rkey:literal)|+ ),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Default)]
        pub(crate) struct $name<'a> {
            $( $(#[$fmeta])* pub(crate) $field: $type, )+
            rare: Option<Box<$rare<'a>>>,
        }

        /// The fields that few servers send.
        #[derive(Debug, Default)]
        pub(crate) struct $rare<'a> {
            $( $(#[$rmeta])* pub(crate) $rfield: $rtype, )*
            pub(crate) kept: Kept<'a>,
        }

        impl<'a> $name<'a> {
            /// The fields that few servers send, if any came.
            pub(crate) fn rare(&self) -> Option<&$rare<'a>> {
                self.rare.as_deref()
            }
        }

        impl<'de: 'a, 'a> Deserialize<'de> for $name<'a> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct V<'a>(PhantomData<&'a ()>);
                impl<'de: 'a, 'a> Visitor<'de> for V<'a> {
                    type Value = $name<'a>;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        let mut read = $name::default();
                        let keep: fn(&str) -> bool = $keep;
                        while let Some(Key(key)) = map.next_key()? {
                            match &*key {
                                $( $($key)|+ => read.$field = map.next_value()?, )+
                                $( $($rkey)|+ => {
                                    let value: $rtype = map.next_value()?;
                                    if !value.is_missing() {
                                        read.rare.get_or_insert_default().$rfield = value;
                                    }
                                } )*
                                other if keep(other) => {
                                    let value: Raw<'a> = map.next_value()?;
                                    if let Some(value) = value {
                                        read.rare.get_or_insert_default().kept.push((key, value));
                                    }
                                }
                                _ => {
                                    map.next_value::<IgnoredAny>()?;
                                }
                            }
                        }
                        Ok(read)
                    }
                }
                deserializer.deserialize_map(V(PhantomData))
            }
        }
    };
}

fn keep_none(_: &str) -> bool {
    false
}

/// Fields of a message that a provider wants back, whatever is in them.
const KEPT_OF_MESSAGE: [&str; 5] = [
    "extra_content",
    "provider_specific_fields",
    "thinking_blocks",
    "reasoning_id",
    "cache_id",
];

/// Parts of names that say that a field is opaque data of the provider's.
const OPAQUE: [&str; 3] = ["signature", "encrypted", "opaque"];

fn keep_of_message(key: &str) -> bool {
    KEPT_OF_MESSAGE.contains(&key) || OPAQUE.iter().any(|part| key.contains(part))
}

/// A field that counts only when it says `error`; every chunk has it, and then it says nothing.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ErrorMark(pub(crate) bool);

impl Missing for ErrorMark {
    fn is_missing(&self) -> bool {
        !self.0
    }
}

impl<'de> Deserialize<'de> for ErrorMark {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(|text| Self(text.get() == Some("error")))
    }
}

tolerant! {
    /// A whole body, or one chunk of a stream.
    Body, keep keep_none,
    {
        choices: List<Choice<'a>> = "choices",
        model: Text<'a> = "model",
        usage: Raw<'a> = "usage",
        error: Raw<'a> = "error",
    }
    RareOfBody {
        /// Cloudflare's envelope, and others' lists of what went wrong.
        errors: Raw<'a> = "errors",
        /// Other names of `error`.
        fault: Raw<'a> = "Error" | "err" | "fault" | "exception",
        success: Raw<'a> = "success",
        code: Text<'a> = "code" | "error_code",
        status: Text<'a> = "status" | "status_code",
        base_resp: Raw<'a> = "base_resp",
        /// Format 1 (SP-017), and Ollama's own.
        message: Raw<'a> = "message",
        /// Format 2 (SP-018).
        content: Raw<'a> = "content",
        tool_calls: Raw<'a> = "tool_calls" | "toolCalls",
        response: Text<'a> = "response" | "generated_text" | "output_text",
        api: Text<'a> = "api",
        provider: Text<'a> = "provider",
        x_groq: Raw<'a> = "x_groq",
        prompt_eval_count: Raw<'a> = "prompt_eval_count",
        eval_count: Raw<'a> = "eval_count",
        error_message: Text<'a> = "error_message" | "errorMessage" | "error_msg",
        detail: Raw<'a> = "detail",
        kind: Text<'a> = "type",
        object: ErrorMark = "object",
        finish_reason: Text<'a> = "finish_reason",
        stop_reason: Text<'a> = "stop_reason" | "stopReason",
        done_reason: Text<'a> = "done_reason",
        done: Raw<'a> = "done",
        /// Of other APIs than this one.
        candidates: Raw<'a> = "candidates",
        output: Raw<'a> = "output",
        data: Raw<'a> = "data",
    }
}

/// What one vendor puts beside the last chunk.
#[derive(Debug, Deserialize)]
pub(crate) struct XGroq<'a> {
    #[serde(borrow, default)]
    pub(crate) usage: Raw<'a>,
}

tolerant! {
    /// One alternative of a reply.
    Choice, keep keep_none,
    {
        index: Number = "index",
        delta: Object<Said<'a>> = "delta",
        finish_reason: Text<'a> = "finish_reason",
    }
    RareOfChoice {
        message: Object<Said<'a>> = "message",
        text: Text<'a> = "text",
        usage: Raw<'a> = "usage",
        error: Raw<'a> = "error",
    }
}

tolerant! {
    /// A message, or a piece of one.
    Said, keep keep_of_message,
    {
        content: Text<'a> = "content",
        reasoning_content: Text<'a> = "reasoning_content",
        tool_calls: List<Call<'a>> = "tool_calls",
    }
    RareOfSaid {
        camel_calls: List<Call<'a>> = "toolCalls",
        reasoning: Text<'a> = "reasoning",
        reasoning_text: Text<'a> = "reasoning_text",
        thinking: Text<'a> = "thinking",
        reasoning_details: Raw<'a> = "reasoning_details",
        refusal: Text<'a> = "refusal",
        function_call: Object<Function<'a>> = "function_call",
        images: Text<'a> = "images",
    }
}

impl Choice<'_> {
    /// Whether there is more in it than its head: text, thoughts, calls, or a whole message.
    pub(crate) fn speaks(&self) -> bool {
        let delta = self.delta.0.as_ref().is_some_and(Said::speaks);
        delta
            || self.rare().is_some_and(|rare| {
                rare.message.0.as_ref().is_some_and(Said::speaks) || rare.text.get().is_some()
            })
    }
}

impl<'a> Said<'a> {
    /// The calls, under either of their names.
    pub(crate) fn calls(&self) -> &[Call<'a>] {
        match (&*self.tool_calls.0, self.rare()) {
            ([], Some(rare)) => &rare.camel_calls.0,
            (calls, _) => calls,
        }
    }

    /// Whether there is anything in it that is read.
    pub(crate) fn speaks(&self) -> bool {
        let some = |text: &Text<'_>| text.get().is_some() || matches!(text, Text::Other(_));
        some(&self.content)
            || some(&self.reasoning_content)
            || !self.tool_calls.0.is_empty()
            || self.rare().is_some()
    }

    /// Content alone.
    pub(crate) fn words(text: Cow<'a, str>) -> Self {
        Self {
            content: Text::Is(text),
            ..Self::default()
        }
    }

    /// Reasoning alone, in the field that most servers use.
    pub(crate) fn thoughts(text: Cow<'a, str>) -> Self {
        Self {
            reasoning_content: Text::Is(text),
            ..Self::default()
        }
    }
}

/// Fields by which an object is a message, whether or not they say anything.
const FIELDS_OF_MESSAGE: [&str; 13] = [
    "role",
    "content",
    "tool_calls",
    "toolCalls",
    "function_call",
    "refusal",
    "reasoning",
    "reasoning_content",
    "reasoning_text",
    "reasoning_details",
    "thinking",
    "images",
    "audio",
];

/// Whether an object is a message: it has a field of one, or it is empty.
fn is_message(object: &serde_json::Map<String, Value>) -> bool {
    let field = |key: &String| FIELDS_OF_MESSAGE.contains(&&**key) || keep_of_message(key);
    object.is_empty() || object.keys().any(field)
}

impl<'a> Said<'a> {
    /// A `message` that stands alone, unless it is an object of another kind.
    pub(crate) fn of_message(raw: &'a RawValue) -> Option<Self> {
        let said: Self = serde_json::from_str(raw.get()).ok()?;
        let other = || serde_json::from_str(raw.get()).is_ok_and(|object| !is_message(&object));
        (said.speaks() || !other()).then_some(said)
    }
}

/// The first `message` of a body, where none of them is the message of an assistant but an object
/// of another kind. Asked of bodies that said nothing.
pub(crate) fn other_than_message(text: &str) -> Option<Value> {
    let mut body: Value = serde_json::from_str(text).ok()?;
    let mut messages = match body.get_mut("choices").map(Value::take) {
        Some(Value::Array(choices)) => choices,
        Some(choice @ Value::Object(_)) => vec![choice],
        _ => vec![body],
    };
    let is_other = |holder: &Value| {
        let object = holder.get("message").and_then(Value::as_object);
        object.is_some_and(|object| !is_message(object))
    };
    let all = !messages.is_empty() && messages.iter().all(is_other);
    all.then(|| messages[0]["message"].take())
}

/// Fields of a call that are read or that say nothing; any other goes back with it.
fn keep_of_call(key: &str) -> bool {
    !matches!(key, "type" | "object" | "status" | "created" | "role")
}

tolerant! {
    /// A call, or a piece of one: with a `function` around name and arguments, or without.
    Call, keep keep_of_call,
    {
        index: Number = "index",
        id: Text<'a> = "id",
        function: Object<Function<'a>> = "function",
    }
    RareOfCall {
        call_id: Text<'a> = "call_id" | "tool_call_id",
        name: Text<'a> = "name",
        arguments: Raw<'a> = "arguments" | "input" | "parameters" | "args",
    }
}

tolerant! {
    /// The function of a call.
    Function, keep keep_none,
    {
        name: Text<'a> = "name",
        arguments: Raw<'a> = "arguments",
    }
    RareOfFunction {
        arguments: Raw<'a> = "parameters" | "input" | "args",
    }
}

impl<'a> Function<'a> {
    /// The arguments, under any of their names.
    pub(crate) fn arguments(&self) -> Raw<'a> {
        self.arguments.or_else(|| self.rare()?.arguments)
    }
}
