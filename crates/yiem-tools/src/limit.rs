//! How much of a result a model is shown (T-8).
//!
//! Knows: how text is cut so that its ends stay and the reader is told. Does not know: tokens,
//! models, files.

use serde_json::{Value, json};
use yiem_core::{Content, ToolOutput};

/// The key in a result's details under which its whole text is kept.
pub const WHOLE_OUTPUT: &str = "wholeOutput";

/// How much of a result's text a model is shown, and whether the whole is kept.
///
/// ```
/// use yiem_core::ToolOutput;
/// use yiem_tools::ResultLimit;
///
/// let mut output = ToolOutput::text("a".repeat(10_000));
/// let whole = ResultLimit::new(1_000).apply(&mut output);
/// assert_eq!(whole.map(|w| w.len()), Some(10_000));
/// assert!(output.plain_text().contains("bytes were left out here"));
/// assert!(output.plain_text().len() <= 1_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultLimit {
    bytes: usize,
    keep_whole: bool,
}

impl Default for ResultLimit {
    /// 64 KiB (R-17); the whole is not kept.
    fn default() -> Self {
        Self::new(64 * 1024)
    }
}

impl ResultLimit {
    /// At most this many bytes of text, in all blocks together; 0 means no limit.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes,
            keep_whole: false,
        }
    }

    /// The same, keeping the whole text of a result that is cut in its details, under
    /// [`WHOLE_OUTPUT`]: the application sees it, the model does not.
    #[must_use]
    pub fn keeping_whole(mut self) -> Self {
        self.keep_whole = true;
        self
    }

    /// The limit in bytes; 0 means none.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Cuts a result's text if it is too long, in the middle, with a note of how much is
    /// missing. Blocks that are no text stay. Gives the whole text if it was cut, for whoever
    /// wants to put it into a file.
    pub fn apply(&self, output: &mut ToolOutput) -> Option<String> {
        let total: usize = output
            .content
            .iter()
            .filter_map(Content::as_text)
            .map(str::len)
            .sum();
        if self.bytes == 0 || total <= self.bytes {
            return None;
        }
        let whole = output.plain_text();
        // The longest blocks give first: short ones beside them are often what the rest is about.
        let mut share = Shares::new(
            output
                .content
                .iter()
                .filter_map(Content::as_text)
                .map(str::len),
        );
        let most = share.limit_each(self.bytes);
        for block in &mut output.content {
            if let Content::Text(text) = block {
                text.text = cut_middle(&text.text, most);
            }
        }
        if self.keep_whole {
            keep(&mut output.details, &whole);
        }
        Some(whole)
    }
}

/// The lengths of texts that share one limit.
struct Shares(Vec<usize>);

impl Shares {
    fn new(lengths: impl Iterator<Item = usize>) -> Self {
        Self(lengths.collect())
    }

    /// The most that each may have so that all fit: short ones keep theirs, long ones share
    /// what is left.
    fn limit_each(&mut self, mut left: usize) -> usize {
        self.0.sort_unstable();
        let mut waiting = self.0.len();
        for &length in &self.0 {
            let fair = left / waiting.max(1);
            if length > fair {
                return fair;
            }
            left -= length;
            waiting -= 1;
        }
        usize::MAX
    }
}

/// A text of at most `limit` bytes: its beginning and its end, and between them a note of how
/// much was left out. Never parts a character. With a limit that is too small for the note, the
/// beginning alone.
#[must_use]
pub fn cut_middle(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let note = |left_out: usize| format!("\n[… {left_out} bytes were left out here …]\n");
    let room = limit.saturating_sub(note(text.len()).len());
    if room == 0 {
        return text[..floor(text, limit)].to_owned();
    }
    let head = floor(text, room.div_ceil(2));
    let tail = ceil(text, text.len() - room / 2);
    format!("{}{}{}", &text[..head], note(tail - head), &text[tail..])
}

/// The last boundary of a character at or before `at`.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The first boundary of a character at or after `at`.
fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

fn keep(details: &mut Value, whole: &str) {
    match details {
        Value::Object(map) => {
            map.insert(WHOLE_OUTPUT.to_owned(), whole.into());
        }
        Value::Null => *details = json!({ WHOLE_OUTPUT: whole }),
        other => {
            let before = other.take();
            *other = json!({ "details": before, WHOLE_OUTPUT: whole });
        }
    }
}

#[cfg(test)]
mod tests;
