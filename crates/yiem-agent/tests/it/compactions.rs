//! Contexts that are too long: what stays of a reply that overflowed, what a summary costs, and
//! what becomes of it when it fails too (R-8, R-11, R-12, S-1).

use std::time::Duration;

use serde_json::json;
use yiem_agent::{
    Agent, AgentBuilder, AgentHook, Compaction, CompactionView, EndKind, FileJournal, JournalRecord,
};
use yiem_core::{
    AssistantMessage, Error, ModelCost, ModelErrorKind, ModelInfo, StopReason, SystemEnv,
    async_trait,
};
use yiem_test::{PausedEnv, Reply, ScriptedModel, transcript};

use crate::within;

fn too_long() -> Reply {
    Reply::fail(ModelErrorKind::ContextLength, "too long")
}

/// A priced model that answers three prompts, one token in and one out each, and then these.
fn model(replies: impl IntoIterator<Item = Reply>) -> ScriptedModel {
    let info = ModelInfo {
        cost: ModelCost {
            input: 1_000_000.0,
            output: 1_000_000.0,
            ..ModelCost::default()
        },
        ..ModelInfo::new("priced")
    };
    let first = (0..3).map(|n| Reply::say(format!("answer {n}")).usage(1, 1));
    ScriptedModel::with_info(info, first.chain(replies).collect::<Vec<_>>())
}

async fn talked(model: &ScriptedModel, build: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Agent {
    let builder = Agent::builder(model.clone()).env(PausedEnv::shared());
    let agent = build(builder).build().unwrap();
    for n in 0..3 {
        assert!(
            within(agent.prompt(format!("question {n}")))
                .await
                .unwrap()
                .is_ok()
        );
    }
    agent
}

fn last(agent: &Agent) -> AssistantMessage {
    let history = agent.history();
    history.last().unwrap().as_assistant().unwrap().clone()
}

/// A hook that cannot shorten anything.
struct Helpless;

#[async_trait]
impl AgentHook for Helpless {
    async fn compact(&self, _: CompactionView) -> Result<Compaction, Error> {
        Err(Error::msg("no room"))
    }
}

#[tokio::test(start_paused = true)]
async fn what_had_come_of_a_reply_stays_when_its_overflow_cannot_be_shortened() {
    let same = |b: AgentBuilder| b;
    let off = |b: AgentBuilder| b.compactor(None);
    let helpless = |b: AgentBuilder| b.hook(Helpless);
    let summary = |reply: Reply| vec![reply];
    let failed = Reply::fail(ModelErrorKind::Auth, "no key");
    type Build = fn(AgentBuilder) -> AgentBuilder;
    let ways: Vec<(&str, Build, Vec<Reply>)> = vec![
        ("compactor is off", off, vec![]),
        ("no room", helpless, vec![]),
        ("no key", same, summary(failed)),
        ("summary is empty", same, summary(Reply::say(" "))),
        (
            "says that it failed",
            same,
            summary(Reply::say("refused").stop(StopReason::Error)),
        ),
        ("panicked", same, summary(Reply::panic())),
    ];
    for (why, build, replies) in ways {
        let broken = Reply::say("half an ")
            .and_think("hm")
            .and_say("answer")
            .and_call("echo", json!({}))
            .then_fail(ModelErrorKind::ContextLength, "too long");
        let model = model(std::iter::once(broken).chain(replies));
        let agent = talked(&model, build).await;
        let outcome = within(agent.prompt("more")).await.unwrap();
        let problem = outcome.end.problem().unwrap();
        assert!(
            problem.starts_with("too long; it could not be shortened: ") && problem.contains(why),
            "{problem}"
        );
        // As after any other failure in the middle of a reply: its text, why, and no call.
        let message = last(&agent);
        assert_eq!(message.text(), "half an answer", "{why}");
        assert_eq!(message.reasoning(), "hm");
        assert!(!message.has_tool_calls() && message.stop_reason == StopReason::Error);
        assert_eq!(message.error_message.as_deref(), Some(&*problem));
        assert_eq!(outcome.text, "half an answer");
        assert_eq!(outcome.transcript.len(), 8);
        // It is left out of the next request.
        model.push(Reply::say("again"));
        assert_eq!(within(agent.prompt("again")).await.unwrap().text(), "again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_overflowed_without_saying_so_stays_too_and_is_paid_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let info = ModelInfo {
        context_window: 100,
        ..ModelInfo::new("small")
    };
    let replies = [Reply::say("guessed").usage(150, 5)];
    let agent = Agent::builder(ScriptedModel::with_info(info, replies))
        .env(PausedEnv::shared())
        .session_file(&path)
        .build()
        .unwrap();
    let outcome = within(agent.prompt("hi")).await.unwrap();
    assert_eq!(outcome.end.kind(), EndKind::Failed);
    assert_eq!(outcome.text, "guessed");
    assert_eq!(outcome.usage.all(), Some(155));
    drop(agent);
    let (_, session) = FileJournal::open(&path, &SystemEnv::default()).unwrap();
    assert_eq!(session.usage.all(), Some(155));
    assert_eq!(session.history.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_paid_by_the_run_and_the_session_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let model = model([
        too_long(),
        Reply::say("what was said").usage(100, 20),
        Reply::say("done").usage(1, 1),
    ]);
    let agent = talked(&model, |b| b.session_file(&path)).await;
    let outcome = within(agent.prompt("more")).await.unwrap();
    assert_eq!((outcome.text(), outcome.usage.all()), ("done", Some(122)));
    assert_eq!(outcome.cost.map(|c| c.total()), Some(122.0));
    let state = agent.state();
    assert_eq!(state.usage.all(), Some(128));
    drop(agent);
    let again = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .session_file(&path)
        .build()
        .unwrap();
    assert_eq!(
        (again.state().usage, again.state().cost),
        (state.usage, state.cost)
    );
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_comes_to_nothing_is_paid_too_and_counts_for_the_limits() {
    let empty = Reply::say("").usage(100, 0);
    let model = model([too_long(), empty]);
    let agent = talked(&model, |b| b).await;
    let outcome = within(agent.prompt("more")).await.unwrap();
    assert_eq!(outcome.usage.all(), Some(100));
    // One that is good: a limit that it reaches ends the run before the model is asked again.
    for (limit, asked) in [(120, 5), (121, 6)] {
        let model = self::model([
            too_long(),
            Reply::say("summary").usage(100, 20),
            Reply::say("done").usage(1, 1),
        ]);
        let limited = |b: AgentBuilder| b.configure(|c| c.limits.tokens = Some(limit));
        let agent = talked(&model, limited).await;
        let outcome = within(agent.prompt("more")).await.unwrap();
        assert_eq!(model.calls(), asked);
        if asked == 6 {
            assert_eq!(outcome.text(), "done");
            continue;
        }
        assert_eq!(
            outcome.end.problem().unwrap(),
            "120 tokens are used, a run may use 120"
        );
        assert_eq!(outcome.transcript.len(), 7);
        // It was shortened all the same: the next run begins with that.
        assert_eq!(within(agent.prompt("again")).await.unwrap().text(), "done");
        assert_eq!(model.calls(), 6);
    }
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_asked_for_again_where_its_failure_allows_it() {
    let busy =
        || Reply::fail(ModelErrorKind::RateLimit, "busy").retry_after(Duration::from_secs(9));
    let begun = tokio::time::Instant::now();
    let model = model([
        too_long(),
        busy(),
        Reply::say("half").then_break_off(),
        Reply::say("what was said"),
        Reply::say("done"),
    ]);
    let agent = talked(&model, |b| b).await;
    let outcome = within(agent.prompt("more")).await.unwrap();
    assert_eq!(outcome.text(), "done");
    assert!(begun.elapsed() >= Duration::from_secs(9));
    let shown = model.requests().last().unwrap().messages.clone();
    let summary = transcript::message_line(shown.get(0).unwrap());
    assert!(
        summary.contains("what was said") && !summary.contains("half"),
        "{summary}"
    );
    // Not more often than the settings say, and not where it makes no sense.
    for (retries, kind, asked) in [
        (0, ModelErrorKind::RateLimit, 1),
        (1, ModelErrorKind::RateLimit, 2),
        (4, ModelErrorKind::Quota, 1),
    ] {
        let failing = (0..9).map(|_| Reply::fail(kind, "busy"));
        let model = self::model(std::iter::once(too_long()).chain(failing));
        let agent = talked(&model, |b| b.configure(|c| c.retry.retries = retries)).await;
        let outcome = within(agent.prompt("more")).await.unwrap();
        assert_eq!(outcome.end.kind(), EndKind::Failed);
        assert_eq!(model.calls(), 4 + asked);
    }
}

#[tokio::test(start_paused = true)]
async fn an_abort_ends_the_wait_for_a_summary_at_once() {
    for slow in [
        Reply::fail(ModelErrorKind::RateLimit, "busy").retry_after(Duration::from_secs(50)),
        Reply::say("x").after(Duration::from_secs(50)),
        Reply::hang(),
    ] {
        let model = model([too_long(), slow]);
        let agent = talked(&model, |b| b).await;
        let begun = tokio::time::Instant::now();
        let prompt = Box::pin(agent.prompt("more").into_future());
        let abort = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            agent.follow_up("later").unwrap();
            agent.abort();
        };
        let (outcome, ()) = tokio::join!(within(prompt), abort);
        let outcome = outcome.unwrap();
        assert_eq!(outcome.end.kind(), EndKind::Aborted);
        assert_eq!(begun.elapsed(), Duration::from_secs(1));
        assert!(agent.has_queued_messages());
        model.push(Reply::say("good"));
        model.push(Reply::say("and later"));
        assert!(within(agent.prompt("again")).await.unwrap().is_ok());
    }
}

#[test]
fn tokens_without_a_message_are_a_record_of_their_own() {
    let text = r#"{"record":"usage","usage":{"input":3,"output":4}}"#;
    let record: JournalRecord = serde_json::from_str(text).unwrap();
    assert!(matches!(record, JournalRecord::Usage { usage } if usage.all() == Some(7)));
    assert_eq!(serde_json::to_string(&record).unwrap(), text);
}
