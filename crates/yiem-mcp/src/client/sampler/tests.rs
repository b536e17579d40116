//! What a server asks of a model, and what it is answered.

use super::*;
use std::sync::Mutex;
use yiem_core::{ChatEvent, ChatStream, ModelError, ModelInfo};

/// Answers with a fixed message, and remembers what it was asked.
struct Fixed {
    info: ModelInfo,
    answer: Option<AssistantMessage>,
    asked: Arc<Mutex<Vec<ChatRequest>>>,
}

impl ChatModel for Fixed {
    fn info(&self) -> &ModelInfo {
        &self.info
    }
    fn stream(&self, request: ChatRequest) -> ChatStream {
        self.asked.lock().unwrap().push(request);
        let event = match self.answer.clone() {
            Some(message) => Ok(ChatEvent::Message(Box::new(message))),
            None => Err(ModelError::new(
                yiem_core::ModelErrorKind::Auth,
                "key sk-secret is wrong",
            )),
        };
        ChatStream::new(futures_util::stream::iter([event]))
    }
}

fn said(text: &str, stop_reason: StopReason) -> AssistantMessage {
    let text = TextContent {
        text: text.into(),
        ..TextContent::default()
    };
    AssistantMessage {
        stop_reason,
        ..AssistantMessage::new(vec![AssistantContent::Text(text)], Timestamp::default())
    }
}

fn sampler(answer: Option<AssistantMessage>) -> (ModelSampler, Arc<Mutex<Vec<ChatRequest>>>) {
    let asked = Arc::default();
    let model = Fixed {
        info: ModelInfo {
            id: "small".into(),
            ..ModelInfo::default()
        },
        answer,
        asked: Arc::clone(&asked),
    };
    (ModelSampler::new(model), asked)
}

#[tokio::test]
async fn the_servers_messages_reach_the_model_and_its_answer_the_server() {
    let (sampler, asked) = sampler(Some(said("Paris", StopReason::EndTurn)));
    let params = json!({
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "Capital of France?"}},
            {"role": "assistant", "content": [{"type": "text", "text": "Let me think."}]},
            {"role": "user", "content": [{"type": "text", "text": "Well?"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]},
        ],
        "systemPrompt": "Be brief.", "maxTokens": 1_000_000, "temperature": 0.2, "stopSequences": ["END", 7],
        "modelPreferences": {"hints": [{"name": "huge"}]}, "includeContext": "allServers",
    });
    let answer = sampler.sample("s", params).await.expect("an answer");
    assert_eq!(
        answer,
        json!({"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "small", "stopReason": "endTurn"})
    );
    let asked = asked.lock().unwrap().pop().expect("asked");
    assert_eq!(asked.system.as_deref(), Some("Be brief."));
    assert_eq!(asked.messages.len(), 3);
    assert!(asked.tools.is_empty());
    assert_eq!(
        (asked.options.max_tokens, asked.options.temperature),
        (Some(4_096), Some(0.2)),
        "the server does not decide how much is spent"
    );
    assert_eq!(asked.options.stop, ["END"]);
    let last = asked
        .messages
        .last()
        .and_then(|last| last.as_user().cloned());
    assert!(matches!(
        last.expect("a user's").content[1],
        Content::Image(_)
    ));
}

#[tokio::test]
async fn how_it_ended_is_told_and_a_failure_tells_nothing_of_ours() {
    for (reason, told) in [
        (StopReason::Length, Some("maxTokens")),
        (StopReason::Other("odd".into()), Some("odd")),
        (StopReason::Error, None),
        (StopReason::ToolCalls, None),
    ] {
        let (sampler, _) = sampler(Some(said("x", reason)));
        let params = json!({"messages": [{"role": "user", "content": "bare text"}]});
        let answer = sampler.sample("s", params).await;
        assert_eq!(
            answer.ok().map(|answer| answer["stopReason"].clone()),
            told.map(Into::into)
        );
    }
    let (sampler, _) = sampler(None);
    let params = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}]});
    let error = sampler.sample("s", params).await.expect_err("it failed");
    assert!(!error.to_string().contains("sk-secret"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_and_the_model_not_asked() {
    let (sampler, asked) = sampler(Some(said("x", StopReason::EndTurn)));
    for params in [
        Value::Null,
        json!({"messages": "hello"}),
        json!({"messages": []}),
        json!({"messages": [{"role": "user"}]}),
        json!({"messages": [{"role": "system", "content": "x"}]}),
        json!({"messages": [7]}),
        json!({"messages": [{"role": "user", "content": "x"}], "tools": [{"name": "rm"}]}),
        json!({"messages": vec![json!({"role": "user", "content": "x"}); 1_001]}),
    ] {
        let refused = sampler
            .sample("s", params.clone())
            .await
            .expect_err("refused");
        assert_eq!(refused.code, INVALID_PARAMS, "{refused}");
    }
    assert!(asked.lock().unwrap().is_empty());
}
