//! A call's progress on its way to the driver.
//!
//! Knows: that what was accepted before the call settled is delivered before its end, and that
//! what comes after is dropped. Does not know: who listens.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::mpsc;
use yiem_core::{ProgressSink, ToolCallId};

use super::CallMessage;
use crate::event::EventKind;

/// Where the progress of one call goes.
pub(crate) struct CallProgress {
    call: usize,
    /// Set for a call that another call makes: its progress is told as an event of its own.
    nested: Option<(ToolCallId, std::sync::Arc<str>)>,
    tell: mpsc::Sender<CallMessage>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// Offered, and not yet in the channel, since that was full.
    offered: Option<Value>,
}

impl CallProgress {
    pub(crate) fn new(call: usize, tell: mpsc::Sender<CallMessage>) -> Self {
        Self {
            call,
            nested: None,
            tell,
            state: Mutex::default(),
        }
    }

    pub(crate) fn nested(
        call: usize,
        tell: mpsc::Sender<CallMessage>,
        id: ToolCallId,
        name: std::sync::Arc<str>,
    ) -> Self {
        Self {
            nested: Some((id, name)),
            ..Self::new(call, tell)
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn message(&self, partial: Value) -> CallMessage {
        match &self.nested {
            None => CallMessage::Update {
                call: self.call,
                partial,
            },
            Some((id, name)) => CallMessage::Told {
                call: self.call,
                kind: Box::new(EventKind::ToolExecutionUpdate {
                    tool_call_id: id.clone(),
                    tool_name: std::sync::Arc::clone(name),
                    partial_result: partial,
                }),
            },
        }
    }

    /// The call has settled: what comes from now on is dropped. Gives what was accepted and is
    /// still to be delivered.
    pub(crate) fn close(&self) -> Option<Value> {
        let mut state = self.lock();
        state.closed = true;
        state.offered.take()
    }

    /// Delivers what was left when the call settled.
    pub(crate) async fn deliver(&self, left: Value) {
        let _ = self.tell.send(self.message(left)).await;
    }
}

#[async_trait]
impl ProgressSink for CallProgress {
    async fn send(&self, partial: Value) {
        let earlier = {
            let mut state = self.lock();
            if state.closed {
                return;
            }
            state.offered.take()
        };
        if let Some(earlier) = earlier {
            let _ = self.tell.send(self.message(earlier)).await;
        }
        let Ok(place) = self.tell.reserve().await else {
            return;
        };
        // It may have settled while this waited for a place.
        if !self.lock().closed {
            place.send(self.message(partial));
        }
    }

    fn offer(&self, partial: Value) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        match self.tell.try_reserve() {
            Ok(place) => {
                // An earlier offer that found no room goes first if there is room for both.
                match state.offered.take() {
                    None => place.send(self.message(partial)),
                    Some(earlier) => {
                        place.send(self.message(earlier));
                        match self.tell.try_reserve() {
                            Ok(place) => place.send(self.message(partial)),
                            Err(_) => state.offered = Some(partial),
                        }
                    }
                }
            }
            Err(_) => state.offered = Some(partial),
        }
    }
}
