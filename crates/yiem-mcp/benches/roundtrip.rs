//! One `tools/call` there and back (P-2): this client beside a minimal one, against the same fast server,
//! in alternating runs. Prints the median time of a call of each, and the ratio.
//!
//! `cargo bench -p yiem-mcp --features http,nats --bench roundtrip [stdio|http|nats]`; for NATS, the
//! broker's program is taken from `NATS_SERVER` (or `nats-server` on the path).

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

mod roundtrip {
    pub(crate) mod floor;
    pub(crate) mod server;
}

use roundtrip::{floor, server};
use serde_json::json;
use std::hint::black_box;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use yiem_core::SystemEnv;
use yiem_mcp::{CallOptions, DialectChoice, McpClient, McpServer};

const ROUNDS: usize = 5;
const CALLS: usize = 3_000;

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--bench"))
        .collect();
    match args.first().map(String::as_str) {
        Some("--serve-stdio") => return server::stdio(),
        Some("--serve-http") => return server::http(),
        _ => {}
    }
    let wanted = |name: &str| args.is_empty() || args.iter().any(|arg| arg == name);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    if wanted("stdio") {
        in_a_task(&runtime, stdio());
    }
    #[cfg(feature = "http")]
    if wanted("http") {
        in_a_task(&runtime, http());
    }
    #[cfg(feature = "nats")]
    if wanted("nats") {
        in_a_task(&runtime, nats());
    }
}

/// Runs work in a task, which is where an agent's calls run.
fn in_a_task(runtime: &tokio::runtime::Runtime, work: impl Future<Output = ()> + Send + 'static) {
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn_on(work, runtime.handle());
    runtime.block_on(async { while tasks.join_next().await.is_some() {} });
}

/// This program, as a server.
fn myself() -> String {
    std::env::current_exe()
        .expect("the path of this program")
        .display()
        .to_string()
}

#[expect(clippy::disallowed_methods, reason = "a bench measures the real clock")]
fn now() -> Instant {
    Instant::now()
}

/// Alternates the two and tells the medians.
async fn compare<A, B>(
    what: &str,
    limit: f64,
    mut ours: impl FnMut() -> A,
    mut floor: impl FnMut() -> B,
) where
    A: Future<Output = ()>,
    B: Future<Output = ()>,
{
    let (mut our_times, mut floor_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = now();
        for _ in 0..CALLS {
            floor().await;
        }
        floor_times.push(start.elapsed() / CALLS as u32);
        let start = now();
        for _ in 0..CALLS {
            ours().await;
        }
        our_times.push(start.elapsed() / CALLS as u32);
    }
    let (ours, floor) = (median(our_times), median(floor_times));
    let ratio = ours.as_secs_f64() / floor.as_secs_f64();
    println!("{what:<6} {ours:>10.1?} against {floor:>10.1?}: {ratio:.2} × (at most {limit} ×)");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

async fn call(client: &McpClient) {
    let outcome = client
        .call("echo", json!({"text": "hello"}), CallOptions::default())
        .await
        .expect("an answer");
    black_box(outcome.content[0].as_text().map(str::len));
}

async fn stdio() {
    let client = McpClient::new(
        McpServer::stdio(myself(), ["--serve-stdio"]).dialect(DialectChoice::Bare),
        SystemEnv::shared(),
    )
    .expect("a client");
    call(&client).await;
    let floor = tokio::sync::Mutex::new(floor::Pipe::start(&myself()));
    compare(
        "stdio",
        1.3,
        || call(&client),
        || async { floor.lock().await.call().await },
    )
    .await;
}

#[cfg(feature = "http")]
async fn http() {
    let mut child = Command::new(myself())
        .arg("--serve-http")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a server");
    let port = server::port_of(&mut child);
    let _ended = Ended(child);
    let server =
        McpServer::http(format!("http://127.0.0.1:{port}/mcp")).dialect(DialectChoice::Bare);
    let client = McpClient::new(server, SystemEnv::shared()).expect("a client");
    call(&client).await;
    let floor = floor::Http::new(port);
    compare("http", 1.3, || call(&client), || floor.call()).await;
}

#[cfg(feature = "nats")]
async fn nats() {
    use futures_util::StreamExt as _;
    let program = std::env::var("NATS_SERVER").unwrap_or_else(|_| "nats-server".into());
    let port = std::net::TcpListener::bind(("127.0.0.1", 0))
        .and_then(|free| free.local_addr())
        .expect("a port")
        .port();
    let broker = Command::new(&program)
        .args(["-a", "127.0.0.1", "-p", &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(broker) = broker else {
        println!("nats   skipped: there is no `{program}`; set NATS_SERVER");
        return;
    };
    let _ended = Ended(broker);
    let address = format!("nats://127.0.0.1:{port}");
    let connection = loop {
        match async_nats::connect(&address).await {
            Ok(connection) => break connection,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let mut requests = connection
        .subscribe("mcp.bench")
        .await
        .expect("a subscription");
    let answering = connection.clone();
    let mut responder = tokio::task::JoinSet::new();
    responder.spawn(async move {
        while let Some(request) = requests.next().await {
            if let Some(reply) = request.reply {
                let _ = answering
                    .publish(reply, server::answer(&request.payload).into())
                    .await;
            }
        }
    });
    let server = McpServer::nats(yiem_mcp::NatsConfig::new([address.as_str()], "mcp.bench"));
    let client = McpClient::new(server, SystemEnv::shared()).expect("a client");
    call(&client).await;
    let asking = async_nats::connect(&address).await.expect("a connection");
    let bare = || async {
        let reply = asking
            .request("mcp.bench", server::REQUEST.into())
            .await
            .expect("an answer");
        black_box(reply.payload.len());
    };
    compare("nats", 1.2, || call(&client), bare).await;
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
