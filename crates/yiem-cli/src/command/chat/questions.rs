//! What waits for a person, and what a typed line is for.
//!
//! Knows: approvals and forms in order of arrival, which one stands on the screen, and which one stood there when a
//! line was begun. Does not know: what they ask, who waits for the answer, the screen.
//!
//! An answer goes to the question that the person saw before the first key, and to no other: a "yes" to one
//! question must never become a "yes" to another that came, or moved up, while it was typed.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use super::slash::Slash;

/// A question that stood on the screen. No two of a conversation have the same.
pub(super) type Number = NonZeroU64;

/// All that waits, oldest first. Only the first is shown. Bound by those who ask: an agent's open calls, and what
/// may wait on the way from servers.
#[derive(Debug)]
pub(super) struct Questions<Q> {
    open: VecDeque<Open<Q>>,
    next: Number,
}

#[derive(Debug)]
struct Open<Q> {
    number: Number,
    /// Whether the person has seen it.
    shown: bool,
    question: Q,
}

/// What a line is for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// An empty line where nothing is asked.
    Nothing,
    /// A command; never an answer, `/no` alone excepted.
    Command(Slash),
    /// The answer to the first question.
    Answer,
    /// Something to say to the agent.
    Say,
    /// Something to say to the agent: the question that is open now came while it was typed.
    SayBeside,
    /// An answer to a question that closed while it was typed: for nobody.
    Late,
}

impl<Q> Questions<Q> {
    pub(super) fn new() -> Self {
        Self {
            open: VecDeque::new(),
            next: Number::MIN,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn push(&mut self, question: Q) {
        self.open.push_back(Open {
            number: self.next,
            shown: false,
            question,
        });
        self.next = self.next.saturating_add(1);
    }

    /// The first, to be shown now; `None` when it stands there already. It counts as shown from here on.
    pub(super) fn show_next(&mut self) -> Option<&Q> {
        let first = self.open.front_mut().filter(|first| !first.shown)?;
        first.shown = true;
        Some(&first.question)
    }

    /// Which one stands on the screen.
    pub(super) fn on_screen(&self) -> Option<Number> {
        let first = self.open.front().filter(|first| first.shown)?;
        Some(first.number)
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut Q> {
        Some(&mut self.open.front_mut()?.question)
    }

    /// The first asks for something else now: to be shown anew, under another number.
    pub(super) fn asks_anew(&mut self) {
        if let Some(first) = self.open.front_mut() {
            first.number = self.next;
            first.shown = false;
            self.next = self.next.saturating_add(1);
        }
    }

    pub(super) fn pop(&mut self) -> Option<Q> {
        Some(self.open.pop_front()?.question)
    }

    /// Keeps those that are still open; whether one that stood on the screen is gone.
    pub(super) fn retain(&mut self, still_open: impl Fn(&Q) -> bool) -> bool {
        let before = self.on_screen();
        self.open.retain(|open| still_open(&open.question));
        before.is_some() && self.on_screen() != before
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// What a line is for that was begun while the question `begun` stood on the screen, or none.
    pub(super) fn means(&self, line: &str, begun: Option<Number>) -> Means {
        let seen = begun.is_some() && begun == self.on_screen();
        match Slash::read(line) {
            Some(Slash::No) if seen => return Means::Answer,
            Some(command) => return Means::Command(command),
            None => {}
        }
        match begun {
            _ if seen => Means::Answer,
            _ if line.trim().is_empty() => Means::Nothing,
            Some(_) => Means::Late,
            None if self.open.is_empty() => Means::Say,
            None => Means::SayBeside,
        }
    }
}

#[cfg(test)]
mod tests;
