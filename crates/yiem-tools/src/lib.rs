//! The tools of an agent: registered, found, described, and given only arguments that suit them.
//!
//! - [`ToolRegistry`]: the tools that there are, in order, by name, each with its source (T-3);
//!   [`ToolSnapshot`] is what a turn works with.
//! - [`RegisteredTool::accept`]: the way of arguments to a tool: preparation, required check,
//!   defaults and lossless coercion, JSON Schema (T-4). [`ArgsValidator`] is that for a schema
//!   alone, [`ValidationError`] what the model reads.
//! - [`ToolCatalog`]: registry, sources and discovery (T-5), with [`ListTools`] and
//!   [`SearchTools`].
//!
//! - `#[tool]` and [`FunctionTool`]: tools made of functions (T-2).
//!
//! There is no runtime, no network and no clock in it. The contracts are those of [`yiem_core`],
//! which is at hand as `yiem_tools::yiem_core`.
//!
//! ```
//! use yiem_tools::yiem_core::{JsonObject, Result};
//! use yiem_tools::{RegisteredTool, ToolRegistry, tool};
//!
//! /// Current weather of a city.
//! #[tool]
//! async fn get_weather(city: String, #[arg(default = 3)] days: u8) -> Result<String> {
//!     Ok(format!("Weather in {city} in {days} days: Sunny, 22°C"))
//! }
//!
//! async fn refused(tool: &RegisteredTool) -> String {
//!     let args = JsonObject::from_iter([("town".to_owned(), "Tokyo".into())]);
//!     tool.accept(args).await.unwrap_err().to_string()
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let mut registry = ToolRegistry::new();
//! let weather = registry.register(get_weather)?;
//! assert_eq!(weather.definition().description, "Current weather of a city.");
//! assert_eq!(refused(&weather).await, "Missing required arguments: city");
//! # Ok(())
//! # }
//! ```

pub use yiem_core;

mod builtin;
mod catalog;
mod function;
mod limit;
mod name;
mod registered;
mod registry;
mod schema;
mod search;
mod snapshot;
mod validate;
mod wrap;

pub use builtin::{LIST_TOOLS, ListTools, SEARCH_TOOLS, SearchTools};
pub use catalog::{
    CatalogBuilder, CatalogError, CatalogNotice, ChangedDefinitions, Discovery, Finder,
    SourceState, SourceStatus, ToolCatalog,
};
pub use function::{FunctionTool, FunctionToolBuilder};
pub use limit::{
    ResultLimit, WHOLE_OUTPUT, WHOLE_OUTPUT_FILE, WholeOutput, cut_middle, keep_in_details,
};
pub use name::{ClashPolicy, MAX_NAME_CHARS};
pub use registered::{CallPermit, RegisteredTool, SourceId};
pub use registry::{ChangedDefinition, QuarantinedTool, RegisterError, SourceChange, ToolRegistry};
pub use schema::{InputSchema, SchemaError, SchemaLimits};
pub use search::{SearchHit, SearchIndex};
pub use snapshot::ToolSnapshot;
pub use validate::{
    ArgsValidator, Problem, ValidationError, ValidationErrorKind, validate_required_args,
};
pub use wrap::{RenamedTool, ToolSourceExt, WrappedSource};
pub use yiem_macros::tool;

/// What the code that `#[tool]` writes stands on; no promise is made about it.
#[doc(hidden)]
pub use function::support as __private;
