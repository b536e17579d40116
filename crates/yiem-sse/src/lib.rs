//! An incremental reader of server-sent events: bytes in, events out, any chunking.
//!
//! [`SseReader`] is fed the pieces of a response body as they arrive and calls back with each
//! event. It does no IO and copies a line only where a piece border cuts it. It reads what the
//! WHATWG grammar allows (LF, CRLF and CR line ends, comments, a byte order mark, several `data`
//! lines) and what servers do beyond it: a last event that no blank line ends, bytes that are not
//! UTF-8, and a body that is plain JSON in place of events.
//!
//! ```
//! use yiem_sse::SseReader;
//!
//! let mut reader = SseReader::new();
//! let mut seen = Vec::new();
//! for piece in ["dat", "a: one\r", "\n\r\ndata: tw", "o"] {
//!     reader.feed(piece.as_bytes(), |event| seen.push(event.data.to_owned()))?;
//! }
//! reader.finish(|event| seen.push(event.data.to_owned()))?;
//! assert_eq!(seen, ["one", "two"]);
//! # Ok::<(), yiem_sse::SseError>(())
//! ```

mod reader;

pub use reader::{BodyKind, Event, SseError, SseLimits, SseReader};
