//! T "Complete Self-Tooling Example", and what must not come of it.

use std::fs;

use serde_json::{Value, json};
use yiem_agent::{Agent, AgentEvent, EventKind};
use yiem_core::SystemEnv;
use yiem_script::{ScriptEngine, ScriptTools};
use yiem_test::{ManualEnv, Reply, ScriptedModel};

use crate::{offered, results, tools};

fn wine_tool() -> Value {
    json!({
        "name": "searchWine",
        "label": "Wine Search",
        "description": "Search a wine database by name, region, or variety",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "Search query" },
                "maxResults": { "type": "integer", "default": 10 }
            },
            "required": ["query"]
        },
        "executeCode": "const { query, maxResults } = args;\nhost.progress({ status: `Searching ${query}` });\n\
            return { content: [{ type: 'text', text: `Found ${maxResults} ${query} wines...` }], details: {}, terminate: false };",
        "parallel": false
    })
}

#[tokio::test]
async fn the_model_writes_a_tool_and_calls_it_on_the_next_turn() {
    let dir = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new([
        Reply::call("writeTool", wine_tool()),
        Reply::call("searchWine", json!({"query": "cabernet", "maxResults": 5})),
        Reply::say("The search found 5 cabernet wines."),
    ]);
    let agent = Agent::builder(model.clone())
        .source(tools(dir.path()))
        .build()
        .unwrap();
    let outcome = agent
        .prompt("I need to search for wines. Do you have a tool for that?")
        .await
        .unwrap();
    assert_eq!(outcome.text(), "The search found 5 cabernet wines.");

    let requests = model.requests();
    assert!(offered(&requests[0]).contains(&"writeTool"));
    assert!(!offered(&requests[0]).contains(&"searchWine"));
    assert!(
        offered(&requests[1]).contains(&"searchWine"),
        "{:?}",
        offered(&requests[1])
    );
    let results = results(&outcome);
    assert_eq!(results[0].added_tool_names, ["searchWine"]);
    assert!(!results[0].is_error, "{:?}", results[0]);
    assert_eq!(results[1].text(), "Found 5 cabernet wines...");
    assert!(
        fs::read_to_string(dir.path().join("searchWine.js"))
            .unwrap()
            .starts_with("// Made by writeTool on ")
    );

    // Another process finds it, also without being allowed to write; defaults are filled in.
    let model = ScriptedModel::new([
        Reply::call("searchWine", json!({"query": "merlot"})),
        Reply::say("done"),
    ]);
    let again = ScriptTools::new(dir.path(), ScriptEngine::new(SystemEnv::shared()));
    let agent = Agent::builder(model.clone()).source(again).build().unwrap();
    let outcome = agent.prompt("Find merlot").await.unwrap();
    assert_eq!(
        crate::results(&outcome)[0].text(),
        "Found 10 merlot wines..."
    );
    assert!(offered(&model.requests()[0]).contains(&"searchWine"));
    assert!(!offered(&model.requests()[0]).contains(&"writeTool"));
}

#[tokio::test]
async fn a_tool_that_was_replaced_is_the_new_one_on_the_next_turn() {
    let dir = tempfile::tempdir().unwrap();
    let mut second = wine_tool();
    second["executeCode"] = json!("return 'the second';");
    second["overwrite"] = json!(true);
    let model = ScriptedModel::new([
        Reply::call("writeTool", wine_tool()),
        Reply::call("writeTool", second),
        Reply::call("searchWine", json!({"query": "x"})),
        Reply::say("done"),
    ]);
    let agent = Agent::builder(model)
        .source(tools(dir.path()))
        .build()
        .unwrap();
    let outcome = agent.prompt("go").await.unwrap();
    assert_eq!(results(&outcome)[2].text(), "the second");
}

#[tokio::test]
async fn what_is_refused_reaches_the_model_and_the_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut bad_code = wine_tool();
    bad_code["executeCode"] = json!("return (;");
    let mut escape = wine_tool();
    escape["name"] = json!("../../escape");
    let mut no_code = wine_tool();
    no_code.as_object_mut().unwrap().remove("executeCode");
    let model = ScriptedModel::new([
        Reply::call("writeTool", bad_code),
        Reply::call("writeTool", escape),
        Reply::call("writeTool", no_code),
        Reply::call("searchWine", json!({"query": "x"})),
        Reply::say("sorry"),
    ]);
    let agent = Agent::builder(model)
        .source(tools(dir.path()))
        .build()
        .unwrap();
    let outcome = agent.prompt("go").await.unwrap();
    let results = results(&outcome);
    assert!(results.iter().all(|result| result.is_error));
    for (result, expected) in results.iter().zip([
        "executeCode does not parse",
        "cannot be a tool's name",
        "executeCode",
        "searchWine",
    ]) {
        assert!(result.text().contains(expected), "{}", result.text());
    }
    assert_eq!(outcome.text(), "sorry");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_name_that_another_tool_has_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let native = yiem_tools::FunctionTool::builder("searchWine")
        .json(json!({ "type": "object" }), |_, _| async { "native" });
    let mut replace = wine_tool();
    replace["overwrite"] = json!(true);
    let model = ScriptedModel::new([
        Reply::call("writeTool", wine_tool()),
        Reply::call("writeTool", replace),
        Reply::call("searchWine", json!({})),
        Reply::say("done"),
    ]);
    let agent = Agent::builder(model)
        .tool(native)
        .source(tools(dir.path()))
        .build()
        .unwrap();
    let outcome = agent.prompt("go").await.unwrap();
    let results = results(&outcome);
    for refused in &results[..2] {
        assert!(
            refused
                .text()
                .contains("there is a tool named \"searchWine\" already"),
            "{}",
            refused.text()
        );
        assert!(refused.added_tool_names.is_empty());
    }
    assert_eq!(results[2].text(), "native");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn own_checks_of_a_tool_stand_in_place_of_the_required_check() {
    let dir = tempfile::tempdir().unwrap();
    let mut tool = wine_tool();
    tool["validateCode"] = json!(
        "return args.query || args.region ? null : \"Missing required argument: provide at least one of 'query' or 'region'\";"
    );
    tool["prepareCode"] =
        json!("if (typeof args.query === 'string') args.query = args.query.trim();");
    let model = ScriptedModel::new([
        Reply::call("writeTool", tool),
        Reply::call("searchWine", json!({})),
        Reply::call("searchWine", json!({"query": "  rioja "})),
        Reply::say("done"),
    ]);
    let agent = Agent::builder(model)
        .source(tools(dir.path()))
        .build()
        .unwrap();
    let outcome = agent.prompt("go").await.unwrap();
    let results = results(&outcome);
    assert_eq!(
        results[1].text(),
        "Missing required argument: provide at least one of 'query' or 'region'"
    );
    assert!(results[1].is_error);
    assert_eq!(results[2].text(), "Found 10 rioja wines...");
}

#[tokio::test]
async fn a_script_that_never_ends_ends_only_its_own_call() {
    let dir = tempfile::tempdir().unwrap();
    for (name, body) in [
        ("loop", "for (;;);"),
        (
            "chain",
            "return (async function f() { await null; return f(); })();",
        ),
        (
            "bomb",
            "const a = []; for (;;) a.push('x'.repeat(1000) + a.length);",
        ),
        ("good", "return 'well';"),
    ] {
        let text = format!(
            "export const tool = {{ name: '{name}' }};\nexport async function execute(args, host) {{ {body} }}\n"
        );
        fs::write(dir.path().join(format!("{name}.js")), text).unwrap();
    }
    // Time passes only once the call is over that ends by itself, and then until the others are.
    let env = ManualEnv::new();
    let engine = ScriptEngine::new(env.shared());
    let good_ended = std::sync::Arc::new(tokio::sync::Notify::new());
    let ended = std::sync::Arc::clone(&good_ended);
    let model = ScriptedModel::new([
        Reply::call("loop", json!({}))
            .and_call("good", json!({}))
            .and_call("chain", json!({}))
            .and_call("bomb", json!({})),
        Reply::say("done"),
    ]);
    let agent = Agent::builder(model)
        .source(ScriptTools::new(dir.path(), engine))
        .listener(move |event: &AgentEvent| {
            if let EventKind::ToolExecutionEnd { tool_name, .. } = &event.kind
                && &**tool_name == "good"
            {
                ended.notify_one();
            }
        })
        .build()
        .unwrap();
    let clock = async {
        good_ended.notified().await;
        loop {
            env.advance(std::time::Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    };
    let outcome = tokio::select! {
        outcome = agent.prompt("go") => outcome.unwrap(),
        () = clock => unreachable!("the clock goes on for ever"),
    };
    let texts: Vec<String> = results(&outcome)
        .iter()
        .map(|result| result.text())
        .collect();
    assert!(texts[0].contains("ran longer than the 5 s"), "{texts:?}");
    assert_eq!(texts[1], "well");
    assert!(
        texts[2].contains("ran longer") || texts[2].contains("more memory"),
        "{texts:?}"
    );
    assert!(
        texts[3].contains("ran longer") || texts[3].contains("more memory"),
        "{texts:?}"
    );
}
