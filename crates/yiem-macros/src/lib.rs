//! The attribute macro that makes a tool of an async function.
//!
//! Use it as `yiem_tools::tool`, or as `yiem::tool` with the facade: what it writes stands on those. An example and all
//! attributes stand at [`macro@tool`].

mod attribute;
mod duration;
mod expand;
mod parameter;
mod text;

use proc_macro::TokenStream;

/// Makes a tool of an `async fn` (T-2).
///
/// ```
/// use yiem_core::{Result, ToolContext};
/// use yiem_tools::tool;
///
/// /// Current weather of a city.
/// #[tool(timeout = "20s")]
/// async fn get_weather(
///     /// Name of the city, in English.
///     city: String,
///     /// How many days ahead.
///     #[arg(default = 3)]
///     days: u8,
///     units: Option<String>,
///     context: ToolContext,
/// ) -> Result<String> {
///     context.progress("asking").await;
///     let units = units.as_deref().unwrap_or("celsius");
///     Ok(format!("Weather in {city} in {days} days: sunny, 22° {units}"))
/// }
/// ```
///
/// The tool has the function's name; its label is that name's words, its description the doc
/// comment. Each parameter is an argument: its type gives the schema, its doc comment the
/// description; an `Option` may be left out. A parameter of the type `ToolContext` is no
/// argument but the call's context, by which one learns of cancelling, tells of progress, and
/// gets values of the application (`context.dep::<Db>()?`).
///
/// What stands under the function's name afterwards is a unit struct that implements `Tool`:
/// give it to `.tool(get_weather)`. It can still be called as the function that it was.
///
/// # Parameters
/// Any owned type that implements `serde::Deserialize` and `schemars::JsonSchema`. On one:
/// - `#[arg(default)]`, `#[arg(default = 3)]`: may be left out, and what it is then;
/// - `#[arg(name = "maxResults")]`: its name for the model;
/// - `#[arg(description = "…")]`: in place of a doc comment.
///
/// # Result
/// `Result<T>` of any error, which is what the model reads when the tool fails. `T` is text, a
/// number, `()`, JSON, content, a `ToolOutput`, or any type that implements `serde::Serialize`.
///
/// # Attributes
/// - `name = "…"`, `label = "…"`, `description = "…"`: in place of what the function says;
/// - `timeout = "20s"` (or `ms`, `m`, `h`; a bare number is seconds), `result_bytes = 4096`,
///   `concurrency = 2`: limits of this tool (T-8);
/// - `parallel = true` or `false`: whether it may run beside others; unset it is the agent's
///   choice (R-3);
/// - `blocking`: its work blocks the thread; it is run on a thread of its own, and may be a
///   plain `fn`;
/// - `needs_approval`: a person is asked before it runs;
/// - `replay = safe`: a call whose outcome is unknown may be run again (S-3);
/// - `output_schema`: the result's type implements `schemars::JsonSchema`, and its schema is told;
/// - `strict`: the provider should hold the model to the schema;
/// - `prepare = path`: a function `fn(JsonObject) -> Result<JsonObject, ToolError>` that changes
///   the arguments before they are checked (T `prepareArguments`);
/// - `validate = path`: a function `fn(&JsonObject) -> Option<String>` in place of the required
///   check; some text refuses the arguments (SP-024);
/// - `crate = path`: where yiem-tools is, if not at `::yiem_tools`.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(attribute.into(), item.into(), "::yiem_tools").into()
}

/// The same for users of the facade, whose paths begin with `::yiem`. The facade binds it as
/// `tool`.
#[proc_macro_attribute]
pub fn tool_facade(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(attribute.into(), item.into(), "::yiem").into()
}
