//! Lines above the editor's prompt, printed without waiting for the editor.
//!
//! Knows: that an editor takes lines only while it edits, that it may stop doing so at any time, and that it
//! begins again only when whoever prints tells it to. Does not know: what the lines say.
//!
//! While the editor is between two lines, what is printed goes straight to the terminal. While it edits, a
//! thread hands the lines to it: the editor may end its line with one of them still on the way, and whoever
//! waited for that one would wait for ever. What is printed meanwhile is joined to one text; its bound is what
//! a run says until the next line is edited.
//!
//! The text of a question is never printed between two lines: it waits for the editor, which draws it when it has read
//! all keys that were typed before.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustyline::ExternalPrinter;

use super::on_screen::OnScreen;
use super::questions::Number;
use crate::screen::LinePrinter;

/// How long the last lines may take when the conversation ends.
const PARTING: Duration = Duration::from_millis(200);

/// A printer of lines above the prompt.
pub(super) struct AboveEditor<P> {
    /// Whether the editor edits a line now.
    editing: Arc<AtomicBool>,
    straight: P,
    handed: Arc<Handed>,
}

/// What the thread prints.
#[derive(Debug, Default)]
pub(super) struct Handed {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// What waits.
    text: String,
    /// Whether what waits is not whole yet: nothing is printed.
    holds: bool,
    /// Whether what waits is printed only while the editor edits.
    asks: bool,
    /// Whether the editor has drawn its prompt, and edits.
    edits: bool,
    /// The question whose text is among what waits.
    mark: Option<(Number, OnScreen)>,
    /// Whether some of it is on the way.
    printing: bool,
    /// Whether nothing more will come.
    closed: bool,
    /// Whether the terminal took something last time.
    broken: bool,
}

impl Handed {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What comes next is printed together with what waits, when its mark has come.
    pub(super) fn hold(&self) {
        self.lock().holds = true;
    }

    /// What came so far ends with the text of that question, and waits for the editor.
    pub(super) fn mark(&self, question: Number, on_screen: &OnScreen) {
        let mut state = self.lock();
        state.holds = false;
        if state.text.is_empty() {
            // It has no words.
            on_screen.comes(question);
            return;
        }
        state.asks = true;
        state.mark = Some((question, on_screen.clone()));
        drop(state);
        self.changed.notify_all();
    }

    pub(super) fn forget_mark(&self) {
        let mut state = self.lock();
        state.holds = false;
        state.mark = None;
        drop(state);
        self.changed.notify_all();
    }

    /// The editor has drawn its prompt.
    pub(super) fn is_edited(&self) {
        let mut state = self.lock();
        if !std::mem::replace(&mut state.edits, true) {
            drop(state);
            self.changed.notify_all();
        }
    }

    /// The editor's line is done.
    pub(super) fn is_not_edited(&self) {
        self.lock().edits = false;
    }

    fn print_until_closed(&self, printer: &mut impl ExternalPrinter) {
        loop {
            let idle = |state: &mut State| {
                let waits = state.holds || (state.asks && !state.edits);
                !state.closed && (state.text.is_empty() || waits)
            };
            let waited = self.changed.wait_while(self.lock(), idle);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner);
            if state.text.is_empty() {
                return;
            }
            let text = std::mem::take(&mut state.text);
            state.printing = true;
            state.asks = false;
            let mark = state.mark.take();
            drop(state);
            if let Some((question, on_screen)) = mark {
                on_screen.comes(question);
            }
            let printed = printer.print(text);
            let mut state = self.lock();
            state.printing = false;
            state.broken = printed.is_err();
            drop(state);
            self.changed.notify_all();
        }
    }
}

impl<P: ExternalPrinter> AboveEditor<P> {
    /// Prints by `straight` while nothing is edited, and by `handed` in a thread of its own otherwise. `None`
    /// when there can be no thread.
    pub(super) fn new(
        editing: Arc<AtomicBool>,
        straight: P,
        mut handed: impl ExternalPrinter + Send + 'static,
    ) -> Option<Self> {
        let shared = Arc::<Handed>::default();
        let theirs = Arc::clone(&shared);
        thread::Builder::new()
            .name("yiem-printer".into())
            .spawn(move || theirs.print_until_closed(&mut handed))
            .ok()?;
        Some(Self {
            editing,
            straight,
            handed: shared,
        })
    }

    /// What the thread prints.
    pub(super) fn handed(&self) -> Arc<Handed> {
        Arc::clone(&self.handed)
    }
}

impl<P: ExternalPrinter + Send> LinePrinter for AboveEditor<P> {
    fn print(&mut self, lines: String) -> io::Result<()> {
        let mut state = self.handed.lock();
        if state.broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let nothing_before = state.text.is_empty() && !state.printing && !state.holds;
        if nothing_before && !self.editing.load(Ordering::SeqCst) {
            drop(state);
            // It does not begin to edit before whoever prints says so.
            return self.straight.print(lines).map_err(io::Error::other);
        }
        state.text.push_str(&lines);
        drop(state);
        self.handed.changed.notify_all();
        Ok(())
    }
}

impl<P> Drop for AboveEditor<P> {
    fn drop(&mut self) {
        let mut state = self.handed.lock();
        state.closed = true;
        self.handed.changed.notify_all();
        // What an editor that is gone does not take any more is given up.
        let unsaid = |state: &mut State| state.printing || !state.text.is_empty();
        let _ = self
            .handed
            .changed
            .wait_timeout_while(state, PARTING, unsaid);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// As an editor's: takes one text, and no other until that one was read.
    struct Stuck(mpsc::SyncSender<String>);

    impl ExternalPrinter for Stuck {
        fn print(&mut self, text: String) -> rustyline::Result<()> {
            self.0
                .send(text)
                .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe).into())
        }
    }

    fn printer(
        editing: bool,
    ) -> (
        AboveEditor<Stuck>,
        mpsc::Receiver<String>,
        mpsc::Receiver<String>,
    ) {
        let (straight, told) = mpsc::sync_channel(16);
        let (handed, edited) = mpsc::sync_channel(1);
        let editing = Arc::new(AtomicBool::new(editing));
        let printer = AboveEditor::new(editing, Stuck(straight), Stuck(handed)).unwrap();
        (printer, told, edited)
    }

    #[test]
    fn an_editor_that_reads_nothing_holds_nobody_up_and_loses_nothing() {
        let (mut printer, told, edited) = printer(true);
        let lines: Vec<String> = (0..50).map(|n| format!("{n}\n")).collect();
        for line in &lines {
            printer.print(line.clone()).unwrap();
        }
        // The line ended with lines on the way: what comes now waits behind them.
        printer.editing.store(false, Ordering::SeqCst);
        printer.print("last\n".into()).unwrap();
        let mut shown = String::new();
        while !shown.ends_with("last\n") {
            shown.push_str(&edited.recv_timeout(Duration::from_secs(100)).unwrap());
        }
        assert_eq!(shown, lines.concat() + "last\n");
        assert!(told.try_recv().is_err());
    }

    #[test]
    fn a_question_waits_for_the_editor_and_stands_there_when_no_key_waits() {
        let (mut printer, told, edited) = printer(false);
        let on_screen = OnScreen::default();
        let handed = printer.handed();
        on_screen.goes_to(Arc::clone(&handed));
        let (one, two) = (Number::MIN, Number::MIN.saturating_add(1));
        printer.print("before\n".into()).unwrap();
        assert_eq!(told.try_recv().unwrap(), "before\n");
        on_screen.begins();
        printer.print("Who?\n".into()).unwrap();
        printer.print("Your name\n".into()).unwrap();
        on_screen.is(Some(one));
        // Between two lines nothing of it is printed, and nothing stands there.
        on_screen.drawn(|| false);
        assert_eq!(on_screen.now(), None);
        assert!(told.try_recv().is_err() && edited.try_recv().is_err());
        handed.is_edited();
        let text = edited.recv_timeout(Duration::from_secs(100)).unwrap();
        assert_eq!(text, "Who?\nYour name\n");
        on_screen.drawn(|| true);
        assert_eq!(on_screen.now(), None, "keys wait that were typed before");
        on_screen.drawn(|| false);
        assert_eq!(on_screen.now(), Some(one));
        on_screen.is(Some(one));
        assert_eq!(on_screen.now(), Some(one), "it stands there");
        // The next takes its place, and not before it is there.
        on_screen.begins();
        printer.print("May I?\n".into()).unwrap();
        on_screen.is(Some(two));
        assert_eq!(on_screen.now(), None);
        assert_eq!(
            edited.recv_timeout(Duration::from_secs(100)).unwrap(),
            "May I?\n"
        );
        on_screen.drawn(|| false);
        assert_eq!(on_screen.now(), Some(two));
        on_screen.is(None);
        on_screen.drawn(|| false);
        assert_eq!(on_screen.now(), None);
        // One that was taken back on its way never stands there.
        handed.is_not_edited();
        on_screen.begins();
        printer.print("Late?\n".into()).unwrap();
        on_screen.is(Some(one));
        on_screen.is(None);
        handed.is_edited();
        assert_eq!(
            edited.recv_timeout(Duration::from_secs(100)).unwrap(),
            "Late?\n"
        );
        on_screen.drawn(|| false);
        assert_eq!(on_screen.now(), None);
    }

    #[test]
    fn between_two_lines_it_prints_at_once() {
        let (mut printer, told, edited) = printer(false);
        printer.print("now\n".into()).unwrap();
        assert_eq!(told.try_recv().unwrap(), "now\n");
        assert!(edited.try_recv().is_err());
    }

    #[test]
    fn a_terminal_that_is_gone_is_told_of_and_ends_the_wait() {
        let (mut printer, _told, edited) = printer(true);
        drop(edited);
        printer.print("lost\n".into()).unwrap();
        let state = printer.handed.lock();
        let unsaid = |state: &mut State| !state.broken;
        let (state, late) = printer
            .handed
            .changed
            .wait_timeout_while(state, Duration::from_secs(10), unsaid)
            .unwrap();
        assert!(!late.timed_out());
        drop(state);
        assert!(printer.print("more\n".into()).is_err());
    }
}
