//! A world without time whose ids count up, and pieces of bytes by a number.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use yiem_core::{BoxFuture, Env, IdKind, Timestamp};

#[derive(Debug, Default)]
pub(crate) struct Counting(AtomicUsize);

impl Counting {
    pub(crate) fn shared() -> Arc<dyn Env> {
        Arc::new(Self::default())
    }
}

impl Env for Counting {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn new_id(&self, kind: IdKind) -> String {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        format!("{}_made_{n}", kind.prefix())
    }

    fn random(&self) -> f64 {
        0.5
    }
}

/// The bytes in pieces whose lengths follow from `seed`; short ones more often than long ones.
pub(crate) fn pieces(bytes: &[u8], seed: u32) -> Vec<&[u8]> {
    let mut state = seed | 1;
    let mut rest = bytes;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let length = match state % 4 {
            0 => 1,
            1 => 2 + (state >> 8) as usize % 4,
            2 => (state >> 8) as usize % 64,
            _ => (state >> 8) as usize % 2_000,
        };
        let (piece, left) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = left;
    }
    pieces
}

/// A number and what stands behind it.
pub(crate) fn seed(data: &[u8]) -> Option<(u32, &[u8])> {
    let (head, rest) = data.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*head), rest))
}
