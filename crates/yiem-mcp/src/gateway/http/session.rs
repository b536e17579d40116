//! Sessions of the legacy era: ids that were given out, what their clients can do, where they listen.

use bytes::Bytes;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How many sessions are known at once; the one that was silent longest makes room.
const KEPT: usize = 10_000;
/// How many events may wait for one that listens; more are dropped.
const EVENTS_WAITING: usize = 256;

/// The sessions that are open.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Session>>);

/// One session.
#[derive(Debug)]
struct Session {
    /// When it was last used.
    used: Duration,
    /// What its client said that it can do.
    capabilities: Arc<Map<String, Value>>,
    /// The way to the stream on which the client listens, if it does.
    stream: Option<mpsc::Sender<Bytes>>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens one. The one that made room for it, if one had to.
    pub(super) fn begin(
        &self,
        id: String,
        capabilities: Map<String, Value>,
        now: Duration,
    ) -> Option<String> {
        let mut sessions = self.lock();
        let oldest = (sessions.len() >= KEPT)
            .then(|| {
                sessions
                    .iter()
                    .min_by_key(|(_, session)| session.used)
                    .map(|(id, _)| id.clone())
            })
            .flatten();
        if let Some(oldest) = &oldest {
            sessions.remove(oldest);
        }
        sessions.insert(
            id,
            Session {
                used: now,
                capabilities: Arc::new(capabilities),
                stream: None,
            },
        );
        oldest
    }

    /// Uses one: what its client can do. `None` when there is none.
    pub(super) fn touch(&self, id: &str, now: Duration) -> Option<Arc<Map<String, Value>>> {
        let mut sessions = self.lock();
        let session = sessions.get_mut(id)?;
        session.used = now;
        Some(Arc::clone(&session.capabilities))
    }

    /// Its client listens from now on. A stream on which it listened before ends.
    pub(super) fn listens(&self, id: &str) -> Option<mpsc::Receiver<Bytes>> {
        let mut sessions = self.lock();
        let session = sessions.get_mut(id)?;
        let (send, events) = mpsc::channel(EVENTS_WAITING);
        session.stream = Some(send);
        Some(events)
    }

    /// Sends an event on the stream on which that client listens. False when it does not, or too many wait.
    pub(super) fn send(&self, id: &str, event: Bytes) -> bool {
        let sessions = self.lock();
        let stream = sessions.get(id).and_then(|session| session.stream.as_ref());
        stream.is_some_and(|stream| stream.try_send(event).is_ok())
    }

    /// Ends one. False when there is none.
    pub(super) fn end(&self, id: &str) -> bool {
        self.lock().remove(id).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_that_was_silent_longest_makes_room() {
        let sessions = Sessions::default();
        for number in 0..KEPT {
            let now = Duration::from_secs(number as u64);
            assert_eq!(sessions.begin(format!("s{number}"), Map::new(), now), None);
        }
        let later = Duration::from_secs(1_000_000);
        assert!(sessions.touch("s0", later).is_some());
        let gone = sessions.begin("new".into(), Map::new(), later);
        assert_eq!(gone.as_deref(), Some("s1"));
        assert!(
            sessions.touch("s0", Duration::ZERO).is_some(),
            "it was just used"
        );
        assert!(
            sessions.touch("s1", Duration::ZERO).is_none(),
            "it made room"
        );
        assert!(sessions.end("new") && !sessions.end("new"));
    }

    #[test]
    fn the_last_stream_of_a_session_is_the_one_that_counts() {
        let sessions = Sessions::default();
        sessions.begin("s".into(), Map::new(), Duration::ZERO);
        assert!(!sessions.send("s", Bytes::new()), "nobody listens");
        assert!(sessions.listens("other").is_none());
        let mut first = sessions.listens("s").expect("a stream");
        let mut second = sessions.listens("s").expect("a stream");
        assert!(sessions.send("s", Bytes::from_static(b"x")));
        assert!(first.try_recv().is_err(), "it has ended");
        assert_eq!(second.try_recv().expect("an event"), "x");
    }
}
