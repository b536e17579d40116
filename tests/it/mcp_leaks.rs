//! Nothing is left of a client that is gone: no process, thread or file (M-2, M-7).

use serde_json::Value;
use std::process::Command;
use std::time::Duration;
use yiem_test::server::{Act, FakeHttpServer, FakeMcpServer};

fn script() -> FakeMcpServer {
    FakeMcpServer::legacy()
        .tool("t")
        .on("tools/call", [Act::text("ok")])
}

/// Processes whose command line holds a text.
fn processes_with(text: &str) -> usize {
    let lines = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(text))
        .count()
}

async fn none_left(marker: &str) {
    until(|| processes_with(marker) == 0).await;
}

/// Asks for the state of other processes until it is as wanted.
async fn until(holds: impl Fn() -> bool + Send + Sync) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(100), wait)
        .await
        .expect("it comes to hold");
}

#[tokio::test]
async fn a_hundred_rounds_of_connect_call_drop_leave_nothing() {
    let server = FakeHttpServer::start(script()).await;
    let output = tokio::task::spawn_blocking(move || {
        Command::new(env!("CARGO_BIN_EXE_mcp-leak-rounds"))
            .args([
                "100",
                &server.url(),
                env!("CARGO_BIN_EXE_fake-mcp-server"),
                &script().to_json(),
            ])
            .output()
            .map(|output| (output, server))
    });
    let (output, _server) = tokio::time::timeout(Duration::from_secs(200), output)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let counts: Value = serde_json::from_slice(&output.stdout).unwrap();
    for what in ["files", "threads", "children"] {
        let (before, after) = (
            counts[what][0].as_u64().unwrap(),
            counts[what][1].as_u64().unwrap(),
        );
        assert!(
            after <= before + 1,
            "{what}: {before} before, {after} after"
        );
    }
}

#[tokio::test]
async fn a_client_that_is_killed_leaves_no_server_even_one_that_ignores_the_end_of_its_input() {
    // The server's child ignores HUP and TERM and reads nothing; only the watcher of the group ends it.
    let marker = format!("yiem-leak-{}", std::process::id());
    let command = format!(
        "trap '' TERM HUP; sleep 86400 & exec sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' {marker}"
    );
    let holder = format!(
        "{{\"mcpServers\":{{\"x\":{{\"command\":\"sh\",\"args\":[\"-c\",{}]}}}}}}",
        Value::from(command)
    );
    let mut client = Command::new(env!("CARGO_BIN_EXE_mcp-hold"))
        .arg(&holder)
        .spawn()
        .unwrap();
    until(|| processes_with(&marker) >= 2).await;
    client.kill().unwrap();
    client.wait().unwrap();
    none_left(&marker).await;
}
