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
pub(crate) mod repeat;
mod replies;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use yiem_core::{
    ChatEvent, Cost, Error, History, JsonObject, Message, MessageAssembler, ModelError, ModelInfo,
    RunId, StopReason, Timestamp, ToolCallId, ToolOutput, Usage,
};

use crate::batch::Batch;
use crate::config::{AgentConfig, QueueMode};
use crate::event::{AgentEvent, EventKind, MessageRole, RejectReason};
use crate::hook::StopAfterTurn;
use crate::journal::{JournalRecord, OpenCall};
use crate::outcome::{EndReason, Failure, Limit, Outcome};
use crate::queue::QueueKind;

use repeat::Repeats;

/// What a run has to know of the world at the moment, passed in with every input.
pub trait RunFacts {
    /// The time.
    fn now(&self) -> Timestamp;
    /// An id for a call that came without one, or with one that is taken.
    fn new_call_id(&self) -> ToolCallId;
    /// A number from 0 to 1, for jitter.
    fn random(&self) -> f64;
    /// What the tool of that name says of running beside others.
    fn parallel(&self, tool: &str) -> Option<bool>;
    /// The model that answers.
    fn model(&self) -> &ModelInfo;
}

/// What is to be done next.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step {
    /// Tell this to every listener before anything else is done.
    Emit(AgentEvent),
    /// Write this down before anything else is done.
    Record(JournalRecord),
    /// Ask the model; answered by pieces and [`Input::Model`] or [`Input::ModelFailed`].
    CallModel {
        /// Which attempt it is, from 1.
        attempt: u32,
    },
    /// Wait that long; answered by [`Input::Waited`].
    Wait(Duration),
    /// Shorten what the model is shown; answered by [`Input::Compacted`].
    Compact {
        /// What overflowed.
        reason: Arc<str>,
    },
    /// Find, check and show this call to the hooks; answered by [`Input::Prepared`] or
    /// [`Input::Rejected`].
    Prepare(usize),
    /// Run this call; answered by updates and [`Input::Settled`].
    Execute(usize),
    /// Ask the hooks whether the run ends here; answered by [`Input::Judged`].
    JudgeTurn,
    /// Ask the hooks for changes; answered by [`Input::NextTurnReady`].
    PrepareNextTurn,
    /// Say at once how many messages wait; answered by [`Input::Waiting`].
    CountQueues,
    /// Hand over at once what waits in this queue; answered by [`Input::Taken`].
    Take(QueueKind),
    /// Check the final answer against the wanted shape; answered by [`Input::AnswerChecked`].
    CheckAnswer,
    /// The run has ended.
    Done,
}

impl Step {
    fn is_effect(&self) -> bool {
        matches!(self, Self::Emit(_) | Self::Record(_) | Self::Done)
    }
}

/// What happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input {
    /// The run begins with these messages; with none it goes on from the history.
    Start(Vec<Arc<Message>>),
    /// The run goes on with the calls of the last reply, as far as they had got when the session
    /// broke off (S-3).
    Resume(Vec<OpenCall>),
    /// A piece of the reply came; also its last event.
    Model(ChatEvent),
    /// The model failed, or its reply broke off.
    ModelFailed(ModelError),
    /// A hook before the model call failed.
    RequestFailed(Failure),
    /// The wait is over.
    Waited,
    /// The model is shown these messages from now on; or why not.
    Compacted(Result<History, String>),
    /// A call was accepted, with these arguments.
    Prepared {
        /// Which call.
        call: usize,
        /// Its arguments.
        args: Arc<JsonObject>,
    },
    /// A call was not accepted.
    Rejected {
        /// Which call.
        call: usize,
        /// Why, in one word.
        reason: RejectReason,
        /// What the model reads.
        output: ToolOutput,
    },
    /// Something is to be told of a call (a question to a person, a call that it makes).
    Told {
        /// Which call.
        call: usize,
        /// What.
        kind: EventKind,
    },
    /// A running call tells of its progress.
    Updated {
        /// Which call.
        call: usize,
        /// What it said.
        partial: serde_json::Value,
    },
    /// A call has run; the hooks have seen its result.
    Settled {
        /// Which call.
        call: usize,
        /// What came of it.
        output: ToolOutput,
    },
    /// What the hooks say of the turn.
    Judged(Result<StopAfterTurn, Failure>),
    /// The hooks have changed what they wanted.
    NextTurnReady(Result<(), Failure>),
    /// How many messages wait.
    Waiting {
        /// In the queue of steering.
        steering: usize,
        /// In the queue of follow-ups.
        follow_ups: usize,
    },
    /// These messages left their queue.
    Taken(Vec<Arc<Message>>),
    /// What the final answer is worth.
    AnswerChecked(AnswerCheck),
    /// Something odd, to be told.
    Warned(Arc<str>),
    /// The set of tools has changed.
    ToolsChanged {
        /// Names that are new.
        added: Vec<String>,
        /// Names that are gone.
        removed: Vec<String>,
        /// Names whose definition is another.
        changed: Vec<String>,
    },
    /// The run must end now, for this reason.
    Cut(EndReason),
    /// The grace period after a cut is over: calls that still run have been dropped.
    GraceOver,
}

/// What a final answer is worth.
#[derive(Debug)]
pub enum AnswerCheck {
    /// It is of the wanted shape.
    Good(serde_json::Value),
    /// It is not; the model is to be told this.
    Wrong(String),
}

/// What a run obeys.
#[derive(Clone, Debug)]
pub struct RunRules {
    /// The agent's settings.
    pub config: Arc<AgentConfig>,
    /// Whether hooks are to be asked after a turn.
    pub judge_turns: bool,
    /// Whether hooks are to be asked before a next turn.
    pub prepare_turns: bool,
    /// Whether records are wanted.
    pub journal: bool,
    /// Whether an answer of a certain shape is wanted.
    pub wants_output: bool,
    /// The tool by which that answer is given, if by a tool.
    pub output_tool: Option<Arc<str>>,
    /// Tokens of the session before this run.
    pub session_tokens: u64,
    /// Money of the session before this run.
    pub session_cost: f64,
}

impl RunRules {
    /// The rules of these settings, without hooks, journal or wanted shape.
    #[must_use]
    pub fn new(config: Arc<AgentConfig>) -> Self {
        Self {
            config,
            judge_turns: false,
            prepare_turns: false,
            journal: false,
            wants_output: false,
            output_tool: None,
            session_tokens: 0,
            session_cost: 0.0,
        }
    }
}

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
    overflow: Option<ModelError>,
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
    calls: u32,
    /// Calls that were accepted, run or not yet.
    accepted: u32,
    repeats: Repeats,
    repairs: u32,
    output: Option<serde_json::Value>,
    last_text: Option<Arc<Message>>,
    end: Option<EndReason>,
    stop_reason: StopReason,
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
            results: Arc::from([]),
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
            calls: 0,
            accepted: 0,
            repeats: Repeats::default(),
            repairs: 0,
            output: None,
            last_text: None,
            end: None,
            stop_reason: StopReason::EndTurn,
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
                self.rejected(call, reason, output, facts);
            }
            (Input::Told { call, kind }, At::Batch) => self.told(call, kind),
            (Input::Updated { call, partial }, At::Batch) => self.updated(call, partial),
            (Input::Settled { call, output }, At::Batch) => self.settled(call, output, facts),
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

    // ---- beginning, turns, end ----

    fn start(&mut self, messages: Vec<Arc<Message>>, facts: &dyn RunFacts) {
        let run_id = self.id.clone();
        self.record(|| JournalRecord::RunStart { run_id });
        self.emit(EventKind::AgentStart);
        self.begin_turn(messages, facts);
    }

    fn begin_turn(&mut self, messages: Vec<Arc<Message>>, facts: &dyn RunFacts) {
        self.turn += 1;
        self.turn_open = true;
        self.reply = None;
        self.batch = None;
        self.results = Arc::from([]);
        self.truncated = None;
        self.terminated = false;
        self.interrupted = false;
        self.onward = None;
        self.attempt = 1;
        self.compacted = false;
        // In the history first: a message that has left its queue is never nowhere.
        for message in &messages {
            self.enter(Arc::clone(message));
        }
        self.emit(EventKind::TurnStart);
        for message in messages {
            self.record(|| JournalRecord::Message {
                message: Arc::clone(&message),
            });
            self.emit(EventKind::MessageStart {
                role: MessageRole::of(&message),
                message: Some(Arc::clone(&message)),
            });
            self.emit(EventKind::MessageEnd { message });
        }
        match self.spent_limit() {
            Some(limit) => self.finish(EndReason::Limit(limit), facts),
            None => self.ask_model(),
        }
    }

    fn ask_model(&mut self) {
        let attempt = self.attempt;
        self.request(Step::CallModel { attempt }, At::Model);
    }

    /// Tells the end of the turn. What comes next is decided after it.
    fn close_turn(&mut self) {
        if self.turn_open {
            self.turn_open = false;
            self.emit(EventKind::TurnEnd {
                message: self.reply.clone(),
                tool_results: self.results.to_vec(),
            });
        }
    }

    fn turn_done(&mut self, facts: &dyn RunFacts) {
        self.close_turn();
        if let Some(reason) = self.cut.clone().or_else(|| self.end_after_batch.take()) {
            self.finish(reason, facts);
        } else if self.rules.judge_turns {
            self.request(Step::JudgeTurn, At::Judging);
        } else {
            self.after_turn(facts);
        }
    }

    fn judged(&mut self, answer: Result<StopAfterTurn, Failure>, facts: &dyn RunFacts) {
        match answer {
            Ok(StopAfterTurn::GoOn) => self.after_turn(facts),
            Ok(StopAfterTurn::Stop) => self.finish(EndReason::Stopped, facts),
            Err(failure) => self.fail_between_turns(failure, facts),
        }
    }

    fn after_turn(&mut self, facts: &dyn RunFacts) {
        if self.batch.is_some() && !self.terminated {
            self.next_turn(Onward::Results, facts);
        } else {
            self.request(Step::CountQueues, At::Counting);
        }
    }

    fn counted(&mut self, steering: usize, follow_ups: usize, facts: &dyn RunFacts) {
        if steering > 0 {
            self.next_turn(Onward::Queued(QueueKind::Steering), facts);
        } else if follow_ups > 0 {
            self.next_turn(Onward::Queued(QueueKind::FollowUp), facts);
        } else if self.rules.wants_output && self.output.is_none() {
            self.request(Step::CheckAnswer, At::Checking);
        } else {
            self.natural_end(facts);
        }
    }

    fn natural_end(&mut self, facts: &dyn RunFacts) {
        let reason = if self.terminated {
            EndReason::Terminated
        } else {
            EndReason::Completed
        };
        self.finish(reason, facts);
    }

    fn next_turn(&mut self, why: Onward, facts: &dyn RunFacts) {
        let limits = &self.rules.config.limits;
        let turns = limits.turns;
        if turns > 0 && self.turn >= turns {
            return self.finish(EndReason::Limit(Limit::Turns { max: turns }), facts);
        }
        if let Some(limit) = self.spent_limit() {
            return self.finish(EndReason::Limit(limit), facts);
        }
        self.onward = Some(why);
        if self.rules.prepare_turns {
            self.request(Step::PrepareNextTurn, At::NextTurn);
        } else {
            self.take_messages(facts);
        }
    }

    fn take_messages(&mut self, facts: &dyn RunFacts) {
        match self.onward {
            Some(Onward::Queued(kind)) => self.request(Step::Take(kind), At::Taking),
            Some(Onward::Repair) => {
                let repair = self.repair.take().into_iter().collect();
                self.begin_turn(repair, facts);
            }
            _ => self.request(Step::Take(QueueKind::Steering), At::Taking),
        }
    }

    fn taken(&mut self, messages: Vec<Arc<Message>>, facts: &dyn RunFacts) {
        match self.onward {
            // What waited was taken back in the meantime.
            Some(Onward::Queued(_)) if messages.is_empty() => {
                self.request(Step::CountQueues, At::Counting);
            }
            _ => self.begin_turn(messages, facts),
        }
    }

    fn answer_checked(&mut self, check: AnswerCheck, facts: &dyn RunFacts) {
        match check {
            AnswerCheck::Good(value) => {
                self.output = Some(value);
                self.natural_end(facts);
            }
            AnswerCheck::Wrong(problem) => {
                if self.repairs >= self.rules.config.output_repairs {
                    return self.finish(EndReason::Failed(Failure::Output(problem)), facts);
                }
                self.repairs += 1;
                self.repair = Some(Arc::new(Message::user(problem, facts.now())));
                self.next_turn(Onward::Repair, facts);
            }
        }
    }

    /// Ends the run: closes what is open, tells the end.
    fn finish(&mut self, reason: EndReason, _facts: &dyn RunFacts) {
        if self.at == At::Ended {
            return;
        }
        self.close_turn();
        match &reason {
            EndReason::Aborted => self.stop_reason = StopReason::Aborted,
            EndReason::Terminated => self.stop_reason = StopReason::Terminated,
            EndReason::Failed(_) => self.stop_reason = StopReason::Error,
            _ => {}
        }
        let (run_id, kind) = (self.id.clone(), reason.kind());
        self.record(|| JournalRecord::RunEnd {
            run_id,
            reason: kind,
        });
        self.emit(EventKind::AgentEnd {
            reason: kind,
            usage: self.usage,
            cost: self.cost,
            error: reason.problem(),
        });
        self.end = Some(reason);
        self.at = At::Ended;
        self.steps.push_back(Step::Done);
    }

    /// A hook failed after the turn had ended: a turn of its own tells it.
    fn fail_between_turns(&mut self, failure: Failure, facts: &dyn RunFacts) {
        self.turn += 1;
        self.turn_open = true;
        self.reply = None;
        self.batch = None;
        self.results = Arc::from([]);
        self.emit(EventKind::TurnStart);
        self.turn_failed(failure, facts);
    }

    fn spent_limit(&self) -> Option<Limit> {
        let limits = &self.rules.config.limits;
        let used = self.usage.all().unwrap_or(0) + self.tool_usage.all().unwrap_or(0);
        let spent = self.cost.map_or(0.0, |c| c.total());
        if let Some(max) = limits.tokens.filter(|max| used >= *max) {
            return Some(Limit::Tokens { max, used });
        }
        if let Some(max) = limits.cost.filter(|max| spent >= *max) {
            return Some(Limit::Cost { max, spent });
        }
        let used = used + self.rules.session_tokens;
        if let Some(max) = limits.session_tokens.filter(|max| used >= *max) {
            return Some(Limit::SessionTokens { max, used });
        }
        let spent = spent + self.rules.session_cost;
        if let Some(max) = limits.session_cost.filter(|max| spent >= *max) {
            return Some(Limit::SessionCost { max, spent });
        }
        None
    }

    // ---- cut ----

    /// The run must end: effects stay, requests go, what had begun gets its end.
    fn cut(&mut self, reason: EndReason, facts: &dyn RunFacts) {
        if self.cut.is_some() || self.at == At::Ended {
            return;
        }
        self.cut = Some(reason.clone());
        let mut dropped = Vec::new();
        self.steps = std::mem::take(&mut self.steps)
            .into_iter()
            .filter_map(|step| {
                if step.is_effect() {
                    return Some(step);
                }
                dropped.push(step);
                None
            })
            .collect();
        if self.at == At::Batch {
            let preparing = self.batch.as_ref().map(|b| {
                (0..b.len())
                    .filter(|i| b.is_preparing(*i))
                    .collect::<Vec<_>>()
            });
            let preparing = preparing.unwrap_or_default();
            self.end_questions(|at| preparing.contains(&at));
        }
        match self.at {
            At::Model => self.cut_model(facts),
            At::Compaction => {
                let shown = self.shown().len();
                self.emit(EventKind::CompactionEnd {
                    messages_before: shown,
                    messages_after: shown,
                    error: Some("the run was cut".into()),
                });
                self.finish(reason, facts);
            }
            At::Batch => self.cut_batch(&dropped, facts),
            _ => self.finish(reason, facts),
        }
    }
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
