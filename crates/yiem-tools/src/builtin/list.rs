//! `listTools`: asks the sources, and names every tool (T, R "Tool Discovery").
//!
//! Knows: the text that a model reads. Does not know: how sources are asked.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use serde_json::json;
use yiem_core::{
    Replay, Tool, ToolContext, ToolDefinition, ToolError, ToolErrorKind, ToolOutput, ValidArgs,
};

use super::{line, one_line};
use crate::catalog::{Shared, SourceState, ToolCatalog};
use crate::registered::SourceId;
use crate::schema::InputSchema;
use crate::snapshot::ToolSnapshot;

/// The name of [`ListTools`].
pub const LIST_TOOLS: &str = "listTools";

/// The tool `listTools`: loads what sources have not been loaded yet, offers the model all of
/// their tools from then on, names those that were added (`addedToolNames`), and answers with
/// the list in T's format:
///
/// ```text
/// Available tools:
/// - getWeather: Weather Lookup — Fetch current weather and forecast for a given city.
/// - listTools: List Tools — List all available tools …
/// ```
///
/// Tools that are not offered, and sources that could not be reached, are listed after it with
/// the reasons. A [`ToolCatalog`] with sources has one by itself.
pub struct ListTools {
    catalog: Weak<Shared>,
    definition: Arc<ToolDefinition>,
}

impl ListTools {
    /// A list of that catalog's tools; holds the catalog weakly.
    #[must_use]
    pub fn new(catalog: &ToolCatalog) -> Self {
        Self::weak(catalog.downgrade())
    }

    pub(crate) fn weak(catalog: Weak<Shared>) -> Self {
        Self {
            catalog,
            definition: Arc::new(ToolDefinition {
                name: LIST_TOOLS.to_owned(),
                label: "List Tools".to_owned(),
                description: "List all available tools with their names and labels. Call it when the \
                              tools you have do not fit the task: it finds the tools of connected servers, \
                              which you can call from your next turn on."
                    .to_owned(),
                input_schema: InputSchema::any_object(),
                replay: Replay::Safe,
                ..ToolDefinition::default()
            }),
        }
    }
}

#[async_trait]
impl Tool for ListTools {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    async fn call(&self, _: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let catalog = reached(&self.catalog)?;
        let before = catalog.snapshot();
        catalog.load_all(&context.cancel).await;
        if context.cancel.is_cancelled() {
            return Err(ToolError::of_kind(
                ToolErrorKind::Aborted,
                "The list was not waited for.",
            ));
        }
        catalog.disclose_all();
        let snapshot = catalog.snapshot();
        let mut text = "Available tools:".to_owned();
        for tool in snapshot.iter() {
            text.push('\n');
            text.push_str(&line(tool.definition()));
        }
        let quarantined = catalog.quarantined();
        if !quarantined.is_empty() {
            text.push_str("\nNot available:");
            for tool in &quarantined {
                text.push_str("\n- ");
                text.push_str(&one_line(&tool.to_string()));
            }
        }
        let failures = failures(&catalog);
        if !failures.is_empty() {
            text.push_str("\nCould not be reached:");
            for failure in &failures {
                text.push_str("\n- ");
                text.push_str(&one_line(failure));
            }
        }
        let names: Vec<&str> = snapshot.iter().map(|t| t.name()).collect();
        let mut output = ToolOutput::text(text).with_details(json!({
            "tools": names,
            "notAvailable": quarantined.iter().map(|t| json!({
                "name": t.name, "source": t.source.to_string(), "reason": t.reason,
            })).collect::<Vec<_>>(),
            "failed": failures,
        }));
        output.added_tool_names = added(&before, &snapshot);
        Ok(output)
    }
}

/// The sources' tools that the model is offered now and was not before.
pub(super) fn added(before: &ToolSnapshot, now: &ToolSnapshot) -> Vec<String> {
    now.iter()
        .filter(|tool| *tool.source() != SourceId::Builtin && before.get(tool.name()).is_none())
        .map(|tool| tool.name().to_owned())
        .collect()
}

pub(super) fn reached(catalog: &Weak<Shared>) -> Result<ToolCatalog, ToolError> {
    catalog
        .upgrade()
        .map(ToolCatalog::from_shared)
        .ok_or_else(|| {
            ToolError::of_kind(
                ToolErrorKind::Unreachable,
                "The agent that has the tools is gone.",
            )
        })
}

/// The sources that could not be loaded, each as one line that names it.
pub(super) fn failures(catalog: &ToolCatalog) -> Vec<String> {
    catalog
        .sources()
        .into_iter()
        .filter_map(|status| match status.state {
            SourceState::Failed { error } => Some(error.to_string()),
            _ => None,
        })
        .collect()
}
