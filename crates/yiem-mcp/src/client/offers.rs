//! Prompts and resources (M-9).

use super::call::CallOptions;
use super::{McpClient, Shared};
use crate::error::McpError;
use crate::protocol::{content_from_wire, method};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use yiem_core::{CancelToken, Content};

impl McpClient {
    /// The prompts of the server, as it defines them; none when it declares none.
    ///
    /// # Errors
    /// The server cannot be reached, refuses, or answers with no list.
    pub async fn prompts(&self) -> Result<Vec<Value>, McpError> {
        self.0
            .offered(
                "prompts",
                method::PROMPTS_LIST,
                "prompts",
                &CancelToken::new(),
            )
            .await
    }

    /// The resources of the server, as it defines them; none when it declares none.
    ///
    /// # Errors
    /// As [`McpClient::prompts`].
    pub async fn resources(&self) -> Result<Vec<Value>, McpError> {
        self.0
            .offered(
                "resources",
                method::RESOURCES_LIST,
                "resources",
                &CancelToken::new(),
            )
            .await
    }

    /// The patterns of addresses that the server has resources for.
    ///
    /// # Errors
    /// As [`McpClient::prompts`].
    pub async fn resource_templates(&self) -> Result<Vec<Value>, McpError> {
        self.0
            .offered(
                "resources",
                method::RESOURCE_TEMPLATES_LIST,
                "resourceTemplates",
                &CancelToken::new(),
            )
            .await
    }

    /// Reads a resource: its parts as resource blocks.
    ///
    /// # Errors
    /// The server cannot be reached, or has no such resource.
    pub async fn read_resource(
        &self,
        uri: &str,
        options: CallOptions,
    ) -> Result<Vec<Content>, McpError> {
        self.0.read_resource(uri, options).await
    }

    /// A prompt filled in: the result of `prompts/get` as it came.
    ///
    /// # Errors
    /// The server cannot be reached, or has no such prompt.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> Result<Value, McpError> {
        self.0.prompt(name, arguments, options).await
    }
}

impl Shared {
    pub(crate) async fn offered(
        self: &Arc<Self>,
        capability: &str,
        name: &'static str,
        key: &str,
        cancel: &CancelToken,
    ) -> Result<Vec<Value>, McpError> {
        let session = self.session(cancel).await?;
        // Nobody is asked for what they did not declare; a server that was never asked declared nothing.
        if session.facts.capabilities.is_none() || !session.facts.offers(capability) {
            return Ok(Vec::new());
        }
        Ok(self.whole_list(name, key, cancel).await?.items)
    }

    pub(crate) async fn read_resource(
        self: &Arc<Self>,
        uri: &str,
        options: CallOptions,
    ) -> Result<Vec<Content>, McpError> {
        let mut params = Map::new();
        params.insert("uri".into(), uri.into());
        let result = self
            .request_with_input(
                method::RESOURCES_READ,
                &|| params.clone(),
                &options,
                &|_| Vec::new(),
            )
            .await
            .map_err(|error| error.doing(format!("{} `{uri}`", method::RESOURCES_READ)))?;
        let parts = match result.get("contents") {
            Some(Value::Array(parts)) => parts.clone(),
            Some(part @ Value::Object(_)) => vec![part.clone()],
            _ => {
                return Err(McpError::unreadable("there are no `contents`")
                    .at(&self.name)
                    .doing(method::RESOURCES_READ));
            }
        };
        Ok(parts
            .into_iter()
            .map(|part| content_from_wire(json!({"type": "resource", "resource": part})))
            .collect())
    }

    pub(crate) async fn prompt(
        self: &Arc<Self>,
        name: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> Result<Value, McpError> {
        let mut params = Map::new();
        params.insert("name".into(), name.into());
        params.insert("arguments".into(), Value::Object(arguments));
        self.request_with_input(method::PROMPTS_GET, &|| params.clone(), &options, &|_| {
            Vec::new()
        })
        .await
        .map_err(|error| error.doing(format!("{} `{name}`", method::PROMPTS_GET)))
    }
}
