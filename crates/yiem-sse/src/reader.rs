//! The reader of server-sent events, as a value that is fed bytes.
//!
//! Knows: the line and event grammar, piece borders, its own bounds, and how to tell a body of
//! events from one that is plain JSON or markup.
//! Does not know: sockets, time, what the data of an event means.

use std::fmt;

use memchr::{memchr, memchr2};

#[cfg(test)]
mod tests;

/// How much an [`SseReader`] keeps before it gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseLimits {
    /// Most bytes of one line, and of all `data` lines of one event. Default: 16 MiB.
    pub event_bytes: usize,
    /// Most bytes of a body that is no event stream, which is kept for the caller.
    /// Default: 64 MiB.
    pub body_bytes: usize,
}

impl Default for SseLimits {
    fn default() -> Self {
        Self {
            event_bytes: 16 << 20,
            body_bytes: 64 << 20,
        }
    }
}

/// One event, borrowed from the reader and the piece that ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The value of its `event` field; `None` when it had none (then it is a `message`).
    pub name: Option<&'a str>,
    /// The values of its `data` fields, joined by line feeds. Bytes that are not UTF-8 are
    /// replaced by U+FFFD. Empty when the event had an empty `data` field.
    pub data: &'a str,
    /// The last `id` seen in the stream so far; what a client sends as `Last-Event-ID`.
    pub id: Option<&'a str>,
}

/// What a body turned out to be, by its first byte that is not white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// Nothing but white space has come so far.
    Empty,
    /// A stream of events.
    Events,
    /// A plain JSON object or array; it is kept whole, see [`SseReader::body`].
    Json,
    /// Markup, as proxies send it with their error pages; kept like JSON.
    Markup,
}

/// A bound was reached. The reader takes nothing more after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SseError {
    /// One line, or the data of one event, is longer than [`SseLimits::event_bytes`].
    EventTooLong {
        /// The bound, in bytes.
        limit: usize,
    },
    /// A body that is no event stream is longer than [`SseLimits::body_bytes`].
    BodyTooLong {
        /// The bound, in bytes.
        limit: usize,
    },
}

impl fmt::Display for SseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EventTooLong { limit } => write!(
                f,
                "an event of the stream is longer than {limit} bytes; raise the limit if the server means it"
            ),
            Self::BodyTooLong { limit } => write!(
                f,
                "the body is no event stream and longer than {limit} bytes; raise the limit if the server means it"
            ),
        }
    }
}

impl std::error::Error for SseError {}

/// Reads server-sent events out of pieces of bytes.
///
/// Work is linear in the bytes for any splitting, and what it keeps is bounded by [`SseLimits`].
#[derive(Debug, Default)]
pub struct SseReader {
    limits: SseLimits,
    start: Start,
    /// The last line ended in CR; a line feed that follows belongs to it.
    after_cr: bool,
    /// The part of the current line that earlier pieces brought.
    line: Vec<u8>,
    /// The `data` lines so far, when they do not stand in the current piece.
    data: Vec<u8>,
    has_data: bool,
    name: Option<String>,
    id: Option<String>,
    retry: Option<u64>,
    stray: Option<String>,
    body: Vec<u8>,
    failed: Option<SseError>,
}

/// What is known of the beginning of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// This many bytes of a byte order mark have come and nothing else.
    Mark(u8),
    /// Past the mark, and nothing but white space since.
    Fresh,
    Events,
    Json,
    Markup,
}

impl Default for Start {
    fn default() -> Self {
        Self::Mark(0)
    }
}

/// How much of a stray line is kept.
const STRAY_BYTES: usize = 16 << 10;

const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

impl SseReader {
    /// A reader with the default [`SseLimits`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A reader with bounds of one's own.
    #[must_use]
    pub fn with_limits(limits: SseLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Takes the next piece of the body and calls `on_event` for each event that it ends.
    ///
    /// # Errors
    /// [`SseError`] when a bound is reached; events that ended before it were handed out, and
    /// every later call gives the same error.
    pub fn feed(
        &mut self,
        piece: &[u8],
        mut on_event: impl FnMut(Event<'_>),
    ) -> Result<(), SseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.take(piece, &mut on_event);
        if let Err(error) = result {
            self.failed = Some(error);
            self.line = Vec::new();
            self.data = Vec::new();
            self.body = Vec::new();
        }
        result
    }

    /// Says that the body ended; an event that no blank line ended is handed out now.
    ///
    /// The WHATWG grammar drops such an event, but servers that forget the last line feed put
    /// their finish into it.
    ///
    /// # Errors
    /// The error of an earlier [`feed`](Self::feed), again.
    pub fn finish(&mut self, mut on_event: impl FnMut(Event<'_>)) -> Result<(), SseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if let Start::Mark(seen @ 1..) = self.start {
            // Not a whole mark: the bytes are a line's, however odd.
            self.start = Start::Events;
            self.line
                .extend_from_slice(&BYTE_ORDER_MARK[..usize::from(seen)]);
        }
        if self.is_body() {
            return Ok(());
        }
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            let mut held = None;
            self.field(&line, &mut held)?;
            self.spill(held)?;
        }
        self.dispatch(None, &mut on_event);
        Ok(())
    }

    /// What the body is, as far as it has come.
    #[must_use]
    pub fn kind(&self) -> BodyKind {
        match self.start {
            Start::Mark(_) | Start::Fresh => BodyKind::Empty,
            Start::Events => BodyKind::Events,
            Start::Json => BodyKind::Json,
            Start::Markup => BodyKind::Markup,
        }
    }

    /// The bytes of a body that is no event stream, as far as they have come; else empty.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The last `id` field of the stream.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The last `retry` field of the stream, in milliseconds.
    #[must_use]
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry
    }

    /// The beginning of the first line that is no field of the grammar, for a message about a
    /// body that turns out to be no event stream.
    #[must_use]
    pub fn stray_line(&self) -> Option<&str> {
        self.stray.as_deref()
    }

    fn is_body(&self) -> bool {
        matches!(self.start, Start::Json | Start::Markup)
    }

    fn take(&mut self, piece: &[u8], on_event: &mut impl FnMut(Event<'_>)) -> Result<(), SseError> {
        let mut rest = piece;
        if self.start != Start::Events {
            if !self.is_body() {
                rest = self.sniff(rest);
            }
            if self.is_body() {
                return self.keep_body(rest);
            }
        }
        // A `data` line of the current event that stands whole in this piece.
        let mut held: Option<&[u8]> = None;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            if rest[0] == b'\n' {
                rest = &rest[1..];
            }
        }
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let line = &rest[..end];
            let cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if cr {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            if self.line.is_empty() {
                if line.is_empty() {
                    self.dispatch(held.take(), on_event);
                } else {
                    self.check(line.len())?;
                    self.field(line, &mut held)?;
                }
            } else {
                self.check(self.line.len() + line.len())?;
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                let mut joined = None;
                self.field(&whole, &mut joined)?;
                self.spill(joined)?;
                whole.clear();
                self.line = whole;
            }
        }
        self.spill(held)?;
        self.check(self.line.len() + rest.len())?;
        self.line.extend_from_slice(rest);
        Ok(())
    }

    /// Looks at the first bytes of the body; gives back what is left to read.
    fn sniff<'a>(&mut self, mut rest: &'a [u8]) -> &'a [u8] {
        while let Start::Mark(seen) = self.start {
            let Some(&byte) = rest.first() else {
                return rest;
            };
            if byte == BYTE_ORDER_MARK[usize::from(seen)] {
                rest = &rest[1..];
                self.start = if seen == 2 {
                    Start::Fresh
                } else {
                    Start::Mark(seen + 1)
                };
            } else if seen == 0 {
                self.start = Start::Fresh;
            } else {
                // No mark after all: what looked like one begins the first line.
                self.start = Start::Events;
                self.line
                    .extend_from_slice(&BYTE_ORDER_MARK[..usize::from(seen)]);
                return rest;
            }
        }
        let Some(first) = rest.iter().position(|byte| !byte.is_ascii_whitespace()) else {
            return rest;
        };
        self.start = match rest[first] {
            b'{' | b'[' => Start::Json,
            b'<' => Start::Markup,
            _ => Start::Events,
        };
        if self.is_body() {
            // White space in front is not the body's, in whatever pieces it came.
            self.line = Vec::new();
            return &rest[first..];
        }
        rest
    }

    fn keep_body(&mut self, rest: &[u8]) -> Result<(), SseError> {
        let limit = self.limits.body_bytes;
        if self.body.len() + rest.len() > limit {
            return Err(SseError::BodyTooLong { limit });
        }
        self.body.extend_from_slice(rest);
        Ok(())
    }

    fn check(&self, length: usize) -> Result<(), SseError> {
        let limit = self.limits.event_bytes;
        if length > limit {
            Err(SseError::EventTooLong { limit })
        } else {
            Ok(())
        }
    }

    /// Moves a `data` line that stands in the piece into the reader's own buffer.
    fn spill(&mut self, held: Option<&[u8]>) -> Result<(), SseError> {
        let Some(value) = held else { return Ok(()) };
        self.check(self.data.len() + value.len() + 1)?;
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        self.has_data = true;
        Ok(())
    }

    fn field<'a>(&mut self, line: &'a [u8], held: &mut Option<&'a [u8]>) -> Result<(), SseError> {
        // By far the most lines.
        if let Some(value) = line.strip_prefix(b"data:") {
            return self.data_line(strip_space(value), held);
        }
        let (field, value) = match memchr(b':', line) {
            Some(0) => return Ok(()),
            Some(colon) => (&line[..colon], strip_space(&line[colon + 1..])),
            None => (line, &b""[..]),
        };
        match field {
            b"data" => return self.data_line(value, held),
            b"event" => {
                self.name = (!value.is_empty()).then(|| String::from_utf8_lossy(value).into());
            }
            b"id" if memchr(0, value).is_none() => {
                self.id = Some(String::from_utf8_lossy(value).into());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                if let Some(retry) = std::str::from_utf8(value)
                    .ok()
                    .and_then(|digits| digits.parse().ok())
                {
                    self.retry = Some(retry);
                }
            }
            b"id" | b"retry" => {}
            _ if self.stray.is_none() => {
                let head = &line[..line.len().min(STRAY_BYTES)];
                self.stray = Some(String::from_utf8_lossy(head).into());
            }
            _ => {}
        }
        Ok(())
    }

    fn data_line<'a>(
        &mut self,
        value: &'a [u8],
        held: &mut Option<&'a [u8]>,
    ) -> Result<(), SseError> {
        if held.is_none() && !self.has_data {
            *held = Some(value);
            return Ok(());
        }
        self.spill(held.take())?;
        self.spill(Some(value))
    }

    fn dispatch(&mut self, held: Option<&[u8]>, on_event: &mut impl FnMut(Event<'_>)) {
        if held.is_some() || self.has_data {
            let bytes = held.unwrap_or(&self.data);
            let repaired;
            let data = match std::str::from_utf8(bytes) {
                Ok(text) => text,
                Err(_) => {
                    repaired = String::from_utf8_lossy(bytes);
                    &repaired
                }
            };
            on_event(Event {
                name: self.name.as_deref(),
                data,
                id: self.id.as_deref(),
            });
            self.data.clear();
            self.has_data = false;
        }
        self.name = None;
    }
}

fn strip_space(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}
