//! What the user types: an editor on a terminal, plain lines elsewhere.
//!
//! Knows: rustyline, history, completion, and what stood on the screen when a line was begun. Does not know: what
//! the lines mean.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fs, thread};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};
use tokio::io::{AsyncBufReadExt, BufReader, Stdin};
use tokio::sync::mpsc;

use super::above::{AboveEditor, Handed};
use super::on_screen::OnScreen;
use super::questions::Number;
use crate::screen::{LinePrinter, is_dumb};

/// Something that the user did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A line.
    Line {
        text: String,
        /// The question that stood on the screen when the first key of the line was typed.
        begun: Option<Number>,
    },
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the end of the input.
    End,
}

/// Words that can be completed; may be changed while the editor runs.
pub(super) type Words = Arc<Mutex<Vec<String>>>;

/// What stood on the screen when the line was begun that is edited now. A line that is emptied is begun anew.
#[derive(Debug, Default)]
struct Begun {
    on_screen: OnScreen,
    /// None while the line is empty.
    at: Mutex<Option<Option<Number>>>,
}

impl Begun {
    fn edited(&self, line: &str) {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        if line.is_empty() {
            *at = None;
            self.on_screen.drawn(keys_wait);
        } else if at.is_none() {
            *at = Some(self.on_screen.now());
        }
    }

    /// The line is done. An empty one was begun with its end.
    fn ended(&self) -> Option<Number> {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        at.take().unwrap_or_else(|| self.on_screen.now())
    }
}

/// Where lines come from.
pub(super) enum Input {
    /// An editor with a thread of its own; it edits the next line while a run goes on. Each line, the first
    /// included, begins when `go_on` says so.
    Editor {
        /// What was typed.
        said: mpsc::Receiver<Said>,
        /// Says that the next line may be edited.
        go_on: mpsc::Sender<()>,
    },
    /// Lines of a file or pipe. Nobody types them: each begins when it is read.
    Plain(tokio::io::Lines<BufReader<Stdin>>, OnScreen),
}

impl Input {
    /// Whether a person sits here.
    pub(super) fn is_at_a_terminal() -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb()
    }

    /// The editor, with a printer for the lines above it, if both streams are a terminal.
    pub(super) fn editor(
        words: &Words,
        on_screen: &OnScreen,
    ) -> Option<(Self, impl LinePrinter + 'static)> {
        if !Self::is_at_a_terminal() {
            return None;
        }
        let config = Config::builder()
            .auto_add_history(true)
            .completion_type(CompletionType::List)
            .max_history_size(1000)
            .ok()?
            // What is drawn is told of only then; nothing is coloured.
            .color_mode(ColorMode::Forced)
            .build();
        let mut editor: Editor<Complete, FileHistory> = Editor::with_config(config).ok()?;
        let begun = Arc::new(Begun {
            on_screen: on_screen.clone(),
            at: Mutex::default(),
        });
        let history = history_file();
        if let Some(path) = &history {
            // The first time there is none.
            let _ = editor.load_history(path);
        }
        let straight = editor.create_external_printer().ok()?;
        let handed = editor.create_external_printer().ok()?;
        let editing = Arc::<AtomicBool>::default();
        let printer = AboveEditor::new(Arc::clone(&editing), straight, handed)?;
        let handed = printer.handed();
        on_screen.goes_to(Arc::clone(&handed));
        editor.set_helper(Some(Complete {
            words: Arc::clone(words),
            begun: Arc::clone(&begun),
            handed: Arc::clone(&handed),
        }));
        let (tell, said) = mpsc::channel(16);
        let (go_on, mut may_go_on) = mpsc::channel(1);
        // A thread, since the editor blocks; it ends with the receiver of what it reads.
        thread::Builder::new()
            .name("yiem-editor".into())
            .spawn(move || {
                while may_go_on.blocking_recv().is_some() {
                    editing.store(true, Ordering::SeqCst);
                    let line = match editor.readline("› ") {
                        Ok(text) => Said::Line {
                            text,
                            begun: begun.ended(),
                        },
                        Err(ReadlineError::Interrupted) => Said::Interrupt,
                        Err(_) => Said::End,
                    };
                    handed.is_not_edited();
                    editing.store(false, Ordering::SeqCst);
                    if let (Said::Line { .. }, Some(path)) = (&line, &history) {
                        // A history that cannot be kept is no reason to stop.
                        let _ = editor.append_history(path);
                    }
                    let ends = line == Said::End;
                    if tell.blocking_send(line).is_err() || ends {
                        return;
                    }
                }
            })
            .ok()?;
        Some((Self::Editor { said, go_on }, printer))
    }

    /// Lines as they come.
    pub(super) fn plain(on_screen: &OnScreen) -> Self {
        let lines = BufReader::new(tokio::io::stdin()).lines();
        Self::Plain(lines, on_screen.clone())
    }

    /// Whether the next line may be read while a run goes on.
    pub(super) fn steers(&self) -> bool {
        matches!(self, Self::Editor { .. })
    }

    /// What the user does next. May be dropped; nothing is lost.
    pub(super) async fn next(&mut self) -> Said {
        match self {
            Self::Editor { said, .. } => said.recv().await.unwrap_or(Said::End),
            Self::Plain(lines, on_screen) => match lines.next_line().await {
                Ok(Some(text)) => Said::Line {
                    text,
                    begun: on_screen.now(),
                },
                Ok(None) | Err(_) => Said::End,
            },
        }
    }

    /// The next line may be edited.
    pub(super) fn go_on(&self) {
        if let Self::Editor { go_on, .. } = self {
            // When it is full the editor goes on in any case.
            let _ = go_on.try_send(());
        }
    }
}

/// `$XDG_STATE_HOME/yiem/history`, else below the home directory.
fn history_file() -> Option<PathBuf> {
    let folder = match env::var_os("XDG_STATE_HOME").filter(|value| !value.is_empty()) {
        Some(state) => PathBuf::from(state),
        None => PathBuf::from(env::var_os("HOME")?).join(".local/state"),
    }
    .join("yiem");
    fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

/// Whether keys wait that the editor has not read.
fn keys_wait() -> bool {
    let stdin = io::stdin();
    let mut keys = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    poll(&mut keys, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Completes commands and names of tools, and sees when a line is begun and when the prompt is drawn.
struct Complete {
    words: Words,
    begun: Arc<Begun>,
    handed: Arc<Handed>,
}

impl Completer for Complete {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(completions(&line[..at], &words))
    }
}

/// Where the last word begins, and what it can become: a command at the beginning of the line,
/// a name elsewhere.
fn completions(line: &str, words: &[String]) -> (usize, Vec<String>) {
    let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let word = &line[start..];
    if word.is_empty() {
        return (start, Vec::new());
    }
    let fits = |known: &&String| {
        known.starts_with(word) && known.starts_with('/') == (start == 0 && word.starts_with('/'))
    };
    (start, words.iter().filter(fits).cloned().collect())
}

impl Hinter for Complete {
    type Hint = String;

    /// Hints at nothing; the editor comes here after each change of the line.
    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        self.begun.edited(line);
        None
    }
}
impl Highlighter for Complete {
    /// Changes nothing; the editor comes here each time that it draws its prompt, what it printed above it included.
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        self.begun.on_screen.drawn(keys_wait);
        self.handed.is_edited();
        Cow::Borrowed(prompt)
    }
}
impl Validator for Complete {}
impl Helper for Complete {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_names_are_completed() {
        let words: Vec<String> = ["/tools", "/help", "getTime", "getWeather"]
            .map(String::from)
            .into();
        assert_eq!(completions("/t", &words), (0, vec!["/tools".to_owned()]));
        assert_eq!(
            completions("call get", &words),
            (5, vec!["getTime".to_owned(), "getWeather".to_owned()])
        );
        assert_eq!(completions("call /t", &words), (5, Vec::new()));
        assert_eq!(completions("call ", &words), (5, Vec::new()));
        assert_eq!(completions("", &words), (0, Vec::new()));
    }

    #[test]
    fn a_line_is_begun_with_its_first_key() {
        let number = |n| Number::new(n);
        let begun = Begun::default();
        begun.edited("");
        begun.edited("y");
        begun.on_screen.is(number(1));
        begun.edited("ye");
        assert_eq!(begun.ended(), None);
        // The next one, under a question that closes while it is typed.
        begun.edited("");
        begun.edited("y");
        begun.on_screen.is(number(2));
        begun.edited("yes");
        assert_eq!(begun.ended(), number(1));
        // One that is emptied is begun anew, and one that stays empty with its end.
        begun.edited("hel");
        begun.on_screen.is(number(3));
        begun.edited("");
        begun.edited("y");
        begun.on_screen.is(number(4));
        assert_eq!(begun.ended(), number(3));
        begun.edited("");
        assert_eq!(begun.ended(), number(4));
    }
}
