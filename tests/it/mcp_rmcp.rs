//! An independent peer: a server on rmcp, spoken to in both eras, alone and through a whole agent run.

use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use yiem::mcp::{
    CallOptions, CallOutcome, DialectChoice, McpClient, McpError, McpErrorKind, McpServer,
};
use yiem::tools::Discovery;
use yiem::{Agent, CancelToken, Message, ProgressSink, async_trait};
use yiem_test::{ManualEnv, Reply, ScriptedModel};

fn server() -> McpServer {
    let nothing: [&str; 0] = [];
    McpServer::stdio(env!("CARGO_BIN_EXE_rmcp-server"), nothing).name("peer")
}

async fn call(
    client: &McpClient,
    tool: &str,
    arguments: Value,
    options: CallOptions,
) -> Result<CallOutcome, McpError> {
    tokio::time::timeout(
        Duration::from_secs(100),
        client.call(tool, arguments, options),
    )
    .await
    .expect("it ends")
}

#[derive(Default)]
struct Heard(Mutex<Vec<Value>>);

#[async_trait]
impl ProgressSink for Heard {
    async fn send(&self, partial: Value) {
        self.offer(partial);
    }
    fn offer(&self, partial: Value) {
        self.0.lock().unwrap().push(partial["message"].clone());
    }
}

#[tokio::test]
async fn a_server_on_rmcp_is_listed_and_called_in_both_eras() {
    for (choice, era) in [
        (DialectChoice::Detect, None),
        (DialectChoice::Legacy, Some(false)),
        (DialectChoice::Modern, Some(true)),
    ] {
        let env = ManualEnv::new();
        let client = McpClient::new(server().dialect(choice), env.shared()).unwrap();
        let listing = client.tools().await.unwrap();
        let names: Vec<&str> = listing.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(
            names,
            ["add", "count", "wait", "cancelled", "fail", "refuse"]
        );
        assert!(
            listing.rejected.is_empty() && listing.warnings.is_empty(),
            "{listing:?}"
        );
        let modern = client.dialect().unwrap().is_modern();
        assert!(era.is_none_or(|era| era == modern), "{choice:?}");

        let sum = call(
            &client,
            "add",
            json!({"a": 20, "b": 22}),
            CallOptions::default(),
        )
        .await;
        assert_eq!(sum.unwrap().structured, Some(json!({"sum": 42})));
        let heard = Arc::new(Heard::default());
        let options = CallOptions::default().progress(Arc::clone(&heard) as _);
        call(&client, "count", json!({"steps": 3}), options)
            .await
            .unwrap();
        assert_eq!(*heard.0.lock().unwrap(), ["step 1", "step 2", "step 3"]);
        let failed = call(&client, "fail", json!({}), CallOptions::default())
            .await
            .unwrap();
        assert!(failed.is_error);
        let refused = call(&client, "refuse", json!({}), CallOptions::default())
            .await
            .unwrap_err();
        let refusal = refused.refusal().expect("a refusal");
        assert_eq!(
            (refusal.code, &refusal.data),
            (-32602, &Some(json!({"field": "x"})))
        );

        // Given up, by a token and by a deadline: the server hears of it and goes on.
        let cancel = CancelToken::new();
        let options = CallOptions::default().cancel(cancel.clone());
        let waiting = call(&client, "wait", json!({}), options);
        let stop = async {
            call(&client, "cancelled", json!({}), CallOptions::default())
                .await
                .unwrap();
            cancel.cancel();
        };
        let (waited, ()) = tokio::join!(waiting, stop);
        assert_eq!(waited.unwrap_err().kind(), &McpErrorKind::Cancelled);
        let options = CallOptions::default().timeout(Duration::from_millis(100));
        let waiting = call(&client, "wait", json!({}), options);
        let late = async {
            call(&client, "cancelled", json!({}), CallOptions::default())
                .await
                .unwrap();
            env.advance(Duration::from_millis(100));
        };
        let (waited, ()) = tokio::join!(waiting, late);
        let waited = waited.unwrap_err();
        assert!(
            matches!(waited.kind(), McpErrorKind::TimedOut { .. }),
            "{waited}"
        );
        let both = async {
            loop {
                let told = call(&client, "cancelled", json!({}), CallOptions::default()).await;
                if told.unwrap().content[0].to_plain_text() == "2" {
                    break;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(100), both)
            .await
            .unwrap_or_else(|_| panic!("{choice:?}: both were told"));
        client.close().await;
    }
}

#[tokio::test]
async fn an_agent_uses_a_server_on_rmcp() {
    let model = ScriptedModel::new([
        Reply::call("add", json!({"a": "20", "b": 22})),
        Reply::call("add", json!({"a": "many", "b": 1})),
        Reply::say("done"),
    ]);
    let agent = Agent::builder(model)
        .mcp(server().required(true))
        .discovery(Discovery::Eager)
        .build()
        .unwrap();
    let outcome = tokio::time::timeout(Duration::from_secs(100), agent.prompt("go")).await;
    let outcome = outcome.expect("it ends").unwrap();
    let results: Vec<(String, bool)> = outcome
        .messages()
        .filter_map(|message| match &**message {
            Message::ToolResult(result) => {
                Some((result.content[0].to_plain_text(), result.is_error))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        results[0],
        (r#"{"sum":42}"#.to_owned(), false),
        "coerced, and shown once"
    );
    assert!(results[1].1 && results[1].0.contains('a'), "{results:?}");
    assert_eq!(outcome.text(), "done");
}
