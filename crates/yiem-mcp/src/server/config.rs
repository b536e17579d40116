//! The `mcpServers` map that other clients use, read from JSON.

use super::McpServer;
use crate::error::McpError;
use serde_json::{Map, Value};
use std::time::Duration;

/// Servers as a configuration names them, in its order, and what of it cannot be used.
///
/// ```
/// let config = yiem_mcp::McpConfig::from_json(r#"{"mcpServers": {
///     "files": {"command": "mcp-server-filesystem", "args": ["/tmp"], "env": {"DEBUG": "1"}}
/// }}"#)?;
/// assert_eq!(&*config.servers[0].key(), "files");
/// # Ok::<(), yiem_mcp::McpError>(())
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct McpConfig {
    /// The servers; switched-off ones are left out.
    pub servers: Vec<McpServer>,
    /// Entries that cannot be used, each with its name and the reason; the others stand.
    pub problems: Vec<(String, McpError)>,
}

impl McpConfig {
    /// Reads `{"mcpServers": {NAME: …}}`; also `servers` (as VS Code has it), or the bare map.
    ///
    /// An entry has `command`, `args`, `env`, `cwd`; or `url` and `headers`, with `type` `http` or `sse`;
    /// or `nats` with `url` and `subject`. Also `disabled`, `required`, `timeout` (ms). `${NAME}`,
    /// `${NAME:-default}` and `${env:NAME}` stand for variables of the environment.
    ///
    /// # Errors
    /// The text is no JSON, or holds no such map.
    pub fn from_json(text: &str) -> Result<Self, McpError> {
        let value: Value =
            serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
                McpError::config(format!(
                    "the configuration of MCP servers is no JSON: {error}"
                ))
            })?;
        Self::from_value(&value)
    }

    /// As [`McpConfig::from_json`], from a value.
    ///
    /// # Errors
    /// The value holds no such map.
    pub fn from_value(value: &Value) -> Result<Self, McpError> {
        let object = value
            .as_object()
            .ok_or_else(|| McpError::config("the configuration of MCP servers is no object"))?;
        let map = match object.get("mcpServers").or_else(|| object.get("servers")) {
            Some(Value::Object(map)) => map,
            Some(_) => return Err(McpError::config("`mcpServers` is no object")),
            None if !object.is_empty() && object.values().all(looks_like_entry) => object,
            None => {
                return Err(McpError::config(
                    "there is no `mcpServers` in the configuration of MCP servers",
                ));
            }
        };
        let mut config = Self::default();
        for (name, entry) in map {
            match read_entry(name, entry) {
                Ok(Some(server)) => config.servers.push(server),
                Ok(None) => {}
                Err(error) => config
                    .problems
                    .push((name.clone(), error.at(&name.as_str().into()))),
            }
        }
        Ok(config)
    }
}

fn looks_like_entry(value: &Value) -> bool {
    ["command", "url", "serverUrl", "httpUrl", "nats"]
        .iter()
        .any(|key| value.get(key).is_some())
}

fn read_entry(name: &str, entry: &Value) -> Result<Option<McpServer>, McpError> {
    let entry = entry
        .as_object()
        .ok_or_else(|| McpError::config("the entry is no object"))?;
    if entry.get("disabled") == Some(&Value::Bool(true))
        || entry.get("enabled") == Some(&Value::Bool(false))
    {
        return Ok(None);
    }
    let mut server = if let Some(nats) = entry.get("nats") {
        nats_entry(nats, entry)?
    } else if let Some(command) = optional_text(entry, "command")? {
        stdio_entry(&command, entry)?
    } else if let Some(url) = first_text(entry, &["url", "serverUrl", "httpUrl"])? {
        url_entry(&url, entry)?
    } else {
        let keys: Vec<String> = entry.keys().take(8).map(|key| format!("`{key}`")).collect();
        return Err(McpError::config(match keys.as_slice() {
            [] => "the entry is empty; it needs `command`, `url` or `nats`".to_owned(),
            keys => format!(
                "the entry has none of `command`, `url` and `nats`, but {}",
                keys.join(", ")
            ),
        }));
    };
    if let Some(required) = entry.get("required") {
        server = server.required(required == &Value::Bool(true));
    }
    for key in ["timeout", "timeoutMs"] {
        if let Some(millis) = entry.get(key).and_then(Value::as_u64) {
            server = server.call_timeout(Duration::from_millis(millis));
        }
    }
    Ok(Some(server.name(name)))
}

#[cfg(feature = "stdio")]
fn stdio_entry(command: &str, entry: &Map<String, Value>) -> Result<McpServer, McpError> {
    let mut server = McpServer::stdio(command, text_list(entry, "args")?);
    for (key, value) in text_map(entry, "env")? {
        server = server.env(key, value);
    }
    if let Some(directory) = optional_text(entry, "cwd")? {
        server = server.cwd(directory);
    }
    Ok(server)
}

#[cfg(not(feature = "stdio"))]
fn stdio_entry(_: &str, _: &Map<String, Value>) -> Result<McpServer, McpError> {
    Err(super::missing_feature(
        "stdio",
        "servers that are processes",
    ))
}

fn url_entry(url: &str, entry: &Map<String, Value>) -> Result<McpServer, McpError> {
    let kind = optional_text(entry, "type")?.or(optional_text(entry, "transport")?);
    if url.starts_with("nats://") || url.starts_with("tls://") {
        return super::spec::read_address(url);
    }
    http_entry(url, kind.as_deref(), entry)
}

#[cfg(feature = "http")]
fn http_entry(
    url: &str,
    kind: Option<&str>,
    entry: &Map<String, Value>,
) -> Result<McpServer, McpError> {
    let mut server = McpServer::http(url);
    for (key, value) in text_map(entry, "headers")? {
        server = server.header(key, value);
    }
    if kind == Some("sse") {
        server = server.old_sse();
    }
    Ok(server)
}

#[cfg(not(feature = "http"))]
fn http_entry(_: &str, _: Option<&str>, _: &Map<String, Value>) -> Result<McpServer, McpError> {
    Err(super::missing_feature(
        "http",
        "servers behind an HTTP address",
    ))
}

#[cfg(feature = "nats")]
fn nats_entry(nats: &Value, entry: &Map<String, Value>) -> Result<McpServer, McpError> {
    Ok(McpServer::nats(
        crate::transport::nats::NatsConfig::from_entry(nats, entry)?,
    ))
}

#[cfg(not(feature = "nats"))]
fn nats_entry(_: &Value, _: &Map<String, Value>) -> Result<McpServer, McpError> {
    Err(super::missing_feature("nats", "servers on NATS"))
}

fn first_text(entry: &Map<String, Value>, keys: &[&str]) -> Result<Option<String>, McpError> {
    for key in keys {
        if let Some(text) = optional_text(entry, key)? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

pub(super) fn optional_text(
    entry: &Map<String, Value>,
    key: &str,
) -> Result<Option<String>, McpError> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => expand(text).map(Some),
        Some(_) => Err(McpError::config(format!("`{key}` is no text"))),
    }
}

#[cfg(feature = "stdio")]
fn text_list(entry: &Map<String, Value>, key: &str) -> Result<Vec<String>, McpError> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| match item {
                Value::String(text) => expand(text),
                Value::Number(number) => Ok(number.to_string()),
                Value::Bool(flag) => Ok(flag.to_string()),
                _ => Err(McpError::config(format!(
                    "`{key}` has an element that is no text"
                ))),
            })
            .collect(),
        Some(_) => Err(McpError::config(format!("`{key}` is no list"))),
    }
}

#[cfg(any(feature = "stdio", feature = "http"))]
fn text_map(entry: &Map<String, Value>, key: &str) -> Result<Vec<(String, String)>, McpError> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(map)) => map
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) => Ok((name.clone(), expand(text)?)),
                Value::Number(number) => Ok((name.clone(), number.to_string())),
                Value::Bool(flag) => Ok((name.clone(), flag.to_string())),
                _ => Err(McpError::config(format!("`{key}.{name}` is no text"))),
            })
            .collect(),
        Some(_) => Err(McpError::config(format!("`{key}` is no object"))),
    }
}

/// Puts variables of the environment in: `${NAME}`, `${env:NAME}`, `${NAME:-default}`.
fn expand(text: &str) -> Result<String, McpError> {
    expand_with(text, &|name| std::env::var(name).ok())
}

pub(super) fn expand_with(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, McpError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let inside = &rest[start + 2..start + length];
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        out.push_str(&rest[..start]);
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_name {
            match variable(name).or_else(|| default.map(str::to_owned)) {
                Some(value) => out.push_str(&value),
                None => {
                    return Err(McpError::config(format!(
                        "the environment has no variable {name}; set it, or write ${{{name}:-default}}"
                    )));
                }
            }
        } else {
            out.push_str(&rest[start..=start + length]);
        }
        rest = &rest[start + length + 1..];
    }
    out.push_str(rest);
    Ok(out)
}
