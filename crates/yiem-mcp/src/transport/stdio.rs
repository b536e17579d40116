//! A server that is a child process: one JSON message a line on its standard input and output.
//!
//! Knows: process groups, pipes, last words, a polite end and an impolite one.
//! Does not know: MCP's methods, deadlines, starting again.

#[cfg(not(unix))]
compile_error!(
    "the feature `stdio` of yiem-mcp needs Unix: it ends servers by their process group"
);

mod link;
mod outgoing;
mod process;

use super::{Exchange, Inbox, Notice, Response, Transport, TransportProfile};
use crate::error::McpError;
use crate::jsonrpc::{Answer, RequestId};
use async_trait::async_trait;
use process::Running;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use yiem_core::Env;

/// What a process inherits of our environment: enough to be found and to run, no secrets (M-2).
const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// How a server process is started.
#[derive(Clone)]
pub struct StdioConfig {
    command: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    inherited: Vec<String>,
    cwd: Option<PathBuf>,
    max_message: usize,
}

impl StdioConfig {
    /// A command with its arguments; no shell is in between.
    pub fn new<A: Into<String>>(
        command: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            inherited: INHERITED.iter().map(|name| (*name).to_owned()).collect(),
            cwd: None,
            max_message: 32 << 20,
        }
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Lets it inherit one more variable of our environment.
    #[must_use]
    pub fn inherit(mut self, key: impl Into<String>) -> Self {
        self.inherited.push(key.into());
        self
    }

    /// Sets its working directory.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cwd = Some(directory.into());
        self
    }

    /// The longest message that is read, in bytes. Default 32 MiB (M-8).
    #[must_use]
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// A key made from the command: its last part, for runners of packages that of the package.
    pub(crate) fn default_name(&self) -> String {
        let base = |text: &str| text.rsplit(['/', '\\']).next().unwrap_or(text).to_owned();
        let command = base(&self.command);
        if !matches!(
            command.as_str(),
            "npx" | "bunx" | "uvx" | "pipx" | "node" | "python" | "python3" | "deno"
        ) {
            return command;
        }
        let mut args = self
            .args
            .iter()
            .filter(|arg| !arg.starts_with('-') && *arg != "run" && *arg != "exec");
        let Some(package) = args.next() else {
            return command;
        };
        let name = base(package);
        // A version after the name is no part of it.
        let name = name
            .split_once('@')
            .map_or(name.as_str(), |(before, _)| before);
        if name.is_empty() {
            command
        } else {
            name.to_owned()
        }
    }
}

impl fmt::Debug for StdioConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<&str> = self.env.iter().map(|(key, _)| key.as_str()).collect();
        f.debug_struct("StdioConfig")
            .field("command", &self.command)
            .field("args", &self.args.len())
            .field("env", &keys)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// A server that is a child process (M-2).
///
/// It runs in a process group of its own; its standard error is always read, and the last of it is told
/// in errors. Closing ends its input, waits 2 s, sends TERM to the group, waits 1 s, sends KILL. Dropping
/// sends KILL at once. Should this process itself be killed, a watcher ends the group.
pub struct StdioTransport {
    config: StdioConfig,
    env: Arc<dyn Env>,
    running: Mutex<Option<Arc<Running>>>,
}

impl StdioTransport {
    /// A process that is not started yet.
    #[must_use]
    pub fn new(config: StdioConfig, env: Arc<dyn Env>) -> Self {
        Self {
            config,
            env,
            running: Mutex::new(None),
        }
    }

    fn running(&self) -> Result<Arc<Running>, McpError> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running
            .clone()
            .ok_or_else(|| McpError::not_sent("the server's process is not running"))
    }
}

fn written(exchange: Exchange) -> (RequestId, Vec<u8>) {
    let line = exchange.body();
    (exchange.id, line)
}

impl fmt::Debug for StdioTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioTransport")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for StdioTransport {
    fn profile(&self) -> TransportProfile {
        TransportProfile::detecting()
    }

    async fn open(&self, inbox: Inbox) -> Result<(), McpError> {
        let old = self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(old);
        let running = Running::start(&self.config, inbox, Arc::clone(&self.env))?;
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(running));
        Ok(())
    }

    async fn exchange(&self, exchange: Exchange) -> Result<Answer, McpError> {
        let link = Arc::clone(self.running()?.link());
        // What is on its way is the line alone: the rest of the request is not held while it waits.
        let (id, line) = written(exchange);
        link.exchange(&id, line).await
    }

    async fn notify(&self, notice: Notice) -> Result<(), McpError> {
        let link = Arc::clone(self.running()?.link());
        link.write(notice.body()).await
    }

    async fn respond(&self, response: Response) -> Result<(), McpError> {
        let link = Arc::clone(self.running()?.link());
        link.write(response.body()).await
    }

    fn trouble(&self, _: &str, _: std::time::Duration) -> Option<String> {
        self.running().ok()?.link().stray_note()
    }

    async fn close(&self) {
        let running = self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(running) = running {
            running.end(&*self.env).await;
        }
    }
}
