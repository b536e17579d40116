//! Each reply of the corpus, served over loopback with its status, headers and pieces, is to an
//! agent what it is to `yiem wire decode`: text, calls, stop and error, in history, events and
//! outcome.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};
use yiem::openai::RecordedReply as Case;
use yiem::openai::case::Decoded;
use yiem::openai::{Asked, Compat, OpenAiModel};
use yiem::prelude::*;
use yiem::{
    AgentEvent, AssistantMessage, ChatOptions, EndReason, Env, EventKind, Failure, Outcome,
    SystemEnv,
};

use crate::promises::fuzz::strict::refusal;
use crate::server::{Answer, Reply, Server};

/// What the server says once the calls of the reply are answered.
const AFTER_CALLS: &str = "All is done.";

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for folder in ["cases", "neighbours"] {
        let folder = crate::root()
            .join("crates/yiem-openai/tests/fixtures")
            .join(folder);
        for entry in std::fs::read_dir(folder).expect("a folder of cases") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            trials.extend(trial(&path));
        }
    }
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    assert!(trials.len() >= 119, "{} replies", trials.len());
    trials
}

/// A case of a reply as a test. It is read only there: each test is a process that lists all.
fn trial(path: &Path) -> Option<Trial> {
    let text = std::fs::read_to_string(path).expect("a readable case");
    if text.contains("\"direction\": \"request\"") {
        return None;
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Some(Trial::test(format!("agent::{name}"), move || {
        let reply = Case::from_case(&text)?;
        let case: Value = serde_json::from_str(&text)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let reads = async {
            tokio::time::timeout(Duration::from_secs(100), check(&reply, &case))
                .await
                .unwrap_or_else(|_| Err("no end in time".into()))
        };
        runtime.block_on(reads)
    }))
}

async fn check(reply: &Case, case: &Value) -> Result<(), Failed> {
    let env: Arc<dyn Env> = SystemEnv::shared();
    let direct = serde_json::to_value(reply.decode(&env))?;
    let server = Server::start(vec![
        Answer::Whole(served(reply, case)),
        Answer::Whole(Reply::ok(&[&json!({"choices": [{
            "message": {"role": "assistant", "content": AFTER_CALLS}, "finish_reason": "stop",
        }]})
        .to_string()])),
    ])
    .await;
    let events = Arc::new(Mutex::new(Vec::new()));
    let agent = agent(&server, reply, case, &events)?;
    let outcome = agent.prompt("Go").await?;
    let error = match &outcome.end {
        EndReason::Failed(Failure::Model(error)) => Some(Arc::clone(error)),
        EndReason::Completed => None,
        other => return Err(format!("the run ended by {other:?}").into()),
    };
    let in_history = outcome
        .messages()
        .find_map(|message| match &**message {
            Message::Assistant(message) => Some(message.clone()),
            _ => None,
        })
        .ok_or("no reply is in the history")?;
    let seen = serde_json::to_value(Decoded::new(&in_history, error.as_deref()))?;
    let (mut seen, mut direct) = (plain(seen), plain(direct));
    if error.is_some() {
        // Calls of a reply that broke off are never run, so the history has none that would
        // wait for a result; and the agent adds what it tried against a context that is full.
        direct["tool_calls"] = json!([]);
        let told = direct["error_message"].as_str().unwrap_or_default();
        if seen["error_message"]
            .as_str()
            .is_some_and(|message| message.starts_with(told))
        {
            seen["error_message"] = direct["error_message"].clone();
        }
    }
    if seen != direct {
        return Err(format!("the agent has {seen:#}\nbut it was {direct:#}").into());
    }
    if !is_told(&events, &in_history) {
        return Err("no event tells the reply that is in the history".into());
    }
    after(&outcome, &in_history, &server)
}

/// Each call has its result, the next request is acceptable, and the run's answer is the last.
fn after(outcome: &Outcome, reply: &AssistantMessage, server: &Server) -> Result<(), Failed> {
    let calls: Vec<&str> = reply.tool_calls().map(|call| call.id.as_str()).collect();
    let failed = matches!(outcome.end, EndReason::Failed(_));
    let results: Vec<&str> = outcome
        .messages()
        .filter_map(|message| match &**message {
            Message::ToolResult(result) => Some(result.tool_call_id.as_str()),
            _ => None,
        })
        .collect();
    if !failed && results != calls {
        return Err(format!("results of {results:?} for the calls {calls:?}").into());
    }
    let asked = server.asked();
    let turns = if failed || calls.is_empty() { 1 } else { 2 };
    if asked.len() != turns {
        return Err(format!("{} requests in place of {turns}", asked.len()).into());
    }
    for asked in &asked {
        if let Some(refusal) = refusal(&asked.body, &Compat::default()) {
            return Err(format!("a strict server refuses: {refusal}").into());
        }
    }
    let answer = if turns == 2 {
        AFTER_CALLS.to_owned()
    } else {
        reply.text()
    };
    if outcome.text() != answer {
        return Err(format!("the answer is {:?}, not {answer:?}", outcome.text()).into());
    }
    Ok(())
}

fn agent(
    server: &Server,
    reply: &Case,
    case: &Value,
    events: &Arc<Mutex<Vec<AgentEvent>>>,
) -> Result<Agent, Failed> {
    let flag = |name: &str| case["options"][name] == Value::Bool(true);
    let mut compat = Compat::default();
    compat.recover_leaked_calls = flag("recover_leaked_calls");
    compat.think_open_implied = flag("think_open_implied");
    let model = OpenAiModel::builder()
        .base_url(server.base_url())
        .compat(compat)
        .no_proxy()
        .build()?;
    let tools = case["options"]["offered_tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|name| {
            FunctionTool::builder(name).json(json!({"type": "object"}), |_, _| async { "ok" })
        });
    let events = Arc::clone(events);
    let agent = Agent::builder(model)
        .tools(tools)
        .compactor(None)
        .options(ChatOptions {
            stream: Some(reply.asked == Asked::Stream),
            ..ChatOptions::default()
        })
        .configure(|config| config.retry.retries = 0)
        .listener(move |event| events.lock().expect("events").push(event.clone()))
        .build()?;
    Ok(agent)
}

fn served(reply: &Case, case: &Value) -> Reply {
    let mut headers = reply.headers.clone();
    let is_date = |name: &String| {
        name.eq_ignore_ascii_case("retry-after")
            && case["headers"][name]
                .as_str()
                .is_some_and(|text| text.contains("GMT"))
    };
    // The case's own clock cannot be had over HTTP.
    headers.retain(|(name, _)| !is_date(name));
    Reply {
        status: reply.status,
        headers,
        pieces: reply.pieces.clone(),
    }
}

fn is_told(events: &Mutex<Vec<AgentEvent>>, reply: &AssistantMessage) -> bool {
    let events = events.lock().expect("events");
    events.iter().any(|event| match &event.kind {
        EventKind::MessageEnd { message, .. } => {
            matches!(&**message, Message::Assistant(told) if told == reply)
        }
        _ => false,
    })
}

/// Ids that the reader makes differ each time; the counts of a failed reply are the decoder's to
/// tell; the HTTP model adds what to do; and dates are counted from the present.
fn plain(mut decoded: Value) -> Value {
    for call in decoded["tool_calls"].as_array_mut().into_iter().flatten() {
        if call["id"]
            .as_str()
            .is_some_and(|id| id.starts_with("call_0"))
        {
            call["id"] = Value::from("made");
        }
    }
    if !decoded["error"].is_null() {
        decoded["usage"] = Value::Null;
        decoded["retry_after_s"] = Value::Null;
    }
    if let Some(message) = decoded["error_message"].as_str() {
        let head = message.split("; check").next().unwrap_or_default();
        decoded["error_message"] = Value::from(head);
    }
    decoded
}
