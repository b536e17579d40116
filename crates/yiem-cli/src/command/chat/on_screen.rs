//! Which question stands on the screen, as whoever reads keys has to know it.
//!
//! Knows: a question stands there once the editor has drawn it, with no key waiting that was typed before. Does not
//! know: what is asked, how lines are edited, how they are printed.
//!
//! While an editor edits, a text that is printed reaches the terminal only when the editor takes it, which it does
//! when it has no keys to read. Until then, and as long as keys wait that were typed before, the question is *coming*:
//! what is typed now is not an answer to it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::above::Handed;
use super::questions::Number;

/// The question on the screen, shared by the conversation, which asks, and the editor, which draws.
#[derive(Clone, Debug, Default)]
pub(super) struct OnScreen(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// None is 0.
    now: AtomicU64,
    /// On its way to the terminal, given to the editor.
    coming: AtomicU64,
    /// The conversation's last word.
    last: AtomicU64,
    /// The way to an editor's lines. Without one, what is printed stands there at once.
    lines: OnceLock<Arc<Handed>>,
}

impl OnScreen {
    /// From here on, lines go to an editor.
    pub(super) fn goes_to(&self, lines: Arc<Handed>) {
        // There is one editor.
        let _ = self.0.lines.set(lines);
    }

    /// The text of a question is printed next.
    pub(super) fn begins(&self) {
        if let Some(lines) = self.0.lines.get() {
            lines.hold();
        }
    }

    /// From here on this one stands there, its text being printed; or none.
    pub(super) fn is(&self, question: Option<Number>) {
        let number = question.map_or(0, Number::get);
        if self.0.last.swap(number, Ordering::SeqCst) == number {
            return;
        }
        self.0.coming.store(0, Ordering::SeqCst);
        match (self.0.lines.get(), question) {
            (Some(lines), Some(question)) => {
                self.0.now.store(0, Ordering::SeqCst);
                lines.mark(question, self);
            }
            (Some(lines), None) => {
                self.0.now.store(0, Ordering::SeqCst);
                lines.forget_mark();
            }
            (None, _) => self.0.now.store(number, Ordering::SeqCst),
        }
    }

    /// The text of that question was given to the editor.
    pub(super) fn comes(&self, question: Number) {
        if self.0.last.load(Ordering::SeqCst) == question.get() {
            self.0.coming.store(question.get(), Ordering::SeqCst);
        }
    }

    /// The editor has drawn what it was given, unless keys wait, which it reads first.
    pub(super) fn drawn(&self, keys_wait: impl FnOnce() -> bool) {
        let coming = self.0.coming.load(Ordering::SeqCst);
        if coming == 0 || keys_wait() {
            return;
        }
        let taken = self
            .0
            .coming
            .compare_exchange(coming, 0, Ordering::SeqCst, Ordering::SeqCst);
        if taken.is_ok() && self.0.last.load(Ordering::SeqCst) == coming {
            self.0.now.store(coming, Ordering::SeqCst);
        }
    }

    pub(super) fn now(&self) -> Option<Number> {
        Number::new(self.0.now.load(Ordering::SeqCst))
    }
}
