//! Small servers on the SDKs of others, over stdio and HTTP, in both eras.

use super::{call, client, is_modern, program, script, text};
use serde_json::json;
use std::process::Command;
use yiem_mcp::{DialectChoice, McpServer};
use yiem_tests::{RunningServer, Servers};

/// A Python server: its interpreter, its script, and whether it is modern.
const PYTHON: [(&str, &str, bool); 3] = [
    ("mcp-python/bin/python", "mcp_python_two.py", true),
    ("mcp-python-legacy/bin/python", "mcp_python_one.py", false),
    ("fastmcp/bin/python", "mcp_fastmcp.py", true),
];

async fn adds(server: McpServer, modern: bool) {
    for (choice, wanted) in [
        (DialectChoice::Auto, modern),
        (DialectChoice::Legacy, false),
    ] {
        let client = client(server.clone().dialect(choice));
        let sum = call(&client, "add", json!({"a": 40, "b": 2})).await;
        assert_eq!(text(&sum), "42", "{choice:?}");
        assert_eq!(is_modern(&client), wanted, "{choice:?}");
        let refused = client
            .call("add", json!({"a": "x"}), yiem_mcp::CallOptions::default())
            .await;
        assert!(
            refused.map_or(true, |outcome| outcome.is_error),
            "bad arguments are told"
        );
        client.close().await;
    }
}

#[tokio::test]
async fn python_servers_over_stdio() {
    let Some(servers) = yiem_tests::live("Python SDKs over stdio") else {
        return;
    };
    for (python, name, modern) in PYTHON {
        adds(program(&servers, python, &[&script(name), "stdio"]), modern).await;
    }
}

#[tokio::test]
async fn python_servers_over_http() {
    let Some(servers) = yiem_tests::live("Python SDKs over HTTP") else {
        return;
    };
    for (python, name, modern) in PYTHON {
        let port = RunningServer::free_port();
        let _running = http(&servers, python, name, port);
        adds(
            McpServer::http(format!("http://127.0.0.1:{port}/mcp")),
            modern,
        )
        .await;
    }
}

fn http(servers: &Servers, python: &str, name: &str, port: u16) -> RunningServer {
    let mut command = Command::new(servers.file(python));
    RunningServer::listening(
        command.args([&script(name), "http", &port.to_string()]),
        port,
    )
}

#[tokio::test]
async fn a_typescript_server_over_stdio() {
    let Some(servers) = yiem_tests::live("TypeScript SDK v2 over stdio") else {
        return;
    };
    let package =
        servers.file("mcp-npm-modern/node_modules/@modelcontextprotocol/server/package.json");
    let home = package
        .ancestors()
        .nth(4)
        .expect("the folder that npm installed into");
    adds(
        McpServer::stdio("node", [script("mcp_typescript.mjs")]).cwd(home),
        true,
    )
    .await;
}
