//! Agents that are asked by agents.
//!
//! Knows: how deep, and where a question to a person can be answered. Does not know: what is
//! asked, nor how a call becomes a run.

use std::sync::Arc;

use crate::approval::Approvals;

/// Who an agent was asked by; handed on beside the application's own values.
#[derive(Default)]
pub(crate) struct Caller {
    /// How many agents are above it.
    pub(crate) depth: u32,
    /// Where its own questions to a person can be answered.
    pub(crate) own: Arc<Approvals>,
    /// Where they can be answered besides: with those above it.
    pub(crate) above: Vec<Arc<Approvals>>,
}

impl Caller {
    /// Of an agent that was asked by none.
    pub(crate) fn none(own: Arc<Approvals>) -> Self {
        Self {
            own,
            ..Self::default()
        }
    }
}
