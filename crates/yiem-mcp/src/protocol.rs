//! The words of MCP and the shapes behind them, decoded element by element.
//!
//! Knows: method names, codes, `_meta` keys, lists, tools, results, and that one bad element costs only
//! itself. Does not know: connections, dialect rules of a request's course, or the agent.

mod content;
mod headers;
mod page;
mod result;
#[cfg(test)]
mod tests;

pub use content::{content_from_wire, content_to_wire};
pub use headers::{ParamHeader, encode_header_value, param_headers, values_for_headers};
pub use page::{BadDefinition, ListPage, RemoteTool};
pub use result::{CallResult, ResultKind, result_kind};

use serde_json::{Map, Value};

/// Method names.
pub mod method {
    /// Opens a legacy connection.
    pub const INITIALIZE: &str = "initialize";
    /// Ends the opening of a legacy connection.
    pub const INITIALIZED: &str = "notifications/initialized";
    /// Asks a modern server what it is.
    pub const DISCOVER: &str = "server/discover";
    /// A sign of life, legacy.
    pub const PING: &str = "ping";
    /// One page of tools.
    pub const TOOLS_LIST: &str = "tools/list";
    /// Calls a tool.
    pub const TOOLS_CALL: &str = "tools/call";
    /// One page of prompts.
    pub const PROMPTS_LIST: &str = "prompts/list";
    /// Fills in a prompt.
    pub const PROMPTS_GET: &str = "prompts/get";
    /// One page of resources.
    pub const RESOURCES_LIST: &str = "resources/list";
    /// One page of resource templates.
    pub const RESOURCE_TEMPLATES_LIST: &str = "resources/templates/list";
    /// Reads a resource.
    pub const RESOURCES_READ: &str = "resources/read";
    /// Wants to be told of changes of a resource, legacy.
    pub const SUBSCRIBE: &str = "resources/subscribe";
    /// Does not want that any more, legacy.
    pub const UNSUBSCRIBE: &str = "resources/unsubscribe";
    /// A modern stream of changes.
    pub const LISTEN: &str = "subscriptions/listen";
    /// The first message of such a stream.
    pub const LISTEN_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
    /// A request is given up.
    pub const CANCELLED: &str = "notifications/cancelled";
    /// A request goes on.
    pub const PROGRESS: &str = "notifications/progress";
    /// The list of tools changed.
    pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
    /// The list of prompts changed.
    pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
    /// The list of resources changed.
    pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
    /// A resource that was subscribed to changed.
    pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
    /// The client's roots changed.
    pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
    /// A log line.
    pub const MESSAGE: &str = "notifications/message";
    /// A legacy server asks for the roots.
    pub const ROOTS_LIST: &str = "roots/list";
    /// A server asks the client's model.
    pub const SAMPLING: &str = "sampling/createMessage";
    /// A server asks a person.
    pub const ELICITATION: &str = "elicitation/create";
    /// A person has done what a server's address was for.
    pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

    /// Whether only clients ask this, whatever the revision: one that comes from a server was sent
    /// back.
    #[cfg(feature = "stdio")]
    #[cfg(feature = "stdio")]
    pub(crate) fn is_of_clients(name: &str) -> bool {
        let of = |family: &str| {
            name.starts_with(family) && name.as_bytes().get(family.len()) == Some(&b'/')
        };
        matches!(name, INITIALIZE | DISCOVER | LISTEN)
            || ["tools", "prompts", "resources", "completion", "logging"]
                .into_iter()
                .any(of)
    }
}

/// Keys of `_meta` that the modern revision owns.
pub mod meta_key {
    /// The revision of a request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Who asks.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// What the asker can do.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Who answers; for display only.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// Which stream of changes a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// Which log lines a modern request asks for.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The token by which progress names its request.
    pub const PROGRESS_TOKEN: &str = "progressToken";
}

/// Codes beyond JSON-RPC's own.
pub mod code {
    /// Headers and body of a modern HTTP request differ.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// A modern request lacks a client capability.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// A modern server does not speak the revision.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// A legacy server wants a person to visit an address first.
    pub const URL_WANTED: i64 = -32042;
    /// A legacy server found no such thing.
    pub const NOT_FOUND: i64 = -32002;
}

/// What a server said of itself when the connection was opened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerFacts {
    /// The revisions that it named: all that it speaks, or the one that it chose.
    pub versions: Vec<String>,
    /// Its capabilities as it declared them; `None` when it was not asked.
    pub capabilities: Option<Map<String, Value>>,
    /// Its own name and version; for display only.
    pub info: Option<Value>,
    /// What it says about its use.
    pub instructions: Option<String>,
}

impl ServerFacts {
    /// Nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self::default()
    }

    /// Whether a value is the result of `server/discover`, and not of a server that answers anything.
    #[must_use]
    pub fn is_discovery(result: &Value) -> bool {
        result.get("supportedVersions").is_some_and(Value::is_array)
            || (result.get("resultType").is_some() && result.get("capabilities").is_some())
    }

    /// Reads the result of `server/discover`.
    #[must_use]
    pub fn from_discovery(result: &Value) -> Self {
        let versions = result.get("supportedVersions").and_then(Value::as_array);
        Self {
            versions: versions
                .map(|list| {
                    list.iter()
                        .filter_map(Value::as_str)
                        .map(str::to_owned)
                        .collect()
                })
                .unwrap_or_default(),
            info: result
                .get("_meta")
                .and_then(|meta| meta.get(meta_key::SERVER_INFO))
                .or_else(|| result.get("serverInfo"))
                .cloned(),
            ..Self::shared(result)
        }
    }

    /// Reads the result of `initialize`.
    #[must_use]
    pub fn from_initialize(result: &Value) -> Self {
        Self {
            versions: result
                .get("protocolVersion")
                .map(|version| {
                    version
                        .as_str()
                        .map_or_else(|| version.to_string(), str::to_owned)
                })
                .into_iter()
                .collect(),
            info: result.get("serverInfo").cloned(),
            ..Self::shared(result)
        }
    }

    fn shared(result: &Value) -> Self {
        Self {
            capabilities: Some(
                result
                    .get("capabilities")
                    .and_then(Value::as_object)
                    .cloned()
                    .unwrap_or_default(),
            ),
            instructions: result
                .get("instructions")
                .and_then(Value::as_str)
                .map(str::to_owned),
            ..Self::default()
        }
    }

    /// Whether the server offers something (`tools`, `prompts`, `resources`). A server that was not
    /// asked, or that declares nothing at all, may.
    #[must_use]
    pub fn offers(&self, capability: &str) -> bool {
        match &self.capabilities {
            None => true,
            Some(declared) if declared.is_empty() => capability == "tools",
            Some(declared) => declared
                .get(capability)
                .is_some_and(|value| !value.is_null()),
        }
    }

    /// Whether the server tells of changes of a list (`tools`, `prompts`, `resources`).
    #[must_use]
    pub fn tells_changes_of(&self, capability: &str) -> bool {
        let declared = self
            .capabilities
            .as_ref()
            .and_then(|declared| declared.get(capability));
        declared
            .and_then(|value| value.get("listChanged"))
            .and_then(Value::as_bool)
            .unwrap_or(false)
    }
}
