//! MCP servers as sources of an agent's tools: found on demand and at once, of one name, changing and dying in mid-run,
//! connected in the background. Real processes, whole runs (M-4, M-6, M-7).

use super::mcp_faults::process;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use yiem::mcp::McpServer;
use yiem::tools::{Discovery, SourceState};
use yiem::{Agent, AgentEvent, EventKind, Message, Outcome};
use yiem_test::server::{Act, FakeMcpServer};
use yiem_test::{Reply, ScriptedModel};

async fn within<F: IntoFuture>(work: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(100), work.into_future())
        .await
        .expect("nothing waits for ever")
}

/// The texts of the results of a run, in their order.
fn results(outcome: &Outcome) -> Vec<String> {
    outcome
        .messages()
        .filter_map(|message| match &**message {
            Message::ToolResult(result) => Some(result.content[0].to_plain_text()),
            _ => None,
        })
        .collect()
}

fn list(names: &[&str]) -> Act {
    let tools: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": name, "description": name, "inputSchema": {"type": "object"}}))
        .collect();
    Act::Reply(json!({"tools": tools}))
}

#[tokio::test]
async fn a_list_that_changes_in_mid_run_is_there_with_the_next_turn() {
    for discovery in [Discovery::Eager, Discovery::OnDemand] {
        let script = FakeMcpServer::legacy()
            .tool("grow")
            .once("tools/list", [list(&["grow", "old"])])
            .on("tools/list", [list(&["grow", "new"])])
            .on(
                "tools/call:grow",
                [
                    Act::raw(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#),
                    Act::text("grown"),
                ],
            )
            .on("tools/call:new", [Act::text("I am new")]);
        let mut replies = vec![
            Reply::call("grow", json!({})),
            Reply::call("new", json!({})),
            Reply::call("old", json!({})),
            Reply::say("done"),
        ];
        if discovery == Discovery::OnDemand {
            replies.insert(0, Reply::call("listTools", json!({})));
        }
        let agent = Agent::builder(ScriptedModel::new(replies))
            .mcp(
                process(&script)
                    .name("garden")
                    .required(discovery == Discovery::Eager),
            )
            .discovery(discovery)
            .build()
            .unwrap();
        let outcome = within(agent.prompt("go")).await.unwrap();
        assert_eq!(outcome.text(), "done");
        let results = results(&outcome);
        let [.., grown, new, old] = &results[..] else {
            panic!("{results:?}");
        };
        assert_eq!((grown.as_str(), new.as_str()), ("grown", "I am new"));
        assert!(old.contains("old") && !old.contains("fine"), "{old}");
    }
}

#[tokio::test]
async fn a_server_that_dies_in_mid_run_costs_one_call_and_is_there_again() {
    let script = FakeMcpServer::legacy()
        .tool("die")
        .tool("pid")
        .on(
            "tools/call:die",
            [Act::Stderr("out of luck".into()), Act::Exit(7)],
        )
        .on("tools/call:pid", [Act::Pid]);
    let calls = ["pid", "die", "pid", "die", "pid"].map(|name| Reply::call(name, json!({})));
    let replies = calls.into_iter().chain([Reply::say("done")]);
    let agent = Agent::builder(ScriptedModel::new(replies))
        .mcp(process(&script).name("odd").required(true))
        .discovery(Discovery::Eager)
        .build()
        .unwrap();
    let outcome = within(agent.prompt("go")).await.unwrap();
    assert_eq!(outcome.text(), "done");
    let results = results(&outcome);
    for dead in [1, 3] {
        let text = &results[dead];
        for words in ["`odd`", "exit status 7", "out of luck"] {
            assert!(text.contains(words), "{text}");
        }
    }
    let [first, second, third] = [0, 2, 4].map(|at| results[at].parse::<u32>().unwrap());
    assert!(first != second && second != third, "{results:?}");
    // Its tools stayed listed all the time.
    let names: Vec<String> = agent
        .tools()
        .all()
        .iter()
        .map(|tool| tool.name().to_owned())
        .collect();
    assert!(names.contains(&"die".to_owned()) && names.contains(&"pid".to_owned()));
}

#[tokio::test]
async fn tools_of_one_name_are_told_apart_and_called_by_their_servers_own_name() {
    let server = |key: &str, delay: u64| {
        let script = FakeMcpServer::legacy()
            .on(
                "tools/list",
                [Act::Sleep(delay), list(&["t", "with.dots and spaces"])],
            )
            .on(
                "initialize",
                [Act::Reply(
                    json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}),
                )],
            )
            .on("tools/call:t", [Act::text(format!("t of {key}"))])
            .on(
                "tools/call:with.dots and spaces",
                [Act::text(format!("dots of {key}"))],
            );
        process(&script).name(key.to_owned()).required(true)
    };
    // The one that is configured first answers last, and keeps the name.
    let agent = Agent::builder(ScriptedModel::new([
        Reply::call("t", json!({})),
        Reply::call("two__t", json!({})),
        Reply::say("done"),
    ]))
    .mcp(server("one", 200))
    .mcp(server("two", 0))
    .discovery(Discovery::Eager)
    .build()
    .unwrap();
    let outcome = within(agent.prompt("go")).await.unwrap();
    assert_eq!(results(&outcome), ["t of one", "t of two"]);
    let names: Vec<String> = agent
        .tools()
        .all()
        .iter()
        .map(|tool| tool.name().to_owned())
        .collect();
    assert!(
        names.iter().all(|name| name.chars().count() <= 64),
        "{names:?}"
    );
}

#[tokio::test]
async fn on_demand_servers_connect_in_the_background_and_a_dead_one_is_told_in_the_first_run() {
    let script = FakeMcpServer::legacy()
        .tool("t")
        .on("tools/call:t", [Act::Seen]);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&heard);
    let agent = Agent::builder(ScriptedModel::new([
        Reply::call("listTools", json!({})),
        Reply::call("t", json!({})),
        Reply::say("done"),
    ]))
    .mcp(process(&script).name("live"))
    .mcp(McpServer::stdio("/no/such/server", ["x"]).name("dead"))
    .listener(move |event: &AgentEvent| events.lock().unwrap().push(event.clone()))
    .build()
    .unwrap();
    let sources = within(agent.ready()).await;
    assert!(
        matches!(sources[0].state, SourceState::Connected),
        "{sources:?}"
    );
    assert!(
        matches!(sources[1].state, SourceState::Failed { .. }),
        "{sources:?}"
    );
    let outcome = within(agent.prompt("go")).await.unwrap();
    assert_eq!(outcome.text(), "done");
    // Before it was asked for, it was greeted and no more.
    let results = results(&outcome);
    let seen: Vec<Value> = serde_json::from_str(&results[1]).unwrap();
    let methods: Vec<&str> = seen
        .iter()
        .filter_map(|message| message["method"].as_str())
        .collect();
    assert_eq!(
        methods,
        [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/call"
        ]
    );
    assert!(
        results[0].contains("dead") && !results[0].contains("PATH"),
        "{}",
        results[0]
    );
    let heard = heard.lock().unwrap();
    let told = heard.iter().any(|event| match &event.kind {
        EventKind::Warning { message } => message.contains("/no/such/server"),
        _ => false,
    });
    assert!(told, "{heard:#?}");
}
