//! An MCP server as a source of tools: core's contract on one side, the client on the other.
//!
//! Knows: how a server's tool becomes a core tool, its result a tool's output, its failures errors
//! that a model can read. Does not know: registries, names of other servers, the run.

mod offered;
mod output;
#[cfg(test)]
mod tests;

use crate::client::{CallOptions, McpClient};
use crate::error::McpError;
use crate::protocol::RemoteTool;
use crate::server::McpServer;
use async_trait::async_trait;
use offered::offered_tools;
use output::{to_output, to_tool_error};
use std::fmt;
use std::sync::Arc;
use yiem_core::{
    CancelToken, Env, Error, IntoToolSource, LoadedTools, RejectedTool, Replay, SourceError, Tool,
    ToolContext, ToolDefinition, ToolError, ToolLimits, ToolOutput, ToolSource, ValidArgs,
};

/// An MCP server as a source of tools (M-4 to M-8).
///
/// Connecting opens the connection and asks for nothing; loading connects if need be, lists all pages and gives each tool under the server's own name; what cannot be
/// used is reported and costs only itself. A server that dies is started again at the next use.
#[derive(Clone)]
pub struct McpToolSource {
    client: McpClient,
    required: bool,
}

impl McpToolSource {
    /// The tools of that server. Nothing is started yet.
    ///
    /// # Errors
    /// The server's configuration cannot be used.
    pub fn new(server: McpServer, env: Arc<dyn Env>) -> Result<Self, McpError> {
        let required = server.is_required();
        Ok(Self {
            client: McpClient::new(server, env)?,
            required,
        })
    }

    /// The tools of a client that exists already.
    #[must_use]
    pub fn of_client(client: McpClient) -> Self {
        let required = client.shared().required();
        Self { client, required }
    }

    /// The client behind it.
    #[must_use]
    pub fn client(&self) -> &McpClient {
        &self.client
    }
}

impl fmt::Debug for McpToolSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpToolSource")
            .field("client", &self.client)
            .field("required", &self.required)
            .finish()
    }
}

#[async_trait]
impl ToolSource for McpToolSource {
    fn name(&self) -> &str {
        self.client.name()
    }

    fn generation(&self) -> u64 {
        self.client.generation()
    }

    async fn load(&self, cancel: &CancelToken) -> Result<LoadedTools, SourceError> {
        let shared = self.client.shared();
        let listing = shared
            .tool_listing(cancel)
            .await
            .map_err(|error| source_error(self.name(), error))?;
        let mut tools: Vec<Arc<dyn Tool>> = listing
            .tools
            .iter()
            .map(|tool| {
                Arc::new(McpTool::new(self.client.clone(), Arc::clone(tool))) as Arc<dyn Tool>
            })
            .collect();
        let mut warnings = listing.warnings.clone();
        tools.extend(offered_tools(&self.client, &listing, &mut warnings));
        Ok(LoadedTools {
            generation: listing.generation,
            tools,
            rejected: listing
                .rejected
                .iter()
                .map(|bad| RejectedTool {
                    name: bad.name.clone(),
                    reason: bad.reason.clone(),
                })
                .collect(),
            warnings,
        })
    }

    async fn connect(&self, cancel: &CancelToken) -> Result<(), SourceError> {
        let connected = self.client.shared().session(cancel).await;
        connected
            .map(drop)
            .map_err(|error| source_error(self.name(), error))
    }

    async fn changed(&self, seen: u64) {
        self.client.changed(seen).await;
    }

    fn required(&self) -> bool {
        self.required
    }

    async fn close(&self) {
        self.client.close().await;
    }
}

impl IntoToolSource for McpServer {
    fn into_tool_source(self, env: &Arc<dyn Env>) -> Result<Arc<dyn ToolSource>, Error> {
        Ok(Arc::new(McpToolSource::new(self, Arc::clone(env))?))
    }
}

fn source_error(name: &str, error: McpError) -> SourceError {
    SourceError {
        source_name: name.to_owned(),
        // A model reads it; what is only for people stands in the cause.
        message: error.in_brief(),
        retryable: !matches!(
            error.kind(),
            crate::McpErrorKind::Config(_)
                | crate::McpErrorKind::Protocol(_)
                | crate::McpErrorKind::Unauthorized(_)
        ),
        cause: Some(Box::new(error)),
    }
}

/// One tool of a server.
struct McpTool {
    client: McpClient,
    remote: Arc<RemoteTool>,
    definition: Arc<ToolDefinition>,
}

impl McpTool {
    fn new(client: McpClient, remote: Arc<RemoteTool>) -> Self {
        let definition = Arc::new(ToolDefinition {
            name: remote.name.clone(),
            label: remote.label.clone(),
            description: remote.description.clone(),
            input_schema: remote.input_schema.clone(),
            output_schema: remote.output_schema.clone(),
            annotations: remote.annotations.clone(),
            // The client's own deadline rules: silence, renewed by progress, and a hard cap (M-5). This
            // limit is only a net beyond it.
            limits: ToolLimits {
                time: Some(client.shared().longest_call()),
                ..ToolLimits::default()
            },
            replay: Replay::Never,
            ..ToolDefinition::default()
        });
        Self {
            client,
            remote,
            definition,
        }
    }
}

#[async_trait]
impl Tool for McpTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn has_own_checks(&self) -> bool {
        false
    }

    async fn call(&self, args: ValidArgs, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let outcome = self
            .client
            .shared()
            .call_tool(
                &self.remote.name,
                Arc::clone(args.shared()),
                options_of(&context),
            )
            .await;
        match outcome {
            Ok(outcome) => Ok(to_output(outcome)),
            Err(error) => Err(to_tool_error(error)),
        }
    }
}

fn options_of(context: &ToolContext) -> CallOptions {
    let mut options = CallOptions::default()
        .cancel(context.cancel.clone())
        .progress(Arc::clone(context.progress_sink()));
    options.session_id.clone_from(&context.session_id);
    options.trace = Arc::clone(&context.trace);
    options
}
