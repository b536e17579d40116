//! The NATS transport and the gateway on NATS, over a broker of the tests' own; what a real one does is
//! tested with a real one (`tests/live/nats`).

mod broker;

use broker::Broker;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use yiem_core::{
    BoxFuture, CancelToken, Env, IdKind, ProgressSink, SystemEnv, Timestamp, async_trait,
};
use yiem_mcp::jsonrpc::JsonRpcError;
use yiem_mcp::{
    CallOptions, Caller, Gateway, McpClient, McpErrorKind, McpServer, NatsConfig, Responder,
};

/// `steps` tells of progress, `hang` says when it began and when it was dropped, `big` answers as large as
/// it is asked; whatever else gives back its name.
#[derive(Default)]
struct Backend {
    begun: tokio::sync::Notify,
    dropped: Arc<tokio::sync::Notify>,
}

struct TellDrop(Arc<tokio::sync::Notify>);

impl Drop for TellDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait]
impl Responder for Backend {
    async fn respond(
        &self,
        method: &str,
        params: serde_json::Map<String, Value>,
        caller: Caller,
    ) -> Result<Value, JsonRpcError> {
        if method == "server/discover" {
            return Ok(
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
            );
        }
        let name = params
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match name {
            "steps" => {
                for step in 1..=3 {
                    caller.notify(
                        "notifications/progress",
                        json!({"progressToken": 0, "progress": step}),
                    );
                }
            }
            "hang" => {
                let _tell = TellDrop(Arc::clone(&self.dropped));
                self.begun.notify_one();
                std::future::pending::<()>().await;
            }
            "ask" => {
                let question = json!({"message": "?", "requestedSchema": {}});
                let refused = caller
                    .ask("elicitation/create", question)
                    .await
                    .unwrap_err();
                return Ok(
                    json!({"content": [{"type": "text", "text": refused.code.to_string()}]}),
                );
            }
            "big" => return Ok(json!({"content": [{"type": "text", "text": "x".repeat(80_000)}]})),
            _ => {}
        }
        Ok(json!({"content": [{"type": "text", "text": name}]}))
    }
}

/// A clock that goes when the test says so.
#[derive(Debug, Default)]
struct Clock(tokio::sync::watch::Sender<Duration>);

impl Clock {
    fn advance(&self, by: Duration) {
        self.0.send_modify(|now| *now += by);
    }
}

impl Env for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }
    fn elapsed(&self) -> Duration {
        *self.0.borrow()
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (mut clock, until) = (self.0.subscribe(), self.elapsed() + duration);
        Box::pin(async move {
            if clock.wait_for(|now| *now >= until).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
    fn new_id(&self, kind: IdKind) -> String {
        SystemEnv::default().new_id(kind)
    }
    fn random(&self) -> f64 {
        0.5
    }
}

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(100), work)
        .await
        .expect("it never ended")
}

async fn gateway(broker: &Broker, rest: &str) -> (Gateway, Arc<Backend>) {
    let backend = Arc::new(Backend::default());
    let gateway = Gateway::builder(SystemEnv::shared())
        .responder(Arc::clone(&backend) as _)
        .nats(
            NatsConfig::from_url(&broker.url(rest)).unwrap(),
            Some("g".into()),
        )
        .start();
    (soon(gateway).await.unwrap(), backend)
}

fn client(broker: &Broker, rest: &str) -> McpClient {
    let config = NatsConfig::from_url(&broker.url(rest)).unwrap();
    McpClient::new(McpServer::nats(config).name("w"), SystemEnv::shared()).unwrap()
}

#[derive(Default)]
struct Heard(Mutex<Vec<Value>>);

#[async_trait]
impl ProgressSink for Heard {
    async fn send(&self, partial: Value) {
        self.offer(partial);
    }
    fn offer(&self, partial: Value) {
        self.0.lock().unwrap().push(partial["progress"].clone());
    }
}

#[tokio::test]
async fn calls_go_there_and_back_in_both_codecs_and_both_styles() {
    let broker = Broker::start().await;
    for rest in [
        "mcp.w",
        "mcp.w?codec=envelope",
        "mcp.w?subjects=method",
        "mcp.w?meta=modern",
        "mcp.w?meta=modern&codec=envelope&subjects=method",
    ] {
        let (_gateway, _) = gateway(&broker, rest).await;
        let client = client(&broker, rest);
        let calls = (0..50).map(|number| {
            let client = client.clone();
            async move {
                let name = format!("tool-{number}");
                let outcome = client
                    .call(&name, json!({}), CallOptions::default())
                    .await
                    .unwrap();
                assert_eq!(outcome.content[0].as_text(), Some(name.as_str()));
            }
        });
        soon(futures_util::future::join_all(calls)).await;
    }
    assert!(broker.published("mcp.v1.server.w.tools.call") >= 100);
}

#[tokio::test]
async fn nobody_is_told_at_once_and_leaves_the_connection_in_place() {
    let broker = Broker::start().await;
    let client = client(&broker, "mcp.nobody");
    for _ in 0..5 {
        let error = soon(client.call("x", json!({}), CallOptions::default()))
            .await
            .unwrap_err();
        assert!(matches!(error.kind(), McpErrorKind::NoServer(_)), "{error}");
        assert!(
            error.to_string().contains("no server on mcp.nobody"),
            "{error}"
        );
    }
    let (_gateway, _) = gateway(&broker, "mcp.nobody").await;
    assert!(
        soon(client.call("x", json!({}), CallOptions::default()))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn progress_is_told_to_whoever_gave_a_token_and_to_nobody_else() {
    let broker = Broker::start().await;
    let (_gateway, _) = gateway(&broker, "mcp.w").await;
    let heard = Arc::new(Heard::default());
    let options = CallOptions::default().progress(Arc::clone(&heard) as _);
    soon(client(&broker, "mcp.w?meta=modern").call("steps", json!({}), options))
        .await
        .unwrap();
    assert_eq!(*heard.0.lock().unwrap(), [1, 2, 3]);
    // A bare caller would take the first message for the answer.
    let bare = soon(client(&broker, "mcp.w").call("steps", json!({}), CallOptions::default()))
        .await
        .unwrap();
    assert_eq!(bare.content[0].as_text(), Some("steps"));
}

#[tokio::test]
async fn a_cancellation_finds_its_call_in_whichever_gateway_it_is() {
    let broker = Broker::start().await;
    let (first, one) = gateway(&broker, "mcp.w").await;
    let client = client(&broker, "mcp.w?meta=modern");
    soon(client.connect()).await.unwrap();
    let cancel = CancelToken::new();
    let options = CallOptions::default().cancel(cancel.clone());
    let call = client.call("hang", json!({}), options);
    let stop = async {
        soon(one.begun.notified()).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(call, stop);
    assert_eq!(outcome.unwrap_err().kind(), &McpErrorKind::Cancelled);
    soon(one.dropped.notified()).await;
    soon(first.drain()).await;

    let (second, two) = gateway(&broker, "mcp.w").await;
    let cancel = CancelToken::new();
    let options = CallOptions::default().cancel(cancel.clone());
    let call = client.call("hang", json!({}), options);
    let stop = async {
        soon(two.begun.notified()).await;
        // One that joins now is given what comes next: the cancellation of a call that it does not have.
        let third = gateway(&broker, "mcp.w").await;
        cancel.cancel();
        third
    };
    let (outcome, _third) = tokio::join!(call, stop);
    assert_eq!(outcome.unwrap_err().kind(), &McpErrorKind::Cancelled);
    soon(two.dropped.notified()).await;
    drop(second);
}

#[tokio::test]
async fn oversize_goes_neither_way_and_both_sizes_are_told() {
    let broker = Broker::start().await;
    let (_gateway, _) = gateway(&broker, "mcp.w").await;
    let client = client(&broker, "mcp.w");
    let request = soon(client.call(
        "x",
        json!({"text": "x".repeat(70_000)}),
        CallOptions::default(),
    ))
    .await
    .unwrap_err();
    let answer = soon(client.call("big", json!({}), CallOptions::default()))
        .await
        .unwrap_err();
    for (error, which) in [(request, "the request"), (answer, "the answer")] {
        let McpErrorKind::TooLarge { what, size, limit } = error.kind() else {
            panic!("{error}")
        };
        assert_eq!((what.as_str(), *limit), (which, 65_536));
        assert!(*size > 70_000);
    }
}

#[tokio::test]
async fn a_broker_that_dies_leaves_its_mark_on_the_timeout() {
    let broker = Broker::start().await;
    let (_gateway, backend) = gateway(&broker, "mcp.w").await;
    let env = Arc::new(Clock::default());
    let config = NatsConfig::from_url(&broker.url("mcp.w")).unwrap();
    let server = McpServer::nats(config).name("w");
    let client = McpClient::new(server, Arc::clone(&env) as _).unwrap();
    let address = broker.address.to_string();
    let patience = Duration::from_secs(300);
    let options = |time| CallOptions::default().timeout(time);
    let call = client.call("hang", json!({}), options(patience));
    let kill = async {
        backend.begun.notified().await;
        drop(broker);
        // The time is over once the client has seen that: another call then says so.
        loop {
            let step = Duration::from_millis(1);
            let call = client.call("echo", json!({}), options(step));
            let clock = async {
                loop {
                    env.advance(step);
                    tokio::task::yield_now().await;
                }
            };
            let answer = tokio::select! { answer = call => answer, () = clock => unreachable!() };
            if answer.is_err_and(|error| error.to_string().contains("not yet back")) {
                break env.advance(patience);
            }
        }
    };
    let (outcome, ()) = soon(async { tokio::join!(call, kill) }).await;
    let error = outcome.unwrap_err();
    assert!(
        matches!(error.kind(), McpErrorKind::TimedOut { .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("not yet back") && error.to_string().contains(&address),
        "{error}"
    );
}

#[tokio::test]
async fn a_dropped_client_leaves_no_task() {
    let broker = Broker::start().await;
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let client = client(&broker, "mcp.w");
    soon(client.connect()).await.unwrap();
    let with = tasks();
    drop(client);
    soon(async {
        while tasks() >= with {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_caller_on_nats_is_not_asked_and_the_call_goes_on() {
    struct Nobody;
    #[async_trait]
    impl yiem_mcp::Elicit for Nobody {
        async fn elicit(&self, _: yiem_mcp::Elicitation) -> yiem_mcp::ElicitationAnswer {
            panic!("there is no way to ask")
        }
    }
    let broker = Broker::start().await;
    let (_gateway, _) = gateway(&broker, "mcp.w").await;
    for rest in ["mcp.w", "mcp.w?meta=modern", "mcp.w?codec=envelope"] {
        let config = NatsConfig::from_url(&broker.url(rest)).unwrap();
        let server = McpServer::nats(config).name("w").elicit(Arc::new(Nobody));
        let client = McpClient::new(server, SystemEnv::shared()).unwrap();
        let outcome = soon(client.call("ask", json!({}), CallOptions::default()))
            .await
            .unwrap();
        assert_eq!(outcome.content[0].as_text(), Some("-32601"), "{rest}");
    }
}

#[tokio::test]
async fn changed_lists_are_told_on_nats_to_whoever_listens() {
    let (changing, server) = tokio::sync::mpsc::channel::<()>(1);
    let server = Arc::new(tokio::sync::Mutex::new(server));
    // A modern server whose stream of changes tells one for each sign that it is given.
    let upstream = McpServer::closure_with_exchange(move |exchange| {
        let server = Arc::clone(&server);
        async move {
            match &*exchange.method {
                "server/discover" => json!({"result": {"supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {"listChanged": true}}, "resultType": "complete"}}),
                "subscriptions/listen" => {
                    while server.lock().await.recv().await.is_some() {
                        exchange
                            .inbox
                            .message(yiem_mcp::jsonrpc::Incoming::Notification {
                                method: "notifications/tools/list_changed".into(),
                                params: json!({}),
                            });
                    }
                    json!({"result": {"resultType": "complete"}})
                }
                _ => json!({"result": {"tools": [], "resultType": "complete"}}),
            }
        }
    })
    .dialect(yiem_mcp::DialectChoice::Modern);
    let broker = Broker::start().await;
    let gateway = Gateway::builder(SystemEnv::shared())
        .server(upstream)
        .nats(NatsConfig::from_url(&broker.url("mcp.w")).unwrap(), None)
        .start();
    let gateway = soon(gateway).await.unwrap();
    let client = client(&broker, "mcp.w?meta=modern");
    soon(client.tools()).await.unwrap();
    let mut events = client.events();
    let telling = async {
        loop {
            changing.send(()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let told =
        async { while !matches!(events.recv().await, Ok(yiem_mcp::McpEvent::ToolsChanged)) {} };
    tokio::select! { () = soon(told) => {} () = telling => {} }
    // Who only listens does not hold up the end.
    assert_eq!(gateway.running_calls(), 0);
    assert_eq!(soon(gateway.drain()).await, yiem_mcp::Drained::default());
}
