//! The messages of a conversation, as a value that grows in constant time (C-8), and the slot
//! in which an encoder keeps what it made of them (O-7).
//!
//! Knows: order, sharing, common beginnings. Does not know: what the messages say.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::message::Message;

/// The first row holds this many messages; each next one twice as many.
const FIRST_ROW: usize = 16;
/// Rows enough for every message that fits an address space.
const ROWS: usize = usize::BITS as usize - FIRST_ROW.trailing_zeros() as usize;

/// A conversation's messages: a value that is cloned and extended in O(1) (C-8).
///
/// A clone is a view of the same messages; pushing to one does not change the other. Messages
/// are handed out by shared pointer and never copied.
///
/// ```
/// use yiem_core::{History, Message, Timestamp};
/// let mut a = History::new();
/// a.push(Message::user("hi", Timestamp::default()));
/// let b = a.clone();
/// a.push(Message::user("there", Timestamp::default()));
/// assert_eq!((a.len(), b.len(), a.common_prefix(&b)), (2, 1, 1));
/// ```
#[derive(Clone)]
pub struct History {
    log: Arc<Log>,
    len: usize,
}

/// Rows of slots, each filled once. Views of different lengths share it; whoever comes first
/// takes the next slot, whoever comes second copies the pointers into a log of their own.
struct Log {
    rows: [OnceLock<Row>; ROWS],
    /// How many slots are taken; a slot below it may for a moment still be empty.
    taken: AtomicUsize,
    /// Tells logs apart without keeping one alive.
    id: u64,
    /// The log that this one forked off, and where: for [`History::common_prefix`].
    parent: Option<(u64, usize)>,
}

/// Slots that are filled one after another, each once.
type Row = Box<[OnceLock<Arc<Message>>]>;

/// Row and place in it of the message at `index`.
fn place(index: usize) -> (usize, usize) {
    let row = (index / FIRST_ROW + 1).ilog2() as usize;
    (row, index - FIRST_ROW * ((1 << row) - 1))
}

impl Log {
    fn new(parent: Option<(u64, usize)>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            rows: [const { OnceLock::new() }; ROWS],
            taken: AtomicUsize::new(0),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            parent,
        }
    }

    fn get(&self, index: usize) -> Option<&Arc<Message>> {
        let (row, at) = place(index);
        self.rows.get(row)?.get()?.get(at)?.get()
    }

    /// Puts a message at `index` if nobody took that place before; gives it back otherwise.
    fn try_put(&self, index: usize, message: Arc<Message>) -> Result<(), Arc<Message>> {
        if self
            .taken
            .compare_exchange(index, index + 1, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            return Err(message);
        }
        let (row, at) = place(index);
        let slots =
            self.rows[row].get_or_init(|| (0..FIRST_ROW << row).map(|_| OnceLock::new()).collect());
        slots[at].set(message)
    }
}

impl History {
    /// No messages.
    #[must_use]
    pub fn new() -> Self {
        Self {
            log: Arc::new(Log::new(None)),
            len: 0,
        }
    }

    /// How many messages there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a message at the end: O(1), unless another clone already went on from here; then
    /// the pointers, not the messages, are copied once.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        if let Err(message) = self.log.try_put(self.len, message.into()) {
            let fork = Log::new(Some((self.log.id, self.len)));
            for (index, old) in self.iter().enumerate() {
                let put = fork.try_put(index, Arc::clone(old));
                debug_assert!(
                    put.is_ok(),
                    "a log that nobody else sees takes every message"
                );
            }
            let put = fork.try_put(self.len, message);
            debug_assert!(
                put.is_ok(),
                "a log that nobody else sees takes every message"
            );
            self.log = Arc::new(fork);
        }
        self.len += 1;
    }

    /// The message at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Arc<Message>> {
        (index < self.len).then(|| self.log.get(index)).flatten()
    }

    /// The last message.
    #[must_use]
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.len.checked_sub(1).and_then(|i| self.get(i))
    }

    /// The messages, in order.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> + ExactSizeIterator {
        self.range(0)
    }

    /// The messages from `start` on, in order.
    #[must_use]
    pub fn range(
        &self,
        start: usize,
    ) -> impl DoubleEndedIterator<Item = &Arc<Message>> + ExactSizeIterator {
        (start.min(self.len)..self.len).map(|i| match self.get(i) {
            Some(message) => message,
            None => unreachable!("every message below the length of a view is in its log"),
        })
    }

    /// The first `len` messages, as a view of the same log; all, if there are fewer.
    #[must_use]
    pub fn truncated(&self, len: usize) -> Self {
        Self {
            log: Arc::clone(&self.log),
            len: len.min(self.len),
        }
    }

    /// How many messages at the beginning are known to be the very same ones, without
    /// comparing any: O(1) for views of one log, and for a view and one that forked off it.
    /// May be less than what is really common, never more.
    #[must_use]
    pub fn common_prefix(&self, other: &Self) -> usize {
        let common = self.len.min(other.len);
        if Arc::ptr_eq(&self.log, &other.log) {
            return common;
        }
        for (fork, origin) in [(self, other), (other, self)] {
            if let Some((parent, at)) = fork.log.parent
                && parent == origin.log.id
            {
                return common.min(at);
            }
        }
        0
    }
}

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len
            && self
                .range(self.common_prefix(other))
                .zip(other.range(self.common_prefix(other)))
                .all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
    }
}

impl<M: Into<Arc<Message>>> FromIterator<M> for History {
    fn from_iter<T: IntoIterator<Item = M>>(iter: T) -> Self {
        let mut history = Self::new();
        history.extend(iter);
        history
    }
}

impl<M: Into<Arc<Message>>> Extend<M> for History {
    fn extend<T: IntoIterator<Item = M>>(&mut self, iter: T) {
        for message in iter {
            self.push(message);
        }
    }
}

impl serde::Serialize for History {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.iter())
    }
}

impl<'de> serde::Deserialize<'de> for History {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Message>::deserialize(deserializer)?
            .into_iter()
            .collect())
    }
}

/// The slot of one conversation in which an encoder keeps what it made of the messages (O-7).
///
/// Goes along with every [`ChatRequest`](crate::ChatRequest) of the conversation. Opaque to all
/// but the encoder, who must be able to do without: a slot may be empty at any time, and holds
/// whatever type the encoder put there last.
#[derive(Clone, Default)]
pub struct Memo(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl Memo {
    /// An empty slot.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes out what is there, if it is of that type; what is of another stays.
    #[must_use]
    pub fn take<T: Any + Send>(&self) -> Option<Box<T>> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = slot.take()?;
        match held.downcast::<T>() {
            Ok(value) => Some(value),
            Err(other) => {
                *slot = Some(other);
                None
            }
        }
    }

    /// Puts a value in place of what is there.
    pub fn put<T: Any + Send>(&self, value: Box<T>) {
        let old = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(value);
        drop(old);
    }
}

impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memo")
    }
}

#[cfg(test)]
mod tests;
