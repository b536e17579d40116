//! A message and the outcome of its run, in one future.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use serde_json::Value;
use tokio::sync::oneshot;
use yiem_core::{BoxFuture, Message, RunId};

use super::prompt_stream::PromptStream;
use super::typed::TypedPrompt;
use super::{Agent, IntoMessage, input, runtime};
use crate::error::RunError;
use crate::outcome::Outcome;
use crate::shared::{Begun, Shared, WhenBusy};
use crate::structured::{OutputMode, OutputSpec};

/// A message to an agent; made by [`Agent::prompt`]. Await it for the outcome.
#[must_use = "nothing happens before it is awaited"]
pub struct Prompt {
    agent: Agent,
    message: Result<Arc<Message>, RunError>,
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt")
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

impl Prompt {
    pub(super) fn new(agent: Agent, message: impl IntoMessage) -> Self {
        let message = input::accepted(message, &*agent.shared().env);
        Self { agent, message }
    }

    /// The events of its run as they come, the model's text among them (R-10), and the outcome
    /// behind them.
    ///
    /// ```
    /// # use yiem_agent::{Agent, RunError};
    /// # async fn shown(agent: &Agent) -> Result<(), RunError> {
    /// let mut answer = agent.prompt("Why is the sky blue?").stream();
    /// while let Some(text) = answer.next_text().await {
    ///     print!("{text}");
    /// }
    /// let outcome = answer.outcome().await?.ok()?;
    /// # drop(outcome);
    /// # Ok(()) }
    /// ```
    pub fn stream(self) -> PromptStream {
        let run = Arc::default();
        let agent = self.agent.clone();
        PromptStream::new(agent, self.begin_as(None, Some(Arc::clone(&run))), run)
    }

    /// Asks for an answer that is a `T` (R-13): its schema is derived, the answer is validated
    /// against it, and goes back to the model when it does not fit, a bounded number of times.
    ///
    /// The model is told of the shape by a tool `final_answer`; see
    /// [`TypedPrompt::by_response_format`] for the other way.
    pub fn output<T: schemars::JsonSchema + serde::de::DeserializeOwned>(self) -> TypedPrompt<T> {
        TypedPrompt::new(self)
    }

    /// The same for a schema that is known only at run time; the value is in
    /// [`Outcome::output`].
    pub fn output_schema(self, schema: Value, mode: OutputMode) -> PromptFuture {
        self.begin(Some((schema, mode)))
    }

    pub(super) fn begin(self, output: Option<(Value, OutputMode)>) -> PromptFuture {
        self.begin_as(output, None)
    }

    /// The same; the run's id is put into `run` once it has begun.
    fn begin_as(
        self,
        output: Option<(Value, OutputMode)>,
        run: Option<Arc<OnceLock<RunId>>>,
    ) -> PromptFuture {
        PromptFuture(Box::pin(async move {
            let Self { agent, message } = self;
            runtime()?;
            let message = message?;
            let output = match output {
                None => None,
                Some((schema, mode)) => {
                    let spec = OutputSpec::new(schema, mode);
                    Some(Arc::new(
                        spec.map_err(|message| RunError::Schema { message })?,
                    ))
                }
            };
            let shared = Arc::clone(agent.shared());
            let mut aborted = false;
            if shared.has_sources {
                agent.start_sources();
                // A source that hangs holds up neither who aborts nor who stops the agent.
                let abort = shared.lock().before_runs.clone();
                let ready = async {
                    shared.catalog.ready(&shared.root).await?;
                    agent.find_tools_of_open_calls().await;
                    Ok::<_, Arc<yiem_core::SourceError>>(())
                };
                let ready = shared
                    .root
                    .run_until_cancelled(abort.run_until_cancelled(ready))
                    .await
                    .ok_or(RunError::Closed)?;
                aborted = ready.is_none() || abort.is_cancelled();
                if let Some(Err(error)) = ready {
                    return Err(RunError::SourceFailed {
                        name: error.source_name.clone(),
                        message: error.message.clone(),
                    });
                }
            }
            let (waiter, outcome) = oneshot::channel();
            let ticket = shared.lock().ticket();
            let begun = shared.begin(
                vec![message],
                WhenBusy::Refuse,
                Some(waiter),
                output,
                Some(ticket),
                aborted,
            )?;
            if let (Some(run), Begun::Now(id) | Begun::Later(id)) = (run, &begun) {
                // Before its first event, and only here.
                let _ = run.set(id.clone());
            }
            agent.begun(begun);
            awaited(&agent, ticket, outcome).await
        }))
    }
}

/// Waits for the outcome of the run of that ticket; dropped before, it ends the run.
pub(super) async fn awaited(
    agent: &Agent,
    ticket: u64,
    outcome: oneshot::Receiver<Outcome>,
) -> Result<Outcome, RunError> {
    let mut guard = EndOnDrop {
        shared: agent.shared(),
        ticket,
        armed: true,
    };
    let result = outcome.await;
    guard.armed = false;
    result.map_err(|_| {
        if agent.shared().lock().closed {
            RunError::Closed
        } else {
            RunError::Broken {
                message: "the task that drove it is gone, as when the runtime shuts down"
                    .to_owned(),
                outcome: None,
            }
        }
    })
}

struct EndOnDrop<'a> {
    shared: &'a Arc<Shared>,
    ticket: u64,
    armed: bool,
}

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.shared.give_up(self.ticket);
        }
    }
}

impl IntoFuture for Prompt {
    type Output = Result<Outcome, RunError>;
    type IntoFuture = PromptFuture;

    fn into_future(self) -> PromptFuture {
        self.begin(None)
    }
}

/// The future of a [`Prompt`]. Dropping it aborts its run.
#[must_use = "nothing happens before it is awaited"]
pub struct PromptFuture(BoxFuture<'static, Result<Outcome, RunError>>);

impl Future for PromptFuture {
    type Output = Result<Outcome, RunError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for PromptFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PromptFuture")
    }
}
