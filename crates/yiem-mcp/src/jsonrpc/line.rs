//! A byte stream, cut into lines with a cap.

use super::{IdScanner, RequestId};
use bytes::{Buf, Bytes, BytesMut};

/// One line of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A whole line without its end; never empty.
    Whole(Bytes),
    /// A line over the cap, thrown away but for its length and its id.
    TooLong {
        /// Its length in bytes.
        length: u64,
        /// The id of the answer that it was.
        id: Option<RequestId>,
    },
}

/// Cuts pushed bytes into lines. Holds at most the cap; what is longer is only scanned for its id.
#[derive(Debug)]
pub struct LineReader {
    buffer: BytesMut,
    /// How far `buffer` was searched for a line's end.
    searched: usize,
    cap: usize,
    oversize: Option<(u64, IdScanner)>,
}

impl LineReader {
    /// A reader whose lines may be `cap` bytes long.
    #[must_use]
    pub fn new(cap: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            cap,
            oversize: None,
        }
    }

    /// Where the next bytes are to be read into; call [`LineReader::next_line`] until it is empty after.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next whole line, if one has arrived. Empty lines are left out.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let end =
                memchr::memchr(b'\n', &self.buffer[self.searched..]).map(|at| at + self.searched);
            let Some(end) = end else {
                self.searched = self.buffer.len();
                self.shed();
                return None;
            };
            let mut line = self.buffer.split_to(end);
            self.buffer.advance(1);
            self.searched = 0;
            if let Some((length, mut scanner)) = self.oversize.take() {
                scanner.feed(&line);
                scanner.feed(b"\n");
                return Some(Line::TooLong {
                    length: length + line.len() as u64,
                    id: scanner.answer_id(),
                });
            }
            if line.len() > self.cap {
                let mut scanner = IdScanner::new();
                scanner.feed(&line);
                scanner.feed(b"\n");
                return Some(Line::TooLong {
                    length: line.len() as u64,
                    id: scanner.answer_id(),
                });
            }
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(Line::Whole(line.freeze()));
            }
        }
    }

    /// What is left when the stream has ended: a last line without its end.
    pub fn finish(&mut self) -> Option<Line> {
        if self.buffer.is_empty() && self.oversize.is_none() {
            return None;
        }
        self.buffer.extend_from_slice(b"\n");
        self.next_line()
    }

    /// Throws away what is beyond the cap, keeping its length and id.
    fn shed(&mut self) {
        if self.oversize.is_none() && self.buffer.len() <= self.cap {
            return;
        }
        let (length, scanner) = self.oversize.get_or_insert_with(|| (0, IdScanner::new()));
        scanner.feed(&self.buffer);
        *length += self.buffer.len() as u64;
        self.buffer.clear();
        self.searched = 0;
    }
}
