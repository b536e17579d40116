//! A fake server behind an HTTP address on loopback, written byte by byte.

use super::script::{Act, FakeMcpServer, Play, argument_text, fill, reply, text_result};
use base64::Engine as _;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A script played behind an HTTP address. Dropping it ends it.
#[derive(Debug)]
pub struct FakeHttpServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Value>>>,
    _tasks: JoinSet<()>,
}

impl FakeHttpServer {
    /// Plays a script at a free port of this machine.
    ///
    /// Beyond the methods of the protocol, rules may name `GET` and `DELETE`; by default they are answered
    /// 405 and 200. Messages without an id are answered 202.
    ///
    /// # Panics
    /// When no port can be had.
    pub async fn start(script: FakeMcpServer) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("the port's number");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let play = Arc::new(Mutex::new(Play::new(script)));
        let mut tasks = JoinSet::new();
        let noted = Arc::clone(&requests);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&play), Arc::clone(&noted)));
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            requests,
            _tasks: tasks,
        }
    }

    /// Its address, with a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The requests that came so far: `verb`, `path`, `headers` (names in lower case), `body`.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

pub(super) struct Head {
    pub(super) verb: String,
    pub(super) path: String,
    headers: HashMap<String, String>,
}

async fn serve(mut stream: TcpStream, play: Arc<Mutex<Play>>, noted: Arc<Mutex<Vec<Value>>>) {
    let mut buffer = Vec::new();
    while let Some((head, body)) = read_request(&mut stream, &mut buffer).await {
        let message: Value = match head.verb.as_str() {
            "POST" => serde_json::from_slice(&body).unwrap_or(Value::Null),
            verb => json!({"method": verb, "id": 0}),
        };
        noted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(json!({
                "verb": head.verb, "path": head.path, "headers": head.headers, "body": message,
            }));
        let (acts, seen) = {
            let mut play = play.lock().unwrap_or_else(PoisonError::into_inner);
            let acts = play.meet(&message);
            (acts, play.seen.clone())
        };
        let acts = match (acts.is_empty(), head.verb.as_str()) {
            (true, _) => vec![Act::Http(202, Vec::new(), String::new())],
            (false, "GET") if is_default(&acts) => vec![Act::Http(405, Vec::new(), String::new())],
            (false, "DELETE") if is_default(&acts) => {
                vec![Act::Http(200, Vec::new(), String::new())]
            }
            _ => acts,
        };
        if !answer(&mut stream, &acts, &message, &seen).await {
            return;
        }
    }
}

/// Whether nothing was said about a request: the script's own refusal.
fn is_default(acts: &[Act]) -> bool {
    matches!(acts, [Act::Raw(text)] if text.contains("-32601"))
}

pub(super) async fn read_request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> Option<(Head, Vec<u8>)> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        read_more(stream, buffer).await?;
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    buffer.drain(..end + 4);
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (verb, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers
        .get("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or(0);
    while buffer.len() < length {
        read_more(stream, buffer).await?;
    }
    let body = buffer.drain(..length).collect();
    Some((
        Head {
            verb,
            path,
            headers,
        },
        body,
    ))
}

async fn read_more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    match stream.read_buf(buffer).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(()),
    }
}

/// Does what the script says; false when the connection is done with.
async fn answer(stream: &mut TcpStream, acts: &[Act], message: &Value, seen: &[Value]) -> bool {
    let mut open = true;
    for act in acts {
        let text = match act {
            Act::Reply(result) => ok_json(&reply(message, result)),
            Act::Seen => ok_json(&reply(
                message,
                &text_result(&Value::from(seen.to_vec()).to_string()),
            )),
            Act::Pid => ok_json(&reply(
                message,
                &text_result(&std::process::id().to_string()),
            )),
            Act::Echo => ok_json(&reply(message, &text_result(argument_text(message)))),
            Act::Raw(text) => ok_json(&fill(text, message)),
            Act::Flood(times, text) => fill(text, message).repeat(*times),
            Act::Huge(size) => ok_json(&reply(message, &text_result(&"x".repeat(*size)))),
            Act::Http(status, headers, body) => response(*status, headers, &fill(body, message)),
            Act::Wire(text) => {
                open = false;
                fill(text, message)
            }
            Act::Sleep(millis) => {
                tokio::time::sleep(Duration::from_millis(*millis)).await;
                continue;
            }
            Act::Hang | Act::Gather(_) => {
                // Held until the other side is gone.
                let mut rest = [0; 64];
                while !matches!(stream.read(&mut rest).await, Ok(0) | Err(_)) {}
                return false;
            }
            Act::Exit(_) | Act::Kill | Act::CloseOutput => return false,
            Act::Bytes(encoded) => {
                // As they are, head included.
                open = false;
                let bytes = base64::engine::general_purpose::STANDARD
                    .decode(encoded)
                    .unwrap_or_default();
                if stream.write_all(&bytes).await.is_err() {
                    return false;
                }
                continue;
            }
            Act::Drip(text, millis) => {
                open = false;
                for byte in fill(text, message).bytes() {
                    if stream.write_all(&[byte]).await.is_err() {
                        return false;
                    }
                    tokio::time::sleep(Duration::from_millis(*millis)).await;
                }
                continue;
            }
            Act::Stderr(_) | Act::Ask(_) => continue,
        };
        if stream.write_all(text.as_bytes()).await.is_err() {
            return false;
        }
    }
    open
}

fn ok_json(body: &str) -> String {
    response(
        200,
        &[("Content-Type".to_owned(), "application/json".to_owned())],
        body,
    )
}

fn response(status: u16, headers: &[(String, String)], body: &str) -> String {
    let mut text = format!(
        "HTTP/1.1 {status} Status\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(body);
    text
}
