//! Hooks: what they see, may answer, and what happens when they fail (R-9).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use serde_json::json;
use yiem_agent::{
    AfterToolCall, Agent, AgentHook, ApprovalAnswer, BeforeModelCall, BeforeToolCall, ContextView,
    EndReason, EventKind, Failure, HookPoint, ModelCallView, PrepareNextTurn, Question,
    StopAfterTurn, ToolCallView, ToolResultView, TransformContext, TurnView,
};
use yiem_core::{ChatRequest, Error, History, Message, ToolOutput, async_trait};
use yiem_test::{Events, PausedEnv, Reply, ScriptedModel, TestTool, tool, transcript};

use crate::within;

fn call_echo(value: &str) -> Reply {
    Reply::call("echo", json!({ "value": value })).whole()
}

fn tool_lines(events: &Events) -> String {
    let all = events.all();
    let lines = all.iter().filter(|e| {
        matches!(
            e.kind,
            EventKind::ToolExecutionStart { .. }
                | EventKind::ToolExecutionEnd { .. }
                | EventKind::ToolCallRejected { .. }
                | EventKind::ApprovalRequested { .. }
                | EventKind::ApprovalResolved { .. }
        )
    });
    lines
        .map(|e| transcript::line(e).trim().to_owned() + "\n")
        .collect()
}

#[tokio::test(start_paused = true)]
async fn l03_transform_is_for_this_call_only_and_sees_the_history() {
    let model = ScriptedModel::new((1..=3).map(|n| Reply::say(format!("answer {n}"))));
    let agent = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .transform_context(|view| async move {
            let last: History = view
                .messages
                .range(view.messages.len() - 1)
                .cloned()
                .collect();
            Ok(TransformContext::Messages(last))
        })
        .build()
        .unwrap();
    for n in 1..=3 {
        within(agent.prompt(format!("question {n}"))).await.unwrap();
    }
    let sent: Vec<usize> = model.requests().iter().map(|r| r.messages.len()).collect();
    assert_eq!(sent, [1, 1, 1]);
    assert_eq!(agent.history().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn l02_custom_messages_stay_in_history_and_a_transform_may_drop_them() {
    let model = ScriptedModel::new([Reply::say("ok")]);
    let note = yiem_core::CustomMessage {
        kind: "notification".to_owned(),
        data: json!({"n": 1}),
        ..Default::default()
    };
    let mut history = History::new();
    history.push(Message::Custom(note));
    let agent = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .history(history)
        .transform_context(|view| async move {
            let kept = view
                .messages
                .iter()
                .filter(|m| m.role() != "custom")
                .cloned();
            Ok(TransformContext::Messages(kept.collect()))
        })
        .build()
        .unwrap();
    within(agent.prompt("hi")).await.unwrap();
    assert!(
        model.requests()[0]
            .messages
            .iter()
            .all(|m| m.role() != "custom")
    );
    assert_eq!(agent.history().get(0).unwrap().role(), "custom");
}

#[tokio::test(start_paused = true)]
async fn hooks_are_asked_in_order_and_each_sees_the_previous_answer() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let model = ScriptedModel::new([call_echo("a"), Reply::say("done")]);
    let events = Events::new();
    let mut builder = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(tool::echo())
        .listener(events.listener());
    for name in ["first", "second"] {
        let seen = Arc::clone(&seen);
        builder = builder.before_tool_call(move |view| {
            let value = view.args["value"].as_str().unwrap().to_owned();
            seen.lock().unwrap().push(format!("{name} sees {value}"));
            async move {
                let args = json!({ "value": format!("{value}+{name}") });
                Ok(BeforeToolCall::RunWith(args.as_object().unwrap().clone()))
            }
        });
    }
    for name in ["third", "fourth"] {
        builder = builder.after_tool_call(move |view| async move {
            Ok(AfterToolCall::keep().text(format!("{} after {name}", view.output.plain_text())))
        });
    }
    let agent = builder.build().unwrap();
    within(agent.prompt("hi")).await.unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        ["first sees a", "second sees a+first"]
    );
    expect![[r#"
        toolExecutionStart call_1 echo {"value":"a+first+second"}
        toolExecutionEnd call_1 ok "a+first+second after third after fourth"
    "#]]
    .assert_eq(&tool_lines(&events));
}

#[tokio::test(start_paused = true)]
async fn l06_arguments_of_a_hook_are_validated_again() {
    let model = ScriptedModel::new([call_echo("x"), Reply::say("done")]);
    let echo = tool::echo();
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(echo.clone())
        .before_tool_call(|_| async {
            Ok(BeforeToolCall::RunWith(
                json!({"value": {"n": 1}}).as_object().unwrap().clone(),
            ))
        })
        .build()
        .unwrap();
    let outcome = within(agent.prompt("hi")).await.unwrap();
    let result = outcome.messages().nth(2).unwrap().as_tool_result().unwrap();
    assert!(
        result.is_error && result.text().contains("value"),
        "{}",
        result.text()
    );
    assert_eq!(echo.calls().len(), 0);
    // The stored call keeps what the model gave.
    let call = outcome
        .messages()
        .nth(1)
        .unwrap()
        .as_assistant()
        .unwrap()
        .tool_calls()
        .next();
    assert_eq!(call.unwrap().arguments().unwrap()["value"], "x");
}

#[tokio::test(start_paused = true)]
async fn l17_terminate_from_after_hook() {
    let model = ScriptedModel::new([call_echo("x")]);
    let agent = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .tool(tool::echo())
        .after_tool_call(|_| async { Ok(AfterToolCall::keep().terminate(true)) })
        .build()
        .unwrap();
    let outcome = within(agent.prompt("hi")).await.unwrap();
    assert!(matches!(outcome.end, EndReason::Terminated));
    assert_eq!((model.calls(), outcome.text()), (1, "x"));
}

#[tokio::test(start_paused = true)]
async fn after_hook_replaces_field_by_field() {
    let model = ScriptedModel::new([call_echo("x"), Reply::say("done")]);
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(tool::echo())
        .after_tool_call(|_| async {
            Ok(AfterToolCall::keep()
                .details(json!({"seen": true}))
                .is_error(true))
        })
        .build()
        .unwrap();
    let outcome = within(agent.prompt("hi")).await.unwrap();
    let result = outcome.messages().nth(2).unwrap().as_tool_result().unwrap();
    assert_eq!(
        (result.text().as_str(), &result.details, result.is_error),
        ("x", &json!({"seen": true}), true)
    );
}

#[tokio::test(start_paused = true)]
async fn after_hook_is_not_asked_about_rejected_calls() {
    let asked = Arc::new(Mutex::new(0));
    let model = ScriptedModel::new([
        Reply::call("nope", json!({})).and_call("echo", json!({})),
        Reply::say("done"),
    ]);
    let count = Arc::clone(&asked);
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(tool::echo())
        .after_tool_call(move |_| {
            *count.lock().unwrap() += 1;
            async { Ok(AfterToolCall::keep()) }
        })
        .build()
        .unwrap();
    within(agent.prompt("hi")).await.unwrap();
    assert_eq!(*asked.lock().unwrap(), 0);
}

/// Fails, or panics, in the method of that name.
struct Bad {
    at: &'static str,
    panics: bool,
}

impl Bad {
    fn at<T>(&self, method: &str, fine: T) -> Result<T, Error> {
        match (self.at == method, self.panics) {
            (false, _) => Ok(fine),
            (true, true) => panic!("the hook was told to panic"),
            (true, false) => Err(Error::msg("the hook was told to fail")),
        }
    }
}

#[async_trait]
impl AgentHook for Bad {
    fn name(&self) -> &str {
        "bad"
    }
    async fn transform_context(
        &self,
        _: yiem_agent::ContextView,
    ) -> Result<TransformContext, Error> {
        self.at("transform_context", TransformContext::Keep)
    }
    async fn before_model_call(
        &self,
        _: yiem_agent::ModelCallView,
    ) -> Result<BeforeModelCall, Error> {
        self.at("before_model_call", BeforeModelCall::Send)
    }
    async fn before_tool_call(&self, _: yiem_agent::ToolCallView) -> Result<BeforeToolCall, Error> {
        self.at("before_tool_call", BeforeToolCall::Run)
    }
    async fn after_tool_call(&self, _: yiem_agent::ToolResultView) -> Result<AfterToolCall, Error> {
        self.at("after_tool_call", AfterToolCall::keep())
    }
    async fn should_stop_after_turn(
        &self,
        _: yiem_agent::TurnView,
    ) -> Result<StopAfterTurn, Error> {
        self.at("should_stop_after_turn", StopAfterTurn::GoOn)
    }
    async fn prepare_next_turn(&self, _: yiem_agent::TurnView) -> Result<PrepareNextTurn, Error> {
        self.at("prepare_next_turn", PrepareNextTurn::keep())
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_or_panicking_hook_fails_its_call_or_turn_and_no_more() {
    for panics in [false, true] {
        for at in ["before_tool_call", "after_tool_call"] {
            let model = ScriptedModel::new([call_echo("x"), Reply::say("done")]);
            let agent = Agent::builder(model)
                .env(PausedEnv::shared())
                .tool(tool::echo())
                .hook(Bad { at, panics })
                .build()
                .unwrap();
            let outcome = within(agent.prompt("hi")).await.unwrap();
            assert_eq!(outcome.text(), "done", "{at}");
            let result = outcome.messages().nth(2).unwrap().as_tool_result().unwrap();
            assert!(
                result.is_error && result.text().contains("the hook"),
                "{at}: {}",
                result.text()
            );
        }
        for at in [
            "transform_context",
            "before_model_call",
            "should_stop_after_turn",
            "prepare_next_turn",
        ] {
            let model = ScriptedModel::new([call_echo("x"), Reply::say("done")]);
            let events = Events::new();
            let agent = Agent::builder(model)
                .env(PausedEnv::shared())
                .tool(tool::echo())
                .listener(events.listener())
                .hook(Bad { at, panics })
                .build()
                .unwrap();
            let outcome = within(agent.prompt("hi")).await.unwrap();
            let EndReason::Failed(Failure::Hook { hook, .. }) = &outcome.end else {
                panic!("{at}: {:?}", outcome.end)
            };
            assert_eq!(hook, "bad");
            let last = outcome.transcript.last().unwrap().as_assistant().unwrap();
            assert!(last.is_broken() && last.error_message.is_some(), "{at}");
            crate::invariants::events_nest(&events.all()).unwrap();
            assert!(outcome.ok().is_err());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn before_model_call_may_replace_the_request() {
    let model = ScriptedModel::new([Reply::say("ok")]);
    let agent = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .system("old")
        .before_model_call(|view| async move {
            let request = ChatRequest {
                system: Some("new".into()),
                ..view.request
            };
            Ok(BeforeModelCall::Replace(Box::new(request)))
        })
        .build()
        .unwrap();
    within(agent.prompt("hi")).await.unwrap();
    assert_eq!(model.requests()[0].system.as_deref(), Some("new"));
    assert_eq!(&*agent.state().system_prompt, "old");
}

#[tokio::test(start_paused = true)]
async fn should_stop_after_turn_ends_the_run_and_leaves_the_queue() {
    let model = ScriptedModel::new([call_echo("x")]);
    let agent = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .tool(tool::echo())
        .should_stop_after_turn(|view| async move {
            assert_eq!(view.tool_results.len(), 1);
            Ok(StopAfterTurn::Stop)
        })
        .build()
        .unwrap();
    agent.follow_up("later").unwrap();
    let outcome = within(agent.prompt("hi")).await.unwrap();
    assert!(matches!(outcome.end, EndReason::Stopped));
    assert_eq!(model.calls(), 1);
    assert!(agent.has_queued_messages());
}

#[tokio::test(start_paused = true)]
async fn l13_prepare_next_turn_replaces_prompt_model_and_tools_when_a_turn_follows() {
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let second = ScriptedModel::new([Reply::say("done")]);
    let model = ScriptedModel::new([call_echo("x")]);
    let next = second.clone();
    let agent = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .system("old")
        .tool(tool::echo())
        .tool(tool::slow("other", Duration::ZERO, "x"))
        .prepare_next_turn(move |_| {
            *count.lock().unwrap() += 1;
            let next = next.clone();
            async move {
                Ok(PrepareNextTurn::keep()
                    .system("new")
                    .model(next)
                    .tools(["other"]))
            }
        })
        .build()
        .unwrap();
    within(agent.prompt("hi")).await.unwrap();
    let request = &second.requests()[0];
    assert_eq!(request.system.as_deref(), Some("new"));
    let names: Vec<_> = request.tools.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["other"]);
    // Once: no turn followed the second.
    assert_eq!(*asked.lock().unwrap(), 1);
}

/// A hook that has every method, notes which is called, and names the points at which it wants
/// to be asked.
struct Picky {
    at: &'static [HookPoint],
    asked: Arc<Mutex<Vec<&'static str>>>,
}

impl Picky {
    fn note(&self, what: &'static str) {
        self.asked.lock().unwrap().push(what);
    }
}

#[async_trait]
impl AgentHook for Picky {
    fn is_asked_at(&self, point: HookPoint) -> bool {
        self.at.contains(&point)
    }
    async fn transform_context(&self, _: ContextView) -> Result<TransformContext, Error> {
        self.note("transform_context");
        Ok(TransformContext::Keep)
    }
    async fn before_model_call(&self, _: ModelCallView) -> Result<BeforeModelCall, Error> {
        self.note("before_model_call");
        Ok(BeforeModelCall::Send)
    }
    async fn before_tool_call(&self, _: ToolCallView) -> Result<BeforeToolCall, Error> {
        self.note("before_tool_call");
        Ok(BeforeToolCall::Run)
    }
    async fn after_tool_call(&self, _: ToolResultView) -> Result<AfterToolCall, Error> {
        self.note("after_tool_call");
        Ok(AfterToolCall::keep())
    }
    async fn should_stop_after_turn(&self, _: TurnView) -> Result<StopAfterTurn, Error> {
        self.note("should_stop_after_turn");
        Ok(StopAfterTurn::GoOn)
    }
    async fn prepare_next_turn(&self, _: TurnView) -> Result<PrepareNextTurn, Error> {
        self.note("prepare_next_turn");
        Ok(PrepareNextTurn::keep())
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_asked_only_where_it_wants_to_be() {
    use HookPoint as At;
    let all: &[HookPoint] = &[
        At::TransformContext,
        At::BeforeModelCall,
        At::BeforeToolCall,
        At::AfterToolCall,
        At::ShouldStopAfterTurn,
        At::PrepareNextTurn,
    ];
    for (at, expected) in [
        (all, 9),
        (&[][..], 0),
        (&[At::TransformContext], 2),
        (&[At::BeforeModelCall], 2),
        (&[At::BeforeToolCall], 1),
        (&[At::AfterToolCall], 1),
        (&[At::ShouldStopAfterTurn], 2),
        (&[At::PrepareNextTurn], 1),
    ] {
        let asked = Arc::default();
        let agent = Agent::builder(ScriptedModel::new([call_echo("a"), Reply::say("done")]))
            .env(PausedEnv::shared())
            .tool(tool::echo())
            .hook(Picky {
                at,
                asked: Arc::clone(&asked),
            })
            .build()
            .unwrap();
        let outcome = within(agent.prompt("go")).await.unwrap();
        assert_eq!(outcome.text(), "done");
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), expected, "{at:?}: {asked:?}");
    }
}

fn asking(timeout: Option<Duration>) -> yiem_agent::AgentBuilder {
    let model = ScriptedModel::new([
        call_echo("x").and_call("echo", json!({"value": "y"})),
        Reply::say("done"),
    ]);
    Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(tool::echo())
        .before_tool_call(move |view| async move {
            if view.args["value"] == "y" {
                return Ok(BeforeToolCall::Run);
            }
            let mut question = Question::new("May it?");
            question.timeout = timeout;
            Ok(BeforeToolCall::Ask(question))
        })
}

#[tokio::test(start_paused = true)]
async fn a_person_is_asked_and_answers_from_another_task() {
    for (answer, expected) in [
        (
            ApprovalAnswer::Allow,
            expect![[r#"
            approvalRequested call_1 echo "May it?"
            approvalResolved call_1 allowed
            toolExecutionStart call_1 echo {"value":"x"}
            toolExecutionStart call_2 echo {"value":"y"}
            toolExecutionEnd call_1 ok "x"
            toolExecutionEnd call_2 ok "y"
        "#]],
        ),
        (
            ApprovalAnswer::deny("rather not"),
            expect![[r#"
            approvalRequested call_1 echo "May it?"
            approvalResolved call_1 denied "rather not"
            toolCallRejected call_1 blocked "rather not"
            toolExecutionStart call_2 echo {"value":"y"}
            toolExecutionEnd call_2 ok "y"
        "#]],
        ),
        (
            ApprovalAnswer::AllowWith(json!({"value": "z"}).as_object().unwrap().clone()),
            expect![[r#"
                approvalRequested call_1 echo "May it?"
                approvalResolved call_1 allowedWithChanges
                toolExecutionStart call_1 echo {"value":"z"}
                toolExecutionStart call_2 echo {"value":"y"}
                toolExecutionEnd call_1 ok "z"
                toolExecutionEnd call_2 ok "y"
            "#]],
        ),
    ] {
        let events = Events::new();
        let agent = asking(None).listener(events.listener()).build().unwrap();
        let mut heard = agent.subscribe();
        agent.run("hi").unwrap();
        let id = loop {
            if let Some(yiem_agent::Delivery::Event(event)) = within(heard.next()).await
                && let EventKind::ApprovalRequested { approval_id, .. } = &event.kind
            {
                break approval_id.clone();
            }
        };
        assert_eq!(agent.pending_approvals().len(), 1);
        assert!(!agent.answer("another", ApprovalAnswer::Allow));
        assert!(agent.answer(&id, answer.clone()));
        assert!(!agent.answer(&id, answer));
        within(agent.take_response()).await.unwrap();
        expected.assert_eq(&tool_lines(&events));
        assert_eq!(agent.pending_approvals(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn abort_in_a_hanging_hook_ends_at_once_and_in_an_after_hook_after_the_grace_period() {
    let hang = || async { std::future::pending().await };
    for (at, wait) in [
        ("before", Duration::ZERO),
        ("after", Duration::from_secs(5)),
    ] {
        let model = ScriptedModel::new([call_echo("x")]);
        let builder = Agent::builder(model)
            .env(PausedEnv::shared())
            .tool(tool::echo());
        let builder = match at {
            "before" => builder.before_tool_call(move |_| hang()),
            _ => builder.after_tool_call(|_| async { std::future::pending().await }),
        };
        let agent = builder.build().unwrap();
        agent.run("hi").unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = tokio::time::Instant::now();
        agent.abort();
        let outcome = within(agent.take_response()).await.unwrap();
        assert_eq!(before.elapsed(), wait, "{at}");
        let result = outcome.messages().nth(2).unwrap().as_tool_result().unwrap();
        // What the call itself came to is not lost when its hook hangs.
        assert_eq!(result.is_error, at == "before", "{at}: {}", result.text());
    }
}

#[tokio::test(start_paused = true)]
async fn l07_prepare_arguments_wraps_and_the_stored_call_keeps_the_raw_shape() {
    struct Edit(Arc<yiem_core::ToolDefinition>);
    #[async_trait]
    impl yiem_core::Tool for Edit {
        fn definition(&self) -> &Arc<yiem_core::ToolDefinition> {
            &self.0
        }
        async fn prepare_arguments(
            &self,
            args: yiem_core::JsonObject,
        ) -> Result<yiem_core::JsonObject, yiem_core::ToolError> {
            Ok(json!({"edits": [args]}).as_object().unwrap().clone())
        }
        async fn call(
            &self,
            args: yiem_core::ValidArgs,
            _: yiem_core::ToolContext,
        ) -> Result<ToolOutput, yiem_core::ToolError> {
            Ok(ToolOutput::text(
                args["edits"][0]["newText"].as_str().unwrap(),
            ))
        }
    }
    let definition = TestTool::new("edit", |_, _| async { Ok(ToolOutput::default()) }).schema(
        json!({"type":"object","properties":{"edits":{"type":"array"}},"required":["edits"]}),
    );
    let edit = Edit(Arc::clone(yiem_core::Tool::definition(&definition)));
    let model = ScriptedModel::new([
        Reply::call("edit", json!({"oldText": "a", "newText": "b"})),
        Reply::say("done"),
    ]);
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(edit)
        .build()
        .unwrap();
    let outcome = within(agent.prompt("hi")).await.unwrap();
    assert_eq!(
        outcome
            .messages()
            .nth(2)
            .unwrap()
            .as_tool_result()
            .unwrap()
            .text(),
        "b"
    );
    let call = outcome
        .messages()
        .nth(1)
        .unwrap()
        .as_assistant()
        .unwrap()
        .tool_calls()
        .next()
        .unwrap();
    assert_eq!(call.arguments().unwrap()["newText"], "b");
}
