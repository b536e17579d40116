//! Scenarios of agent loops that are known by a number and that no other place has.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Barrier;
use yiem_agent::{
    Agent, BeforeToolCall, Compaction, EventKind, PrepareNextTurn, QueueKind, before_tool_call,
    event_sink,
};
use yiem_core::{
    ArgsCheck, CustomMessage, History, JsonObject, LoadedTools, Message, ModelInfo, SourceError,
    Timestamp, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ToolSource, ValidArgs,
    async_trait,
};
use yiem_test::{Events, PausedEnv, Reply, ScriptedModel, TestTool, tool};

use crate::within;

fn history(messages: impl IntoIterator<Item = Message>) -> History {
    messages.into_iter().map(Arc::new).collect()
}

#[tokio::test(start_paused = true)]
async fn l11_all_parallel() {
    let both = Arc::new(Barrier::new(2));
    let meeting = |name: &str| {
        let both = Arc::clone(&both);
        TestTool::new(name, move |_, _| {
            let both = Arc::clone(&both);
            async move {
                both.wait().await;
                Ok(ToolOutput::text("met"))
            }
        })
    };
    let model = ScriptedModel::new([
        Reply::call("a", json!({})).and_call("b", json!({})),
        Reply::say("done"),
    ]);
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .tools([meeting("a"), meeting("b")])
        .build()
        .unwrap();
    assert_eq!(within(agent.prompt("hi")).await.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn l22_continue_existing() {
    let events = Events::new();
    let agent = Agent::builder(ScriptedModel::new([Reply::say("hello")]))
        .env(PausedEnv::shared())
        .history(history([Message::user("hi", Timestamp::default())]))
        .listener(events.listener())
        .build()
        .unwrap();
    let outcome = within(agent.continue_run()).await.unwrap();
    let new: Vec<_> = outcome.messages().map(|m| m.role()).collect();
    assert_eq!(new, ["assistant"]);
    assert!(
        !events.transcript().contains("user"),
        "{}",
        events.transcript()
    );
}

#[tokio::test(start_paused = true)]
async fn l23_continue_custom_tail() {
    let tail = CustomMessage {
        kind: "note".to_owned(),
        data: json!({"n": 1}),
        ..CustomMessage::default()
    };
    let agent = Agent::builder(ScriptedModel::new([Reply::say("noted")]))
        .env(PausedEnv::shared())
        .history(history([
            Message::user("hi", Timestamp::default()),
            Message::Custom(tail),
        ]))
        .build()
        .unwrap();
    let outcome = within(agent.continue_run()).await.unwrap();
    let roles: Vec<_> = outcome.transcript.iter().map(|m| m.role()).collect();
    assert_eq!(roles, ["user", "custom", "assistant"]);
}

#[tokio::test(start_paused = true)]
async fn l26_lax_content() {
    let model = ScriptedModel::new([Reply::call("mute", json!({})), Reply::say("done")]);
    let agent = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .tool(TestTool::new("mute", |_, _| async {
            Ok(ToolOutput::default())
        }))
        .build()
        .unwrap();
    let outcome = within(agent.prompt("hi")).await.unwrap();
    assert_eq!(outcome.text(), "done");
    let result = outcome.transcript.get(2).unwrap();
    assert!(result.as_tool_result().unwrap().content.is_empty());
    assert_eq!(
        serde_json::to_value(&**result).unwrap()["content"],
        json!([])
    );
}

#[tokio::test(start_paused = true)]
async fn a03_mutation_emits_nothing() {
    let events = Events::new();
    let agent = Agent::builder(ScriptedModel::new([Reply::say("hello")]))
        .env(PausedEnv::shared())
        .listener(events.listener())
        .build()
        .unwrap();
    let mut heard = agent.subscribe();
    let gone = agent.subscribe();
    drop(gone);
    agent.change(PrepareNextTurn::keep().system("new"));
    agent.add_tool(tool::echo()).unwrap();
    agent.set_session_id("other");
    agent.follow_up("later").unwrap();
    agent.clear_queues();
    within(agent.reset()).await.unwrap();
    assert_eq!(events.all(), []);
    assert_eq!(heard.try_next(), None);
    within(agent.prompt("hi")).await.unwrap();
    assert!(heard.try_next().is_some());
}

#[tokio::test(start_paused = true)]
async fn a11_setters_copy() {
    let mut tools = vec![tool::echo()];
    let mut messages = history([Message::user("hi", Timestamp::default())]);
    let agent = Agent::builder(ScriptedModel::new([]))
        .env(PausedEnv::shared())
        .tools(tools.clone())
        .history(messages.clone())
        .build()
        .unwrap();
    tools.clear();
    messages.push(Message::user("more", Timestamp::default()));
    let state = agent.state();
    assert_eq!((state.tools.len(), state.messages.len()), (1, 1));
    // Nor does what was given out change with the agent.
    agent.add_tool(tool::never("never")).unwrap();
    assert_eq!((state.tools.len(), agent.state().tools.len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn q07_count_at_message_start() {
    let counts = Arc::new(Mutex::new(Vec::new()));
    let holder: Arc<Mutex<Option<yiem_agent::WeakAgent>>> = Arc::default();
    let (seen, agent_of) = (Arc::clone(&counts), Arc::clone(&holder));
    let agent = Agent::builder(ScriptedModel::new([
        Reply::say("a").after(Duration::from_secs(2)),
        Reply::say("b"),
    ]))
    .env(PausedEnv::shared())
    .sink(event_sink(move |event| {
        let (seen, agent_of) = (Arc::clone(&seen), Arc::clone(&agent_of));
        async move {
            if let EventKind::MessageStart {
                message: Some(message),
                ..
            } = &event.kind
                && message.as_user().is_some()
            {
                let agent = agent_of.lock().unwrap().as_ref().and_then(|a| a.upgrade());
                let waiting = agent.unwrap().queued(QueueKind::Steering).len();
                seen.lock().unwrap().push(waiting);
            }
        }
    }))
    .build()
    .unwrap();
    *holder.lock().unwrap() = Some(agent.downgrade());
    agent.run("hi").unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    agent.steer("now").unwrap();
    assert_eq!(agent.queued(QueueKind::Steering).len(), 1);
    within(agent.take_response()).await.unwrap();
    assert_eq!(*counts.lock().unwrap(), [0, 0]);
}

// ---- arguments ----

/// What a call of a tool with this schema comes to: what the tool was given, or what the model
/// reads.
async fn called(schema: Value, args: Value) -> Result<JsonObject, String> {
    let given = TestTool::new("t", |_, _| async { Ok(ToolOutput::text("ok")) }).schema(schema);
    let model = ScriptedModel::new([Reply::call("t", args.clone()), Reply::say("done")]);
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(given.clone())
        .build()
        .unwrap();
    let outcome = within(agent.prompt("hi")).await.unwrap();
    // The stored call keeps what came.
    let reply = outcome.transcript.get(1).unwrap();
    let call = reply.as_assistant().unwrap().tool_calls().next().unwrap();
    assert_eq!(call.arguments.raw(), args.to_string());
    let result = outcome.transcript.get(2).unwrap();
    let result = result.as_tool_result().unwrap();
    match given.calls().pop() {
        Some(args) => Ok(args),
        None => Err(result.text()),
    }
}

fn object(value: Value) -> JsonObject {
    value.as_object().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn v01_matching_arguments_pass_unchanged_and_v05_unknown_keys_are_kept() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
        "required": ["n"],
    });
    let args = json!({"s": "x", "n": 1, "more": [1, null, {"a": "b"}]});
    assert_eq!(called(schema, args.clone()).await, Ok(object(args)));
}

#[tokio::test(start_paused = true)]
async fn v06_nested_failure_names_the_path() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {"b": {"type": "integer"}}}},
    });
    let said = called(schema, json!({"a": {"b": "text"}}))
        .await
        .unwrap_err();
    assert!(said.contains("a.b") && said.contains("text"), "{said}");
}

/// T's `getTime`: a check of its own in place of the required check.
struct Checked(Arc<ToolDefinition>);

#[async_trait]
impl Tool for Checked {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }
    async fn validate_required_args(&self, args: &JsonObject) -> ArgsCheck {
        match args.get("zone").and_then(Value::as_str) {
            Some("UTC") => ArgsCheck::Accept,
            _ => ArgsCheck::Reject("only UTC is known here".to_owned()),
        }
    }
    async fn call(&self, _: ValidArgs, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("noon"))
    }
}

#[tokio::test(start_paused = true)]
async fn v08_custom_validator() {
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let definition = ToolDefinition {
        name: "getTime".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {"zone": {"type": "string"}},
            "required": ["zone"],
        }),
        ..ToolDefinition::default()
    };
    let model = ScriptedModel::new([
        Reply::call("getTime", json!({"zone": "Mars"})).and_call("getTime", json!({})),
        Reply::call("getTime", json!({"zone": "UTC"})),
        Reply::say("done"),
    ]);
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(Checked(Arc::new(definition)))
        .hook(before_tool_call(move |_| {
            *count.lock().unwrap() += 1;
            async { Ok(BeforeToolCall::Run) }
        }))
        .build()
        .unwrap();
    let outcome = within(agent.prompt("what time is it?")).await.unwrap();
    let results: Vec<(String, bool)> = outcome
        .transcript
        .iter()
        .filter_map(|m| m.as_tool_result().map(|r| (r.text(), r.is_error)))
        .collect();
    let refused = ("only UTC is known here".to_owned(), true);
    assert_eq!(
        results,
        [refused.clone(), refused, ("noon".to_owned(), false)]
    );
    assert_eq!(*asked.lock().unwrap(), 1);
}

/// A source with one good tool and one whose schema is none.
struct HalfGood;

#[async_trait]
impl ToolSource for HalfGood {
    fn name(&self) -> &str {
        "server"
    }
    fn generation(&self) -> u64 {
        1
    }
    fn required(&self) -> bool {
        true
    }
    async fn load(&self, _: &yiem_core::CancelToken) -> Result<LoadedTools, SourceError> {
        let tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(tool::echo().define(|d| d.name = "good".to_owned())),
            Arc::new(tool::never("bad").schema(json!({"type": "nonsense"}))),
        ];
        Ok(LoadedTools {
            generation: 1,
            tools,
            ..LoadedTools::default()
        })
    }
}

#[tokio::test(start_paused = true)]
async fn v12_bad_schema() {
    let own = Agent::builder(ScriptedModel::new([]))
        .tool(tool::never("bad").schema(json!({"type": "nonsense"})))
        .build();
    assert!(own.unwrap_err().to_string().contains("bad"));
    let model = ScriptedModel::new([Reply::call("bad", json!({})), Reply::say("done")]);
    let agent = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .discovery(yiem_tools::Discovery::Eager)
        .source(HalfGood)
        .build()
        .unwrap();
    let outcome = within(agent.prompt("hi")).await.unwrap();
    let offered: Vec<_> = model.requests()[0]
        .tools
        .iter()
        .map(|t| t.name.clone())
        .collect();
    assert_eq!(offered, ["good"]);
    let result = outcome.transcript.get(2).unwrap().as_tool_result().unwrap();
    assert!(
        result.text().starts_with("Tool bad not found"),
        "{}",
        result.text()
    );
    let quarantined = agent.tools().quarantined();
    assert_eq!(quarantined.len(), 1);
    assert!(!quarantined[0].reason.is_empty());
}

// ---- overflow ----

#[tokio::test(start_paused = true)]
async fn r03_silent_overflow() {
    let info = ModelInfo {
        context_window: 1_000,
        ..ModelInfo::new("small")
    };
    for (first, compacted) in [
        (Reply::say("cut off").usage(1_001, 5), true),
        (
            Reply::say("")
                .stop(yiem_core::StopReason::Length)
                .usage(995, 0),
            true,
        ),
        (Reply::say("fits").usage(1_000, 5), false),
        (
            Reply::say("long")
                .stop(yiem_core::StopReason::Length)
                .usage(900, 100),
            false,
        ),
    ] {
        let model = ScriptedModel::with_info(info.clone(), [first, Reply::say("after")]);
        let agent = Agent::builder(model.clone())
            .env(PausedEnv::shared())
            .hook(Shorter)
            .build()
            .unwrap();
        let outcome = within(agent.prompt("hi")).await.unwrap();
        assert!(outcome.is_ok());
        assert_eq!(model.calls(), if compacted { 2 } else { 1 });
        // What overflowed is not in the history.
        assert_eq!(outcome.transcript.len(), 2);
        assert_eq!(outcome.text() == "after", compacted);
    }
}

struct Shorter;

#[async_trait]
impl yiem_agent::AgentHook for Shorter {
    async fn compact(
        &self,
        view: yiem_agent::CompactionView,
    ) -> Result<Compaction, yiem_core::Error> {
        Ok(Compaction::Replace(view.messages))
    }
}
