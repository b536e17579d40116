//! `yiem serve --nats` as a person runs it: the command itself, a real broker, real servers behind it.

use super::broker::{Broker, python};
use super::{Heard, Waits, client, text, until, until_nobody_listens, within};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;
use yiem_core::CancelToken;
use yiem_mcp::McpErrorKind;
use yiem_tests::{RunningServer, Servers};

const SUBJECT: &str = "mcp.everything";

/// The command, which is built into the folder of our own programs.
fn yiem() -> Command {
    let command = Path::new(env!("CARGO_BIN_EXE_mcp-gateway")).with_file_name("yiem");
    assert!(
        command.exists(),
        "{} is not there: run `cargo xtask live`, or `cargo build -p yiem-cli` first",
        command.display()
    );
    let mut command = Command::new(command);
    command
        .env_remove("OPENAI_BASE_URL")
        .env_remove("OPENAI_API_KEY");
    command
}

/// `yiem serve --nats … --subject mcp.everything --queue g -- COMMAND`, ready.
async fn serve(broker: &Broker, more: &[&str], behind: &[&str]) -> RunningServer {
    let mut command = yiem();
    command
        .args(["serve", "--nats", &broker.address(), "--subject", SUBJECT])
        .args(more)
        .arg("--")
        .args(behind);
    let running = RunningServer::start(&mut command);
    until("the command serves", || {
        let said = running.last_lines();
        assert!(!said.contains("error"), "{said}");
        said.contains("serving on mcp.everything")
    })
    .await;
    running
}

/// A server over stdio whose tools tell which process it is.
const OWN: [&str; 2] = [env!("CARGO_BIN_EXE_mcp-gateway"), "--stdio"];

fn everything(servers: &Servers) -> String {
    let path = servers.file("mcp-npm/node_modules/.bin/mcp-server-everything");
    path.display().to_string()
}

/// The processes that a process started.
fn children(of: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).expect("it runs");
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|line| {
            line.split_whitespace()
                .filter_map(|id| id.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

fn runs(id: u32) -> bool {
    // One that ended and was not asked for by its parent yet does not run.
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .starts_with('Z')
    })
}

fn raw(servers: &Servers, broker: &Broker, body: &str, form: &str) -> Value {
    let Output {
        status,
        stdout,
        stderr,
    } = python(servers, "nats_raw_request.py")
        .args([&broker.address(), SUBJECT, body, form])
        .output()
        .expect("python runs");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).expect("one line of JSON")
}

#[tokio::test]
async fn the_real_server_is_served_by_the_command_and_called_by_it() {
    let Some(servers) = yiem_tests::live("yiem serve: server-everything") else {
        return;
    };
    let broker = Broker::start(&servers);
    let everything = everything(&servers);
    let _serving = serve(&broker, &["--queue", "g"], &[&everything, "stdio"]).await;

    // A request that was written by hand, in both forms.
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get-sum","arguments":{"a":20,"b":22}}}"#;
    for form in ["plain", "envelope"] {
        let answer = raw(&servers, &broker, body, form);
        assert_eq!(answer["id"], 1, "{answer}");
        let said = answer["result"]["content"][0]["text"].as_str();
        assert!(
            said.is_some_and(|said| said.contains("42")),
            "{form}: {answer}"
        );
    }

    // The command calls what the command serves.
    let spec = format!("far={}", broker.url(SUBJECT));
    for more in [&[][..], &["--json"]] {
        let mut command = yiem();
        command
            .args(["call", "echo", r#"{"message":"höhö"}"#, "--mcp", &spec])
            .args(more);
        let called = tokio::task::spawn_blocking(move || command.output()).await;
        let called = called.expect("no panic").expect("it runs");
        let said = String::from_utf8_lossy(&called.stdout).into_owned();
        assert!(
            called.status.success() && said.contains("höhö"),
            "{called:?}"
        );
    }
    let mut command = yiem();
    command.args(["tools", "--json", "--mcp", &spec]);
    let listed = tokio::task::spawn_blocking(move || command.output()).await;
    let listed = listed.expect("no panic").expect("it runs");
    assert!(
        String::from_utf8_lossy(&listed.stdout).contains("get-sum"),
        "{listed:?}"
    );

    // Progress and cancellation.
    let client = client(&broker.url(&format!("{SUBJECT}?meta=modern")));
    let heard = Arc::new(Heard::default());
    let options = within(30).progress(Arc::clone(&heard) as _);
    let long = json!({"duration": 1, "steps": 4});
    let called = client
        .call("trigger-long-running-operation", long, options)
        .await;
    called.expect("an answer");
    assert!(heard.all().len() >= 3, "{:?}", heard.all());
    let cancel = CancelToken::new();
    let heard = Arc::new(Heard::default());
    let call = client.call(
        "trigger-long-running-operation",
        json!({"duration": 40, "steps": 400}),
        within(60)
            .cancel(cancel.clone())
            .progress(Arc::clone(&heard) as _),
    );
    let stop = async {
        heard.something().await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(call, stop);
    assert_eq!(
        outcome.expect_err("cancelled").kind(),
        &McpErrorKind::Cancelled
    );
}

#[tokio::test]
async fn three_commands_of_a_group_share_three_hundred_calls_and_one_that_is_killed_loses_its_own()
{
    let Some(servers) = yiem_tests::live("yiem serve: a group of three") else {
        return;
    };
    let broker = Broker::start(&servers);
    let group = ["--queue", "g"];
    let mut members = vec![
        serve(&broker, &group, &OWN).await,
        serve(&broker, &group, &OWN).await,
        serve(&broker, &group, &OWN).await,
    ];
    let client = client(&broker.url(&format!("{SUBJECT}?meta=modern")));
    let calls = (0..300).map(|_| client.call("whoami", json!({}), within(30)));
    let mut share: HashMap<String, usize> = HashMap::new();
    for outcome in futures_util::future::join_all(calls).await {
        let outcome = outcome.expect("an answer");
        *share.entry(text(&outcome).to_owned()).or_default() += 1;
    }
    assert_eq!(
        (share.values().sum::<usize>(), share.len()),
        (300, 3),
        "{share:?}"
    );
    assert!(
        share.values().all(|own| *own > 30),
        "each has a share: {share:?}"
    );

    let doomed = members.pop().expect("three");
    let behind = children(doomed.id());
    let own: Vec<String> = behind.iter().map(u32::to_string).collect();
    let waits = Waits::new(60);
    let kill = async {
        waits.under_way().await;
        // With -9.
        drop(doomed);
    };
    let began = tokio::time::Instant::now();
    let (outcomes, ()) = tokio::join!(waits.made(&client, 4_000, 20), kill);
    assert!(
        began.elapsed() < Duration::from_secs(40),
        "all end by their deadline"
    );
    let (mut answered, mut lost) = (0, 0);
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => {
                assert!(
                    !own.contains(&text(&outcome).to_owned()),
                    "the killed one answered"
                );
                answered += 1;
            }
            Err(error) => {
                assert!(
                    matches!(error.kind(), McpErrorKind::TimedOut { .. }),
                    "{error}"
                );
                lost += 1;
            }
        }
    }
    assert!(
        answered > 20 && lost > 5,
        "{answered} answered, {lost} lost"
    );
    // What stood behind it goes with it.
    until("nothing is left of the killed one", || {
        behind.iter().all(|id| !runs(*id))
    })
    .await;
    let after = (0..20).map(|_| client.call("whoami", json!({}), within(10)));
    for outcome in futures_util::future::join_all(after).await {
        outcome.expect("the others go on");
    }
}

#[tokio::test]
async fn sigterm_drains_the_command_and_leaves_nothing() {
    let Some(servers) = yiem_tests::live("yiem serve: SIGTERM") else {
        return;
    };
    let broker = Broker::start(&servers);
    let serving = serve(&broker, &[], &OWN).await;
    let behind = children(serving.id());
    assert!(!behind.is_empty());
    let client = client(&broker.url(&format!("{SUBJECT}?meta=modern")));
    client.connect().await.expect("connected");
    let waits = Waits::new(10);
    let end = async {
        waits.under_way().await;
        let sent = Command::new("kill")
            .args(["-TERM", &serving.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
        until_nobody_listens(&client).await
    };
    let (outcomes, error) = tokio::join!(waits.made(&client, 4_000, 20), end);
    for outcome in outcomes {
        outcome.expect("it was under way");
    }
    assert!(matches!(error.kind(), McpErrorKind::NoServer(_)), "{error}");
    let all: Vec<u32> = behind.into_iter().chain([serving.id()]).collect();
    until("all have ended", || all.iter().all(|id| !runs(*id))).await;
}

#[test]
fn the_command_says_what_is_wrong_with_a_broker_that_is_not_there() {
    let Some(_) = yiem_tests::live("yiem serve: no broker") else {
        return;
    };
    let port = RunningServer::free_port();
    let url = format!("nats://127.0.0.1:{port}");
    let mut command = yiem();
    command
        .args(["serve", "--nats", &url, "--subject", SUBJECT, "--"])
        .args(OWN);
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&port.to_string()), "{said}");
}
