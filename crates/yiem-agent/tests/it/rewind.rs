//! What was said can be taken back, in memory and in the session's file.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use yiem_agent::{Agent, EndKind, FileJournal, Journal, JournalError, JournalRecord, Session};
use yiem_core::{Env, History, Message, SystemEnv, async_trait};
use yiem_test::{PausedEnv, Reply, ScriptedModel, tool};

use crate::within;

fn said(agent: &Agent) -> Vec<&'static str> {
    agent
        .history()
        .iter()
        .map(|message| message.role())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_back_is_gone_from_history_and_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let env: &dyn Env = &*SystemEnv::shared();
    let (journal, session) = FileJournal::open(&path, env).unwrap();
    let call = Reply::call_with_id("c1", "echo", serde_json::json!({"value": "x"}));
    let model = ScriptedModel::new([call, Reply::say("one"), Reply::say("two")]);
    let agent = Agent::builder(model)
        .tool(tool::echo())
        .journal(journal)
        .resume(session)
        .build()
        .unwrap();
    within(agent.prompt("first")).await.unwrap();
    within(agent.prompt("second")).await.unwrap();
    assert_eq!(
        said(&agent),
        [
            "user",
            "assistant",
            "toolResult",
            "assistant",
            "user",
            "assistant"
        ]
    );
    assert_eq!(agent.rewind(99).await.unwrap(), 6);
    assert_eq!(agent.rewind(4).await.unwrap(), 4);
    assert_eq!(
        said(&agent),
        ["user", "assistant", "toolResult", "assistant"]
    );
    // A call is not parted from its result.
    assert_eq!(agent.rewind(2).await.unwrap(), 1);
    let kept: Vec<Message> = agent.history().iter().map(|m| Message::clone(m)).collect();
    drop(agent);
    let (_journal, session) = FileJournal::open(&path, env).unwrap();
    let written: Vec<Message> = session.history.iter().map(|m| Message::clone(m)).collect();
    assert_eq!(written, kept);
    assert!(session.open.is_empty());
}

/// A journal that takes a second for a reset, and none for anything else.
#[derive(Clone, Default)]
struct SlowResets(Arc<Mutex<Vec<JournalRecord>>>);

#[async_trait]
impl Journal for SlowResets {
    async fn append(&self, record: &JournalRecord) -> Result<(), JournalError> {
        if *record == JournalRecord::Reset {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        self.0.lock().unwrap().push(record.clone());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_said_while_a_reset_is_still_written_comes_after_it() {
    for rewinds in [false, true] {
        let journal = SlowResets::default();
        let replies = ["one", "two", "three"].map(Reply::say);
        let agent = Agent::builder(ScriptedModel::new(replies))
            .env(PausedEnv::shared())
            .journal(journal.clone())
            .build()
            .unwrap();
        within(agent.prompt("first")).await.unwrap();
        let taken_back = async {
            match rewinds {
                true => within(agent.rewind(0)).await.map(drop),
                false => within(agent.reset()).await.map(drop),
            }
        };
        let said = async {
            tokio::task::yield_now().await;
            within(agent.prompt("second")).await
        };
        let (taken_back, said) = tokio::join!(taken_back, said);
        assert!(taken_back.is_ok() && said.unwrap().text() == "two");
        let session = Session::of_records(journal.0.lock().unwrap().clone());
        assert_eq!(said_in(&session.history), ["second", "two"]);
        assert_eq!(said_in(&agent.history()), ["second", "two"]);
        // An abort waits for it too, and not longer than its grace period.
        let begun = tokio::time::Instant::now();
        let aborted = async {
            tokio::task::yield_now().await;
            let prompt = agent.prompt("third").into_future();
            let abort = async {
                tokio::task::yield_now().await;
                agent.abort();
            };
            let (outcome, ()) = tokio::join!(within(prompt), abort);
            (outcome.unwrap(), begun.elapsed())
        };
        let (taken_back, (outcome, took)) = tokio::join!(agent.reset(), aborted);
        assert!(taken_back.is_ok() && outcome.end.kind() == EndKind::Aborted);
        assert_eq!(took, Duration::from_secs(1));
        let session = Session::of_records(journal.0.lock().unwrap().clone());
        assert_eq!(said_in(&session.history), said_in(&agent.history()));
    }
}

fn said_in(history: &History) -> Vec<String> {
    let text = |m: &Arc<Message>| match &**m {
        Message::User(m) => m.text(),
        Message::Assistant(m) => m.text(),
        _ => String::new(),
    };
    history.iter().map(text).collect()
}
