//! The JSON of events: `docs/events.json` has an example of each, made by this test
//! (`UPDATE_EXPECT=1`) and checked by it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use yiem_agent::{
    Agent, AgentEvent, ApprovalAnswer, BeforeToolCall, Delivery, EventKind, Question,
};
use yiem_core::{
    LoadedTools, ModelErrorKind, ModelInfo, SourceError, StopReason, Tool, ToolSource, async_trait,
};
use yiem_test::{PausedEnv, Reply, ScriptedModel, tool};

use crate::within;

/// Every kind that there is; a new one has to be told of here, and so in the list.
const KINDS: &[&str] = &[
    "agentEnd",
    "agentStart",
    "approvalRequested",
    "approvalResolved",
    "compactionEnd",
    "compactionStart",
    "messageEnd",
    "messageStart",
    "messageUpdate",
    "queueChanged",
    "retryScheduled",
    "toolCallRejected",
    "toolExecutionEnd",
    "toolExecutionStart",
    "toolExecutionUpdate",
    "toolsChanged",
    "turnEnd",
    "turnStart",
    "warning",
];

struct OneTool;

#[async_trait]
impl ToolSource for OneTool {
    fn name(&self) -> &str {
        "server"
    }
    fn generation(&self) -> u64 {
        1
    }
    async fn load(&self, _: &yiem_core::CancelToken) -> Result<LoadedTools, SourceError> {
        let far: Arc<dyn Tool> = Arc::new(tool::slow("far", Duration::ZERO, "far"));
        Ok(LoadedTools {
            generation: 1,
            tools: vec![far],
            ..LoadedTools::default()
        })
    }
    fn required(&self) -> bool {
        true
    }
}

/// A conversation in which everything happens.
async fn all_events() -> Vec<AgentEvent> {
    let model = ScriptedModel::with_info(
        ModelInfo::new("scripted"),
        [
            Reply::say("first"),
            Reply::fail(ModelErrorKind::Overloaded, "too much to do"),
            Reply::say("I look.")
                .and_call("up", json!({}))
                .and_call("echo", json!({"value": "x"}))
                .and_call("nope", json!({}))
                .usage(100, 20),
            Reply::fail(ModelErrorKind::ContextLength, "the prompt is too long"),
            Reply::say("a summary"),
            Reply::say("done").stop(StopReason::ToolCalls).usage(50, 5),
            Reply::say("nothing more"),
        ],
    );
    let events = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&events);
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .source(OneTool)
        .discovery(yiem_tools::Discovery::Eager)
        .tool(tool::echo())
        .tool(tool::updating("up", 1, Duration::from_millis(1)))
        .listener(move |event| keep.lock().unwrap().push(event.clone()))
        .before_tool_call(|view| async move {
            Ok(match view.tool.name.as_str() {
                "echo" => {
                    BeforeToolCall::Ask(Question::new("May it?").within(Duration::from_secs(60)))
                }
                _ => BeforeToolCall::Run,
            })
        })
        .build()
        .unwrap();
    within(agent.prompt("hello")).await.unwrap();
    let mut heard = agent.subscribe();
    agent.run("go").unwrap();
    while let Some(Delivery::Event(event)) = within(heard.next()).await {
        match &event.kind {
            EventKind::ApprovalRequested { approval_id, .. } => {
                agent.follow_up("and then?").unwrap();
                assert!(agent.answer(approval_id, ApprovalAnswer::Allow));
            }
            EventKind::AgentEnd { .. } => break,
            _ => {}
        }
    }
    within(agent.wait_idle()).await;
    Arc::try_unwrap(events).map_or_else(
        |shared| shared.lock().unwrap().clone(),
        |own| own.into_inner().unwrap(),
    )
}

#[tokio::test(start_paused = true)]
async fn the_list_of_events_has_an_example_of_each() {
    let mut examples: Vec<Value> = Vec::new();
    let mut seen = BTreeSet::new();
    for event in all_events().await {
        let json = serde_json::to_value(&event).unwrap();
        for key in ["type", "runId", "turn", "seq"] {
            assert!(json.get(key).is_some(), "{json}");
        }
        let back: AgentEvent = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&back).unwrap(), json);
        if seen.insert(json["type"].as_str().unwrap().to_owned()) {
            examples.push(json);
        }
    }
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), KINDS);
    examples.sort_by_key(|e| e["type"].as_str().unwrap().to_owned());
    let text = serde_json::to_string_pretty(&examples).unwrap() + "\n";
    expect_test::expect_file!["../../../../docs/events.json"].assert_eq(&text);
}

#[tokio::test(start_paused = true)]
async fn a_update_never_has_the_whole_message_and_args_are_as_validated() {
    let events = all_events().await;
    for event in &events {
        let json = serde_json::to_value(event).unwrap();
        match json["type"].as_str().unwrap() {
            "messageUpdate" => assert!(json.get("message").is_none(), "{json}"),
            "toolExecutionStart" => assert!(json["args"].is_object(), "{json}"),
            "toolExecutionEnd" => {
                assert!(json["result"]["content"].is_array() && json["isError"].is_boolean());
            }
            _ => {}
        }
    }
}
