//! The process itself: its start, its last words, its end.

use super::StdioConfig;
use super::link::{Link, SharedLink};
use super::outgoing::Outgoing;
use crate::error::McpError;
use crate::jsonrpc::LineReader;
use crate::transport::Inbox;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use yiem_core::Env;

/// How long a server has to end after its input has ended.
const EOF_GRACE: Duration = Duration::from_secs(2);
/// How long it has after TERM.
const TERM_GRACE: Duration = Duration::from_secs(1);
/// How long the pipes of a process that has ended are still read: a child of its own may hold them.
const PIPE_GRACE: Duration = Duration::from_millis(300);
/// How much is read at once, at least.
const READ_SIZE: usize = 16 << 10;
/// How much of its standard error is kept.
const LAST_WORDS: usize = 4096;
/// How much of it stands in an error.
const LAST_WORDS_SHOWN: usize = 600;

/// A running server process. Dropping it kills its group.
#[derive(Debug)]
pub(super) struct Running {
    link: SharedLink,
    group: Arc<Group>,
    ended: watch::Receiver<bool>,
    _tasks: JoinSet<()>,
}

/// The process group, until its leader was reaped.
#[derive(Debug)]
struct Group {
    id: Mutex<Option<Pid>>,
}

impl Group {
    fn signal(&self, signal: Signal) {
        let id = self.id.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = *id {
            // A group that is gone is what is wanted.
            let _ = killpg(id, signal);
        }
    }

    /// Kills what is left of the group, once: afterwards its number may belong to others.
    fn finish(&self) {
        let id = self
            .id
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(id) = id {
            let _ = killpg(id, Signal::SIGKILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.group.finish();
    }
}

impl Running {
    pub(super) fn start(
        config: &StdioConfig,
        inbox: Inbox,
        env: Arc<dyn Env>,
    ) -> Result<Self, McpError> {
        // The watcher is there before the server: at no moment is the server without one.
        let watcher = spawn_watcher().ok();
        let leader = watcher.as_ref().and_then(Child::id).and_then(pid);
        let mut child = spawn(config, leader)?;
        let group = Arc::new(Group {
            id: Mutex::new(leader.or_else(|| child.id().and_then(pid))),
        });
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(McpError::unreachable(
                "the process was started without pipes",
            ));
        };
        let outgoing = stdin
            .into_owned_fd()
            .and_then(Outgoing::new)
            .map_err(|error| {
                McpError::unreachable("the pipe to the process cannot be used").with_source(error)
            })?;
        let link = Arc::new(Link::new(
            outgoing,
            inbox,
            config.max_message,
            Arc::clone(&env),
        ));
        let words = Arc::new(Words::default());
        let (ended_sender, ended) = watch::channel(false);
        let mut tasks = JoinSet::new();
        {
            let link = Arc::clone(&link);
            tasks.spawn(async move { link.outgoing().drain().await });
        }
        {
            let words = Arc::clone(&words);
            tasks.spawn(async move { words.drain(stderr).await });
        }
        {
            let life = Life {
                child,
                group: Arc::clone(&group),
                link: Arc::clone(&link),
                words,
                env,
                _watcher: watcher,
            };
            let cap = config.max_message;
            tasks.spawn(async move {
                life.run(stdout, cap).await;
                let _ = ended_sender.send(true);
            });
        }
        Ok(Self {
            link,
            group,
            ended,
            _tasks: tasks,
        })
    }

    pub(super) fn link(&self) -> &SharedLink {
        &self.link
    }

    /// Ends the process: end of input, TERM, KILL, each with its time.
    pub(super) async fn end(&self, env: &dyn Env) {
        self.link.outgoing().close();
        for (grace, signal) in [(EOF_GRACE, Signal::SIGTERM), (TERM_GRACE, Signal::SIGKILL)] {
            if self.has_ended_within(grace, env).await {
                return;
            }
            self.group.signal(signal);
        }
        self.has_ended_within(TERM_GRACE, env).await;
    }

    async fn has_ended_within(&self, time: Duration, env: &dyn Env) -> bool {
        let mut ended = self.ended.clone();
        tokio::select! {
            _ = ended.wait_for(|ended| *ended) => true,
            () = env.sleep(time) => false,
        }
    }
}

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().map(Pid::from_raw)
}

/// Starts the server, in the group of that leader or in one of its own.
fn spawn(config: &StdioConfig, leader: Option<Pid>) -> Result<Child, McpError> {
    if let Some(directory) = &config.cwd
        && !directory.is_dir()
    {
        return Err(McpError::unreachable(format!(
            "cannot start `{}`: its working directory {} does not exist",
            config.command,
            directory.display()
        )));
    }
    let mut command = Command::new(&config.command);
    command
        .args(&config.args)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(leader.map_or(0, Pid::as_raw))
        .kill_on_drop(true);
    for name in &config.inherited {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(config.env.iter().map(|(key, value)| (key, value)));
    if let Some(directory) = &config.cwd {
        command.current_dir(directory);
    }
    command.spawn().map_err(|error| {
        if error.kind() != io::ErrorKind::NotFound {
            let text = format!("cannot start `{}`: {error}", config.command);
            return McpError::unreachable(text).with_source(error);
        }
        let missing = McpError::unreachable(format!(
            "cannot start `{}`: no such command",
            config.command
        ));
        // A command with a path is not looked for.
        if config.command.contains(std::path::MAIN_SEPARATOR) {
            return missing.with_source(error);
        }
        let set = config
            .env
            .iter()
            .rev()
            .find(|(key, _)| key == "PATH")
            .map(|(_, value)| value.clone());
        let path = set
            .or_else(|| std::env::var("PATH").ok())
            .unwrap_or_default();
        missing
            .with_aside(format!("PATH is {path}"))
            .with_source(error)
    })
}

/// A tiny process that leads the server's group and waits for the end of its input, which comes when this
/// process is gone, however it went; then it gives the server two seconds and kills the group.
fn spawn_watcher() -> io::Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", "read _; sleep 2; kill -9 0"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// What one task owns: the process and everything that ends with it.
struct Life {
    child: Child,
    group: Arc<Group>,
    link: SharedLink,
    words: Arc<Words>,
    env: Arc<dyn Env>,
    _watcher: Option<Child>,
}

impl Life {
    async fn run(mut self, stdout: ChildStdout, cap: usize) {
        // A task of its own: a line wakes nothing but the reader.
        let mut reading = JoinSet::new();
        let link = Arc::clone(&self.link);
        reading.spawn(async move { read_lines(stdout, cap, &link).await });
        let status = tokio::select! {
            _ = reading.join_next() => {
                // Its output has ended; it should end too.
                self.link.outgoing().close();
                let status = tokio::select! {
                    status = self.child.wait() => status.ok(),
                    () = self.env.sleep(EOF_GRACE) => None,
                };
                if status.is_none() {
                    self.group.signal(Signal::SIGKILL);
                }
                status
            }
            status = self.child.wait() => {
                tokio::select! {
                    _ = reading.join_next() => {}
                    () = self.env.sleep(PIPE_GRACE) => {}
                }
                status.ok()
            }
        };
        drop(reading);
        self.group.finish();
        if status.is_none() {
            let _ = self.child.wait().await;
        }
        tokio::select! {
            () = self.words.ended() => {}
            () = self.env.sleep(PIPE_GRACE) => {}
        }
        let mut reason = McpError::lost(how_it_ended(status)).with_note(self.words.note());
        if let Some(note) = self.link.stray_note() {
            reason = reason.with_note(note);
        }
        self.link.end(reason);
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.group.finish();
    }
}

fn how_it_ended(status: Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match status {
        None => "the server's process closed its output and was killed".to_owned(),
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("the server's process ended with exit status {code}"),
            (None, Some(signal)) => {
                let name = Signal::try_from(signal).map_or("unknown", Signal::as_str);
                format!("the server's process was ended by signal {signal} ({name})")
            }
            (None, None) => format!("the server's process ended ({status})"),
        },
    }
}

async fn read_lines(mut stdout: impl AsyncRead + Unpin + Send, cap: usize, link: &Link) {
    let mut lines = LineReader::new(cap);
    loop {
        // Room for a whole answer: a read that fills its buffer has to be followed by another.
        lines.buffer().reserve(READ_SIZE);
        match stdout.read_buf(lines.buffer()).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {
                while let Some(line) = lines.next_line() {
                    link.take(line);
                }
            }
        }
    }
    while let Some(line) = lines.finish() {
        link.take(line);
    }
}

/// The last of a process's standard error.
#[derive(Debug, Default)]
struct Words {
    last: Mutex<VecDeque<u8>>,
    ended: tokio::sync::Notify,
    done: std::sync::atomic::AtomicBool,
}

impl Words {
    async fn drain(&self, mut stderr: ChildStderr) {
        let mut buffer = vec![0; 8192];
        loop {
            match stderr.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(read) => {
                    let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                    last.extend(&buffer[..read]);
                    let over = last.len().saturating_sub(LAST_WORDS);
                    last.drain(..over);
                }
            }
        }
        self.done.store(true, std::sync::atomic::Ordering::Release);
        self.ended.notify_waiters();
    }

    async fn ended(&self) {
        let ended = self.ended.notified();
        if !self.done.load(std::sync::atomic::Ordering::Acquire) {
            ended.await;
        }
    }

    fn note(&self) -> String {
        let last: Vec<u8> = self
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .copied()
            .collect();
        let text = String::from_utf8_lossy(&last);
        let text = text.trim();
        if text.is_empty() {
            return String::new();
        }
        let count = text.chars().count();
        let tail: String = text
            .chars()
            .skip(count.saturating_sub(LAST_WORDS_SHOWN))
            .collect();
        let cut = if count > LAST_WORDS_SHOWN { "…" } else { "" };
        let shown: String = tail
            .chars()
            .map(|c| {
                if c == '\n' {
                    '⏎'
                } else if c.is_control() {
                    ' '
                } else {
                    c
                }
            })
            .collect();
        format!("its last words on standard error: {cut}{shown}")
    }
}
