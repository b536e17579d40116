//! The minimal client: what a call costs when nothing but the call is done.

use super::server::REQUEST;
use serde_json::Value;
use std::hint::black_box;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Takes the text out of an answer.
fn read(answer: &[u8]) {
    let value: Value = serde_json::from_slice(answer).expect("JSON");
    black_box(value["result"]["content"][0]["text"].as_str().map(str::len));
}

pub(crate) struct Pipe {
    _child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Pipe {
    pub(crate) fn start(program: &str) -> Self {
        let mut child = Command::new(program)
            .arg("--serve-stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("a server");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Self {
            _child: child,
            input: input.expect("its input"),
            output: BufReader::new(output.expect("its output")),
            line: Vec::new(),
        }
    }

    pub(crate) async fn call(&mut self) {
        self.input
            .write_all(format!("{REQUEST}\n").as_bytes())
            .await
            .expect("a pipe");
        self.line.clear();
        self.output
            .read_until(b'\n', &mut self.line)
            .await
            .expect("a pipe");
        read(&self.line);
    }
}

#[cfg(feature = "http")]
pub(crate) struct Http {
    client: reqwest::Client,
    url: String,
}

#[cfg(feature = "http")]
impl Http {
    pub(crate) fn new(port: u16) -> Self {
        yiem_tls::install_default_provider();
        let client = reqwest::Client::builder()
            .tcp_nodelay(true)
            .build()
            .expect("a client");
        Self {
            client,
            url: format!("http://127.0.0.1:{port}/mcp"),
        }
    }

    pub(crate) async fn call(&self) {
        let response = self
            .client
            .post(&self.url)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .body(REQUEST)
            .send()
            .await
            .expect("an answer");
        read(&response.bytes().await.expect("a body"));
    }
}
