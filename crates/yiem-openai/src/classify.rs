//! What a failure is, out of what a server said of it.
//!
//! Knows: the order of precedence (for a status of 400 and above the status decides first, then
//! code and type, then the wording; inside a 200 body a numeric code stands for the status) and
//! vendors' codes and wordings, as data.
//! Does not know: sockets, clocks, retries.

use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use yiem_core::{ModelError, ModelErrorKind, Timestamp};

use crate::finish::plain;
use crate::retry_after;
use crate::wire::{Body, Text};

use ModelErrorKind::{
    Auth, ContentFilter, ContextLength, InvalidRequest, Malformed, NotFound, Overloaded, Quota,
    RateLimit, Server, TruncatedStream,
};

mod wording;
use wording::{CODES, Code};

/// The longest message of an error, in characters.
const MESSAGE_CHARS: usize = 300;
/// The longest text of a server that is kept beside the message, in characters.
const BODY_CHARS: usize = 2_000;

/// Codes that stand for a status of a failure.
const FAILURES: std::ops::Range<f64> = 400.0..600.0;

/// How deep an error may stand in another.
const DEPTH: usize = 8;

/// Fields of an error with a code, a type or a status.
const CODE_FIELDS: [&str; 7] = [
    "code",
    "type",
    "status",
    "status_code",
    "statusCode",
    "error_code",
    "reason",
];

/// Fields of an error with what it says, or with an error inside.
const MESSAGE_FIELDS: [&str; 22] = [
    "error",
    "Error",
    "err",
    "message",
    "detail",
    "msg",
    "error_message",
    "errorMessage",
    "error_msg",
    "error_description",
    "description",
    "status_msg",
    "errors",
    "title",
    "base_resp",
    "fault",
    "faultstring",
    "Message",
    "exception",
    "info",
    "cause",
    "reason",
];

/// Fields that explain an error of which `error` gives only the name.
const EXPLANATIONS: [&str; 6] = [
    "message",
    "detail",
    "msg",
    "error_description",
    "error_message",
    "description",
];

/// An answer with a status that says failure.
#[derive(Debug, Clone, Copy)]
pub struct HttpFailure<'a> {
    /// The status.
    pub status: u16,
    /// The headers, names in any case.
    pub headers: &'a [(String, String)],
    /// The body, or its beginning.
    pub body: &'a [u8],
    /// The time, for dates in headers.
    pub now: Timestamp,
}

impl HttpFailure<'_> {
    /// The error that it is: kind, message, whether to try again, and how long to wait.
    #[must_use]
    pub fn classify(self) -> ModelError {
        let text = String::from_utf8_lossy(self.body);
        let said = match json_in(&text) {
            Some(value) => Said::of(&value),
            None => Said {
                message: plain_text(&text),
                ..Said::default()
            },
        };
        let kind = of_status(self.status, &said);
        let what = if said.message.is_empty() {
            reason(self.status)
        } else {
            &said.message
        };
        let mut error = ModelError::new(
            kind,
            cut(
                &format!("the server answered with {}: {what}", self.status),
                MESSAGE_CHARS,
            ),
        );
        error.status = Some(self.status);
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        error.retry_after = retry_after::read(headers, self.now).or_else(|| said.waits(&error));
        error.body = (!text.trim().is_empty()).then(|| cut(text.trim(), BODY_CHARS));
        error
    }
}

/// The JSON of a body: all of it, or what stands in its one event, since some servers answer a
/// request for a stream with a stream whatever the status.
fn json_in(text: &str) -> Option<Value> {
    let text = text.trim_start_matches('\u{feff}').trim();
    serde_json::from_str(text).ok().or_else(|| {
        text.lines()
            .filter_map(|line| line.strip_prefix("data:").or(line.strip_prefix("error:")))
            .find_map(|data| serde_json::from_str(data.trim()).ok())
    })
}

/// Whether a body that came with a good status tells of a failure all the same.
pub(crate) fn of_body(body: &Body<'_>, text: &str) -> Option<ModelError> {
    let rare = body.rare();
    if let Some(message) = rare.and_then(|rare| rare.error_message.get()) {
        return Some(of_said(&Said {
            message: message.to_owned(),
            ..Said::default()
        }));
    }
    if let Some(raw) = body.error {
        let value: Value = serde_json::from_str(raw.get()).ok()?;
        if !says_nothing(&value) {
            return Some(in_body(&serde_json::from_str(text).ok()?));
        }
    }
    if let Some(raw) = body
        .choices
        .0
        .iter()
        .find_map(|choice| choice.rare()?.error)
    {
        let value: Value = serde_json::from_str(raw.get()).ok()?;
        return Some(in_body(&serde_json::json!({ "error": value })));
    }
    let rare = rare?;
    let silent = body.choices.0.is_empty() && rare.content.is_none();
    let is =
        |raw: Option<&RawValue>, texts: &[&str]| raw.is_some_and(|raw| texts.contains(&raw.get()));
    let listed = rare.errors.is_some_and(|errors| {
        let text = errors.get();
        text.starts_with(['[', '{', '"']) && text.bytes().any(|byte| byte.is_ascii_alphanumeric())
    });
    let flat = rare.object.0
        || listed
        || is(rare.success, &["false", "0", "\"false\""])
        || [&rare.code, &rare.status].into_iter().any(failing)
        || rare.base_resp.is_some_and(refuses)
        || rare.kind.get() == Some("error")
        || rare.detail.is_some()
        || rare.fault.is_some_and(|raw| {
            let value = serde_json::from_str(raw.get()).unwrap_or_default();
            !says_nothing(&value)
        })
        || rare
            .message
            .is_some_and(|message| message.get().starts_with('"'));
    if silent && flat {
        Some(in_body(&serde_json::from_str(text).ok()?))
    } else {
        None
    }
}

/// The error of a whole body in which nothing else was found, if it says anything at all.
pub(crate) fn of_silent(text: &str) -> Option<ModelError> {
    let value = serde_json::from_str(text).ok()?;
    let said = Said::of_words(&value);
    (!said.message.is_empty()).then(|| of_said(&said))
}

/// Whether a code or status of a body is one of a failure.
fn failing(code: &Text<'_>) -> bool {
    let number = code.get().and_then(|code| code.trim().parse::<f64>().ok());
    number.is_some_and(|number| FAILURES.contains(&number))
}

/// Whether an envelope with `status_code`, which is 0 when all is well, tells of a failure.
fn refuses(raw: &RawValue) -> bool {
    let value = serde_json::from_str::<Value>(raw.get()).unwrap_or_default();
    value["status_code"].as_i64().is_some_and(|code| code != 0)
}

/// Whether a field for an error is there only because every body has it.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.iter().all(says_nothing),
        Value::Object(object) => object.values().all(says_nothing),
    }
}

/// The error that a body tells of, whose status said that all is well.
pub(crate) fn in_body(value: &Value) -> ModelError {
    of_said(&Said::of(value))
}

fn of_said(said: &Said) -> ModelError {
    let kind = match said.status {
        Some(status) => of_status(status, said),
        None => {
            let coded = said.coded();
            match coded {
                Some(Code {
                    kind,
                    certain: true,
                    ..
                }) => *kind,
                _ => wording(&said.message)
                    .or(coded.map(|code| code.kind))
                    .unwrap_or(Server),
            }
        }
    };
    let what = if said.message.is_empty() {
        "it gave no reason"
    } else {
        &said.message
    };
    let mut error = ModelError::new(
        kind,
        cut(
            &format!("the server answered with an error: {what}"),
            MESSAGE_CHARS,
        ),
    );
    error.status = said.status;
    error.retry_after = said.waits(&error);
    error
}

/// A body that is JSON, and of which nothing is known.
pub(crate) fn without_message(text: &str) -> ModelError {
    const WHY: &str = "holds no message: neither choices, nor message, nor content; \
                       is the base URL that of an OpenAI-compatible API? What came";
    unreadable(text.as_bytes(), WHY)
}

/// A reply whose message is an object of another kind: what it says, if it says anything.
pub(crate) fn other_than_message(message: &Value) -> ModelError {
    let text = message.to_string();
    of_silent(&text).unwrap_or_else(|| {
        const WHY: &str = "holds a `message` that is none of an assistant: it has neither role, \
                           nor content, nor tool_calls. What came";
        unreadable(text.as_bytes(), WHY)
    })
}

/// A reply that is nothing that can be read.
pub(crate) fn unreadable(body: &[u8], why: &str) -> ModelError {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * BODY_CHARS)]);
    let shown = plain_text(&text);
    let mut error = ModelError::new(
        Malformed,
        cut(&format!("the server's reply {why}: {shown}"), MESSAGE_CHARS),
    );
    error.body = Some(cut(text.trim(), BODY_CHARS));
    error
}

/// A body that ended before it was whole.
pub(crate) fn cut_off(text: &str) -> ModelError {
    let mut error = ModelError::new(TruncatedStream, "the reply ended before its JSON was whole");
    error.body = Some(cut(text.trim(), BODY_CHARS));
    error
}

/// What a server said of its failure, whatever the shape.
#[derive(Debug, Default)]
struct Said {
    message: String,
    codes: Vec<String>,
    /// A numeric code that can stand for a status.
    status: Option<u16>,
    /// A wait that stands in a field of its own.
    wait: Option<Duration>,
}

impl Said {
    fn of(value: &Value) -> Self {
        let mut said = Self::of_words(value);
        if said.message.is_empty() && !says_nothing(value) {
            // Whatever it is, people see it.
            said.message = value.to_string();
        }
        said
    }

    /// The same, without a message where none is found.
    fn of_words(value: &Value) -> Self {
        let mut said = Self::default();
        said.take(value, 0);
        said.wait = retry_after::in_fields(value);
        said
    }

    /// How long to wait, of an error that waiting can help.
    fn waits(&self, error: &ModelError) -> Option<Duration> {
        let told = || self.wait.or_else(|| retry_after::in_words(&self.message));
        error.is_retryable().then(told).flatten()
    }

    fn take(&mut self, value: &Value, depth: usize) {
        match value {
            Value::String(text) if self.message.is_empty() => {
                // Some proxies hand an error on as text of JSON.
                match serde_json::from_str::<Value>(text) {
                    Ok(inner @ Value::Object(_)) if depth < DEPTH => self.take(&inner, depth + 1),
                    _ => self.message = text.trim().to_owned(),
                }
            }
            // A list of one error is that error, unless it has a place that has to be told.
            Value::Array(items)
                if let [item @ Value::Object(object)] = &**items
                    && !object.contains_key("loc")
                    && !object.contains_key("path")
                    && depth < DEPTH =>
            {
                self.take(item, depth + 1);
            }
            Value::Array(items) if depth < DEPTH => {
                // The place of a problem in what was sent says that its type is the problem's.
                for item in items.iter().filter(|item| item.get("loc").is_none()) {
                    for key in CODE_FIELDS {
                        self.code(item.get(key), key);
                    }
                }
                // FastAPI's list of problems, each with its place.
                let lines: Vec<String> = items.iter().filter_map(problem).collect();
                if self.message.is_empty() {
                    self.message = lines.join("; ");
                }
                if self.message.is_empty()
                    && let Some(first) = items.first()
                {
                    self.take(first, depth + 1);
                }
            }
            Value::Object(object) => {
                for key in CODE_FIELDS {
                    self.code(object.get(key), key);
                }
                for key in MESSAGE_FIELDS {
                    if let Some(inner) = object.get(key)
                        && depth < DEPTH
                    {
                        self.take(inner, depth + 1);
                    }
                }
                self.explain(object);
                // What the server behind the server said.
                if let Some(raw) = object
                    .get("metadata")
                    .and_then(|metadata| metadata.get("raw"))
                {
                    let mut inner = Self::default();
                    inner.take(raw, depth + 1);
                    if !inner.message.is_empty() && !self.message.contains(&inner.message) {
                        self.message = format!("{} ({})", self.message, inner.message);
                    }
                }
                for detail in object
                    .get("details")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                {
                    self.code(detail.get("reason"), "reason");
                }
            }
            _ => {}
        }
    }

    /// Where `error` is only the name of the failure, what it says stands beside it.
    fn explain(&mut self, object: &serde_json::Map<String, Value>) {
        let name = object.get("error").and_then(Value::as_str).map(str::trim);
        if name != Some(&*self.message) || self.message.is_empty() {
            return;
        }
        let more = EXPLANATIONS
            .iter()
            .filter_map(|key| object.get(*key)?.as_str())
            .map(str::trim)
            .find(|text| !text.is_empty() && *text != self.message);
        if let Some(more) = more {
            self.message = format!("{}: {more}", self.message);
        }
    }

    fn code(&mut self, value: Option<&Value>, key: &str) {
        match value {
            Some(Value::Number(number)) if key != "type" => self.status_of(number.as_f64()),
            Some(Value::String(text)) => match text.trim().parse::<f64>() {
                Ok(number) => self.status_of(Some(number)),
                Err(_) => self.codes.push(plain(text)),
            },
            _ => {}
        }
    }

    fn status_of(&mut self, number: Option<f64>) {
        if self.status.is_none()
            && let Some(number) = number.filter(|n| FAILURES.contains(n))
        {
            self.status = Some(number as u16);
        }
    }

    /// What the codes say; a certain one before one that is only general, and else the one that
    /// stands first in the table.
    fn coded(&self) -> Option<&'static Code> {
        let is = |known: &Code, code: &str| match known.whole {
            true => code == known.text,
            false => code.contains(known.text),
        };
        let found = |certain: bool| {
            CODES
                .iter()
                .filter(|known| known.certain == certain)
                .find(|known| self.codes.iter().any(|code| is(known, code)))
        };
        found(true).or_else(|| found(false))
    }
}

/// One problem of a list: where, and what.
fn problem(item: &Value) -> Option<String> {
    let what = item.as_str().or_else(|| {
        ["msg", "message", "error"]
            .iter()
            .find_map(|key| item.get(*key)?.as_str())
    })?;
    let place: Vec<String> = item
        .get("loc")
        .or(item.get("path"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|step| {
            step.as_str()
                .map_or_else(|| step.to_string(), str::to_owned)
        })
        .collect();
    Some(if place.is_empty() {
        what.to_owned()
    } else {
        format!("{}: {what}", place.join("."))
    })
}

/// Rule: the status decides first. Where it leaves something open, code and type do, then the
/// wording.
fn of_status(status: u16, said: &Said) -> ModelErrorKind {
    let coded = said.coded();
    let certain = coded.filter(|code| code.certain).map(|code| code.kind);
    match status {
        401 | 407 => Auth,
        402 => Quota,
        // Who may not ask, what may not be asked, or what is not paid for.
        403 => match certain.or_else(|| wording(&said.message)) {
            Some(kind @ (Quota | ContentFilter)) => kind,
            _ => Auth,
        },
        404 | 410 => NotFound,
        408 | 409 | 425 | 499 => Server,
        // A body that is too large is a conversation that is too long.
        413 => ContextLength,
        // Never a context length on wording alone; quota only by code or type.
        429 => match certain {
            Some(kind @ (Quota | ContextLength)) => kind,
            _ => RateLimit,
        },
        503 | 529 => Overloaded,
        500.. => match certain {
            Some(ContextLength) => ContextLength,
            _ => Server,
        },
        // The request is at fault: words, and codes that are only general, say in which way.
        _ => certain
            .or_else(|| wording(&said.message).filter(|kind| !kind.is_retryable()))
            .or(coded
                .map(|code| code.kind)
                .filter(|kind| !kind.is_retryable()))
            .unwrap_or(InvalidRequest),
    }
}

/// What the words of a message say.
fn wording(message: &str) -> Option<ModelErrorKind> {
    wording::meaning(&message.to_lowercase())
}

fn reason(status: u16) -> &'static str {
    match status {
        300..=399 => "a redirect, which is not followed; give the address that it leads to",
        401 | 403 => "the key is missing or may not do this",
        404 => "there is no such address or model",
        429 => "too many requests",
        500.. => "the server failed",
        _ => "it gave no reason",
    }
}

/// Text for people: of markup its title or words, on one line.
fn plain_text(text: &str) -> String {
    let text = text.trim();
    if !text.starts_with('<') {
        return words(text);
    }
    let lower = text.to_ascii_lowercase();
    for tag in ["title", "h1"] {
        if let Some(start) = lower.find(&format!("<{tag}"))
            && let Some(open) = lower[start..].find('>').map(|at| start + at + 1)
            && let Some(end) = lower[open..].find("</").map(|at| open + at)
        {
            let title = words(&text[open..end]);
            if !title.is_empty() {
                return title;
            }
        }
    }
    let mut out = String::new();
    let mut inside = false;
    for c in text.chars().take(BODY_CHARS) {
        match c {
            '<' => inside = true,
            '>' => {
                inside = false;
                out.push(' ');
            }
            c if !inside => out.push(c),
            _ => {}
        }
    }
    words(&out)
}

fn words(text: &str) -> String {
    let head = cut(text, BODY_CHARS);
    head.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The beginning of a text, and a sign that there was more.
fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some(_) => {
            let end = text.char_indices().nth(chars - 1).map_or(0, |(at, _)| at);
            format!("{}…", &text[..end])
        }
        None => text.to_owned(),
    }
}
