//! Other names for tools.
//!
//! Knows: old and new names. Does not know: whether a new one is free; the registry says so.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use yiem_core::{
    ArgsCheck, JsonObject, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ValidArgs,
};

/// A tool under another name. Whoever implements it is not told.
pub struct RenamedTool {
    tool: Arc<dyn Tool>,
    definition: Arc<ToolDefinition>,
}

impl RenamedTool {
    /// The tool under another name.
    pub fn new(tool: Arc<dyn Tool>, name: impl Into<String>) -> Self {
        let definition = Arc::new(ToolDefinition {
            name: name.into(),
            ..ToolDefinition::clone(tool.definition())
        });
        Self { tool, definition }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Tool for RenamedTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }
    fn has_own_checks(&self) -> bool {
        self.tool.has_own_checks()
    }
    async fn prepare_arguments(&self, args: JsonObject) -> Result<JsonObject, ToolError> {
        self.tool.prepare_arguments(args).await
    }
    async fn validate_required_args(&self, args: &JsonObject) -> ArgsCheck {
        self.tool.validate_required_args(args).await
    }
    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        self.tool.call(args, context).await
    }
}

impl fmt::Debug for RenamedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RenamedTool({})", self.definition.name)
    }
}

/// Exchanges names, pair by pair.
pub(super) fn renaming<A: Into<String>, B: Into<String>>(
    names: impl IntoIterator<Item = (A, B)>,
) -> impl Fn(Arc<dyn Tool>) -> Option<Arc<dyn Tool>> + Send + Sync + 'static {
    let names: HashMap<String, String> = names
        .into_iter()
        .map(|(old, new)| (old.into(), new.into()))
        .collect();
    move |tool| match names.get(&tool.definition().name) {
        Some(name) => Some(Arc::new(RenamedTool::new(tool, name.clone()))),
        None => Some(tool),
    }
}
