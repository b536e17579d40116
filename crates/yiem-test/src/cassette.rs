//! Real replies, kept in a file and played back (S-5).
//!
//! Knows: requests as JSON, what is left out of them, how two differ. Does not know: any wire.
//!
//! A cassette is a JSON file: a list of `{"request": …, "reply": …}`. What is redacted is neither
//! kept nor compared, nor are times, the session, and whether the reply came in pieces.

mod redaction;

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use yiem_core::{
    AssistantMessage, ChatEvent, ChatModel, ChatModelExt, ChatOptions, ChatRequest, ChatStream,
    Error, ModelError, ModelErrorKind, ModelInfo, ResponseFormat, ToolChoice,
};

use redaction::Redaction;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Exchange {
    request: Value,
    reply: AssistantMessage,
}

/// A model that asks another one, and keeps what it answered in a cassette file (S-5).
///
/// The file is written anew after each reply. Failures are handed on and not kept. What looks like
/// a key (`sk-…`, `Bearer …`, tokens of GitHub, AWS, Google, Slack, JWTs) is left out wherever it
/// stands; what else is secret is named by [`redact`](Self::redact) and
/// [`redact_matching`](Self::redact_matching).
#[derive(Clone)]
pub struct RecordingModel(Arc<Recording>);

struct Recording {
    model: Arc<dyn ChatModel>,
    path: PathBuf,
    redaction: Redaction,
    exchanges: Mutex<Vec<Exchange>>,
}

impl RecordingModel {
    /// Keeps the replies of `model` in the file at `path`; one that is there is replaced.
    pub fn new(model: impl ChatModel, path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Recording {
            model: Arc::new(model),
            path: path.into(),
            redaction: Redaction::default(),
            exchanges: Mutex::default(),
        }))
    }

    /// The same, with these texts left out of what is kept: names, keys, addresses.
    #[must_use]
    pub fn redact<T: Into<String>>(self, texts: impl IntoIterator<Item = T>) -> Self {
        self.redacting(self.0.redaction.clone().texts(texts))
    }

    /// The same, with what fits these regular expressions left out of what is kept.
    ///
    /// # Errors
    /// One of them is no regular expression; the error says where.
    pub fn redact_matching<'p>(
        self,
        patterns: impl IntoIterator<Item = &'p str>,
    ) -> Result<Self, Error> {
        let redaction = self.0.redaction.clone().patterns(patterns)?;
        Ok(self.redacting(redaction))
    }

    fn redacting(&self, redaction: Redaction) -> Self {
        Self(Arc::new(Recording {
            model: Arc::clone(&self.0.model),
            path: self.0.path.clone(),
            redaction,
            exchanges: Mutex::default(),
        }))
    }
}

impl Recording {
    fn keep(&self, request: Value, reply: &AssistantMessage) -> Result<(), ModelError> {
        let mut exchanges = lock(&self.exchanges);
        let mut kept = serde_json::to_value(reply).map_err(ModelError::other)?;
        self.redaction.apply(&mut kept);
        let reply = serde_json::from_value(kept).map_err(ModelError::other)?;
        exchanges.push(Exchange { request, reply });
        let text = serde_json::to_string_pretty(&*exchanges).map_err(ModelError::other)?;
        std::fs::write(&self.path, text + "\n").map_err(ModelError::other)
    }
}

impl ChatModel for RecordingModel {
    fn info(&self) -> &ModelInfo {
        self.0.model.info()
    }

    fn stream(&self, request: ChatRequest) -> ChatStream {
        let recording = Arc::clone(&self.0);
        ChatStream::once(async move {
            let asked = told(&request, &recording.redaction);
            let reply = recording.model.complete(request).await?;
            recording.keep(asked, &reply)?;
            Ok(ChatEvent::Message(Box::new(reply)))
        })
    }
}

impl fmt::Debug for RecordingModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingModel")
            .field("path", &self.0.path)
            .finish_non_exhaustive()
    }
}

/// A model that answers from a cassette file, in its order (S-5). A request that differs from the
/// one that was kept is an error that shows where.
#[derive(Clone)]
pub struct ReplayModel(Arc<Replaying>);

struct Replaying {
    info: ModelInfo,
    redaction: Redaction,
    left: Mutex<(usize, VecDeque<Exchange>)>,
}

impl ReplayModel {
    /// Plays the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is no cassette.
    pub fn open(path: impl AsRef<Path>) -> std::io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let exchanges: VecDeque<Exchange> = serde_json::from_str(&text)?;
        let id = exchanges
            .front()
            .map(|e| e.reply.model.clone())
            .unwrap_or_default();
        Ok(Self(Arc::new(Replaying {
            info: ModelInfo::new(id),
            redaction: Redaction::default(),
            left: Mutex::new((0, exchanges)),
        })))
    }

    /// The same, with these texts left out of what is compared, as they were when it was recorded.
    #[must_use]
    pub fn redact<T: Into<String>>(self, texts: impl IntoIterator<Item = T>) -> Self {
        self.redacting(self.0.redaction.clone().texts(texts))
    }

    /// The same, with what fits these regular expressions left out of what is compared.
    ///
    /// # Errors
    /// One of them is no regular expression; the error says where.
    pub fn redact_matching<'p>(
        self,
        patterns: impl IntoIterator<Item = &'p str>,
    ) -> Result<Self, Error> {
        let redaction = self.0.redaction.clone().patterns(patterns)?;
        Ok(self.redacting(redaction))
    }

    fn redacting(&self, redaction: Redaction) -> Self {
        Self(Arc::new(Replaying {
            info: self.0.info.clone(),
            redaction,
            left: Mutex::new(lock(&self.0.left).clone()),
        }))
    }

    /// How many replies were not asked for.
    #[must_use]
    pub fn left(&self) -> usize {
        lock(&self.0.left).1.len()
    }
}

impl ChatModel for ReplayModel {
    fn info(&self) -> &ModelInfo {
        &self.0.info
    }

    fn stream(&self, request: ChatRequest) -> ChatStream {
        let mut asked = told(&request, &self.0.redaction);
        let mut left = lock(&self.0.left);
        left.0 += 1;
        let number = left.0;
        let Some(exchange) = left.1.pop_front() else {
            return ChatStream::failed(ModelError::new(
                ModelErrorKind::Other,
                format!("the cassette has no reply for request {number}; record it anew"),
            ));
        };
        drop(left);
        if let (None, Some(asked)) = (exchange.request.get("options"), asked.as_object_mut()) {
            // Recorded when options were not kept.
            asked.shift_remove("options");
        }
        let mut differences = Vec::new();
        difference("request", &exchange.request, &asked, &mut differences);
        if differences.is_empty() {
            return ChatStream::from_events([Ok(ChatEvent::Message(Box::new(exchange.reply)))]);
        }
        ChatStream::failed(ModelError::new(
            ModelErrorKind::InvalidRequest,
            format!(
                "request {number} is not the one that was recorded:\n{}",
                differences.join("\n")
            ),
        ))
    }
}

impl fmt::Debug for ReplayModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayModel")
            .field("left", &self.left())
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is kept of a request: what the model is asked, without times and session.
fn told(request: &ChatRequest, redaction: &Redaction) -> Value {
    let tools: Vec<Value> = request
        .tools
        .iter()
        .map(|t| json!({"name": t.name, "description": t.description, "inputSchema": t.input_schema}))
        .collect();
    let mut told = json!({
        "system": request.system.as_deref(),
        "messages": request.messages,
        "tools": tools,
        "options": options(&request.options),
    });
    if let Some(messages) = told["messages"].as_array_mut() {
        for message in messages.iter_mut().filter_map(Value::as_object_mut) {
            message.shift_remove("timestamp");
        }
    }
    redaction.apply(&mut told);
    told
}

/// The options that are set, but for those that change nothing of what is asked.
fn options(options: &ChatOptions) -> Value {
    let ChatOptions {
        session_id: _,
        stream: _,
        max_tokens,
        temperature,
        stop,
        tool_choice,
        parallel_tool_calls,
        reasoning_effort,
        response_format,
        extra,
    } = options;
    let choice = tool_choice.as_ref().map(|choice| match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({ "tool": name }),
    });
    let format = response_format.as_ref().map(|format| match format {
        ResponseFormat::JsonObject => json!("jsonObject"),
        ResponseFormat::JsonSchema {
            name,
            schema,
            strict,
        } => json!({"name": name, "schema": schema, "strict": strict}),
    });
    let mut told = json!({
        "maxTokens": max_tokens,
        "temperature": temperature,
        "stop": (!stop.is_empty()).then_some(stop),
        "toolChoice": choice,
        "parallelToolCalls": parallel_tool_calls,
        "reasoningEffort": reasoning_effort,
        "responseFormat": format,
        "extra": (!extra.is_empty()).then_some(extra),
    });
    if let Some(told) = told.as_object_mut() {
        told.retain(|_, value| !value.is_null());
    }
    told
}

/// Where two values differ, a line each: path, what was recorded, what came.
fn difference(path: &str, recorded: &Value, came: &Value, into: &mut Vec<String>) {
    const SHOWN: usize = 10;
    if recorded == came || into.len() >= SHOWN {
        return;
    }
    match (recorded, came) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))) {
                let (a, b) = (
                    a.get(key).unwrap_or(&Value::Null),
                    b.get(key).unwrap_or(&Value::Null),
                );
                difference(&format!("{path}.{key}"), a, b, into);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for at in 0..a.len().max(b.len()) {
                let (a, b) = (
                    a.get(at).unwrap_or(&Value::Null),
                    b.get(at).unwrap_or(&Value::Null),
                );
                difference(&format!("{path}[{at}]"), a, b, into);
            }
        }
        _ => into.push(format!(
            "- {path}\n    recorded: {recorded}\n    now:      {came}"
        )),
    }
}

#[cfg(test)]
mod tests;
