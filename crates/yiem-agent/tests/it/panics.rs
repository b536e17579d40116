//! What others wrote may panic before there is a future of it, as mocks do: it is a panic like any
//! other.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use yiem_agent::{
    AfterToolCall, Agent, AgentBuilder, AgentEvent, AgentHook, BeforeModelCall, BeforeToolCall,
    Compaction, CompactionView, ContextView, EventSink, HookPoint, Journal, JournalError,
    JournalRecord, ModelCallView, Outcome, PrepareNextTurn, StopAfterTurn, ToolCallView,
    ToolResultView, TransformContext, TurnView,
};
use yiem_core::{
    ArgsCheck, BoxFuture, CancelToken, Error, JsonObject, ModelErrorKind, Tool, ToolContext,
    ToolDefinition, ToolError, ToolOutput, ValidArgs,
};
use yiem_test::{PausedEnv, Reply, ScriptedModel, tool};

use crate::within;

/// Where a tool panics.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Prepare,
    Check,
    Call,
}

struct EarlyTool(Part, Arc<ToolDefinition>);

impl EarlyTool {
    fn new(part: Part) -> Self {
        Self(
            part,
            Arc::new(ToolDefinition {
                name: "early".to_owned(),
                input_schema: json!({"type": "object"}),
                ..ToolDefinition::default()
            }),
        )
    }
}

impl Tool for EarlyTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.1
    }

    fn has_own_checks(&self) -> bool {
        true
    }

    fn prepare_arguments<'l, 'a>(
        &'l self,
        args: JsonObject,
    ) -> BoxFuture<'a, Result<JsonObject, ToolError>>
    where
        'l: 'a,
        Self: 'a,
    {
        assert!(self.0 != Part::Prepare, "early");
        Box::pin(async { Ok(args) })
    }

    fn validate_required_args<'l, 'm, 'a>(&'l self, _: &'m JsonObject) -> BoxFuture<'a, ArgsCheck>
    where
        'l: 'a,
        'm: 'a,
        Self: 'a,
    {
        assert!(self.0 != Part::Check, "early");
        Box::pin(async { ArgsCheck::Default })
    }

    fn call<'l, 'a>(
        &'l self,
        _: ValidArgs,
        _: ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>
    where
        'l: 'a,
        Self: 'a,
    {
        assert!(self.0 != Part::Call, "early");
        Box::pin(async { Ok(ToolOutput::text("never")) })
    }
}

struct EarlyHook(HookPoint);

macro_rules! early {
    ($method:ident, $point:ident, $view:ty, $answer:ty) => {
        fn $method<'l, 'a>(&'l self, _: $view) -> BoxFuture<'a, Result<$answer, Error>>
        where
            'l: 'a,
            Self: 'a,
        {
            assert!(self.0 != HookPoint::$point, "early");
            Box::pin(async { Err(Error::msg("asked elsewhere")) })
        }
    };
}

impl AgentHook for EarlyHook {
    fn name(&self) -> &str {
        "mock"
    }
    fn is_asked_at(&self, point: HookPoint) -> bool {
        point == self.0
    }
    early!(
        transform_context,
        TransformContext,
        ContextView,
        TransformContext
    );
    early!(
        before_model_call,
        BeforeModelCall,
        ModelCallView,
        BeforeModelCall
    );
    early!(
        before_tool_call,
        BeforeToolCall,
        ToolCallView,
        BeforeToolCall
    );
    early!(
        after_tool_call,
        AfterToolCall,
        ToolResultView,
        AfterToolCall
    );
    early!(
        should_stop_after_turn,
        ShouldStopAfterTurn,
        TurnView,
        StopAfterTurn
    );
    early!(
        prepare_next_turn,
        PrepareNextTurn,
        TurnView,
        PrepareNextTurn
    );
    early!(compact, Compact, CompactionView, Compaction);
}

struct EarlySink;

impl EventSink for EarlySink {
    fn on_event<'l, 'e, 'c, 'a>(
        &'l self,
        _: &'e Arc<AgentEvent>,
        _: &'c CancelToken,
    ) -> BoxFuture<'a, ()>
    where
        'l: 'a,
        'e: 'a,
        'c: 'a,
        Self: 'a,
    {
        panic!("early")
    }
}

/// Which of its methods panics.
struct EarlyJournal {
    flush: bool,
}

impl Journal for EarlyJournal {
    fn append<'l, 'r, 'a>(&'l self, _: &'r JournalRecord) -> BoxFuture<'a, Result<(), JournalError>>
    where
        'l: 'a,
        'r: 'a,
        Self: 'a,
    {
        assert!(self.flush, "early");
        Box::pin(async { Ok(()) })
    }
    fn flush<'l, 'a>(&'l self) -> BoxFuture<'a, Result<(), JournalError>>
    where
        'l: 'a,
        Self: 'a,
    {
        panic!("early")
    }
}

fn call() -> Reply {
    Reply::call("echo", json!({"value": "x"}))
}

/// The outcome of the first of two prompts; the second one finds an agent that works.
async fn came_of(replies: Vec<Reply>, build: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Outcome {
    let model = ScriptedModel::new(replies);
    let builder = Agent::builder(model).env(PausedEnv::shared());
    let agent = build(builder.tool(tool::echo())).build().unwrap();
    let outcome = within(agent.prompt("hi")).await.unwrap();
    within(agent.prompt("again")).await.unwrap();
    outcome
}

fn told(outcome: &Outcome) -> String {
    let results: Vec<String> = outcome
        .messages()
        .filter_map(|m| Some(m.as_tool_result()?.text()))
        .collect();
    let problem = outcome.end.problem().unwrap_or_default();
    format!("{:?} {problem} {}", outcome.end.kind(), results.join(" / "))
        .trim()
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_before_its_future_gives_a_result_alone_and_beside_others() {
    for part in [Part::Prepare, Part::Check, Part::Call] {
        for calls in 1..=3 {
            let mut reply = Reply::call("early", json!({}));
            for n in 1..calls {
                reply = reply.and_call("early", json!({"n": n}));
            }
            for late in [false, true] {
                let model = ScriptedModel::new([reply.clone(), Reply::say("done")]);
                let mut builder = Agent::builder(model).env(PausedEnv::shared());
                if !late {
                    builder = builder.tool(EarlyTool::new(part));
                }
                let agent = builder.build().unwrap();
                if late {
                    agent.add_tool(EarlyTool::new(part)).unwrap();
                }
                let outcome = within(agent.prompt("hi")).await.unwrap();
                let told = told(&outcome);
                assert_eq!(told.matches("panicked: early").count(), calls, "{told}");
                assert_eq!(outcome.text, "done");
            }
        }
    }
}

/// Panics when it is let go, as an assertion of a mock does.
struct Late;

impl Drop for Late {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "late");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_when_it_is_let_go_has_its_result() {
    for calls in 1..=2 {
        let never = tool::TestTool::new("never", |_, _| async {
            let _late = Late;
            std::future::pending().await
        });
        let mut reply = Reply::call("never", json!({}));
        if calls == 2 {
            reply = reply.and_call("echo", json!({"value": "x"}));
        }
        let replies = vec![reply.clone(), Reply::say("done"), Reply::say("again")];
        let outcome = came_of(replies, |b| {
            b.tool(never.clone())
                .configure(|c| c.tool_time = Duration::from_secs(1))
        })
        .await;
        assert!(told(&outcome).starts_with("Completed  The tool panicked: late"));
        // After an abort it is answered like any other that hangs.
        let model = ScriptedModel::new([reply, Reply::say("again")]);
        let agent = Agent::builder(model)
            .env(PausedEnv::shared())
            .tool(never)
            .tool(tool::echo())
            .build()
            .unwrap();
        let abort = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            agent.abort();
        };
        let (outcome, ()) = tokio::join!(within(agent.prompt("hi")), abort);
        assert!(told(&outcome.unwrap()).starts_with("Aborted  Aborted: "));
        assert!(within(agent.prompt("again")).await.unwrap().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_before_its_future_fails_its_call_or_turn_and_no_more() {
    let turn = "Failed the hook mock failed: it panicked: early";
    for (point, expected) in [
        (HookPoint::TransformContext, turn.to_owned()),
        (HookPoint::BeforeModelCall, turn.to_owned()),
        (
            HookPoint::BeforeToolCall,
            "Completed  The hook mock failed: it panicked: early".to_owned(),
        ),
        (
            HookPoint::AfterToolCall,
            "Completed  The hook mock failed: it panicked: early".to_owned(),
        ),
        (HookPoint::ShouldStopAfterTurn, format!("{turn} x")),
        (HookPoint::PrepareNextTurn, format!("{turn} x")),
    ] {
        let replies = vec![call(), Reply::say("done"), Reply::say("again")];
        let outcome = came_of(replies, |b| b.hook(EarlyHook(point))).await;
        assert_eq!(told(&outcome), expected, "{point:?}");
    }
    let long = Reply::fail(ModelErrorKind::ContextLength, "long");
    let outcome = came_of(vec![long, Reply::say("again")], |b| {
        b.hook(EarlyHook(HookPoint::Compact))
    })
    .await;
    assert_eq!(
        told(&outcome),
        "Failed long; it could not be shortened: the hook mock failed: it panicked: early"
    );
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_panics_before_its_future_is_passed_over() {
    let replies = vec![call(), Reply::say("done"), Reply::say("again")];
    let outcome = came_of(replies, |b| b.sink(EarlySink).sink(EarlySink)).await;
    assert_eq!(told(&outcome), "Completed  x");
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_panics_before_its_future_ends_the_run_as_one_that_fails() {
    for flush in [false, true] {
        let replies = vec![call(), Reply::say("done"), Reply::say("again")];
        let outcome = came_of(replies, |b| b.journal(EarlyJournal { flush })).await;
        let problem = outcome.end.problem().unwrap();
        assert!(problem.contains("the journal panicked: early"), "{problem}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_trace_context_that_panics_is_passed_over_and_one_may_look_at_the_agent() {
    let replies = || vec![call(), Reply::say("done"), Reply::say("again")];
    let outcome = came_of(replies(), |b| b.trace_context(|| panic!("early"))).await;
    assert_eq!(told(&outcome), "Completed  x");
    let seen: Arc<std::sync::Mutex<Option<yiem_agent::WeakAgent>>> = Arc::default();
    let looks = Arc::clone(&seen);
    let agent = Agent::builder(ScriptedModel::new(replies()))
        .env(PausedEnv::shared())
        .tool(tool::echo())
        .trace_context(move || {
            let agent = looks.lock().unwrap().as_ref().and_then(|a| a.upgrade());
            let turn = agent.map(|a| a.state().turn.to_string());
            turn.into_iter().map(|t| ("turn".to_owned(), t)).collect()
        })
        .build()
        .unwrap();
    *seen.lock().unwrap() = Some(agent.downgrade());
    assert!(within(agent.prompt("hi")).await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_when_an_abort_lets_it_go_changes_nothing() {
    let builds: [fn(AgentBuilder) -> AgentBuilder; 4] = [
        |b| {
            b.transform_context(|_| async {
                let _late = Late;
                std::future::pending().await
            })
        },
        |b| {
            b.before_tool_call(|_| async {
                let _late = Late;
                std::future::pending().await
            })
        },
        |b| {
            b.after_tool_call(|_| async {
                let _late = Late;
                std::future::pending().await
            })
        },
        |b| {
            b.should_stop_after_turn(|_| async {
                let _late = Late;
                std::future::pending().await
            })
        },
    ];
    for build in builds {
        let model = ScriptedModel::answering(|request| {
            let asked = request.messages.last().unwrap().as_user().is_some();
            if asked { call() } else { Reply::say("done") }
        });
        let builder = Agent::builder(model).env(PausedEnv::shared());
        let agent = build(builder.tool(tool::echo())).build().unwrap();
        for _ in 0..2 {
            let abort = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                agent.abort();
            };
            let (outcome, ()) = tokio::join!(within(agent.prompt("hi")), abort);
            assert_eq!(outcome.unwrap().end.kind(), yiem_agent::EndKind::Aborted);
        }
    }
}
