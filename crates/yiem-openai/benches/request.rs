//! Writing a request of 10, 100 and 1,000 messages of which one is new.
//!
//! `cargo bench -p yiem-openai --bench request`

use std::sync::Arc;

use yiem_core::{
    AssistantContent, AssistantMessage, ChatRequest, Content, History, JsonObject, Memo, Message,
    ModelInfo, Timestamp, ToolCall, ToolResultMessage,
};
use yiem_openai::{Compat, RequestEncoder};

fn main() {
    divan::main();
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
