//! The model's side of a turn: pieces, whole replies, failures, retries, overflow.

use std::collections::HashSet;
use std::sync::Arc;

use yiem_core::{
    AssistantContent, AssistantMessage, ChatEvent, Cost, History, Message, MessageAssembler,
    ModelError, ModelErrorKind, ModelInfo, StopReason, Timestamp, Usage,
};

use super::calls::is_cut;
use super::{At, Run, RunFacts, Step};
use crate::batch::Batch;
use crate::config::ToolExecution;
use crate::event::{EventKind, MessageDelta, MessageRole};
use crate::journal::JournalRecord;
use crate::outcome::{EndReason, Failure};

impl Run {
    pub(super) fn piece(&mut self, event: ChatEvent, facts: &dyn RunFacts) {
        self.open_message();
        let message = match event {
            end @ (ChatEvent::Finished { .. } | ChatEvent::Message(_)) => self.assembler.push(end),
            piece => {
                self.assembler.grow(&piece);
                match grown(piece) {
                    Ok(delta) => {
                        self.emit(EventKind::MessageUpdate { delta });
                        None
                    }
                    Err(piece) => {
                        let delta = delta_of(&piece);
                        let whole = self.assembler.push(piece);
                        if let Some(delta) = delta {
                            self.emit(EventKind::MessageUpdate { delta });
                        }
                        whole
                    }
                }
            }
        };
        if let Some(message) = message {
            self.assembler = MessageAssembler::new();
            self.reply_came(message, facts);
        }
    }

    fn open_message(&mut self) {
        if !self.message_open {
            self.message_open = true;
            self.emit(EventKind::MessageStart {
                role: MessageRole::Assistant,
                message: None,
            });
        }
    }

    fn reply_came(&mut self, mut message: AssistantMessage, facts: &dyn RunFacts) {
        complete(&mut message, facts);
        self.spend(&message.usage, facts);
        if let Some(reason) = overflowed(&message, facts.model()) {
            let error = ModelError::new(ModelErrorKind::ContextLength, reason);
            return self.attempt_failed(error, Some(message), facts);
        }
        match message.stop_reason {
            StopReason::Error | StopReason::Aborted => {
                let said = message
                    .error_message
                    .clone()
                    .unwrap_or_else(|| "the model's reply says that it failed".to_owned());
                let error = ModelError::new(ModelErrorKind::Other, said);
                return self.give_up(Failure::Model(Arc::new(error)), Some(message), facts);
            }
            StopReason::ToolCalls if !message.has_tool_calls() => {
                if message.text().trim().is_empty() {
                    let error = ModelError::new(
                        ModelErrorKind::Malformed,
                        "the model says that it calls tools (finish reason tool_calls), and its \
                         reply has neither a call nor text",
                    );
                    return self.give_up(Failure::Model(Arc::new(error)), Some(message), facts);
                }
                self.emit(EventKind::Warning {
                    message: "the model says that it calls tools, and its reply has text alone: \
                              taken as the end of its turn"
                        .into(),
                });
            }
            _ => {}
        }
        self.accept(message, facts);
    }

    /// Adds up tokens and money.
    pub(super) fn spend(&mut self, usage: &Usage, facts: &dyn RunFacts) {
        self.usage.add(usage);
        let price = &facts.model().cost;
        if *price != yiem_core::ModelCost::default() {
            let spent = price.of(usage);
            self.cost.get_or_insert_with(Cost::default).add(&spent);
        }
    }

    /// Writes down tokens of a reply that does not enter the history: those of others are written
    /// down with it.
    pub(super) fn record_usage(&mut self, usage: Usage) {
        if !usage.is_unknown() {
            self.record(|| JournalRecord::Usage { usage });
        }
    }

    /// A good reply enters the history; its calls become the batch.
    fn accept(&mut self, message: AssistantMessage, facts: &dyn RunFacts) {
        self.stop_reason = message.stop_reason.clone();
        let message = self.close_message(message);
        self.enter(Arc::clone(&message));
        self.last_text = Some(Arc::clone(&message));
        self.reply = Some(Arc::clone(&message));
        let Some(reply) = message
            .as_assistant()
            .filter(|reply| reply.has_tool_calls())
        else {
            return self.turn_done(facts);
        };
        if is_cut(&self.stop_reason) {
            self.truncated = Some(self.stop_reason.clone());
        }
        let config = &self.rules.config;
        let sequential = config.tool_execution == ToolExecution::Sequential
            || reply
                .tool_calls()
                .any(|c| facts.parallel(&c.name) == Some(false));
        self.batch = Some(Batch::new(
            reply.tool_calls().cloned(),
            sequential,
            config.max_parallel,
        ));
        self.at = At::Batch;
        self.drive_batch(facts);
    }

    /// Tells the end of the reply and writes it down; gives it shared.
    fn close_message(&mut self, message: AssistantMessage) -> Arc<Message> {
        let message = Arc::new(Message::Assistant(message));
        self.record(|| JournalRecord::Message {
            message: Arc::clone(&message),
        });
        self.end_message(&message);
        message
    }

    fn end_message(&mut self, message: &Arc<Message>) {
        self.open_message();
        self.message_open = false;
        self.emit(EventKind::MessageEnd {
            message: Arc::clone(message),
        });
    }

    pub(super) fn model_failed(&mut self, error: ModelError, facts: &dyn RunFacts) {
        let partial = self.partial_reply(StopReason::Error, Some(error.message.clone()), facts);
        self.attempt_failed(error, partial, facts);
    }

    /// What has come of the reply, as it broke off. Its calls never run, so they are left out:
    /// a call in the history has a result.
    fn partial_reply(
        &mut self,
        stop: StopReason,
        error: Option<String>,
        facts: &dyn RunFacts,
    ) -> Option<AssistantMessage> {
        let assembler = std::mem::take(&mut self.assembler);
        if !self.message_open {
            return None;
        }
        let mut message = assembler.broken_off(stop, error);
        complete(&mut message, facts);
        without_calls(&mut message);
        Some(message)
    }

    /// Shorten, wait, or give up.
    fn attempt_failed(
        &mut self,
        error: ModelError,
        partial: Option<AssistantMessage>,
        facts: &dyn RunFacts,
    ) {
        if error.kind == ModelErrorKind::ContextLength && !self.compacted {
            self.compacted = true;
            let mut kept = partial.clone();
            if let Some(kept) = &mut kept {
                // Written down below.
                kept.usage = Usage::UNKNOWN;
            }
            self.drop_attempt(partial, &error);
            let reason: Arc<str> = error.message.as_str().into();
            self.overflow = Some((error, kept));
            self.emit(EventKind::CompactionStart {
                reason: Arc::clone(&reason),
            });
            return self.request(Step::Compact { reason }, At::Compaction);
        }
        let policy = self.rules.config.retry;
        match policy.wait(self.attempt, error, facts.random()) {
            Ok((delay, error)) => {
                self.drop_attempt(partial, &error);
                self.attempt += 1;
                self.emit(EventKind::RetryScheduled {
                    attempt: self.attempt,
                    max_attempts: policy.retries + 1,
                    delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                    error: error.message.as_str().into(),
                });
                self.request(Step::Wait(delay), At::Backoff);
            }
            Err(error) => self.give_up(Failure::Model(Arc::new(error)), partial, facts),
        }
    }

    /// Ends the message of an attempt that is made again. It does not enter the history.
    fn drop_attempt(&mut self, partial: Option<AssistantMessage>, error: &ModelError) {
        if !self.message_open {
            return;
        }
        let mut message = partial.unwrap_or_default();
        without_calls(&mut message);
        message.stop_reason = StopReason::Error;
        message
            .error_message
            .get_or_insert_with(|| error.message.clone());
        self.record_usage(message.usage);
        self.end_message(&Arc::new(Message::Assistant(message)));
    }

    pub(super) fn compaction_done(
        &mut self,
        result: Result<History, String>,
        facts: &dyn RunFacts,
    ) {
        let before = self.shown().len();
        match result {
            Ok(shown) => {
                self.record(|| JournalRecord::Compaction {
                    shown: shown.iter().cloned().collect(),
                });
                self.emit(EventKind::CompactionEnd {
                    messages_before: before,
                    messages_after: shown.len(),
                    error: None,
                });
                self.shown = Some(shown);
                self.overflow = None;
                // The summary may have taken what was left.
                match self.spent_limit() {
                    Some(limit) => self.finish(EndReason::Limit(limit), facts),
                    None => self.ask_model(),
                }
            }
            Err(problem) => {
                self.emit(EventKind::CompactionEnd {
                    messages_before: before,
                    messages_after: before,
                    error: Some(problem.as_str().into()),
                });
                let (mut error, partial) = self.overflow.take().unwrap_or_else(|| {
                    let said = "the context is too long";
                    (ModelError::new(ModelErrorKind::ContextLength, said), None)
                });
                error.message = format!("{}; it could not be shortened: {problem}", error.message);
                // What had come of the reply stays in the history.
                self.give_up(Failure::Model(Arc::new(error)), partial, facts);
            }
        }
    }

    /// A hook failed before or after the turn's model call.
    pub(super) fn turn_failed(&mut self, failure: Failure, facts: &dyn RunFacts) {
        self.give_up(failure, None, facts);
    }

    /// The turn fails: an assistant message that says so enters the history, and the run ends.
    fn give_up(
        &mut self,
        failure: Failure,
        partial: Option<AssistantMessage>,
        facts: &dyn RunFacts,
    ) {
        let mut message = partial.unwrap_or_default();
        without_calls(&mut message);
        message.stop_reason = StopReason::Error;
        // All of it: also why it is not tried again, or why it could not be shortened.
        message.error_message = Some(failure.to_string());
        complete(&mut message, facts);
        let message = self.close_message(message);
        self.enter(Arc::clone(&message));
        self.last_text = Some(Arc::clone(&message));
        self.reply = Some(message);
        self.finish(EndReason::Failed(failure), facts);
    }

    /// The run is cut while the model answers: what has come stays, as aborted.
    pub(super) fn cut_model(&mut self, facts: &dyn RunFacts) {
        let Some(reason) = self.cut.clone() else {
            return;
        };
        let said = reason.problem();
        if let Some(message) = self.partial_reply(StopReason::Aborted, said, facts) {
            let message = self.close_message(message);
            self.enter(Arc::clone(&message));
            self.last_text = Some(Arc::clone(&message));
            self.reply = Some(message);
        }
        self.finish(reason, facts);
    }
}

/// Fills in what a model left out: time, names, ids of calls; ids are unique in the message.
fn complete(message: &mut AssistantMessage, facts: &dyn RunFacts) {
    if message.timestamp == Timestamp::default() {
        message.timestamp = facts.now();
    }
    let info = facts.model();
    if message.model.is_empty() {
        message.model.clone_from(&info.id);
    }
    if message.provider.is_empty() {
        message.provider.clone_from(&info.provider);
    }
    distinguish(&mut message.content, facts);
}

/// Gives calls an id that have none, or one that an earlier call has.
fn distinguish(content: &mut [AssistantContent], facts: &dyn RunFacts) {
    let mut calls = content.iter_mut().filter_map(|block| match block {
        AssistantContent::ToolCall(call) => Some(call),
        _ => None,
    });
    // Most replies have one call, which needs no set to be told from others.
    let Some(first) = calls.next() else { return };
    if first.id.is_empty() {
        first.id = facts.new_call_id();
    }
    let Some(second) = calls.next() else { return };
    let mut seen = HashSet::from([first.id.clone()]);
    for call in std::iter::once(second).chain(calls) {
        if call.id.is_empty() || !seen.insert(call.id.clone()) {
            call.id = facts.new_call_id();
            while !seen.insert(call.id.clone()) {
                call.id = facts.new_call_id();
            }
        }
    }
}

fn without_calls(message: &mut AssistantMessage) {
    message
        .content
        .retain(|block| block.as_tool_call().is_none());
}

/// Why a reply that says that all is well shows that the context was too long all the same.
fn overflowed(message: &AssistantMessage, model: &ModelInfo) -> Option<String> {
    let window = model.context_window;
    let prompt = message.usage.prompt()?;
    if window == 0 {
        return None;
    }
    if prompt > window {
        return Some(format!(
            "the prompt has {prompt} tokens and the model's window {window}: the server left \
             something out without saying so"
        ));
    }
    let nothing_said = message.stop_reason == StopReason::Length && message.usage.output == Some(0);
    (nothing_said && prompt >= window - window / 100).then(|| {
        format!("the prompt fills the model's window ({prompt} of {window} tokens): no room for an answer")
    })
}

/// What is told of a piece that only makes a block longer: its text is handed on, not copied.
fn grown(piece: ChatEvent) -> Result<MessageDelta, ChatEvent> {
    match piece {
        ChatEvent::Text(text) => Ok(MessageDelta::Text { text }),
        ChatEvent::Reasoning { text, .. } => Ok(MessageDelta::Reasoning { text }),
        ChatEvent::ToolCallArguments { index, delta } => {
            Ok(MessageDelta::ToolCallArguments { index, delta })
        }
        other => Err(other),
    }
}

fn delta_of(event: &ChatEvent) -> Option<MessageDelta> {
    Some(match event {
        ChatEvent::ToolCallStarted { index, id, name } => MessageDelta::ToolCallStart {
            index: *index,
            id: id.clone(),
            name: name.clone(),
        },
        ChatEvent::ToolCallEnded { index, call } => MessageDelta::ToolCallEnd {
            index: *index,
            id: call.id.clone(),
            name: call.name.clone(),
        },
        ChatEvent::Block(block) => MessageDelta::Block {
            block: block.clone(),
        },
        ChatEvent::Restarted => MessageDelta::Restarted,
        _ => return None,
    })
}
