//! A reply as it comes: events in order, and the message that they add up to (C-7).
//!
//! Knows: how events make a message, and what a message is that broke off.
//! Does not know: bytes, providers, clocks, tasks.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::content::{AssistantContent, ReasoningContent, TextContent};
use crate::env::Timestamp;
use crate::id::ToolCallId;
use crate::json::Extra;
use crate::message::{AssistantMessage, StopReason};
use crate::model::{ModelError, ModelErrorKind};
use crate::tool_call::{ToolArguments, ToolCall};
use crate::usage::Usage;

/// A piece of a reply.
///
/// Order: at most one `Started`; then pieces (all of it again after a `Restarted`); last exactly one `Finished` or `Message` (or the
/// stream's error). Blocks stand in the message in the order in which they began.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChatEvent {
    /// Who answers, as far as it is known when the answer begins. Later ones add to it.
    Started(Box<ReplyInfo>),
    /// The reply begins anew: what came before is void. Told by a model that asks again by
    /// itself ([`RetryingModel`](crate::RetryingModel)), or whose server sent an alternative
    /// before the reply that counts.
    Restarted,
    /// More text. Goes on the text block that is last, else begins one.
    Text(String),
    /// More reasoning. Goes on the reasoning block that is last, else begins one.
    Reasoning {
        /// The thoughts.
        text: String,
        /// The field that they came in, remembered with the block when it begins.
        field: Option<&'static str>,
    },
    /// A call begins.
    ToolCallStarted {
        /// Tells the calls of one reply apart; any number, each used once.
        index: usize,
        /// Its id; empty while unknown.
        id: ToolCallId,
        /// Its name; empty while unknown.
        name: String,
    },
    /// More of the text of a call's arguments. For showing a call that grows, never for
    /// running it.
    ToolCallArguments {
        /// Which call.
        index: usize,
        /// The text.
        delta: String,
    },
    /// A call is whole: takes the place of what its pieces made.
    ToolCallEnded {
        /// Which call.
        index: usize,
        /// The call as it should be kept: id, name and arguments read.
        call: Box<ToolCall>,
    },
    /// A whole block of any kind.
    Block(Box<AssistantContent>),
    /// The end: the message is what the events made.
    Finished {
        /// Why.
        stop: StopReason,
        /// Its tokens.
        usage: Usage,
    },
    /// The end: this whole message takes the place of whatever the events made.
    Message(Box<AssistantMessage>),
}

/// Who answers (SP-018.4), and what has to go back with the message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplyInfo {
    /// The API, such as `openai`; empty if unknown.
    pub api: String,
    /// The provider; empty if unknown.
    pub provider: String,
    /// The model that answers; empty if unknown.
    pub model: String,
    /// The provider's own data that stays with the message.
    pub extra: Extra,
}

/// A reply as a stream of events; dropping it ends the request.
pub struct ChatStream(Pin<Box<dyn Stream<Item = Result<ChatEvent, ModelError>> + Send>>);

impl ChatStream {
    /// Of any stream of events.
    pub fn new(events: impl Stream<Item = Result<ChatEvent, ModelError>> + Send + 'static) -> Self {
        Self(Box::pin(events))
    }

    /// Of one future that gives the one event that ends the stream.
    pub fn once(
        event: impl Future<Output = Result<ChatEvent, ModelError>> + Send + 'static,
    ) -> Self {
        Self::new(Once(Some(Box::pin(event))))
    }

    /// Of a failure alone.
    #[must_use]
    pub fn failed(error: ModelError) -> Self {
        Self::from_events([Err(error)])
    }

    /// Of events that are there already.
    pub fn from_events<I>(events: I) -> Self
    where
        I: IntoIterator<Item = Result<ChatEvent, ModelError>>,
        I::IntoIter: Send + 'static,
    {
        Self::new(Ready(events.into_iter()))
    }

    /// Of a state and an async function that gives the next event and state, or the end.
    pub fn unfold<S, F, Fut>(state: S, next: F) -> Self
    where
        S: Send + 'static,
        F: FnMut(S) -> Fut + Send + 'static,
        Fut: Future<Output = Option<(Result<ChatEvent, ModelError>, S)>> + Send + 'static,
    {
        Self::new(Unfold {
            state: Some(state),
            next,
            work: None,
        })
    }

    /// The next event; `None` after the last. May be dropped at any time; nothing is lost.
    pub async fn next(&mut self) -> Option<Result<ChatEvent, ModelError>> {
        std::future::poll_fn(|cx| self.0.as_mut().poll_next(cx)).await
    }

    /// Polls for the next event.
    pub fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<ChatEvent, ModelError>>> {
        self.0.as_mut().poll_next(cx)
    }

    /// Reads to the end and gives the whole message.
    ///
    /// # Errors
    /// The stream's, or that it ended without an end.
    pub async fn into_message(mut self) -> Result<AssistantMessage, ModelError> {
        let mut assembler = MessageAssembler::new();
        while let Some(event) = self.next().await {
            if let Some(message) = assembler.push(event?) {
                return Ok(message);
            }
        }
        Err(ModelError::new(
            ModelErrorKind::TruncatedStream,
            "the model's reply ended without saying that it was done",
        ))
    }
}

impl Stream for ChatStream {
    type Item = Result<ChatEvent, ModelError>;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for ChatStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChatStream")
    }
}

type EventFuture = Pin<Box<dyn Future<Output = Result<ChatEvent, ModelError>> + Send>>;

struct Once(Option<EventFuture>);

impl Stream for Once {
    type Item = Result<ChatEvent, ModelError>;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(future) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let event = ready!(future.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(Some(event))
    }
}

struct Ready<I>(I);

// Nothing in here is ever pinned.
impl<I> Unpin for Ready<I> {}

impl<I: Iterator<Item = Result<ChatEvent, ModelError>>> Stream for Ready<I> {
    type Item = Result<ChatEvent, ModelError>;
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next())
    }
}

struct Unfold<S, F, Fut> {
    state: Option<S>,
    next: F,
    work: Option<Pin<Box<Fut>>>,
}

// The future is boxed; nothing else in here is ever pinned.
impl<S, F, Fut> Unpin for Unfold<S, F, Fut> {}

impl<S, F, Fut> Stream for Unfold<S, F, Fut>
where
    F: FnMut(S) -> Fut,
    Fut: Future<Output = Option<(Result<ChatEvent, ModelError>, S)>>,
{
    type Item = Result<ChatEvent, ModelError>;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.work.is_none() {
            let Some(state) = this.state.take() else {
                return Poll::Ready(None);
            };
            this.work = Some(Box::pin((this.next)(state)));
        }
        let Some(work) = &mut this.work else {
            return Poll::Ready(None);
        };
        let done = ready!(work.as_mut().poll(cx));
        this.work = None;
        Poll::Ready(done.map(|(event, state)| {
            this.state = Some(state);
            event
        }))
    }
}

/// Makes a message of events; holds the partial one in between.
///
/// Appends only: text is never copied per event, and the partial message can be looked at any
/// time ([`partial`](Self::partial)).
#[derive(Clone, Debug, Default)]
pub struct MessageAssembler {
    blocks: Vec<Block>,
    /// How many of the blocks are calls of which not all has come.
    open: usize,
    info: ReplyInfo,
    done: bool,
}

/// A block under way.
#[derive(Clone, Debug)]
enum Block {
    Whole(AssistantContent),
    Call(PartialToolCall),
}

/// A call of which not all has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartialToolCall {
    /// Its number among the reply's calls, as the events have it.
    pub index: usize,
    /// Its id, as far as known.
    pub id: ToolCallId,
    /// Its name, as far as known.
    pub name: String,
    /// The text of its arguments so far.
    pub arguments: String,
}

/// A block of a message under way, as it can be looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PartialBlock<'a> {
    /// A block that is whole, or that only grows (text, reasoning).
    Block(&'a AssistantContent),
    /// A call of which not all has come.
    ToolCall(&'a PartialToolCall),
}

impl MessageAssembler {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes an event in. Gives the whole message when it was the last one; the timestamp of
    /// one made of events is zero, and its reader sets it. Events after the last change nothing.
    pub fn push(&mut self, event: ChatEvent) -> Option<AssistantMessage> {
        if self.done {
            return None;
        }
        match event {
            ChatEvent::Started(info) => self.started(*info),
            ChatEvent::Restarted => {
                self.blocks.clear();
                self.open = 0;
                self.info = ReplyInfo::default();
            }
            ChatEvent::Text(_)
            | ChatEvent::Reasoning { .. }
            | ChatEvent::ToolCallArguments { .. } => self.grow(&event),
            ChatEvent::ToolCallStarted { index, id, name } => {
                self.open += 1;
                self.begin(Block::Call(PartialToolCall {
                    index,
                    id,
                    name,
                    arguments: String::new(),
                }));
            }
            ChatEvent::ToolCallEnded { index, call } => {
                let whole = Block::Whole(AssistantContent::ToolCall(*call));
                match self.position(index) {
                    Some(at) => {
                        self.open -= 1;
                        self.blocks[at] = whole;
                    }
                    None => self.begin(whole),
                }
            }
            ChatEvent::Block(block) => self.begin(Block::Whole(*block)),
            ChatEvent::Finished { stop, usage } => {
                self.done = true;
                return Some(self.take(stop, usage, None));
            }
            ChatEvent::Message(message) => {
                self.done = true;
                self.blocks.clear();
                return Some(*message);
            }
        }
        None
    }

    /// Takes in a piece that makes a block longer (text, reasoning, arguments) and leaves it to
    /// the caller, who may hand it on; any other event changes nothing.
    pub fn grow(&mut self, piece: &ChatEvent) {
        if self.done {
            return;
        }
        match piece {
            ChatEvent::Text(text) => self.text(text),
            ChatEvent::Reasoning { text, field } => self.reasoning(text, *field),
            ChatEvent::ToolCallArguments { index, delta } => {
                if let Some(call) = self.call(*index) {
                    call.arguments.push_str(delta);
                }
            }
            _ => {}
        }
    }

    /// The message as it broke off: what came so far, with this stop reason and error. Calls
    /// of which not all came are marked unusable and keep the text that came (O-4).
    #[must_use]
    pub fn broken_off(mut self, stop: StopReason, error: Option<String>) -> AssistantMessage {
        self.take(stop, Usage::UNKNOWN, error)
    }

    /// The blocks so far.
    pub fn partial(&self) -> impl Iterator<Item = PartialBlock<'_>> {
        self.blocks.iter().map(|block| match block {
            Block::Whole(content) => PartialBlock::Block(content),
            Block::Call(call) => PartialBlock::ToolCall(call),
        })
    }

    /// Whether anything has come that would be in the message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    fn started(&mut self, info: ReplyInfo) {
        for (known, new) in [
            (&mut self.info.api, info.api),
            (&mut self.info.provider, info.provider),
            (&mut self.info.model, info.model),
        ] {
            if !new.is_empty() {
                *known = new;
            }
        }
        for (key, value) in info.extra.iter() {
            self.info.extra.insert(key.clone(), value.clone());
        }
    }

    /// Adds a block. Most messages have one, and stay in memory for as long as their session:
    /// room for more is made only when there are more.
    fn begin(&mut self, block: Block) {
        if self.blocks.is_empty() {
            self.blocks.reserve_exact(1);
        }
        self.blocks.push(block);
    }

    fn text(&mut self, text: &str) {
        match self.blocks.last_mut() {
            Some(Block::Whole(AssistantContent::Text(last))) => last.text.push_str(text),
            _ if text.is_empty() => {}
            _ => self.begin(Block::Whole(AssistantContent::Text(TextContent::new(text)))),
        }
    }

    fn reasoning(&mut self, text: &str, field: Option<&'static str>) {
        match self.blocks.last_mut() {
            Some(Block::Whole(AssistantContent::Reasoning(last))) => last.text.push_str(text),
            _ if text.is_empty() => {}
            _ => self.begin(Block::Whole(AssistantContent::Reasoning(
                ReasoningContent {
                    text: text.to_owned(),
                    field: field.map(str::to_owned),
                    ..ReasoningContent::default()
                },
            ))),
        }
    }

    fn position(&self, index: usize) -> Option<usize> {
        if self.open == 0 {
            return None;
        }
        // The call that grows is nearly always the last block.
        self.blocks
            .iter()
            .rposition(|b| matches!(b, Block::Call(call) if call.index == index))
    }

    fn call(&mut self, index: usize) -> Option<&mut PartialToolCall> {
        let at = self.position(index)?;
        match &mut self.blocks[at] {
            Block::Call(call) => Some(call),
            Block::Whole(_) => None,
        }
    }

    fn take(&mut self, stop: StopReason, usage: Usage, error: Option<String>) -> AssistantMessage {
        let content = std::mem::take(&mut self.blocks)
            .into_iter()
            .map(|block| match block {
                Block::Whole(content) => content,
                Block::Call(call) => AssistantContent::ToolCall(ToolCall {
                    id: call.id,
                    name: call.name,
                    arguments: ToolArguments::unreadable(
                        call.arguments,
                        "the reply broke off before the arguments were whole",
                    ),
                    extra: Extra::NONE,
                }),
            })
            .collect();
        let info = std::mem::take(&mut self.info);
        AssistantMessage {
            content,
            api: info.api,
            provider: info.provider,
            model: info.model,
            usage,
            stop_reason: stop,
            error_message: error,
            timestamp: Timestamp::default(),
            extra: info.extra,
        }
    }
}

#[cfg(test)]
mod tests;
