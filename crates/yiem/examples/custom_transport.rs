//! An MCP server over a transport of one's own: one JSON message a line over a Unix socket.
//!
//! `cargo run -p yiem --example custom_transport`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use yiem::mcp::jsonrpc::Answer;
use yiem::mcp::{
    CallOptions, Exchange, Inbox, McpClient, McpError, McpServer, Notice, Transport,
    TransportProfile,
};
use yiem::{SystemEnv, async_trait};

/// Opens the socket anew for each request: what comes back on it can only be for that request, so nothing
/// has to be matched, and dropping the exchange closes it.
#[derive(Debug)]
struct UnixSocket(PathBuf);

#[async_trait]
impl Transport for UnixSocket {
    fn profile(&self) -> TransportProfile {
        TransportProfile::bare()
    }

    async fn open(&self, _: Inbox) -> Result<(), McpError> {
        UnixStream::connect(&self.0)
            .await
            .map(drop)
            .map_err(|error| {
                McpError::unreachable(format!("nothing listens at {}", self.0.display()))
                    .with_source(error)
            })
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Answer, McpError> {
        let unreachable =
            |error| McpError::unreachable("the socket cannot be opened").with_source(error);
        let lost = |error| McpError::lost("the socket broke").with_source(error);
        let stream = UnixStream::connect(&self.0).await.map_err(unreachable)?;
        let mut stream = BufReader::new(stream);
        stream.write_all(&exchange.body()).await.map_err(lost)?;
        stream.write_all(b"\n").await.map_err(lost)?;
        let mut lines = stream.lines();
        while let Some(line) = lines.next_line().await.map_err(lost)? {
            if let Some(answer) = exchange.take(line.as_bytes()) {
                return Ok(answer);
            }
        }
        Err(McpError::lost("the socket was closed before the answer"))
    }

    async fn notify(&self, _: Notice) -> Result<(), McpError> {
        Ok(())
    }

    async fn close(&self) {}
}

/// A server that shouts.
async fn serve(listener: UnixListener) -> std::io::Result<()> {
    loop {
        let mut stream = BufReader::new(listener.accept().await?.0);
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            continue;
        }
        let request: Value = serde_json::from_str(&line)?;
        let result = match request["method"].as_str() {
            Some("tools/list") => {
                json!({"tools": [{"name": "shout", "inputSchema": {"type": "object"}}]})
            }
            _ => {
                let text = request["params"]["arguments"]["text"]
                    .as_str()
                    .unwrap_or_default();
                json!({"content": [{"type": "text", "text": text.to_uppercase()}]})
            }
        };
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        stream.write_all(format!("{answer}\n").as_bytes()).await?;
    }
}

#[tokio::main]
async fn main() -> yiem::Result<()> {
    let path = std::env::temp_dir().join(format!("yiem-example-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path)?;
    let client = McpClient::new(
        McpServer::transport(UnixSocket(path.clone())).name("socket"),
        SystemEnv::shared(),
    )?;
    let talk = async {
        let tools = client.tools().await?;
        println!("tools: {}", tools.tools[0].name);
        let said = client
            .call("shout", json!({"text": "hello"}), CallOptions::default())
            .await?;
        println!("{}", said.content[0].to_plain_text());
        Ok::<_, yiem::Error>(())
    };
    let outcome = tokio::select! {
        outcome = talk => outcome,
        ended = serve(listener) => ended.map_err(Into::into),
    };
    std::fs::remove_file(&path)?;
    outcome
}
