//! Our models run the suite of all models.

use std::sync::{Arc, Mutex};

use serde_json::json;
use yiem_core::{BoxError, ChatModel, ModelError, ModelErrorKind, async_trait};
use yiem_openai::{OpenAiModel, llm_call};
use yiem_test::conformance::chat_model::{self, ModelFixture, Wanted};

use crate::server::{Answer, Reply, Server};

/// The HTTP model, streaming or whole.
struct Http {
    stream: bool,
    servers: Mutex<Vec<Arc<Server>>>,
}

fn chunk(delta: &serde_json::Value, finish: Option<&str>) -> String {
    let chunk =
        json!({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    format!("data: {chunk}\n\n")
}

fn reply(pieces: &[String]) -> Reply {
    Reply::ok(&pieces.iter().map(String::as_str).collect::<Vec<_>>())
}

fn whole(message: serde_json::Value, finish: &str) -> serde_json::Value {
    json!({"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
}

fn call() -> serde_json::Value {
    json!([{"index": 0, "id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}}])
}

fn answer(wanted: Wanted, stream: bool) -> Option<Answer> {
    let usage =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n"
            .to_owned();
    let done = "data: [DONE]\n\n".to_owned();
    let text = |text: &str| chunk(&json!({"content": text}), None);
    Some(match (wanted, stream) {
        (Wanted::Text, true) => {
            let end = chunk(&json!({}), Some("stop"));
            Answer::Whole(reply(&[text("Hel"), text("lo."), end, usage, done]))
        }
        (Wanted::Text, false) => {
            Answer::Whole(reply(&[
                whole(json!({"content": "Hello."}), "stop").to_string()
            ]))
        }
        (Wanted::Call, true) => {
            let calls = chunk(&json!({"tool_calls": call()}), Some("tool_calls"));
            Answer::Whole(reply(&[text("Let me see."), calls, usage, done]))
        }
        (Wanted::Call, false) => {
            let message = json!({"content": "Let me see.", "tool_calls": call()});
            Answer::Whole(reply(&[whole(message, "tool_calls").to_string()]))
        }
        (Wanted::Refusal, _) => Answer::Whole(Reply::error(429, "{\"error\":\"slow down\"}")),
        (Wanted::BrokenOff, true) => Answer::Broken(reply(&[text("Hel")])),
        (Wanted::Silence, _) => Answer::Silence,
        _ => return None,
    })
}

#[async_trait]
impl ModelFixture for Http {
    async fn model(&self, wanted: Wanted) -> Option<Arc<dyn ChatModel>> {
        let answer = answer(wanted, self.stream)?;
        let server = Arc::new(Server::start(vec![answer.clone(), answer]).await);
        let model = OpenAiModel::builder()
            .base_url(server.base_url())
            .stream(self.stream)
            .no_proxy()
            .build()
            .expect("a model");
        self.servers.lock().expect("servers").push(server);
        Some(Arc::new(model))
    }

    async fn request_has_begun(&self) -> bool {
        let server = self.servers.lock().expect("servers").last().cloned();
        server.is_some_and(|server| !server.asked().is_empty())
    }

    async fn request_has_ended(&self) -> bool {
        let server = self.servers.lock().expect("servers").last().cloned();
        server.is_some_and(|server| server.closed() > 0)
    }
}

#[tokio::test]
async fn the_http_model_keeps_the_promises_streaming() {
    chat_model::run(&Http {
        stream: true,
        servers: Mutex::default(),
    })
    .await;
}

#[tokio::test]
async fn the_http_model_keeps_the_promises_whole() {
    chat_model::run(&Http {
        stream: false,
        servers: Mutex::default(),
    })
    .await;
}

/// The closure of the seeds.
struct Json;

#[async_trait]
impl ModelFixture for Json {
    async fn model(&self, wanted: Wanted) -> Option<Arc<dyn ChatModel>> {
        Some(Arc::new(llm_call(move |_| async move {
            match wanted {
                Wanted::Text => Ok(json!({
                    "content": [{"type": "text", "text": "Hello."}],
                    "usage": {"inputTokens": 3, "outputTokens": 2},
                })),
                Wanted::Call => Ok(json!({"content": [
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_calls", "tool_calls": call()},
                ]})),
                Wanted::BrokenOff => Ok(json!(
                    "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n"
                )),
                Wanted::Silence => std::future::pending().await,
                _ => Err(BoxError::from(ModelError::new(
                    ModelErrorKind::RateLimit,
                    "slow down",
                ))),
            }
        })))
    }
}

#[tokio::test]
async fn the_closure_model_keeps_the_promises() {
    chat_model::run(&Json).await;
}
