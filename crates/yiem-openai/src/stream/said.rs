//! What a choice says: text, thoughts, calls, and what is rarely there.
//!
//! Knows: which of several fields counts, in which order the pieces stand. Does not know: how a reply ends.

use super::*;

impl ReplyState {
    pub(super) fn said(&mut self, said: &Said<'_>) {
        self.answered = true;
        self.reasoning_of(said);
        match &said.content {
            Text::Missing => {}
            Text::Is(text) => self.text(text),
            Text::Other(value) => self.content_parts(value),
        }
        if let Some(rare) = said.rare() {
            self.rarely_said(rare, said.calls().is_empty());
        }
        for call in said.calls() {
            let function = call.function.0.as_ref();
            let rare = call.rare();
            let raw = function
                .and_then(|f| f.arguments())
                .or(rare.and_then(|r| r.arguments));
            let arguments = raw.map(arguments::text_of).unwrap_or_default();
            let name = function
                .and_then(|f| f.name.get())
                .or(rare.and_then(|rare| rare.name.get()))
                .unwrap_or_default();
            let extra = rare
                .iter()
                .flat_map(|rare| &rare.kept)
                .filter_map(|(field, raw)| {
                    Some((
                        field.clone().into_owned(),
                        serde_json::from_str(raw.get()).ok()?,
                    ))
                })
                .collect();
            self.call(Piece {
                index: call.index.index(),
                id: call
                    .id
                    .get()
                    .or(rare.and_then(|rare| rare.call_id.get()))
                    .unwrap_or_default(),
                name,
                arguments: &arguments,
                extra,
            });
        }
    }

    pub(super) fn rarely_said(&mut self, said: &RareOfSaid<'_>, no_calls: bool) {
        for (field, raw) in &said.kept {
            if let Ok(value) = serde_json::from_str(raw.get()) {
                self.kept.insert(field.clone().into_owned(), value);
            }
        }
        if let Some(refusal) = said.refusal.get() {
            self.refused = true;
            self.text(refusal);
        }
        if let Text::Other(images) = &said.images {
            self.content_parts(images);
        }
        if let Some(function) = said.function_call.0.as_ref().filter(|_| no_calls) {
            // The older form: one call, without id or index.
            let arguments = function
                .arguments()
                .map(arguments::text_of)
                .unwrap_or_default();
            self.call(Piece {
                index: Some(i64::MIN),
                name: function.name.or_empty(),
                arguments: &arguments,
                ..Piece::default()
            });
        }
    }

    /// Rule: the first non-empty field is taken and stays the source for the stream; the text
    /// of `reasoning_details` is used only when none of the fields came.
    pub(super) fn reasoning_of(&mut self, said: &Said<'_>) {
        const MISSING: Text<'_> = Text::Missing;
        let rare = said.rare();
        if rare.is_none() && matches!(said.reasoning_content, Text::Missing) {
            return;
        }
        if let Some(raw) = rare.and_then(|rare| rare.reasoning_details)
            && let Ok(details) = serde_json::from_str::<Value>(raw.get())
        {
            self.take_details(details);
        }
        let fields = [
            &said.reasoning_content,
            rare.map_or(&MISSING, |rare| &rare.reasoning),
            rare.map_or(&MISSING, |rare| &rare.reasoning_text),
            rare.map_or(&MISSING, |rare| &rare.thinking),
        ];
        let mut fields = fields.map(thoughts_of);
        if self.source.is_none() {
            self.source = fields
                .iter()
                .position(|text| !text.is_empty())
                .map(ReasoningSource::Field);
        }
        if let Some(ReasoningSource::Field(at)) = self.source
            && !fields[at].is_empty()
        {
            let text = std::mem::take(&mut fields[at]).into_owned();
            self.reasoning.push_str(&text);
            self.out.push_back(ChatEvent::Reasoning {
                text,
                field: Some(REASONING_FIELDS[at]),
            });
        }
    }

    pub(super) fn take_details(&mut self, details: Value) {
        let items = match details {
            Value::Array(items) => items,
            object @ Value::Object(_) => vec![object],
            _ => return,
        };
        for item in items {
            for field in ["text", "summary"] {
                if let Some(text) = item.get(field).and_then(Value::as_str) {
                    self.details_text.push_str(text);
                    break;
                }
            }
            parts::merge_detail(&mut self.details, item);
        }
    }

    /// Told before the first word or call, if no field of reasoning came until then.
    pub(super) fn flush_details(&mut self) {
        if self.source.is_none() && !self.details_text.is_empty() {
            self.source = Some(ReasoningSource::Details);
        }
        if self.source == Some(ReasoningSource::Details) && !self.details_text.is_empty() {
            let text = std::mem::take(&mut self.details_text);
            self.out.push_back(ChatEvent::Reasoning {
                text,
                field: Some("reasoning_details"),
            });
        }
    }

    pub(super) fn content_parts(&mut self, value: &Value) {
        parts::each(value, &mut |part| match part {
            PartKind::Text(text) => self.text(text),
            PartKind::Refusal(text) => {
                self.refused = true;
                self.text(text);
            }
            PartKind::Reasoning(text) => self.thought(text),
            PartKind::Image(image) => {
                self.out
                    .push_back(ChatEvent::Block(Box::new(AssistantContent::Image(image))));
            }
            PartKind::Call(call) => {
                let taken = self.calls.take_whole(Piece {
                    index: None,
                    id: &call.id,
                    name: &call.name,
                    arguments: &call.arguments,
                    extra: call.extra,
                });
                self.bound_calls();
                if taken.shown && !self.whole && !self.done {
                    self.tell_call(taken.at);
                    self.tell_arguments(taken.at, call.arguments);
                }
            }
        });
    }

    pub(super) fn text(&mut self, text: &str) {
        if !self.details_text.is_empty() {
            self.flush_details();
        }
        if self.think.is_past() {
            return self.part(Part::Text(text));
        }
        let mut think = std::mem::replace(&mut self.think, ThinkSplitter::new(false));
        think.push(text, &mut |part| self.part(part));
        self.think = think;
    }

    pub(super) fn part(&mut self, part: Part<'_>) {
        match part {
            Part::Text(text) => match &mut self.leaks {
                Some(leaks) => {
                    if let Some(text) = leaks.push(text) {
                        self.speak(text);
                    }
                }
                None => self.speak(text.to_owned()),
            },
            // A block beside a field: kept until it is known whether it says the same.
            Part::Reasoning(text) if !self.reasoning.is_empty() => self.block.push_str(text),
            Part::Reasoning(text) => self.thought(text),
            Part::Closed => self.flush_block(),
        }
    }

    pub(super) fn flush_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        if block.trim() != self.reasoning.trim() {
            self.thought(&block);
        }
    }

    pub(super) fn thought(&mut self, text: &str) {
        if !text.is_empty() {
            self.out.push_back(ChatEvent::Reasoning {
                text: text.to_owned(),
                field: None,
            });
        }
    }

    pub(super) fn speak(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        self.spoke = self.spoke || !text.trim().is_empty();
        self.out.push_back(ChatEvent::Text(text));
    }

    pub(super) fn call(&mut self, piece: Piece<'_>) {
        if self.done {
            return;
        }
        if !self.details_text.is_empty() {
            self.flush_details();
        }
        if self.whole {
            self.calls.take_whole(piece);
            return self.bound_calls();
        }
        let arguments = piece.arguments.to_owned();
        let taken = self.calls.take(piece);
        self.bound_calls();
        if self.done {
            return;
        }
        if taken.shown {
            self.tell_call(taken.at);
        }
        self.tell_arguments(taken.at, arguments);
    }

    pub(super) fn tell_call(&mut self, at: usize) {
        let (id, name) = self.calls.head(at);
        let started = ChatEvent::ToolCallStarted {
            index: at,
            id: id.into(),
            name: self.options.offered.original(name),
        };
        self.out.push_back(started);
    }

    pub(super) fn tell_arguments(&mut self, index: usize, delta: String) {
        if !delta.is_empty() {
            self.out
                .push_back(ChatEvent::ToolCallArguments { index, delta });
        }
    }

    pub(super) fn bound_calls(&mut self) {
        let limit = self.options.limits.calls;
        if self.calls.len() > limit && !self.done {
            self.fail(ModelError::new(
                ModelErrorKind::Malformed,
                format!(
                    "the reply has more than {limit} tool calls; raise the limit if that is meant"
                ),
            ));
        }
    }
}

/// The text of a field of reasoning, whatever stands there.
fn thoughts_of<'t>(field: &'t Text<'_>) -> Cow<'t, str> {
    match field {
        Text::Missing => Cow::Borrowed(""),
        Text::Is(text) => Cow::Borrowed(text),
        Text::Other(value) => {
            let mut all = String::new();
            parts::thoughts(value, &mut |text| all.push_str(text));
            Cow::Owned(all)
        }
    }
}
