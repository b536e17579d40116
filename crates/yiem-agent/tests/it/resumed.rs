//! Sessions that go on after each way in which a run can end (S-3, S-4, R-12).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use yiem_agent::{
    Agent, AgentBuilder, AgentHook, BeforeModelCall, Compaction, CompactionView, EndKind,
    FileJournal, JournalRecord, PrepareNextTurn, Session, StopAfterTurn, TransformContext,
};
use yiem_core::{
    AssistantMessage, ChatEvent, ChatModel, ChatRequest, ChatStream, Error, History, JsonObject,
    Message, ModelErrorKind, ModelInfo, ReplyInfo, StopReason, SystemEnv, Timestamp, ToolCall,
    ToolResultMessage, async_trait,
};
use yiem_test::{PausedEnv, Reply, ScriptedModel, tool, transcript};

use crate::within;

/// A way to an end.
struct Way {
    name: &'static str,
    end: EndKind,
    replies: Vec<Reply>,
    build: fn(AgentBuilder) -> AgentBuilder,
    abort: bool,
}

fn call() -> Reply {
    Reply::call("echo", json!({"value": "x"})).usage(5, 5)
}

fn same(builder: AgentBuilder) -> AgentBuilder {
    builder
}

fn ways() -> Vec<Way> {
    let way = |name, end, replies, build: fn(AgentBuilder) -> AgentBuilder| Way {
        name,
        end,
        replies,
        build,
        abort: false,
    };
    let aborted = |name, replies| Way {
        abort: true,
        ..way(name, EndKind::Aborted, replies, same)
    };
    vec![
        way(
            "an answer",
            EndKind::Completed,
            vec![call(), Reply::say("done")],
            same,
        ),
        way(
            "a tool that ends it",
            EndKind::Terminated,
            vec![Reply::call("ends", json!({}))],
            same,
        ),
        way(
            "a hook that says stop",
            EndKind::Stopped,
            vec![call()],
            |b| b.should_stop_after_turn(|_| async { Ok(StopAfterTurn::Stop) }),
        ),
        way("the limit of turns", EndKind::Limit, vec![call()], |b| {
            b.max_turns(1)
        }),
        way("the limit of calls", EndKind::Limit, vec![call()], |b| {
            b.configure(|c| c.limits.tool_calls = Some(0))
        }),
        way(
            "the limit of time",
            EndKind::Limit,
            vec![Reply::say("a").then_hang()],
            |b| b.wall_time(Duration::from_secs(1)),
        ),
        way(
            "a model that fails",
            EndKind::Failed,
            vec![Reply::say("so far").then_fail(ModelErrorKind::Auth, "no key")],
            same,
        ),
        way("a hook that fails", EndKind::Failed, vec![], |b| {
            b.before_model_call(|_| async { Err::<BeforeModelCall, _>(Error::msg("broken")) })
        }),
        way(
            "a hook that fails after a batch",
            EndKind::Failed,
            vec![call()],
            |b| {
                b.transform_context(|view| async move {
                    match view.turn {
                        1 => Ok(TransformContext::Keep),
                        _ => Err(Error::msg("broken")),
                    }
                })
            },
        ),
        aborted("an abort before the reply", vec![Reply::hang()]),
        aborted(
            "an abort in the reply",
            vec![Reply::say("so far").then_hang()],
        ),
        aborted("an abort in the reply of a call", vec![call().then_hang()]),
        aborted(
            "an abort in one of two calls",
            vec![Reply::call("never", json!({})).and_call("echo", json!({"value": "y"}))],
        ),
        aborted(
            "an abort of a retry",
            vec![Reply::fail(ModelErrorKind::Server, "busy").retry_after(Duration::from_secs(50))],
        ),
    ]
}

fn builder(model: &(impl ChatModel + Clone), path: &Path) -> AgentBuilder {
    Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .tool(tool::echo())
        .tool(tool::terminating("ends", "the end"))
        .tool(tool::never("never"))
        .session_file(path)
}

fn opened(path: &Path) -> Session {
    FileJournal::open(path, &SystemEnv::default()).unwrap().1
}

#[tokio::test(start_paused = true)]
async fn a_session_goes_on_after_each_kind_of_end() {
    for way in ways() {
        let name = way.name;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let model = ScriptedModel::new(way.replies);
        let agent = (way.build)(builder(&model, &path)).build().unwrap();
        agent.run("hi").unwrap();
        if way.abort {
            tokio::time::sleep(Duration::from_secs(1)).await;
            agent.abort();
        }
        let outcome = within(agent.take_response()).await.unwrap();
        assert_eq!(outcome.end.kind(), way.end, "{name}");
        let before = transcript::of_messages(outcome.transcript.iter());
        drop(agent);
        let session = opened(&path);
        assert_eq!(
            transcript::of_messages(session.history.iter()),
            before,
            "{name}"
        );
        assert_eq!(session.open, [], "{name}");
        // Another process goes on: with a message, and without one where there is something open.
        let next = ScriptedModel::new([Reply::say("went on"), Reply::say("and on")]);
        let agent = builder(&next, &path).build().unwrap();
        if let Ok(outcome) = within(agent.continue_run()).await {
            assert_eq!(outcome.text(), "went on", "{name}");
        } else {
            let good = session.history.last().and_then(|m| m.as_assistant());
            assert!(
                good.is_some_and(|m| !m.is_broken()),
                "{name}: it did not go on"
            );
        }
        let outcome = within(agent.prompt("more")).await.unwrap();
        assert!(outcome.is_ok(), "{name}");
        assert_eq!(next.take_breaches(), Vec::<String>::new(), "{name}");
        let whole = transcript::of_messages(outcome.transcript.iter());
        drop(agent);
        assert_eq!(
            transcript::of_messages(opened(&path).history.iter()),
            whole,
            "{name}"
        );
    }
}

struct OnlyTheLast;

#[async_trait]
impl AgentHook for OnlyTheLast {
    async fn compact(&self, view: CompactionView) -> Result<Compaction, Error> {
        let last = view.messages.range(view.messages.len() - 1).cloned();
        Ok(Compaction::Replace(last.collect()))
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_compaction_left_is_what_the_model_is_shown_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let model = ScriptedModel::new([
        Reply::say("one"),
        Reply::say("two"),
        Reply::fail(ModelErrorKind::ContextLength, "too long"),
        Reply::say("three"),
    ]);
    let agent = builder(&model, &path).hook(OnlyTheLast).build().unwrap();
    for text in ["a", "b", "c"] {
        within(agent.prompt(text)).await.unwrap();
    }
    drop(agent);
    let session = opened(&path);
    assert_eq!(session.history.len(), 6);
    assert_eq!(session.shown.as_ref().unwrap().len(), 2);
    let next = ScriptedModel::new([Reply::say("four")]);
    let agent = builder(&next, &path).build().unwrap();
    let outcome = within(agent.prompt("d")).await.unwrap();
    assert_eq!(next.requests()[0].messages.len(), 3);
    assert_eq!(outcome.transcript.len(), 8);
    // A branch is of the whole history.
    drop(agent);
    let whole = opened(&path);
    let (_lock, branch) = FileJournal::branch(
        folder.path().join("b.jsonl"),
        &SystemEnv::default(),
        &whole,
        4,
    )
    .unwrap();
    assert_eq!((branch.history.len(), branch.shown.is_none()), (4, true));
}

/// A model whose server tells a longer name than it was asked for.
#[derive(Clone)]
struct Dated {
    asked: ModelInfo,
    server: ScriptedModel,
}

impl ChatModel for Dated {
    fn info(&self) -> &ModelInfo {
        &self.asked
    }
    fn stream(&self, request: ChatRequest) -> ChatStream {
        let started = ReplyInfo {
            model: format!("{}-2024-08-06", self.asked.id),
            ..ReplyInfo::default()
        };
        let started = futures_util::stream::iter([Ok(ChatEvent::Started(Box::new(started)))]);
        ChatStream::new(started.chain(self.server.stream(request)))
    }
}

fn named(id: &str, replies: Vec<Reply>) -> Dated {
    Dated {
        asked: ModelInfo::new(id),
        server: ScriptedModel::new(replies),
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_model_and_tools_are_records_and_nothing_is_rewritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let model = named("first", vec![call()]);
    let other = named(
        "second",
        vec![Reply::say("from the other"), Reply::say("still")],
    );
    let third = named("third", vec![Reply::say("from the third")]);
    let fourth = named("fourth", vec![Reply::say("one"), Reply::say("two")]);
    let change = other.clone();
    let agent = builder(&model, &path)
        .prepare_next_turn(move |_| {
            let other = change.clone();
            async move { Ok(PrepareNextTurn::keep().model(other).tools(["echo"])) }
        })
        .build()
        .unwrap();
    let first = std::fs::read(&path).unwrap();
    within(agent.prompt("hi")).await.unwrap();
    within(agent.prompt("and?")).await.unwrap();
    agent.change(PrepareNextTurn::keep().model(third));
    within(agent.prompt("and then?")).await.unwrap();
    drop(agent);
    // Opened with another model than the one that answered last.
    assert_eq!(opened(&path).model.as_deref(), Some("third"));
    let agent = builder(&fourth, &path).build().unwrap();
    within(agent.prompt("and last?")).await.unwrap();
    drop(agent);
    // Opened again with the same model and tools.
    let session = opened(&path);
    let answered = session.history.last().and_then(|m| m.as_assistant());
    assert_eq!(answered.unwrap().model, "fourth-2024-08-06");
    let agent = builder(&fourth, &path).build().unwrap();
    within(agent.prompt("and now?")).await.unwrap();
    drop(agent);
    // And with fewer tools, twice.
    for _ in 0..2 {
        let agent = builder(&named("fourth", vec![Reply::say("x")]), &path)
            .build()
            .unwrap();
        agent.change(PrepareNextTurn::keep().tools(["echo", "ends"]));
        within(agent.prompt("and?")).await.unwrap();
        drop(agent);
    }
    let text = std::fs::read(&path).unwrap();
    assert!(text.starts_with(&first));
    let records: Vec<JournalRecord> = String::from_utf8(text)
        .unwrap()
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let models: Vec<&str> = records
        .iter()
        .filter_map(|record| match record {
            JournalRecord::ModelChanged { model } => Some(model.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(models, ["first", "second", "third", "fourth"]);
    let tools: Vec<_> = records
        .iter()
        .filter(|record| matches!(record, JournalRecord::ToolsChanged { .. }))
        .cloned()
        .collect();
    let changed = |added: &[&str], removed: &[&str]| JournalRecord::ToolsChanged {
        added: added.iter().map(|&name| name.to_owned()).collect(),
        removed: removed.iter().map(|&name| name.to_owned()).collect(),
    };
    assert_eq!(
        tools,
        [
            changed(&[], &["ends", "never"]),
            changed(&["ends", "never"], &[]),
            changed(&[], &["never"]),
        ]
    );
    assert!(
        !records
            .iter()
            .any(|r| matches!(r, JournalRecord::Unknown(_)))
    );
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_handed_in_with_calls_without_results_goes_on() {
    let call = |ids: &[&str]| -> Message {
        let call = |id: &&str| ToolCall::new(*id, "echo", JsonObject::new()).into();
        let calls = ids.iter().map(call).collect();
        AssistantMessage::new(calls, Timestamp::default()).into()
    };
    let user = || Message::user("hi", Timestamp::default());
    let result = |id: &str| {
        Message::ToolResult(ToolResultMessage {
            tool_call_id: id.into(),
            tool_name: "echo".to_owned(),
            ..ToolResultMessage::default()
        })
    };
    let broken = {
        let Message::Assistant(mut reply) = call(&["z"]) else {
            unreachable!()
        };
        reply.stop_reason = StopReason::Error;
        Message::Assistant(reply)
    };
    for (messages, roles) in [
        (vec![user(), call(&["a"])], "u a t"),
        (
            vec![user(), call(&["a", "b", "c"]), result("b")],
            "u a t t t",
        ),
        (
            vec![user(), call(&["a", "b"]), user(), call(&["a"]), result("a")],
            "u a t t u a t",
        ),
        (
            vec![call(&["a"]), call(&["b"]), result("b"), user()],
            "a t a t u",
        ),
        (vec![user(), broken], "u a"),
    ] {
        let whole = messages.len() == roles.split(' ').count();
        let history: History = messages.into_iter().collect();
        for continues in [false, true] {
            let model = ScriptedModel::new([Reply::say("done")]);
            let agent = Agent::builder(model.clone())
                .env(PausedEnv::shared())
                .history(history.clone())
                .build()
                .unwrap();
            let letters: Vec<&str> = agent.history().iter().map(|m| &m.role()[..1]).collect();
            assert_eq!(letters.join(" "), roles);
            let same = history
                .iter()
                .zip(agent.history().iter())
                .all(|(a, b)| Arc::ptr_eq(a, b));
            assert_eq!(same && agent.history().len() == history.len(), whole);
            let outcome = match continues {
                true => within(agent.continue_run()).await.unwrap(),
                false => within(agent.prompt("next")).await.unwrap(),
            };
            assert_eq!(outcome.text(), "done");
            assert_eq!(model.take_breaches(), Vec::<String>::new());
        }
    }
}
