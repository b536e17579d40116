//! A model that says what a test has written down, and watches what it is asked.
//!
//! Knows: replies in order, and the rules that a request has to keep (O-2). Does not know: any
//! wire.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use yiem_core::{
    AssistantContent, AssistantMessage, ChatEvent, ChatModel, ChatRequest, ChatStream, Message,
    ModelError, ModelErrorKind, ModelInfo, StopReason, Timestamp, ToolCall, ToolCallId, Usage,
};

/// A model whose replies are written down beforehand.
///
/// It checks every request as a strict server would: each call of a good reply has exactly one
/// result right after it, and no result is without its call. A request that breaks this fails
/// the test: the call fails, and dropping the model panics.
///
/// Cheap to clone; keep a clone to look at the requests.
#[derive(Clone)]
pub struct ScriptedModel(Arc<Inner>);

struct Inner {
    info: ModelInfo,
    state: Mutex<State>,
}

/// Answers whatever it is asked.
type Answer = dyn Fn(&ChatRequest) -> Reply + Send + Sync;

#[derive(Default)]
struct State {
    replies: VecDeque<Reply>,
    requests: Vec<ChatRequest>,
    breaches: Vec<String>,
    fallback: Option<Arc<Answer>>,
}

impl ScriptedModel {
    /// A model with these replies, in order. A request beyond them is an error that says so.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with_info(ModelInfo::new("scripted"), replies)
    }

    /// The same with a description of its own (prices, window).
    pub fn with_info(info: ModelInfo, replies: impl IntoIterator<Item = Reply>) -> Self {
        let state = State {
            replies: replies.into_iter().collect(),
            ..State::default()
        };
        Self(Arc::new(Inner {
            info,
            state: Mutex::new(state),
        }))
    }

    /// A model that answers by a function of the request, without end.
    pub fn answering(reply: impl Fn(&ChatRequest) -> Reply + Send + Sync + 'static) -> Self {
        let model = Self::new([]);
        model.lock().fallback = Some(Arc::new(reply));
        model
    }

    /// Adds a reply.
    pub fn push(&self, reply: Reply) {
        self.lock().replies.push_back(reply);
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.lock().requests.clone()
    }

    /// How often it was asked.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.lock().requests.len()
    }

    /// How many replies are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.lock().replies.len()
    }

    /// What was wrong with the requests so far; looked at, it no longer fails the test.
    #[must_use]
    pub fn take_breaches(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().breaches)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("ScriptedModel")
            .field("asked", &state.requests.len())
            .field("left", &state.replies.len())
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let breaches = std::mem::take(
            &mut self
                .state
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner)
                .breaches,
        );
        if !breaches.is_empty() && !std::thread::panicking() {
            panic!(
                "a strict server would refuse what the model was sent: {}",
                breaches.join("; ")
            );
        }
    }
}

impl ChatModel for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.0.info
    }

    fn stream(&self, request: ChatRequest) -> ChatStream {
        let reply = {
            let mut state = self.lock();
            let breach = check_request(&request).err();
            state.requests.push(request.clone());
            let number = state.requests.len();
            if let Some(breach) = breach {
                let breach = format!("request {number}: {breach}");
                state.breaches.push(breach.clone());
                return ChatStream::failed(ModelError::new(ModelErrorKind::InvalidRequest, breach));
            }
            match (state.replies.pop_front(), &state.fallback) {
                (Some(reply), _) => reply,
                (None, Some(answer)) => {
                    let answer = Arc::clone(answer);
                    drop(state);
                    answer(&request)
                }
                (None, None) => {
                    return ChatStream::failed(ModelError::new(
                        ModelErrorKind::Other,
                        format!("the script has no reply for request {number}"),
                    ));
                }
            }
        };
        reply.into_stream(&request)
    }
}

/// Checks a request as a strict server would (O-2): after each good reply with calls come their
/// results, one each and nothing in between; no result is without its call.
///
/// # Errors
/// What a strict server would say.
pub fn check_request(request: &ChatRequest) -> Result<(), String> {
    let mut open: Vec<&ToolCallId> = Vec::new();
    for (at, message) in request.messages.iter().enumerate() {
        match &**message {
            Message::ToolResult(result) => {
                match open.iter().position(|id| **id == result.tool_call_id) {
                    Some(place) => {
                        open.remove(place);
                    }
                    None => {
                        return Err(format!(
                            "message {at} is a result of {}, which nobody called or which has one already",
                            result.tool_call_id
                        ));
                    }
                }
            }
            // Left out by whoever writes the request.
            Message::Assistant(m) if m.is_broken() => {}
            Message::Custom(_) => {}
            other => {
                if let Some(id) = open.first() {
                    return Err(format!(
                        "message {at} comes while the call {id} has no result"
                    ));
                }
                if let Message::Assistant(m) = other {
                    open = m.tool_calls().map(|c| &c.id).collect();
                    let mut ids = open.clone();
                    ids.sort_unstable();
                    if ids.iter().any(|id| id.is_empty()) || ids.windows(2).any(|w| w[0] == w[1]) {
                        return Err(format!("message {at} has calls without ids of their own"));
                    }
                }
            }
        }
    }
    match open.first() {
        Some(id) => Err(format!("the call {id} has no result")),
        None => Ok(()),
    }
}

/// One reply of a [`ScriptedModel`].
#[derive(Clone, Debug, Default)]
pub struct Reply {
    blocks: Vec<Block>,
    stop: Option<StopReason>,
    usage: Usage,
    delay: Duration,
    gap: Duration,
    end: End,
}

#[derive(Clone, Debug)]
enum Block {
    /// Text in pieces.
    Text(Vec<String>),
    Reasoning(String),
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// What came before is void.
    Restart,
}

#[derive(Clone, Debug, Default)]
enum End {
    /// Streamed to its finish.
    #[default]
    Finished,
    /// One event with the whole message.
    Whole,
    /// An error after what came.
    Failed {
        kind: ModelErrorKind,
        message: String,
        retry_after: Option<Duration>,
    },
    /// The stream ends without a finish.
    BrokenOff,
    /// Nothing more ever comes.
    Hangs,
    /// A panic.
    Panics,
}

impl Reply {
    /// Text, in one piece.
    pub fn say(text: impl Into<String>) -> Self {
        Self::default().and_say(text)
    }

    /// Text, in these pieces.
    pub fn pieces<T: Into<String>>(pieces: impl IntoIterator<Item = T>) -> Self {
        let pieces = pieces.into_iter().map(Into::into).collect();
        Self {
            blocks: vec![Block::Text(pieces)],
            ..Self::default()
        }
    }

    /// A call; its id is made by the agent.
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self::default().and_call(name, arguments)
    }

    /// A call with an id of its own.
    pub fn call_with_id(id: impl Into<String>, name: impl Into<String>, arguments: Value) -> Self {
        Self::default().and_call_with_id(id, name, arguments)
    }

    /// A call whose arguments are this text, whatever it is.
    pub fn call_raw(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self::default().and_call_raw("", name, arguments)
    }

    /// A failure.
    pub fn fail(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self::default().then_fail(kind, message)
    }

    /// Nothing ever comes.
    #[must_use]
    pub fn hang() -> Self {
        Self::default().then_hang()
    }

    /// A panic of the model.
    #[must_use]
    pub fn panic() -> Self {
        Self::default().then_panic()
    }

    /// The same with text after what is there.
    #[must_use]
    pub fn and_say(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(Block::Text(vec![text.into()]));
        self
    }

    /// The same with text in these pieces after what is there.
    #[must_use]
    pub fn and_pieces<T: Into<String>>(mut self, pieces: impl IntoIterator<Item = T>) -> Self {
        self.blocks
            .push(Block::Text(pieces.into_iter().map(Into::into).collect()));
        self
    }

    /// The same with reasoning after what is there.
    #[must_use]
    pub fn and_think(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(Block::Reasoning(text.into()));
        self
    }

    /// The same, begun anew: what is there was told and is void.
    #[must_use]
    pub fn and_restart(mut self) -> Self {
        self.blocks.push(Block::Restart);
        self
    }

    /// The same with another call; its id is made by the agent.
    #[must_use]
    pub fn and_call(self, name: impl Into<String>, arguments: Value) -> Self {
        self.and_call_with_id("", name, arguments)
    }

    /// The same with another call with an id of its own.
    #[must_use]
    pub fn and_call_with_id(
        self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: Value,
    ) -> Self {
        self.and_call_raw(id, name, arguments.to_string())
    }

    /// The same with another call whose arguments are this text.
    #[must_use]
    pub fn and_call_raw(
        mut self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        self.blocks.push(Block::Call {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        });
        self
    }

    /// The same, ending for this reason.
    #[must_use]
    pub fn stop(mut self, stop: StopReason) -> Self {
        self.stop = Some(stop);
        self
    }

    /// The same with these tokens.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Usage::new(input, output);
        self
    }

    /// The same, beginning after a while.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The same, with a while between its events.
    #[must_use]
    pub fn every(mut self, gap: Duration) -> Self {
        self.gap = gap;
        self
    }

    /// The same as one event, not streamed.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.end = End::Whole;
        self
    }

    /// The same, failing after what came.
    #[must_use]
    pub fn then_fail(mut self, kind: ModelErrorKind, message: impl Into<String>) -> Self {
        self.end = End::Failed {
            kind,
            message: message.into(),
            retry_after: None,
        };
        self
    }

    /// The same failure, asking to wait that long.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        if let End::Failed { retry_after, .. } = &mut self.end {
            *retry_after = Some(wait);
        }
        self
    }

    /// The same, breaking off without a finish.
    #[must_use]
    pub fn then_break_off(mut self) -> Self {
        self.end = End::BrokenOff;
        self
    }

    /// The same, with nothing more ever coming.
    #[must_use]
    pub fn then_hang(mut self) -> Self {
        self.end = End::Hangs;
        self
    }

    /// The same, panicking after what came.
    #[must_use]
    pub fn then_panic(mut self) -> Self {
        self.end = End::Panics;
        self
    }

    /// The blocks that count.
    fn counting(&self) -> &[Block] {
        let restart = self
            .blocks
            .iter()
            .rposition(|b| matches!(b, Block::Restart));
        &self.blocks[restart.map_or(0, |at| at + 1)..]
    }

    fn has_calls(&self) -> bool {
        let is_call = |b: &Block| matches!(b, Block::Call { .. });
        self.counting().iter().any(is_call)
    }

    fn stop_reason(&self) -> StopReason {
        self.stop.clone().unwrap_or(if self.has_calls() {
            StopReason::ToolCalls
        } else {
            StopReason::EndTurn
        })
    }

    fn message(&self) -> AssistantMessage {
        let content = self
            .counting()
            .iter()
            .filter_map(|block| match block {
                Block::Text(pieces) => Some(AssistantContent::text(pieces.concat())),
                Block::Reasoning(text) => Some(AssistantContent::reasoning(text.clone())),
                Block::Call {
                    id,
                    name,
                    arguments,
                } => Some(AssistantContent::ToolCall(call_of(id, name, arguments))),
                Block::Restart => None,
            })
            .collect();
        AssistantMessage {
            stop_reason: self.stop_reason(),
            usage: self.usage,
            ..AssistantMessage::new(content, Timestamp::default())
        }
    }

    fn events(&self) -> Vec<ChatEvent> {
        let mut events = Vec::new();
        for (index, block) in self.blocks.iter().enumerate() {
            match block {
                Block::Text(pieces) => {
                    events.extend(pieces.iter().cloned().map(ChatEvent::Text));
                }
                Block::Reasoning(text) => {
                    events.push(ChatEvent::Reasoning {
                        text: text.clone(),
                        field: None,
                    });
                }
                Block::Call {
                    id,
                    name,
                    arguments,
                } => {
                    events.push(ChatEvent::ToolCallStarted {
                        index,
                        id: id.as_str().into(),
                        name: name.clone(),
                    });
                    events.push(ChatEvent::ToolCallArguments {
                        index,
                        delta: arguments.clone(),
                    });
                    let call = Box::new(call_of(id, name, arguments));
                    events.push(ChatEvent::ToolCallEnded { index, call });
                }
                Block::Restart => events.push(ChatEvent::Restarted),
            }
        }
        events
    }

    fn into_stream(self, _: &ChatRequest) -> ChatStream {
        let mut items: VecDeque<Item> = VecDeque::new();
        if matches!(self.end, End::Whole) {
            items.push_back(Item::Event(Ok(ChatEvent::Message(Box::new(
                self.message(),
            )))));
        } else {
            items.extend(self.events().into_iter().map(|e| Item::Event(Ok(e))));
        }
        match &self.end {
            End::Whole | End::BrokenOff => {}
            End::Finished => items.push_back(Item::Event(Ok(ChatEvent::Finished {
                stop: self.stop_reason(),
                usage: self.usage,
            }))),
            End::Failed {
                kind,
                message,
                retry_after,
            } => {
                let mut error = ModelError::new(*kind, message.clone());
                error.retry_after = *retry_after;
                items.push_back(Item::Event(Err(error)));
            }
            End::Hangs => items.push_back(Item::Hang),
            End::Panics => items.push_back(Item::Panic),
        }
        let (delay, gap) = (self.delay, self.gap);
        ChatStream::unfold((items, true), move |(mut items, first)| async move {
            let wait = if first { delay } else { gap };
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            match items.pop_front()? {
                Item::Event(event) => Some((event, (items, false))),
                Item::Hang => std::future::pending().await,
                Item::Panic => panic!("the scripted model was told to panic"),
            }
        })
    }
}

enum Item {
    Event(Result<ChatEvent, ModelError>),
    Hang,
    Panic,
}

fn call_of(id: &str, name: &str, arguments: &str) -> ToolCall {
    let mut call = ToolCall::new(id, name, yiem_core::JsonObject::new());
    call.arguments = yiem_core::ToolArguments::read(arguments);
    call
}
