//! The gateway on NATS: shared load, killed members, raw callers, progress, cancellation, a polite end.

use super::broker::{Broker, python};
use super::{Heard, Waits, client, echo, text, until, until_nobody_listens, within};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use yiem_core::CancelToken;
use yiem_mcp::McpErrorKind;
use yiem_tests::{RunningServer, Servers};

/// A gateway as a process of its own, in the queue group `g`.
async fn gateway(broker: &Broker, rest: &str, more: &[&str]) -> RunningServer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-gateway"));
    command.args(["--nats", &broker.url(rest), "g"]).args(more);
    let running = RunningServer::start(&mut command);
    until("the gateway is ready", || {
        assert!(
            !running.last_lines().contains("mcp-gateway:"),
            "{}",
            running.last_lines()
        );
        running.last_lines().contains("ready")
    })
    .await;
    running
}

#[tokio::test]
async fn three_gateways_of_a_group_share_three_hundred_calls() {
    let Some(servers) = yiem_tests::live("gateway: shared load") else {
        return;
    };
    let broker = Broker::start(&servers);
    let members = [
        gateway(&broker, "mcp.g", &[]).await,
        gateway(&broker, "mcp.g", &[]).await,
        gateway(&broker, "mcp.g", &[]).await,
    ];
    let client = client(&broker.url("mcp.g?meta=modern"));
    let calls = (0..300).map(|_| client.call("whoami", json!({}), within(30)));
    let mut share: HashMap<String, usize> = HashMap::new();
    for outcome in futures_util::future::join_all(calls).await {
        *share
            .entry(text(&outcome.expect("an answer")).to_owned())
            .or_default() += 1;
    }
    assert_eq!(share.values().sum::<usize>(), 300);
    for member in &members {
        let own = share
            .get(&member.id().to_string())
            .copied()
            .unwrap_or_default();
        assert!(own > 30, "each has a share: {share:?}");
    }
}

#[tokio::test]
async fn a_killed_gateway_loses_only_what_it_was_doing() {
    let Some(servers) = yiem_tests::live("gateway: one killed") else {
        return;
    };
    let broker = Broker::start(&servers);
    let doomed = gateway(&broker, "mcp.g", &[]).await;
    let other = gateway(&broker, "mcp.g", &[]).await;
    let doomed_id = doomed.id().to_string();
    let client = client(&broker.url("mcp.g?meta=modern"));
    client.connect().await.expect("connected");
    let waits = Waits::new(60);
    let kill = async {
        waits.under_way().await;
        drop(doomed);
    };
    let (outcomes, ()) = tokio::join!(waits.made(&client, 4_000, 20), kill);
    let (mut answered, mut lost) = (0, 0);
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => {
                assert_eq!(text(&outcome), other.id().to_string());
                answered += 1;
            }
            Err(error) => {
                assert!(
                    matches!(error.kind(), McpErrorKind::TimedOut { .. }),
                    "{error}"
                );
                lost += 1;
            }
        }
    }
    assert!(
        answered > 5 && lost > 5,
        "each had a share: {answered} answered, {lost} lost with {doomed_id}"
    );
    let after = (0..20).map(|_| client.call("whoami", json!({}), within(10)));
    for outcome in futures_util::future::join_all(after).await {
        assert_eq!(
            text(&outcome.expect("the other goes on")),
            other.id().to_string()
        );
    }
}

fn raw(servers: &Servers, broker: &Broker, body: &str, form: &str) -> Value {
    let output = python(servers, "nats_raw_request.py")
        .args([&broker.address(), "mcp.g", body, form])
        .output()
        .expect("python runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("one line of JSON")
}

#[tokio::test]
async fn a_raw_request_is_answered_whatever_its_id_and_its_form() {
    let Some(servers) = yiem_tests::live("gateway: raw request") else {
        return;
    };
    let broker = Broker::start(&servers);
    let _gateway = gateway(&broker, "mcp.g", &[]).await;
    let call = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0",{id}"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hi"}}}}}}"#
        )
    };
    for form in ["plain", "envelope"] {
        for (id, echoed) in [
            (r#""id":1,"#, json!(1)),
            (r#""id":"x-7","#, json!("x-7")),
            ("", json!(null)),
            (r#""id":null,"#, json!(null)),
        ] {
            let answer = raw(&servers, &broker, &call(id), form);
            assert_eq!(
                answer["result"]["content"][0]["text"], "hi",
                "{form} {id}: {answer}"
            );
            assert_eq!(
                (&answer["id"], &answer["jsonrpc"]),
                (&echoed, &json!("2.0")),
                "{form} {id}"
            );
        }
        let list = raw(
            &servers,
            &broker,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
            form,
        );
        assert_eq!(
            list["result"]["tools"].as_array().map(Vec::len),
            Some(4),
            "{list}"
        );
        let unknown = raw(
            &servers,
            &broker,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/fly"}"#,
            form,
        );
        assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    }
    let broken = raw(&servers, &broker, "{not json", "plain");
    assert_eq!(
        (&broken["error"]["code"], &broken["id"]),
        (&json!(-32700), &json!(null))
    );
}

#[tokio::test]
async fn progress_and_cancellation_pass_through_a_group() {
    let Some(servers) = yiem_tests::live("gateway: progress and cancellation") else {
        return;
    };
    let broker = Broker::start(&servers);
    let members = [
        gateway(&broker, "mcp.g", &[]).await,
        gateway(&broker, "mcp.g", &[]).await,
        gateway(&broker, "mcp.g", &[]).await,
    ];
    let client = client(&broker.url("mcp.g?meta=modern"));
    let heard = Arc::new(Heard::default());
    let options = within(20).progress(Arc::clone(&heard) as _);
    client
        .call("wait", json!({"ms": 300, "steps": 3}), options)
        .await
        .expect("an answer");
    let messages: Vec<_> = heard
        .all()
        .iter()
        .map(|note| note["message"].clone())
        .collect();
    assert_eq!(messages, ["step 1", "step 2", "step 3"]);

    // The cancellation comes to any of the three; the one that has the call hears of it.
    let said = |what: &str| {
        members
            .iter()
            .map(|member| member.last_lines().matches(what).count())
            .sum::<usize>()
    };
    let before = said("waited");
    for _ in 0..6 {
        let cancel = CancelToken::new();
        let heard = Arc::new(Heard::default());
        let call = client.call(
            "wait",
            json!({"ms": 60_000, "steps": 600}),
            within(100)
                .cancel(cancel.clone())
                .progress(Arc::clone(&heard) as _),
        );
        let stop = async {
            heard.something().await;
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(call, stop);
        assert_eq!(
            outcome.expect_err("cancelled").kind(),
            &McpErrorKind::Cancelled
        );
    }
    until("each was given up", || said("gave up") == 6).await;
    assert_eq!(
        said("waited"),
        before,
        "no cancelled call went on to its end"
    );
}

#[tokio::test]
async fn the_real_server_is_callable_over_nats() {
    let Some(servers) = yiem_tests::live("gateway: server-everything") else {
        return;
    };
    let broker = Broker::start(&servers);
    let everything = servers.file("mcp-npm/node_modules/.bin/mcp-server-everything");
    let more = ["--", everything.to_str().expect("a path"), "stdio"];
    for rest in ["mcp.g?meta=modern", "acme.g?meta=modern&subjects=method"] {
        let _gateway = gateway(&broker, rest, &more).await;
        let client = client(&broker.url(rest));
        let names: Vec<String> = client
            .tools()
            .await
            .expect("a list")
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect();
        assert!(
            names.len() >= 10 && names.iter().any(|name| name == "echo"),
            "{names:?}"
        );
        let outcome = client
            .call("echo", json!({"message": "over NATS"}), within(20))
            .await
            .expect("an answer");
        assert!(text(&outcome).contains("over NATS"), "{outcome:?}");
        let heard = Arc::new(Heard::default());
        let options = within(30).progress(Arc::clone(&heard) as _);
        let arguments = json!({"duration": 1, "steps": 4});
        client
            .call("trigger-long-running-operation", arguments, options)
            .await
            .expect("an answer");
        assert!(heard.all().len() >= 3, "{:?}", heard.all());

        let cancel = CancelToken::new();
        let heard = Arc::new(Heard::default());
        let options = within(60)
            .cancel(cancel.clone())
            .progress(Arc::clone(&heard) as _);
        let call = client.call(
            "trigger-long-running-operation",
            json!({"duration": 40, "steps": 400}),
            options,
        );
        let stop = async {
            heard.something().await;
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(call, stop);
        assert_eq!(
            outcome.expect_err("cancelled").kind(),
            &McpErrorKind::Cancelled
        );
        assert!(
            client
                .call("echo", json!({"message": "still there"}), within(20))
                .await
                .is_ok()
        );
    }
}

#[tokio::test]
async fn sigterm_lets_calls_end_and_takes_nothing_new() {
    let Some(servers) = yiem_tests::live("gateway: SIGTERM") else {
        return;
    };
    let broker = Broker::start(&servers);
    let gateway = gateway(&broker, "mcp.g", &[]).await;
    let client = client(&broker.url("mcp.g?meta=modern"));
    client.connect().await.expect("connected");
    let waits = Waits::new(10);
    let end = async {
        waits.under_way().await;
        let killed = Command::new("kill")
            .args(["-TERM", &gateway.id().to_string()])
            .status();
        assert!(killed.expect("kill runs").success());
        until_nobody_listens(&client).await
    };
    let (outcomes, error) = tokio::join!(waits.made(&client, 4_000, 20), end);
    for outcome in outcomes {
        assert_eq!(
            text(&outcome.expect("it was under way")),
            gateway.id().to_string()
        );
    }
    assert!(matches!(error.kind(), McpErrorKind::NoServer(_)), "{error}");
    // One more may have come at the last moment.
    until("it has ended", || {
        let said = gateway.last_lines();
        ["10", "11"]
            .iter()
            .any(|calls| said.contains(&format!("drained: {calls} answered, 0 cut")))
    })
    .await;
}

#[tokio::test]
async fn an_answer_too_large_for_the_broker_is_a_typed_error_with_both_sizes() {
    let Some(servers) = yiem_tests::live("gateway: oversize answer") else {
        return;
    };
    let broker = Broker::start(&servers);
    let _gateway = gateway(&broker, "mcp.g", &[]).await;
    for options in ["meta=modern", "meta=none", "codec=envelope"] {
        let client = client(&broker.url(&format!("mcp.g?{options}")));
        let error = client
            .call("big", json!({"bytes": 1_500_000}), within(20))
            .await
            .expect_err("too large");
        let McpErrorKind::TooLarge { what, size, limit } = error.kind() else {
            panic!("{options}: {error}")
        };
        assert_eq!((what.as_str(), *limit), ("the answer", 1_048_576));
        assert!(*size > 1_500_000);
        assert_eq!(
            text(
                &client
                    .call("big", json!({"bytes": 10}), within(20))
                    .await
                    .expect("small")
            ),
            "xxxxxxxxxx"
        );
    }
}

#[tokio::test]
async fn a_gateway_is_back_when_its_broker_is() {
    let Some(servers) = yiem_tests::live("gateway: broker bounced") else {
        return;
    };
    let mut broker = Broker::start(&servers);
    let _gateway = gateway(&broker, "mcp.g", &[]).await;
    let client = client(&broker.url("mcp.g?meta=modern"));
    assert_eq!(echo(&client, "before").await.expect("an answer"), "before");
    broker.down();
    broker.up();
    let mut said = Vec::new();
    for _ in 0..20 {
        // A request that was written to the dying connection is lost with it.
        let outcome = client
            .call("echo", json!({"text": "after"}), within(2))
            .await;
        match outcome {
            Ok(outcome) => {
                assert_eq!(text(&outcome), "after");
                return;
            }
            Err(error) => said.push(error.to_string()),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("the gateway never came back: {said:#?}");
}

#[tokio::test]
async fn a_gateway_that_may_not_listen_says_so_at_its_start() {
    let Some(servers) = yiem_tests::live("gateway: permission denied") else {
        return;
    };
    let broker = Broker::with_config(
        &servers,
        r#"authorization { users: [ { user: g, password: g,
             permissions: { publish: [">"], subscribe: ["_INBOX.>"] } } ] }"#,
    );
    let url = format!("nats://g:g@127.0.0.1:{}/mcp.g", broker.port);
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-gateway"));
    let gateway = RunningServer::start(command.args(["--nats", &url, "g"]));
    until("it says so", || {
        assert!(
            !gateway.last_lines().contains("ready"),
            "{}",
            gateway.last_lines()
        );
        gateway
            .last_lines()
            .contains("does not let the gateway listen on mcp.g")
    })
    .await;
}
