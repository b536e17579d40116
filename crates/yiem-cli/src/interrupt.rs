//! The user's wish to end it.
//!
//! Knows: signals. Does not know: what they end.

use crate::failure::Failure;

/// Ctrl-C, and the signals by which a system or a terminal asks a program to end.
#[derive(Debug)]
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 3],
}

impl Interrupts {
    /// Listens from now on; the signals no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self, Failure> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let listen = |kind| {
                signal(kind).map_err(|error| {
                    Failure::new(format!("signals cannot be listened to: {error}"))
                })
            };
            Ok(Self {
                signals: [
                    listen(SignalKind::interrupt())?,
                    listen(SignalKind::terminate())?,
                    listen(SignalKind::hangup())?,
                ],
            })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Ends at the next wish to end. May be dropped; nothing is lost.
    pub(crate) async fn next(&mut self) -> Wish {
        #[cfg(unix)]
        {
            let [interrupt, terminate, hangup] = &mut self.signals;
            tokio::select! {
                _ = interrupt.recv() => Wish::OfTheUser,
                _ = terminate.recv() => Wish::OfTheSystem,
                _ = hangup.recv() => Wish::OfTheSystem,
            }
        }
        #[cfg(not(unix))]
        {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            Wish::OfTheUser
        }
    }
}

/// Whose wish it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Ctrl-C.
    OfTheUser,
    /// The system ends, or the terminal is gone.
    OfTheSystem,
}
