//! A server offered on NATS by a gateway, and called over NATS.
//!
//! `cargo run -p yiem-mcp --features gateway,nats --example nats nats://127.0.0.1:4222`; without the
//! address of a broker it says so and ends.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::json;
use yiem_core::SystemEnv;
use yiem_mcp::{CallOptions, DialectChoice, Gateway, McpClient, McpServer, NatsConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(broker) = std::env::args().nth(1) else {
        println!("give the address of a NATS server, e.g. nats://127.0.0.1:4222");
        return Ok(());
    };
    // What is offered: any server; here one that is a closure.
    let greeter = McpServer::closure(|method, params| async move {
        match method.as_str() {
            "tools/list" => json!({"result": {"tools": [{
                "name": "greet", "description": "Greets.",
                "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            }]}}),
            _ => {
                let greeting = format!(
                    "Hello, {}!",
                    params["arguments"]["name"].as_str().unwrap_or("you")
                );
                json!({"result": {"content": [{"type": "text", "text": greeting}]}})
            }
        }
    });
    // Start this twice, and the two share the calls: they are of one queue group.
    let place = NatsConfig::new([broker.as_str()], "mcp.greeter");
    let gateway = Gateway::builder(SystemEnv::shared())
        .server(greeter)
        .nats(place.clone(), None)
        .start()
        .await?;

    // Somewhere else: a client that knows the subject.
    let server = McpServer::nats(place.with_dialect(DialectChoice::Modern)).name("greeter");
    let client = McpClient::new(server, SystemEnv::shared())?;
    for tool in &client.tools().await?.tools {
        println!("{}: {}", tool.name, tool.description);
    }
    let outcome = client
        .call("greet", json!({"name": "NATS"}), CallOptions::default())
        .await?;
    println!("{}", outcome.content[0].as_text().unwrap_or_default());
    client.close().await;
    gateway.drain().await;
    Ok(())
}
