//! `yiem chat`: piped in, and on a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use nix::pty::{Winsize, openpty};

use crate::command::{Running, call_with_input, yiem};
use crate::model_server::{Answer, ModelServer, text, tool_call};

/// A conversation with this server's model.
fn chat_with<'a>(server: &'a ModelServer, more: &[&'a str]) -> Vec<&'a str> {
    let to_server = ["chat", "--base-url", &server.base_url, "--model", "m"];
    [&to_server, more].concat()
}

#[test]
fn lines_that_are_piped_in_are_answered_one_after_another() {
    let input = "weather in Oslo\n\nand in Rome?\n/tools\n/cost\n/undo\n/session\nand there?\n";
    let done = call_with_input(["chat"], input).with_code(0);
    let lines: Vec<&str> = done.out.lines().collect();
    assert_eq!(lines[0], "The weather in Oslo is sunny, 22°C.");
    assert_eq!(lines[1], "The weather in Rome is sunny, 22°C.");
    assert!(done.out.contains("getWeather  demo"), "{}", done.out);
    assert!(done.out.contains("no tokens are known"), "{}", done.out);
    assert!(done.out.contains(": 4 messages"), "{}", done.out);
    assert_eq!(lines.last(), Some(&"The weather in Oslo is sunny, 22°C."));
}

#[test]
fn a_run_that_fails_is_told_and_the_conversation_goes_on() {
    let server = ModelServer::start([
        Answer::Json(
            400,
            serde_json::json!({"error": {"message": "odd request"}}),
        ),
        text("Better."),
    ]);
    let done = call_with_input(chat_with(&server, &[]), "one\ntwo\n").with_code(1);
    assert_eq!(done.out, "Better.\n");
    assert!(done.err.contains("odd request"), "{}", done.err);
}

#[test]
fn a_conversation_that_is_piped_in_and_stopped_by_the_user_ends_as_such() {
    let server = ModelServer::start([Answer::Silence]);
    let mut command = yiem(chat_with(&server, &[]));
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    let mut input = running.child.stdin.take().unwrap();
    input.write_all(b"hi\n").unwrap();
    server.asked();
    running.signal("INT");
    drop(input);
    let done = running.wait().with_code(130);
    assert_eq!((done.out.as_str(), done.err.as_str()), ("", ""));
}

/// The command on a terminal of its own.
struct Terminal {
    child: Child,
    keys: File,
    screen: Arc<(Mutex<Screen>, Condvar)>,
}

#[derive(Debug, Default)]
struct Screen {
    text: String,
    /// Whether nobody holds the terminal any more.
    ended: bool,
}

impl Terminal {
    fn start(args: &[&str], home: &std::path::Path) -> Self {
        let size = Winsize {
            ws_row: 40,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(Some(&size), None).unwrap();
        let mut command = yiem(args);
        command.env("TERM", "xterm").env("XDG_STATE_HOME", home);
        command.stdin(Stdio::from(pty.slave.try_clone().unwrap()));
        command.stdout(Stdio::from(pty.slave.try_clone().unwrap()));
        command.stderr(Stdio::from(pty.slave));
        let child = command.spawn().unwrap();
        // The command keeps its end open, this process must not.
        drop(command);
        let keys = File::from(pty.master);
        let mut reader = keys.try_clone().unwrap();
        let screen = Arc::<(Mutex<Screen>, Condvar)>::default();
        let shown = Arc::clone(&screen);
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut piece) {
                let text = String::from_utf8_lossy(&piece[..n]);
                shown.0.lock().unwrap().text.push_str(&text);
                shown.1.notify_all();
            }
            shown.0.lock().unwrap().ended = true;
            shown.1.notify_all();
        });
        Self {
            child,
            keys,
            screen,
        }
    }

    /// Waits until the text stands on the screen, and clears it up to there.
    #[track_caller]
    fn shows(&self, text: &str) {
        let (screen, changed) = &*self.screen;
        let (mut screen, late) = changed
            .wait_timeout_while(screen.lock().unwrap(), Duration::from_secs(100), |s| {
                !s.text.contains(text)
            })
            .unwrap();
        assert!(
            !late.timed_out(),
            "no {text:?} on the screen: {:?}",
            screen.text
        );
        let at = screen.text.find(text).unwrap() + text.len();
        screen.text.replace_range(..at, "");
    }

    /// Waits for the text and then for the prompt. Keys are typed after that: between two lines the
    /// terminal has its own idea of Ctrl-C, Ctrl-D and arrows.
    #[track_caller]
    fn prompts_after(&self, text: &str) {
        self.shows(text);
        self.shows("› ");
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    #[track_caller]
    fn ends_with(mut self, code: i32) {
        let (screen, changed) = &*self.screen;
        let (screen, late) = changed
            .wait_timeout_while(screen.lock().unwrap(), Duration::from_secs(100), |s| {
                !s.ended
            })
            .unwrap();
        assert!(!late.timed_out(), "it does not end: {:?}", screen.text);
        drop(screen);
        assert_eq!(self.child.wait().unwrap().code(), Some(code));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has ended already, unless its test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_conversation_on_a_terminal() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(&["chat"], home.path());
    terminal.shows("/help lists the commands");
    terminal.shows("› ");
    terminal.types("weather in Oslo\r");
    terminal.shows("getWeather");
    terminal.shows("The weather in Oslo is sunny, 22°C.");
    terminal.prompts_after("1 call · ");
    // Tab completes, Ctrl-C does not leave, the arrow brings the history back.
    terminal.types("/ses\t\r");
    terminal.prompts_after("kept nowhere");
    terminal.types("\x03");
    terminal.prompts_after("Ctrl-D or /quit leaves");
    terminal.types("\x1b[A\x1b[A\r");
    terminal.shows("The weather in Oslo is sunny, 22°C.");
    terminal.prompts_after("1 call · ");
    terminal.types("\x04");
    terminal.ends_with(0);
    let history = std::fs::read_to_string(home.path().join("yiem/history")).unwrap();
    assert!(history.contains("weather in Oslo"), "{history}");
}

#[test]
fn what_is_typed_while_it_works_steers_and_ctrl_c_ends_the_run_alone() {
    let home = tempfile::tempdir().unwrap();
    let server = ModelServer::start([Answer::Silence, text("**Here** I am.")]);
    let mut terminal = Terminal::start(&chat_with(&server, &[]), home.path());
    terminal.shows("› ");
    terminal.types("one\r");
    server.asked();
    terminal.types("two\r");
    terminal.prompts_after("reads that before its next step");
    terminal.types("\x03");
    terminal.prompts_after("(stopped)");
    terminal.types("three\r");
    terminal.shows("\x1b[1mHere\x1b[0m I am.");
    let said: Vec<String> = server.asked().body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(
        said.concat().contains("two") && said.concat().contains("three"),
        "{said:?}"
    );
    terminal.types("/quit\r");
    terminal.ends_with(0);
}

/// A server that asks a person for a name before it answers, on a shell alone.
const ASKING: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}' ;;
  *tools/list*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"tools":[{"name":"greet","inputSchema":{"type":"object","properties":{}}}]}}' ;;
  *tools/call*)
    call=$id
    echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Your name"}},"required":["name"]}}}' ;;
  *'"id":"q"'*)
    said=$(printf %s "$line" | tr -d '"{}')
    echo '{"jsonrpc":"2.0","id":'"$call"',"result":{"content":[{"type":"text","text":"told '"$said"'"}]}}' ;;
  *'"id":'*) echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"Method not found"}}' ;;
  esac
done
"#;

fn greeting() -> Answer {
    tool_call("c1", "greet", "{}")
}

/// The result of the call, as the model read it.
fn told(server: &ModelServer) -> String {
    server.asked();
    server.asked().body["messages"].to_string()
}

#[test]
fn a_servers_question_is_put_to_the_person_at_the_terminal_and_to_nobody_elsewhere() {
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("asking.sh");
    std::fs::write(&script, ASKING).unwrap();
    let spec = format!("shell=stdio:/bin/sh {}", script.display());

    let server = ModelServer::start([greeting(), text("Well.")]);
    let mut terminal = Terminal::start(&chat_with(&server, &["--mcp", &spec]), home.path());
    terminal.shows("› ");
    terminal.types("go\r");
    terminal.shows("shell asks: Who are you?");
    terminal.prompts_after("Your name (text)");
    terminal.types("\r");
    terminal.shows("this has to be told");
    terminal.prompts_after("Your name (text)");
    terminal.types("Ada\r");
    terminal.shows("Well.");
    let said = told(&server);
    assert!(
        said.contains("action:accept") && said.contains("name:Ada"),
        "{said}"
    );
    terminal.prompts_after("1 call · ");
    terminal.types("/quit\r");
    terminal.ends_with(0);

    let server = ModelServer::start([greeting(), text("Well.")]);
    let done = call_with_input(chat_with(&server, &["--mcp", &spec]), "go\n").with_code(0);
    assert_eq!(done.out, "Well.\n");
    let said = told(&server);
    assert!(said.contains("action:decline"), "{said}");
}

/// A server that asks a person two things at once before it answers, on a shell alone.
const ASKING_TWICE: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}' ;;
  *tools/list*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"tools":[{"name":"greet","inputSchema":{"type":"object","properties":{}}}]}}' ;;
  *tools/call*)
    call=$id
    echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Your name"},"sure":{"type":"boolean","title":"Are you sure"}},"required":["name","sure"]}}}'
    echo '{"jsonrpc":"2.0","id":"r","method":"elicitation/create","params":{"message":"May I?","requestedSchema":{"type":"object","properties":{}}}}' ;;
  *'"id":"q"'* | *'"id":"r"'*)
    said="$said then $(printf %s "$line" | tr -d '"{}')"
    case "$said" in *'id:q'*'id:r'* | *'id:r'*'id:q'*) echo '{"jsonrpc":"2.0","id":'"$call"',"result":{"content":[{"type":"text","text":"told '"$said"'"}]}}' ;; esac ;;
  *'"id":'*) echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"Method not found"}}' ;;
  esac
done
"#;

#[test]
fn two_questions_are_put_one_after_another_and_what_is_typed_ahead_answers_neither() {
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("twice.sh");
    std::fs::write(&script, ASKING_TWICE).unwrap();
    let spec = format!("shell=stdio:/bin/sh {}", script.display());
    let server = ModelServer::start([greeting(), text("Well.")]);
    let mut terminal = Terminal::start(&chat_with(&server, &["--mcp", &spec]), home.path());
    terminal.shows("› ");
    terminal.types("go\r");
    terminal.shows("shell asks: Who are you?");
    terminal.prompts_after("Your name (text)");
    // The key is pressed twice: the second stroke comes before its question stands there, wherever
    // it is read. One write for both: a test that is held up between two would answer in time.
    terminal.types("Ada\rno\r");
    terminal.prompts_after("Are you sure (yes or no)");
    terminal.types("yes\ry\r");
    terminal.prompts_after("shell asks: May I? — [y]es or [n]o");
    terminal.types("n\r");
    terminal.shows("Well.");
    let said = told(&server);
    let form = "id:q,result:action:accept,content:name:Ada,sure:true";
    assert!(said.contains(form), "{said}");
    assert_eq!(said.matches("action:accept").count(), 1, "{said}");
    assert_eq!(said.matches("action:decline").count(), 1, "{said}");
    terminal.prompts_after("1 call · ");
    terminal.types("/quit\r");
    terminal.ends_with(0);
}
