//! `host.callTool`: a script's calls of other tools go through the agent's whole pipeline.

use std::fs;
use std::sync::{Arc, Mutex};

use serde_json::json;
use yiem_agent::{Agent, BeforeToolCall};
use yiem_test::{Reply, ScriptedModel};
use yiem_tools::FunctionTool;

use crate::{results, tools};

#[tokio::test]
async fn nested_calls_are_validated_and_seen_by_hooks() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("twice.js"),
        "export const tool = { name: 'twice' };
        export async function execute(args, host) {
            const out = [];
            for (const [name, arg] of [['add', { a: 1, b: 2 }], ['add', { a: 'x' }], ['secret', {}], ['nothing', {}]]) {
                try { const r = await host.callTool(name, arg); out.push(r.isError ? `error: ${r.text}` : r.text); }
                catch (e) { out.push(`rejected: ${e.message}`); }
            }
            return out.join('\\n');
        }",
    )
    .unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let names = Arc::clone(&seen);
    let hook = move |call: yiem_agent::ToolCallView| {
        let name = call.call.name.to_string();
        names.lock().unwrap().push(name.clone());
        async move {
            Ok(if name == "secret" {
                BeforeToolCall::refuse("not for scripts")
            } else {
                BeforeToolCall::Run
            })
        }
    };
    let model = ScriptedModel::new([Reply::call("twice", json!({})), Reply::say("done")]);
    let agent = Agent::builder(model)
        .source(tools(dir.path()))
        .tool(add())
        .tool(secret())
        .before_tool_call(hook)
        .build()
        .unwrap();
    let outcome = agent.prompt("go").await.unwrap();
    let text = results(&outcome)[0].text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "3");
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("rejected") && line.contains("not for scripts")),
        "{text}"
    );
    assert!(text.contains("nothing"), "{text}");
    assert!(!text.contains("the secret"), "{text}");
    assert_eq!(*seen.lock().unwrap(), ["twice", "add", "secret"]);
}

#[tokio::test]
async fn a_script_that_calls_itself_without_end_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("again.js"),
        "export const tool = { name: 'again' };
        export async function execute(args, host) { return (await host.callTool('again')).text; }",
    )
    .unwrap();
    let model = ScriptedModel::new([Reply::call("again", json!({})), Reply::say("done")]);
    let agent = Agent::builder(model)
        .source(tools(dir.path()))
        .build()
        .unwrap();
    let outcome = agent.prompt("go").await.unwrap();
    let text = results(&outcome)[0].text();
    assert!(text.contains("deep"), "{text}");
    assert_eq!(outcome.text(), "done");
}

fn add() -> FunctionTool {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
        "required": ["a", "b"]
    });
    FunctionTool::builder("add").json(schema, |args, _| async move {
        let number = |key: &str| args[key].as_i64().unwrap_or_default();
        number("a") + number("b")
    })
}

fn secret() -> FunctionTool {
    FunctionTool::builder("secret").json(json!({ "type": "object" }), |_, _| async { "the secret" })
}
