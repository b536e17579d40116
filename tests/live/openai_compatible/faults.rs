//! llmock breaks in the ways in which providers do, and then says what its client did wrong.

use std::time::Duration;

use serde_json::{Value, json};
use yiem::openai::Timeouts;
use yiem::prelude::*;
use yiem_tests::{RunningServer, live};

use super::{config, get_weather};

struct Mock {
    port: u16,
    http: reqwest::Client,
    _server: RunningServer,
}

impl Mock {
    async fn post(&self, path: &str, body: Value) {
        let address = format!("http://127.0.0.1:{}/_llmock/{path}", self.port);
        let request = self
            .http
            .post(address)
            .header("content-type", "application/json");
        let answer = request
            .body(body.to_string())
            .send()
            .await
            .expect("an answer");
        assert!(
            answer.status().is_success(),
            "{}",
            answer.text().await.unwrap_or_default()
        );
    }

    async fn verdict(&self) -> Value {
        let address = format!("http://127.0.0.1:{}/_llmock/verdict", self.port);
        let answer = self.http.get(address).send().await.expect("an answer");
        serde_json::from_str(&answer.text().await.expect("text")).expect("JSON")
    }

    /// One run after these behaviours; gives the outcome, and the findings of the verdict.
    async fn run(&self, behaviors: Value) -> (Outcome, Value) {
        self.post("reset", json!({})).await;
        // The server refuses a scenario without behaviours: it behaves by itself then.
        if behaviors.as_array().is_some_and(|list| !list.is_empty()) {
            self.post("scenario", json!({"behaviors": behaviors})).await;
        }
        let timeouts = Timeouts {
            between_events: Duration::from_secs(2),
            ..Timeouts::default()
        };
        let model = config(self.port)
            .timeouts(timeouts)
            .build()
            .expect("a model");
        let agent = Agent::builder(model)
            .tool(get_weather)
            .build()
            .expect("an agent");
        let outcome = agent
            .prompt("What is the weather in Tokyo?")
            .await
            .expect("a run");
        (outcome, self.verdict().await)
    }
}

fn is_clean(verdict: &Value) -> bool {
    verdict["passed"] == true && verdict["findings"].as_array().is_some_and(Vec::is_empty)
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_survived_and_the_verdict_is_clean() {
    let Some(servers) = live("openai_compatible::faults") else {
        return;
    };
    yiem_tls::install_default_provider();
    let port = RunningServer::free_port();
    let mut command = std::process::Command::new(servers.file("llmock/bin/llmock"));
    // As slow as a model, else a short reply is all sent before the server can see that its client
    // stopped reading, and it judges that the client never did.
    command.args([
        "serve",
        "--port",
        &port.to_string(),
        "--stream-chunk-delay-ms",
        "20",
    ]);
    let server = RunningServer::listening(&mut command, port);
    let mock = Mock {
        port,
        http: reqwest::Client::new(),
        _server: server,
    };
    let survived = [
        json!([{"type": "fail", "status": 429, "retry_after": 1, "times": 2}]),
        json!([{"type": "fail", "status": 500}]),
        json!([{"type": "fail", "status": 503}]),
        json!([{"type": "stream_fault", "kind": "truncate", "after_chunks": 2}]),
        json!([{"type": "stream_fault", "kind": "disconnect", "after_chunks": 2}]),
        json!([{"type": "stream_fault", "kind": "malformed", "after_chunks": 2}]),
        json!([{"type": "stream_fault", "kind": "stall", "after_chunks": 1, "stall_seconds": 60}]),
        json!([{"type": "slow_first_token", "seconds": 1}]),
        json!([{"type": "tool_fault", "kind": "malformed_arguments"}]),
        json!([{"type": "tool_fault", "kind": "unknown_tool"}]),
        json!([{"type": "reply", "tool_calls": [{"name": "get_weather", "arguments": {"city": "Tokyo"}}]}]),
    ];
    for behaviors in survived {
        let (outcome, verdict) = mock.run(behaviors.clone()).await;
        assert!(
            outcome.is_ok() && !outcome.text.is_empty(),
            "{behaviors}: {outcome:?}"
        );
        assert!(is_clean(&verdict), "{behaviors}: {verdict:#}");
    }
    // What no second try can mend is tried once.
    for status in [400, 401, 403, 404, 422] {
        let (outcome, verdict) = mock.run(json!([{"type": "fail", "status": status}])).await;
        assert!(!outcome.is_ok(), "{status}: {outcome:?}");
        assert!(is_clean(&verdict), "{status}: {verdict:#}");
    }
}
