//! Text that comes in pieces, given on in whole lines of the terminal's width.
//!
//! Knows: words, widths, styles that go on over a line's end. Does not know: who prints lines.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use unicode_width::UnicodeWidthChar;

/// Where whole lines go: each text ends with a line break.
pub(crate) trait LinePrinter: Send {
    /// Prints lines.
    fn print(&mut self, lines: String) -> io::Result<()>;
}

/// A writer that gives on what it is given in whole lines; its clones write to the same line.
///
/// For a screen whose last line belongs to someone else, such as the prompt of an editor. Lines
/// break between words.
#[derive(Clone)]
pub(crate) struct Lines(Arc<Mutex<Inner>>);

struct Inner {
    printer: Box<dyn LinePrinter>,
    width: fn() -> usize,
    line: Line,
}

impl Lines {
    /// Lines for that printer; `width` is asked for again and again, since it may change.
    pub(crate) fn new(printer: impl LinePrinter + 'static, width: fn() -> usize) -> Self {
        let printer = Box::new(printer);
        Self(Arc::new(Mutex::new(Inner {
            printer,
            width,
            line: Line::default(),
        })))
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let width = (inner.width)();
        let mut whole = String::new();
        for c in String::from_utf8_lossy(bytes).chars() {
            inner.line.push(c, width, &mut whole);
        }
        if !whole.is_empty() {
            inner.printer.print(whole)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The line that is not whole yet.
#[derive(Debug, Default)]
struct Line {
    text: String,
    /// How many columns it takes.
    columns: usize,
    /// Behind the last space, and how many columns there are up to there.
    last_break: Option<(usize, usize)>,
    /// Whether a style sequence has begun and not ended.
    in_sequence: bool,
}

impl Line {
    fn push(&mut self, c: char, width: usize, whole: &mut String) {
        if self.in_sequence || c == '\x1b' {
            self.text.push(c);
            self.in_sequence = c == '\x1b' || !c.is_ascii_alphabetic();
            return;
        }
        if c == '\n' {
            let style = style_at_end(&self.text);
            self.end(self.text.len(), whole);
            *self = Self {
                text: style,
                ..Self::default()
            };
            return;
        }
        let columns = if c == '\t' { 4 } else { c.width().unwrap_or(0) };
        if self.columns + columns > width && self.columns > 0 {
            if c == ' ' {
                // The line ends here in any case.
                self.push('\n', width, whole);
                return;
            }
            self.wrap(whole);
        }
        self.text.push(c);
        self.columns += columns;
        if c == ' ' || c == '\t' {
            self.last_break = Some((self.text.len(), self.columns));
        }
    }

    /// Ends the line before its last word, which begins the next one.
    fn wrap(&mut self, whole: &mut String) {
        let (at, before) = self.last_break.unwrap_or((self.text.len(), self.columns));
        let rest = self.text[at..].to_owned();
        let style = style_at_end(&self.text[..at]);
        let columns = self.columns - before;
        self.end(at, whole);
        *self = Self {
            text: style + &rest,
            columns,
            ..Self::default()
        };
    }

    fn end(&mut self, at: usize, whole: &mut String) {
        whole.push_str(self.text[..at].trim_end_matches(' '));
        if !style_at_end(&self.text[..at]).is_empty() {
            whole.push_str("\x1b[0m");
        }
        whole.push('\n');
    }
}

/// The style sequences that are in force at the end of a text.
fn style_at_end(text: &str) -> String {
    let since_reset = text.rfind("\x1b[0m").map_or(text, |at| &text[at + 4..]);
    let mut style = String::new();
    let mut inside = false;
    for c in since_reset.chars() {
        if c == '\x1b' {
            inside = true;
        }
        if inside {
            style.push(c);
            inside = c == '\x1b' || !c.is_ascii_alphabetic();
        }
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl LinePrinter for Kept {
        fn print(&mut self, lines: String) -> io::Result<()> {
            self.0.lock().unwrap().push(lines);
            Ok(())
        }
    }

    fn printed(pieces: &[&str]) -> String {
        let kept = Kept::default();
        let mut lines = Lines::new(kept.clone(), || 10);
        for piece in pieces {
            lines.write_all(piece.as_bytes()).unwrap();
        }
        let kept = kept.0.lock().unwrap();
        kept.concat().replace('\x1b', "E")
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(printed(&["one two three four\n"]), "one two\nthree four\n");
        assert_eq!(printed(&["0123456789 x\n"]), "0123456789\nx\n");
        assert_eq!(printed(&["0123456789abc\n"]), "0123456789\nabc\n");
        assert_eq!(printed(&["日本語日本語日本\n"]), "日本語日本\n語日本\n");
        assert_eq!(printed(&["a\n\nb\n"]), "a\n\nb\n");
    }

    #[test]
    fn a_line_is_given_on_when_it_is_whole() {
        assert_eq!(printed(&["one ", "two"]), "");
        assert_eq!(printed(&["one ", "two ", "thr", "ee"]), "one two\n");
    }

    #[test]
    fn styles_go_on_over_the_end_of_a_line() {
        assert_eq!(
            printed(&["\x1b[1mone two three\x1b[0m four\n"]),
            "E[1mone twoE[0m\nE[1mthreeE[0m four\n"
        );
        assert_eq!(printed(&["\x1b[2ma\nb\x1b[0m\n"]), "E[2maE[0m\nE[2mbE[0m\n");
    }
}
