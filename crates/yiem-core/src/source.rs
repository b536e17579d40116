//! Where tools come from: a server, a directory, anything that has a list of them (T-5).
//!
//! Knows: the contract between a registry and a source. Does not know: any protocol.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::cancel::CancelToken;
use crate::env::Env;
use crate::error::{BoxError, Error};
use crate::tool::Tool;

/// A place that tools come from. Its list may change while the agent lives.
#[async_trait]
pub trait ToolSource: Send + Sync + 'static {
    /// The key that it is configured by: names its tools where they clash (M-6). Never changes.
    fn name(&self) -> &str;

    /// Counts the changes of its list that it knows of. A number that differs from the one
    /// seen last means: load again. Cheap: it is read before every turn.
    fn generation(&self) -> u64;

    /// The tools, all pages of them. Connects first if need be; called again after a failure
    /// or a change. May be dropped at any await, and called again after that.
    ///
    /// # Errors
    /// It could not be reached or read; tools that it gave before stay as they are.
    async fn load(&self, cancel: &CancelToken) -> Result<LoadedTools, SourceError>;

    /// Connects, and asks for nothing: what goes on in the background for a source whose tools nobody has
    /// asked for yet, so that they come at once when somebody does, and a source that is not there is
    /// told of (M-7). May be dropped at any await. A source without a connection keeps this.
    ///
    /// # Errors
    /// It could not be reached.
    async fn connect(&self, cancel: &CancelToken) -> Result<(), SourceError> {
        let _ = cancel;
        Ok(())
    }

    /// Ends when the generation has changed since `seen`; for whoever wants to load in the
    /// background. A source that never changes by itself never ends.
    async fn changed(&self, seen: u64) {
        let _ = seen;
        std::future::pending::<()>().await;
    }

    /// Whether the first run should fail if it cannot be loaded (M-7).
    fn required(&self) -> bool {
        false
    }

    /// Whether its tools are one's own, as those of a tools folder are: the model is offered them
    /// from the first turn, whatever the discovery policy says of servers' tools (T-5).
    fn own(&self) -> bool {
        false
    }

    /// Whether a model can add tools to it, as `writeTool` does to a tools folder: the model is
    /// then offered `listTools` from the first turn, to look which names are taken (T
    /// "listTools").
    fn grows(&self) -> bool {
        false
    }

    /// Lets go of what it holds (connections, processes), politely. Dropping it does the same
    /// without the politeness. Calls after this may fail.
    async fn close(&self) {}
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: ToolSource + ?Sized> ToolSource for Arc<S> {
    fn name(&self) -> &str {
        (**self).name()
    }
    fn generation(&self) -> u64 {
        (**self).generation()
    }
    async fn load(&self, cancel: &CancelToken) -> Result<LoadedTools, SourceError> {
        (**self).load(cancel).await
    }
    async fn connect(&self, cancel: &CancelToken) -> Result<(), SourceError> {
        (**self).connect(cancel).await
    }
    async fn changed(&self, seen: u64) {
        (**self).changed(seen).await;
    }
    fn required(&self) -> bool {
        (**self).required()
    }
    fn own(&self) -> bool {
        (**self).own()
    }
    fn grows(&self) -> bool {
        (**self).grows()
    }
    async fn close(&self) {
        (**self).close().await;
    }
}

/// What an agent can be given as a source: a source, or the description of one that is made when
/// the agent is built (an MCP server, say).
pub trait IntoToolSource {
    /// The source. Nothing is started or contacted yet.
    ///
    /// # Errors
    /// The description cannot be used; the error says what is wrong with it.
    fn into_tool_source(self, env: &Arc<dyn Env>) -> Result<Arc<dyn ToolSource>, Error>;
}

impl<S: ToolSource> IntoToolSource for S {
    fn into_tool_source(self, _: &Arc<dyn Env>) -> Result<Arc<dyn ToolSource>, Error> {
        Ok(Arc::new(self))
    }
}

/// What a source gave: its tools in its own order, and what of its list could not be used.
#[derive(Clone, Default)]
pub struct LoadedTools {
    /// The source's generation that this list is of.
    pub generation: u64,
    /// The tools, each under the name that the source itself has for it.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Definitions that could not be used, each with the reason; the others stand (M-4).
    pub rejected: Vec<RejectedTool>,
    /// Things to tell that are no error, such as a list that did not end.
    pub warnings: Vec<String>,
}

impl fmt::Debug for LoadedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self
            .tools
            .iter()
            .map(|t| t.definition().name.as_str())
            .collect();
        f.debug_struct("LoadedTools")
            .field("generation", &self.generation)
            .field("tools", &names)
            .field("rejected", &self.rejected)
            .field("warnings", &self.warnings)
            .finish()
    }
}

/// A tool that a source lists and that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedTool {
    /// Its name, or what stood in its place.
    pub name: String,
    /// Why not.
    pub reason: String,
}

/// A source that could not be loaded.
#[derive(Debug, thiserror::Error)]
#[error("{source_name}: {message}")]
pub struct SourceError {
    /// The source's name.
    pub source_name: String,
    /// What happened and what to do, on one line.
    pub message: String,
    /// Whether trying again later makes sense.
    pub retryable: bool,
    /// What caused it.
    #[source]
    pub cause: Option<BoxError>,
}
