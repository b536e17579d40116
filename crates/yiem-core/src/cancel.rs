//! The signal that ends work (SP-022), as a tree of tokens.
//!
//! Knows: whether and why work should end. Does not know: whose work it is.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Why work was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// Someone aborted the run, or dropped what waited for it.
    Aborted,
    /// Its time was up.
    TimedOut,
    /// The agent stops.
    Stopped,
}

/// A signal that work should end: cheap to clone, cancelled once, seen by all clones and children.
///
/// A child is cancelled with its parent, never the other way round.
#[doc(alias = "abortSignal")]
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Made when somebody waits for this token or ends it alone; most children only live and
    /// look at their parent. Only woken by: whether the token is cancelled, its reason says.
    token: OnceLock<CancellationToken>,
    /// Set when this token was cancelled and no parent had been.
    reason: OnceLock<CancelReason>,
    parent: Option<CancelToken>,
}

impl Inner {
    fn token(&self) -> &CancellationToken {
        self.token.get_or_init(|| match &self.parent {
            Some(parent) => parent.0.token().child_token(),
            None => CancellationToken::new(),
        })
    }
}

impl CancelToken {
    /// A token that nobody has cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that ends with this one, and can be ended alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(Inner {
            token: OnceLock::new(),
            reason: OnceLock::new(),
            parent: Some(self.clone()),
        }))
    }

    /// Cancels with the reason [`CancelReason::Aborted`]. A second call changes nothing.
    pub fn cancel(&self) {
        self.cancel_because(CancelReason::Aborted);
    }

    /// Cancels. The first reason given is the one that stays.
    pub fn cancel_because(&self, reason: CancelReason) {
        if !self.is_cancelled() {
            let _ = self.0.reason.set(reason);
        }
        self.0.token().cancel();
    }

    /// Whether it was cancelled (SP-022 `aborted`).
    #[doc(alias = "aborted")]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.reason().is_some()
    }

    /// Why, once cancelled: this token's own reason, else its nearest parent's.
    ///
    /// Takes no lock: a run looks at its signal before each step.
    #[must_use]
    pub fn reason(&self) -> Option<CancelReason> {
        std::iter::successors(Some(self), |token| token.0.parent.as_ref())
            .find_map(|token| token.0.reason.get().copied())
    }

    /// Ends when the token is cancelled; at once if it is. May be dropped at any time.
    pub async fn cancelled(&self) {
        self.0.token().cancelled().await;
    }

    /// As [`cancelled`](Self::cancelled), owning its token, to be stored or boxed.
    pub fn cancelled_owned(&self) -> impl Future<Output = ()> + Send + 'static {
        self.0.token().clone().cancelled_owned()
    }

    /// Runs `work` until it ends or the token is cancelled, whichever is first; `None` when
    /// cancelled. `work` is dropped then.
    pub async fn run_until_cancelled<F: Future>(&self, work: F) -> Option<F::Output> {
        self.0.token().run_until_cancelled(work).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_ends_with_its_parent_and_tells_the_parents_reason() {
        let parent = CancelToken::new();
        let child = parent.child();
        assert_eq!(child.reason(), None);
        parent.cancel_because(CancelReason::Stopped);
        assert!(child.is_cancelled());
        assert_eq!(child.reason(), Some(CancelReason::Stopped));
    }

    #[test]
    fn a_child_ends_alone_and_the_first_reason_stays() {
        let parent = CancelToken::new();
        let child = parent.child();
        child.cancel_because(CancelReason::TimedOut);
        child.cancel();
        assert!(!parent.is_cancelled());
        assert_eq!(child.reason(), Some(CancelReason::TimedOut));
    }

    #[tokio::test]
    async fn a_grandchild_hears_of_it_whoever_was_looked_at_before() {
        for look in [false, true] {
            let parent = CancelToken::new();
            let child = parent.child();
            let grandchild = child.child();
            if look {
                assert!(!child.is_cancelled());
                let mut waiting = Box::pin(grandchild.cancelled());
                assert_eq!(futures_poll(waiting.as_mut()), std::task::Poll::Pending);
            }
            child.cancel_because(CancelReason::TimedOut);
            assert!(grandchild.is_cancelled());
            assert_eq!(grandchild.reason(), Some(CancelReason::TimedOut));
            grandchild.cancelled().await;
            assert!(!parent.is_cancelled());
            // Born after the end of its parent.
            assert!(child.child().is_cancelled());
            child.child().cancelled().await;
        }
    }

    fn futures_poll<F: Future>(work: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
        work.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    }

    #[tokio::test]
    async fn work_is_dropped_when_cancelled() {
        let token = CancelToken::new();
        token.cancel();
        assert_eq!(
            token
                .run_until_cancelled(std::future::pending::<()>())
                .await,
            None
        );
        assert_eq!(
            CancelToken::new().run_until_cancelled(async { 7 }).await,
            Some(7)
        );
    }
}
