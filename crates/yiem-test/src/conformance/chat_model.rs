//! What every model keeps to (C-7), whoever answers behind it.
//!
//! Knows: the promises of `ChatModel`. Does not know: how a model is made to give a reply; the
//! [`ModelFixture`] does.
//!
//! A model runs it with one line: `chat_model::run(&MyFixture).await`.

use std::sync::Arc;
use std::time::Duration;

use yiem_core::{
    AssistantMessage, ChatEvent, ChatModel, ChatRequest, History, Message, MessageAssembler,
    ModelError, StopReason, Timestamp, async_trait,
};

/// How long any wait of the suite may take.
const DEADLINE: Duration = Duration::from_secs(100);

/// A reply that the suite asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wanted {
    /// The text `Hello.`, with 3 tokens in and 2 out.
    Text,
    /// The text `Let me see.` and the call `call_1` of `add` with `{"a":1}`.
    Call,
    /// A refusal that goes away by itself, such as a rate limit. Nothing of a reply comes.
    Refusal,
    /// The text `Hel`, and then the reply breaks off.
    BrokenOff,
    /// Nothing, for ever.
    Silence,
}

/// Makes the model that the suite looks at.
#[async_trait]
pub trait ModelFixture: Send + Sync {
    /// A model that answers every request like that; `None` if it cannot be made to.
    async fn model(&self, wanted: Wanted) -> Option<Arc<dyn ChatModel>>;

    /// Whether the request that was made has come to where it is served; asked again until it has.
    /// A model that serves itself keeps the default.
    async fn request_has_begun(&self) -> bool {
        true
    }

    /// Whether the request that was dropped has ended where it was served; asked again until it
    /// has. A model that serves itself keeps the default.
    async fn request_has_ended(&self) -> bool {
        true
    }
}

/// Runs the whole suite.
///
/// # Panics
/// The model breaks a promise; the message says which.
pub async fn run(fixture: &dyn ModelFixture) {
    text_is_given_with_its_usage(fixture).await;
    calls_are_read(fixture).await;
    a_refusal_is_one_typed_error(fixture).await;
    what_came_before_a_break_is_kept(fixture).await;
    two_requests_do_not_meet(fixture).await;
    dropping_the_stream_ends_the_request(fixture).await;
}

async fn text_is_given_with_its_usage(fixture: &dyn ModelFixture) {
    let Some(model) = fixture.model(Wanted::Text).await else {
        return;
    };
    let (message, error) = read(&*model).await;
    assert!(error.is_none(), "a good reply ends in no error: {error:?}");
    assert_eq!(message.text(), "Hello.");
    assert_eq!(message.stop_reason, StopReason::EndTurn);
    assert_eq!(
        (message.usage.prompt(), message.usage.output),
        (Some(3), Some(2))
    );
    assert!(!message.has_tool_calls());
}

async fn calls_are_read(fixture: &dyn ModelFixture) {
    let Some(model) = fixture.model(Wanted::Call).await else {
        return;
    };
    let (message, error) = read(&*model).await;
    assert!(error.is_none(), "a good reply ends in no error: {error:?}");
    assert_eq!(message.text(), "Let me see.");
    assert_eq!(message.stop_reason, StopReason::ToolCalls);
    let calls: Vec<_> = message.tool_calls().collect();
    assert_eq!(calls.len(), 1, "one call");
    assert_eq!(
        (calls[0].id.as_str(), calls[0].name.as_str()),
        ("call_1", "add")
    );
    let arguments = calls[0].arguments().expect("arguments that were read");
    assert_eq!(arguments.get("a"), Some(&serde_json::json!(1)));
}

async fn a_refusal_is_one_typed_error(fixture: &dyn ModelFixture) {
    let Some(model) = fixture.model(Wanted::Refusal).await else {
        return;
    };
    let (message, error) = read(&*model).await;
    let error = error.expect("a refusal is an error");
    assert!(
        error.is_retryable(),
        "one that goes away by itself says so: {error}"
    );
    assert!(message.content.is_empty(), "nothing of a reply came");
}

async fn what_came_before_a_break_is_kept(fixture: &dyn ModelFixture) {
    let Some(model) = fixture.model(Wanted::BrokenOff).await else {
        return;
    };
    let (message, error) = read(&*model).await;
    let error = error.expect("a reply that breaks off is an error");
    assert!(
        error.is_retryable(),
        "a break may not happen again: {error}"
    );
    assert_eq!(message.text(), "Hel");
}

/// Reads two replies of one model in turns.
async fn two_requests_do_not_meet(fixture: &dyn ModelFixture) {
    let Some(model) = fixture.model(Wanted::Text).await else {
        return;
    };
    let mut streams = [model.stream(request()), model.stream(request())];
    let mut assemblers = [MessageAssembler::new(), MessageAssembler::new()];
    let mut messages = [None, None];
    while messages.iter().any(Option::is_none) {
        for n in 0..2 {
            if messages[n].is_none() {
                let event = within(streams[n].next())
                    .await
                    .expect("an end before the end");
                messages[n] = assemblers[n].push(event.expect("a good reply"));
            }
        }
    }
    for message in messages.into_iter().flatten() {
        assert_eq!(message.text(), "Hello.");
    }
}

async fn dropping_the_stream_ends_the_request(fixture: &dyn ModelFixture) {
    let Some(model) = fixture.model(Wanted::Silence).await else {
        return;
    };
    let mut stream = model.stream(request());
    let begun = async {
        // The model is asked once in any case.
        tokio::task::yield_now().await;
        while !fixture.request_has_begun().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        came = stream.next() => panic!("silence gives nothing, but there came {came:?}"),
        () = within(begun) => {}
    }
    drop(stream);
    let ended = async {
        while !fixture.request_has_ended().await {
            tokio::task::yield_now().await;
        }
    };
    within(ended).await;
}

fn request() -> ChatRequest {
    ChatRequest::new(History::from_iter([Message::user(
        "Hi",
        Timestamp::default(),
    )]))
}

/// Reads a reply to its end: the message, and the error if it ended in one.
async fn read(model: &dyn ChatModel) -> (AssistantMessage, Option<ModelError>) {
    let mut stream = model.stream(request());
    let mut assembler = MessageAssembler::new();
    let mut pieces = false;
    let end = loop {
        let event = within(stream.next()).await;
        match event.expect("a stream ends in a finish, a message or an error") {
            Ok(ChatEvent::Started(info)) => {
                // What has to go back with a message is known only at its end.
                let late = pieces && info.extra.is_empty();
                assert!(!late, "who answers is told before the answer");
                assembler.push(ChatEvent::Started(info));
            }
            Ok(event) => {
                pieces = true;
                if let Some(message) = assembler.push(event) {
                    break (message, None);
                }
            }
            Err(error) => {
                let said = Some(error.message.clone());
                break (assembler.broken_off(StopReason::Error, said), Some(error));
            }
        }
    };
    for _ in 0..3 {
        assert!(
            within(stream.next()).await.is_none(),
            "nothing comes after the end"
        );
    }
    end
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work)
        .await
        .expect("an end in time")
}
