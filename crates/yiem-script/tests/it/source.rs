//! A folder of tools as a source.

use std::fs;

use serde_json::json;
use yiem_agent::Agent;
use yiem_test::{Reply, ScriptedModel};

use crate::{offered, results, tools};

#[tokio::test]
async fn a_folder_keeps_to_what_sources_promise() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        let source = format!(
            "export const tool = {{ name: '{name}' }};\nexport function execute() {{ return '{name}'; }}\n"
        );
        fs::write(dir.path().join(format!("{name}.js")), source).unwrap();
    }
    yiem_test::conformance::tool_source::run(&tools(dir.path())).await;
}

#[tokio::test]
async fn a_model_that_may_write_tools_can_look_which_names_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("getTime.js"),
        "export const tool = { name: 'getTime', label: 'Time Lookup', description: 'Get current local time.' };\n\
         export function execute() { return 'noon'; }\n",
    )
    .unwrap();
    let wine = json!({
        "name": "searchWine", "label": "Wine Search", "description": "Search wines.",
        "inputSchema": { "type": "object" }, "executeCode": "return 'wines';",
    });
    let model = ScriptedModel::new([
        Reply::call("listTools", json!({})),
        Reply::call("writeTool", wine),
        Reply::call("listTools", json!({})),
        Reply::say("done"),
    ]);
    let agent = Agent::builder(model.clone())
        .source(tools(dir.path()))
        .build()
        .unwrap();
    let outcome = agent.prompt("Make a wine tool").await.unwrap();
    assert_eq!(
        offered(&model.requests()[0]),
        ["listTools", "writeTool", "getTime"]
    );
    let results = results(&outcome);
    let lines = |at: usize| -> Vec<String> {
        let text = results[at].text();
        let line = |line: &str| line.split(" — ").next().map(str::to_owned);
        text.lines().filter_map(line).collect()
    };
    let mut list = vec![
        "Available tools:",
        "- listTools: List Tools",
        "- writeTool: Create Tool",
        "- getTime: Time Lookup",
    ];
    assert_eq!(lines(0), list);
    list.push("- searchWine: Wine Search");
    assert_eq!(lines(2), list);
}

#[tokio::test]
async fn a_folder_that_nobody_writes_to_offers_no_list() {
    let dir = tempfile::tempdir().unwrap();
    let engine = yiem_script::ScriptEngine::new(yiem_core::SystemEnv::shared());
    let model = ScriptedModel::new([Reply::say("done")]);
    let agent = Agent::builder(model.clone())
        .source(yiem_script::ScriptTools::new(dir.path(), engine))
        .build()
        .unwrap();
    agent.prompt("hi").await.unwrap();
    assert!(offered(&model.requests()[0]).is_empty());
}
