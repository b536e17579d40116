//! Real servers on loopback, for tests.
//!
//! Knows: where `cargo xtask setup` put them, when live tests run, how a server is waited for
//! and ended.
//! Does not know: what a server is asked.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How long a server may take until it answers: Python's imports alone take seconds on a busy
/// machine.
const START_LIMIT: Duration = Duration::from_secs(60);

/// How many of a server's last lines are kept for the message of a test that fails.
const KEPT_LINES: usize = 40;

/// The servers, when live tests are asked for (`YIEM_LIVE=1`, or unset in CI); else `None`, and
/// one line that says that `test` was skipped. `YIEM_LIVE=0` is a no, also in CI: `cargo xtask
/// test` leaves these tests to `cargo xtask live`.
#[must_use]
pub fn live(test: &str) -> Option<Servers> {
    let said = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let asked = said("YIEM_LIVE").or_else(|| said("CI"));
    if asked.is_some_and(|value| value != "0") {
        return Some(Servers::new());
    }
    println!("{test}: skipped, since YIEM_LIVE is not set (`cargo xtask live` sets it)");
    None
}

/// The folder of test servers: `YIEM_SERVERS`, else `target/servers` of the workspace.
#[derive(Clone, Debug)]
pub struct Servers(PathBuf);

impl Servers {
    /// The folder as the environment says.
    #[must_use]
    pub fn new() -> Self {
        match std::env::var_os("YIEM_SERVERS") {
            Some(folder) => Self(folder.into()),
            None => Self(Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/servers")),
        }
    }

    /// A file of a server, say `nats/bin/nats-server`.
    ///
    /// # Panics
    ///
    /// When it is not there, with the command that fetches it.
    #[must_use]
    pub fn file(&self, path: &str) -> PathBuf {
        let file = self.0.join(path);
        assert!(
            file.exists(),
            "{} is not there: run `cargo xtask setup`",
            file.display()
        );
        file
    }

    /// A command that runs the script or module of an npm package under `node`.
    #[must_use]
    pub fn node(&self, script: &str) -> Command {
        let mut command = Command::new("node");
        command.arg(self.file(script));
        command
    }
}

impl Default for Servers {
    fn default() -> Self {
        Self::new()
    }
}

/// A server that a test started. Dropping it ends it.
#[derive(Debug)]
pub struct RunningServer {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl RunningServer {
    /// Starts `command` and waits until something accepts connections on `port` of loopback.
    ///
    /// # Panics
    ///
    /// When it cannot be started, ends early or does not listen in a minute; the message has its
    /// last lines.
    #[must_use]
    pub fn listening(command: &mut Command, port: u16) -> Self {
        let mut server = Self::start(command);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let steps = START_LIMIT.as_millis() / 50;
        for _ in 0..steps {
            if TcpStream::connect_timeout(&address, Duration::from_millis(500)).is_ok() {
                return server;
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                panic!(
                    "{command:?} ended with {status} before it listened:\n{}",
                    server.last_lines()
                );
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!(
            "{command:?} does not listen on {address}:\n{}",
            server.last_lines()
        );
    }

    /// Starts `command` without waiting for anything.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        let lines = Arc::new(Mutex::new(Vec::new()));
        if let Some(stdout) = child.stdout.take() {
            keep_last_lines(stdout, Arc::clone(&lines));
        }
        if let Some(stderr) = child.stderr.take() {
            keep_last_lines(stderr, Arc::clone(&lines));
        }
        Self { child, lines }
    }

    /// What it said last, for the message of a test that fails.
    #[must_use]
    pub fn last_lines(&self) -> String {
        self.lines
            .lock()
            .map(|lines| lines.join("\n"))
            .unwrap_or_default()
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// A port of loopback that was free a moment ago.
    ///
    /// # Panics
    ///
    /// When loopback has no free port.
    #[must_use]
    pub fn free_port() -> u16 {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port on loopback");
        listener.local_addr().expect("a bound address").port()
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        if let Err(error) = ended {
            println!("a test server could not be ended: {error}");
        }
    }
}

/// Reads to the end, so that no server waits for a full pipe.
fn keep_last_lines(output: impl std::io::Read + Send + 'static, lines: Arc<Mutex<Vec<String>>>) {
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Ok(mut lines) = lines.lock() {
                if lines.len() == KEPT_LINES {
                    lines.remove(0);
                }
                lines.push(line);
            }
        }
    });
}

#[cfg(test)]
mod tests;
