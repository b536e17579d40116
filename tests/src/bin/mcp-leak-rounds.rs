//! Connects to a fake MCP server, calls it and drops the client, many times; prints what is left.
//!
//! Arguments: the number of rounds, the address of an HTTP server, and the command of a server process
//! with its script. A process of its own, so that nothing else opens files or starts threads in it.

#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "the test reads what it says"
)]

use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use yiem_core::SystemEnv;
use yiem_mcp::{CallOptions, McpClient, McpError, McpServer};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let [_, rounds, url, command, script] = args.as_slice() else {
        eprintln!("four arguments: ROUNDS URL COMMAND SCRIPT");
        return ExitCode::from(2);
    };
    let rounds: usize = rounds.parse().unwrap_or(1);
    // The first rounds open what stays open: the runtime's own files, the roots of TLS.
    let mut before = (0, 0, 0);
    for round in 0..rounds + 2 {
        if round == 2 {
            settle().await;
            before = counts();
        }
        let stdio = McpServer::stdio(command, [script]);
        let outcome = match round % 3 {
            0 => once(McpServer::http(url), false).await,
            1 => once(stdio, true).await,
            _ => once(stdio, false).await,
        };
        if let Err(error) = outcome {
            eprintln!("round {round}: {error}");
            return ExitCode::FAILURE;
        }
    }
    settle().await;
    let after = counts();
    println!(
        "{}",
        json!({
            "files": [before.0, after.0], "threads": [before.1, after.1], "children": [before.2, after.2],
        })
    );
    ExitCode::SUCCESS
}

async fn once(server: McpServer, politely: bool) -> Result<(), McpError> {
    let client = McpClient::new(server, SystemEnv::shared())?;
    client.tools().await?;
    client.call("t", json!({}), CallOptions::default()).await?;
    if politely {
        client.close().await;
    }
    Ok(())
}

/// Waits until no child is left, or for a minute.
async fn settle() {
    for _ in 0..6_000 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        if counts().2 == 0 {
            return;
        }
    }
}

/// Open files, threads and children (zombies included) of this process.
fn counts() -> (usize, usize, usize) {
    let entries = |path: &str| std::fs::read_dir(path).map_or(0, Iterator::count);
    let me = std::process::id().to_string();
    let children = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            stat.rsplit(')')
                .next()
                .and_then(|rest| rest.split_whitespace().nth(1))
                == Some(&me)
        });
    (
        entries("/proc/self/fd"),
        entries("/proc/self/task"),
        children.count(),
    )
}
