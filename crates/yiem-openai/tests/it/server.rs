//! A server on loopback that answers as it is told, and keeps what it was asked.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What a server does with one request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// An answer in these pieces, each sent by itself, and its end.
    Whole(Reply),
    /// An answer whose body never ends.
    Open(Reply),
    /// An answer whose connection breaks behind the last piece.
    Broken(Reply),
    /// Comments without end.
    Comments,
    /// No answer at all.
    Silence,
    /// The connection is closed at once.
    Closed,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) pieces: Vec<Vec<u8>>,
}

impl Reply {
    pub(crate) fn ok(pieces: &[&str]) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            pieces: pieces
                .iter()
                .map(|piece| piece.as_bytes().to_vec())
                .collect(),
        }
    }

    pub(crate) fn error(status: u16, body: &str) -> Self {
        Self {
            status,
            ..Self::ok(&[body])
        }
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: Value,
    /// The connection that it came on, counted from 0.
    pub(crate) connection: usize,
}

/// The server; dropping it ends its tasks.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

/// What has happened at a server so far.
#[derive(Default)]
struct Seen {
    asked: Mutex<Vec<Asked>>,
    /// Connections that have ended.
    closed: AtomicUsize,
    /// Comments that were sent.
    comments: AtomicUsize,
}

impl Server {
    /// Answers the requests in this order, over any number of connections.
    pub(crate) async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::<Seen>::default();
        let answers = Arc::new(Mutex::new(answers.into_iter()));
        let mut tasks = JoinSet::new();
        tasks.spawn({
            let seen = Arc::clone(&seen);
            async move {
                let mut connections = JoinSet::new();
                let mut count = 0;
                while let Ok((stream, _)) = listener.accept().await {
                    let seen = Arc::clone(&seen);
                    let answers = Arc::clone(&answers);
                    let connection = count;
                    count += 1;
                    connections.spawn(async move {
                        let next = || answers.lock().expect("answers").next();
                        let _ = serve(stream, connection, &seen, next).await;
                        seen.closed.fetch_add(1, Ordering::Relaxed);
                    });
                }
            }
        });
        Self {
            address,
            seen,
            _tasks: tasks,
        }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.seen.asked.lock().expect("asked").clone()
    }

    /// How many connections have ended.
    pub(crate) fn closed(&self) -> usize {
        self.seen.closed.load(Ordering::Relaxed)
    }

    /// How many comments were sent.
    pub(crate) fn comments(&self) -> usize {
        self.seen.comments.load(Ordering::Relaxed)
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    seen: &Seen,
    mut next: impl FnMut() -> Option<Answer>,
) -> std::io::Result<()> {
    let mut held = Vec::new();
    while let Some((head, body)) = read_request(&mut stream, &mut held).await? {
        let body = serde_json::from_slice(&body).unwrap_or_default();
        seen.asked.lock().expect("asked").push(Asked {
            head,
            body,
            connection,
        });
        match next().unwrap_or(Answer::Closed) {
            Answer::Whole(reply) => {
                send(&mut stream, &reply).await?;
                stream.write_all(b"0\r\n\r\n").await?;
            }
            Answer::Open(reply) => {
                send(&mut stream, &reply).await?;
                return wait_for_end(&mut stream).await;
            }
            Answer::Broken(reply) => {
                send(&mut stream, &reply).await?;
                return Ok(());
            }
            Answer::Comments => {
                send(&mut stream, &Reply::ok(&[])).await?;
                loop {
                    chunk(&mut stream, b": keep-alive\n\n").await?;
                    seen.comments.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            }
            Answer::Silence => return wait_for_end(&mut stream).await,
            Answer::Closed => return Ok(()),
        }
    }
    Ok(())
}

async fn wait_for_end(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut bytes = [0; 64];
    while stream.read(&mut bytes).await? > 0 {}
    Ok(())
}

async fn send(stream: &mut TcpStream, reply: &Reply) -> std::io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {} Told\r\ntransfer-encoding: chunked\r\n",
        reply.status
    );
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    for piece in &reply.pieces {
        chunk(stream, piece).await?;
    }
    Ok(())
}

async fn chunk(stream: &mut TcpStream, piece: &[u8]) -> std::io::Result<()> {
    if piece.is_empty() {
        return Ok(());
    }
    let mut bytes = format!("{:x}\r\n", piece.len()).into_bytes();
    bytes.extend_from_slice(piece);
    bytes.extend_from_slice(b"\r\n");
    stream.write_all(&bytes).await?;
    stream.flush().await
}

async fn read_request(
    stream: &mut TcpStream,
    held: &mut Vec<u8>,
) -> std::io::Result<Option<(String, Vec<u8>)>> {
    loop {
        if let Some(end) = held.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&held[..end]).into_owned();
            let length = head
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .and_then(|(_, value)| value.trim().parse().ok())
                .unwrap_or(0);
            while held.len() < end + 4 + length {
                if stream.read_buf(held).await? == 0 {
                    return Ok(None);
                }
            }
            let body = held[end + 4..end + 4 + length].to_vec();
            held.drain(..end + 4 + length);
            return Ok(Some((head, body)));
        }
        if stream.read_buf(held).await? == 0 {
            return Ok(None);
        }
    }
}
