//! How a reply ends: whole, cut, or with an error, and what is told last.
//!
//! Knows: the precedence of calls, finish reasons and missing ends. Does not know: how pieces are read.

use super::*;

impl ReplyState {
    /// Rule: a stream is complete when there was a finish reason that is a word, or `[DONE]`,
    /// or a usage-only chunk at the end. A body in one piece always is.
    pub(super) fn is_complete(&self) -> bool {
        self.whole || self.finish.is_some() || self.done_marker || self.usage_last
    }

    pub(super) fn too_long(&mut self, error: SseError) {
        self.fail(
            ModelError::new(
                ModelErrorKind::Malformed,
                format!("the reply is too long: {error}"),
            )
            .with_source(error),
        );
    }

    /// Ends the reply with an error; what came until then stays.
    pub(super) fn fail(&mut self, error: ModelError) {
        if self.done {
            return;
        }
        let meaning = self.finish.as_deref().map(finish::meaning);
        self.flush(Reply::Cut, matches!(meaning, Some(Meaning::Length)));
        self.done = true;
        self.error = Some(error);
    }

    pub(super) fn end(&mut self) {
        if self.done {
            return;
        }
        let complete = self.is_complete();
        let meaning = self.finish.as_deref().map(finish::meaning);
        // Rule: nothing is mended on a turn that was cut.
        let cut = !complete || matches!(meaning, Some(Meaning::Length | Meaning::Failure(_)));
        let calls = self.flush(if cut { Reply::Cut } else { Reply::Whole }, cut);
        self.done = true;
        match self.stop(complete, meaning, calls) {
            Ok(stop) => {
                let usage = self.counts.usage();
                self.out.push_back(ChatEvent::Finished { stop, usage });
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// Hands out everything that was held back. Gives the number of calls.
    pub(super) fn flush(&mut self, reply: Reply, cut: bool) -> usize {
        let mut think = std::mem::replace(&mut self.think, ThinkSplitter::new(false));
        think.finish(cut, &mut |part| self.part(part));
        if !self.block.is_empty() {
            self.flush_block();
        }
        self.flush_details();
        if let Some(leaks) = self.leaks.take() {
            let known = self
                .calls
                .is_empty()
                .then(|| Arc::clone(&self.options.offered));
            let (text, found) = leaks.finish(known.as_deref());
            self.speak(text);
            for call in found {
                self.calls.take_whole(Piece {
                    name: &call.name,
                    arguments: &call.arguments,
                    ..Piece::default()
                });
            }
        }
        let offered = Arc::clone(&self.options.offered);
        let calls = std::mem::take(&mut self.calls)
            .finish(reply, &*self.env, |name| offered.original_of(name));
        let count = calls.len();
        for (index, mut call) in calls {
            if !call.extra.is_empty() {
                let data = JsonObject::from(std::mem::take(&mut call.extra));
                call.extra.insert(PROVIDER_DATA, Value::Object(data));
            }
            self.out.push_back(ChatEvent::ToolCallEnded {
                index,
                call: Box::new(call),
            });
        }
        self.tell_info();
        count
    }

    pub(super) fn reply_info(&self) -> ReplyInfo {
        let or = |told: &str, default: &str| {
            let known = if told.is_empty() { default } else { told };
            known.to_owned()
        };
        let defaults = &self.options.defaults;
        ReplyInfo {
            api: or(&self.told.api, &defaults.api),
            provider: or(&self.told.provider, &defaults.provider),
            model: or(&self.told.model, &defaults.model),
            extra: Extra::NONE,
        }
    }

    /// What has to go back with the message is known only at its end.
    pub(super) fn tell_info(&mut self) {
        let mut extra = Extra::NONE;
        let requested = &self.options.defaults.model;
        let told = &self.told.model;
        if !requested.is_empty() && !told.is_empty() && requested != told {
            extra.insert(REQUESTED_MODEL, Value::from(requested.as_str()));
        }
        if !self.details.is_empty() {
            let details = std::mem::take(&mut self.details);
            self.kept
                .insert("reasoning_details".to_owned(), Value::Array(details));
        }
        if !self.kept.is_empty() {
            extra.insert(PROVIDER_DATA, Value::Object(std::mem::take(&mut self.kept)));
        }
        if !self.begun || !extra.is_empty() {
            let info = ReplyInfo {
                extra,
                ..self.reply_info()
            };
            self.out.push_back(ChatEvent::Started(Box::new(info)));
        }
    }

    pub(super) fn stop(
        &mut self,
        complete: bool,
        meaning: Option<Meaning>,
        calls: usize,
    ) -> Result<StopReason, ModelError> {
        if let Some(api) = self.foreign.filter(|_| !self.answered) {
            return Err(api.error());
        }
        if !complete {
            return Err(self.incomplete());
        }
        if !self.answered {
            return Err(ModelError::new(
                ModelErrorKind::Malformed,
                "the reply holds no message: neither choices, nor message, nor content",
            ));
        }
        let word = self.finish.take().unwrap_or_default();
        // Rule: calls present beat the finish reason, except for length and content_filter.
        match meaning {
            Some(Meaning::Length) => Ok(StopReason::Length),
            Some(Meaning::Filter) => Ok(StopReason::ContentFilter),
            _ if calls > 0 => Ok(StopReason::ToolCalls),
            Some(Meaning::Failure(kind)) => Err(ModelError::new(
                kind,
                format!("the model ended its reply with {word:?}"),
            )),
            Some(Meaning::Calls) if !self.spoke => Err(ModelError::new(
                ModelErrorKind::Malformed,
                format!("the reply ended with {word:?} and has neither a call nor text"),
            )),
            _ if self.refused => Ok(StopReason::ContentFilter),
            Some(Meaning::Unknown) => Ok(StopReason::Other(word)),
            Some(Meaning::End | Meaning::Calls) | None => Ok(StopReason::EndTurn),
        }
    }

    pub(super) fn incomplete(&self) -> ModelError {
        if let Some(line) = self.stray.as_deref().filter(|_| self.events == 0) {
            return classify::unreadable(line.as_bytes(), "is neither JSON nor a stream of events");
        }
        if self.asked == Asked::Whole && self.events == 0 && !self.answered {
            return ModelError::new(ModelErrorKind::Malformed, "the reply is empty");
        }
        let what = if self.answered {
            "broke off in the middle"
        } else {
            "ended before it began"
        };
        ModelError::new(
            ModelErrorKind::TruncatedStream,
            format!("the reply {what}: it had no finish reason, no [DONE] and no usage at its end"),
        )
    }
}
