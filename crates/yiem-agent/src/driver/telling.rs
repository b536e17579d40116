//! How what happens is told: to listeners and sinks, and to the session's journal.
//!
//! Knows: who is waited for, and what is told when nobody answers. Does not know: what is told;
//! the run does.

use std::sync::Arc;

use super::Driver;
use crate::event::{AgentEvent, EventKind};
use crate::journal::{self, JournalError, JournalRecord};
use crate::outcome::{EndReason, Failure};
use crate::pipeline::caught;
use crate::run::Input;
use crate::sink::{Listener, call_plain};

/// What is told of a journal that hangs when the run is cut.
const JOURNAL_SILENT: &str = "the session's journal did not answer within the grace period after \
the run was cut; its last records may be missing";

impl Driver {
    /// Whether nobody has to be waited for: only plain listeners are told of the event.
    pub(super) fn is_told_at_once(&self, event: &AgentEvent) -> bool {
        let shared = &self.shared;
        let waits = shared.has_sinks
            || !shared.subscribers.is_empty()
            || (shared.journal.is_some() && matches!(event.kind, EventKind::TurnEnd { .. }));
        !waits
    }

    pub(super) fn tell_plain(&mut self, event: &AgentEvent) {
        self.spans.event(event);
        for listener in self.shared.listeners.iter() {
            if let Listener::Plain(listener) = listener {
                call_plain(&**listener, event);
            }
        }
    }

    /// Tells an event to everybody, and waits for those who want to be waited for.
    pub(super) async fn emit(&mut self, event: Arc<AgentEvent>) {
        self.spans.event(&event);
        let listeners = Arc::clone(&self.shared.listeners);
        self.shared.subscribers.publish(&event);
        for listener in &*listeners {
            match listener {
                Listener::Plain(listener) => call_plain(&**listener, &event),
                Listener::Sink(sink) => {
                    let cancel = self.cancel.clone();
                    let told = caught(|| sink.on_event(&event, &cancel));
                    match self.effect(told).await {
                        Some(Ok(())) => {}
                        Some(Err(said)) => {
                            tracing::error!(
                                seq = event.seq,
                                said,
                                "a sink panicked; the run goes on"
                            );
                        }
                        None => tracing::warn!(
                            seq = event.seq,
                            "a sink did not take an event within the grace period after an abort"
                        ),
                    }
                }
            }
        }
        if matches!(event.kind, EventKind::TurnEnd { .. }) {
            self.flush_journal().await;
        }
    }

    pub(super) async fn write_down(&mut self, record: Box<JournalRecord>) {
        let Some(journal) = self.shared.journal.clone() else {
            return;
        };
        let done = self.effect(journal::append(&*journal, &record)).await;
        self.journal_answered(done);
    }

    async fn flush_journal(&mut self) {
        let Some(journal) = self.shared.journal.clone() else {
            return;
        };
        let done = self.effect(journal::flush(&*journal)).await;
        self.journal_answered(done);
    }

    fn journal_answered(&mut self, done: Option<Result<(), JournalError>>) {
        match done {
            Some(Ok(())) => {}
            Some(Err(error)) => self.journal_failed(error.to_string()),
            // The run ends by what cut it; that its record may be missing is told beside it.
            None if std::mem::replace(&mut self.journal_silent, true) => {}
            None => self.handle(Input::Warned(JOURNAL_SILENT.into())),
        }
    }

    fn journal_failed(&mut self, message: String) {
        tracing::error!(error = message, "the journal could not be written");
        if !self.cut {
            self.cut_because(EndReason::Failed(Failure::Journal(message)));
        }
    }
}
