//! Servers as the seeds have them, and the plain binding: lists, calls, progress, subjects.

use super::broker::{Broker, responder};
use super::{Heard, client, echo, text, until, within};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use yiem_core::{CancelToken, SystemEnv};
use yiem_mcp::{CallOptions, McpErrorKind, McpServer, McpToolSource};

/// `tools/list` and `tools/call` as the seeds' agents make them, to servers that build the envelope by hand.
#[tokio::test]
async fn the_seeds_envelope_is_spoken_with_servers_that_build_it_by_hand() {
    let Some(servers) = yiem_tests::live("nats: the seeds' envelope") else {
        return;
    };
    let broker = Broker::start(&servers);
    for mode in ["seeds", "seeds-object", "seeds-text"] {
        let _server = responder(&servers, &broker, mode, mode).await;
        let client = client(&broker.url(&format!("{mode}?codec=envelope&sender_id=agent-1")));
        let listing = client
            .tools()
            .await
            .unwrap_or_else(|error| panic!("{mode}: {error}"));
        let labels: Vec<&str> = listing
            .tools
            .iter()
            .map(|tool| tool.label.as_str())
            .collect();
        assert_eq!(
            labels,
            ["Echo (label)", "Add"],
            "{mode}: both pages, the empty cursor ends"
        );
        let outcome = client
            .call("add", json!({"a": 40, "b": 2}), CallOptions::default())
            .await;
        assert_eq!(
            text(&outcome.unwrap_or_else(|error| panic!("{mode}: {error}"))),
            "42",
            "{mode}"
        );
        assert_eq!(
            echo(&client, "grüße 🚀").await.expect("an answer"),
            "grüße 🚀",
            "{mode}"
        );
    }
}

#[tokio::test]
async fn plain_bodies_are_the_default() {
    let Some(servers) = yiem_tests::live("nats: plain bodies") else {
        return;
    };
    let broker = Broker::start(&servers);
    let _server = responder(&servers, &broker, "mcp.plain", "plain").await;
    let client = client(&broker.url("mcp.plain"));
    assert_eq!(client.tools().await.expect("a list").tools.len(), 2);
    assert_eq!(echo(&client, "hello").await.expect("an answer"), "hello");
}

#[tokio::test]
async fn each_method_can_have_its_own_subject() {
    let Some(servers) = yiem_tests::live("nats: subjects by method") else {
        return;
    };
    let broker = Broker::start(&servers);
    let _server = responder(&servers, &broker, "acme.v1.server.weather", "method").await;
    let client = client(&broker.url("acme.weather?subjects=method"));
    assert_eq!(
        echo(&client, "hi").await.expect("an answer"),
        "acme.v1.server.weather.tools.call: hi"
    );
}

#[tokio::test]
async fn progress_comes_on_the_reply_inbox_before_the_answer() {
    let Some(servers) = yiem_tests::live("nats: progress") else {
        return;
    };
    let broker = Broker::start(&servers);
    let _server = responder(&servers, &broker, "mcp.progress", "progress").await;
    let client = client(&broker.url("mcp.progress?meta=modern"));
    let heard = Arc::new(Heard::default());
    let options = within(10).progress(Arc::clone(&heard) as _);
    let outcome = client
        .call("echo", json!({"text": "done"}), options)
        .await
        .expect("an answer");
    assert_eq!(text(&outcome), "done");
    let steps: Vec<_> = heard
        .all()
        .iter()
        .map(|note| note["progress"].clone())
        .collect();
    assert_eq!(steps, [1, 2, 3]);
}

#[tokio::test]
async fn a_given_up_request_is_cancelled_on_its_subject_with_its_own_reply_subject() {
    let Some(servers) = yiem_tests::live("nats: cancellation") else {
        return;
    };
    let broker = Broker::start(&servers);
    let server = responder(&servers, &broker, "mcp.never", "plain").await;
    drop(server);
    let server = responder(&servers, &broker, "mcp.never", "never").await;
    // Modern without asking first: the server never answers anything.
    let client = client(&broker.url("mcp.never?meta=none"));
    let cancel = CancelToken::new();
    let options = CallOptions::default().cancel(cancel.clone());
    let call = client.call("echo", json!({}), options);
    let stop = async {
        until("the server was asked", || {
            server.last_lines().contains("asked tools/call")
        })
        .await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(call, stop);
    assert_eq!(
        outcome.expect_err("cancelled").kind(),
        &McpErrorKind::Cancelled
    );
    // The bare dialect has no word for it. It would have come before what is asked next.
    let next = client.call("echo", json!({}), CallOptions::default());
    let asked = until("the server was asked again", || {
        server.last_lines().matches("asked tools/call").count() == 2
    });
    tokio::select! {
        outcome = next => panic!("an answer: {outcome:?}"),
        () = asked => {}
    }
    assert!(
        !server.last_lines().contains("cancelled"),
        "{}",
        server.last_lines()
    );
}

#[tokio::test]
async fn in_the_modern_dialect_the_server_hears_of_the_cancellation() {
    let Some(servers) = yiem_tests::live("nats: modern cancellation") else {
        return;
    };
    let broker = Broker::start(&servers);
    let server = responder(&servers, &broker, "mcp.slow", "slow").await;
    let client = client(&broker.url("mcp.slow?meta=modern"));
    let outcome = client
        .call(
            "echo",
            json!({"ms": 60_000}),
            CallOptions::default().timeout(Duration::from_millis(700)),
        )
        .await;
    assert!(matches!(
        outcome.expect_err("no answer").kind(),
        McpErrorKind::TimedOut { .. }
    ));
    until("the server hears of it", || {
        server.last_lines().contains("cancelled")
    })
    .await;
    assert!(
        server.last_lines().contains("reply _INBOX."),
        "{}",
        server.last_lines()
    );
}

#[tokio::test]
async fn an_agents_tools_come_from_a_server_on_nats() {
    let Some(servers) = yiem_tests::live("nats: tool source") else {
        return;
    };
    use yiem_core::ToolSource as _;
    let broker = Broker::start(&servers);
    let _server = responder(&servers, &broker, "mcp.plain", "seeds").await;
    let server = McpServer::from_spec(&format!(
        "weather={}?codec=envelope",
        broker.url("mcp.plain")
    ))
    .expect("a good SPEC");
    let source = McpToolSource::new(server, SystemEnv::shared()).expect("a good server");
    assert_eq!(source.name(), "weather");
    let loaded = source.load(&CancelToken::new()).await.expect("tools");
    let names: Vec<&str> = loaded
        .tools
        .iter()
        .map(|tool| tool.definition().name.as_str())
        .collect();
    assert_eq!(names, ["echo", "add"]);
}
