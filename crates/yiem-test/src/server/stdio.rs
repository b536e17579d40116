//! A fake server on standard input and output; run as a process of its own.

use super::script::{Act, FakeMcpServer, Play, argument_text, fill, reply, text_result};
use base64::Engine as _;
use serde_json::Value;
use std::io::{BufRead as _, Write as _};
use std::time::Duration;

/// Plays a script on this process's standard input and output, until its input ends.
///
/// For the `main` of a test's server process; it may end the process, as the script says. Sleeping and
/// answering are done in order, as a server of one thread does.
pub fn serve_stdio(script: FakeMcpServer) {
    let mut play = Play::new(script);
    let mut server = Server {
        gathered: Vec::new(),
        asking: Vec::new(),
        closed: false,
    };
    for act in play.first() {
        server.act(&act, &Value::Null, &play.seen);
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        server.answered(&message);
        for act in play.meet(&message) {
            if !server.act(&act, &message, &play.seen) {
                break;
            }
        }
    }
}

struct Server {
    gathered: Vec<Value>,
    /// The requests that wait for an answer of the client to a question, each under the question's id.
    asking: Vec<(String, Value)>,
    closed: bool,
}

impl Server {
    /// Does one thing; false when the request is done with.
    fn act(&mut self, act: &Act, message: &Value, seen: &[Value]) -> bool {
        match act {
            Act::Reply(result) => self.line(&reply(message, result)),
            Act::Seen => self.line(&reply(
                message,
                &text_result(&Value::from(seen.to_vec()).to_string()),
            )),
            Act::Pid => self.line(&reply(
                message,
                &text_result(&std::process::id().to_string()),
            )),
            Act::Echo => self.line(&reply(message, &text_result(argument_text(message)))),
            Act::Raw(text) => self.line(&fill(text, message)),
            Act::Flood(times, text) => {
                for _ in 0..*times {
                    self.line(&fill(text, message));
                }
            }
            Act::Bytes(encoded) => {
                let bytes = base64::engine::general_purpose::STANDARD
                    .decode(encoded)
                    .unwrap_or_default();
                self.write(&bytes);
            }
            Act::Drip(text, millis) => {
                for byte in fill(text, message).bytes() {
                    self.write(&[byte]);
                    std::thread::sleep(Duration::from_millis(*millis));
                }
            }
            Act::Huge(size) => self.line(&reply(message, &text_result(&"x".repeat(*size)))),
            Act::Stderr(text) => {
                let _ = writeln!(std::io::stderr(), "{text}");
            }
            Act::Sleep(millis) => std::thread::sleep(Duration::from_millis(*millis)),
            Act::Ask(question) => {
                let id = format!("question of {}", message["id"]);
                let mut asked = question.clone();
                asked["jsonrpc"] = "2.0".into();
                asked["id"] = id.as_str().into();
                self.asking.push((id, message.clone()));
                self.line(&asked.to_string());
                return false;
            }
            Act::Hang => return false,
            Act::Exit(status) => std::process::exit(*status),
            Act::Kill => {
                let _ = std::process::Command::new("kill")
                    .args(["-9", &std::process::id().to_string()])
                    .status();
                std::thread::sleep(Duration::from_secs(60));
            }
            Act::CloseOutput => self.closed = close_output(),
            Act::Gather(count) => {
                self.gathered.push(message.clone());
                if self.gathered.len() == *count {
                    for message in std::mem::take(&mut self.gathered).iter().rev() {
                        let text = argument_text(message);
                        self.line(&reply(message, &text_result(text)));
                    }
                }
                return false;
            }
            Act::Http(_, _, body) => self.line(&fill(body, message)),
            Act::Wire(text) => self.write(fill(text, message).as_bytes()),
        }
        true
    }

    /// Takes the client's answer to a question: the request that waits for it is answered with it.
    fn answered(&mut self, message: &Value) {
        if message.get("method").is_some() {
            return;
        }
        let at = self.asking.iter().position(|(id, _)| message["id"] == **id);
        if let Some((_, asked)) = at.map(|at| self.asking.remove(at)) {
            let mut answer = message.clone();
            if let Some(answer) = answer.as_object_mut() {
                answer.remove("jsonrpc");
                answer.remove("id");
            }
            self.line(&reply(&asked, &text_result(&answer.to_string())));
        }
    }

    fn line(&mut self, text: &str) {
        self.write(format!("{text}\n").as_bytes());
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.closed {
            return;
        }
        let mut out = std::io::stdout().lock();
        if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
            std::process::exit(0);
        }
    }
}

/// Gives up standard output: the pipe that it was is closed with it.
fn close_output() -> bool {
    let Ok(nowhere) = std::fs::File::options().write(true).open("/dev/null") else {
        return false;
    };
    nix::unistd::dup2_stdout(nowhere).is_ok()
}
