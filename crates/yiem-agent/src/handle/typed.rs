//! A message whose answer is a value of a type.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use yiem_core::BoxFuture;

use super::Prompt;
use crate::error::RunError;
use crate::outcome::Outcome;
use crate::structured::OutputMode;

/// A message whose answer is a `T`; made by [`Prompt::output`]. Await it for the value.
#[must_use = "nothing happens before it is awaited"]
pub struct TypedPrompt<T> {
    prompt: Prompt,
    mode: OutputMode,
    value: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for TypedPrompt<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedPrompt")
            .field("prompt", &self.prompt)
            .field("mode", &self.mode)
            .finish()
    }
}

/// A value that an agent answered with, and the outcome of its run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Typed<T> {
    /// The value.
    pub value: T,
    /// The run's outcome.
    pub outcome: Outcome,
}

impl<T> std::ops::Deref for Typed<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: JsonSchema + DeserializeOwned> TypedPrompt<T> {
    pub(super) fn new(prompt: Prompt) -> Self {
        Self {
            prompt,
            mode: OutputMode::default(),
            value: PhantomData,
        }
    }

    /// Tells the model of the shape by the request's response format.
    pub fn by_response_format(mut self) -> Self {
        self.mode = OutputMode::ResponseFormat;
        self
    }
}

impl<T: JsonSchema + DeserializeOwned + 'static> IntoFuture for TypedPrompt<T> {
    type Output = Result<Typed<T>, RunError>;
    type IntoFuture = BoxFuture<'static, Result<Typed<T>, RunError>>;

    fn into_future(self) -> Self::IntoFuture {
        let schema = schemars::schema_for!(T).to_value();
        let run = self.prompt.begin(Some((schema, self.mode)));
        Box::pin(async move {
            let mut outcome = run.await?.ok()?;
            let Some(value) = outcome.output.take() else {
                let said = "the run was stopped before it had an answer of the wanted shape";
                return Err(RunError::Output {
                    message: said.to_owned(),
                    outcome: Box::new(outcome),
                });
            };
            match T::deserialize(&value) {
                Ok(typed) => {
                    outcome.output = Some(value);
                    Ok(Typed {
                        value: typed,
                        outcome,
                    })
                }
                // The schema allowed it and the type does not.
                Err(error) => Err(RunError::Output {
                    message: error.to_string(),
                    outcome: Box::new(outcome),
                }),
            }
        })
    }
}
