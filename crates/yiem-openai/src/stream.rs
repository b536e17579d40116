//! Bytes of a reply in, events of a message out: streamed or whole, in any pieces.
//!
//! Knows: every shape of a reply, which field of two counts, when a reply is complete, why it
//! ended. The order of precedence is that of the case corpus (`PRECEDENCE.md`).
//! Does not know: sockets, clocks, tasks. Ids come through the given [`Env`].

mod alike;
mod bodies;
mod end;
mod said;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use yiem_core::{
    AssistantContent, ChatEvent, Env, Extra, JsonObject, ModelError, ModelErrorKind, ReplyInfo,
    StopReason, Usage,
};
use yiem_sse::{BodyKind, Event, SseError, SseLimits, SseReader};

use crate::arguments::{self, Reply};
use crate::calls::{Calls, Piece};
use crate::classify;
use crate::finish::{self, Meaning};
use crate::foreign::{self, Foreign};
use crate::leak::LeakFilter;
use crate::mend::mended;
use crate::names::OfferedTools;
use crate::parts::{self, PartKind};
use crate::think::{Part, ThinkSplitter};
use crate::usage::Counts;
use crate::wire::{self, Body, Choice, List, RareOfBody, RareOfSaid, Said, Text, XGroq};

/// The key of a message's or call's `extra` under which the provider's own data stands that has
/// to go back, by the field that it came in.
pub const PROVIDER_DATA: &str = "providerData";

/// The key of a message's `extra` with the id of the model that was asked, where the server
/// calls it something else.
pub(crate) const REQUESTED_MODEL: &str = "requestedModel";

/// How replies are read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The tools that the request offered.
    pub offered: Arc<OfferedTools>,
    /// Make tool calls that stand as text in the answer into real calls, if the name was
    /// offered. Default: off.
    pub recover_leaked_calls: bool,
    /// The opening think tag was part of the prompt, so text before a closing tag is reasoning.
    /// Text is then held back until that tag or the end comes. Default: off.
    pub think_open_implied: bool,
    /// What the reply says of itself where the server does not (SP-018.4).
    pub defaults: Arc<ReplyInfo>,
    /// How much is read before the reply is refused.
    pub limits: ReadLimits,
}

/// How much of a reply is read before it is refused with a typed error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Most bytes of the data of all events, or of a body in one piece. Default: 64 MiB.
    pub reply_bytes: usize,
    /// Most bytes of one event. Default: 16 MiB.
    pub event_bytes: usize,
    /// Most calls in one reply. Default: 1,024.
    pub calls: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            reply_bytes: 64 << 20,
            event_bytes: 16 << 20,
            calls: 1_024,
        }
    }
}

/// What kind of answer was asked for. Either is read whichever comes; this decides only what
/// a body is called that is neither whole nor a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A stream of chunks.
    Stream,
    /// One whole body.
    Whole,
}

/// Reads one reply: [`feed`](Self::feed) it the body's pieces, [`finish`](Self::finish) it when
/// the body ended, and take the events in between and after with [`next`](Self::next).
///
/// The last event is the finish or an error; what came before an error is the partial message.
/// Work is linear in the bytes for any splitting.
pub struct ChunkDecoder {
    reader: SseReader,
    /// Large, and moved often with what holds it: hence the box.
    reply: Box<ReplyState>,
}

impl fmt::Debug for ChunkDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkDecoder")
            .field("done", &self.reply.done)
            .field("waiting", &self.reply.out.len())
            .finish_non_exhaustive()
    }
}

impl ChunkDecoder {
    /// A decoder of one reply. `env` makes the ids of calls that come without.
    #[must_use]
    pub fn new(asked: Asked, options: ReadOptions, env: Arc<dyn Env>) -> Self {
        let limits = SseLimits {
            event_bytes: options.limits.event_bytes,
            body_bytes: options.limits.reply_bytes,
        };
        Self {
            reader: SseReader::with_limits(limits),
            reply: Box::new(ReplyState::new(asked, options, env)),
        }
    }

    /// Takes the next piece of the body.
    pub fn feed(&mut self, piece: &[u8]) {
        if self.reply.done {
            return;
        }
        self.reply.bytes += piece.len();
        let reply = &mut *self.reply;
        match self.reader.feed(piece, |event| reply.event(&event, false)) {
            Ok(()) => {}
            Err(error) => self.reply.too_long(error),
        }
        if self.reply.bytes > self.reply.options.limits.reply_bytes {
            let limit = self.reply.options.limits.reply_bytes;
            self.reply.too_long(SseError::BodyTooLong { limit });
        }
    }

    /// The body ended; gives the events that end the reply.
    pub fn finish(&mut self) {
        if self.reply.done {
            return;
        }
        let reply = &mut *self.reply;
        if let Err(error) = self.reader.finish(|event| reply.event(&event, true)) {
            return self.reply.too_long(error);
        }
        match self.reader.kind() {
            BodyKind::Json => self.reply.json_body(self.reader.body()),
            BodyKind::Markup => {
                const WHY: &str = "is an HTML page; is the base URL that of the API? What came";
                let error = classify::unreadable(self.reader.body(), WHY);
                self.reply.fail(error);
            }
            BodyKind::Empty | BodyKind::Events => {
                let stray = self.reader.stray_line().map(str::to_owned);
                if let Some(said) = stray
                    .as_deref()
                    .and_then(|line| line.strip_prefix("error:"))
                    && !self.reply.is_complete()
                {
                    // An error that is written as a field of its own (llama.cpp).
                    let value = serde_json::from_str(said).unwrap_or_else(|_| Value::from(said));
                    return self.reply.fail(classify::in_body(&value));
                }
                self.reply.stray = stray;
            }
        }
        self.reply.end();
    }

    /// The next event, or the error that ended the reply; `None` until more was fed, and after
    /// the last.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is no iterator: None is not the end"
    )]
    pub fn next(&mut self) -> Option<Result<ChatEvent, ModelError>> {
        match self.reply.out.pop_front() {
            Some(event) => Some(Ok(event)),
            None => self.reply.error.take().map(Err),
        }
    }

    /// How many events came; of a body in one piece, how many pieces of it. Comments are none.
    #[must_use]
    pub fn events_seen(&self) -> usize {
        match self.reader.kind() {
            BodyKind::Json => self.reply.events + self.reader.body().len(),
            _ => self.reply.events,
        }
    }

    /// Whether the server said that the reply is over (`[DONE]`), or it failed: what still
    /// comes says nothing.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.reply.done || self.reply.done_marker
    }

    /// The body broke off with this error. A reply that was whole by then is one all the same.
    pub fn broke(&mut self, cause: yiem_core::BoxError) {
        if self.reply.is_complete() || self.reply.done {
            return self.finish();
        }
        let error = ModelError::new(
            ModelErrorKind::TruncatedStream,
            format!("the connection broke in the middle of the reply: {cause}"),
        );
        self.reply.fail(ModelError {
            source: Some(cause),
            ..error
        });
    }

    /// Whether no more bytes are wanted: the reply ended, or failed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.reply.done
    }

    /// The counts told so far; the only way to them when the reply fails.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.reply.counts.usage()
    }
}

/// The fields that hold reasoning, in the order in which they are looked at.
const REASONING_FIELDS: [&str; 4] = [
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "thinking",
];

/// Where the reasoning of this reply comes from: the first that had any stays it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReasoningSource {
    Field(usize),
    Details,
}

struct ReplyState {
    asked: Asked,
    options: ReadOptions,
    env: Arc<dyn Env>,
    /// The first line that was no field of an event.
    stray: Option<String>,
    out: VecDeque<ChatEvent>,
    error: Option<ModelError>,
    done: bool,
    bytes: usize,
    events: usize,

    told: ReplyInfo,
    kept: JsonObject,
    counts: Counts,
    think: ThinkSplitter,
    leaks: Option<LeakFilter>,
    calls: Calls,
    source: Option<ReasoningSource>,
    /// Reasoning of fields, to know a think block that says the same.
    reasoning: String,
    /// A think block beside a reasoning field.
    block: String,
    details: Vec<Value>,
    details_text: String,
    /// Any message or piece of one came.
    answered: bool,
    /// Text that is not blank came.
    spoke: bool,
    refused: bool,
    /// Pieces came as `delta`; a `message` beside them repeats them.
    streamed: bool,
    /// The index of the alternative that is read, once one came.
    chosen: Option<i64>,
    finish: Option<String>,
    done_marker: bool,
    begun: bool,
    /// The last chunk held counts and no choices.
    usage_last: bool,
    whole: bool,
    /// Another API that something that came is of.
    foreign: Option<&'static Foreign>,
    alike: alike::Alike,
    frame: alike::Frame,
}

impl ReplyState {
    fn new(asked: Asked, options: ReadOptions, env: Arc<dyn Env>) -> Self {
        Self {
            asked,
            env,
            stray: None,
            out: VecDeque::new(),
            error: None,
            done: false,
            bytes: 0,
            events: 0,
            told: ReplyInfo::default(),
            kept: JsonObject::new(),
            counts: Counts::default(),
            think: ThinkSplitter::new(options.think_open_implied),
            leaks: options.recover_leaked_calls.then(LeakFilter::default),
            calls: Calls::default(),
            source: None,
            reasoning: String::new(),
            block: String::new(),
            details: Vec::new(),
            details_text: String::new(),
            answered: false,
            spoke: false,
            refused: false,
            streamed: false,
            chosen: None,
            finish: None,
            done_marker: false,
            begun: false,
            usage_last: false,
            whole: false,
            foreign: None,
            alike: alike::Alike::default(),
            frame: alike::Frame::default(),
            options,
        }
    }

    // What comes in: events, and bodies in one piece.

    fn event(&mut self, event: &Event<'_>, last: bool) {
        if self.done || self.done_marker {
            return;
        }
        self.events += 1;
        let data = event.data.trim();
        if data.is_empty() {
            return;
        }
        if data == "[DONE]" {
            self.done_marker = true;
            return;
        }
        if event.name == Some("error") {
            let value = serde_json::from_str(data).unwrap_or_else(|_| Value::from(data));
            return self.fail(classify::in_body(&value));
        }
        if let Some((piece, text)) = self.alike.text(data) {
            return self.piece(piece, text);
        }
        if let Some(List(choices)) = self.frame.choices(data)
            && !choices.is_empty()
            && choices.iter().all(|choice| choice.rare().is_none())
        {
            self.usage_last = false;
            self.choices(&choices);
            return self.remember(&choices, data);
        }
        match serde_json::from_str::<Body<'_>>(data) {
            Ok(body) => {
                self.body(&body, data);
                if alike::says_choices_alone(&body) && !body.choices.0.is_empty() {
                    self.frame.remember(data);
                    self.remember(&body.choices.0, data);
                }
            }
            Err(error) => match mended(data) {
                Some(mended) if self.mended_body(&mended) => {}
                _ => self.odd_data(data, &error, last),
            },
        }
    }

    /// A chunk like the one before: only its text is new.
    fn piece(&mut self, piece: alike::Piece, text: Cow<'_, str>) {
        self.usage_last = false;
        match piece {
            alike::Piece::Content => self.said(&Said::words(text)),
            alike::Piece::Reasoning => self.said(&Said::thoughts(text)),
            alike::Piece::Arguments(index) => self.call(Piece {
                index,
                arguments: &text,
                ..Piece::default()
            }),
        }
    }

    /// Remembers the chunk for those that are like it, if it was of the alternative that is read.
    fn remember(&mut self, choices: &[Choice<'_>], data: &str) {
        let chosen = choices.first().map(|c| c.index.index().unwrap_or(0));
        if chosen == self.chosen {
            self.alike.remember(choices, data);
        }
    }

    fn body(&mut self, body: &Body<'_>, text: &str) {
        self.info(body);
        let counted = self.counts_of(body);
        if let Some(rare) = body.rare() {
            if let Some(api) = foreign::of_event(rare) {
                self.foreign = Some(api);
                return;
            }
            self.foreign = self.foreign.or_else(|| foreign::of_body(rare));
            if let Some(word) = rare.done_reason.get() {
                self.ended_with(word);
            }
            match rare.done.map(RawValue::get) {
                Some("true") => self.done_marker = !self.whole,
                // More was to come.
                Some("false") => self.whole = false,
                _ => {}
            }
        }
        let failure = classify::of_body(body, text);
        let speaks = |rare: &RareOfBody<'_>| rare.message.is_some() || rare.content.is_some();
        if !self.begun && (!body.choices.0.is_empty() || body.rare().is_some_and(speaks)) {
            self.begun = true;
            let info = self.reply_info();
            self.out.push_back(ChatEvent::Started(Box::new(info)));
        }
        if body.choices.0.is_empty() {
            self.without_choices(body, text, counted);
        } else {
            self.usage_last = false;
            self.choices(&body.choices.0);
        }
        if let Some(error) = failure {
            self.fail(error);
        }
    }

    /// Which model answers, as soon as it is known.
    fn info(&mut self, body: &Body<'_>) {
        let pick = |held: &mut String, text: &Text<'_>| {
            if held.is_empty() {
                held.push_str(text.or_empty());
            }
        };
        pick(&mut self.told.model, &body.model);
        if let Some(rare) = body.rare() {
            pick(&mut self.told.api, &rare.api);
            pick(&mut self.told.provider, &rare.provider);
        }
    }

    /// Takes the counts in. Whether the body itself has any.
    fn counts_of(&mut self, body: &Body<'_>) -> bool {
        let nested = body
            .choices
            .0
            .iter()
            .find_map(|choice| choice.rare()?.usage);
        if let Some(nested) = nested {
            self.counts.update(Counts::read(nested));
        }
        let mut counted = false;
        if let Some(usage) = body.usage {
            let own = Counts::read(usage);
            counted = !own.is_unknown();
            self.counts.update(own);
        }
        let Some(rare) = body.rare() else {
            return counted;
        };
        if let Some(raw) = rare.x_groq
            && let Ok(groq) = serde_json::from_str::<XGroq<'_>>(raw.get())
            && let Some(usage) = groq.usage
        {
            self.counts.update(Counts::read(usage));
        }
        if rare.prompt_eval_count.is_some() || rare.eval_count.is_some() {
            self.counts
                .update(Counts::bare(rare.prompt_eval_count, rare.eval_count));
        }
        counted
    }

    fn without_choices(&mut self, body: &Body<'_>, text: &str, counted: bool) {
        if let Some(rare) = body.rare() {
            if let Some(word) = rare.finish_reason.get().or_else(|| rare.stop_reason.get()) {
                self.ended_with(word);
            }
            // Format 1 (SP-017), and Ollama's own: the message stands alone.
            let message = rare.message.and_then(Said::of_message);
            // Format 2 (SP-018): the body is the message.
            let speaks = rare.content.is_some() || rare.tool_calls.is_some();
            let said = match message {
                None if speaks => serde_json::from_str::<Said<'_>>(text).ok(),
                message => message,
            };
            if let Some(said) = said {
                return self.said(&said);
            }
            if let Some(text) = rare.response.get() {
                self.answered = true;
                return self.text(text);
            }
        }
        if body.usage.is_some() {
            self.usage_last = counted;
        }
    }

    fn ended_with(&mut self, word: &str) {
        if finish::is_word(word) {
            self.finish = Some(word.to_owned());
        }
    }

    // What a choice says.

    /// Rule: alternatives are not joined: the one with index 0 counts, or the lowest that came.
    fn choices(&mut self, choices: &[Choice<'_>]) {
        // Without an index the place in the list tells, and a piece alone goes on what is read.
        let read = self.chosen;
        let index = |at: usize| match choices[at].index.index() {
            Some(index) => index,
            None if choices.len() == 1 => read.unwrap_or(0),
            None => at as i64,
        };
        let lowest = (0..choices.len()).map(index).min().unwrap_or(0);
        let mut chosen = *self.chosen.get_or_insert(lowest);
        let speaks = |at: usize| index(at) == lowest && choices[at].speaks();
        if lowest < chosen && (0..choices.len()).any(speaks) {
            self.begin_anew();
            self.chosen = Some(lowest);
            chosen = lowest;
        }
        for at in (0..choices.len()).filter(|at| index(*at) == chosen) {
            self.choice(&choices[at]);
            if self.whole {
                // Another of the same index is an alternative all the same.
                break;
            }
        }
        if self.whole && choices.len() > 1 {
            self.calls_apart(choices);
        }
    }

    /// A reply that ended with calls and has none goes on in another choice, where none has an
    /// index: so some gateways part the text of a model from its calls.
    fn calls_apart(&mut self, choices: &[Choice<'_>]) {
        let ended = self.finish.as_deref().map(finish::meaning);
        let apart = self.calls.is_empty()
            && ended == Some(Meaning::Calls)
            && choices.iter().all(|choice| choice.index.index().is_none());
        let messages = choices.iter().filter_map(|c| c.rare()?.message.0.as_ref());
        if let Some(message) = messages
            .filter(|_| apart)
            .find(|message| !message.calls().is_empty())
        {
            self.said(message);
        }
    }

    /// A lower alternative came late: what was told of the one before is void.
    ///
    /// Rare, and with a whole state on its stack: kept out of the way of every other chunk.
    #[cold]
    #[inline(never)]
    fn begin_anew(&mut self) {
        let env = Arc::clone(&self.env);
        let fresh = Self::new(self.asked, self.options.clone(), env);
        let before = std::mem::replace(self, fresh);
        self.out = before.out;
        self.told = before.told;
        self.counts = before.counts;
        self.bytes = before.bytes;
        self.events = before.events;
        self.whole = before.whole;
        self.done_marker = before.done_marker;
        self.begun = true;
        self.out.push_back(ChatEvent::Restarted);
        let info = self.reply_info();
        self.out.push_back(ChatEvent::Started(Box::new(info)));
    }

    fn choice(&mut self, choice: &Choice<'_>) {
        if self.done {
            return;
        }
        if let Some(delta) = &choice.delta.0 {
            self.said(delta);
            self.streamed = true;
        }
        if let Some(rare) = choice.rare() {
            if let Some(message) = &rare.message.0
                && !(self.streamed && self.answered && (self.spoke || !self.calls.is_empty()))
            {
                self.said(message);
            }
            if let Text::Is(text) = &rare.text {
                self.answered = true;
                self.text(text);
            }
        }
        if let Some(word) = choice.finish_reason.get() {
            self.ended_with(word);
        }
    }
}
