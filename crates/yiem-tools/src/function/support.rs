//! What the code that `#[tool]` writes stands on. No promise is made about it: write `#[tool]`.
//!
//! Knows: how arguments are described and taken, and how results of any type are turned.
//! Does not know: the function.

use std::fmt::Display;
use std::marker::PhantomData;

use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use std::boxed::Box;
pub use std::string::String;
pub use std::sync::{Arc, OnceLock};

pub use yiem_core::{
    ArgsCheck, BoxFuture, JsonObject, Replay, Tool, ToolContext, ToolDefinition, ToolError,
    ToolOutput, ValidArgs, async_trait,
};

use super::{decode, generate};

/// What can be a parameter of a tool.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a tool",
    label = "its schema or its reading from JSON is missing",
    note = "derive both for it: `#[derive(serde::Deserialize, schemars::JsonSchema)]`; or take `serde_json::Value`"
)]
pub trait ToolArgument: DeserializeOwned + JsonSchema + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + 'static> ToolArgument for T {}

/// The schema of a function's arguments, put together one by one.
#[derive(Debug)]
pub struct ArgsSchema {
    generator: SchemaGenerator,
    properties: JsonObject,
    required: Vec<Value>,
}

impl Default for ArgsSchema {
    fn default() -> Self {
        Self::new()
    }
}

impl ArgsSchema {
    /// A schema without arguments.
    #[must_use]
    pub fn new() -> Self {
        Self {
            generator: generate::generator(false),
            properties: JsonObject::new(),
            required: Vec::new(),
        }
    }

    /// Adds an argument. `default` is there when it may be left out, with its JSON if that could
    /// be written.
    pub fn property<T: ToolArgument>(
        &mut self,
        name: &str,
        description: &str,
        default: Option<Option<Value>>,
    ) {
        let mut schema = self.generator.subschema_for::<T>();
        if !description.is_empty() {
            schema.insert("description".to_owned(), description.into());
        }
        if default.is_none() && !decode::is_option::<T>() {
            self.required.push(name.into());
        }
        if let Some(Some(default)) = default {
            schema.insert("default".to_owned(), default);
        }
        self.properties.insert(name.to_owned(), schema.to_value());
    }

    /// The schema as JSON.
    #[must_use]
    pub fn finish(mut self) -> Value {
        let definitions = self.generator.take_definitions(false);
        let mut root = json!({ "type": "object", "properties": self.properties });
        if let Value::Object(map) = &mut root {
            if !self.required.is_empty() {
                map.insert("required".to_owned(), Value::Array(self.required));
            }
            if !definitions.is_empty() {
                map.insert("$defs".to_owned(), Value::Object(definitions));
            }
        }
        let Ok(mut schema) = schemars::Schema::try_from(root) else {
            return json!({ "type": "object", "properties": {} });
        };
        for transform in self.generator.transforms_mut() {
            transform.transform(&mut schema);
        }
        schema.to_value()
    }
}

/// Takes an argument out of those that were accepted.
///
/// # Errors
/// It is missing or does not suit the type.
pub fn take_argument<T: ToolArgument>(
    args: &mut JsonObject,
    name: &str,
    absent: Option<fn() -> T>,
) -> Result<T, ToolError> {
    decode::argument(args, name, absent)
}

/// The schema of a result.
#[must_use]
pub fn output_schema<T: JsonSchema>() -> Value {
    generate::output::<T>()
}

/// What a `Result` is of.
pub trait ResultType {
    /// Its value.
    type Value;
}

impl<T, E> ResultType for Result<T, E> {
    type Value = T;
}

/// Stands for a value of a type, to find out what the type can do.
#[derive(Clone, Copy, Debug)]
pub struct Wrap<T>(PhantomData<fn() -> T>);

impl<T> Wrap<T> {
    /// For this value's type.
    pub fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

/// The questions that are asked of a type by method lookup: the first that holds, counted from
/// the most references, answers with a marker that does the work.
pub mod kind {
    use super::{
        BoxedError, Display, ErrorIsTold, IntoToolError, IsJson, IsOutput, IsSerialize, NoJson,
        NoOutput, Serialize, Wrap,
    };
    use yiem_core::{BoxError, IntoToolOutput, ToolError};

    /// A result whose error becomes a tool error.
    pub trait ToolErrorResult {
        /// The marker.
        fn yiem_result(&self) -> IntoToolError {
            IntoToolError
        }
    }
    impl<T, E: Into<ToolError>> ToolErrorResult for &&&Wrap<Result<T, E>> {}

    /// A result whose error can be boxed (`anyhow::Error`, `Box<dyn Error>`, text).
    pub trait BoxedErrorResult {
        /// The marker.
        fn yiem_result(&self) -> BoxedError {
            BoxedError
        }
    }
    impl<T, E: Into<BoxError>> BoxedErrorResult for &&Wrap<Result<T, E>> {}

    /// A result whose error can be told.
    pub trait ToldErrorResult {
        /// The marker.
        fn yiem_result(&self) -> ErrorIsTold {
            ErrorIsTold
        }
    }
    impl<T, E: Display> ToldErrorResult for &Wrap<Result<T, E>> {}

    /// What is an answer as it is.
    pub trait OutputKind {
        /// The marker.
        fn yiem_output(&self) -> IsOutput {
            IsOutput
        }
    }
    impl<T: IntoToolOutput> OutputKind for &&Wrap<T> {}

    /// What can be written as JSON.
    pub trait SerializeKind {
        /// The marker.
        fn yiem_output(&self) -> IsSerialize {
            IsSerialize
        }
    }
    impl<T: Serialize> SerializeKind for &Wrap<T> {}

    /// What can be neither: the marker's work says so.
    pub trait NoOutputKind {
        /// The marker.
        fn yiem_output(&self) -> NoOutput {
            NoOutput
        }
    }
    impl<T> NoOutputKind for Wrap<T> {}

    /// A default that can be written as JSON.
    pub trait JsonKind {
        /// The marker.
        fn yiem_json(&self) -> IsJson {
            IsJson
        }
    }
    impl<T: Serialize> JsonKind for &Wrap<T> {}

    /// A default that cannot.
    pub trait NoJsonKind {
        /// The marker.
        fn yiem_json(&self) -> NoJson {
            NoJson
        }
    }
    impl<T> NoJsonKind for Wrap<T> {}
}

/// The error becomes a tool error by itself.
#[derive(Clone, Copy, Debug)]
pub struct IntoToolError;

impl IntoToolError {
    /// The value, or the tool error.
    ///
    /// # Errors
    /// The function's own.
    pub fn split<T, E: Into<ToolError>>(self, result: Result<T, E>) -> Result<T, ToolError> {
        result.map_err(Into::into)
    }
}

/// The error is boxed first.
#[derive(Clone, Copy, Debug)]
pub struct BoxedError;

impl BoxedError {
    /// The value, or the tool error.
    ///
    /// # Errors
    /// The function's own.
    pub fn split<T, E: Into<yiem_core::BoxError>>(
        self,
        result: Result<T, E>,
    ) -> Result<T, ToolError> {
        result.map_err(|error| {
            let error = error.into();
            let mut text = error.to_string();
            let mut cause = error.source();
            while let Some(below) = cause {
                text = format!("{text}: {below}");
                cause = below.source();
            }
            ToolError::new(text).with_source(error)
        })
    }
}

/// The error's text is all that there is.
#[derive(Clone, Copy, Debug)]
pub struct ErrorIsTold;

impl ErrorIsTold {
    /// The value, or the tool error.
    ///
    /// # Errors
    /// The function's own.
    pub fn split<T, E: Display>(self, result: Result<T, E>) -> Result<T, ToolError> {
        result.map_err(|error| ToolError::new(error.to_string()))
    }
}

/// The value is an answer.
#[derive(Clone, Copy, Debug)]
pub struct IsOutput;

impl IsOutput {
    /// The answer.
    ///
    /// # Errors
    /// It is itself a failure.
    pub fn convert<T: yiem_core::IntoToolOutput>(self, value: T) -> Result<ToolOutput, ToolError> {
        value.into_tool_output()
    }
}

/// The value is written as JSON.
#[derive(Clone, Copy, Debug)]
pub struct IsSerialize;

impl IsSerialize {
    /// The answer.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn convert<T: Serialize>(self, value: T) -> Result<ToolOutput, ToolError> {
        yiem_core::IntoToolOutput::into_tool_output(yiem_core::Structured(value))
    }
}

/// The value is no answer.
#[derive(Clone, Copy, Debug)]
pub struct NoOutput;

/// What a tool can answer with.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool's result",
    label = "neither text nor JSON can be made of it",
    note = "return text, a number, `ToolOutput` or JSON; or derive `serde::Serialize` for it"
)]
pub trait ToolResult {}

impl NoOutput {
    /// Does not compile for any type that gets here, and says why.
    ///
    /// # Errors
    /// Never called.
    pub fn convert<T: ToolResult>(self, _: T) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
}

/// The default is written as JSON.
#[derive(Clone, Copy, Debug)]
pub struct IsJson;

impl IsJson {
    /// Its JSON.
    pub fn write<T: Serialize>(self, value: T) -> Option<Value> {
        serde_json::to_value(value).ok()
    }
}

/// The default cannot be written.
#[derive(Clone, Copy, Debug)]
pub struct NoJson;

impl NoJson {
    /// Nothing.
    pub fn write<T>(self, _: T) -> Option<Value> {
        None
    }
}
