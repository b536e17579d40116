//! How much of a result a model is shown (T-8).
//!
//! Knows: how text is cut so that its ends stay and the reader is told. Does not know: tokens,
//! models, files.

use std::path::PathBuf;

use serde_json::{Value, json};
use yiem_core::{Content, ResourceBody, ToolOutput};

/// The key in a result's details under which its whole text is kept.
pub const WHOLE_OUTPUT: &str = "wholeOutput";

/// The key in a result's details under which the path of the file with its whole text stands.
pub const WHOLE_OUTPUT_FILE: &str = "wholeOutputFile";

/// What becomes of the whole text of a result that is cut (T-8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WholeOutput {
    /// It is dropped.
    #[default]
    Dropped,
    /// It is kept in the result's details, under [`WHOLE_OUTPUT`]: the application sees it, the
    /// model does not.
    InDetails,
    /// It is written to a file in this folder by whoever runs the call; the details have the
    /// path, under [`WHOLE_OUTPUT_FILE`].
    InFolder(PathBuf),
}

/// How much of a result's text a model is shown, and what becomes of the whole.
///
/// ```
/// use yiem_core::ToolOutput;
/// use yiem_tools::ResultLimit;
///
/// let mut output = ToolOutput::text("a".repeat(10_000));
/// let whole = ResultLimit::new(1_000).apply(&mut output);
/// assert_eq!(whole.map(|w| w.len()), Some(10_000));
/// assert!(output.plain_text().contains("[… 9000 bytes left out …]"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultLimit {
    bytes: usize,
    whole: WholeOutput,
}

impl Default for ResultLimit {
    /// 64 KiB (R-17); the whole is not kept.
    fn default() -> Self {
        Self::new(64 * 1024)
    }
}

impl ResultLimit {
    /// At most this many bytes of text, in all blocks together; 0 means no limit. The notes of
    /// what is missing come on top.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes,
            whole: WholeOutput::Dropped,
        }
    }

    /// The same with another fate of the whole text.
    #[must_use]
    pub fn with_whole(mut self, whole: WholeOutput) -> Self {
        self.whole = whole;
        self
    }

    /// The limit in bytes; 0 means none.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Cuts a result's text if it is too long, in the middle, with a note of how much is
    /// missing; the text of embedded resources is text as well. Very many pieces of text become
    /// one. Blocks that are no text stay, but for what stands for a resource and is too long
    /// itself. Gives the whole text if it was cut, for whoever writes it to a file.
    pub fn apply(&self, output: &mut ToolOutput) -> Option<String> {
        if self.bytes == 0 {
            return None;
        }
        for block in &mut output.content {
            shorten_name(block);
        }
        let texts = || output.content.iter().filter_map(shown);
        if texts().map(str::len).sum::<usize>() <= self.bytes {
            return None;
        }
        let lengths: Vec<usize> = texts().map(str::len).collect();
        let whole = texts().collect::<Vec<_>>().join("\n");
        if lengths.len() > MOST_PIECES {
            let first = output.content.iter().position(|b| shown(b).is_some());
            output.content.retain(|block| shown(block).is_none());
            let all = Content::text(cut_middle(&whole, self.bytes));
            output.content.insert(first.unwrap_or_default(), all);
        } else {
            // The longest blocks give first: short ones beside them are often what the rest is
            // about.
            let most = limit_each(lengths, self.bytes);
            for text in output.content.iter_mut().filter_map(shown_mut) {
                if text.len() > most {
                    *text = cut_middle(text, most);
                }
            }
        }
        if self.whole == WholeOutput::InDetails {
            keep_in_details(&mut output.details, WHOLE_OUTPUT, &whole);
        }
        Some(whole)
    }
}

/// More pieces of text than this are cut as one: a note in each would be longer than they are.
const MOST_PIECES: usize = 256;

/// The text of a block that a model is shown.
fn shown(block: &Content) -> Option<&str> {
    match block {
        Content::Text(text) => Some(&text.text),
        Content::Resource(resource) => match &resource.body {
            ResourceBody::Text(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn shown_mut(block: &mut Content) -> Option<&mut String> {
    match block {
        Content::Text(text) => Some(&mut text.text),
        Content::Resource(resource) => match &mut resource.body {
            ResourceBody::Text(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// A resource is named to a model by its title and address, a medium by its type: no name is as
/// long as a text.
fn shorten_name(block: &mut Content) {
    const LONGEST: usize = 2_048;
    let cut = |name: &mut String| {
        if name.len() > LONGEST {
            *name = cut_middle(name, LONGEST);
        }
    };
    match block {
        Content::Resource(resource) => {
            cut(&mut resource.uri);
            resource.title.iter_mut().for_each(cut);
            resource.mime_type.iter_mut().for_each(cut);
        }
        Content::Image(image) => cut(&mut image.mime_type),
        Content::Audio(audio) => cut(&mut audio.mime_type),
        Content::Text(_) | Content::Other(_) => {}
    }
}

/// The most that each of several texts may have so that all fit: short ones keep theirs, long
/// ones share what is left.
fn limit_each(mut lengths: Vec<usize>, mut left: usize) -> usize {
    lengths.sort_unstable();
    let count = lengths.len();
    for (i, length) in lengths.into_iter().enumerate() {
        let fair = left / (count - i);
        if length > fair {
            return fair;
        }
        left -= length;
    }
    usize::MAX
}

/// A text's beginning and end, together at most `limit` bytes, and between them a note of how
/// much was left out, which comes on top. Never parts a character.
#[must_use]
pub fn cut_middle(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = floor(text, limit.div_ceil(2));
    let tail = ceil(text, text.len() - limit / 2);
    format!(
        "{}\n[… {} bytes left out …]\n{}",
        &text[..head],
        tail - head,
        &text[tail..]
    )
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

/// Adds a text to a result's details; details that are no object move under `details`.
pub fn keep_in_details(details: &mut Value, key: &str, text: &str) {
    match details {
        Value::Object(map) => {
            map.insert(key.to_owned(), text.into());
        }
        Value::Null => *details = json!({ key: text }),
        other => {
            let before = other.take();
            *other = json!({ "details": before, key: text });
        }
    }
}

#[cfg(test)]
mod tests;
