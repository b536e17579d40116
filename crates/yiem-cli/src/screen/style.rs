//! Colours, and whether there are any.
//!
//! Knows: what a terminal is told to write bold, dim or coloured. Does not know: what is written.

use std::env;
use std::io::IsTerminal;

/// Whether to style what goes to one of the standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    on: bool,
}

impl Style {
    /// None.
    pub(crate) const PLAIN: Self = Self { on: false };
    /// All.
    #[cfg(test)]
    pub(crate) const FULL: Self = Self { on: true };

    /// As that stream and the environment have it: a terminal, `NO_COLOR` unset or empty, `TERM`
    /// not `dumb`.
    pub(crate) fn of(stream: &impl IsTerminal) -> Self {
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            on: stream.is_terminal() && !refused && !is_dumb(),
        }
    }

    /// Whether anything is styled.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.on && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Whether the terminal can do no more than write lines.
pub(crate) fn is_dumb() -> bool {
    env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// How many characters a line of the terminal has; 80 when it does not say.
pub(crate) fn terminal_width() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0).max(20))
}

/// The same text without signs that steer a terminal; line breaks and tabs stay. What models and
/// servers say goes through here before a terminal sees it.
pub(crate) fn harmless(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

/// The same text on one line, at most so many characters of it.
pub(crate) fn on_one_line(text: &str, most: usize) -> String {
    let line = harmless(text)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    match line.char_indices().nth(most) {
        None => line,
        Some(_) => {
            let kept: String = line.chars().take(most.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_taken_out() {
        assert_eq!(harmless("a\x1b[31mb\x07\u{9b}2Jc\td\n"), "a[31mb2Jc\td\n");
        assert_eq!(on_one_line("a\r\n  b\x1b]0;x\x07", 80), "a b]0;x");
    }

    #[test]
    fn a_long_line_is_cut_and_says_so() {
        assert_eq!(on_one_line("aé日本語", 5), "aé日本語");
        assert_eq!(on_one_line("aé日本語x", 5), "aé日本…");
        assert_eq!(on_one_line("ab cd", 4), "ab…");
    }

    #[test]
    fn plain_is_plain() {
        assert_eq!(Style::PLAIN.bold("x"), "x");
        assert_eq!(Style::FULL.bold("x"), "\x1b[1mx\x1b[0m");
        assert_eq!(Style::FULL.dim(""), "");
    }
}
