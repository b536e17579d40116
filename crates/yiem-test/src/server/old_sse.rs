//! A fake server that speaks HTTP+SSE (2024-11-05): one stream for all answers, an address to post to.

use super::http::{Head, read_request};
use super::script::{Act, FakeMcpServer, Play, argument_text, fill, reply, text_result};
use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// A script played behind a stream of events. Dropping it ends it.
///
/// Each stream is a client of its own. What a script writes goes to the stream as the data of an event;
/// [`Act::Wire`] as it is, and [`Act::Exit`] ends the stream. A message that has been taken is answered 202,
/// [`Act::Http`] answers the POST with something else.
#[derive(Debug)]
pub struct FakeSseServer {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Streams(Mutex<HashMap<u64, mpsc::UnboundedSender<Option<String>>>>);

impl Streams {
    fn open(&self) -> (u64, mpsc::UnboundedReceiver<Option<String>>) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = streams.len() as u64 + 1;
        let (send, waiting) = mpsc::unbounded_channel();
        streams.insert(number, send);
        (number, waiting)
    }

    /// Writes to a stream; nothing ends it.
    fn write(&self, number: u64, text: Option<String>) {
        let streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = streams.get(&number) {
            // A client that is gone hears nothing.
            let _ = stream.send(text);
        }
    }
}

impl FakeSseServer {
    /// Plays a script at a free port of this machine.
    ///
    /// # Panics
    /// When no port can be had.
    pub async fn start(script: FakeMcpServer) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("the port's number");
        let play = Arc::new(Mutex::new(Play::new(script)));
        let streams = Arc::new(Streams::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&play), Arc::clone(&streams)));
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            _tasks: tasks,
        }
    }

    /// The address of its stream.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/sse", self.address)
    }
}

async fn serve(mut socket: TcpStream, play: Arc<Mutex<Play>>, streams: Arc<Streams>) {
    let mut buffer = Vec::new();
    while let Some((head, body)) = read_request(&mut socket, &mut buffer).await {
        let answer = match (head.verb.as_str(), stream_of(&head)) {
            ("GET", None) if head.path == "/sse" => {
                return listen(socket, &play, &streams).await;
            }
            ("POST", Some(stream)) => taken(&body, stream, &play, &streams).await,
            _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        if socket.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The stream that a message is posted for.
fn stream_of(head: &Head) -> Option<u64> {
    head.path.strip_prefix("/messages?stream=")?.parse().ok()
}

async fn listen(mut socket: TcpStream, play: &Mutex<Play>, streams: &Streams) {
    let (number, mut waiting) = streams.open();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let first = format!("{head}event: endpoint\ndata: /messages?stream={number}\n\n");
    if socket.write_all(first.as_bytes()).await.is_err() {
        return;
    }
    let acts = play.lock().unwrap_or_else(PoisonError::into_inner).first();
    for act in acts {
        act_on(&act, &Value::Null, number, &[], streams).await;
    }
    while let Some(Some(text)) = waiting.recv().await {
        if socket.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn taken(body: &[u8], stream: u64, play: &Mutex<Play>, streams: &Arc<Streams>) -> String {
    let message: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let (acts, seen) = {
        let mut play = play.lock().unwrap_or_else(PoisonError::into_inner);
        let acts = play.meet(&message);
        (acts, play.seen.clone())
    };
    let mut answer = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned();
    for act in acts {
        match &act {
            Act::Http(status, _, body) => {
                let body = fill(body, &message);
                answer = format!(
                    "HTTP/1.1 {status} Status\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
            }
            Act::Hang => break,
            act => act_on(act, &message, stream, &seen, streams).await,
        }
    }
    answer
}

async fn act_on(act: &Act, message: &Value, stream: u64, seen: &[Value], streams: &Streams) {
    let event = |data: &str| {
        let lines: String = data.lines().map(|line| format!("data: {line}\n")).collect();
        format!("event: message\n{lines}\n")
    };
    let text = match act {
        Act::Reply(result) => event(&reply(message, result)),
        Act::Seen => {
            let seen = Value::from(seen.to_vec()).to_string();
            event(&reply(message, &text_result(&seen)))
        }
        Act::Pid => event(&reply(
            message,
            &text_result(&std::process::id().to_string()),
        )),
        Act::Echo => event(&reply(message, &text_result(argument_text(message)))),
        Act::Raw(text) => event(&fill(text, message)),
        Act::Flood(times, text) => event(&fill(text, message)).repeat(*times),
        Act::Huge(size) => event(&reply(message, &text_result(&"x".repeat(*size)))),
        Act::Wire(text) => fill(text, message),
        Act::Sleep(millis) => return tokio::time::sleep(Duration::from_millis(*millis)).await,
        Act::Exit(_) | Act::Kill | Act::CloseOutput => return streams.write(stream, None),
        _ => return,
    };
    streams.write(stream, Some(text));
}
