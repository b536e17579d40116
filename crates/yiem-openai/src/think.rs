//! Parts the reasoning off that stands in tags at the beginning of the text.
//!
//! Knows: the tags, that they can be cut anywhere, that white space next to them goes.
//! Does not know: fields for reasoning; nor does it look at tags later in the text.

/// A pair of tags whose inside is reasoning.
const TAGS: [(&str, &str); 4] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
];

/// A part of the text, by what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Text(&'a str),
    Reasoning(&'a str),
    /// The reasoning block is whole.
    Closed,
}

/// Parts a text that comes in pieces.
#[derive(Debug)]
pub(crate) struct ThinkSplitter {
    state: State,
    /// White space that may turn out to stand next to a tag.
    space: String,
    /// The beginning of what may turn out to be a tag; while the opening tag is implied, all
    /// that came.
    held: String,
    /// How far `held` was searched for a closing tag.
    searched: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but white space and perhaps the beginning of an opening tag has come.
    Start,
    /// The opening tag was part of the prompt; a closing one decides.
    Implied,
    /// Inside; whether any reasoning has come.
    Inside {
        close: &'static str,
        begun: bool,
    },
    /// Behind the closing tag; only white space has come.
    Behind,
    Text,
}

impl ThinkSplitter {
    pub(crate) fn new(open_implied: bool) -> Self {
        Self {
            state: if open_implied {
                State::Implied
            } else {
                State::Start
            },
            space: String::new(),
            held: String::new(),
            searched: 0,
        }
    }

    /// Whether no tag is looked for any more.
    pub(crate) fn is_past(&self) -> bool {
        self.state == State::Text
    }

    /// Takes the next piece of text.
    pub(crate) fn push(&mut self, piece: &str, out: &mut impl FnMut(Part<'_>)) {
        match self.state {
            State::Text => out(Part::Text(piece)),
            State::Start => self.start(piece, out),
            State::Implied => self.implied(piece, out),
            State::Inside { close, begun } => self.inside(close, begun, piece, out),
            State::Behind => {
                let text = piece.trim_start();
                if !text.is_empty() {
                    self.state = State::Text;
                    out(Part::Text(text));
                }
            }
        }
    }

    /// The text is over. `cut` tells whether it was cut before its end.
    pub(crate) fn finish(&mut self, cut: bool, out: &mut impl FnMut(Part<'_>)) {
        let held = std::mem::take(&mut self.held);
        let space = std::mem::take(&mut self.space);
        match std::mem::replace(&mut self.state, State::Text) {
            State::Start => {
                emit(&space, Part::Text, out);
                emit(&held, Part::Text, out);
            }
            // Cut while it thought, or it did not think at all.
            State::Implied if cut => emit(without_open(held.trim()), Part::Reasoning, out),
            State::Implied => emit(&held, Part::Text, out),
            State::Inside { begun, .. } => {
                if begun && !held.is_empty() {
                    emit(&space, Part::Reasoning, out);
                }
                emit(&held, Part::Reasoning, out);
            }
            State::Behind | State::Text => {}
        }
    }

    fn start(&mut self, piece: &str, out: &mut impl FnMut(Part<'_>)) {
        let mut piece = piece;
        if self.held.is_empty() {
            let text = piece.trim_start();
            self.space.push_str(&piece[..piece.len() - text.len()]);
            piece = text;
        }
        self.held.push_str(piece);
        if self.held.is_empty() {
            return;
        }
        if let Some((open, close)) = TAGS.iter().find(|(open, _)| self.held.starts_with(open)) {
            self.space.clear();
            self.state = State::Inside {
                close,
                begun: false,
            };
            let rest = std::mem::take(&mut self.held);
            self.push(&rest[open.len()..], out);
        } else if !TAGS.iter().any(|(open, _)| open.starts_with(&*self.held)) {
            self.state = State::Text;
            let text = std::mem::take(&mut self.space) + &std::mem::take(&mut self.held);
            out(Part::Text(&text));
        }
    }

    fn implied(&mut self, piece: &str, out: &mut impl FnMut(Part<'_>)) {
        self.held.push_str(piece);
        let from = self.searched;
        let found = TAGS
            .iter()
            .filter_map(|(_, close)| {
                self.held[from..]
                    .find(close)
                    .map(|at| (from + at, close.len()))
            })
            .min();
        if let Some((at, length)) = found {
            let held = std::mem::take(&mut self.held);
            emit(without_open(held[..at].trim()), Part::Reasoning, out);
            out(Part::Closed);
            self.state = State::Behind;
            self.push(&held[at + length..], out);
        } else {
            let longest = TAGS.iter().map(|(_, close)| close.len()).max().unwrap_or(0);
            self.searched = floor_boundary(&self.held, self.held.len().saturating_sub(longest));
        }
    }

    fn inside(
        &mut self,
        close: &'static str,
        mut begun: bool,
        piece: &str,
        out: &mut impl FnMut(Part<'_>),
    ) {
        let joined;
        let input = if self.held.is_empty() {
            piece
        } else {
            joined = std::mem::take(&mut self.held) + piece;
            &joined
        };
        let found = input.find(close);
        let end = found.unwrap_or_else(|| input.len() - overlap(input, close));
        let body = if begun || !self.space.is_empty() {
            &input[..end]
        } else {
            input[..end].trim_start()
        };
        let thought = body.trim_end();
        if !thought.is_empty() {
            if begun {
                emit(&self.space, Part::Reasoning, out);
            }
            begun = true;
            out(Part::Reasoning(thought));
            self.space.clear();
        }
        if let Some(at) = found {
            out(Part::Closed);
            self.space.clear();
            self.state = State::Behind;
            self.push(&input[at + close.len()..], out);
        } else {
            if begun {
                self.space.push_str(&body[thought.len()..]);
            }
            self.held.push_str(&input[end..]);
            self.state = State::Inside { close, begun };
        }
    }
}

fn emit<'a>(text: &'a str, part: impl Fn(&'a str) -> Part<'a>, out: &mut impl FnMut(Part<'_>)) {
    if !text.is_empty() {
        out(part(text));
    }
}

fn without_open(text: &str) -> &str {
    TAGS.iter()
        .find_map(|(open, _)| text.strip_prefix(open))
        .unwrap_or(text)
        .trim_start()
}

/// How many bytes at the end of the text may be the beginning of the tag.
pub(crate) fn overlap(text: &str, tag: &str) -> usize {
    (1..tag.len())
        .rev()
        .filter(|length| tag.is_char_boundary(*length))
        .find(|length| text.ends_with(&tag[..*length]))
        .unwrap_or(0)
}

fn floor_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
