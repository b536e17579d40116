//! What was said can be taken back, in memory and in the session's file.

use yiem_agent::{Agent, FileJournal};
use yiem_core::{Env, Message, SystemEnv};
use yiem_test::{Reply, ScriptedModel, tool};

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
