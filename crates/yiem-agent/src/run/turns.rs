//! How a run begins, goes from turn to turn, ends, and is cut.
//!
//! Knows: what follows a turn, which limit is spent, what an abort leaves. Does not know: how a reply and its
//! calls are dealt with.

use super::*;

impl Run {
    pub(super) fn start(&mut self, messages: Vec<Arc<Message>>, facts: &dyn RunFacts) {
        let run_id = self.id.clone();
        self.record(|| JournalRecord::RunStart { run_id });
        self.emit_start();
        self.begin_turn(messages, facts);
    }

    pub(super) fn emit_start(&mut self) {
        self.emit(EventKind::AgentStart);
        if let Some(queues) = self.queues_at_start.take() {
            self.emit(queues);
        }
    }

    pub(super) fn begin_turn(&mut self, messages: Vec<Arc<Message>>, facts: &dyn RunFacts) {
        self.turn += 1;
        self.turn_open = true;
        self.reply = None;
        self.batch = None;
        self.results = Arc::default();
        self.truncated = None;
        self.terminated = false;
        self.interrupted = false;
        if self.answer == Answer::Given {
            self.answer = Answer::Earlier;
        }
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

    pub(super) fn ask_model(&mut self) {
        let attempt = self.attempt;
        self.request(Step::CallModel { attempt }, At::Model);
    }

    /// Tells the end of the turn. What comes next is decided after it.
    pub(super) fn close_turn(&mut self) {
        if self.turn_open {
            self.turn_open = false;
            self.emit(EventKind::TurnEnd {
                message: self.reply.clone(),
                tool_results: self.results.to_vec(),
            });
        }
    }

    pub(super) fn turn_done(&mut self, facts: &dyn RunFacts) {
        self.close_turn();
        if let Some(reason) = self.cut.clone() {
            self.finish(reason, facts);
        } else if let Some(reason) = self.end_after_batch.take() {
            self.conclude(reason, facts);
        } else if self.rules.judge_turns {
            self.request(Step::JudgeTurn, At::Judging);
        } else {
            self.after_turn(facts);
        }
    }

    pub(super) fn judged(&mut self, answer: Result<StopAfterTurn, Failure>, facts: &dyn RunFacts) {
        match answer {
            Ok(StopAfterTurn::GoOn) => self.after_turn(facts),
            Ok(StopAfterTurn::Stop) => self.conclude(EndReason::Stopped, facts),
            Err(failure) => self.fail_between_turns(failure, facts),
        }
    }

    pub(super) fn after_turn(&mut self, facts: &dyn RunFacts) {
        if self.batch.is_some() && !self.terminated {
            self.next_turn(Onward::Results, facts);
        } else {
            self.request(Step::CountQueues, At::Counting);
        }
    }

    pub(super) fn counted(&mut self, steering: usize, follow_ups: usize, facts: &dyn RunFacts) {
        if steering + follow_ups > 0 {
            // It is looked at again when the run would end the next time.
            self.output = None;
        }
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

    pub(super) fn natural_end(&mut self, facts: &dyn RunFacts) {
        let reason = if self.terminated {
            EndReason::Terminated
        } else {
            EndReason::Completed
        };
        self.finish(reason, facts);
    }

    pub(super) fn next_turn(&mut self, why: Onward, facts: &dyn RunFacts) {
        let limits = &self.rules.config.limits;
        let turns = limits.turns;
        if turns > 0 && self.turn >= turns {
            return self.conclude(EndReason::Limit(Limit::Turns { max: turns }), facts);
        }
        if let Some(limit) = self.spent_limit() {
            return self.conclude(EndReason::Limit(limit), facts);
        }
        self.onward = Some(why);
        if self.rules.prepare_turns {
            self.request(Step::PrepareNextTurn, At::NextTurn);
        } else {
            self.take_messages(facts);
        }
    }

    pub(super) fn take_messages(&mut self, facts: &dyn RunFacts) {
        match self.onward {
            Some(Onward::Queued(kind)) => self.request(Step::Take(kind), At::Taking),
            Some(Onward::Repair) => {
                let repair = self.repair.take().into_iter().collect();
                self.begin_turn(repair, facts);
            }
            _ => self.request(Step::Take(QueueKind::Steering), At::Taking),
        }
    }

    pub(super) fn taken(&mut self, messages: Vec<Arc<Message>>, facts: &dyn RunFacts) {
        match self.onward {
            // What waited was taken back in the meantime.
            Some(Onward::Queued(_)) if messages.is_empty() => {
                self.request(Step::CountQueues, At::Counting);
            }
            _ => self.begin_turn(messages, facts),
        }
    }

    /// The run ends for a reason of its own; an answer that was given by then is part of what it
    /// came to.
    fn conclude(&mut self, reason: EndReason, facts: &dyn RunFacts) {
        let looks = self.rules.wants_output && self.output.is_none();
        if looks && !matches!(reason, EndReason::Failed(_)) {
            self.ending = Some(reason);
            self.request(Step::CheckAnswer, At::Checking);
        } else {
            self.finish(reason, facts);
        }
    }

    pub(super) fn answer_checked(&mut self, check: AnswerCheck, facts: &dyn RunFacts) {
        if let Some(reason) = self.ending.take() {
            if let AnswerCheck::Good(value) = check {
                self.output = Some(value);
            }
            return self.finish(reason, facts);
        }
        match check {
            AnswerCheck::Good(value) => {
                self.output = Some(value);
                // What was sent while the answer was looked at is delivered all the same.
                self.request(Step::CountQueues, At::Counting);
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
    pub(super) fn finish(&mut self, reason: EndReason, _facts: &dyn RunFacts) {
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
    pub(super) fn fail_between_turns(&mut self, failure: Failure, facts: &dyn RunFacts) {
        self.turn += 1;
        self.turn_open = true;
        self.reply = None;
        self.batch = None;
        self.results = Arc::default();
        self.emit(EventKind::TurnStart);
        self.turn_failed(failure, facts);
    }

    pub(super) fn spent_limit(&self) -> Option<Limit> {
        let limits = &self.rules.config.limits;
        let used = tokens(&self.usage, &self.tool_usage);
        let money = |cost: &Option<Cost>| cost.map_or(0.0, |cost| cost.total());
        let spent = money(&self.cost) + money(&self.tool_cost);
        if let Some(max) = limits.tokens.filter(|max| used >= *max) {
            return Some(Limit::Tokens { max, used });
        }
        if let Some(max) = limits.cost.filter(|max| spent >= *max) {
            return Some(Limit::Cost { max, spent });
        }
        let used = used.saturating_add(self.rules.session_tokens);
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
    pub(super) fn cut(&mut self, reason: EndReason, facts: &dyn RunFacts) {
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

/// All tokens, those that tools used included. Counts come from servers: they may be anything.
pub(crate) fn tokens(usage: &Usage, tool_usage: &Usage) -> u64 {
    let all = |usage: &Usage| usage.all().unwrap_or(0);
    all(usage).saturating_add(all(tool_usage))
}
