//! What goes to the caller, and when.

use super::*;
use crate::client::HandOn as _;
use crate::gateway::callers::Callers;
use crate::responder::{Caller, Responder};
use async_trait::async_trait;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::sync::Notify;
use yiem_core::SystemEnv;

/// Answers the handshake when it may; asks its caller in every call.
#[derive(Default)]
struct Backend {
    begun: Notify,
    may: Notify,
}

#[async_trait]
impl Responder for Backend {
    async fn respond(
        &self,
        name: &str,
        _: Map<String, Value>,
        caller: Caller,
    ) -> Result<Value, JsonRpcError> {
        match name {
            method::INITIALIZE => {
                self.begun.notify_one();
                self.may.notified().await;
                Ok(json!({"protocolVersion": "2025-06-18"}))
            }
            _ => caller.ask("roots/list", json!({})).await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_or_asked_before_the_handshake_was_answered() {
    let backend = Arc::new(Backend::default());
    let env = SystemEnv::shared();
    let core = Arc::new(Core::new(
        Arc::clone(&backend) as _,
        Arc::new(Callers::new(Arc::clone(&env))),
        env,
        4,
        Duration::from_secs(60),
    ));
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    let (told, mut input_end) = tokio::io::split(ours);
    let mut told = BufReader::new(told).lines();
    let stop = CancelToken::new();
    let mut gateway = JoinSet::new();
    gateway.spawn(serve(
        Pipes::new(input, output),
        Arc::clone(&core),
        stop.clone(),
    ));
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"capabilities": {"roots": {}}}});
    let call = |id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call"});
    let both = format!("{open}\n{}\n", call(2));
    input_end.write_all(both.as_bytes()).await.expect("said");
    backend.begun.notified().await;
    core.callers.tell(method::TOOLS_CHANGED, json!({}));
    assert!(core.callers.whom().is_none(), "it cannot be asked yet");

    let mut hear = async || -> Value {
        let line = told.next_line().await.expect("read").expect("a line");
        serde_json::from_str(&line).expect("JSON")
    };
    let refused = hear().await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(2), &json!(-32601))
    );
    backend.may.notify_one();
    assert_eq!(hear().await["id"], 1);
    let later = format!("{}\n", call(3));
    input_end.write_all(later.as_bytes()).await.expect("said");
    let question = hear().await;
    assert_eq!(question["method"], "roots/list", "{question}");
    assert!(core.callers.whom().is_some());
    core.callers.tell(method::PROMPTS_CHANGED, json!({}));
    let change = hear().await;
    assert_eq!(change["method"], method::PROMPTS_CHANGED, "{change}");
    stop.cancel();
    core.cut_off();
    gateway.join_next().await.expect("one").expect("it ended");
}
