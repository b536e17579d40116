//! A message, what is told of its run as it comes, and the outcome.
//!
//! Knows: which events are of its own run, and that the outcome comes after them. Does not know:
//! how they are told (`sink`), how the run is begun (`prompt`).

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures_core::Stream;
use yiem_core::RunId;

use super::{Agent, PromptFuture};
use crate::error::RunError;
use crate::outcome::Outcome;
use crate::sink::{Delivery, Subscription};

/// The events of a prompt's run as they come, then its outcome; made by [`Prompt::stream`].
///
/// A stream of its own run's events from `agentStart` to `agentEnd`, which ends with the run; also
/// when no run could be started, which [`outcome`](Self::outcome) then tells. The run begins at
/// the first poll, and goes on without waiting for its reader: at most
/// [`listener_buffer`](crate::AgentConfig::listener_buffer) events are kept, the oldest are dropped
/// beyond, and the reader is told how many ([`Delivery::Missed`]). Dropping it aborts the run.
///
/// [`Prompt::stream`]: super::Prompt::stream
#[must_use = "nothing happens before it is polled"]
pub struct PromptStream {
    heard: Heard,
    course: Course,
    /// The run's id, once it has begun.
    run: Arc<OnceLock<RunId>>,
}

enum Heard {
    NotYet(Agent),
    From(Subscription),
}

enum Course {
    Going(PromptFuture),
    Over(Box<Result<Outcome, RunError>>),
}

impl PromptStream {
    pub(super) fn new(agent: Agent, prompt: PromptFuture, run: Arc<OnceLock<RunId>>) -> Self {
        Self {
            heard: Heard::NotYet(agent),
            course: Course::Going(prompt),
            run,
        }
    }

    /// The next event, or how many were missed; `None` when the run is over, or could not be
    /// started. May be dropped at any time; nothing is lost.
    pub async fn next(&mut self) -> Option<Delivery> {
        std::future::poll_fn(|cx| self.poll_delivery(cx)).await
    }

    /// The next piece of text that the model says; all other events are passed over. `None` when
    /// the run is over, or could not be started.
    ///
    /// Pieces of several replies follow one another. Of a reply that began anew (a rare thing:
    /// the update `restarted`), and of one that was tried again, the void pieces are among them;
    /// the outcome has the text that counts.
    pub async fn next_text(&mut self) -> Option<String> {
        loop {
            if let Delivery::Event(event) = self.next().await?
                && let Some(text) = event.text_delta()
            {
                return Some(text.to_owned());
            }
        }
    }

    /// The outcome of the run, as [`Agent::prompt`] gives it; waits for its end.
    ///
    /// # Errors
    /// No run could be started: busy, stopped, an empty message.
    pub async fn outcome(self) -> Result<Outcome, RunError> {
        match self.course {
            Course::Going(prompt) => prompt.await,
            Course::Over(outcome) => *outcome,
        }
    }

    fn poll_delivery(&mut self, cx: &mut Context<'_>) -> Poll<Option<Delivery>> {
        if let Heard::NotYet(agent) = &self.heard {
            self.heard = Heard::From(agent.subscribe());
        }
        // Before the events are looked at: the run's last one is there when the outcome is.
        if let Course::Going(prompt) = &mut self.course
            && let Poll::Ready(outcome) = Pin::new(prompt).poll(cx)
        {
            self.course = Course::Over(Box::new(outcome));
        }
        let Heard::From(heard) = &mut self.heard else {
            return Poll::Ready(None);
        };
        loop {
            let delivery = match self.course {
                Course::Over(_) => heard.try_next(),
                Course::Going(_) => match heard.poll_delivery(cx) {
                    Poll::Ready(Some(delivery)) => Some(delivery),
                    // Whoever ends the subscription ends the run, too; its outcome is on its way.
                    Poll::Ready(None) | Poll::Pending => return Poll::Pending,
                },
            };
            let own = match &delivery {
                Some(Delivery::Event(event)) => self.run.get() == Some(&event.run_id),
                Some(Delivery::Missed(_)) => self.run.get().is_some(),
                None => true,
            };
            if own {
                return Poll::Ready(delivery);
            }
        }
    }
}

impl Stream for PromptStream {
    type Item = Delivery;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delivery>> {
        self.poll_delivery(cx)
    }
}

impl fmt::Debug for PromptStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptStream")
            .field("run", &self.run.get())
            .field("over", &matches!(self.course, Course::Over(_)))
            .finish_non_exhaustive()
    }
}
