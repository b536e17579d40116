//! Sources in front of sources: some of the tools, or other names for them.
//!
//! Knows: what a source lists. Does not know: where it has it from.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use yiem_core::{CancelToken, LoadedTools, SourceError, Tool, ToolDefinition, ToolSource};

mod filter;
mod prefix;
mod rename;

pub use rename::RenamedTool;

/// What is made of one tool of a source: another, or none.
type Change = dyn Fn(Arc<dyn Tool>) -> Option<Arc<dyn Tool>> + Send + Sync;

/// A source whose tools are changed one by one on their way out. [`ToolSourceExt`] makes them.
pub struct WrappedSource<S> {
    source: S,
    change: Box<Change>,
}

impl<S> WrappedSource<S> {
    /// The source with this made of each of its tools: another, or none.
    pub fn new(
        source: S,
        change: impl Fn(Arc<dyn Tool>) -> Option<Arc<dyn Tool>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            source,
            change: Box::new(change),
        }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: ToolSource> ToolSource for WrappedSource<S> {
    fn name(&self) -> &str {
        self.source.name()
    }
    fn generation(&self) -> u64 {
        self.source.generation()
    }
    async fn load(&self, cancel: &CancelToken) -> Result<LoadedTools, SourceError> {
        let mut loaded = self.source.load(cancel).await?;
        loaded.tools = loaded.tools.into_iter().filter_map(&self.change).collect();
        Ok(loaded)
    }
    async fn connect(&self, cancel: &CancelToken) -> Result<(), SourceError> {
        self.source.connect(cancel).await
    }
    async fn changed(&self, seen: u64) {
        self.source.changed(seen).await;
    }
    fn required(&self) -> bool {
        self.source.required()
    }
    fn own(&self) -> bool {
        self.source.own()
    }
    fn grows(&self) -> bool {
        self.source.grows()
    }
    async fn close(&self) {
        self.source.close().await;
    }
}

impl<S: ToolSource> fmt::Debug for WrappedSource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WrappedSource({})", self.source.name())
    }
}

/// Comfort for sources: wrappers as methods.
///
/// ```
/// use yiem_core::ToolSource;
/// use yiem_tools::ToolSourceExt;
///
/// fn only_reading(files: impl ToolSource) -> impl ToolSource {
///     files.filtered(|tool| tool.name.starts_with("read_")).prefixed("files_")
/// }
/// ```
pub trait ToolSourceExt: ToolSource + Sized {
    /// Only the tools that are wanted, by their definitions.
    fn filtered(
        self,
        wanted: impl Fn(&ToolDefinition) -> bool + Send + Sync + 'static,
    ) -> WrappedSource<Self> {
        WrappedSource::new(self, filter::keeping(wanted))
    }

    /// Only the tools of these names.
    fn only<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> WrappedSource<Self> {
        let names: std::collections::HashSet<String> = names.into_iter().map(Into::into).collect();
        self.filtered(move |tool| names.contains(&tool.name))
    }

    /// All tools but those of these names.
    fn without<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> WrappedSource<Self> {
        let names: std::collections::HashSet<String> = names.into_iter().map(Into::into).collect();
        self.filtered(move |tool| !names.contains(&tool.name))
    }

    /// Every tool's name with this in front of it.
    fn prefixed(self, prefix: impl Into<String>) -> WrappedSource<Self> {
        WrappedSource::new(self, prefix::prefixing(prefix.into()))
    }

    /// Other names for some tools: the source's name and the new one, pair by pair.
    fn renamed<A: Into<String>, B: Into<String>>(
        self,
        names: impl IntoIterator<Item = (A, B)>,
    ) -> WrappedSource<Self> {
        WrappedSource::new(self, rename::renaming(names))
    }
}

impl<S: ToolSource + Sized> ToolSourceExt for S {}

#[cfg(test)]
mod tests;
