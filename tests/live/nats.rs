//! The NATS transport and the gateway against a real broker, and against servers and callers on nats-py.

mod auth;
mod broker;
mod command;
mod faults;
mod gateway;
mod seeds;
mod transport;

use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use yiem_core::SystemEnv;
use yiem_mcp::{CallOptions, CallOutcome, McpClient, McpError, McpServer, NatsConfig};

/// A client of the server at that address.
fn client(url: &str) -> McpClient {
    client_of(NatsConfig::from_url(url).expect("a good address"))
}

fn client_of(config: NatsConfig) -> McpClient {
    let server = McpServer::nats(config)
        .name("w")
        .connect_timeout(Duration::from_secs(20));
    McpClient::new(server, SystemEnv::shared()).expect("a good configuration")
}

fn text(outcome: &CallOutcome) -> &str {
    outcome
        .content
        .first()
        .and_then(|content| content.as_text())
        .unwrap_or_default()
}

async fn echo(client: &McpClient, said: &str) -> Result<String, McpError> {
    let outcome = client
        .call("echo", json!({"text": said}), CallOptions::default())
        .await?;
    Ok(text(&outcome).to_owned())
}

fn within(seconds: u64) -> CallOptions {
    CallOptions::default().timeout(Duration::from_secs(seconds))
}

/// Waits for what another process brings about; every wait of a test has an end.
async fn until(what: &str, mut reached: impl FnMut() -> bool) {
    for _ in 0..600 {
        if reached() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never came to this: {what}");
}

/// Waits until nobody answers any more.
async fn until_nobody_listens(client: &McpClient) -> McpError {
    for _ in 0..600 {
        if let Err(error) = client.call("whoami", json!({}), within(20)).await {
            return error;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("there is still an answer");
}

/// Calls of the tool `wait`, and the means to know that all of them are under way.
struct Waits(Vec<Arc<Heard>>);

impl Waits {
    fn new(calls: usize) -> Self {
        Self((0..calls).map(|_| Arc::default()).collect())
    }

    /// Calls that take that long, and tell now and then that they go on.
    async fn made(
        &self,
        client: &McpClient,
        ms: u64,
        seconds: u64,
    ) -> Vec<Result<CallOutcome, McpError>> {
        let calls = self.0.iter().map(|heard| {
            let options = within(seconds).progress(Arc::clone(heard) as _);
            client.call("wait", json!({"ms": ms, "steps": 40}), options)
        });
        futures_util::future::join_all(calls).await
    }

    async fn under_way(&self) {
        let heard = || self.0.iter().all(|heard| !heard.all().is_empty());
        until("all calls are under way", heard).await;
    }
}

/// Records progress.
#[derive(Default)]
struct Heard(std::sync::Mutex<Vec<Value>>);

impl Heard {
    /// Waits for the first of it.
    async fn something(&self) {
        until("there is progress", || !self.all().is_empty()).await;
    }

    fn all(&self) -> Vec<Value> {
        self.0.lock().expect("no panic while it is held").clone()
    }
}

#[yiem_core::async_trait]
impl yiem_core::ProgressSink for Heard {
    async fn send(&self, partial: Value) {
        self.offer(partial);
    }
    fn offer(&self, partial: Value) {
        self.0
            .lock()
            .expect("no panic while it is held")
            .push(partial);
    }
}
