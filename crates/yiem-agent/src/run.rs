//! What happens next in a run, as a value.
//!
//! Knows: the order of events, the history, limits, when calls begin and when the run ends.
//! Does not know: models, tools, clocks, ids, tasks, locks. What happened comes in by
//! [`Run::handle`], what is to be done comes out by [`Run::next_step`]; time, ids and facts about
//! tools are passed in as [`RunFacts`].
//!
//! A step is either an effect (an event to tell, a record to write) or a request (ask the model,
//! prepare a call, …). On an abort effects that are due stay and requests go; whatever a dropped
//! request had begun gets its end.

mod calls;
mod interface;
pub(crate) mod repeat;
mod replies;
pub(crate) mod turns;
mod untold;

use std::collections::VecDeque;
use std::sync::Arc;

use yiem_core::{
    AssistantMessage, Cost, Error, History, Message, MessageAssembler, ModelError, RunId,
    StopReason, ToolCallId, Usage,
};

use crate::batch::Batch;
use crate::config::{AgentConfig, QueueMode};
use crate::event::{AgentEvent, EventKind, MessageRole, QueueChange};
use crate::hook::StopAfterTurn;
use crate::journal::JournalRecord;
use crate::outcome::{EndReason, Failure, Limit, Outcome};
use crate::queue::QueueKind;

pub use interface::{AnswerCheck, Input, RunFacts, RunRules, Step};

use repeat::Repeats;
use untold::UNTOLD_STEPS;

/// Where the run stands between two inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Begin,
    Model,
    Backoff,
    Compaction,
    Batch,
    Judging,
    Counting,
    NextTurn,
    Taking,
    Checking,
    Ended,
}

/// Why another turn may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Onward {
    /// The model has results to read; steering goes along.
    Results,
    /// A message waits in this queue.
    Queued(QueueKind),
    /// The answer has to be mended.
    Repair,
}

/// What came of the calls by which the final answer is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answer {
    /// There was none, or none that counts.
    #[default]
    None,
    /// One was taken in this turn.
    Given,
    /// One was taken in an earlier turn.
    Earlier,
    /// None was taken in this turn; why the last was not.
    Refused(String),
}

/// One run: one user message to its final answer.
#[derive(Debug)]
pub struct Run {
    id: RunId,
    rules: RunRules,
    history: History,
    /// What the model is shown, once that is not the history.
    shown: Option<History>,
    first_message: usize,
    at: At,
    steps: VecDeque<Step>,
    seq: u64,
    turn: u32,
    turn_open: bool,
    // The reply under way.
    attempt: u32,
    compacted: bool,
    assembler: MessageAssembler,
    message_open: bool,
    /// What overflowed, and what had come of that reply.
    overflow: Option<(ModelError, Option<AssistantMessage>)>,
    // The turn's reply and its calls.
    reply: Option<Arc<Message>>,
    batch: Option<Batch>,
    results: Arc<[Arc<Message>]>,
    /// The reply was cut: none of its calls runs.
    truncated: Option<StopReason>,
    terminated: bool,
    interrupted: bool,
    /// Set when the run ends with this batch.
    end_after_batch: Option<EndReason>,
    /// Set by a cut; the run winds down.
    cut: Option<EndReason>,
    onward: Option<Onward>,
    repair: Option<Arc<Message>>,
    /// Questions to a person that are open: whose call, question, call.
    approvals: Vec<(usize, Arc<str>, ToolCallId)>,
    /// Calls made by calls that are open: whose call, the call, its tool.
    nested: Vec<(usize, ToolCallId, Arc<str>)>,
    // What adds up.
    usage: Usage,
    tool_usage: Usage,
    cost: Option<Cost>,
    tool_cost: Option<Cost>,
    calls: u32,
    /// Calls that were accepted, run or not yet.
    accepted: u32,
    repeats: Repeats,
    repairs: u32,
    answer: Answer,
    /// Why the run ends, while the answer that there is by then is looked for.
    ending: Option<EndReason>,
    output: Option<serde_json::Value>,
    last_text: Option<Arc<Message>>,
    end: Option<EndReason>,
    stop_reason: StopReason,
    queues_at_start: Option<EventKind>,
}

impl Run {
    /// A run over this history. `shown` is what the model is shown in its place, after a
    /// compaction.
    #[must_use]
    pub fn new(id: RunId, rules: RunRules, history: History, shown: Option<History>) -> Self {
        Self {
            id,
            rules,
            first_message: history.len(),
            history,
            shown,
            at: At::Begin,
            steps: VecDeque::new(),
            seq: 0,
            turn: 0,
            turn_open: false,
            attempt: 1,
            compacted: false,
            assembler: MessageAssembler::new(),
            message_open: false,
            overflow: None,
            reply: None,
            batch: None,
            results: Arc::default(),
            truncated: None,
            terminated: false,
            interrupted: false,
            end_after_batch: None,
            cut: None,
            onward: None,
            repair: None,
            approvals: Vec::new(),
            nested: Vec::new(),
            usage: Usage::UNKNOWN,
            tool_usage: Usage::UNKNOWN,
            cost: None,
            tool_cost: None,
            calls: 0,
            accepted: 0,
            repeats: Repeats::default(),
            repairs: 0,
            answer: Answer::None,
            ending: None,
            output: None,
            last_text: None,
            end: None,
            stop_reason: StopReason::EndTurn,
            queues_at_start: None,
        }
    }

    /// The run's id.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Everything that was said.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// What the model is shown: the history, or what a compaction made of it.
    #[must_use]
    pub fn shown(&self) -> &History {
        self.shown.as_ref().unwrap_or(&self.history)
    }

    /// What a compaction made of the history, if there was one.
    #[must_use]
    pub fn compacted(&self) -> Option<&History> {
        self.shown.as_ref()
    }

    /// The turn, from 1; 0 before the first.
    #[must_use]
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// Tokens of the run so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Tokens that tools used for models of their own, so far.
    #[must_use]
    pub fn tool_usage(&self) -> Usage {
        self.tool_usage
    }

    /// Money of the run so far, when the model has prices.
    #[must_use]
    pub fn cost(&self) -> Option<Cost> {
        self.cost
    }

    /// Money that tools spent on models of their own so far, as far as they told it.
    #[must_use]
    pub fn tool_cost(&self) -> Option<Cost> {
        self.tool_cost
    }

    /// The reply under way.
    #[must_use]
    pub fn partial(&self) -> Option<&MessageAssembler> {
        self.message_open.then_some(&self.assembler)
    }

    /// The turn's reply, once it is whole.
    #[must_use]
    pub fn reply(&self) -> Option<&Arc<Message>> {
        self.reply.as_ref()
    }

    /// The turn's results, once all are known, in the order of the reply.
    #[must_use]
    pub fn results(&self) -> &Arc<[Arc<Message>]> {
        &self.results
    }

    /// The ids of the calls that wait for their results, in the order of the reply (SP-020).
    pub fn pending_calls(&self) -> impl Iterator<Item = &ToolCallId> {
        self.batch.iter().flat_map(Batch::pending)
    }

    /// The call at that place of the batch.
    #[must_use]
    pub fn call(&self, index: usize) -> Option<&Arc<yiem_core::ToolCall>> {
        Some(&self.batch.as_ref()?.slot(index)?.call)
    }

    /// The same with its name as events have it.
    pub(crate) fn called(&self, index: usize) -> Option<(&Arc<yiem_core::ToolCall>, &Arc<str>)> {
        let slot = self.batch.as_ref()?.slot(index)?;
        Some((&slot.call, &slot.name))
    }

    /// Whether the call had begun when the session broke off (S-3).
    #[must_use]
    pub fn begun_before(&self, index: usize) -> bool {
        let slot = self.batch.as_ref().and_then(|b| b.slot(index));
        slot.is_some_and(|slot| slot.begun_before)
    }

    /// How many calls the batch has.
    #[must_use]
    pub fn batch_len(&self) -> usize {
        self.batch.as_ref().map_or(0, Batch::len)
    }

    /// The text of the last reply.
    #[must_use]
    pub fn answer_text(&self) -> String {
        let reply = self.last_text.as_ref().and_then(|m| m.as_assistant());
        reply
            .map(yiem_core::AssistantMessage::text)
            .unwrap_or_default()
    }

    /// What came of the calls by which the final answer is given.
    pub(crate) fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Whether the run has ended or takes nothing more in: whatever comes now is for the next.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.end.is_some() || self.cut.is_some()
    }

    /// Whether the run was cut and winds down.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// What is to be done next, if anything is.
    pub fn next_step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// Takes in what happened. What does not belong to the moment (a late answer) changes
    /// nothing.
    pub fn handle(&mut self, input: Input, facts: &dyn RunFacts) {
        match (input, self.at) {
            (Input::Start(messages), At::Begin) => self.start(messages, facts),
            (Input::Resume(open), At::Begin) => self.resume(open, facts),
            (Input::Model(event), At::Model) => self.piece(event, facts),
            (Input::ModelFailed(error), At::Model) => self.model_failed(error, facts),
            (Input::RequestFailed(failure), At::Model) => self.turn_failed(failure, facts),
            (Input::Waited, At::Backoff) => self.ask_model(),
            (Input::Spent(usage), At::Compaction) if !usage.is_unknown() => {
                self.spend(&usage, facts);
                self.record_usage(usage);
            }
            (Input::Compacted(result), At::Compaction) => self.compaction_done(result, facts),
            (Input::Prepared { call, args }, At::Batch) => self.prepared(call, args, facts),
            (
                Input::Rejected {
                    call,
                    reason,
                    output,
                },
                At::Batch,
            ) => {
                self.rejected(call, reason, *output, facts);
            }
            (Input::Told { call, kind }, At::Batch) => self.told(call, *kind),
            (Input::Updated { call, partial }, At::Batch) => self.updated(call, partial),
            // As its tokens: what comes after the call that made it has settled is not told.
            (Input::Cost { call, cost }, At::Batch)
                if self.batch.as_ref().is_some_and(|b| b.is_running(call)) =>
            {
                add_cost(&mut self.tool_cost, &cost);
            }
            (Input::Settled { call, output }, At::Batch) => self.settled(call, *output, facts),
            (Input::Judged(answer), At::Judging) => self.judged(answer, facts),
            (
                Input::Waiting {
                    steering,
                    follow_ups,
                },
                At::Counting,
            ) => {
                self.counted(steering, follow_ups, facts);
            }
            (Input::NextTurnReady(answer), At::NextTurn) => match answer {
                Ok(()) => self.take_messages(facts),
                Err(failure) => self.fail_between_turns(failure, facts),
            },
            (Input::Taken(messages), At::Taking) => self.taken(messages, facts),
            (Input::Waiting { steering, .. }, At::Batch) => {
                self.interrupted |= steering > 0;
                self.drive_batch(facts);
            }
            (Input::AnswerChecked(check), At::Checking) => self.answer_checked(check, facts),
            (Input::Warned(message), at) if at != At::Ended => {
                self.emit(EventKind::Warning { message });
            }
            (
                Input::ToolsChanged {
                    added,
                    removed,
                    changed,
                },
                at,
            ) if at != At::Ended => {
                self.record(|| JournalRecord::ToolsChanged {
                    added: added.clone(),
                    removed: removed.clone(),
                });
                self.emit(EventKind::ToolsChanged {
                    added,
                    removed,
                    changed,
                });
            }
            (Input::ModelChanged(model), at) if at != At::Ended => {
                self.record(|| JournalRecord::ModelChanged { model });
            }
            (
                Input::QueueChanged {
                    change,
                    mut messages,
                    waiting: (steering, follow_ups),
                },
                at,
            ) if at != At::Ended => {
                if change == QueueChange::GivenBack && self.steps.len() > UNTOLD_STEPS {
                    self.leave_out_untold(&mut messages);
                    if messages.is_empty() {
                        return;
                    }
                }
                let kind = EventKind::QueueChanged {
                    change,
                    messages,
                    steering,
                    follow_ups,
                };
                match at {
                    // Nothing comes before the run's own start.
                    At::Begin => self.queues_at_start = Some(kind),
                    _ => self.emit(kind),
                }
            }
            (Input::Cut(reason), _) => self.cut(reason, facts),
            (Input::GraceOver, At::Batch) => self.grace_over(facts),
            // Late: what it answers is over.
            _ => {}
        }
    }

    /// What the run came to, once it has ended.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        let end = self.end.clone()?;
        Some(Outcome {
            run_id: self.id.clone(),
            text: self.final_text(),
            end,
            stop_reason: self.stop_reason.clone(),
            usage: self.usage,
            tool_usage: self.tool_usage,
            cost: self.cost,
            tool_cost: self.tool_cost,
            turns: self.turn,
            tool_calls: self.calls,
            transcript: self.history.clone(),
            output: self.output.clone(),
            first_message: self.first_message,
        })
    }

    fn final_text(&self) -> String {
        let text = self.answer_text();
        if !text.is_empty() || !self.terminated {
            return text;
        }
        let texts: Vec<String> = self
            .batch
            .iter()
            .flat_map(Batch::slots)
            .filter_map(|slot| match &slot.state {
                crate::batch::CallState::Done {
                    result,
                    terminate: true,
                } => result
                    .as_tool_result()
                    .map(yiem_core::ToolResultMessage::text),
                _ => None,
            })
            .filter(|text| !text.is_empty())
            .collect();
        texts.join("\n")
    }

    // ---- effects ----

    fn emit(&mut self, kind: EventKind) {
        let event = AgentEvent {
            kind,
            run_id: self.id.clone(),
            turn: self.turn,
            seq: self.seq,
        };
        self.seq += 1;
        self.steps.push_back(Step::Emit(event));
    }

    fn record(&mut self, record: impl FnOnce() -> JournalRecord) {
        if self.rules.journal {
            self.steps.push_back(Step::Record(record()));
        }
    }

    fn request(&mut self, step: Step, at: At) {
        self.at = at;
        self.steps.push_back(step);
    }

    fn enter(&mut self, message: Arc<Message>) {
        if let Some(shown) = &mut self.shown {
            shown.push(Arc::clone(&message));
        }
        self.history.push(message);
    }
}

/// Adds money up; what nobody told stays unknown.
pub(crate) fn add_cost(sum: &mut Option<Cost>, cost: &Cost) {
    sum.get_or_insert_with(Cost::default).add(cost);
}

/// How many messages are taken at once from a queue, by the settings.
pub(crate) fn mode_of(config: &AgentConfig, kind: QueueKind) -> QueueMode {
    match kind {
        QueueKind::Steering => config.steering_mode,
        QueueKind::FollowUp => config.follow_up_mode,
    }
}

/// A hook's failure, by its name.
pub(crate) fn hook_failure(hook: &str, error: Error) -> Failure {
    Failure::Hook {
        hook: hook.to_owned(),
        error: Arc::new(error),
    }
}

#[cfg(test)]
mod tests;
