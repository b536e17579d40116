//! Brokers, and servers on nats-py.

use std::path::PathBuf;
use std::process::Command;
use yiem_tests::{RunningServer, Servers};

/// A nats-server on loopback, with a configuration that outlives it: it can be started again.
pub(super) struct Broker {
    servers: Servers,
    running: Option<RunningServer>,
    pub(super) port: u16,
    pub(super) folder: tempfile::TempDir,
}

impl Broker {
    /// One without any configuration.
    pub(super) fn start(servers: &Servers) -> Self {
        Self::with_config(servers, "")
    }

    /// One with these lines in its configuration.
    pub(super) fn with_config(servers: &Servers, lines: &str) -> Self {
        Self::with_config_at(servers, RunningServer::free_port(), lines)
    }

    pub(super) fn with_config_at(servers: &Servers, port: u16, lines: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut broker = Self {
            servers: servers.clone(),
            running: None,
            port,
            folder,
        };
        broker.configure(lines);
        broker.up();
        broker
    }

    pub(super) fn configure(&self, lines: &str) {
        let text = format!("listen: \"127.0.0.1:{}\"\n{lines}\n", self.port);
        std::fs::write(self.config(), text).expect("the configuration is written");
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("nats.conf")
    }

    pub(super) fn up(&mut self) {
        let mut command = Command::new(self.servers.file("nats/bin/nats-server"));
        command.arg("-c").arg(self.config());
        self.running = Some(RunningServer::listening(&mut command, self.port));
    }

    /// Kills it.
    pub(super) fn down(&mut self) {
        self.running = None;
    }

    pub(super) fn address(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The address of a server at that subject, with options.
    pub(super) fn url(&self, rest: &str) -> String {
        format!("{}/{rest}", self.address())
    }
}

/// A server written on nats-py, in one of its modes.
pub(super) async fn responder(
    servers: &Servers,
    broker: &Broker,
    subject: &str,
    mode: &str,
) -> RunningServer {
    responder_at(servers, &broker.address(), subject, mode, None).await
}

pub(super) async fn responder_at(
    servers: &Servers,
    url: &str,
    subject: &str,
    mode: &str,
    token: Option<&str>,
) -> RunningServer {
    let mut command = python(servers, "nats_responder.py");
    command.args([url, subject, mode]).args(token);
    let server = RunningServer::start(&mut command);
    super::until("the responder is ready", || {
        server.last_lines().lines().any(|line| line == "ready")
    })
    .await;
    server
}

/// A command that runs a script of `tests/servers` with nats-py.
pub(super) fn python(servers: &Servers, script: &str) -> Command {
    let mut command = Command::new(servers.file("nats-py/bin/python"));
    command.arg(
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("servers")
            .join(script),
    );
    command
}
