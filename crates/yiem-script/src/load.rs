//! Tools from the files of a folder (T-6).
//!
//! Knows: files in, tools and problems out. Does not know: who watches the folder.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::ScriptEngine;
use crate::error::{ScriptError, ScriptErrorKind};
use crate::folder::{self, Found};
use crate::tool::ScriptTool;

/// What a folder of tools gave: tools in the order of their files' names, and the files that
/// could not be used.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LoadedScripts {
    /// The tools.
    pub tools: Vec<Arc<ScriptTool>>,
    /// The files that are no tools, each with the reason; the others stand.
    pub problems: Vec<ScriptProblem>,
}

/// A file that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptProblem {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it, and where.
    pub error: ScriptError,
}

/// `path:line:column: what is wrong`, as compilers write it.
impl fmt::Display for ScriptProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(place) = &self.error.place {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        write!(f, ": {}", self.error.message)
    }
}

/// A folder that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("the tools folder {} could not be read; it must be a folder of .js files", path.display())]
#[non_exhaustive]
pub struct LoadError {
    /// The folder.
    pub path: PathBuf,
    /// Why not.
    #[source]
    pub source: std::io::Error,
}

/// Loads the tools of a folder (T `loadTools`, T-6): every file that ends in `.js` or `.mjs`, by
/// name order. A bad file is reported with its line, and the others still load.
///
/// Files that begin with a dot, other endings and folders inside are passed over. Symbolic links
/// are not followed, and reported.
///
/// # Errors
/// The folder itself cannot be read.
#[doc(alias = "loadTools")]
pub async fn load_tools(
    dir: impl AsRef<Path>,
    engine: &ScriptEngine,
) -> Result<LoadedScripts, LoadError> {
    load(dir.as_ref(), engine, &mut HashMap::new()).await
}

/// Tools that were loaded before, by the text that they were loaded from.
pub(crate) type Known = HashMap<String, (Arc<str>, Result<Arc<ScriptTool>, ScriptError>)>;

/// As [`load_tools`], reading again only what has changed.
pub(crate) async fn load(
    dir: &Path,
    engine: &ScriptEngine,
    known: &mut Known,
) -> Result<LoadedScripts, LoadError> {
    let failed = |source| LoadError {
        path: dir.to_owned(),
        source,
    };
    let most = engine.limits().source;
    let path = dir.to_owned();
    let files = folder::aside(move || folder::read(&path, most))
        .await
        .and_then(|read| read)
        .map_err(failed)?;
    let mut loaded = LoadedScripts::default();
    let mut owners: HashMap<String, String> = HashMap::new();
    let mut kept = Known::new();
    for Found { path, file, text } in files {
        let result = match text {
            Err(why) => Err(ScriptError::new(ScriptErrorKind::Module, why)),
            Ok(text) => {
                let result = match known.remove(&file) {
                    Some((before, result)) if *before == *text => (before, result),
                    _ => {
                        let text: Arc<str> = text.into();
                        let read =
                            ScriptTool::from_source(engine, file.as_str(), Arc::clone(&text)).await;
                        (text, read.map(Arc::new))
                    }
                };
                // What failed for want of time or room may be well the next time.
                if !matches!(&result.1, Err(e) if matches!(e.kind, ScriptErrorKind::Time | ScriptErrorKind::Engine))
                {
                    kept.insert(file.clone(), result.clone());
                }
                result.1
            }
        };
        let result = result.and_then(|tool| {
            let name = yiem_core::Tool::definition(&*tool).name.clone();
            match owners.get(&name) {
                Some(owner) => Err(ScriptError::new(
                    ScriptErrorKind::Module,
                    format!("its tool is named {name:?}, as the tool of {owner} is"),
                )),
                None => {
                    owners.insert(name, file);
                    Ok(tool)
                }
            }
        });
        match result {
            Ok(tool) => loaded.tools.push(tool),
            Err(error) => loaded.problems.push(ScriptProblem { path, error }),
        }
    }
    *known = kept;
    Ok(loaded)
}

#[cfg(test)]
mod tests;
