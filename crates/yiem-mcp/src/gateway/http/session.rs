//! Sessions of the legacy era: ids that were given out, and nothing else.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many sessions are known at once; the one that was silent longest makes room.
const KEPT: usize = 10_000;

/// The sessions that are open, each with when it was last used.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Duration>>);

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens one.
    pub(super) fn begin(&self, id: String, now: Duration) {
        let mut sessions = self.lock();
        if sessions.len() >= KEPT
            && let Some(oldest) = sessions
                .iter()
                .min_by_key(|(_, used)| **used)
                .map(|(id, _)| id.clone())
        {
            sessions.remove(&oldest);
        }
        sessions.insert(id, now);
    }

    /// Uses one. False when there is none.
    pub(super) fn touch(&self, id: &str, now: Duration) -> bool {
        self.lock().get_mut(id).map(|used| *used = now).is_some()
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
            sessions.begin(format!("s{number}"), Duration::from_secs(number as u64));
        }
        assert!(sessions.touch("s0", Duration::from_secs(1_000_000)));
        sessions.begin("new".into(), Duration::from_secs(1_000_001));
        assert!(sessions.touch("s0", Duration::ZERO), "it was just used");
        assert!(!sessions.touch("s1", Duration::ZERO), "it made room");
        assert!(sessions.end("new") && !sessions.end("new"));
    }
}
