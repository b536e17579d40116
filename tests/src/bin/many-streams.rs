//! Many agents that stream at once over HTTP (P-3): what they take in memory, and whether one is left behind.
//!
//! Arguments: how many agents, and of how many pieces a reply is. The server is this program again, so that only
//! the agents' memory is counted; it says where it listens and ends with its standard input. Every agent gets a
//! reply that calls a tool and one that ends, and no reply goes on before all have begun. Printed as JSON: the
//! most `bytes` at once; when half of the agents and when the last had ended, in milliseconds and in updates that
//! all agents together had been told by then: a clock that no load of the machine disturbs.

#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "the test reads what it says"
)]

use serde_json::{Value, json};
use std::io::BufRead as _;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use yiem::openai::OpenAiModel;
use yiem::{Agent, AgentEvent, BeforeToolCall, EventKind, SystemEnv};
use yiem_test::tool;

#[global_allocator]
static MEMORY: cap::Cap<std::alloc::System> = cap::Cap::new(std::alloc::System, usize::MAX);

/// The time between two pieces of a reply.
const PACE: Duration = Duration::from_millis(5);

type Fault = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| args.get(at).and_then(|text| text.parse::<usize>().ok());
    let done = match (
        args.first().map(String::as_str),
        number(0),
        number(1),
        number(2),
    ) {
        (Some("serve"), _, Some(agents), Some(pieces)) => serve(agents, pieces),
        (_, Some(agents), Some(pieces), _) => measure(agents, pieces),
        _ => Err("two arguments: AGENTS PIECES".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
}

// ---- the agents ----

fn measure(agents: usize, pieces: usize) -> Result<(), Fault> {
    let mut server = Command::new(std::env::current_exe()?)
        .args(["serve", &agents.to_string(), &pieces.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut url = String::new();
    if let Some(out) = server.stdout.take() {
        std::io::BufReader::new(out).read_line(&mut url)?;
    }
    let told = runtime()?.block_on(ask(url.trim(), agents, pieces));
    drop(server.stdin.take());
    server.wait()?;
    println!("{}", told?);
    Ok(())
}

async fn ask(url: &str, agents: usize, pieces: usize) -> Result<Value, Fault> {
    let model = OpenAiModel::builder()
        .base_url(url)
        .model("m")
        .no_proxy()
        .build()?;
    let work = Arc::new(AtomicU64::new(0));
    let agent = {
        let work = Arc::clone(&work);
        move || {
            let work = Arc::clone(&work);
            Agent::builder(model.clone())
                .system("You are one of many.")
                .tool(tool::echo())
                .tool(tool::slow("slow", Duration::ZERO, "done"))
                .listener(move |event: &AgentEvent| {
                    if matches!(event.kind, EventKind::MessageUpdate { .. }) {
                        work.fetch_add(1, Ordering::Relaxed);
                    }
                })
                .before_tool_call(|_| async { Ok(BeforeToolCall::Run) })
                .build()
        }
    };
    // What is made once for all agents is no agent's.
    agent()?.prompt("first").await?;
    let clock = SystemEnv::shared();
    work.store(0, Ordering::Relaxed);
    let (begun, before) = (clock.elapsed(), MEMORY.allocated());
    let mut runs = JoinSet::new();
    for _ in 0..agents {
        let agent = agent.clone();
        let (work, clock) = (Arc::clone(&work), Arc::clone(&clock));
        runs.spawn(async move {
            let outcome = agent()?.prompt("go").await?.ok()?;
            let took = clock.elapsed() - begun;
            let came = (outcome.turns, outcome.tool_calls, outcome.text().len());
            Ok::<_, Fault>((came, took, work.load(Ordering::Relaxed)))
        });
    }
    let whole: usize = (0..pieces).map(|at| piece(at).len()).sum();
    let (mut times, mut works) = (Vec::new(), Vec::new());
    while let Some(run) = runs.join_next().await {
        let (came, took, work) = run??;
        if came != (2, 1, whole) {
            return Err(format!(
                "a run came to {came:?} and not to 2 turns, 1 call, {whole} bytes"
            )
            .into());
        }
        times.push(took.as_secs_f64() * 1_000.0);
        works.push(work);
    }
    let bytes = MEMORY.max_allocated() - before;
    times.sort_by(f64::total_cmp);
    works.sort_unstable();
    let (half, last) = (agents / 2, agents - 1);
    Ok(json!({
        "bytes": bytes,
        "ms": [times[half].round(), times[last].round()],
        "updates": [works[half], works[last]],
    }))
}

// ---- the server ----

fn piece(at: usize) -> String {
    format!("piece {at} ")
}

fn serve(agents: usize, pieces: usize) -> Result<(), Fault> {
    runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}/v1", listener.local_addr()?);
        let begun = Arc::new(watch::Sender::new(0));
        let mut connections = JoinSet::new();
        let mut input = [0];
        let mut stdin = tokio::io::stdin();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let begun = Arc::clone(&begun);
                    connections.spawn(async move {
                        // A client that leaves has all that it wants.
                        let _ = connection(accepted?.0, &begun, agents, pieces).await;
                        Ok::<_, std::io::Error>(())
                    });
                }
                _ = stdin.read(&mut input) => return Ok(()),
            }
        }
    })
}

async fn connection(
    stream: TcpStream,
    begun: &watch::Sender<usize>,
    agents: usize,
    pieces: usize,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(body) = request(&mut stream).await? {
        let last = body["messages"]
            .as_array()
            .and_then(|messages| messages.last());
        let last = last.cloned().unwrap_or_default();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await?;
        for at in 0..pieces {
            let delta = json!({"choices": [{"index": 0, "delta": {"content": piece(at)}, "finish_reason": null}]});
            event(&mut stream, &delta).await?;
            if at == 0 && last["content"] == "go" {
                begun.send_modify(|count| *count += 1);
                // The sender lives as long as the server.
                let _ = begun.subscribe().wait_for(|count| *count >= agents).await;
            }
            tokio::time::sleep(PACE).await;
        }
        let end = if last["role"] == "tool" {
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        } else {
            let call = json!({"index": 0, "id": "call_1", "type": "function",
                "function": {"name": "echo", "arguments": "{\"value\":\"x\"}"}});
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]})
        };
        event(&mut stream, &end).await?;
        stream
            .write_all(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
            .await?;
        stream.flush().await?;
    }
    Ok(())
}

async fn event(stream: &mut BufReader<TcpStream>, event: &Value) -> std::io::Result<()> {
    let event = format!("data: {event}\n\n");
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    stream.write_all(chunk.as_bytes()).await?;
    stream.flush().await
}

/// The body of the next request; nothing when the client has left.
async fn request(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Value>> {
    use tokio::io::AsyncBufReadExt as _;
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body).ok())
}
