//! Where the tools come from: servers, directories, the demonstration.
//!
//! Knows: how flags become tool sources. Does not know: agents.

use std::fs;
use std::io::{self, Write};
use std::sync::Arc;

use yiem::mcp::{McpConfig, McpServer, ToolServer};
use yiem::script::{ScriptEngine, ScriptTools};
use yiem::tools::{CatalogNotice, SourceState, ToolCatalog};
use yiem::{Env, IntoToolSource, SystemEnv, Tool, ToolSource};

use crate::args::Shared;
use crate::demo;
use crate::failure::Failure;
use crate::screen::on_one_line;

/// The MCP servers of `--mcp` and `--mcp-config`, in the order in which they were given.
///
/// An entry of a file that cannot be used is told of on standard error, and the others stand.
pub(crate) fn servers(shared: &Shared) -> Result<Vec<McpServer>, Failure> {
    let mut servers = Vec::new();
    for spec in &shared.mcp {
        servers.push(
            McpServer::from_spec(spec)
                .map_err(|error| Failure::usage(format!("--mcp: {error}")))?,
        );
    }
    for path in &shared.mcp_config {
        let name = path.display();
        let text = fs::read_to_string(path).map_err(|error| {
            Failure::usage(format!("--mcp-config: {name} could not be read: {error}"))
        })?;
        let config = McpConfig::from_json(&text)
            .map_err(|error| Failure::usage(format!("--mcp-config {name}: {error}")))?;
        for (_, problem) in &config.problems {
            warn(&format!("--mcp-config {name}: {problem}"));
        }
        servers.extend(config.servers);
    }
    Ok(servers)
}

/// The directories of `--tools`, each as a source; the first one may be written to if that was
/// allowed.
fn directories(shared: &Shared) -> Result<Vec<ScriptTools>, Failure> {
    if shared.allow_write_tools && shared.tool_dirs.is_empty() {
        return Err(Failure::usage(
            "--allow-write-tools needs a directory to write to: --tools DIR",
        ));
    }
    let engine = ScriptEngine::new(SystemEnv::shared());
    let mut names: Vec<String> = Vec::new();
    let mut sources = Vec::new();
    for path in &shared.tool_dirs {
        let name = path
            .file_name()
            .map_or("tools".into(), |name| name.to_string_lossy().into_owned());
        let count = names.iter().filter(|known| **known == name).count();
        names.push(name.clone());
        let name = if count == 0 {
            name
        } else {
            format!("{name}-{}", count + 1)
        };
        let mut source = ScriptTools::new(path, engine.clone()).named(name);
        if shared.allow_write_tools && sources.is_empty() {
            source = source.allow_writing();
        }
        sources.push(source);
    }
    Ok(sources)
}

/// All sources of tools that were given: servers first, then directories.
pub(crate) fn sources(shared: &Shared) -> Result<Vec<Arc<dyn ToolSource>>, Failure> {
    let env: Arc<dyn Env> = SystemEnv::shared();
    let mut sources: Vec<Arc<dyn ToolSource>> = Vec::new();
    for server in servers(shared)? {
        sources.push(
            server
                .into_tool_source(&env)
                .map_err(|error| Failure::usage(format!("--mcp: {error}")))?,
        );
    }
    for directory in directories(shared)? {
        sources.push(Arc::new(directory));
    }
    Ok(sources)
}

/// The demonstration's own tool, and its server.
pub(crate) fn demonstration() -> (impl Tool, McpServer) {
    let server = ToolServer::new("demo", SystemEnv::shared()).tool(demo::GetWeather::new());
    (demo::GetTime::new(), McpServer::in_process(server))
}

/// What went wrong with the catalog's sources, one line each on standard error. How many of them
/// could not be loaded.
pub(crate) fn tell_failures(catalog: &ToolCatalog) -> usize {
    let mut failed = 0;
    for status in catalog.sources() {
        if let SourceState::Failed { error } = &status.state {
            failed += 1;
            // Most errors name their source themselves.
            let named = error.message.contains(&error.source_name);
            warn(&if named {
                error.message.clone()
            } else {
                error.to_string()
            });
        }
    }
    for notice in catalog.take_notices() {
        match notice {
            CatalogNotice::Quarantined(_) | CatalogNotice::Warning { .. } => {
                warn(&notice.to_string())
            }
            _ => {}
        }
    }
    failed
}

/// A line on standard error about something that does not stop the command.
pub(crate) fn warn(text: &str) {
    // Whoever closed standard error does not want to know.
    let _ = writeln!(io::stderr(), "yiem: {}", on_one_line(text, 2000));
}
