//! Real MCP servers of others, on loopback: each is listed and called for something that needs its arguments.

mod everything;
mod sdks;
mod work;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use yiem_core::SystemEnv;
use yiem_mcp::{CallOptions, CallOutcome, Dialect, McpClient, McpServer};
use yiem_tests::Servers;

/// Python's imports alone take seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

fn client(server: McpServer) -> McpClient {
    let server = server
        .connect_timeout(PATIENCE)
        .probe_timeout(PATIENCE)
        .call_timeout(PATIENCE)
        .list_timeout(PATIENCE);
    McpClient::new(server, SystemEnv::shared()).expect("a server that can be used")
}

async fn call(client: &McpClient, tool: &str, arguments: Value) -> CallOutcome {
    client
        .call(tool, arguments, CallOptions::default())
        .await
        .unwrap_or_else(|error| panic!("{error}"))
}

fn text(outcome: &CallOutcome) -> &str {
    outcome
        .content
        .iter()
        .find_map(|block| block.as_text())
        .unwrap_or_default()
}

async fn names(client: &McpClient) -> Vec<String> {
    let listing = client
        .tools()
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(listing.warnings, Vec::<String>::new());
    listing.tools.iter().map(|tool| tool.name.clone()).collect()
}

fn is_modern(client: &McpClient) -> bool {
    client.dialect().is_some_and(Dialect::is_modern)
}

/// A program of a server's folder, as a command with arguments.
fn program(servers: &Servers, path: &str, args: &[&str]) -> McpServer {
    McpServer::stdio(
        servers.file(path).display().to_string(),
        args.iter().copied(),
    )
}

/// A script of `tests/servers`.
fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("servers")
        .join(name)
        .display()
        .to_string()
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().canonicalize().expect("its real path");
    (folder, path)
}

/// Collects progress.
#[derive(Default)]
struct Heard(std::sync::Mutex<Vec<Value>>, tokio::sync::Notify);

#[yiem_core::async_trait]
impl yiem_core::ProgressSink for Heard {
    async fn send(&self, partial: Value) {
        self.offer(partial);
    }

    fn offer(&self, partial: Value) {
        self.0.lock().expect("nobody panics").push(partial);
        self.1.notify_one();
    }
}

impl Heard {
    /// Waits for the first of it.
    async fn something(&self) {
        let first = tokio::time::timeout(PATIENCE, self.1.notified());
        first.await.expect("there is progress");
    }

    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn count(&self) -> usize {
        self.0.lock().expect("nobody panics").len()
    }
}
