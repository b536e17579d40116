//! A model for examples: it makes the calls that it is given and says what came of them.

use yiem::prelude::*;
use yiem::{AssistantContent, ModelError, StopReason, Timestamp, ToolCall};

/// Makes these calls in its first reply; when their results are there, says them.
pub(crate) fn calling(calls: Vec<(&'static str, serde_json::Value)>) -> impl ChatModel {
    model_fn("offline", move |request: ChatRequest| {
        let calls = calls.clone();
        async move {
            let results: Vec<String> = request
                .messages
                .iter()
                .filter_map(|m| {
                    m.as_tool_result()
                        .map(|r| format!("{}: {}", r.tool_name, r.text()))
                })
                .collect();
            let blocks = if results.is_empty() {
                let call = |(n, (name, args)): (usize, &(&str, serde_json::Value))| {
                    let id = format!("call_{n}");
                    AssistantContent::ToolCall(ToolCall::new(id, *name, args.clone()))
                };
                calls.iter().enumerate().map(call).collect()
            } else {
                vec![AssistantContent::text(results.join("\n"))]
            };
            let mut reply = AssistantMessage::new(blocks, Timestamp::default());
            if results.is_empty() {
                reply.stop_reason = StopReason::ToolCalls;
            }
            Ok::<_, ModelError>(reply)
        }
    })
}
