//! Something in front of each of a source's names.
//!
//! Knows: the prefix. Does not know: other sources.

use std::sync::Arc;

use yiem_core::Tool;

use super::RenamedTool;

/// Puts a prefix in front of each name.
pub(super) fn prefixing(
    prefix: String,
) -> impl Fn(Arc<dyn Tool>) -> Option<Arc<dyn Tool>> + Send + Sync + 'static {
    move |tool| {
        let name = format!("{prefix}{}", tool.definition().name);
        Some(Arc::new(RenamedTool::new(tool, name)))
    }
}
