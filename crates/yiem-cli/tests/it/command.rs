//! Calls the binary, and waits for it no longer than a test may take.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The longest that a call may take.
const PATIENCE: Duration = Duration::from_secs(100);

/// What a call came to.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    /// Holds the call to an exit code.
    #[track_caller]
    pub(crate) fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// The one line on standard error.
    #[track_caller]
    pub(crate) fn only_line(&self) -> &str {
        let lines: Vec<&str> = self.err.lines().collect();
        assert_eq!(lines.len(), 1, "{self:#?}");
        lines[0]
    }
}

/// The binary, with an environment that chooses no endpoint.
pub(crate) fn yiem<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_yiem"));
    command.args(args).stdin(Stdio::null());
    for name in [
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_MODEL",
        "NO_COLOR",
        "http_proxy",
        "HTTP_PROXY",
    ] {
        command.env_remove(name);
    }
    command
}

/// Calls it with these arguments and gives what it came to.
#[track_caller]
pub(crate) fn call<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Done {
    finish(yiem(args))
}

/// The same with a text on standard input.
#[track_caller]
pub(crate) fn call_with_input<S: AsRef<OsStr>>(
    args: impl IntoIterator<Item = S>,
    input: &str,
) -> Done {
    let mut command = yiem(args);
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    let mut pipe = running.child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = thread::spawn(move || {
        // A command that does not read its input may be gone already.
        let _ = pipe.write_all(input.as_bytes());
    });
    let done = running.wait();
    writer.join().unwrap();
    done
}

/// Waits for a command's end.
#[track_caller]
pub(crate) fn finish(command: Command) -> Done {
    Running::start(command).wait()
}

/// A command that runs; killed when it is dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    out: mpsc::Receiver<String>,
    err: mpsc::Receiver<String>,
    err_lines: Option<mpsc::Receiver<String>>,
}

impl Running {
    #[track_caller]
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (told, lines) = mpsc::channel();
        let out = reader(child.stdout.take().unwrap(), None);
        let err = reader(child.stderr.take().unwrap(), Some(told));
        Self {
            child,
            out,
            err,
            err_lines: Some(lines),
        }
    }

    /// The next line of standard error that holds this text.
    #[track_caller]
    pub(crate) fn line_with(&self, text: &str) -> String {
        let lines = self.err_lines.as_ref().unwrap();
        loop {
            let line = lines
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("no line with {text:?}"));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Sends a signal, such as `INT`.
    #[track_caller]
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill")
            .args(["-s", name, &id])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    #[track_caller]
    pub(crate) fn wait(mut self) -> Done {
        let out = self.out.recv_timeout(PATIENCE);
        let err = self.err.recv_timeout(PATIENCE);
        let (Ok(out), Ok(err)) = (out, err) else {
            panic!("the command did not end within {PATIENCE:?}");
        };
        let status: ExitStatus = self.child.wait().unwrap();
        Done {
            code: status.code(),
            out,
            err,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless its test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reader(
    mut pipe: impl Read + Send + 'static,
    lines: Option<mpsc::Sender<String>>,
) -> mpsc::Receiver<String> {
    let (whole, wait) = mpsc::channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        let mut told = 0;
        let mut piece = [0; 4096];
        while let Ok(n @ 1..) = pipe.read(&mut piece) {
            text.extend_from_slice(&piece[..n]);
            while let Some(end) = text[told..].iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&text[told..told + end]).into_owned();
                told += end + 1;
                if let Some(lines) = &lines {
                    // Nobody may listen.
                    let _ = lines.send(line);
                }
            }
        }
        let _ = whole.send(String::from_utf8(text).expect("output is UTF-8"));
    });
    wait
}
