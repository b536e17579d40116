//! A tools folder as a source of tools.
//!
//! Knows: the folder, its tools, and that a written tool is a change of the list. Does not know:
//! registries, agents.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;
use yiem_core::{CancelToken, LoadedTools, RejectedTool, SourceError, Tool, ToolSource};

use crate::engine::ScriptEngine;
use crate::load::{self, Known, LoadedScripts};
use crate::write::WriteTool;

/// The tools of a folder, and, where that is enabled, the tool `writeTool` that adds to them
/// (T-6, T-7).
///
/// Give it to an agent as a source: its tools are offered from the first turn, and a tool that
/// the model writes is there on the next. Cheap to clone; clones are one source.
///
/// ```no_run
/// use yiem_core::SystemEnv;
/// use yiem_script::{ScriptEngine, ScriptTools};
///
/// let engine = ScriptEngine::new(SystemEnv::shared());
/// let tools = ScriptTools::new("tools", engine).allow_writing();
/// ```
#[derive(Clone)]
pub struct ScriptTools {
    name: Arc<str>,
    writes: bool,
    folder: Arc<ToolFolder>,
}

/// The folder, as the source and its `writeTool` share it.
pub(crate) struct ToolFolder {
    pub(crate) dir: PathBuf,
    pub(crate) engine: ScriptEngine,
    known: Mutex<Known>,
    generation: watch::Sender<u64>,
}

impl ToolFolder {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a tool that was written: it is not read again, and the list is another.
    pub(crate) fn added(&self, file: String, tool: Arc<crate::tool::ScriptTool>) {
        self.known().insert(file, (tool.source().into(), Ok(tool)));
        self.generation.send_modify(|n| *n += 1);
    }
}

impl fmt::Debug for ScriptTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptTools")
            .field("name", &self.name)
            .field("dir", &self.folder.dir)
            .field("writes", &self.writes)
            .finish_non_exhaustive()
    }
}

impl ScriptTools {
    /// The tools of a folder, without `writeTool`. Nothing is read before the first load.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>, engine: ScriptEngine) -> Self {
        Self {
            name: "scripts".into(),
            writes: false,
            folder: Arc::new(ToolFolder {
                dir: dir.into(),
                engine,
                known: Mutex::default(),
                generation: watch::Sender::new(0),
            }),
        }
    }

    /// The same under another key than `scripts`, for an agent with several folders.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// The same with `writeTool`: the model may write tools into the folder, and use them.
    #[must_use]
    pub fn allow_writing(mut self) -> Self {
        self.writes = true;
        self
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.folder.dir
    }

    /// What the folder gives now: its tools, and the files that are none with the reasons.
    ///
    /// # Errors
    /// The folder cannot be read. One that is not there is empty if writing is allowed.
    pub async fn load_scripts(&self) -> Result<LoadedScripts, load::LoadError> {
        let mut known = self.folder.known().clone();
        let loaded = load::load(&self.folder.dir, &self.folder.engine, &mut known).await;
        match loaded {
            Ok(loaded) => {
                *self.folder.known() = known;
                Ok(loaded)
            }
            Err(error) if self.writes && error.source.kind() == std::io::ErrorKind::NotFound => {
                Ok(LoadedScripts::default())
            }
            Err(error) => Err(error),
        }
    }

    /// The tool that writes tools into the folder, for whoever keeps a registry by hand. As a
    /// source, this gives it by itself once [`allow_writing`](Self::allow_writing) was called.
    #[must_use]
    pub fn write_tool(&self) -> WriteTool {
        WriteTool::new(Arc::clone(&self.folder))
    }

    /// Reads the folder again before the next turn, for whoever changed a file in it by hand.
    pub fn refresh(&self) {
        self.folder.generation.send_modify(|n| *n += 1);
    }
}

#[async_trait]
impl ToolSource for ScriptTools {
    fn name(&self) -> &str {
        &self.name
    }

    fn generation(&self) -> u64 {
        *self.folder.generation.borrow()
    }

    async fn load(&self, cancel: &CancelToken) -> Result<LoadedTools, SourceError> {
        // Before reading: what is written meanwhile makes the list another one.
        let generation = self.generation();
        let failed = |message: String, cause: Option<yiem_core::BoxError>| SourceError {
            source_name: self.name.to_string(),
            message,
            retryable: false,
            cause,
        };
        let Some(loaded) = cancel.run_until_cancelled(self.load_scripts()).await else {
            return Err(failed("loading was cancelled".to_owned(), None));
        };
        let loaded = loaded.map_err(|e| failed(e.to_string(), Some(Box::new(e))))?;
        let mut tools: Vec<Arc<dyn Tool>> = Vec::with_capacity(loaded.tools.len() + 1);
        if self.writes {
            tools.push(Arc::new(self.write_tool()));
        }
        tools.extend(loaded.tools.into_iter().map(|tool| tool as Arc<dyn Tool>));
        let rejected = loaded.problems.iter().map(|problem| RejectedTool {
            name: problem
                .path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            reason: problem.to_string(),
        });
        Ok(LoadedTools {
            generation,
            tools,
            rejected: rejected.collect(),
            warnings: Vec::new(),
        })
    }

    async fn changed(&self, seen: u64) {
        let mut generation = self.folder.generation.subscribe();
        // The sender lives as long as this.
        let _ = generation.wait_for(|now| *now != seen).await;
    }

    fn required(&self) -> bool {
        true
    }

    fn own(&self) -> bool {
        true
    }

    fn grows(&self) -> bool {
        self.writes
    }
}

#[cfg(test)]
mod tests;
