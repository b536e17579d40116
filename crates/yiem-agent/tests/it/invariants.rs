//! What is true of every run, whatever happens in it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use yiem_agent::{AgentEvent, EventKind, MessageDelta, MessageRole, QueueChange};
use yiem_core::{AssistantContent, ChatRequest, History, Message};
use yiem_test::{Played, check_request};

/// Events nest: every start has exactly one end, in the grammar of R-1, and numbers have no gaps.
pub(crate) fn events_nest(events: &[AgentEvent]) -> Result<(), String> {
    let mut at = Grammar::default();
    for event in events {
        at.take(event)
            .map_err(|e| format!("{e}, at {}", yiem_test::transcript::line(event)))?;
    }
    if at.run.is_some() {
        return Err("a run has no end".to_owned());
    }
    Ok(())
}

#[derive(Default)]
struct Grammar {
    run: Option<String>,
    next_seq: u64,
    turn: u32,
    in_turn: bool,
    message: Option<MessageRole>,
    /// The text of the message that is open, as its updates told it, if there were any.
    told: Option<String>,
    /// Calls that run.
    running: HashSet<String>,
    /// Calls that have ended or were rejected, in this turn.
    over: HashSet<String>,
    /// Calls of the turn's reply, in order.
    asked: Vec<String>,
    /// Results told in this turn.
    results: Vec<String>,
    questions: HashSet<String>,
    compacting: bool,
    replied: bool,
}

impl Grammar {
    fn take(&mut self, event: &AgentEvent) -> Result<(), String> {
        let fail = |why: &str| Err(why.to_owned());
        if event.kind == EventKind::AgentStart {
            if self.run.is_some() {
                return fail("a run begins in a run");
            }
            *self = Self {
                run: Some(event.run_id.to_string()),
                ..Self::default()
            };
        }
        if self.run.as_deref() != Some(event.run_id.as_str()) {
            return fail("an event of another run, or of none");
        }
        if event.seq != self.next_seq {
            return fail("a gap in the numbers");
        }
        self.next_seq += 1;
        match &event.kind {
            EventKind::AgentStart => {}
            EventKind::AgentEnd { .. } => {
                if self.in_turn
                    || !self.running.is_empty()
                    || !self.questions.is_empty()
                    || self.compacting
                {
                    return fail("the run ends with something open");
                }
                self.run = None;
            }
            EventKind::TurnStart => {
                if self.in_turn {
                    return fail("a turn begins in a turn");
                }
                self.in_turn = true;
                self.turn += 1;
                self.replied = false;
                self.asked.clear();
                self.over.clear();
                self.results.clear();
                if event.turn != self.turn {
                    return fail("the turn's number is wrong");
                }
            }
            EventKind::TurnEnd { tool_results, .. } => {
                if !self.in_turn || self.message.is_some() || !self.running.is_empty() {
                    return fail("a turn ends with something open");
                }
                let told: Vec<String> = tool_results.iter().filter_map(result_id).collect();
                if told != self.results || (self.replied && told != self.asked) {
                    return fail("the turn's results are not those of its calls, in order");
                }
                self.in_turn = false;
            }
            EventKind::MessageStart { role, .. } => {
                if !self.in_turn || self.message.is_some() {
                    return fail("a message begins where it may not");
                }
                if *role == MessageRole::User && self.replied {
                    return fail("a user's message after the reply");
                }
                if *role == MessageRole::ToolResult && !self.running.is_empty() {
                    return fail("a result is told while calls run");
                }
                self.message = Some(*role);
                self.told = None;
            }
            EventKind::MessageUpdate { delta } => {
                if self.message != Some(MessageRole::Assistant) {
                    return fail("an update of no reply");
                }
                let told = self.told.get_or_insert_default();
                match delta {
                    MessageDelta::Text { text } => told.push_str(text),
                    MessageDelta::Restarted => told.clear(),
                    _ => {}
                }
            }
            EventKind::MessageEnd { message } => {
                if self.message.take() != Some(MessageRole::of(message)) {
                    return fail("a message ends that did not begin");
                }
                if let (Message::Assistant(m), Some(told)) = (&**message, self.told.take()) {
                    let texts = m.content.iter().filter_map(|block| match block {
                        AssistantContent::Text(text) => Some(text.text.as_str()),
                        _ => None,
                    });
                    if told != texts.collect::<String>() {
                        return fail("the updates of a reply do not make up its text");
                    }
                }
                if let Message::Assistant(m) = &**message
                    && !m.is_broken()
                {
                    self.replied = true;
                    self.asked = m.tool_calls().map(|c| c.id.to_string()).collect();
                }
                self.results.extend(result_id(message));
            }
            EventKind::ToolExecutionStart { tool_call_id, .. } => {
                let id = tool_call_id.to_string();
                if self.over.contains(&id) || !self.running.insert(id) {
                    return fail("a call begins twice");
                }
            }
            EventKind::ToolExecutionUpdate { tool_call_id, .. } => {
                if !self.running.contains(tool_call_id.as_str()) {
                    return fail("an update of a call that does not run");
                }
            }
            EventKind::ToolExecutionEnd { tool_call_id, .. } => {
                if !self.running.remove(tool_call_id.as_str()) {
                    return fail("a call ends that does not run");
                }
                self.over.insert(tool_call_id.to_string());
            }
            EventKind::ToolCallRejected { tool_call_id, .. } => {
                let id = tool_call_id.to_string();
                if self.running.contains(&id) || !self.over.insert(id) {
                    return fail("a call is rejected that began, or twice");
                }
            }
            EventKind::ApprovalRequested { approval_id, .. } => {
                if !self.questions.insert(approval_id.to_string()) {
                    return fail("a question is put twice");
                }
            }
            EventKind::ApprovalResolved { approval_id, .. } => {
                if !self.questions.remove(&**approval_id) {
                    return fail("a question is over that was not put");
                }
            }
            EventKind::QueueChanged {
                change,
                messages,
                steering,
                follow_ups,
            } => {
                let waits =
                    |m: &Arc<Message>| steering.iter().chain(follow_ups).any(|w| Arc::ptr_eq(w, m));
                let all_wait = messages.iter().all(waits);
                match change {
                    QueueChange::Queued if !all_wait || messages.len() != 1 => {
                        return fail("a message was queued that does not wait");
                    }
                    QueueChange::Delivered | QueueChange::GivenBack
                        if messages.is_empty() || messages.iter().any(waits) =>
                    {
                        return fail("a message left its queue and waits in it");
                    }
                    QueueChange::Delivered if self.in_turn => {
                        return fail("messages enter in the middle of a turn");
                    }
                    QueueChange::Waiting if self.turn > 0 || !messages.is_empty() => {
                        return fail("what waits at the beginning is told later");
                    }
                    _ => {}
                }
            }
            EventKind::CompactionStart { .. } => self.compacting = true,
            EventKind::CompactionEnd { .. } => self.compacting = false,
            _ => {}
        }
        Ok(())
    }
}

fn result_id(message: impl AsRef<Message>) -> Option<String> {
    message
        .as_ref()
        .as_tool_result()
        .map(|r| r.tool_call_id.to_string())
}

/// Each call of the history has exactly one result, right after it and in order.
pub(crate) fn calls_are_answered(history: &History) -> Result<(), String> {
    let whole = ChatRequest::new(history.clone());
    check_request(&whole)?;
    let mut open: Vec<String> = Vec::new();
    for message in history.iter() {
        match &**message {
            Message::Assistant(m) => {
                if m.is_broken() && m.has_tool_calls() {
                    return Err("a broken reply kept its calls".to_owned());
                }
                open = m.tool_calls().map(|c| c.id.to_string()).collect();
            }
            Message::ToolResult(r) => {
                if open.is_empty() || open.remove(0) != *r.tool_call_id {
                    return Err(format!("the result of {} is out of order", r.tool_call_id));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Everything that is true of a scenario, whatever it was.
pub(crate) fn all(played: &Played) -> Result<(), String> {
    if !played.ended {
        return Err("it did not end".to_owned());
    }
    if let Some(breach) = played.breaches.first() {
        return Err(format!("a strict server would refuse: {breach}"));
    }
    events_nest(&played.events)?;
    calls_are_answered(&played.history)?;
    // No message is lost: each one that was taken in is in the history or was left over.
    let mut there: HashMap<String, i64> = HashMap::new();
    for message in played.history.iter().chain(&played.undelivered) {
        if let Message::User(user) = &**message {
            *there.entry(user.text()).or_default() += 1;
        }
    }
    for sent in &played.sent {
        let count = there.entry(sent.clone()).or_default();
        *count -= 1;
        if *count < 0 {
            return Err(format!("the message {sent:?} is lost"));
        }
    }
    // As many outcomes as runs.
    let runs = played
        .events
        .iter()
        .filter(|e| e.kind == EventKind::AgentStart)
        .count();
    let known = played.outcomes.len();
    if known > runs || runs > known + played.dropped {
        return Err(format!(
            "{runs} runs have {} outcomes",
            played.outcomes.len()
        ));
    }
    Ok(())
}
