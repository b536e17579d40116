//! The cases of the corpus: what a server sent, or what should be sent, as one JSON object.
//!
//! Knows: the form of a case (its README stands beside the fixtures) and of its answer.
//! Does not know: what an answer should be. It calls the same functions as the HTTP model.
//!
//! `yiem wire decode` and `yiem wire encode` are [`decode`] and [`encode`]; the latter is in `building`.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use yiem_core::{
    AssistantMessage, Env, JsonObject, ModelError, StopReason, Timestamp, ToolArguments, Usage,
};

use crate::{Asked, OfferedTools, PROVIDER_DATA, ReadOptions, RecordedReply};

mod building;
pub use building::encode;

/// A case that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the case cannot be read: {0}")]
pub struct CaseError(String);

impl CaseError {
    fn new(error: impl ToString) -> Self {
        Self(error.to_string())
    }
}

/// A JSON object, which a case is; `example` is what is told where there is none.
fn object<'j, T: Deserialize<'j>>(json: &'j str, example: &str) -> Result<T, CaseError> {
    let problem = match json.trim_start().chars().next() {
        Some('{') => match serde_json::from_str(json) {
            Ok(case) => return Ok(case),
            Err(error) => error.to_string(),
        },
        None => "there is nothing".to_owned(),
        Some(_) => "it is no JSON object".to_owned(),
    };
    Err(CaseError(format!(
        "{problem}; a case is a JSON object with direction and input, such as {example}"
    )))
}

/// A case of a reply; a body goes under `input` as it came.
const REPLY_EXAMPLE: &str =
    r#"{"direction": "response", "input": {"choices": [{"message": {"content": "hi"}}]}}"#;

#[derive(Debug, Deserialize)]
struct ReplyCase {
    #[serde(default)]
    direction: String,
    input: Box<RawValue>,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    headers: Option<JsonObject>,
    #[serde(default)]
    now: Option<Timestamp>,
    #[serde(default)]
    options: Option<CaseOptions>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CaseOptions {
    offered_tools: Vec<String>,
    recover_leaked_calls: bool,
    think_open_implied: bool,
}

impl RecordedReply {
    /// Reads a case of the directions `response` and `stream`.
    ///
    /// # Errors
    /// It is no JSON of that form.
    pub fn from_case(json: &str) -> Result<Self, CaseError> {
        let case: ReplyCase = object(json, REPLY_EXAMPLE)?;
        let asked = match case.direction.as_str() {
            "stream" => Asked::Stream,
            "response" => Asked::Whole,
            other => {
                return Err(CaseError(format!(
                    "its direction is {other:?}; decode reads response and stream"
                )));
            }
        };
        let pieces = match asked {
            Asked::Stream => pieces(&case.input)?,
            Asked::Whole => vec![body(&case.input)?],
        };
        let options = case.options.unwrap_or_default();
        let headers = case
            .headers
            .unwrap_or_default()
            .into_iter()
            .map(|(name, value)| match value {
                Value::String(text) => (name, text),
                other => (name, other.to_string()),
            })
            .collect();
        Ok(Self {
            asked,
            status: case.status.unwrap_or(200),
            headers,
            now: case.now,
            pieces,
            options: ReadOptions {
                offered: Arc::new(OfferedTools::new(options.offered_tools)),
                recover_leaked_calls: options.recover_leaked_calls,
                think_open_implied: options.think_open_implied,
                ..ReadOptions::default()
            },
        })
    }

    /// Reads it, with the pieces as they are, and reports it as a case expects it.
    #[must_use]
    pub fn decode(&self, env: &Arc<dyn Env>) -> Decoded {
        match self.read(env) {
            Ok(message) => Decoded::new(&message, None),
            Err(broken) => Decoded::new(broken.partial(), Some(broken.error())),
        }
    }
}

/// What was read, with the keys of a case's expectation.
#[derive(Debug, Serialize)]
pub struct Decoded {
    /// The visible text.
    pub text: String,
    /// The reasoning.
    pub reasoning: String,
    /// The calls, in order.
    pub tool_calls: Vec<DecodedCall>,
    /// Why it ended: `stop`, `tool_calls`, `length`, `content_filter` or `error`.
    pub stop: String,
    /// The counts; `null` when none is known.
    pub usage: Option<DecodedUsage>,
    /// The kind of error; `null` when there was none.
    pub error: Option<String>,
    /// The message of the error.
    pub error_message: Option<String>,
    /// Whether sending the same request again makes sense.
    pub retryable: bool,
    /// Seconds to wait as told by the server.
    pub retry_after_s: Option<serde_json::Number>,
    /// Data that stays with the message so that it can be sent back.
    pub keep: Vec<Kept>,
}

/// One call that was read.
#[derive(Debug, Serialize)]
pub struct DecodedCall {
    /// Its id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, if they are usable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    /// True when they are not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub arguments_invalid: bool,
    /// The unusable arguments as they came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_raw: Option<String>,
}

/// Token counts as servers count them.
#[derive(Debug, Serialize)]
pub struct DecodedUsage {
    /// The whole prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// The whole answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// The part of the prompt that a cache served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// The part of the answer that is reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

/// Data that stays with the message or with one of its calls.
#[derive(Debug, Serialize)]
pub struct Kept {
    /// `message` or `tool_calls/<n>`.
    pub at: String,
    /// The field that it came in.
    pub field: String,
    /// What it was.
    pub value: Value,
}

impl Decoded {
    /// The report of a message, and of the error that ended it if one did.
    #[must_use]
    pub fn new(message: &AssistantMessage, error: Option<&ModelError>) -> Self {
        let mut keep = Vec::new();
        let mut keep_all = |at: &str, extra: &yiem_core::Extra| {
            if let Some(Value::Object(data)) = extra.get(PROVIDER_DATA) {
                keep.extend(data.iter().map(|(field, value)| Kept {
                    at: at.to_owned(),
                    field: field.clone(),
                    value: value.clone(),
                }));
            }
        };
        keep_all("message", &message.extra);
        for (n, call) in message.tool_calls().enumerate() {
            keep_all(&format!("tool_calls/{n}"), &call.extra);
        }
        let stop = match &message.stop_reason {
            _ if error.is_some() => "error",
            StopReason::EndTurn | StopReason::Other(_) | StopReason::Terminated => "stop",
            other => other.as_str(),
        };
        Self {
            text: message.text(),
            reasoning: message.reasoning(),
            tool_calls: message.tool_calls().map(decoded_call).collect(),
            stop: stop.to_owned(),
            usage: decoded_usage(&message.usage),
            error: error.map(|error| error.kind.as_str().to_owned()),
            error_message: error.map(|error| error.message.clone()),
            retryable: error.is_some_and(ModelError::is_retryable),
            retry_after_s: error.and_then(|error| error.retry_after).and_then(|wait| {
                if wait.subsec_nanos() == 0 {
                    Some(wait.as_secs().into())
                } else {
                    serde_json::Number::from_f64(wait.as_secs_f64())
                }
            }),
            keep,
        }
    }
}

fn decoded_call(call: &yiem_core::ToolCall) -> DecodedCall {
    let invalid = matches!(call.arguments, ToolArguments::Unreadable { .. });
    let raw = call.arguments.raw();
    // The text itself, not the values read from it: its numbers keep every digit.
    let arguments = (!invalid)
        .then(|| RawValue::from_string(on_one_line(&raw)).ok())
        .flatten();
    DecodedCall {
        id: call.id.to_string(),
        name: call.name.clone(),
        arguments,
        arguments_invalid: invalid,
        arguments_raw: invalid.then(|| raw.into_owned()),
    }
}

/// JSON without the line breaks between its tokens.
fn on_one_line(json: &str) -> String {
    let mut inside = false;
    let mut escaped = false;
    json.trim()
        .chars()
        .filter(|c| {
            match c {
                '"' if !escaped => inside = !inside,
                '\n' | '\r' | '\t' if !inside => return false,
                _ => {}
            }
            escaped = inside && *c == '\\' && !escaped;
            true
        })
        .collect()
}

fn decoded_usage(usage: &Usage) -> Option<DecodedUsage> {
    let counts = DecodedUsage {
        input: usage.prompt(),
        output: usage.output,
        cached: usage.cache_read,
        reasoning: usage.reasoning,
    };
    (!usage.is_unknown()).then_some(counts)
}

fn body(input: &RawValue) -> Result<Vec<u8>, CaseError> {
    let text = input.get();
    if text.starts_with('"') {
        return serde_json::from_str::<String>(text)
            .map(String::into_bytes)
            .map_err(CaseError::new);
    }
    if let Ok(piece @ Value::Object(_)) = serde_json::from_str::<Value>(text)
        && let Some(bytes) = bytes_of(&piece)
    {
        return bytes;
    }
    Ok(text.as_bytes().to_vec())
}

fn pieces(input: &RawValue) -> Result<Vec<Vec<u8>>, CaseError> {
    let list: Vec<Value> = match serde_json::from_str(input.get()).map_err(CaseError::new)? {
        Value::Array(list) => list,
        single => vec![single],
    };
    list.into_iter()
        .map(|piece| match piece {
            Value::String(text) => Ok(text.into_bytes()),
            other => bytes_of(&other).unwrap_or_else(|| {
                Err(CaseError(
                    "a piece is neither text nor {\"b64\": …}".to_owned(),
                ))
            }),
        })
        .collect()
}

/// The bytes of `{"b64": …}`, if it is that and nothing else.
fn bytes_of(piece: &Value) -> Option<Result<Vec<u8>, CaseError>> {
    let object = piece.as_object().filter(|object| object.len() == 1)?;
    let text = object.get("b64")?.as_str()?;
    Some(STANDARD.decode(text).map_err(CaseError::new))
}

/// Reads a case's reply and reports it as one JSON object (`yiem wire decode`).
///
/// # Errors
/// The case cannot be read. A reply that is an error is none: it is reported.
pub fn decode(json: &str, env: &Arc<dyn Env>) -> Result<String, CaseError> {
    let decoded = RecordedReply::from_case(json)?.decode(env);
    serde_json::to_string(&decoded).map_err(CaseError::new)
}
