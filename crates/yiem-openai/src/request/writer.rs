//! A conversation as the messages of a request.
//!
//! Knows: what makes a conversation acceptable (O-2: every call answered once, nothing empty,
//! nothing orphaned). Does not know: bytes that were written before, the other fields of a
//! request.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;
use yiem_core::{
    AssistantContent, AssistantMessage, Content, Extra, JsonObject, Message, ToolArguments,
    ToolCall, ToolResultMessage, UserMessage,
};

use super::conversation::{Mark, SYSTEM_KIND, Shown};
use super::outgoing::{Outgoing, OutgoingCall, Part, Role};
use crate::compat::{CallIds, Compat, ForeignReasoning, ReasoningReplay};
use crate::names::{hash, wire_name};
use crate::stream::{PROVIDER_DATA, REQUESTED_MODEL};

const NO_OUTPUT: &str = "(no tool output)";
const FAILED: &str = "(the tool failed and gave no reason)";
const NO_RESULT: &str = "No result was recorded for this call; it may or may not have run.";
const BRIDGE: &str = "I have read the results.";
const IMAGE_FOLLOWS: &str = "(an image, shown below)";

/// The text of a message that stands for a system message.
pub(super) fn system_text(message: &Message) -> Option<&str> {
    match message {
        Message::Custom(custom) if custom.kind == SYSTEM_KIND => {
            custom.data.as_str().filter(|text| !text.trim().is_empty())
        }
        _ => None,
    }
}

/// A call that has no result yet.
#[derive(Debug)]
struct OpenCall<'a> {
    call: &'a ToolCall,
    id: Cow<'a, str>,
}

/// Writes messages one after another, so that what stands there is always acceptable.
pub(super) struct Writer<'a> {
    pub(super) compat: &'a Compat,
    shown: &'a Shown,
    pub(super) bytes: Vec<u8>,
    pub(super) last: Option<Role>,
    open: Vec<OpenCall<'a>>,
    /// Images of results, which go behind the run of results.
    images: Vec<Part<'a>>,
    /// Messages that came before the results of these calls; they go behind them.
    waiting: Vec<Outgoing<'a>>,
    /// The message that a following one may be merged into.
    pending: Option<Outgoing<'a>>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(compat: &'a Compat, shown: &'a Shown) -> Self {
        Self {
            compat,
            shown,
            bytes: Vec::new(),
            last: None,
            open: Vec::new(),
            images: Vec::new(),
            waiting: Vec::new(),
            pending: None,
        }
    }

    pub(super) fn mark(&self) -> Option<Mark> {
        let settled = self.open.is_empty() && self.images.is_empty() && self.pending.is_none();
        settled.then_some(Mark {
            end: self.bytes.len(),
            last: self.last,
        })
    }

    pub(super) fn message(&mut self, message: &'a Message) {
        match message {
            Message::User(user) => self.user(user),
            Message::Assistant(assistant) => self.assistant(assistant),
            Message::ToolResult(result) => self.result(result),
            Message::Custom(_) => {
                if let Some(text) = system_text(message)
                    && !self.compat.single_system_message
                {
                    self.put_behind_results(Outgoing::text(Role::System, text));
                }
            }
        }
    }

    /// What is still open gets its end.
    pub(super) fn finish(&mut self) {
        self.close_calls();
        self.write_pending();
    }

    fn user(&mut self, user: &'a UserMessage) {
        let out = Outgoing::new(Role::User, self.parts(&user.content));
        if !out.is_silent() {
            self.put_behind_results(out);
        }
    }

    /// A result may still come until the next reply: what stands before it waits for it.
    fn put_behind_results(&mut self, out: Outgoing<'a>) {
        if self.open.is_empty() {
            self.put(out);
        } else {
            self.waiting.push(out);
        }
    }

    fn assistant(&mut self, message: &'a AssistantMessage) {
        // Errored and aborted ones stay in history and are not sent.
        if message.is_broken() {
            return;
        }
        let own = self.is_own(message);
        let mut parts = Vec::new();
        let count = message.tool_calls().count();
        let mut calls: Vec<OutgoingCall<'a>> = Vec::with_capacity(count);
        let mut open = Vec::with_capacity(count);
        let mut ids = Ids::default();
        for block in &message.content {
            match block {
                AssistantContent::Text(text) => parts.push(Part::Text(Cow::Borrowed(&text.text))),
                AssistantContent::ToolCall(call) => {
                    let id = self.call_id(call, &calls, &mut ids);
                    open.push(OpenCall {
                        call,
                        id: id.clone(),
                    });
                    calls.push(OutgoingCall {
                        id,
                        name: wire_name(&call.name),
                        arguments: arguments(&call.arguments),
                        data: provider_data(&call.extra).filter(|_| own),
                    });
                }
                AssistantContent::Image(image) => {
                    parts.push(Part::Text(Cow::Owned(image.placeholder())));
                }
                AssistantContent::Other(other) => {
                    parts.push(Part::Text(Cow::Owned(other.placeholder())));
                }
                AssistantContent::Reasoning(_) => {}
            }
        }
        let mut out = Outgoing::new(Role::Assistant, parts);
        out.calls = calls;
        if out.is_silent() && out.calls.is_empty() {
            return;
        }
        self.reasoning(message, own, &mut out);
        self.close_calls();
        self.put(out);
        if !open.is_empty() {
            self.write_pending();
            self.open = open;
        }
    }

    fn result(&mut self, result: &'a ToolResultMessage) {
        // An orphan, or a second result of one call, is left out.
        let Some(at) = self
            .open
            .iter()
            .position(|open| open.call.id == result.tool_call_id)
        else {
            return;
        };
        let open = self.open.remove(at);
        let mut parts = self.parts(&result.content);
        let images = parts.iter().any(|part| !matches!(part, Part::Text(_)));
        if images {
            let (texts, rest): (Vec<_>, Vec<_>) = parts
                .into_iter()
                .partition(|part| matches!(part, Part::Text(_)));
            parts = texts;
            let from = format!("From the result of {}:", wire_name(&open.call.name));
            self.images.push(Part::Text(Cow::Owned(from)));
            self.images.extend(rest);
        }
        let mut out = Outgoing::new(Role::Tool, parts);
        if out.is_silent() {
            let text = match (images, result.is_error) {
                (true, _) => IMAGE_FOLLOWS,
                (false, true) => FAILED,
                (false, false) => NO_OUTPUT,
            };
            out.parts = vec![Part::Text(Cow::Borrowed(text))];
        }
        self.tool(out, &open);
        if self.open.is_empty() {
            self.end_results();
        }
    }

    fn tool(&mut self, mut out: Outgoing<'a>, open: &OpenCall<'a>) {
        out.tool_call_id = Some(open.id.clone());
        out.name = self
            .compat
            .tool_name_field
            .then(|| wire_name(&open.call.name));
        self.put(out);
    }

    /// Rule: every call has exactly one result right after it; one that is missing says so.
    fn close_calls(&mut self) {
        for open in std::mem::take(&mut self.open) {
            let text = match &open.call.arguments {
                ToolArguments::Object { .. } => Cow::Borrowed(NO_RESULT),
                ToolArguments::Unreadable { raw, reason } => {
                    let head: String = raw.chars().take(500).collect();
                    Cow::Owned(format!("The call was not run: {reason}. What came: {head}"))
                }
            };
            self.tool(Outgoing::text(Role::Tool, text), &open);
        }
        self.end_results();
    }

    /// What had to wait for the last result.
    fn end_results(&mut self) {
        let images = std::mem::take(&mut self.images);
        if !images.is_empty() {
            self.put(Outgoing::new(Role::User, images));
        }
        for out in std::mem::take(&mut self.waiting) {
            self.put(out);
        }
    }

    fn put(&mut self, out: Outgoing<'a>) {
        if let Some(pending) = &mut self.pending {
            if pending.role == out.role && out.role != Role::Tool {
                return pending.merge(out);
            }
            self.write_pending();
        }
        if self.compat.assistant_after_tool_result
            && out.role == Role::User
            && self.last == Some(Role::Tool)
        {
            self.write(&Outgoing::text(Role::Assistant, BRIDGE));
        }
        let mergeable =
            self.compat.merge_consecutive && matches!(out.role, Role::User | Role::Assistant);
        if mergeable {
            self.pending = Some(out);
        } else {
            self.write(&out);
        }
    }

    fn write_pending(&mut self) {
        if let Some(out) = self.pending.take() {
            self.write(&out);
        }
    }

    fn write(&mut self, out: &Outgoing<'_>) {
        if !self.bytes.is_empty() {
            self.bytes.push(b',');
        }
        out.write(self.compat, &mut self.bytes);
        self.last = Some(out.role);
    }

    /// Content as the model can be shown it: each run of what it cannot see becomes one line.
    fn parts(&self, content: &'a [Content]) -> Vec<Part<'a>> {
        let mut parts = Vec::with_capacity(content.len());
        let mut hidden = false;
        for block in content {
            let part = match block {
                Content::Text(text) => Part::Text(Cow::Borrowed(text.text.as_str())),
                Content::Image(image) if self.shown.images => Part::Image {
                    mime: &image.mime_type,
                    data: &image.data,
                },
                Content::Image(_) if hidden => continue,
                Content::Audio(audio) if self.shown.audio => Part::Audio {
                    mime: &audio.mime_type,
                    data: &audio.data,
                },
                other => Part::Text(Cow::Owned(other.to_plain_text())),
            };
            hidden = matches!(block, Content::Image(_)) && !self.shown.images;
            parts.push(part);
        }
        parts
    }

    /// Whether the model that is asked made the message.
    fn is_own(&self, message: &AssistantMessage) -> bool {
        let model = &*self.shown.model;
        message.model.is_empty()
            || model.is_empty()
            || message.model == model
            || message
                .extra
                .get(REQUESTED_MODEL)
                .is_some_and(|asked| asked == model)
    }

    fn reasoning(&self, message: &'a AssistantMessage, own: bool, out: &mut Outgoing<'a>) {
        let text = message.reasoning();
        if !own {
            if self.compat.foreign_reasoning == ForeignReasoning::AsText && !text.trim().is_empty()
            {
                out.parts
                    .insert(0, Part::Text(Cow::Owned(format!("{text}\n\n"))));
            }
            return;
        }
        let data = provider_data(&message.extra);
        let details = data.and_then(|data| data.get("reasoning_details"));
        let replay = match self.compat.reasoning_replay {
            ReasoningReplay::SameField => field_of(message, details.is_some()),
            other => other,
        };
        let mut field = |name: &'static str, text: String| {
            if !text.is_empty() || (self.compat.reasoning_required && !out.calls.is_empty()) {
                out.fields
                    .push((Cow::Borrowed(name), Cow::Owned(Value::String(text))));
            }
        };
        match replay {
            ReasoningReplay::None | ReasoningReplay::SameField => {}
            ReasoningReplay::ReasoningContent => field("reasoning_content", text),
            ReasoningReplay::Reasoning => field("reasoning", text),
            ReasoningReplay::ReasoningDetails => match details {
                Some(details) => {
                    out.fields
                        .push((Cow::Borrowed("reasoning_details"), Cow::Borrowed(details)));
                }
                None if text.is_empty() => {}
                None => {
                    let made = serde_json::json!([{"type": "reasoning.text", "text": text}]);
                    out.fields
                        .push((Cow::Borrowed("reasoning_details"), Cow::Owned(made)));
                }
            },
            ReasoningReplay::ThinkTags => {
                if !text.trim().is_empty() {
                    let block = format!("<think>\n{text}\n</think>\n\n");
                    out.parts.insert(0, Part::Text(Cow::Owned(block)));
                }
            }
        }
        let replays = self.compat.reasoning_replay != ReasoningReplay::None;
        for (key, value) in data.into_iter().flatten() {
            let taken = matches!(key.as_str(), "role" | "content" | "tool_calls" | "name");
            let reasons = ["reasoning", "thinking"]
                .iter()
                .any(|part| key.contains(part));
            if taken || key == "reasoning_details" || (reasons && !replays) {
                continue;
            }
            if !out.fields.iter().any(|(held, _)| held == key) {
                out.fields.push((Cow::Borrowed(key), Cow::Borrowed(value)));
            }
        }
    }

    /// The id as the server takes it; unique within its message.
    fn call_id(
        &self,
        call: &'a ToolCall,
        before: &[OutgoingCall<'a>],
        ids: &mut Ids<'a>,
    ) -> Cow<'a, str> {
        let mut id = wire_id(&call.id, self.compat.tool_call_ids);
        let mut n = before.len();
        while id.is_empty() || !ids.take(id.clone(), before) {
            let made = format!("{}call_{n}", &*call.id);
            id = Cow::Owned(wire_id(&made, self.compat.tool_call_ids).into_owned());
            n += 1;
        }
        id
    }
}

/// The ids that a message has given away. Few are looked through one by one.
#[derive(Default)]
struct Ids<'a>(HashSet<Cow<'a, str>>);

impl<'a> Ids<'a> {
    /// So many are few.
    const FEW: usize = 8;

    /// Gives the id away, unless one of the calls before has it.
    fn take(&mut self, id: Cow<'a, str>, before: &[OutgoingCall<'a>]) -> bool {
        if before.len() < Self::FEW {
            return before.iter().all(|other| other.id != id);
        }
        if self.0.is_empty() {
            self.0.extend(before.iter().map(|other| other.id.clone()));
        }
        self.0.insert(id)
    }
}

/// The field that the reasoning came in.
fn field_of(message: &AssistantMessage, has_details: bool) -> ReasoningReplay {
    let field = message.content.iter().find_map(|block| match block {
        AssistantContent::Reasoning(reasoning) => reasoning.field.as_deref(),
        _ => None,
    });
    match field {
        _ if has_details => ReasoningReplay::ReasoningDetails,
        Some("reasoning_content") => ReasoningReplay::ReasoningContent,
        Some("reasoning") => ReasoningReplay::Reasoning,
        _ => ReasoningReplay::None,
    }
}

/// An id in the form that the server takes: letter for letter if it has it.
fn wire_id(id: &str, form: CallIds) -> Cow<'_, str> {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let short = |length: usize| {
        let mut rest = hash(id.as_bytes());
        let mut text = String::new();
        for _ in 0..length.min(10) {
            text.push(char::from(DIGITS[(rest % 62) as usize]));
            rest /= 62;
        }
        text
    };
    match form {
        CallIds::Any => Cow::Borrowed(id),
        CallIds::Mistral9 if id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            Cow::Borrowed(id)
        }
        CallIds::Mistral9 => Cow::Owned(short(9)),
        CallIds::MaxLength(most) if id.chars().count() <= most => Cow::Borrowed(id),
        CallIds::MaxLength(most) => {
            let tail = short(most);
            let head: String = id
                .chars()
                .map(|c| {
                    if c.is_ascii_alphanumeric() || c == '-' {
                        c
                    } else {
                        '_'
                    }
                })
                .take(most.saturating_sub(tail.len() + 1))
                .collect();
            Cow::Owned(if head.is_empty() {
                tail
            } else {
                format!("{head}_{tail}")
            })
        }
    }
}

/// Text that parses to an object: what came, byte for byte, if it is that.
fn arguments(arguments: &ToolArguments) -> Cow<'_, str> {
    match arguments {
        ToolArguments::Object { .. } => {
            let raw = arguments.raw();
            let sound = raw.trim_start().starts_with('{')
                && serde_json::from_str::<serde::de::IgnoredAny>(&raw).is_ok();
            match arguments.object() {
                Some(object) if !sound => {
                    Cow::Owned(serde_json::to_string(object).unwrap_or_else(|_| "{}".to_owned()))
                }
                _ => raw,
            }
        }
        ToolArguments::Unreadable { .. } => Cow::Borrowed("{}"),
    }
}

fn provider_data(extra: &Extra) -> Option<&JsonObject> {
    extra.get(PROVIDER_DATA).and_then(Value::as_object)
}
