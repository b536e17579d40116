//! A broker of a hundred lines, for tests without one: core NATS, no authorization, no clusters.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Runs until it is dropped.
pub(crate) struct Broker {
    pub(crate) address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    connections: u64,
    subscriptions: Vec<Subscription>,
    /// Every subject that was published to, in order.
    published: Vec<String>,
}

struct Subscription {
    connection: u64,
    id: String,
    subject: String,
    queue: Option<String>,
    out: mpsc::UnboundedSender<Vec<u8>>,
}

impl Broker {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let all = Arc::clone(&shared);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(connection(stream, Arc::clone(&all)));
            }
        });
        Self {
            address,
            shared,
            _tasks: tasks,
        }
    }

    pub(crate) fn url(&self, rest: &str) -> String {
        format!("nats://{}/{rest}", self.address)
    }

    pub(crate) fn published(&self, subject: &str) -> usize {
        self.shared
            .lock()
            .unwrap()
            .published
            .iter()
            .filter(|to| *to == subject)
            .count()
    }
}

async fn connection(stream: TcpStream, shared: Arc<Mutex<Shared>>) {
    let (input, mut output) = stream.into_split();
    let (out, mut waiting) = mpsc::unbounded_channel::<Vec<u8>>();
    let number = {
        let mut shared = shared.lock().unwrap();
        shared.connections += 1;
        shared.connections
    };
    let info = r#"INFO {"server_id":"t","version":"2.11.0","proto":1,"host":"127.0.0.1","port":0,"headers":true,"max_payload":65536,"client_id":1}"#;
    out.send(format!("{info}\r\n").into_bytes()).unwrap();
    let writing = async {
        while let Some(bytes) = waiting.recv().await {
            if output.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    let reading = async {
        let mut input = BufReader::new(input);
        let mut line = String::new();
        while input.read_line(&mut line).await.is_ok_and(|read| read > 0) {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            line.clear();
            match words
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .as_slice()
            {
                ["PING"] => drop(out.send(b"PONG\r\n".to_vec())),
                ["SUB", subject, rest @ .., id] => {
                    shared.lock().unwrap().subscriptions.push(Subscription {
                        connection: number,
                        id: (*id).to_owned(),
                        subject: (*subject).to_owned(),
                        queue: rest.first().map(|queue| (*queue).to_owned()),
                        out: out.clone(),
                    })
                }
                ["UNSUB", id, ..] => shared.lock().unwrap().subscriptions.retain(|subscription| {
                    subscription.connection != number || subscription.id != *id
                }),
                ["PUB", subject, reply @ .., size] => {
                    let mut body = vec![0; size.parse::<usize>().unwrap() + 2];
                    input.read_exact(&mut body).await.unwrap();
                    publish(&shared, subject, reply.first().copied(), &body, &out);
                }
                _ => {}
            }
        }
    };
    tokio::select! { () = writing => {} () = reading => {} }
    shared
        .lock()
        .unwrap()
        .subscriptions
        .retain(|subscription| subscription.connection != number);
}

fn publish(
    shared: &Mutex<Shared>,
    subject: &str,
    reply: Option<&str>,
    body: &[u8],
    back: &mpsc::UnboundedSender<Vec<u8>>,
) {
    let mut shared = shared.lock().unwrap();
    shared.published.push(subject.to_owned());
    let mut queues: HashMap<&str, usize> = HashMap::new();
    let mut reached = false;
    // Of a queue group, the member that came last.
    for subscription in shared
        .subscriptions
        .iter()
        .rev()
        .filter(|subscription| matches(&subscription.subject, subject))
    {
        if let Some(queue) = &subscription.queue {
            let members = queues.entry(queue.as_str()).or_default();
            *members += 1;
            if *members > 1 {
                continue;
            }
        }
        reached = true;
        let reply = reply.map(|reply| format!("{reply} ")).unwrap_or_default();
        let mut bytes = format!(
            "MSG {subject} {} {reply}{}\r\n",
            subscription.id,
            body.len() - 2
        )
        .into_bytes();
        bytes.extend_from_slice(body);
        let _ = subscription.out.send(bytes);
    }
    // Nobody is there: the asker's own inbox is told.
    if let (false, Some(reply)) = (reached, reply)
        && let Some(inbox) = shared
            .subscriptions
            .iter()
            .find(|subscription| matches(&subscription.subject, reply))
    {
        let _ = back.send(
            format!(
                "HMSG {reply} {} 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
                inbox.id
            )
            .into_bytes(),
        );
    }
}

fn matches(pattern: &str, subject: &str) -> bool {
    let mut words = subject.split('.');
    for part in pattern.split('.') {
        match (part, words.next()) {
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (part, Some(word)) if part == word => {}
            _ => return false,
        }
    }
    words.next().is_none()
}
