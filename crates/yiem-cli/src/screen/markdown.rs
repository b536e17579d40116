//! Markdown for a terminal, as it comes.
//!
//! Knows: headings, lists, quotes, rules, fences, emphasis and code, in pieces of any size; holds
//! back no more than the few signs that could still become one of them.
//! Does not know: widths, colours' availability, streams. Tables and links stay as written.

/// Turns Markdown that comes in pieces into text with terminal styles.
#[derive(Debug)]
pub(crate) struct Markdown {
    out: String,
    /// The beginning of a line, or a run of signs, of which it is not known yet what it means.
    held: String,
    line: Line,
    bold: bool,
    italic: bool,
    /// The length of the run of backticks that a code span ends with.
    code: Option<usize>,
    escaped: bool,
    /// The last character that was written of the line; a space at its beginning.
    last: char,
    /// The styles that the terminal is in.
    shown: Look,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Nothing but what is held has come of it.
    Begins,
    Text,
    Heading,
    Quote,
    /// A line of a fenced block; the fence is this sign, so often.
    Fenced(char, usize),
    /// The rest of the line that opens a fence: its language.
    Opens(char, usize),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Look {
    bold: bool,
    italic: bool,
    dim: bool,
    cyan: bool,
}

impl Default for Markdown {
    fn default() -> Self {
        Self {
            out: String::new(),
            held: String::new(),
            line: Line::Begins,
            bold: false,
            italic: false,
            code: None,
            escaped: false,
            last: ' ',
            shown: Look::default(),
        }
    }
}

/// What the beginning of a line is.
enum Begin {
    /// Not known yet.
    Open,
    Heading,
    /// A bullet, after so many characters of indentation.
    Bullet(usize),
    Quote,
    Fence(char, usize),
    Rule,
    Text,
}

impl Markdown {
    /// More of the text; gives what can be written.
    pub(crate) fn push(&mut self, text: &str) -> String {
        for c in text.chars() {
            if !c.is_control() || matches!(c, '\n' | '\t') {
                self.take(c);
            }
        }
        std::mem::take(&mut self.out)
    }

    /// The end of the text: gives the rest, and leaves the terminal without styles.
    pub(crate) fn finish(&mut self) -> String {
        self.settle_line_end();
        self.look(Look::default());
        let out = std::mem::take(&mut self.out);
        *self = Self::default();
        out
    }

    fn take(&mut self, c: char) {
        match self.line {
            Line::Fenced(sign, count) => self.take_fenced(c, sign, count),
            Line::Opens(sign, count) => {
                if c == '\n' {
                    self.new_line(Line::Fenced(sign, count));
                } else {
                    self.write(
                        c,
                        Look {
                            dim: true,
                            ..Look::default()
                        },
                    );
                }
            }
            Line::Begins => {
                if c == '\n' {
                    self.settle_line_end();
                    self.new_line(Line::Begins);
                } else {
                    self.held.push(c);
                    self.decide_begin();
                }
            }
            Line::Text | Line::Heading | Line::Quote => {
                if c == '\n' {
                    self.settle_line_end();
                    self.new_line(Line::Begins);
                } else {
                    self.take_inline(c);
                }
            }
        }
    }

    /// A line of a fenced block is held while it could still close the block.
    fn take_fenced(&mut self, c: char, sign: char, count: usize) {
        let could_close = |text: &str| text.trim_start_matches(' ').chars().all(|c| c == sign);
        let begins = self.last == ' ' && could_close(&self.held);
        if c == '\n' {
            let signs = self.held.trim_start_matches(' ').chars().count();
            if begins && signs >= count && !self.held.is_empty() {
                self.held.clear();
                self.look(Look::default());
                self.line = Line::Begins;
                self.last = ' ';
                return;
            }
            self.write_held(Look {
                cyan: true,
                ..Look::default()
            });
            self.new_line(Line::Fenced(sign, count));
            return;
        }
        self.held.push(c);
        if !(begins && could_close(&self.held)) {
            self.write_held(Look {
                cyan: true,
                ..Look::default()
            });
            // Whatever comes is inside the line.
            self.last = 'x';
        }
    }

    fn decide_begin(&mut self) {
        match begin_of(&self.held) {
            Begin::Open => {}
            Begin::Heading => {
                self.held.clear();
                self.line = Line::Heading;
            }
            Begin::Bullet(indent) => {
                self.out.push_str(&" ".repeat(indent));
                self.held.clear();
                self.write('•', self.current());
                self.write(' ', self.current());
                self.line = Line::Text;
            }
            Begin::Quote => {
                self.held.clear();
                self.line = Line::Quote;
                self.write('│', self.current());
                self.write(' ', self.current());
            }
            Begin::Fence(sign, count) => {
                let rest = self.held.trim_start().trim_start_matches(sign).to_owned();
                self.held.clear();
                self.line = Line::Opens(sign, count);
                for c in rest.chars() {
                    self.take(c);
                }
            }
            Begin::Rule | Begin::Text => {
                self.line = Line::Text;
                for c in std::mem::take(&mut self.held).chars() {
                    self.take_inline(c);
                }
            }
        }
    }

    /// The line ends: what is held can become nothing else any more.
    fn settle_line_end(&mut self) {
        match self.line {
            Line::Begins => match begin_of(&format!("{}\n", self.held)) {
                Begin::Rule => {
                    self.held.clear();
                    for _ in 0..24 {
                        self.write(
                            '─',
                            Look {
                                dim: true,
                                ..Look::default()
                            },
                        );
                    }
                }
                Begin::Fence(sign, count) => {
                    self.held.clear();
                    self.line = Line::Opens(sign, count);
                }
                _ => {
                    self.line = Line::Text;
                    for c in std::mem::take(&mut self.held).chars() {
                        self.take_inline(c);
                    }
                    self.settle_run(None);
                }
            },
            Line::Fenced(sign, count) => {
                let held = self.held.trim_start_matches(' ');
                if held.chars().all(|c| c == sign) && held.chars().count() >= count {
                    self.held.clear();
                }
                self.write_held(Look {
                    cyan: true,
                    ..Look::default()
                });
            }
            _ => self.settle_run(None),
        }
    }

    fn new_line(&mut self, next: Line) {
        self.bold = false;
        self.italic = false;
        self.code = None;
        self.escaped = false;
        // A fence that opened at the very end of its line.
        let next = match (self.line, next) {
            (Line::Opens(sign, count), Line::Begins) => Line::Fenced(sign, count),
            (_, next) => next,
        };
        self.look(Look::default());
        self.out.push('\n');
        self.last = ' ';
        self.line = next;
    }

    fn take_inline(&mut self, c: char) {
        if self.escaped {
            self.escaped = false;
            if !c.is_ascii_punctuation() {
                self.write('\\', self.current());
            }
            self.write(c, self.current());
            return;
        }
        let is_sign = match self.code {
            Some(_) => c == '`',
            None => matches!(c, '*' | '_' | '`'),
        };
        if is_sign && (self.held.is_empty() || self.held.starts_with(c)) {
            self.held.push(c);
            return;
        }
        self.settle_run(Some(c));
        if is_sign {
            self.held.push(c);
        } else if c == '\\' && self.code.is_none() {
            self.escaped = true;
        } else {
            self.write(c, self.current());
        }
    }

    /// A run of signs is over: it begins or ends something, or it is text.
    fn settle_run(&mut self, next: Option<char>) {
        if self.escaped && next.is_none() {
            self.escaped = false;
            self.write('\\', self.current());
        }
        let run = std::mem::take(&mut self.held);
        let Some(sign) = run.chars().next() else {
            return;
        };
        let count = run.len();
        if sign == '`' {
            match self.code {
                Some(open) if open == count => self.code = None,
                None if next.is_some() => self.code = Some(count),
                _ => self.write_text(&run),
            }
            return;
        }
        let next_is_space = next.is_none_or(char::is_whitespace);
        let last_is_space = self.last.is_whitespace();
        let inside_word =
            sign == '_' && self.last.is_alphanumeric() && next.is_some_and(char::is_alphanumeric);
        let on = match count {
            1 => self.italic,
            2 => self.bold,
            3 => self.bold && self.italic,
            _ => false,
        };
        let turns = if on {
            !last_is_space
        } else {
            !next_is_space && next.is_some()
        };
        if !turns || inside_word || count > 3 {
            self.write_text(&run);
            return;
        }
        if count != 2 {
            self.italic = !on;
        }
        if count != 1 {
            self.bold = !on;
        }
    }

    fn current(&self) -> Look {
        Look {
            bold: self.bold || self.line == Line::Heading,
            italic: self.italic,
            dim: self.line == Line::Quote,
            cyan: self.code.is_some(),
        }
    }

    fn write_text(&mut self, text: &str) {
        for c in text.chars() {
            self.write(c, self.current());
        }
    }

    fn write_held(&mut self, look: Look) {
        for c in std::mem::take(&mut self.held).chars() {
            self.write(c, look);
        }
    }

    fn write(&mut self, c: char, look: Look) {
        self.look(look);
        self.out.push(c);
        self.last = c;
    }

    fn look(&mut self, look: Look) {
        if look == self.shown {
            return;
        }
        if self.shown != Look::default() {
            self.out.push_str("\x1b[0m");
        }
        for (on, code) in [
            (look.bold, "1"),
            (look.dim, "2"),
            (look.italic, "3"),
            (look.cyan, "36"),
        ] {
            if on {
                self.out.push_str("\x1b[");
                self.out.push_str(code);
                self.out.push('m');
            }
        }
        self.shown = look;
    }
}

/// What the beginning of a line is; with a line break at its end it is decided in any case.
fn begin_of(held: &str) -> Begin {
    let text = held.trim_start_matches(' ');
    let indent = held.len() - text.len();
    let Some(first) = text.chars().next() else {
        return if indent > 12 {
            Begin::Text
        } else {
            Begin::Open
        };
    };
    let run = text.chars().take_while(|c| *c == first).count();
    let after = text.chars().nth(run);
    match first {
        '#' if run <= 6 => match after {
            None => Begin::Open,
            Some(' ') => Begin::Heading,
            Some(_) => Begin::Text,
        },
        '`' | '~' if indent <= 3 => match after {
            None => Begin::Open,
            Some(_) if run >= 3 && !text[run..].contains('`') => Begin::Fence(first, run),
            Some(_) => Begin::Text,
        },
        '>' if indent <= 3 => match after {
            None => Begin::Open,
            Some(' ') if run == 1 => Begin::Quote,
            Some(_) => Begin::Text,
        },
        '-' | '*' | '+' | '_' => match after {
            None if first != '+' => Begin::Open,
            None => Begin::Open,
            Some(' ') if run == 1 && first != '_' => Begin::Bullet(indent),
            Some('\n') if run >= 3 && first != '+' => Begin::Rule,
            Some(_) => Begin::Text,
        },
        _ => Begin::Text,
    }
}

#[cfg(test)]
mod tests;
