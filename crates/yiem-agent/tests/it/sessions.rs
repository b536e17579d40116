//! Sessions that survive (S-1 to S-4), through the public agent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use serde_json::json;
use yiem_agent::{
    Agent, EndReason, Failure, FileJournal, Journal, JournalError, JournalRecord, RunError, Session,
};
use yiem_core::{Replay, SystemEnv, async_trait};
use yiem_test::{PausedEnv, Reply, ScriptedModel, TestTool, tool, transcript};

use crate::within;

/// Keeps records in memory; fails from the record of that number on.
#[derive(Clone, Default)]
struct Memory {
    records: Arc<Mutex<Vec<JournalRecord>>>,
    fails_at: Option<usize>,
}

#[async_trait]
impl Journal for Memory {
    async fn append(&self, record: &JournalRecord) -> Result<(), JournalError> {
        let mut records = self.records.lock().unwrap();
        if self.fails_at.is_some_and(|at| records.len() >= at) {
            return Err(JournalError::new("the disk is full"));
        }
        records.push(record.clone());
        Ok(())
    }
}

impl Memory {
    fn lines(&self) -> String {
        let line = |r: &JournalRecord| match r {
            JournalRecord::Message { message } => transcript::message_line(message),
            JournalRecord::CallIntent { tool_call_id, .. } => format!("intent {tool_call_id}"),
            JournalRecord::CallResult { message } => transcript::message_line(message),
            other => serde_json::to_value(other).unwrap()["record"]
                .as_str()
                .unwrap()
                .to_owned(),
        };
        self.records
            .lock()
            .unwrap()
            .iter()
            .map(|r| line(r) + "\n")
            .collect()
    }
}

fn two_calls() -> ScriptedModel {
    ScriptedModel::new([
        Reply::call("slow", json!({})).and_call("echo", json!({"value": "x"})),
        Reply::say("done"),
    ])
}

fn agent(model: &ScriptedModel, tools: [TestTool; 2]) -> yiem_agent::AgentBuilder {
    Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .tools(tools)
}

fn tools() -> [TestTool; 2] {
    [
        tool::slow("slow", Duration::from_secs(1), "slow"),
        tool::echo(),
    ]
}

#[tokio::test(start_paused = true)]
async fn everything_is_written_down_before_it_counts() {
    let journal = Memory::default();
    let agent = agent(&two_calls(), tools())
        .journal(journal.clone())
        .build()
        .unwrap();
    within(agent.prompt("hi")).await.unwrap();
    expect![[r#"
        runStart
        user "hi"
        modelChanged
        assistant call call_1 slow {}, call call_2 echo {"value":"x"} [tool_calls]
        intent call_1
        intent call_2
        toolResult call_2 ok "x"
        toolResult call_1 ok "slow"
        assistant "done" [end_turn]
        runEnd
    "#]]
    .assert_eq(&journal.lines());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_ends_the_run_before_more_is_done() {
    for fails_at in 0..9 {
        let journal = Memory {
            fails_at: Some(fails_at),
            ..Memory::default()
        };
        let model = two_calls();
        let tools = tools();
        let agent = agent(&model, tools.clone())
            .journal(journal)
            .build()
            .unwrap();
        let outcome = within(agent.prompt("hi")).await.unwrap();
        assert!(
            matches!(outcome.end, EndReason::Failed(Failure::Journal(_))),
            "{fails_at}"
        );
        assert!(matches!(outcome.ok(), Err(RunError::Journal { .. })));
        assert_eq!(model.calls() > 0, fails_at >= 2, "{fails_at}");
        assert_eq!(
            tools[0].calls().len(),
            usize::from(fails_at >= 5),
            "{fails_at}"
        );
    }
}

/// What a session is after each of its records, as after a kill at that place.
async fn killed_everywhere() -> Vec<Session> {
    let journal = Memory::default();
    let agent = agent(&two_calls(), tools())
        .journal(journal.clone())
        .build()
        .unwrap();
    within(agent.prompt("hi")).await.unwrap();
    let records = journal.records.lock().unwrap().clone();
    (0..=records.len())
        .map(|n| Session::of_records(records[..n].to_vec()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_killed_anywhere_goes_on() {
    for replay in [Replay::Never, Replay::Safe] {
        let mut told = String::new();
        for session in killed_everywhere().await {
            let had = session.history.len();
            if had == 0 || had == 5 {
                continue;
            }
            let model = ScriptedModel::answering(|r| {
                if r.messages.last().unwrap().as_tool_result().is_some() {
                    Reply::say("went on")
                } else {
                    Reply::say("anew")
                }
            });
            let tools = tools().map(|t| t.define(|d| d.replay = replay));
            let agent = agent(&model, tools).resume(session).build().unwrap();
            let outcome = match within(agent.continue_run()).await {
                Ok(outcome) => outcome,
                Err(error) => panic!("{error}"),
            };
            let lines: Vec<String> = outcome
                .transcript
                .range(1)
                .map(|m| transcript::message_line(m))
                .collect();
            told.push_str(&lines.join(" | "));
            told.push('\n');
        }
        match replay {
            Replay::Never => expect![[r#"
                assistant "anew" [end_turn]
                assistant "anew" [end_turn]
                assistant call call_1 slow {}, call call_2 echo {"value":"x"} [tool_calls] | toolResult call_1 ok "slow" | toolResult call_2 ok "x" | assistant "went on" [end_turn]
                assistant call call_1 slow {}, call call_2 echo {"value":"x"} [tool_calls] | toolResult call_1 error "The outcome of this call is unknown: the program ended while it ran. It may have taken effect or not; find out before you call it again." | toolResult call_2 ok "x" | assistant "went on" [end_turn]
                assistant call call_1 slow {}, call call_2 echo {"value":"x"} [tool_calls] | toolResult call_1 error "The outcome of this call is unknown: the program ended while it ran. It may have taken effect or not; find out before you call it again." | toolResult call_2 error "The outcome of this call is unknown: the program ended while it ran. It may have taken effect or not; find out before you call it again." | assistant "went on" [end_turn]
                assistant call call_1 slow {}, call call_2 echo {"value":"x"} [tool_calls] | toolResult call_1 error "The outcome of this call is unknown: the program ended while it ran. It may have taken effect or not; find out before you call it again." | toolResult call_2 ok "x" | assistant "went on" [end_turn]
                assistant call call_1 slow {}, call call_2 echo {"value":"x"} [tool_calls] | toolResult call_1 ok "slow" | toolResult call_2 ok "x" | assistant "went on" [end_turn]
            "#]]
            .assert_eq(&told),
            Replay::Safe => assert!(!told.contains("unknown") && told.contains("went on"), "{told}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_to_a_session_with_open_calls_comes_after_their_results() {
    let session = killed_everywhere()
        .await
        .into_iter()
        .find(|s| s.open.len() == 2)
        .unwrap();
    let model = ScriptedModel::new([Reply::say("both seen")]);
    let agent = agent(&model, tools()).resume(session).build().unwrap();
    let outcome = within(agent.prompt("and Rome?")).await.unwrap();
    let roles: Vec<_> = outcome.transcript.iter().map(|m| m.role()).collect();
    assert_eq!(
        roles,
        [
            "user",
            "assistant",
            "toolResult",
            "toolResult",
            "user",
            "assistant"
        ]
    );
    assert_eq!(model.take_breaches(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_session_in_a_file_opens_again_and_branches() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let model = ScriptedModel::answering(|r| Reply::say(format!("{} seen", r.messages.len())));
    let open = || {
        Agent::builder(model.clone())
            .env(PausedEnv::shared())
            .session_file(&path)
            .build()
            .unwrap()
    };
    let first = open();
    let id = first.session_id();
    within(first.prompt("one")).await.unwrap();
    drop(first);
    let second = open();
    assert_eq!(second.session_id(), id);
    let outcome = within(second.prompt("two")).await.unwrap();
    assert_eq!(outcome.text(), "3 seen");
    drop(second);
    let (_lock, whole) = FileJournal::open(&path, &SystemEnv::default()).unwrap();
    assert_eq!(whole.history.len(), 4);
    let before = std::fs::read(&path).unwrap();
    let branch = dir.path().join("b.jsonl");
    let (journal, session) =
        FileJournal::branch(&branch, &SystemEnv::default(), &whole, 2).unwrap();
    assert_eq!(session.history.len(), 2);
    let agent = Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .journal(journal)
        .resume(session)
        .build()
        .unwrap();
    assert_eq!(
        within(agent.prompt("other")).await.unwrap().text(),
        "3 seen"
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert!(
        std::fs::read_to_string(&branch)
            .unwrap()
            .contains("\"record\":\"branch\"")
    );
}
