//! Requests: a conversation in, the bytes of a body out.
//!
//! Knows: the fields of a request, which of them a server takes, and that the same request
//! always gives the same bytes. The messages are the parts of [`conversation`] and [`writer`].
//! Does not know: HTTP.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use yiem_core::{
    ChatOptions, ChatRequest, Modality, ModelInfo, ResponseFormat, ToolChoice, ToolDefinition,
};

use crate::compat::{Compat, MaxTokensField};
use crate::names::{OfferedTools, wire_name};

mod conversation;
mod outgoing;
mod writer;

#[cfg(feature = "case")]
pub(crate) use conversation::SYSTEM_KIND;
use conversation::{END, Memory, Shown};
use outgoing::{Outgoing, Role};
use writer::system_text;

/// Writes requests for one model at one server.
#[derive(Debug, Clone)]
pub struct RequestEncoder {
    compat: Arc<Compat>,
    shown: Shown,
}

/// A request as bytes, and what reading its reply needs.
#[derive(Debug, Clone)]
pub struct EncodedRequest {
    /// The JSON body.
    pub body: Vec<u8>,
    /// The tools that it offers.
    pub offered: Arc<OfferedTools>,
    /// How many messages were written anew; all others were copied as bytes (O-7).
    pub written: usize,
}

/// A request as bytes in two pieces: what stands before the messages, and the messages with the
/// end of the body.
#[derive(Debug)]
pub(crate) struct Pieces {
    pub(crate) head: Arc<Vec<u8>>,
    pub(crate) messages: Arc<Vec<u8>>,
    pub(crate) offered: Arc<OfferedTools>,
    pub(crate) written: usize,
}

impl RequestEncoder {
    /// An encoder for that model with these settings.
    #[must_use]
    pub fn new(model: &ModelInfo, compat: Arc<Compat>) -> Self {
        let shown = Shown {
            model: model.id.as_str().into(),
            images: model.sees_images(),
            audio: model.input.contains(&Modality::Audio),
        };
        Self { compat, shown }
    }

    /// The settings.
    #[must_use]
    pub fn compat(&self) -> &Arc<Compat> {
        &self.compat
    }

    /// Writes the body. `stream` tells whether the reply should come in pieces.
    ///
    /// What was written for the conversation before is taken from its memo and copied, so that
    /// a request costs work in proportion to what is new (O-7).
    #[must_use]
    pub fn encode(&self, request: &ChatRequest, stream: bool) -> EncodedRequest {
        let system = request.system.as_deref();
        self.encode_with(system.as_slice(), request, stream)
    }

    /// The same with several system prompts in front.
    pub(crate) fn encode_with(
        &self,
        system: &[&str],
        request: &ChatRequest,
        stream: bool,
    ) -> EncodedRequest {
        let pieces = self.pieces(system, request, stream);
        EncodedRequest {
            body: [&**pieces.head, &**pieces.messages].concat(),
            offered: pieces.offered,
            written: pieces.written,
        }
    }

    /// The body in pieces that are kept for the conversation's next request: what is new of a
    /// request is written, and nothing is copied.
    pub(crate) fn pieces(&self, system: &[&str], request: &ChatRequest, stream: bool) -> Pieces {
        let mut memory = request
            .memo
            .take::<Memory>()
            .filter(|memory| memory.is_for(&self.compat, &self.shown))
            .unwrap_or_else(|| Box::new(Memory::new(&self.compat, &self.shown)));
        let merged = self.compat.single_system_message.then(|| {
            let inside = request.messages.iter().filter_map(|m| system_text(m));
            let texts: Vec<&str> = system.iter().copied().chain(inside).filter(says).collect();
            texts.join("\n\n")
        });
        let merged = merged.as_deref();
        let asked = Asked {
            system: merged.as_ref().map_or(system, std::slice::from_ref),
            request,
            stream,
            has_calls: self.compat.empty_tools_with_tool_history
                && request.tools.is_empty()
                && has_calls(request),
        };
        let (messages, written) = memory.write(&request.messages);
        let (head, offered) = memory.head(
            &asked,
            messages.len() > END.len(),
            |tools, more| self.head(&asked, tools, more),
            || tools_json(&request.tools, &self.compat),
        );
        request.memo.put(memory);
        // A caller's own messages stand in the head already.
        let messages = if request.options.extra.contains_key(MESSAGES) {
            Arc::new(b"}".to_vec())
        } else {
            messages
        };
        Pieces {
            head,
            messages,
            offered,
            written,
        }
    }

    /// What stands before the messages. `more` tells whether there are any.
    fn head(&self, asked: &Asked<'_>, tools: &[u8], more: bool) -> Vec<u8> {
        let request = asked.request;
        let mut head = Vec::with_capacity(tools.len() + 256);
        head.push(b'{');
        let mut fields = Fields {
            body: &mut head,
            options: &request.options,
        };
        if !self.shown.model.is_empty() {
            fields.put("model", &*self.shown.model);
        }
        if !request.tools.is_empty() {
            fields.raw("tools", tools);
        } else if asked.has_calls {
            fields.raw("tools", b"[]");
        }
        self.options(&mut fields, !request.tools.is_empty(), asked.stream);
        for (key, value) in &request.options.extra {
            fields.always(key, value);
        }
        if request.options.extra.contains_key(MESSAGES) {
            return head;
        }
        fields.key(MESSAGES);
        head.push(b'[');
        for (n, prompt) in asked.prompts().enumerate() {
            if n > 0 {
                head.push(b',');
            }
            Outgoing::text(Role::System, prompt).write(&self.compat, &mut head);
        }
        if more && head.last() != Some(&b'[') {
            head.push(b',');
        }
        head
    }

    fn options(&self, fields: &mut Fields<'_>, has_tools: bool, stream: bool) {
        let options = fields.options;
        if has_tools {
            match &options.tool_choice {
                None => {}
                Some(ToolChoice::Auto) => fields.put("tool_choice", &"auto"),
                Some(ToolChoice::None) => fields.put("tool_choice", &"none"),
                Some(ToolChoice::Required) => fields.put("tool_choice", &"required"),
                Some(ToolChoice::Tool(name)) => fields.put(
                    "tool_choice",
                    &json!({"type": "function", "function": {"name": wire_name(name)}}),
                ),
            }
            if let Some(parallel) = options
                .parallel_tool_calls
                .filter(|_| self.compat.parallel_tool_calls)
            {
                fields.put("parallel_tool_calls", &parallel);
            }
        }
        if stream {
            fields.put("stream", &true);
            if self.compat.stream_usage {
                fields.put("stream_options", &json!({"include_usage": true}));
            }
        }
        if let Some(limit) = options.max_tokens {
            let field = match self.compat.max_tokens_field {
                MaxTokensField::MaxTokens => "max_tokens",
                MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
            };
            fields.put(field, &limit);
        }
        if let Some(temperature) = options.temperature.filter(|t| t.is_finite()) {
            fields.put("temperature", &temperature);
        }
        if !options.stop.is_empty() {
            fields.put("stop", &options.stop);
        }
        if let Some(effort) = &options.reasoning_effort {
            fields.put("reasoning_effort", effort);
        }
        match &options.response_format {
            None => {}
            Some(ResponseFormat::JsonObject) => {
                fields.put("response_format", &json!({"type": "json_object"}));
            }
            Some(ResponseFormat::JsonSchema {
                name,
                schema,
                strict,
            }) => {
                let mut inner = json!({"name": wire_name(name), "schema": schema});
                if *strict && self.compat.strict_tools {
                    inner["strict"] = Value::Bool(true);
                }
                let format = json!({"type": "json_schema", "json_schema": inner});
                fields.put("response_format", &format);
            }
        }
        if let (Some(field), Some(session)) = (self.compat.session_field, &options.session_id) {
            fields.put(field, session);
        }
    }
}

fn has_calls(request: &ChatRequest) -> bool {
    request.messages.iter().any(|message| {
        message
            .as_assistant()
            .is_some_and(|assistant| assistant.has_tool_calls() && !assistant.is_broken())
    })
}

/// The field of the messages.
const MESSAGES: &str = "messages";

/// What the head of a body is made of.
struct Asked<'a> {
    system: &'a [&'a str],
    request: &'a ChatRequest,
    stream: bool,
    has_calls: bool,
}

impl<'a> Asked<'a> {
    /// The system prompts that say something.
    fn prompts(&self) -> impl Iterator<Item = &'a str> {
        self.system.iter().copied().filter(says)
    }
}

fn says(text: &&str) -> bool {
    !text.trim().is_empty()
}

/// Fields of the body before the messages. The caller's own come last and win.
struct Fields<'a> {
    body: &'a mut Vec<u8>,
    options: &'a ChatOptions,
}

impl Fields<'_> {
    fn put<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        if !self.options.extra.contains_key(key) {
            self.always(key, value);
        }
    }

    fn raw(&mut self, key: &str, json: &[u8]) {
        if !self.options.extra.contains_key(key) {
            self.key(key);
            self.body.extend_from_slice(json);
        }
    }

    fn always<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        self.key(key);
        json_into(self.body, value);
    }

    fn key(&mut self, key: &str) {
        if self.body.len() > 1 {
            self.body.push(b',');
        }
        json_into(self.body, key);
        self.body.push(b':');
    }
}

/// Writes JSON behind what is there.
fn json_into<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        // Only a map with keys that are no text could do that, and there is none.
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// The tools as JSON, and their names.
fn tools_json(tools: &[Arc<ToolDefinition>], compat: &Compat) -> Vec<u8> {
    let mut out = vec![b'['];
    for (n, tool) in tools.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        json_into(&mut out, &tool_json(tool, compat));
    }
    out.push(b']');
    out
}

/// One tool (SP-016).
fn tool_json(tool: &ToolDefinition, compat: &Compat) -> Value {
    let mut function = json!({
        "name": wire_name(&tool.name),
        "description": tool.description,
        "parameters": parameters(&tool.input_schema),
    });
    if tool.strict == Some(true) && compat.strict_tools {
        function["strict"] = Value::Bool(true);
    }
    json!({"type": "function", "function": function})
}

/// A schema that servers take: always an object's, always with `properties` (O-2).
fn parameters(schema: &Value) -> Value {
    let mut schema = match schema {
        Value::Object(object) => object.clone(),
        _ => yiem_core::JsonObject::new(),
    };
    schema.insert("type".to_owned(), Value::from("object"));
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), json!({}));
    }
    Value::Object(schema)
}

#[cfg(test)]
mod tests;
