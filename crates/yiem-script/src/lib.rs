//! Tools made of JavaScript files, and the tool that writes them (T-6, T-7).
//!
//! - [`load_tools`] gives the tools of a folder; [`ScriptTools`] is such a folder as a source of
//!   an agent's tools, with [`WriteTool`] where the model may write its own.
//! - [`ScriptTool`] is one such tool: a JavaScript module that exports `tool` and `execute`.
//! - [`ScriptEngine`] runs them: each call in a QuickJS runtime of its own, on a thread of its
//!   own, within [`ScriptLimits`], with nothing to reach but what [`ScriptGrants`] names.
//!
//! What a script sees, what it may use, and what is promised of one that never yields, stands in
//! `docs/scripts.md`. The feature `fetch` (off by default) adds `host.fetch`. The contracts are
//! those of [`yiem_core`], which is at hand as `yiem_script::yiem_core`. A runtime of tokio has to
//! be there.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! use yiem_script::yiem_core::{SystemEnv, Tool};
//! use yiem_script::{ScriptEngine, load_tools};
//!
//! let dir = "tools";
//! # let folder = tempfile::tempdir().unwrap();
//! # let dir = folder.path();
//! # std::fs::write(dir.join("greet.js"), "export const tool = { name: 'greet' };\nexport function execute(args) { return `Hello, ${args.who}!`; }").unwrap();
//! # std::fs::write(dir.join("oops.js"), "export const tool = ;").unwrap();
//! let engine = ScriptEngine::new(SystemEnv::shared());
//! let loaded = load_tools(dir, &engine).await?;
//! assert_eq!(loaded.tools[0].definition().name, "greet");
//! // A bad file is told with its line, and the others load.
//! assert!(loaded.problems[0].to_string().contains("oops.js:1:"));
//! # Ok::<(), yiem_script::LoadError>(())
//! # }).unwrap();
//! ```

pub use yiem_core;

mod engine;
mod error;
#[cfg(feature = "fetch")]
mod fetch;
mod folder;
mod json;
mod limits;
mod load;
mod name;
mod render;
mod sandbox;
mod source;
mod tool;
mod worker;
mod write;

pub use engine::ScriptEngine;
pub use error::{ScriptError, ScriptErrorKind, ScriptPlace};
#[cfg(feature = "fetch")]
pub use fetch::{CertificateError, FetchGrant, FetchGrantError};
pub use limits::{ScriptGrants, ScriptLimits};
pub use load::{LoadError, LoadedScripts, ScriptProblem, load_tools};
pub use source::ScriptTools;
pub use tool::ScriptTool;
pub use write::WriteTool;
