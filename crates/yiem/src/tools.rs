//! Tools: the registry, the way of arguments to a tool, discovery, functions as tools.
//!
//! The contract itself ([`Tool`](crate::Tool), [`ToolSource`](crate::ToolSource)) is at the root.

#[doc(inline)]
pub use yiem_tools::{
    ArgsValidator, CatalogBuilder, CatalogError, CatalogNotice, ChangedDefinition,
    ChangedDefinitions, ClashPolicy, Discovery, Finder, FunctionTool, FunctionToolBuilder,
    InputSchema, LIST_TOOLS, ListTools, MAX_NAME_CHARS, Problem, QuarantinedTool, RegisterError,
    RegisteredTool, RenamedTool, ResultLimit, SEARCH_TOOLS, SchemaError, SchemaLimits, SearchHit,
    SearchIndex, SearchTools, SourceChange, SourceId, SourceState, SourceStatus, ToolCatalog,
    ToolRegistry, ToolSnapshot, ToolSourceExt, ValidationError, ValidationErrorKind, WHOLE_OUTPUT,
    WHOLE_OUTPUT_FILE, WholeOutput, WrappedSource, cut_middle, keep_in_details,
    validate_required_args,
};
