//! A reply that was read goes into the history, and the next request is one that a strict server
//! takes (O-2), the same each time, with the arguments as they came.

use std::sync::Arc;

use serde_json::Value;
use yiem_core::{
    ChatRequest, Content, History, Memo, Message, ModelInfo, Timestamp, ToolDefinition,
    ToolResultMessage,
};
use yiem_openai::{Compat, Preset, RequestEncoder};

use super::reply::Reading;
use super::strict::refusal;

/// Any reply: the preset, which results there are, flags, then the body.
pub fn round_trip(data: &[u8]) {
    let Some((&[preset, answered, flags], body)) = data.split_first_chunk::<3>() else {
        return;
    };
    let (reply, error) = Reading::by(flags).read([body]);
    let calls: Vec<_> = reply.tool_calls().cloned().collect();
    let mut messages = vec![Message::user("Go", Timestamp::default())];
    messages.push(reply.clone().into());
    for (n, call) in calls.iter().enumerate() {
        if answered & (1 << (n % 8)) == 0 {
            messages.push(Message::ToolResult(ToolResultMessage {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                content: vec![Content::text("ok")],
                ..ToolResultMessage::default()
            }));
        }
    }
    messages.push(Message::user("And now?", Timestamp::default()));

    let compat = match usize::from(preset) % (Preset::ALL.len() + 2) {
        0 => Compat::default(),
        1 => Compat::blocks(),
        n => Preset::ALL[n - 2].1.compat(),
    };
    let encoder = RequestEncoder::new(&ModelInfo::new("m"), Arc::new(compat.clone()));
    let memo = Memo::new();
    let request = |messages: &[Message], memo: &Memo| ChatRequest {
        messages: messages.iter().cloned().collect::<History>(),
        tools: vec![Arc::new(ToolDefinition {
            name: "get_weather".to_owned(),
            ..ToolDefinition::default()
        })]
        .into(),
        memo: memo.clone(),
        ..ChatRequest::default()
    };
    // The turn before, so that the second request is made of remembered bytes.
    let before = encoder.encode(&request(&messages[..messages.len() - 1], &memo), true);
    drop(before);
    let again = encoder.encode(&request(&messages, &memo), true).body;
    let written = encoder.encode(&request(&messages, &Memo::new()), true).body;
    assert_eq!(written, again, "remembered bytes differ");
    let body: Value = serde_json::from_slice(&written).expect("a request is JSON");
    if let Some(refusal) = refusal(&body, &compat) {
        panic!("{refusal}: {body:#}");
    }
    let sent: Vec<&Value> = body["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|message| message["tool_calls"].as_array())
        .flatten()
        .collect();
    if error.is_some() {
        assert!(sent.is_empty(), "a broken reply was sent back");
        return;
    }
    assert_eq!(sent.len(), calls.len(), "calls were lost on the way back");
    for (sent, call) in sent.iter().zip(&calls) {
        if call.arguments().is_some() {
            let raw = call.arguments.raw();
            assert_eq!(
                sent["function"]["arguments"], *raw,
                "other arguments went back"
            );
        }
    }
}
