//! The tools' side of a turn: the batch, its results, limits on calls, steering in between.

use std::sync::Arc;

use serde_json::Value;
use yiem_core::{
    Content, JsonObject, Message, StopReason, ToolErrorKind, ToolOutput, ToolResultMessage,
};

use super::{Answer, At, Run, RunFacts, Step, add_cost};
use crate::batch::{Batch, Next};
use crate::config::{SteeringPoint, TerminatePolicy};
use crate::event::{ApprovalResolution, EventKind, ExecutionResult, MessageRole, RejectReason};
use crate::journal::{JournalRecord, OpenCall};
use crate::outcome::{EndReason, Failure, Limit};

impl Run {
    /// Does what can be done without waiting for anything.
    pub(super) fn drive_batch(&mut self, facts: &dyn RunFacts) {
        loop {
            let Some(batch) = &mut self.batch else { return };
            match batch.next() {
                Next::Wait => return,
                Next::Done => return self.batch_done(facts),
                Next::Begin(index) => self.begin_call(index),
                Next::Prepare(index) => {
                    if let Some((reason, text)) = self.refusal(index) {
                        self.reject(index, reason, failed(text), facts);
                    } else if let Some(batch) = &mut self.batch {
                        batch.preparing(index);
                        self.steps.push_back(Step::Prepare(index));
                        return;
                    }
                }
            }
        }
    }

    /// Goes on with the calls of the last reply, one after another (S-3).
    pub(super) fn resume(&mut self, open: Vec<OpenCall>, facts: &dyn RunFacts) {
        let run_id = self.id.clone();
        self.record(|| JournalRecord::RunStart { run_id });
        self.emit_start();
        self.turn += 1;
        self.turn_open = true;
        self.emit(EventKind::TurnStart);
        self.reply = self.history.last().cloned();
        self.last_text.clone_from(&self.reply);
        let calls = self.reply.as_ref().and_then(|m| m.as_assistant());
        self.truncated = calls.map(|m| m.stop_reason.clone()).filter(is_cut);
        let calls: Vec<_> = calls
            .into_iter()
            .flat_map(|m| m.tool_calls().cloned())
            .collect();
        let mut batch = Batch::new(calls.into_iter(), true, 1);
        for index in 0..batch.len() {
            let id = batch.slot(index).map(|slot| slot.call.id.clone());
            let known = open.iter().find(|o| Some(&o.tool_call_id) == id.as_ref());
            match known {
                Some(OpenCall {
                    result: Some(result),
                    ..
                }) => {
                    batch.finish(index, Arc::clone(result), false);
                }
                Some(OpenCall { begun: true, .. }) => batch.mark_begun_before(index),
                _ => {}
            }
        }
        self.batch = Some(batch);
        self.at = At::Batch;
        self.drive_batch(facts);
    }

    /// Why a call is not even looked at, and what its result says.
    fn refusal(&mut self, index: usize) -> Option<(RejectReason, String)> {
        if let Some(stop) = &self.truncated {
            let why = if *stop == StopReason::Length {
                "the reply was cut by its length limit"
            } else {
                "the reply was cut by a filter"
            };
            return Some((
                RejectReason::Truncated,
                format!(
                    "Not executed: {why}, so the arguments may be incomplete. Make the call \
                         again, with shorter arguments if need be."
                ),
            ));
        }
        if self.interrupted {
            return Some((
                RejectReason::Interrupted,
                "Not executed: a new message came in before this call began.".to_owned(),
            ));
        }
        let limits = &self.rules.config.limits;
        // A final answer is no call of a tool of the agent's: it is let through.
        let spent = limits.tool_calls.filter(|max| self.accepted >= *max);
        if let Some(max) = spent.filter(|_| !self.is_answer(index)) {
            self.end_after_batch
                .get_or_insert(EndReason::Limit(Limit::ToolCalls { max }));
            return Some((
                RejectReason::Limit,
                format!("Not executed: {}.", Limit::ToolCalls { max }),
            ));
        }
        let (warn, stop) = (limits.identical_calls_warn, limits.identical_calls_stop);
        if warn == 0 && stop == 0 {
            return None;
        }
        let batch = self.batch.as_mut()?;
        let call = Arc::clone(&batch.slot(index)?.call);
        let times = self.repeats.count(&call);
        if stop > 0 && times >= stop {
            let limit = Limit::IdenticalCalls {
                tool: call.name.clone(),
                times,
            };
            let text = format!("Not executed: {limit}. The run ends here.");
            self.end_after_batch.get_or_insert(EndReason::Limit(limit));
            return Some((RejectReason::Limit, text));
        }
        if warn > 0 && times >= warn {
            batch.mark_repeated(index, times);
        }
        None
    }

    fn begin_call(&mut self, index: usize) {
        let Some(batch) = &mut self.batch else { return };
        let args = batch.begin(index);
        let Some(slot) = batch.slot(index) else {
            return;
        };
        let (tool_call_id, tool_name) = (slot.call.id.clone(), Arc::clone(&slot.name));
        self.calls += 1;
        self.record(|| JournalRecord::CallIntent {
            tool_call_id: tool_call_id.clone(),
            tool_name: Arc::clone(&tool_name),
            args: Arc::clone(&args),
        });
        self.emit(EventKind::ToolExecutionStart {
            tool_call_id,
            tool_name,
            args,
            parent_tool_call_id: None,
        });
        self.steps.push_back(Step::Execute(index));
    }

    pub(super) fn prepared(&mut self, index: usize, args: Arc<JsonObject>, facts: &dyn RunFacts) {
        let Some(batch) = self.batch.as_mut().filter(|b| b.is_preparing(index)) else {
            return;
        };
        batch.prepared(index, args);
        if !self.is_answer(index) {
            self.accepted += 1;
        }
        self.drive_batch(facts);
    }

    pub(super) fn rejected(
        &mut self,
        index: usize,
        reason: RejectReason,
        mut output: ToolOutput,
        facts: &dyn RunFacts,
    ) {
        if !self.batch.as_ref().is_some_and(|b| b.is_preparing(index)) {
            return;
        }
        self.note_answer(index, Err(&output));
        self.warn_of_repetition(index, &mut output);
        self.reject(index, reason, output, facts);
        self.drive_batch(facts);
    }

    /// Whether the call gives the final answer, where one of a certain shape is wanted.
    fn is_answer(&self, index: usize) -> bool {
        let name = self.batch.as_ref().and_then(|b| b.slot(index));
        let wanted = self.rules.output_tool.as_ref();
        wanted.is_some() && name.map(|slot| &slot.name) == wanted
    }

    /// Notes what came of a call that gives the final answer: it was taken, or why not.
    fn note_answer(&mut self, index: usize, taken: Result<(), &ToolOutput>) {
        if !self.is_answer(index) {
            return;
        }
        match taken {
            Ok(()) => self.answer = Answer::Given,
            // One that was taken in the same reply stays.
            Err(_) if self.answer == Answer::Given => {}
            Err(output) => self.answer = Answer::Refused(output.plain_text()),
        }
    }

    /// A reply whose answers were all refused counts as one repair.
    fn count_repair(&mut self) {
        let Answer::Refused(why) = &mut self.answer else {
            return;
        };
        let failure = Failure::Output(std::mem::take(why));
        self.answer = Answer::None;
        if self.repairs >= self.rules.config.output_repairs {
            self.end_after_batch
                .get_or_insert(EndReason::Failed(failure));
        }
        self.repairs += 1;
    }

    /// The model is told that it makes the same call again and again.
    fn warn_of_repetition(&self, index: usize, output: &mut ToolOutput) {
        let slot = self.batch.as_ref().and_then(|b| b.slot(index));
        if let Some((slot, times)) = slot.and_then(|slot| Some((slot, slot.repeated?))) {
            output.content.push(Content::text(format!(
                "Warning: this is call number {times} of {} with the same arguments. Calling it \
                 again will not help; use what you know, or try something else.",
                slot.name
            )));
        }
    }

    fn reject(
        &mut self,
        index: usize,
        reason: RejectReason,
        mut output: ToolOutput,
        facts: &dyn RunFacts,
    ) {
        output.is_error = true;
        let text: Arc<str> = output.plain_text().into();
        let terminate = output.terminate;
        let Some(message) = self.result_message(index, output, facts) else {
            return;
        };
        let Some(batch) = &mut self.batch else { return };
        let Some(slot) = batch.slot(index) else {
            return;
        };
        let (tool_call_id, tool_name) = (slot.call.id.clone(), Arc::clone(&slot.name));
        batch.finish(index, Arc::clone(&message), terminate);
        self.record(|| JournalRecord::CallResult { message });
        self.emit(EventKind::ToolCallRejected {
            tool_call_id,
            tool_name,
            reason,
            message: text,
            parent_tool_call_id: None,
        });
    }

    pub(super) fn updated(&mut self, index: usize, partial: Value) {
        // What a call tells after it has settled is dropped.
        let Some(batch) = self.batch.as_ref().filter(|b| b.is_running(index)) else {
            return;
        };
        let Some(slot) = batch.slot(index) else {
            return;
        };
        let (tool_call_id, tool_name) = (slot.call.id.clone(), Arc::clone(&slot.name));
        self.emit(EventKind::ToolExecutionUpdate {
            tool_call_id,
            tool_name,
            partial_result: partial,
        });
    }

    pub(super) fn settled(&mut self, index: usize, output: ToolOutput, facts: &dyn RunFacts) {
        if !self.batch.as_ref().is_some_and(|b| b.is_running(index)) {
            return;
        }
        self.end_call(index, output, facts);
        if self.cut.is_none() && self.may_interrupt() {
            return self.request(Step::CountQueues, At::Batch);
        }
        self.drive_batch(facts);
    }

    fn end_call(&mut self, index: usize, mut output: ToolOutput, facts: &dyn RunFacts) {
        self.end_nested(index);
        self.note_answer(
            index,
            if output.is_error {
                Err(&output)
            } else {
                Ok(())
            },
        );
        self.warn_of_repetition(index, &mut output);
        let (terminate, is_error) = (output.terminate, output.is_error);
        let Some(message) = self.result_message(index, output, facts) else {
            return;
        };
        let Some(batch) = &mut self.batch else { return };
        let Some(slot) = batch.slot(index) else {
            return;
        };
        let (tool_call_id, tool_name) = (slot.call.id.clone(), Arc::clone(&slot.name));
        if let Some(result) = message.as_tool_result() {
            self.repeats.settled(&slot.call, result);
        }
        batch.finish(index, Arc::clone(&message), terminate);
        self.record(|| JournalRecord::CallResult {
            message: Arc::clone(&message),
        });
        self.emit(EventKind::ToolExecutionEnd {
            tool_call_id,
            tool_name,
            result: ExecutionResult::new(message, terminate),
            is_error,
        });
    }

    fn result_message(
        &mut self,
        index: usize,
        output: ToolOutput,
        facts: &dyn RunFacts,
    ) -> Option<Arc<Message>> {
        let slot = self.batch.as_ref()?.slot(index)?;
        if let Some(usage) = &output.usage {
            self.tool_usage.add(usage);
        }
        if let Some(cost) = &output.cost {
            add_cost(&mut self.tool_cost, cost);
        }
        Some(Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: slot.call.id.clone(),
            tool_name: slot.call.name.clone(),
            content: output.content,
            details: output.details,
            usage: output.usage,
            added_tool_names: output.added_tool_names,
            is_error: output.is_error,
            timestamp: facts.now(),
            ..ToolResultMessage::default()
        })))
    }

    /// Whether steering may come in now, between two calls.
    fn may_interrupt(&self) -> bool {
        self.rules.config.steering_point == SteeringPoint::BetweenCalls
            && self
                .batch
                .as_ref()
                .is_some_and(|b| b.is_sequential() && b.pending().next().is_some())
    }

    /// Every call has its result: they enter the history in the order of the reply.
    fn batch_done(&mut self, facts: &dyn RunFacts) {
        self.count_repair();
        let Some(batch) = &self.batch else { return };
        let results = batch.results();
        let (any, all) = batch.terminate();
        self.terminated = match self.rules.config.terminate {
            TerminatePolicy::Any => any,
            TerminatePolicy::All => all,
        };
        self.steps.reserve(2 * results.len());
        for result in &results {
            self.enter(Arc::clone(result));
            self.emit(EventKind::MessageStart {
                role: MessageRole::ToolResult,
                message: Some(Arc::clone(result)),
            });
            self.emit(EventKind::MessageEnd {
                message: Arc::clone(result),
            });
        }
        self.results = results.into();
        self.turn_done(facts);
    }

    // ---- cut ----

    /// Calls that have not begun are answered at once; those that run get the grace period.
    pub(super) fn cut_batch(&mut self, dropped: &[Step], facts: &dyn RunFacts) {
        for index in 0..self.batch_len() {
            let Some(batch) = &self.batch else { return };
            if batch.is_done(index) {
                continue;
            }
            if !batch.is_running(index) {
                let text = "Not executed: the run was aborted before this call began.";
                self.reject(index, RejectReason::Aborted, failed(text), facts);
            } else if dropped
                .iter()
                .any(|s| matches!(s, Step::Execute(i) if *i == index))
            {
                // Its start is told already; it never began.
                self.end_call(index, aborted("Not executed: the run was aborted."), facts);
            }
        }
        self.drive_batch(facts);
    }

    pub(super) fn grace_over(&mut self, facts: &dyn RunFacts) {
        for index in 0..self.batch_len() {
            if self.batch.as_ref().is_some_and(|b| b.is_running(index)) {
                let text = "Aborted: the run was aborted and the tool did not end in time. \
                            Whether it took effect is unknown.";
                self.end_call(index, aborted(text), facts);
            }
        }
        self.drive_batch(facts);
    }

    // ---- nested ----

    /// Something is told of a call under way: a question to a person, a call that it makes.
    pub(super) fn told(&mut self, index: usize, kind: EventKind) {
        let known = self
            .batch
            .as_ref()
            .is_some_and(|b| b.is_running(index) || b.is_preparing(index));
        if self.at != At::Batch || !known {
            return;
        }
        match &kind {
            EventKind::ApprovalRequested {
                approval_id,
                tool_call_id,
                ..
            } => {
                if self.cut.is_some() {
                    return;
                }
                self.approvals
                    .push((index, Arc::clone(approval_id), tool_call_id.clone()));
            }
            EventKind::ApprovalResolved { approval_id, .. } => {
                let open = self.approvals.len();
                self.approvals.retain(|(_, id, _)| id != approval_id);
                if self.approvals.len() == open {
                    return;
                }
            }
            EventKind::ToolCallRejected {
                reason: RejectReason::Limit,
                ..
            } => {
                if let Some(max) = self.rules.config.limits.tool_calls {
                    self.end_after_batch
                        .get_or_insert(EndReason::Limit(Limit::ToolCalls { max }));
                }
            }
            EventKind::ToolExecutionStart {
                tool_call_id,
                tool_name,
                ..
            } => {
                self.calls += 1;
                self.accepted += 1;
                self.nested
                    .push((index, tool_call_id.clone(), Arc::clone(tool_name)));
            }
            EventKind::ToolExecutionUpdate { tool_call_id, .. }
                if !self.nested.iter().any(|(_, id, _)| id == tool_call_id) =>
            {
                return;
            }
            EventKind::ToolExecutionEnd {
                tool_call_id,
                result,
                ..
            } => {
                let open = self.nested.len();
                self.nested.retain(|(_, id, _)| id != tool_call_id);
                if self.nested.len() == open {
                    return;
                }
                if let Some(usage) = result.message().as_tool_result().and_then(|m| m.usage) {
                    self.tool_usage.add(&usage);
                }
            }
            _ => {}
        }
        self.emit(kind);
    }

    /// A call ends: what it had begun and left open ends before it.
    fn end_nested(&mut self, index: usize) {
        self.end_questions(|at| at == index);
        while let Some(at) = self
            .nested
            .iter()
            .rposition(|(parent, ..)| *parent == index)
        {
            let (_, tool_call_id, tool_name) = self.nested.remove(at);
            let message = Arc::new(Message::ToolResult(ToolResultMessage {
                tool_call_id: tool_call_id.clone(),
                tool_name: tool_name.to_string(),
                content: vec![Content::text(
                    "Aborted: the call that made this one has ended.",
                )],
                is_error: true,
                ..ToolResultMessage::default()
            }));
            self.emit(EventKind::ToolExecutionEnd {
                tool_call_id,
                tool_name,
                result: ExecutionResult::new(message, false),
                is_error: true,
            });
        }
    }

    pub(super) fn end_questions(&mut self, of: impl Fn(usize) -> bool) {
        let (over, open): (Vec<_>, Vec<_>) = std::mem::take(&mut self.approvals)
            .into_iter()
            .partition(|(at, ..)| of(*at));
        self.approvals = open;
        for (_, approval_id, tool_call_id) in over {
            self.emit(EventKind::ApprovalResolved {
                approval_id,
                tool_call_id,
                resolution: ApprovalResolution::Aborted,
                reason: None,
            });
        }
    }
}

/// Whether a reply that ended for this reason may be incomplete: none of its calls runs.
pub(super) fn is_cut(stop: &StopReason) -> bool {
    matches!(stop, StopReason::Length | StopReason::ContentFilter)
}

/// A failed result of one text.
pub(crate) fn failed(text: impl Into<String>) -> ToolOutput {
    ToolOutput::text(text).failed()
}

/// A failed result of one text, marked as aborted in its details.
pub(crate) fn aborted(text: impl Into<String>) -> ToolOutput {
    yiem_core::ToolError::of_kind(ToolErrorKind::Aborted, text).into_output()
}
