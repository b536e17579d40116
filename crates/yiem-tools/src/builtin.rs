//! Tools that find tools: `listTools` and `searchTools` (T-5).
//!
//! Knows: how a list of tools is written for a model. Does not know: where tools come from.

mod list;
mod search;

pub use list::{LIST_TOOLS, ListTools};
pub use search::{SEARCH_TOOLS, SearchTools};

use yiem_core::ToolDefinition;

use crate::validate::problem::cut;

/// How much of a description a list shows, in bytes; the whole stands in the definition.
const LISTED_DESCRIPTION: usize = 600;

/// One tool as a line of T's list: `- name: label — description`.
pub(crate) fn line(definition: &ToolDefinition) -> String {
    let label = if definition.label.is_empty() {
        &definition.name
    } else {
        &definition.label
    };
    let mut line = format!("- {}: {}", definition.name, one_line(label));
    let description = one_line(&definition.description);
    if !description.is_empty() {
        line.push_str(" — ");
        line.push_str(&cut(&description, LISTED_DESCRIPTION));
    }
    line
}

/// A text with its line breaks and runs of spaces as single spaces: a list is one line a tool.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
