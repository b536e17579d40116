//! Some of a source's tools.
//!
//! Knows: which tools are wanted. Does not know: why.

use std::sync::Arc;

use yiem_core::{Tool, ToolDefinition};

/// Keeps the wanted tools.
pub(super) fn keeping(
    wanted: impl Fn(&ToolDefinition) -> bool + Send + Sync + 'static,
) -> impl Fn(Arc<dyn Tool>) -> Option<Arc<dyn Tool>> + Send + Sync + 'static {
    move |tool| wanted(tool.definition()).then_some(tool)
}
