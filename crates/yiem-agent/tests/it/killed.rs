//! Sessions whose process is killed (S-3): a process of its own writes a session and gets
//! SIGKILL, at each record of the journal, in the middle of a line, in a tool, or whenever it
//! happens to be; then the session is opened and goes on.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use yiem_agent::{
    Agent, AgentBuilder, EndKind, EventKind, FileJournal, Journal, JournalError, JournalRecord,
    event_sink,
};
use yiem_core::{ChatRequest, Message, Replay, SystemEnv, ToolOutput, async_trait};
use yiem_test::{Reply, ScriptedModel, TestTool, transcript};

use crate::{alone, within};

const CHILD: &str = "killed::a_session_is_written_until_its_process_is_killed";

/// Where the child's process ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kill {
    /// Before the record of that number is written.
    Before(usize),
    /// When it is written.
    After(usize),
    /// When half of its line is written.
    Within(usize),
    /// In the call of that number, when it has taken effect.
    InTool(usize),
    /// From outside, when so many lines were heard from it.
    Outside(usize),
}

impl Kill {
    fn told(self) -> String {
        match self {
            Self::Before(n) => format!("before {n}"),
            Self::After(n) => format!("after {n}"),
            Self::Within(n) => format!("within {n}"),
            Self::InTool(n) => format!("tool {n}"),
            Self::Outside(n) => format!("outside {n}"),
        }
    }

    fn read(text: &str) -> Self {
        let (word, n) = text.split_once(' ').unwrap();
        let n = n.parse().unwrap();
        match word {
            "before" => Self::Before(n),
            "after" => Self::After(n),
            "within" => Self::Within(n),
            "tool" => Self::InTool(n),
            _ => Self::Outside(n),
        }
    }
}

/// SIGKILL for this process.
fn die() -> ! {
    let _ = Command::new("sh").args(["-c", "kill -9 $PPID"]).status();
    loop {
        std::thread::park();
    }
}

/// The file's journal, and the end of the process at one of its records.
struct Deadly {
    inner: FileJournal,
    kill: Kill,
    records: AtomicUsize,
}

#[async_trait]
impl Journal for Deadly {
    async fn append(&self, record: &JournalRecord) -> Result<(), JournalError> {
        let n = self.records.fetch_add(1, Ordering::SeqCst);
        if self.kill == Kill::Before(n) {
            die();
        }
        if self.kill == Kill::Within(n) {
            let line = serde_json::to_vec(record).unwrap();
            let mut file = std::fs::OpenOptions::new()
                .append(true)
                .open(self.inner.path())
                .unwrap();
            file.write_all(&line[..line.len() / 2]).unwrap();
            die();
        }
        self.inner.append(record).await?;
        if self.kill == Kill::After(n) {
            die();
        }
        Ok(())
    }
}

/// Three rounds of two calls, then an answer.
fn model() -> ScriptedModel {
    ScriptedModel::answering(|request: &ChatRequest| {
        let rounds = request
            .messages
            .iter()
            .rev()
            .take_while(|m| m.as_user().is_none())
            .filter(|m| m.as_assistant().is_some())
            .count();
        let n = request.messages.len();
        if rounds == 3 {
            return Reply::say(format!("done after {n}"));
        }
        Reply::call_with_id(format!("once-{n}"), "once", json!({"n": n})).and_call_with_id(
            format!("again-{n}"),
            "again",
            json!({"n": n}),
        )
    })
}

/// `once` may not be run again, `again` may. Both leave a line for each time that they took
/// effect.
fn tools(effects: &Path, kill: Option<Kill>) -> [TestTool; 2] {
    let calls = std::sync::Arc::new(AtomicUsize::new(0));
    [("once", Replay::Never), ("again", Replay::Safe)].map(|(name, replay)| {
        let (effects, calls) = (effects.to_owned(), calls.clone());
        TestTool::new(name, move |args, _| {
            let (effects, calls) = (effects.clone(), calls.clone());
            async move {
                let mut file = std::fs::OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(effects)
                    .unwrap();
                writeln!(file, "{name}-{}", args["n"]).unwrap();
                if kill == Some(Kill::InTool(calls.fetch_add(1, Ordering::SeqCst))) {
                    die();
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
                Ok(ToolOutput::text(format!("{name} did {}", args["n"])))
            }
        })
        .define(|d| d.replay = replay)
    })
}

fn agent(folder: &Path, kill: Option<Kill>) -> AgentBuilder {
    Agent::builder(model()).tools(tools(&folder.join("effects"), kill))
}

/// What the outside hears of an event: from then on it counts as known.
fn heard(kind: &EventKind) -> Option<String> {
    match kind {
        EventKind::MessageEnd { message } => Some(transcript::message_line(message)),
        EventKind::ToolExecutionEnd { result, .. } => {
            Some(transcript::message_line(result.message()))
        }
        _ => None,
    }
}

/// Talks `prompts` times, telling aloud what counts as known.
fn talk(folder: &Path, kill: Kill, prompts: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (inner, session) =
            FileJournal::open(folder.join("s.jsonl"), &SystemEnv::default()).unwrap();
        let records = AtomicUsize::new(0);
        let agent = agent(folder, Some(kill))
            .journal(Deadly {
                inner,
                kill,
                records,
            })
            .resume(session)
            .sink(event_sink(|event| async move {
                if let Some(line) = heard(&event.kind) {
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "\nheard {line}").unwrap();
                    out.flush().unwrap();
                }
            }))
            .build()
            .unwrap();
        for n in 0..prompts {
            agent.prompt(format!("message {n}")).await.unwrap();
        }
    });
}

/// What the killed process does; without a killer it is a conversation like any other.
#[test]
fn a_session_is_written_until_its_process_is_killed() {
    if alone::is_alone() {
        let argument = alone::argument();
        let (kill, folder) = argument.split_once('\n').unwrap();
        return talk(Path::new(folder), Kill::read(kill), 100);
    }
    let folder = tempfile::tempdir().unwrap();
    talk(folder.path(), Kill::Outside(0), 2);
    let path = folder.path().join("s.jsonl");
    let (_lock, session) = FileJournal::open(path, &SystemEnv::default()).unwrap();
    assert_eq!((session.history.len(), session.open.len()), (22, 0));
    assert_eq!(effects(folder.path()).len(), 12);
}

/// Lets the child write until it is killed; gives what it had said.
fn killed(folder: &Path, kill: Kill) -> Vec<String> {
    let argument = format!("{}\n{}", kill.told(), folder.display());
    let mut child = alone::command(CHILD, &argument)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut heard = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        if let Some(line) = line.unwrap().strip_prefix("heard ") {
            heard.push(line.to_owned());
        }
        if matches!(kill, Kill::Outside(n) if heard.len() >= n) {
            child.kill().unwrap();
        }
    }
    let status = child.wait().unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(9),
        "{kill:?}: it was not killed: {status}"
    );
    heard
}

fn effects(folder: &Path) -> HashMap<String, usize> {
    let mut effects = HashMap::new();
    for line in std::fs::read_to_string(folder.join("effects"))
        .unwrap_or_default()
        .lines()
    {
        *effects.entry(line.to_owned()).or_default() += 1;
    }
    effects
}

fn lines<'m>(messages: impl IntoIterator<Item = &'m std::sync::Arc<Message>>) -> Vec<String> {
    messages
        .into_iter()
        .map(|m| transcript::message_line(m))
        .collect()
}

/// Kills at `kill`, opens the session, goes on; everything that is promised is looked at.
async fn check(kill: Kill) {
    let folder = tempfile::tempdir().unwrap();
    let (folder, path) = (folder.path(), folder.path().join("s.jsonl"));
    let heard = killed(folder, kill);
    let before = effects(folder);
    let (journal, session) =
        FileJournal::open(&path, &SystemEnv::default()).unwrap_or_else(|e| panic!("{kill:?}: {e}"));
    // Everything that was told is there: in the history, or as a result of an open call.
    let open = session.open.clone();
    let mut there = lines(session.history.iter());
    there.extend(lines(open.iter().filter_map(|o| o.result.as_ref())));
    for line in &heard {
        assert!(
            there.contains(line),
            "{kill:?}: {line:?} was told and is lost: {there:#?}"
        );
    }
    let agent = agent(folder, None)
        .journal(journal)
        .resume(session)
        .build()
        .unwrap();
    let had = agent.history().len();
    let goes_on = match agent.history().last().map(|m| &**m) {
        None => false,
        Some(Message::Assistant(m)) => m.has_tool_calls(),
        Some(_) => true,
    };
    let outcome = if goes_on {
        within(agent.continue_run()).await
    } else {
        within(agent.prompt("go on")).await
    };
    let outcome = outcome.unwrap_or_else(|e| panic!("{kill:?}: {e}"));
    assert_eq!(outcome.end.kind(), EndKind::Completed, "{kill:?}");
    // What began is run again if its tool says that this is safe, and else is unknown.
    for (at, call) in open.iter().enumerate() {
        let id = call.tool_call_id.as_str();
        let result = outcome.transcript.get(had + at).unwrap();
        let result = result.as_tool_result().unwrap();
        assert_eq!(result.tool_call_id, call.tool_call_id, "{kill:?}");
        let unknown = call.begun && call.result.is_none() && id.starts_with("once");
        assert_eq!(result.is_error, unknown, "{kill:?}: {}", result.text());
        assert_eq!(result.text().contains("unknown"), unknown, "{kill:?}");
    }
    for (effect, times) in effects(folder) {
        if effect.starts_with("once") {
            assert_eq!(
                times, 1,
                "{kill:?}: {effect} took effect twice; before: {before:?}"
            );
        }
    }
    // The file has what the agent has.
    let whole = lines(agent.history().iter());
    drop(agent);
    let (_lock, session) = FileJournal::open(&path, &SystemEnv::default()).unwrap();
    assert_eq!(lines(session.history.iter()), whole, "{kill:?}");
    assert_eq!(session.open, [], "{kill:?}");
}

fn check_all(kills: impl IntoIterator<Item = Kill>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    for kill in kills {
        runtime.block_on(check(kill));
    }
}

/// One run is 2 + 3 x 5 + 2 records: two runs, so that one begins on an earlier one.
const RECORDS: usize = 24;

#[test]
fn killed_before_or_after_any_record_a_session_goes_on() {
    check_all((0..RECORDS).flat_map(|n| [Kill::Before(n), Kill::After(n)]));
}

#[test]
fn killed_in_the_middle_of_any_line_a_session_goes_on() {
    check_all((0..RECORDS).map(Kill::Within));
}

#[test]
fn killed_in_a_call_that_has_taken_effect_a_session_goes_on() {
    check_all((0..8).map(Kill::InTool));
}

#[test]
fn killed_from_outside_at_any_time_a_session_goes_on() {
    check_all([0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89].map(Kill::Outside));
}
