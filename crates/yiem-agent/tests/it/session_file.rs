//! The file of a session (S-2): torn anywhere, full, let go, of another version; and what a
//! session that goes on still knows of its cost and of a reply that was cut.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use serde_json::json;
use yiem_agent::{
    Agent, EndReason, Failure, FileJournal, FlushPolicy, JournalRecord, Limit, Limits, Session,
};
use yiem_core::{
    AssistantMessage, Message, ModelCost, ModelInfo, StopReason, SystemEnv, Timestamp, ToolCall,
};
use yiem_test::{PausedEnv, Reply, ScriptedModel, tool, transcript};

use crate::{alone, within};

fn opened(path: &Path) -> Session {
    let (_lock, session) = FileJournal::open(path, &SystemEnv::default())
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    session
}

fn lines(session: &Session) -> Vec<String> {
    session
        .history
        .iter()
        .map(|m| transcript::message_line(m))
        .collect()
}

fn two_turns() -> ScriptedModel {
    ScriptedModel::answering(|request| {
        let last = request.messages.last();
        if last.is_some_and(|m| m.as_user().is_some()) {
            Reply::call("echo", json!({"value": "x"})).usage(100, 10)
        } else {
            Reply::say("done").usage(50, 5)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn torn_at_any_byte_the_file_opens_with_what_was_whole_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let agent = Agent::builder(two_turns())
        .env(PausedEnv::shared())
        .tool(tool::echo())
        .session_file(&path)
        .build()
        .unwrap();
    within(agent.prompt("hi")).await.unwrap();
    drop(agent);
    let whole = std::fs::read(&path).unwrap();
    let records: Vec<JournalRecord> = String::from_utf8(whole.clone())
        .unwrap()
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for cut in 0..=whole.len() {
        let torn = folder.path().join("torn.jsonl");
        std::fs::write(&torn, &whole[..cut]).unwrap();
        let (journal, session) = FileJournal::open(&torn, &SystemEnv::default()).unwrap();
        let kept = whole[..cut].iter().filter(|b| **b == b'\n').count();
        let expected = Session::of_records(records[..kept.saturating_sub(1)].to_vec());
        assert_eq!(lines(&session), lines(&expected), "cut at {cut}");
        assert_eq!(session.open, expected.open, "cut at {cut}");
        let aside = folder.path().join("torn.jsonl.torn-1");
        let whole_to = whole[..cut]
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        if whole_to == cut {
            assert!(!aside.exists(), "cut at {cut}");
        } else {
            assert_eq!(std::fs::read(&aside).unwrap(), &whole[whole_to..cut]);
            std::fs::remove_file(aside).unwrap();
        }
        drop(journal);
        // Opened once, it is whole again.
        assert_eq!(lines(&opened(&torn)), lines(&expected), "cut at {cut}");
    }
}

#[tokio::test]
async fn the_file_is_free_at_once_when_the_agent_is_dropped_or_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    for round in 0..20 {
        let agent = Agent::builder(two_turns())
            .tool(tool::echo())
            .session_file(&path)
            .build()
            .unwrap();
        within(agent.prompt("hi")).await.unwrap();
        if round % 2 == 0 {
            within(agent.stop()).await;
        }
        let in_use = FileJournal::open(&path, &SystemEnv::default());
        assert_eq!(in_use.is_err(), round % 2 == 1, "round {round}");
        drop((in_use, agent));
        assert_eq!(opened(&path).history.len(), 4 * (round + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_in_the_middle_of_a_call_the_session_says_that_it_had_begun() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let agent = Agent::builder(ScriptedModel::new([Reply::call("never", json!({}))]))
        .tool(tool::never("never"))
        .session_file(&path)
        .build()
        .unwrap();
    let mut events = agent.subscribe();
    agent.run("hi").unwrap();
    while let Some(yiem_agent::Delivery::Event(event)) = within(events.next()).await {
        if matches!(event.kind, yiem_agent::EventKind::ToolExecutionStart { .. }) {
            break;
        }
    }
    drop(agent);
    let session = opened(&path);
    assert_eq!(session.open.len(), 1);
    assert!(session.open[0].begun && session.open[0].result.is_none());
}

/// A disk that is full, as a process sees it: a limit on the size of files, which lets a part of
/// a line through.
#[cfg(unix)]
#[test]
fn a_full_disk_ends_the_run_and_leaves_a_file_that_opens() {
    const NAME: &str = "session_file::a_full_disk_ends_the_run_and_leaves_a_file_that_opens";
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    if alone::is_alone() {
        let path = alone::argument();
        runtime.block_on(async {
            let agent = Agent::builder(two_turns())
                .tool(tool::echo())
                .session_file(&path)
                .build()
                .unwrap();
            let mut full = 0;
            for n in 0..100 {
                let outcome = within(agent.prompt(format!("message {n}"))).await.unwrap();
                if let EndReason::Failed(Failure::Journal(said)) = &outcome.end {
                    assert!(said.contains("cannot write"), "{said}");
                    full += 1;
                }
            }
            assert!(full > 50, "{full} runs met the full disk");
        });
        return;
    }
    for kib in 2..6 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let child = alone::command(NAME, &path.display().to_string());
        let arguments: Vec<_> = child.get_args().collect();
        // The limit is in blocks of 512 bytes; a signal that is passed over becomes an error.
        let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", kib * 2);
        let mut limited = std::process::Command::new("sh");
        limited
            .arg("-c")
            .arg(script)
            .arg(child.get_program())
            .args(arguments);
        for (name, value) in child.get_envs() {
            limited.env(name, value.unwrap());
        }
        // Pipes have no such limit.
        let output = limited.stdin(Stdio::null()).output().unwrap();
        assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        let size = std::fs::metadata(&path).unwrap().len();
        assert!(size <= kib * 1024 && size > kib * 1024 - 1024, "{size}");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("}\n"), "a part of a line was left: {text}");
        // With room again it goes on.
        runtime.block_on(async {
            let agent = Agent::builder(two_turns())
                .tool(tool::echo())
                .session_file(&path)
                .build()
                .unwrap();
            let outcome = within(agent.prompt("room again")).await.unwrap();
            assert!(outcome.is_ok(), "{outcome:?}");
            let whole: Vec<String> = outcome
                .transcript
                .iter()
                .map(|m| transcript::message_line(m))
                .collect();
            drop(agent);
            assert_eq!(lines(&opened(&path)), whole);
        });
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_later_version_wrote_is_passed_over_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let later = "{\"yiem\":\"journal\",\"version\":1,\"sessionId\":\"s\",\"later\":true}\n\
        {\"record\":\"mood\",\"level\":3}\n\
        {\"record\":\"message\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"timestamp\":\"2026-01-01T00:00:00Z\",\"later\":1},\"later\":[]}\n\
        {\"record\":\"message\",\"message\":{\"role\":\"of a later version\"}}\n";
    std::fs::write(&path, later).unwrap();
    let agent = Agent::builder(ScriptedModel::new([Reply::say("hello")]))
        .env(PausedEnv::shared())
        .session_file(&path)
        .build()
        .unwrap();
    let outcome = within(agent.continue_run()).await.unwrap();
    assert_eq!(outcome.transcript.len(), 2);
    drop(agent);
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(later));
    assert_eq!(lines(&opened(&path)).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_line_in_the_middle_that_is_no_json_is_told_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    drop(FileJournal::open(&path, &SystemEnv::default()).unwrap());
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"record\":\"reset\"}\n{oops\n{\"record\":\"reset\"}\n");
    std::fs::write(&path, &text).unwrap();
    let error = FileJournal::open(&path, &SystemEnv::default()).unwrap_err();
    assert!(error.to_string().contains("line 3"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn every_flush_policy_gives_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for policy in [
        FlushPolicy::PerRecord,
        FlushPolicy::PerTurn,
        FlushPolicy::Never,
    ] {
        let path = folder.path().join(format!("{policy:?}.jsonl"));
        let (journal, session) = FileJournal::open(&path, &SystemEnv::default()).unwrap();
        let agent = Agent::builder(two_turns())
            .tool(tool::echo())
            .journal(journal.with_flush(policy))
            .resume(session)
            .build()
            .unwrap();
        within(agent.prompt("hi")).await.unwrap();
        drop(agent);
        let text = std::fs::read_to_string(&path).unwrap();
        let kinds: Vec<String> = text
            .lines()
            .skip(1)
            .map(|line| {
                let record: serde_json::Value = serde_json::from_str(line).unwrap();
                record["record"].to_string()
            })
            .collect();
        files.push(kinds);
    }
    assert_eq!(files[0].len(), 8);
    assert!(files.iter().all(|kinds| *kinds == files[0]), "{files:?}");
}

// ---- what a session that goes on still knows ----

fn priced(replies: usize) -> ScriptedModel {
    let info = ModelInfo {
        cost: ModelCost {
            input: 1.0,
            output: 10.0,
            ..ModelCost::default()
        },
        ..ModelInfo::new("priced")
    };
    let replies = (0..replies).map(|_| Reply::say("ok").usage(1_000_000, 100_000));
    ScriptedModel::with_info(info, replies)
}

#[tokio::test(start_paused = true)]
async fn tokens_and_money_of_a_session_go_on_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let open = |limits: Limits| {
        Agent::builder(priced(3))
            .env(PausedEnv::shared())
            .session_file(&path)
            .limits(limits)
            .build()
            .unwrap()
    };
    let first = open(Limits::default());
    within(first.prompt("one")).await.unwrap();
    let spent = first.state();
    drop(first);
    let second = open(Limits::default());
    let state = second.state();
    assert_eq!((state.usage, state.cost), (spent.usage, spent.cost));
    assert_eq!(state.usage.input, Some(1_000_000));
    // What was taken back was paid all the same, and what stays is not paid twice.
    within(second.prompt("two")).await.unwrap();
    within(second.rewind(2)).await.unwrap();
    drop(second);
    let mut limits = Limits::default();
    limits.session_tokens = Some(2_200_000);
    let third = open(limits);
    assert_eq!(third.state().usage.input, Some(2_000_000));
    let outcome = within(third.prompt("three")).await.unwrap();
    assert!(
        matches!(
            outcome.end,
            EndReason::Limit(Limit::SessionTokens {
                max: 2_200_000,
                used: 2_200_000
            })
        ),
        "{:?}",
        outcome.end
    );
    drop(third);
    let mut limits = Limits::default();
    limits.session_cost = Some(3.0);
    let fourth = open(limits);
    let outcome = within(fourth.prompt("four")).await.unwrap();
    assert!(
        matches!(outcome.end, EndReason::Limit(Limit::SessionCost { .. })),
        "{:?}",
        outcome.end
    );
}

#[tokio::test(start_paused = true)]
async fn a_branch_does_not_pay_for_what_it_begins_with() {
    let folder = tempfile::tempdir().unwrap();
    let agent = Agent::builder(priced(1))
        .env(PausedEnv::shared())
        .session_file(folder.path().join("s.jsonl"))
        .build()
        .unwrap();
    within(agent.prompt("one")).await.unwrap();
    drop(agent);
    let whole = opened(&folder.path().join("s.jsonl"));
    let path = folder.path().join("b.jsonl");
    let (journal, session) = FileJournal::branch(&path, &SystemEnv::default(), &whole, 2).unwrap();
    assert_eq!(session.history.len(), 2);
    assert!(session.usage.is_unknown());
    let branch = Agent::builder(priced(1))
        .env(PausedEnv::shared())
        .journal(journal)
        .resume(session)
        .build()
        .unwrap();
    within(branch.prompt("two")).await.unwrap();
    drop(branch);
    assert_eq!(opened(&path).usage.input, Some(1_000_000));
    assert_eq!(opened(&path).history.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_cut_reply_are_not_run_after_a_restart_either() {
    for stop in [StopReason::Length, StopReason::ContentFilter] {
        let reply = AssistantMessage {
            stop_reason: stop,
            ..AssistantMessage::new(
                vec![yiem_core::AssistantContent::ToolCall(ToolCall::new(
                    "c1",
                    "echo",
                    json!({"value": "x"}).as_object().unwrap().clone(),
                ))],
                Timestamp::default(),
            )
        };
        let session = Session::of_records([
            JournalRecord::Message {
                message: Arc::new(Message::user("hi", Timestamp::default())),
            },
            JournalRecord::Message {
                message: Arc::new(reply.into()),
            },
        ]);
        let echo = tool::echo();
        let agent = Agent::builder(ScriptedModel::new([Reply::say("again, then")]))
            .env(PausedEnv::shared())
            .tool(echo.clone())
            .resume(session)
            .build()
            .unwrap();
        let outcome = within(agent.continue_run()).await.unwrap();
        assert_eq!(echo.calls().len(), 0);
        let result = outcome.transcript.get(2).unwrap().as_tool_result().unwrap();
        assert!(result.is_error && result.text().contains("was cut"));
    }
}
