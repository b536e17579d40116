//! Every case of a reply, served over loopback with its status, headers and pieces, gives the
//! HTTP model what `wire decode` gives.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use yiem_core::{
    BoxFuture, ChatModel, ChatOptions, ChatRequest, Env, History, IdKind, Message,
    MessageAssembler, StopReason, SystemEnv, Timestamp, ToolDefinition,
};
use yiem_openai::RecordedReply;
use yiem_openai::case::Decoded;
use yiem_openai::{Asked, Compat, OpenAiModel};

use crate::server::{Answer, Reply, Server};

#[tokio::test]
async fn every_reply_case_is_read_the_same_over_http() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let entries = ["cases", "neighbours"]
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(fixtures.join(folder)).expect("the cases"));
    let env: Arc<dyn Env> = SystemEnv::shared();
    let mut count = 0;
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a case");
        let Ok(reply) = RecordedReply::from_case(&text) else {
            continue;
        };
        let case: Value = serde_json::from_str(&text).expect("JSON");
        let direct = plain(serde_json::to_value(reply.decode(&env)).expect("JSON"));
        let served = plain(serve(&reply, &case).await);
        assert_eq!(served, direct, "{}", path.display());
        count += 1;
    }
    assert!(count >= 900, "{count} cases");
}

/// The system's clock and ids, with the time of day that a case names.
#[derive(Debug)]
struct At(Option<Timestamp>);

impl Env for At {
    fn now(&self) -> Timestamp {
        self.0.unwrap_or_else(|| SystemEnv::shared().now())
    }

    fn elapsed(&self) -> Duration {
        SystemEnv::shared().elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        SystemEnv::shared().sleep(duration)
    }

    fn new_id(&self, kind: IdKind) -> String {
        SystemEnv::shared().new_id(kind)
    }

    fn random(&self) -> f64 {
        SystemEnv::shared().random()
    }
}

/// Ids that the reader makes differ each time, and the HTTP model adds what to do.
fn plain(mut decoded: Value) -> Value {
    for call in decoded["tool_calls"].as_array_mut().into_iter().flatten() {
        if call["id"]
            .as_str()
            .is_some_and(|id| id.starts_with("call_0"))
        {
            call["id"] = Value::from("made");
        }
    }
    if !decoded["error"].is_null() {
        // The counts of a failed reply are the decoder's to tell; the model's stream ends in
        // the error.
        decoded["usage"] = Value::Null;
    }
    if let Some(message) = decoded["error_message"].as_str() {
        let head = message
            .split("; check")
            .next()
            .unwrap_or_default()
            .to_owned();
        decoded["error_message"] = Value::from(head);
    }
    decoded
}

async fn serve(reply: &RecordedReply, case: &Value) -> Value {
    let told = Reply {
        status: reply.status,
        headers: reply.headers.clone(),
        pieces: reply.pieces.clone(),
    };
    let server = Server::start(vec![Answer::Whole(told)]).await;
    let flag = |name: &str| case["options"][name] == Value::Bool(true);
    let mut compat = Compat::default();
    compat.recover_leaked_calls = flag("recover_leaked_calls");
    compat.think_open_implied = flag("think_open_implied");
    let model = OpenAiModel::builder()
        .base_url(server.base_url())
        .compat(compat)
        .env(Arc::new(At(reply.now)))
        .no_proxy()
        .build()
        .expect("a model");
    let tools: Vec<Arc<ToolDefinition>> = case["options"]["offered_tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|name| {
            Arc::new(ToolDefinition {
                name: name.to_owned(),
                ..ToolDefinition::default()
            })
        })
        .collect();
    let request = ChatRequest {
        messages: History::from_iter([Message::user("Go", Timestamp::default())]),
        tools: tools.into(),
        options: Arc::new(ChatOptions {
            stream: Some(reply.asked == Asked::Stream),
            ..ChatOptions::default()
        }),
        ..ChatRequest::default()
    };
    let mut stream = model.stream(request);
    let mut assembler = MessageAssembler::new();
    let mut message = None;
    let mut error = None;
    while let Some(event) = stream.next().await {
        assert!(
            message.is_none() && error.is_none(),
            "nothing comes after the end"
        );
        match event {
            Ok(event) => message = assembler.push(event),
            Err(failed) => error = Some(failed),
        }
    }
    let message = match message {
        Some(message) => message,
        None => assembler.broken_off(StopReason::Error, None),
    };
    serde_json::to_value(Decoded::new(&message, error.as_ref())).expect("JSON")
}
