//! The body of a request in pieces.
//!
//! Knows: that the history, its largest part, is shared with the memory of what was written, and
//! goes to the socket without a copy. Does not know: what the pieces hold.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// What stands before the messages, and the messages with the end of the body.
#[derive(Debug)]
pub(super) struct RequestBody {
    /// In the order in which they go; each is taken when it goes.
    pieces: [Bytes; 2],
    next: usize,
    left: u64,
}

/// Bytes that others hold too.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl RequestBody {
    pub(super) fn new(head: Arc<Vec<u8>>, messages: Arc<Vec<u8>>) -> Self {
        let pieces = [
            Bytes::from_owner(Shared(head)),
            Bytes::from_owner(Shared(messages)),
        ];
        Self {
            left: pieces.iter().map(|piece| piece.len() as u64).sum(),
            pieces,
            next: 0,
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        while let Some(piece) = {
            let next = self.next;
            self.pieces.get_mut(next).map(std::mem::take)
        } {
            self.next += 1;
            // An empty frame says nothing, and in some encodings the end.
            if !piece.is_empty() {
                self.left -= piece.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests;
