//! server-everything: over stdio, Streamable HTTP and the older HTTP+SSE.

use super::{Heard, call, client, names, program, text};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use yiem_core::{CancelToken, Content};
use yiem_mcp::{
    CallOptions, Elicit, Elicitation, ElicitationAnswer, McpClient, McpErrorKind, McpServer,
    Reached, Root,
};
use yiem_tests::{RunningServer, Servers};

const SCRIPT: &str = "mcp-npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";

fn over_stdio(servers: &Servers) -> McpServer {
    program(
        servers,
        "mcp-npm/node_modules/.bin/mcp-server-everything",
        &["stdio"],
    )
}

fn over_http(servers: &Servers, mode: &str, port: u16) -> RunningServer {
    RunningServer::listening(
        servers.node(SCRIPT).arg(mode).env("PORT", port.to_string()),
        port,
    )
}

/// What every way to it has to do.
async fn is_used(client: &McpClient) {
    let tools = names(client).await;
    assert!(tools.iter().any(|name| name == "echo"), "{tools:?}");
    assert_eq!(
        text(&call(client, "echo", json!({"message": "höhö"})).await),
        "Echo: höhö"
    );
    let sum = call(client, "get-sum", json!({"a": 20, "b": 22})).await;
    assert!(text(&sum).contains("42"), "{sum:?}");
    let image = call(client, "get-tiny-image", json!({})).await;
    assert!(
        image
            .content
            .iter()
            .any(|block| matches!(block, Content::Image(_))),
        "{image:?}"
    );
    let structured = call(
        client,
        "get-structured-content",
        json!({"location": "Chicago"}),
    )
    .await;
    assert!(
        structured.structured.as_ref().is_some_and(Value::is_object),
        "{structured:?}"
    );
    let heard = Heard::new();
    let long = client.call(
        "trigger-long-running-operation",
        json!({"duration": 1, "steps": 4}),
        CallOptions::default().progress(Arc::clone(&heard) as _),
    );
    assert!(text(&long.await.unwrap()).contains("completed"));
    assert!(
        heard.count() >= 3,
        "progress was heard {} times",
        heard.count()
    );
    let cancel = CancelToken::new();
    let heard = Heard::new();
    let asked = client.call(
        "trigger-long-running-operation",
        json!({"duration": 60, "steps": 600}),
        CallOptions::default()
            .cancel(cancel.clone())
            .progress(Arc::clone(&heard) as _),
    );
    let (outcome, ()) = tokio::join!(asked, async {
        heard.something().await;
        cancel.cancel();
    });
    assert_eq!(*outcome.unwrap_err().kind(), McpErrorKind::Cancelled);
    assert_eq!(
        text(&call(client, "echo", json!({"message": "on"})).await),
        "Echo: on"
    );
}

#[tokio::test]
async fn everything_is_used_over_stdio() {
    let Some(servers) = yiem_tests::live("everything over stdio") else {
        return;
    };
    let client = client(over_stdio(&servers));
    is_used(&client).await;
    let resources = client.resources().await.unwrap();
    let uri = resources[0]["uri"].as_str().unwrap();
    assert!(
        !client
            .read_resource(uri, CallOptions::default())
            .await
            .unwrap()
            .is_empty()
    );
    assert!(!client.prompts().await.unwrap().is_empty());
    client.close().await;
}

#[tokio::test]
async fn everything_is_used_over_streamable_http_and_after_a_restart() {
    let Some(servers) = yiem_tests::live("everything over Streamable HTTP") else {
        return;
    };
    let port = RunningServer::free_port();
    let running = over_http(&servers, "streamableHttp", port);
    let client = client(McpServer::http(format!("http://127.0.0.1:{port}/mcp")));
    is_used(&client).await;
    drop(running);
    let _again = over_http(&servers, "streamableHttp", port);
    // A connection of before the restart may only be found dead by the call that is sent on it:
    // that call may have run, so it is told and not sent again. The next one goes through.
    let options = CallOptions::default;
    let arguments = json!({"message": "again"});
    let outcome = match client.call("echo", arguments.clone(), options()).await {
        Ok(outcome) => outcome,
        Err(lost) => {
            assert_eq!(lost.reached(), Reached::MaybeSent, "{lost}");
            call(&client, "echo", arguments).await
        }
    };
    assert_eq!(text(&outcome), "Echo: again");
}

#[tokio::test]
async fn everything_is_used_over_the_older_http_and_sse() {
    let Some(servers) = yiem_tests::live("everything over HTTP+SSE") else {
        return;
    };
    let port = RunningServer::free_port();
    let _running = over_http(&servers, "sse", port);
    let client = client(McpServer::http(format!("http://127.0.0.1:{port}/sse")));
    is_used(&client).await;
}

struct Person(ElicitationAnswer);

#[yiem_core::async_trait]
impl Elicit for Person {
    async fn elicit(&self, _: Elicitation) -> ElicitationAnswer {
        self.0.clone()
    }
}

#[tokio::test]
async fn an_elicitation_is_declined_and_accepted() {
    let Some(servers) = yiem_tests::live("everything: elicitation") else {
        return;
    };
    let mut name = Map::new();
    name.insert("name".into(), "Ada".into());
    for (answer, words) in [
        (ElicitationAnswer::Decline, "declined"),
        (ElicitationAnswer::Accept(name), "Ada"),
    ] {
        let server = over_stdio(&servers)
            .elicit(Arc::new(Person(answer)))
            .roots([Root {
                uri: "file:///tmp".into(),
                name: Some("tmp".into()),
            }]);
        let client = client(server);
        let tools = names(&client).await;
        assert!(
            tools
                .iter()
                .any(|name| name == "trigger-elicitation-request"),
            "{tools:?}"
        );
        let outcome = call(&client, "trigger-elicitation-request", json!({})).await;
        let all: Vec<String> = outcome.content.iter().map(Content::to_plain_text).collect();
        assert!(all.join("\n").contains(words), "{all:?}");
        let roots = call(&client, "get-roots-list", json!({})).await;
        assert!(text(&roots).contains("file:///tmp"), "{roots:?}");
    }
}
