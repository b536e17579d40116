//! The NATS transport and the gateway against a real broker, and against servers and callers on nats-py.

mod auth;
mod broker;
mod command;
mod faults;
mod gateway;
mod seeds;
mod transport;

use serde_json::{Value, json};
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

/// Records progress.
#[derive(Default)]
struct Heard(std::sync::Mutex<Vec<Value>>);

impl Heard {
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
