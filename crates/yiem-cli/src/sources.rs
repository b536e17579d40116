//! Where the tools come from: servers, directories, the demonstration.
//!
//! Knows: how flags become tool sources. Does not know: agents.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use yiem::mcp::{
    ClientKey, Elicit, FileTokenStore, LoopbackConsent, McpConfig, McpError, McpServer,
    OAuthConfig, ToolServer,
};
use yiem::script::{ScriptEngine, ScriptTools};
use yiem::tools::{CatalogNotice, SourceState, SourceStatus, ToolCatalog};
use yiem::{Env, IntoToolSource, SystemEnv, Tool, ToolSource};

use crate::args::{OAuthChoice, Shared};
use crate::demo;
use crate::failure::Failure;
use crate::screen::on_one_line;

/// Whether anything was given that tools could come from.
pub(crate) fn are_given(shared: &Shared) -> bool {
    !(shared.mcp.is_empty() && shared.mcp_config.is_empty() && shared.tool_dirs.is_empty())
}

/// The MCP servers of `--mcp` and `--mcp-config`, in the order in which they were given.
///
/// An entry of a file that cannot be used is told of on standard error, and the others stand.
pub(crate) fn servers(shared: &Shared) -> Result<Vec<McpServer>, Failure> {
    let mut servers = Vec::new();
    for spec in &shared.mcp {
        servers.push(
            McpServer::from_spec(spec)
                .map_err(|error| Failure::usage(format!("--mcp: {}", error.kind())))?,
        );
    }
    for path in &shared.mcp_config {
        let name = path.display();
        let text = fs::read_to_string(path).map_err(|error| {
            Failure::usage(format!("--mcp-config: {name} could not be read: {error}"))
        })?;
        let config = McpConfig::from_json(&text)
            .map_err(|error| Failure::usage(format!("--mcp-config {name}: {}", error.kind())))?;
        for (_, problem) in &config.problems {
            warn(&format!("--mcp-config {name}: {problem}"));
        }
        if config.servers.is_empty() && config.problems.is_empty() {
            warn(&format!(
                "--mcp-config {name}: it names no server that is switched on"
            ));
        }
        servers.extend(config.servers);
    }
    servers
        .into_iter()
        .map(|server| authorized(server, shared))
        .collect()
}

/// How long a person may take in the browser.
const CONSENT: Duration = Duration::from_secs(300);

/// A server over HTTP without a token of its own, as `--oauth` says.
fn authorized(server: McpServer, shared: &Shared) -> Result<McpServer, Failure> {
    let Some(choice) = shared.oauth.filter(|_| server.could_use_oauth()) else {
        return Ok(server);
    };
    let secret = match &shared.oauth_secret_env {
        None => None,
        Some(name) => Some(env::var(name).map_err(|_| {
            Failure::usage(format!(
                "--oauth-secret-env: the variable {name} is not set"
            ))
        })?),
    };
    let name = server.key();
    let mut config = match (choice, &shared.oauth_client_id, secret) {
        (OAuthChoice::Browser, id, secret) => {
            let consent = LoopbackConsent::bind_now(move |url| {
                warn(&format!("{name} wants you to agree in a browser: {url}"));
            })
            .map_err(Failure::new)?;
            let mut config = OAuthConfig::new(Arc::new(consent));
            if let Some(id) = id {
                config = config.client_id(id);
            }
            if let Some(secret) = secret {
                config = config.client_secret(secret);
            }
            if let Some(folder) = token_folder() {
                config = config.token_store(Arc::new(FileTokenStore::new(folder)));
            }
            config
        }
        (OAuthChoice::Client, Some(id), Some(secret)) => {
            OAuthConfig::client_credentials(id, secret)
        }
        (OAuthChoice::Client, Some(id), None) if shared.oauth_key_file.is_some() => {
            OAuthConfig::client_credentials_with_key(id, client_key(shared)?)
        }
        (OAuthChoice::Client, ..) => {
            return Err(Failure::usage(
                "--oauth client needs --oauth-client-id ID, and --oauth-secret-env VARIABLE or \
                 --oauth-key-file FILE",
            ));
        }
    };
    if !shared.oauth_scopes.is_empty() {
        config = config.scopes(shared.oauth_scopes.clone());
    }
    let server = server.oauth(config);
    Ok(match choice {
        OAuthChoice::Browser => server.connect_timeout(CONSENT).probe_timeout(CONSENT),
        OAuthChoice::Client => server,
    })
}

/// The key of `--oauth-key-file`.
fn client_key(shared: &Shared) -> Result<ClientKey, Failure> {
    let path = shared.oauth_key_file.as_deref().unwrap_or(Path::new(""));
    let wrong = |why: String| Failure::usage(format!("--oauth-key-file {}: {why}", path.display()));
    let pem = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let mut key = ClientKey::from_pem(&pem).map_err(|error| wrong(error.kind().to_string()))?;
    if let Some(id) = &shared.oauth_key_id {
        key = key.key_id(id);
    }
    Ok(key)
}

/// `$XDG_STATE_HOME/yiem/tokens`, else below the home directory.
fn token_folder() -> Option<PathBuf> {
    let state = match env::var_os("XDG_STATE_HOME").filter(|value| !value.is_empty()) {
        Some(state) => PathBuf::from(state),
        None => PathBuf::from(env::var_os("HOME")?).join(".local/state"),
    };
    Some(state.join("yiem/tokens"))
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
        let is_made = shared.allow_write_tools && sources.is_empty();
        refuse_no_folder(path, is_made)?;
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
        if is_made {
            source = source.allow_writing();
        }
        sources.push(source);
    }
    Ok(sources)
}

/// A folder that is not there is wrong use, unless the model may write tools, who then makes it.
fn refuse_no_folder(path: &Path, is_made: bool) -> Result<(), Failure> {
    let name = path.display();
    match fs::metadata(path) {
        Ok(kind) if kind.is_dir() => Ok(()),
        Ok(_) => Err(Failure::usage(format!(
            "--tools: {name} is no folder; give the folder that the .js files stand in"
        ))),
        Err(error) if is_made && error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::usage(format!(
            "--tools: the folder {name} could not be read: {error}"
        ))),
    }
}

/// All sources of tools: these servers first, then the given directories.
/// `person` is asked when a server asks one.
pub(crate) fn sources(
    servers: Vec<McpServer>,
    shared: &Shared,
    person: Option<Arc<dyn Elicit>>,
) -> Result<Vec<Arc<dyn ToolSource>>, Failure> {
    let env: Arc<dyn Env> = SystemEnv::shared();
    let mut sources: Vec<Arc<dyn ToolSource>> = Vec::new();
    for mut server in servers {
        if let Some(person) = &person {
            server = server.elicit(Arc::clone(person));
        }
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

/// What went wrong with the catalog's sources and with each of their tools, one line each on
/// standard error. How many sources could not be loaded.
pub(crate) fn tell_failures(catalog: &ToolCatalog) -> usize {
    let failed = tell_failed(catalog, |_| true);
    for notice in catalog.take_notices() {
        if let CatalogNotice::Quarantined(_) | CatalogNotice::Warning { .. } = notice {
            warn(&notice.to_string());
        }
    }
    failed
}

/// The same before a single call: servers that failed, and one's own files one by one. Of servers'
/// tools nothing is said.
pub(crate) fn tell_before_a_call(catalog: &ToolCatalog) {
    tell_failed(catalog, |_| true);
    tell_own(catalog);
}

/// The same before a run, which ends by itself where it cannot do without a source: of servers'
/// tools only how many cannot be offered.
pub(crate) fn tell_before_a_run(catalog: &ToolCatalog) {
    tell_failed(catalog, |status| !status.required);
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    for notice in tell_own(catalog) {
        if let CatalogNotice::Quarantined(tool) = notice {
            let source = tool.source.key().unwrap_or("-").to_owned();
            *left_out.entry(source).or_default() += 1;
        }
    }
    for (source, tools) in left_out {
        let what = match tools {
            1 => "1 tool".to_owned(),
            n => format!("{n} tools"),
        };
        warn(&format!(
            "{what} of {source} cannot be offered; `yiem tools` with the same options says why"
        ));
    }
}

/// Tells what is odd about one's own files, and gives what there is to tell of servers.
fn tell_own(catalog: &ToolCatalog) -> Vec<CatalogNotice> {
    let own: Vec<Arc<str>> = (catalog.sources().into_iter())
        .filter(|status| status.own)
        .map(|status| status.name)
        .collect();
    let mut others = Vec::new();
    for notice in catalog.take_notices() {
        let source = match &notice {
            CatalogNotice::Quarantined(tool) => tool.source.key(),
            CatalogNotice::Warning { source, .. } => Some(&**source),
            _ => continue,
        };
        if source.is_some_and(|source| own.iter().any(|own| **own == *source)) {
            warn(&notice.to_string());
        } else {
            others.push(notice);
        }
    }
    others
}

/// One line for each source that could not be loaded, if it is to be told. How many there are.
fn tell_failed(catalog: &ToolCatalog, is_told: impl Fn(&SourceStatus) -> bool) -> usize {
    let mut failed = 0;
    for status in catalog.sources() {
        let SourceState::Failed { error } = &status.state else {
            continue;
        };
        failed += 1;
        if !is_told(&status) {
            continue;
        }
        // A server's own error names it, and says more to a person than to a model.
        let cause = error.cause.as_ref();
        warn(
            &match cause.and_then(|cause| cause.downcast_ref::<McpError>()) {
                Some(error) => error.to_string(),
                None if error.message.contains(&error.source_name) => error.message.clone(),
                None => error.to_string(),
            },
        );
    }
    failed
}

/// A line on standard error about something that does not stop the command.
pub(crate) fn warn(text: &str) {
    // Whoever closed standard error does not want to know.
    let _ = writeln!(io::stderr(), "yiem: {}", on_one_line(text, 2000));
}
