//! Prompts and resources of a server, offered as tools (M-9).

use super::{options_of, to_tool_error};
use crate::client::{McpClient, ToolListing};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use yiem_core::{
    Content, Replay, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ValidArgs,
};

#[derive(Clone, Copy)]
enum Offer {
    ListResources,
    ReadResource,
    ListPrompts,
    GetPrompt,
}

/// The tools that the configuration asks for and the server can serve. A tool of the server's own with
/// the same name wins, and a warning says so.
pub(super) fn offered_tools(
    client: &McpClient,
    listing: &ToolListing,
    warnings: &mut Vec<String>,
) -> Vec<Arc<dyn Tool>> {
    let (resources, prompts) = client.shared().offers();
    let facts = client.server_facts().unwrap_or_default();
    let declared = facts.capabilities.is_some();
    let mut offers = Vec::new();
    if resources && declared && facts.offers("resources") {
        offers.extend([Offer::ListResources, Offer::ReadResource]);
    }
    if prompts && declared && facts.offers("prompts") {
        offers.extend([Offer::ListPrompts, Offer::GetPrompt]);
    }
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for offer in offers {
        let tool = OfferedTool::new(client.clone(), offer);
        let name = &tool.definition.name;
        if listing.tools.iter().any(|own| own.name == *name) {
            warnings.push(format!(
                "the server has a tool `{name}` of its own, so ours of that name is not offered"
            ));
            continue;
        }
        tools.push(Arc::new(tool));
    }
    tools
}

struct OfferedTool {
    client: McpClient,
    offer: Offer,
    definition: Arc<ToolDefinition>,
}

impl OfferedTool {
    fn new(client: McpClient, offer: Offer) -> Self {
        let server = client.name();
        let (verb, description, schema) = match offer {
            Offer::ListResources => (
                "list_resources",
                format!("Lists the resources of {server}."),
                json!({"type": "object", "properties": {}}),
            ),
            Offer::ReadResource => (
                "read_resource",
                format!("Reads a resource of {server}."),
                json!({"type": "object", "required": ["uri"],
                    "properties": {"uri": {"type": "string", "description": "The resource's URI, as listed."}}}),
            ),
            Offer::ListPrompts => (
                "list_prompts",
                format!("Lists the prompts of {server}."),
                json!({"type": "object", "properties": {}}),
            ),
            Offer::GetPrompt => (
                "get_prompt",
                format!("Fills in a prompt of {server}."),
                json!({"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string", "description": "The prompt's name, as listed."},
                    "arguments": {"type": "object", "description": "Its arguments, all texts.",
                        "additionalProperties": {"type": "string"}}}}),
            ),
        };
        let definition = Arc::new(ToolDefinition {
            name: format!("{server}_{verb}"),
            label: verb.replace('_', " "),
            description,
            input_schema: schema,
            replay: Replay::Safe,
            ..ToolDefinition::default()
        });
        Self {
            client,
            offer,
            definition,
        }
    }
}

#[async_trait]
impl Tool for OfferedTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let shared = self.client.shared();
        let text = |key: &str| {
            args.get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let output = match self.offer {
            Offer::ListResources => {
                let list = shared.offered(
                    "resources",
                    crate::protocol::method::RESOURCES_LIST,
                    "resources",
                    &context.cancel,
                );
                list.await
                    .map(|items| ToolOutput::structured(json!({"resources": items})))
            }
            Offer::ListPrompts => {
                let list = shared.offered(
                    "prompts",
                    crate::protocol::method::PROMPTS_LIST,
                    "prompts",
                    &context.cancel,
                );
                list.await
                    .map(|items| ToolOutput::structured(json!({"prompts": items})))
            }
            Offer::ReadResource => shared
                .read_resource(&text("uri"), options_of(&context))
                .await
                .map(ToolOutput::content),
            Offer::GetPrompt => {
                let arguments = args
                    .get("arguments")
                    .and_then(Value::as_object)
                    .cloned()
                    .unwrap_or_default();
                shared
                    .prompt(&text("name"), arguments, options_of(&context))
                    .await
                    .map(|result| prompt_output(&result))
            }
        };
        output.map_err(to_tool_error)
    }
}

/// A prompt's messages, one block each, with who speaks before a text.
fn prompt_output(result: &Value) -> ToolOutput {
    let messages = result.get("messages").and_then(Value::as_array);
    let blocks = messages.into_iter().flatten().map(|message| {
        let role = message
            .get("role")
            .and_then(Value::as_str)
            .unwrap_or("user");
        let content = message.get("content").cloned().unwrap_or(Value::Null);
        match crate::protocol::content_from_wire(content) {
            Content::Text(text) => Content::text(format!("{role}: {}", text.text)),
            other => other,
        }
    });
    ToolOutput {
        content: blocks.collect(),
        details: Value::Object(Map::from_iter([("prompt".into(), result.clone())])),
        ..ToolOutput::default()
    }
}
