//! What the user types: an editor on a terminal, plain lines elsewhere.
//!
//! Knows: rustyline, history, completion. Does not know: what the lines mean.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fs, thread};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use tokio::io::{AsyncBufReadExt, BufReader, Stdin};
use tokio::sync::mpsc;

use super::above::AboveEditor;
use crate::screen::{LinePrinter, is_dumb};

/// Something that the user did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A line.
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the end of the input.
    End,
}

/// Words that can be completed; may be changed while the editor runs.
pub(super) type Words = Arc<Mutex<Vec<String>>>;

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
    /// Lines of a file or pipe.
    Plain(tokio::io::Lines<BufReader<Stdin>>),
}

impl Input {
    /// Whether a person sits here.
    pub(super) fn is_at_a_terminal() -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb()
    }

    /// The editor, with a printer for the lines above it, if both streams are a terminal.
    pub(super) fn editor(words: &Words) -> Option<(Self, impl LinePrinter + 'static)> {
        if !Self::is_at_a_terminal() {
            return None;
        }
        let config = Config::builder()
            .auto_add_history(true)
            .completion_type(CompletionType::List)
            .max_history_size(1000)
            .ok()?
            .build();
        let mut editor: Editor<Complete, FileHistory> = Editor::with_config(config).ok()?;
        editor.set_helper(Some(Complete(Arc::clone(words))));
        let history = history_file();
        if let Some(path) = &history {
            // The first time there is none.
            let _ = editor.load_history(path);
        }
        let straight = editor.create_external_printer().ok()?;
        let handed = editor.create_external_printer().ok()?;
        let editing = Arc::<AtomicBool>::default();
        let printer = AboveEditor::new(Arc::clone(&editing), straight, handed)?;
        let (tell, said) = mpsc::channel(16);
        let (go_on, mut may_go_on) = mpsc::channel(1);
        // A thread, since the editor blocks; it ends with the receiver of what it reads.
        thread::Builder::new()
            .name("yiem-editor".into())
            .spawn(move || {
                while may_go_on.blocking_recv().is_some() {
                    editing.store(true, Ordering::SeqCst);
                    let line = match editor.readline("› ") {
                        Ok(line) => Said::Line(line),
                        Err(ReadlineError::Interrupted) => Said::Interrupt,
                        Err(_) => Said::End,
                    };
                    editing.store(false, Ordering::SeqCst);
                    if let (Said::Line(_), Some(path)) = (&line, &history) {
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
    pub(super) fn plain() -> Self {
        Self::Plain(BufReader::new(tokio::io::stdin()).lines())
    }

    /// Whether the next line may be read while a run goes on.
    pub(super) fn steers(&self) -> bool {
        matches!(self, Self::Editor { .. })
    }

    /// What the user does next. May be dropped; nothing is lost.
    pub(super) async fn next(&mut self) -> Said {
        match self {
            Self::Editor { said, .. } => said.recv().await.unwrap_or(Said::End),
            Self::Plain(lines) => match lines.next_line().await {
                Ok(Some(line)) => Said::Line(line),
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

/// Completes commands and names of tools.
struct Complete(Words);

impl Completer for Complete {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
}
impl Highlighter for Complete {}
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
}
