//! What can go wrong on NATS: each fault with its typed error and its time.

use super::broker::{Broker, responder};
use super::{client, client_of, echo, text, until, within};
use serde_json::json;
use std::time::{Duration, Instant};
use yiem_mcp::{CallOptions, McpError, McpErrorKind, NatsCodec, NatsConfig, Reached};

#[expect(clippy::disallowed_methods, reason = "a test that measures time")]
fn clock() -> Instant {
    Instant::now()
}

fn timed_out(error: &McpError) -> bool {
    matches!(error.kind(), McpErrorKind::TimedOut { .. })
}

/// What is told at once is told before this, on the slowest machine: far from any time for silence.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn nobody_on_the_subject_is_told_at_once_and_again_and_again() {
    let Some(servers) = yiem_tests::live("nats: no responder") else {
        return;
    };
    let broker = Broker::start(&servers);
    let client = client(&broker.url("mcp.nobody"));
    client.connect().await.expect("the broker is there");
    // A second and a tenth time as well: no backoff stands between the caller and the news.
    for _ in 0..10 {
        let begun = clock();
        let error = echo(&client, "x").await.expect_err("nobody");
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        assert!(matches!(error.kind(), McpErrorKind::NoServer(_)), "{error}");
        assert!(
            error.to_string().contains("no server on mcp.nobody"),
            "{error}"
        );
        assert_eq!(
            (error.reached(), error.is_retryable()),
            (Reached::NotSent, true)
        );
    }
    // One that comes later is found.
    let _server = responder(&servers, &broker, "mcp.nobody", "plain").await;
    assert_eq!(echo(&client, "now").await.expect("an answer"), "now");
}

#[tokio::test]
async fn no_broker_is_told_with_its_address() {
    let Some(_) = yiem_tests::live("nats: no broker") else {
        return;
    };
    let port = yiem_tests::RunningServer::free_port();
    let client = client(&format!("nats://127.0.0.1:{port}/mcp.w"));
    let begun = clock();
    let error = echo(&client, "x").await.expect_err("no broker");
    assert!(begun.elapsed() < SOON);
    assert!(
        matches!(error.kind(), McpErrorKind::Unreachable(_)),
        "{error}"
    );
    assert!(
        error.to_string().contains(&format!("127.0.0.1:{port}")),
        "{error}"
    );
}

#[tokio::test]
async fn a_slow_responder_is_a_timeout_at_the_deadline() {
    let Some(servers) = yiem_tests::live("nats: slow responder") else {
        return;
    };
    let broker = Broker::start(&servers);
    let _server = responder(&servers, &broker, "mcp.slow", "slow").await;
    let client = client(&broker.url("mcp.slow"));
    let begun = clock();
    let error = client
        .call("echo", json!({"ms": 30_000}), within(1))
        .await
        .expect_err("too slow");
    let waited = begun.elapsed();
    assert!(
        waited >= Duration::from_secs(1) && waited < SOON,
        "{waited:?}"
    );
    assert!(timed_out(&error), "{error}");
    assert_eq!(error.reached(), Reached::MaybeSent);
    assert!(
        !error.to_string().contains("connection"),
        "a healthy connection explains nothing: {error}"
    );
    let quick = client
        .call("echo", json!({"ms": 1, "text": "quick"}), within(10))
        .await;
    assert_eq!(text(&quick.expect("an answer")), "quick");
}

#[tokio::test]
async fn a_responder_killed_in_mid_request_is_a_timeout_and_then_nobody() {
    let Some(servers) = yiem_tests::live("nats: responder killed") else {
        return;
    };
    let broker = Broker::start(&servers);
    let server = responder(&servers, &broker, "mcp.slow", "slow").await;
    let client = client(&broker.url("mcp.slow"));
    let begun = clock();
    let call = client.call("echo", json!({"ms": 60_000}), within(8));
    let kill = async {
        until("it was asked", || {
            server.last_lines().contains("asked tools/call")
        })
        .await;
        drop(server);
    };
    let (outcome, ()) = tokio::join!(call, kill);
    let error = outcome.expect_err("killed");
    assert!(
        timed_out(&error) && begun.elapsed() < Duration::from_secs(8) + SOON,
        "{error}"
    );
    let error = echo(&client, "x").await.expect_err("nobody");
    assert!(matches!(error.kind(), McpErrorKind::NoServer(_)), "{error}");
}

#[tokio::test]
async fn a_broker_that_is_back_within_the_deadline_costs_no_call() {
    let Some(servers) = yiem_tests::live("nats: broker back in time") else {
        return;
    };
    let mut broker = Broker::start(&servers);
    let server = responder(&servers, &broker, "mcp.slow", "slow").await;
    let client = client(&broker.url("mcp.slow"));
    assert_eq!(echo_slow(&client, 1).await.expect("an answer"), "late");
    let call = client.call("echo", json!({"ms": 3_000, "text": "late"}), within(30));
    let bounce = async {
        until("it was asked", || {
            server.last_lines().matches("asked tools/call").count() == 2
        })
        .await;
        broker.down();
        broker.up();
    };
    let (outcome, ()) = tokio::join!(call, bounce);
    // The responder answers after the broker is back; our inbox is subscribed again by then.
    assert_eq!(text(&outcome.expect("the answer came through")), "late");
}

async fn echo_slow(client: &yiem_mcp::McpClient, ms: u64) -> Result<String, McpError> {
    let outcome = client
        .call("echo", json!({"ms": ms, "text": "late"}), within(10))
        .await?;
    Ok(text(&outcome).to_owned())
}

#[tokio::test]
async fn a_broker_that_stays_away_is_a_timeout_with_the_connections_own_error() {
    let Some(servers) = yiem_tests::live("nats: broker gone") else {
        return;
    };
    let mut broker = Broker::start(&servers);
    let server = responder(&servers, &broker, "mcp.slow", "slow").await;
    let client = client(&broker.url("mcp.slow"));
    let begun = clock();
    let call = client.call("echo", json!({"ms": 60_000}), within(8));
    let kill = async {
        until("it was asked", || {
            server.last_lines().contains("asked tools/call")
        })
        .await;
        broker.down();
    };
    let (outcome, ()) = tokio::join!(call, kill);
    let error = outcome.expect_err("the broker is gone");
    let waited = begun.elapsed();
    assert!(
        timed_out(&error)
            && waited >= Duration::from_secs(8)
            && waited < Duration::from_secs(8) + SOON,
        "{error} {waited:?}"
    );
    let words = error.to_string();
    assert!(
        words.contains("is lost and not yet back") && words.contains(&broker.port.to_string()),
        "{words}"
    );

    // A request that is made meanwhile waits for the broker, within its own deadline.
    let begun = clock();
    let error = client
        .call("echo", json!({}), within(1))
        .await
        .expect_err("still gone");
    assert!(timed_out(&error) && begun.elapsed() < SOON, "{error}");
    assert!(error.to_string().contains("not yet back"), "{error}");

    // After the deadline: the broker is back, and so is everything else.
    broker.up();
    drop(server);
    let _server = responder(&servers, &broker, "mcp.slow", "plain").await;
    until_answered(&client).await;
}

async fn until_answered(client: &yiem_mcp::McpClient) {
    for _ in 0..50 {
        if client
            .call("echo", json!({"text": "back"}), within(5))
            .await
            .is_ok()
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the server never answered again");
}

#[tokio::test]
async fn after_a_reconnect_nobody_is_believed_only_the_second_time() {
    let Some(servers) = yiem_tests::live("nats: no responder after a reconnect") else {
        return;
    };
    let mut broker = Broker::start(&servers);
    let client = client(&broker.url("mcp.w"));
    {
        let _server = responder(&servers, &broker, "mcp.w", "plain").await;
        assert_eq!(echo(&client, "before").await.expect("an answer"), "before");
    }
    broker.down();
    noticed().await;
    // Made while there is no broker; the server is back a while after the broker.
    let call = client.call("echo", json!({"text": "after"}), within(30));
    let back = async {
        broker.up();
        tokio::time::sleep(Duration::from_millis(300)).await;
        responder(&servers, &broker, "mcp.w", "plain").await
    };
    let (outcome, server) = tokio::join!(call, back);
    assert_eq!(text(&outcome.expect("the second try found it")), "after");
    drop(server);
    // Nobody comes back: told after the second try, well before any deadline.
    broker.down();
    noticed().await;
    let begun = clock();
    let call = client.call("echo", json!({}), within(60));
    let (outcome, ()) = tokio::join!(call, async { broker.up() });
    let error = outcome.expect_err("nobody");
    assert!(matches!(error.kind(), McpErrorKind::NoServer(_)), "{error}");
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

/// Long enough for the client to see that the connection is gone: what is written before that may be lost
/// with it, and is a timeout.
async fn noticed() {
    tokio::time::sleep(Duration::from_secs(2)).await;
}

#[tokio::test]
async fn an_oversize_request_is_refused_here_with_both_sizes() {
    let Some(servers) = yiem_tests::live("nats: oversize request") else {
        return;
    };
    let broker = Broker::with_config(&servers, "max_payload: 65536");
    let _server = responder(&servers, &broker, "mcp.w", "seeds").await;
    for codec in [NatsCodec::Plain, NatsCodec::envelope()] {
        let client =
            client_of(NatsConfig::new([broker.address()], "mcp.w").with_codec(codec.clone()));
        let begun = clock();
        let error = echo(&client, &"x".repeat(70_000))
            .await
            .expect_err("too large");
        assert!(begun.elapsed() < SOON);
        let McpErrorKind::TooLarge { what, size, limit } = error.kind() else {
            panic!("{error}")
        };
        assert_eq!((what.as_str(), *limit), ("the request", 65_536));
        assert!(*size > 70_000, "{size}");
        assert_eq!(error.reached(), Reached::NotSent);
        assert!(error.to_string().contains("max_payload"), "{error}");
    }
    let client = client(&broker.url("mcp.w?codec=envelope"));
    assert_eq!(echo(&client, "small").await.expect("an answer"), "small");
}

#[tokio::test]
async fn an_answer_that_cannot_be_sent_is_a_timeout_and_costs_only_itself() {
    let Some(servers) = yiem_tests::live("nats: oversize answer") else {
        return;
    };
    let broker = Broker::start(&servers);
    let server = responder(&servers, &broker, "mcp.huge", "huge").await;
    let client = client(&broker.url("mcp.huge"));
    let error = client
        .call("echo", json!({}), within(2))
        .await
        .expect_err("no answer");
    assert!(timed_out(&error), "{error}");
    assert!(
        server.last_lines().contains("refused by the library"),
        "{}",
        server.last_lines()
    );
    assert_eq!(client.tools().await.expect("a list").tools.len(), 2);
}

#[tokio::test]
async fn a_refused_permission_is_told_with_the_timeout_that_it_causes() {
    let Some(servers) = yiem_tests::live("nats: permission denied") else {
        return;
    };
    let broker = Broker::with_config(
        &servers,
        r#"authorization { users: [
             { user: server, password: s },
             { user: agent, password: a, permissions: { publish: ["mcp.open"], subscribe: ["_INBOX.>"] } },
             { user: deaf, password: d, permissions: { publish: [">"], subscribe: ["nothing"] } } ] }"#,
    );
    let at = |user: &str| format!("nats://{user}@127.0.0.1:{}", broker.port);
    let _open =
        super::broker::responder_at(&servers, &at("server:s"), "mcp.open", "plain", None).await;
    let _closed =
        super::broker::responder_at(&servers, &at("server:s"), "mcp.closed", "plain", None).await;

    let open = client(&format!("{}/mcp.open", at("agent:a")));
    assert_eq!(echo(&open, "hi").await.expect("an answer"), "hi");
    let closed = client(&format!("{}/mcp.closed", at("agent:a")));
    let error = closed
        .call("echo", json!({}), within(1))
        .await
        .expect_err("denied");
    assert!(timed_out(&error), "{error}");
    assert!(
        error
            .to_string()
            .contains(r#"Permissions Violation for Publish to "mcp.closed""#),
        "{error}"
    );

    let deaf = client(&format!("{}/mcp.open", at("deaf:d")));
    let error = deaf
        .call("echo", json!({}), within(1))
        .await
        .expect_err("denied");
    assert!(timed_out(&error), "{error}");
    assert!(
        error
            .to_string()
            .contains("Permissions Violation for Subscription"),
        "{error}"
    );
}

#[tokio::test]
async fn sixty_four_calls_of_900_kilobytes_at_once_all_come_back() {
    let Some(servers) = yiem_tests::live("nats: 64 calls of 900 kB") else {
        return;
    };
    let broker = Broker::start(&servers);
    let _server = responder(&servers, &broker, "mcp.w", "plain").await;
    let client = client(&broker.url("mcp.w"));
    let calls = (0..64).map(|number| {
        let said = format!("{number:04}").repeat(225_000);
        let client = client.clone();
        async move {
            let outcome = client
                .call("echo", json!({"text": said}), within(60))
                .await
                .expect("an answer");
            assert!(text(&outcome) == said, "call {number} got another's answer");
        }
    });
    futures_util::future::join_all(calls).await;
}

#[tokio::test]
async fn bytes_that_are_no_json_end_the_call_soon_and_with_what_came() {
    let Some(servers) = yiem_tests::live("nats: garbage") else {
        return;
    };
    let broker = Broker::start(&servers);
    let _garbage = responder(&servers, &broker, "mcp.garbage", "garbage").await;
    let _stray = responder(&servers, &broker, "mcp.stray", "stray").await;
    let begun = clock();
    let error = echo(&client(&broker.url("mcp.garbage")), "x")
        .await
        .expect_err("garbage");
    assert!(begun.elapsed() < SOON);
    assert!(
        matches!(error.kind(), McpErrorKind::Unreadable(_)),
        "{error}"
    );
    assert!(error.to_string().contains("it broke"), "{error}");
    // The same before a proper answer is no harm.
    assert_eq!(
        echo(&client(&broker.url("mcp.stray")), "fine")
            .await
            .expect("an answer"),
        "fine"
    );
}

#[tokio::test]
async fn a_payload_that_is_only_linked_to_is_refused_clearly() {
    let Some(servers) = yiem_tests::live("nats: link payload") else {
        return;
    };
    let broker = Broker::start(&servers);
    let _server = responder(&servers, &broker, "mcp.link", "link").await;
    let error = echo(&client(&broker.url("mcp.link?codec=envelope")), "x")
        .await
        .expect_err("a link");
    assert!(
        error.to_string().contains("http://127.0.0.1:9/file")
            && error.to_string().contains("PayloadFetcher"),
        "{error}"
    );
}

#[tokio::test]
async fn of_several_servers_and_of_a_cluster_one_may_die() {
    let Some(servers) = yiem_tests::live("nats: cluster") else {
        return;
    };
    let routes = [
        yiem_tests::RunningServer::free_port(),
        yiem_tests::RunningServer::free_port(),
    ];
    let node = |own: usize| {
        let text = format!(
            "server_name: n{own}\ncluster {{ name: c, listen: \"127.0.0.1:{}\", routes: [\"nats://127.0.0.1:{}\"] }}",
            routes[own],
            routes[1 - own]
        );
        Broker::with_config(&servers, &text)
    };
    let mut first = node(0);
    let second = node(1);
    let _server = responder(&servers, &second, "mcp.w", "plain").await;
    // The dead address before the living ones costs nothing but the attempt.
    let dead = yiem_tests::RunningServer::free_port();
    let client = client(&format!(
        "nats://127.0.0.1:{dead},127.0.0.1:{},127.0.0.1:{}/mcp.w",
        first.port, second.port
    ));
    until_answered(&client).await;
    first.down();
    until_answered(&client).await;
    let outcome = client
        .call("echo", json!({"text": "alive"}), CallOptions::default())
        .await;
    assert_eq!(text(&outcome.expect("the other node answers")), "alive");
}

#[tokio::test]
async fn a_dropped_client_leaves_nothing_behind_even_without_a_broker() {
    let Some(servers) = yiem_tests::live("nats: dropped client") else {
        return;
    };
    let mut broker = Broker::start(&servers);
    let handle = tokio::runtime::Handle::current();
    let before = handle.metrics().num_alive_tasks();
    for _ in 0..20 {
        let client = client(&broker.url("mcp.w"));
        client.connect().await.expect("the broker is there");
    }
    let client = client(&broker.url("mcp.w"));
    client.connect().await.expect("the broker is there");
    broker.down();
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(client);
    until("all tasks have ended", || {
        handle.metrics().num_alive_tasks() <= before
    })
    .await;
}
