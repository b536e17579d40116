//! Asking again (O-6, R-12): how long to wait, and a model that does so by itself.
//!
//! Knows: backoff with full jitter, the server's own word on waiting, the cap.
//! Does not know: what an error means; its kind says whether to try.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{ChatModel, ChatRequest, ModelError, ModelErrorKind, ModelInfo};
use crate::env::Env;
use crate::stream::{ChatEvent, ChatStream};

/// How often and after what wait a failed request is sent again.
///
/// The wait before attempt *n* + 1 is a random part of `base · 2^(n−1)`, at most `max_backoff`
/// (full jitter), and never less than what the server asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a request is sent again. Default 4; 0 = never.
    pub retries: u32,
    /// The first backoff. Default 0.5 s.
    pub base: Duration,
    /// The longest backoff of our own. Default 30 s.
    pub max_backoff: Duration,
    /// The longest wait that a server may ask for; one above it is an error at once.
    /// Default 60 s; zero = any.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 4,
            base: Duration::from_millis(500),
            max_backoff: Duration::from_secs(30),
            max_wait: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// Never again.
    #[must_use]
    pub fn never() -> Self {
        Self {
            retries: 0,
            ..Self::default()
        }
    }

    /// How long to wait after the failure of the attempt with this number (1 is the first), or
    /// the error to give up with. `random` is from 0 to 1.
    ///
    /// # Errors
    /// The error itself when it allows no retry or none is left; one that names both waits
    /// when the server asks for more than the cap.
    pub fn wait(
        &self,
        attempt: u32,
        error: ModelError,
        random: f64,
    ) -> Result<(Duration, ModelError), ModelError> {
        if !error.retryable || attempt > self.retries {
            return Err(error);
        }
        let asked = error.retry_after.unwrap_or_default();
        if !self.max_wait.is_zero() && asked > self.max_wait {
            let message = format!(
                "{}; the server asks to wait {} s, more than the {} s that are allowed: \
                 try later, or raise the longest wait",
                error.message,
                asked.as_secs_f64(),
                self.max_wait.as_secs_f64()
            );
            return Err(ModelError {
                message,
                retryable: false,
                ..error
            });
        }
        let factor = 2u32.saturating_pow(attempt.saturating_sub(1));
        let backoff = self.base.saturating_mul(factor).min(self.max_backoff);
        Ok((backoff.mul_f64(random.clamp(0.0, 1.0)).max(asked), error))
    }
}

/// A model that asks again after failures that allow it; made by
/// [`ChatModelExt::with_retry`](super::ChatModelExt::with_retry).
pub struct RetryingModel {
    model: Arc<dyn ChatModel>,
    policy: RetryPolicy,
    env: Arc<dyn Env>,
}

impl RetryingModel {
    pub(super) fn new(model: Arc<dyn ChatModel>, policy: RetryPolicy, env: Arc<dyn Env>) -> Self {
        Self { model, policy, env }
    }
}

impl fmt::Debug for RetryingModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryingModel")
            .field("model", &self.model.info().id)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// Where a retrying stream is: about to ask, or reading.
enum At {
    Ask {
        attempt: u32,
    },
    Read {
        attempt: u32,
        stream: ChatStream,
        begun: bool,
    },
    End,
}

impl ChatModel for RetryingModel {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn stream(&self, request: ChatRequest) -> ChatStream {
        let (model, policy, env) = (Arc::clone(&self.model), self.policy, Arc::clone(&self.env));
        ChatStream::unfold(At::Ask { attempt: 1 }, move |at| {
            let (model, env, request) = (Arc::clone(&model), Arc::clone(&env), request.clone());
            async move { step(at, &*model, policy, &*env, request).await }
        })
    }
}

/// The next event of a retrying stream. Dropped at an await, it drops the request or the wait.
async fn step(
    mut at: At,
    model: &dyn ChatModel,
    policy: RetryPolicy,
    env: &dyn Env,
    request: ChatRequest,
) -> Option<(Result<ChatEvent, ModelError>, At)> {
    loop {
        let (attempt, mut stream, begun) = match at {
            At::End => return None,
            At::Ask { attempt } => (attempt, model.stream(request.clone()), false),
            At::Read {
                attempt,
                stream,
                begun,
            } => (attempt, stream, begun),
        };
        let error = match stream.next().await {
            Some(Ok(event)) => {
                let done = matches!(event, ChatEvent::Finished { .. } | ChatEvent::Message(_));
                let next = if done {
                    At::End
                } else {
                    At::Read {
                        attempt,
                        stream,
                        begun: true,
                    }
                };
                return Some((Ok(event), next));
            }
            Some(Err(error)) => error,
            None => ModelError::new(
                ModelErrorKind::TruncatedStream,
                "the model's reply ended without saying that it was done",
            ),
        };
        drop(stream);
        match policy.wait(attempt, error, env.random()) {
            Err(error) => return Some((Err(error), At::End)),
            Ok((wait, _)) => env.sleep(wait).await,
        }
        at = At::Ask {
            attempt: attempt + 1,
        };
        if begun {
            // What was handed on cannot be taken back, but it can be called void.
            return Some((Ok(ChatEvent::Restarted), at));
        }
    }
}
