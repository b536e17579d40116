//! `searchTools`: the tools that fit some words (T-5).
//!
//! Knows: the text that a model reads. Does not know: how tools are ranked.

use std::fmt;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use serde_json::json;
use yiem_core::{
    Replay, Tool, ToolContext, ToolDefinition, ToolError, ToolErrorKind, ToolOutput, ValidArgs,
};

use super::list::{ListTools, added, failures, reached};
use super::{line, one_line};
use crate::catalog::{Shared, ToolCatalog};

/// The name of [`SearchTools`].
pub const SEARCH_TOOLS: &str = "searchTools";

/// How many tools a search finds when the model does not say.
const DEFAULT_LIMIT: usize = 8;

/// The tool `searchTools`: finds among many tools by words, offers the model those that it
/// found from then on, and names those that were added (`addedToolNames`).
///
/// Offered in place of `listTools`, or beside it, by [`Finder`](crate::Finder).
pub struct SearchTools {
    catalog: Weak<Shared>,
    definition: Arc<ToolDefinition>,
}

impl SearchTools {
    /// A search among that catalog's tools; holds the catalog weakly.
    #[must_use]
    pub fn new(catalog: &ToolCatalog) -> Self {
        Self::weak(catalog.downgrade())
    }

    pub(crate) fn weak(catalog: Weak<Shared>) -> Self {
        Self {
            catalog,
            definition: Arc::new(ToolDefinition {
                name: SEARCH_TOOLS.to_owned(),
                label: "Search Tools".to_owned(),
                description:
                    "Find tools by what they do. Call it when the tools you have do not fit the \
                              task: the tools that it finds can be called from your next turn on."
                        .to_owned(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "query": {
                            "type": "string",
                            "description": "What the tool should do, in a few words",
                        },
                        "limit": {
                            "type": "integer",
                            "description": "The most tools to find",
                            "minimum": 1,
                            "maximum": 50,
                            "default": DEFAULT_LIMIT,
                        },
                    },
                    "required": ["query"],
                }),
                replay: Replay::Safe,
                ..ToolDefinition::default()
            }),
        }
    }
}

#[async_trait]
impl Tool for SearchTools {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let query = args
            .get("query")
            .and_then(|q| q.as_str())
            .unwrap_or_default();
        let limit = args
            .get("limit")
            .and_then(|l| l.as_u64())
            .and_then(|l| usize::try_from(l).ok())
            .unwrap_or(DEFAULT_LIMIT);
        let catalog = reached(&self.catalog)?;
        let before = catalog.snapshot();
        catalog.load_all(&context.cancel).await;
        if context.cancel.is_cancelled() {
            return Err(ToolError::of_kind(
                ToolErrorKind::Aborted,
                "The search was not waited for.",
            ));
        }
        let hits = catalog.search(query, limit);
        catalog.disclose(hits.iter().map(|h| h.name()));
        let mut text = if hits.is_empty() {
            "No tool fits these words. Try others, such as what the tool works on or what it gives."
                .to_owned()
        } else {
            "Tools that fit, best first:".to_owned()
        };
        let all = catalog.all();
        for tool in hits.iter().filter_map(|h| all.get(h.name())) {
            text.push('\n');
            text.push_str(&line(tool.definition()));
        }
        let failures = failures(&catalog);
        if !failures.is_empty() {
            text.push_str("\nCould not be reached:");
            for failure in &failures {
                text.push_str("\n- ");
                text.push_str(&one_line(failure));
            }
        }
        let mut output = ToolOutput::text(text).with_details(json!({
            "tools": hits.iter().map(|h| json!({ "name": h.name(), "score": h.score() })).collect::<Vec<_>>(),
            "failed": failures,
        }));
        output.added_tool_names = added(&before, &catalog.snapshot());
        Ok(output)
    }
}

impl fmt::Debug for SearchTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SearchTools")
    }
}

impl fmt::Debug for ListTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ListTools")
    }
}
