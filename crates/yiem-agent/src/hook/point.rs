//! The points of a run at which hooks are asked, and who is asked at each.
//!
//! Knows: which hook wants to be asked where. Does not know: what they see or answer.

use std::fmt;
use std::sync::Arc;

use super::AgentHook;

/// A point of a run at which hooks are asked; one for each method of [`AgentHook`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HookPoint {
    /// [`AgentHook::transform_context`].
    TransformContext,
    /// [`AgentHook::before_model_call`].
    BeforeModelCall,
    /// [`AgentHook::before_tool_call`].
    BeforeToolCall,
    /// [`AgentHook::after_tool_call`].
    AfterToolCall,
    /// [`AgentHook::should_stop_after_turn`].
    ShouldStopAfterTurn,
    /// [`AgentHook::prepare_next_turn`].
    PrepareNextTurn,
    /// [`AgentHook::compact`].
    Compact,
}

impl HookPoint {
    const ALL: [Self; 7] = [
        Self::TransformContext,
        Self::BeforeModelCall,
        Self::BeforeToolCall,
        Self::AfterToolCall,
        Self::ShouldStopAfterTurn,
        Self::PrepareNextTurn,
        Self::Compact,
    ];
}

type List = Arc<[Arc<dyn AgentHook>]>;

/// The hooks of an agent, by the points at which they want to be asked.
#[derive(Clone)]
pub(crate) struct Hooks(Arc<[List; HookPoint::ALL.len()]>);

impl Hooks {
    pub(crate) fn new(hooks: &[Arc<dyn AgentHook>]) -> Self {
        Self(Arc::new(HookPoint::ALL.map(|point| {
            hooks
                .iter()
                .filter(|hook| hook.is_asked_at(point))
                .cloned()
                .collect()
        })))
    }

    /// Who is asked there, in order of registration.
    pub(crate) fn at(&self, point: HookPoint) -> &[Arc<dyn AgentHook>] {
        &self.0[point as usize]
    }

    pub(crate) fn any_at(&self, point: HookPoint) -> bool {
        !self.at(point).is_empty()
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(HookPoint::ALL.iter().filter(|point| self.any_at(**point)))
            .finish()
    }
}
