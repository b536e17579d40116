//! The real clock, timer, randomness and ids. This file is the door of C-9.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use super::{BoxFuture, Env, IdKind, Timestamp};

/// The machine's own clock and timer (tokio's), and UUIDs of version 7 as ids.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemEnv;

impl SystemEnv {
    /// As an `Arc<dyn Env>`, the form in which it is passed in.
    #[must_use]
    pub fn shared() -> std::sync::Arc<dyn Env> {
        static ENV: OnceLock<std::sync::Arc<dyn Env>> = OnceLock::new();
        std::sync::Arc::clone(ENV.get_or_init(|| std::sync::Arc::new(Self)))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the door that C-9 speaks of"
)]
impl Env for SystemEnv {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn elapsed(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn new_id(&self, kind: IdKind) -> String {
        format!("{}_{}", kind.prefix(), uuid::Uuid::now_v7().simple())
    }

    fn random(&self) -> f64 {
        // The last 62 bits of a UUID of version 7 are random; 53 of them fill a double.
        let bits = uuid::Uuid::now_v7().as_u128() as u64 & ((1 << 53) - 1);
        bits as f64 / (1u64 << 53) as f64
    }
}
