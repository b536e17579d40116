//! The only door to clocks, timers, randomness and ids (C-9).
//!
//! Knows: what can be asked of the world. Does not know: who asks.
//! Tests pass in a manual one; programs use `SystemEnv` (feature `system`).

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A boxed, sendable future; what `#[async_trait]` methods return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A point in time: UTC, milliseconds since 1970-01-01T00:00:00Z (C-2, SP-001 `timestamp`).
///
/// Written as RFC 3339 with three digits after the second (`2026-11-30T03:17:12.000Z`).
/// Read as RFC 3339 in any zone, as a date and time without a zone (taken as UTC, as the
/// seeds write it), or as a whole number of milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest and latest that can be written: years 0 to 9999.
    const RANGE: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

    /// From milliseconds since 1970; held within the years 0 to 9999.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(*Self::RANGE.start(), *Self::RANGE.end()))
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// The time from `earlier` to this; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Reads RFC 3339, or a date and time without a zone as UTC.
    ///
    /// # Errors
    /// The text is neither.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let text = text.trim();
        let parsed = OffsetDateTime::parse(text, &Rfc3339).or_else(|_| {
            OffsetDateTime::parse(&format!("{}Z", text.replacen(' ', "T", 1)), &Rfc3339)
        });
        match parsed {
            Ok(t) => Ok(Self::from_millis(
                i64::try_from(t.unix_timestamp_nanos().div_euclid(1_000_000)).unwrap_or(i64::MAX),
            )),
            Err(_) => Err(TimestampError(text.chars().take(60).collect())),
        }
    }
}

/// A text that is no point in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a time: {0:?}; write RFC 3339, e.g. 2026-11-30T03:17:12.000Z")]
pub struct TimestampError(String);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            t.year(),
            u8::from(t.month()),
            t.day(),
            t.hour(),
            t.minute(),
            t.second(),
            t.millisecond()
        )
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Timestamp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time in RFC 3339, or milliseconds since 1970")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Timestamp, E> {
                Timestamp::parse(text).map_err(E::custom)
            }
            fn visit_i64<E>(self, millis: i64) -> Result<Timestamp, E> {
                Ok(Timestamp::from_millis(millis))
            }
            fn visit_u64<E>(self, millis: u64) -> Result<Timestamp, E> {
                Ok(Timestamp::from_millis(
                    i64::try_from(millis).unwrap_or(i64::MAX),
                ))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// What an id is for; a real environment may show it in the id, a test one counts each apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdKind {
    /// A tool call without an id of the model's: `call_…`.
    Call,
    /// A run: `run_…`.
    Run,
    /// A session: `session_…`.
    Session,
    /// A question to a person about a call: `approval_…`.
    Approval,
    /// Anything else that needs to be told apart, such as a request or a message on a wire.
    Message,
}

impl IdKind {
    /// The word that ids of this kind begin with.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Run => "run",
            Self::Session => "session",
            Self::Approval => "approval",
            Self::Message => "msg",
        }
    }
}

/// Clock, timer, randomness and ids: the one door to each (C-9).
///
/// Passed in as `Arc<dyn Env>`. Nothing else in Yiem reads a clock, sleeps or makes an id.
pub trait Env: Send + Sync + fmt::Debug {
    /// The time of day.
    fn now(&self) -> Timestamp;

    /// Time since some fixed point in the past; never goes back. For deadlines and durations.
    fn elapsed(&self) -> Duration;

    /// Ends after `duration`. Dropping the future ends the wait.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// A new id that was never given before: at most 40 characters of `A-Za-z0-9_-`.
    fn new_id(&self, kind: IdKind) -> String;

    /// A number from 0 (included) to 1 (excluded), for jitter.
    fn random(&self) -> f64;
}

#[cfg(feature = "system")]
mod system;
#[cfg(feature = "system")]
pub use system::SystemEnv;

#[cfg(test)]
mod tests;
