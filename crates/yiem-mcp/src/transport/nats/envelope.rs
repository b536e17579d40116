//! The message envelope of the seeds' Julia agents (M-3): JSON-RPC wrapped in one payload of it.
//!
//! Made from public descriptions of that format, and not verified against the Julia code.
//!
//! Knows: its fields, how a payload is written, and every shape that one is read in.
//! Does not know: subjects, connections, who waits for what.

use crate::jsonrpc::excerpt;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt;

/// How deep envelopes and texts within texts are followed.
const DEPTH: u8 = 4;

/// Who sends, as the envelope says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeConfig {
    /// `sender_id`; an id of the environment's is taken when it is empty.
    pub sender_id: String,
    /// `sender_name`.
    pub sender_name: String,
    /// The address of a file server, told in `metadata.fileserver_url`; empty for none.
    pub fileserver_url: String,
    /// `broker_url`; the first server without its credentials is taken when it is empty.
    pub broker_url: String,
}

impl Default for EnvelopeConfig {
    fn default() -> Self {
        Self {
            sender_id: String::new(),
            sender_name: "yiem".into(),
            fileserver_url: String::new(),
            broker_url: String::new(),
        }
    }
}

/// What an envelope says beside its payload. What is missing or no text is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvelopeHead {
    /// What the messages of one conversation have in common.
    pub correlation_id: String,
    /// This message.
    pub msg_id: String,
    /// When it was made, RFC 3339.
    pub timestamp: String,
    /// The subject that it is sent to.
    pub send_to: String,
    /// What it is for, e.g. `mcp_tool_call`.
    pub msg_purpose: String,
    /// Who sends it, for people.
    pub sender_name: String,
    /// Who sends it.
    pub sender_id: String,
    /// Whom it is for, for people.
    pub receiver_name: String,
    /// Whom it is for.
    pub receiver_id: String,
    /// Where an answer goes, beside the reply subject of NATS.
    pub reply_to: String,
    /// The message that it answers.
    pub reply_to_msg_id: String,
    /// The broker.
    pub broker_url: String,
}

impl EnvelopeHead {
    /// The head of the answer to this message.
    #[must_use]
    pub fn answered_by(
        &self,
        config: &EnvelopeConfig,
        msg_id: String,
        timestamp: String,
        send_to: &str,
    ) -> Self {
        Self {
            correlation_id: self.correlation_id.clone(),
            msg_id,
            timestamp,
            send_to: send_to.to_owned(),
            msg_purpose: self.msg_purpose.clone(),
            sender_name: config.sender_name.clone(),
            sender_id: config.sender_id.clone(),
            receiver_name: self.sender_name.clone(),
            receiver_id: self.sender_id.clone(),
            reply_to: String::new(),
            reply_to_msg_id: self.msg_id.clone(),
            broker_url: config.broker_url.clone(),
        }
    }
}

/// The `msg_purpose` of a method.
#[must_use]
pub fn purpose(method: &str) -> String {
    match method {
        "tools/list" => "mcp_tools_list".into(),
        "tools/call" => "mcp_tool_call".into(),
        other => format!("mcp_{}", other.replace('/', "_")),
    }
}

/// Writes an envelope with `message`, the JSON-RPC message as bytes, as its one payload.
#[must_use]
pub fn write(
    head: &EnvelopeHead,
    payload_id: &str,
    message: &[u8],
    fileserver_url: &str,
) -> Vec<u8> {
    #[derive(Serialize)]
    struct Wire<'a> {
        correlation_id: &'a str,
        msg_id: &'a str,
        timestamp: &'a str,
        send_to: &'a str,
        msg_purpose: &'a str,
        sender_name: &'a str,
        sender_id: &'a str,
        receiver_name: &'a str,
        receiver_id: &'a str,
        reply_to: &'a str,
        reply_to_msg_id: &'a str,
        broker_url: &'a str,
        metadata: Value,
        payloads: [Payload<'a>; 1],
    }
    #[derive(Serialize)]
    struct Payload<'a> {
        id: &'a str,
        dataname: &'a str,
        payload_type: &'a str,
        transport: &'a str,
        encoding: &'a str,
        size: usize,
        data: String,
        metadata: Map<String, Value>,
    }
    let metadata = if fileserver_url.is_empty() {
        json!({})
    } else {
        json!({"fileserver_url": fileserver_url})
    };
    let wire = Wire {
        correlation_id: &head.correlation_id,
        msg_id: &head.msg_id,
        timestamp: &head.timestamp,
        send_to: &head.send_to,
        msg_purpose: &head.msg_purpose,
        sender_name: &head.sender_name,
        sender_id: &head.sender_id,
        receiver_name: &head.receiver_name,
        receiver_id: &head.receiver_id,
        reply_to: &head.reply_to,
        reply_to_msg_id: &head.reply_to_msg_id,
        broker_url: &head.broker_url,
        metadata,
        payloads: [Payload {
            id: payload_id,
            dataname: "payload",
            payload_type: "dictionary",
            transport: "direct",
            encoding: "base64",
            size: message.len(),
            data: STANDARD.encode(message),
            metadata: Map::new(),
        }],
    };
    serde_json::to_vec(&wire).expect("texts and numbers are always written")
}

/// What bytes turned out to be.
#[derive(Debug, Clone, PartialEq)]
pub enum Unwrapped {
    /// An envelope, and the JSON-RPC message (or messages) in it.
    Message {
        /// What the envelope says.
        head: Box<EnvelopeHead>,
        /// The message.
        message: Value,
    },
    /// An envelope whose message lies elsewhere.
    Link {
        /// What the envelope says.
        head: Box<EnvelopeHead>,
        /// The address to fetch it from.
        url: String,
    },
    /// No envelope: a JSON-RPC message as it is.
    Bare(Value),
}

/// Why bytes are no envelope with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeError(String);

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EnvelopeError {}

fn error(what: impl Into<String>) -> EnvelopeError {
    EnvelopeError(what.into())
}

/// Reads an envelope, tolerantly: fields may be missing, more may be there, the payload may be an object,
/// base64 of JSON, JSON text or the bytes of it as numbers, whatever its `encoding` says; a message without
/// an envelope is accepted.
///
/// # Errors
/// There is no message in it; the text says what came.
pub fn read(bytes: &[u8]) -> Result<Unwrapped, EnvelopeError> {
    let Some(value) = value_of(bytes) else {
        return Err(error(format!(
            "it is neither an envelope nor JSON: {}",
            excerpt(bytes)
        )));
    };
    unwrap(value, DEPTH)
}

fn value_of(bytes: &[u8]) -> Option<Value> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(bytes)
        .or_else(|_| serde_json::from_str(&String::from_utf8_lossy(bytes)))
        .ok()
        .or_else(|| {
            std::str::from_utf8(bytes)
                .ok()
                .and_then(|text| value_in_text(text, DEPTH))
        })
}

fn unwrap(value: Value, depth: u8) -> Result<Unwrapped, EnvelopeError> {
    match value {
        Value::Object(object)
            if object.contains_key("payloads") || object.contains_key("payload") =>
        {
            open(object, depth)
        }
        Value::Object(ref object) if is_message(object) => Ok(Unwrapped::Bare(value)),
        Value::Array(ref items)
            if items
                .iter()
                .any(|item| item.as_object().is_some_and(is_message)) =>
        {
            Ok(Unwrapped::Bare(value))
        }
        Value::String(text) if depth > 0 => match value_in_text(&text, depth) {
            Some(inner) => unwrap(inner, depth - 1),
            None => Err(error(format!(
                "a text is no envelope: {}",
                excerpt(text.as_bytes())
            ))),
        },
        other => Err(error(format!(
            "it is neither an envelope nor a JSON-RPC message: {}",
            excerpt(other.to_string().as_bytes())
        ))),
    }
}

fn is_message(object: &Map<String, Value>) -> bool {
    ["jsonrpc", "result", "error", "method"]
        .iter()
        .any(|key| object.contains_key(*key))
}

fn open(mut object: Map<String, Value>, depth: u8) -> Result<Unwrapped, EnvelopeError> {
    let head = Box::new(read_head(&object));
    let payloads = object
        .shift_remove("payloads")
        .or_else(|| object.shift_remove("payload"));
    let payloads = match payloads {
        Some(Value::Array(items)) if is_one_tuple(&items) => vec![Value::Array(items)],
        Some(Value::Array(items)) => items,
        Some(Value::Null) | None => Vec::new(),
        Some(one) => vec![one],
    };
    if payloads.is_empty() {
        return Err(error("the envelope has no payload"));
    }
    let mut payloads: Vec<Payload> = payloads.into_iter().map(Payload::read).collect();
    // The one that is named `payload` is meant; the others are asked in their order.
    payloads.sort_by_key(|payload| !payload.name.eq_ignore_ascii_case("payload"));
    let mut first_failure = None;
    for payload in payloads {
        if payload.is_link() {
            let Value::String(url) = payload.data else {
                first_failure
                    .get_or_insert_with(|| error("a payload is a link without an address"));
                continue;
            };
            return Ok(Unwrapped::Link { head, url });
        }
        match payload.message(depth) {
            Ok(message) => return Ok(Unwrapped::Message { head, message }),
            Err(failure) => {
                first_failure.get_or_insert(failure);
            }
        }
    }
    Err(first_failure.unwrap_or_else(|| error("the envelope has no payload")))
}

/// `["payload", {…}, "dictionary"]` in the place of a list of payloads.
fn is_one_tuple(items: &[Value]) -> bool {
    matches!(items, [Value::String(_), _, Value::String(_)])
}

fn read_head(object: &Map<String, Value>) -> EnvelopeHead {
    let text = |key: &str| match object.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    EnvelopeHead {
        correlation_id: text("correlation_id"),
        msg_id: text("msg_id"),
        timestamp: text("timestamp"),
        send_to: text("send_to"),
        msg_purpose: text("msg_purpose"),
        sender_name: text("sender_name"),
        sender_id: text("sender_id"),
        receiver_name: text("receiver_name"),
        receiver_id: text("receiver_id"),
        reply_to: text("reply_to"),
        reply_to_msg_id: text("reply_to_msg_id"),
        broker_url: text("broker_url"),
    }
}

struct Payload {
    name: String,
    kind: String,
    transport: String,
    data: Value,
}

impl Payload {
    fn read(value: Value) -> Self {
        let text =
            |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        match value {
            // Name, data, kind: as the seeds hand payloads around in memory.
            Value::Array(mut items) if items.len() >= 2 && items[0].is_string() => Self {
                name: text(items.first()),
                kind: text(items.get(2)),
                transport: String::new(),
                data: items.swap_remove(1),
            },
            Value::Object(mut object)
                if object.contains_key("data") || object.contains_key("transport") =>
            {
                Self {
                    name: text(object.get("dataname")),
                    kind: text(object.get("payload_type")),
                    transport: text(object.get("transport")),
                    data: object.shift_remove("data").unwrap_or_default(),
                }
            }
            data => Self {
                name: String::new(),
                kind: String::new(),
                transport: String::new(),
                data,
            },
        }
    }

    fn is_link(&self) -> bool {
        if self.transport.eq_ignore_ascii_case("link") {
            return true;
        }
        // One that forgot to say so.
        self.transport.is_empty()
            && self
                .data
                .as_str()
                .is_some_and(|data| data.starts_with("http://") || data.starts_with("https://"))
    }

    fn message(self, depth: u8) -> Result<Value, EnvelopeError> {
        let shown = if self.kind.is_empty() {
            String::new()
        } else {
            format!(" of type {}", self.kind)
        };
        match self.data {
            Value::Object(object) => Ok(Value::Object(object)),
            Value::Array(items) => match bytes_of(&items) {
                Some(bytes) => value_of(&bytes)
                    .and_then(|value| object_in(value, depth))
                    .ok_or_else(|| {
                        error(format!("a payload{shown} is no JSON: {}", excerpt(&bytes)))
                    }),
                None => Ok(Value::Array(items)),
            },
            Value::String(text) => value_in_text(&text, depth)
                .and_then(|value| object_in(value, depth))
                .ok_or_else(|| {
                    error(format!(
                        "a payload{shown} is no JSON object: {}",
                        shown_text(&text)
                    ))
                }),
            Value::Null => Err(error(format!("a payload{shown} has no data"))),
            other => Err(error(format!(
                "a payload{shown} is no JSON object: {other}"
            ))),
        }
    }
}

/// A list of numbers that are bytes.
fn bytes_of(items: &[Value]) -> Option<Vec<u8>> {
    if items.is_empty() {
        return None;
    }
    items
        .iter()
        .map(|item| item.as_u64().and_then(|byte| u8::try_from(byte).ok()))
        .collect()
}

/// An object or a list; also one that stands as text in a text.
fn object_in(value: Value, depth: u8) -> Option<Value> {
    match value {
        Value::Object(_) | Value::Array(_) => Some(value),
        Value::String(text) if depth > 0 => object_in(value_in_text(&text, depth - 1)?, depth - 1),
        _ => None,
    }
}

/// A text as base64 of JSON, else as JSON.
fn value_in_text(text: &str, depth: u8) -> Option<Value> {
    if depth == 0 {
        return None;
    }
    let in_base64 = from_base64(text).and_then(|bytes| {
        serde_json::from_slice::<Value>(&bytes)
            .or_else(|_| serde_json::from_str(&String::from_utf8_lossy(&bytes)))
            .ok()
    });
    match in_base64 {
        Some(value @ (Value::Object(_) | Value::Array(_) | Value::String(_))) => Some(value),
        _ => serde_json::from_str(text.trim()).ok(),
    }
}

/// Base64 of either alphabet, with or without padding, with line breaks or without.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    const LOOSE: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    const PLAIN: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LOOSE);
    const URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LOOSE);
    let decode = |text: &str| {
        let url = text.bytes().any(|byte| byte == b'-' || byte == b'_');
        if url {
            URL.decode(text)
        } else {
            PLAIN.decode(text)
        }
        .ok()
    };
    if text.bytes().any(|byte| byte.is_ascii_whitespace()) {
        let dense: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        return decode(&dense);
    }
    decode(text)
}

/// What a text says, also when it is base64 of a text.
fn shown_text(text: &str) -> String {
    match from_base64(text).and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(plain) if !plain.is_empty() && !plain.chars().any(char::is_control) => {
            excerpt(plain.as_bytes())
        }
        _ => excerpt(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests;
