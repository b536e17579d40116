//! Writing a request of 10, 100 and 1,000 messages of which one is new.
//!
//! Times: `cargo bench -p yiem-openai --bench request`. Instructions, which no load disturbs: one
//! length alone under a counter at two numbers of rounds, and the difference of the two. A round
//! is a turn whose last message is new.
//!
//! ```text
//! valgrind --tool=callgrind target/release/deps/request-… count 1000 100
//! ```

use std::sync::Arc;

use yiem_core::{
    AssistantContent, AssistantMessage, ChatRequest, Content, History, JsonObject, Memo, Message,
    ModelInfo, Timestamp, ToolCall, ToolResultMessage,
};
use yiem_openai::{Compat, RequestEncoder};

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, command, count, rounds, ..] = words.as_slice()
        && command == "count"
    {
        let number = |word: &str| word.parse::<usize>().expect("a number");
        return turns(number(count), number(rounds));
    }
    divan::main();
}

/// Turns of a conversation of that many messages, of which the last is new each time.
fn turns(count: usize, rounds: usize) {
    let encoder = RequestEncoder::new(&ModelInfo::new("m"), Arc::new(Compat::default()));
    let memo = Memo::new();
    let request = |messages: &History| ChatRequest {
        messages: messages.clone(),
        memo: memo.clone(),
        ..ChatRequest::default()
    };
    let before = conversation(count - 1);
    let _ = encoder.encode(&request(&before), true);
    for _ in 0..rounds {
        let mut full = before.clone();
        full.push(Message::user("and now?", Timestamp::default()));
        let encoded = encoder.encode(&request(&full), true);
        assert_eq!(encoded.written, 1);
        let _ = divan::black_box(encoded);
    }
}

fn message(n: usize) -> Message {
    let id = format!("call_{}", n / 2);
    if n.is_multiple_of(2) {
        let mut arguments = JsonObject::new();
        arguments.insert("a".to_owned(), n.into());
        let call = ToolCall::new(id, "add", arguments);
        AssistantMessage::new(vec![AssistantContent::ToolCall(call)], Timestamp::default()).into()
    } else {
        Message::ToolResult(ToolResultMessage {
            tool_call_id: id.into(),
            tool_name: "add".to_owned(),
            content: vec![Content::text(n.to_string())],
            ..ToolResultMessage::default()
        })
    }
}

fn conversation(count: usize) -> History {
    std::iter::once(Message::user("go", Timestamp::default()))
        .chain((0..count - 1).map(message))
        .collect()
}

/// All but the last message were written before.
#[divan::bench(args = [10, 100, 1_000])]
fn one_new(bencher: divan::Bencher<'_, '_>, count: usize) {
    let encoder = RequestEncoder::new(&ModelInfo::new("m"), Arc::new(Compat::default()));
    let full = conversation(count);
    let before = full.truncated(count - 1);
    bencher
        .with_inputs(|| {
            let memo = Memo::new();
            let request = |messages: &History| ChatRequest {
                messages: messages.clone(),
                memo: memo.clone(),
                ..ChatRequest::default()
            };
            let _ = encoder.encode(&request(&before), true);
            request(&full)
        })
        .bench_local_values(|request| encoder.encode(&request, true));
}

/// Nothing was written before.
#[divan::bench(args = [10, 100, 1_000])]
fn all_new(bencher: divan::Bencher<'_, '_>, count: usize) {
    let encoder = RequestEncoder::new(&ModelInfo::new("m"), Arc::new(Compat::default()));
    let messages = conversation(count);
    bencher
        .with_inputs(|| ChatRequest {
            messages: messages.clone(),
            ..ChatRequest::default()
        })
        .bench_local_values(|request| encoder.encode(&request, true));
}
