//! The SPEC texts of the command: `NAME=stdio:COMMAND ARGS`, `NAME=http://…`, `NAME=nats://…`.

use super::McpServer;
use crate::error::McpError;

/// Reads a SPEC; the name before `=` may be left out.
pub(super) fn read(text: &str) -> Result<McpServer, McpError> {
    let text = text.trim();
    let (name, address) = match text.split_once('=') {
        Some((name, address)) if is_name(name) => (Some(name.trim()), address.trim()),
        _ => (None, text),
    };
    let server = read_address(address)?;
    Ok(match name {
        Some(name) => server.name(name),
        None => server,
    })
}

/// A name ends before the address begins: it has no colon, slash, quote or space.
fn is_name(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && !text.contains([':', '/', ' ', '"', '\'', '?'])
}

pub(super) fn read_address(address: &str) -> Result<McpServer, McpError> {
    if let Some(command) = address.strip_prefix("stdio:") {
        return stdio(command);
    }
    if address.starts_with("http://") || address.starts_with("https://") {
        return http(address);
    }
    if address.starts_with("nats://") || address.starts_with("tls://") {
        return nats(address);
    }
    Err(McpError::config(format!(
        "`{}` is no MCP server; write NAME=stdio:COMMAND ARGS, NAME=http://HOST:PORT/PATH or \
         NAME=nats://HOST:PORT/SUBJECT",
        without_secrets(address)
    )))
}

#[cfg(feature = "stdio")]
fn stdio(command: &str) -> Result<McpServer, McpError> {
    let mut words = split_words(command)?.into_iter();
    let program = words
        .next()
        .ok_or_else(|| McpError::config("`stdio:` needs a command"))?;
    Ok(McpServer::stdio(program, words))
}

#[cfg(not(feature = "stdio"))]
fn stdio(_: &str) -> Result<McpServer, McpError> {
    Err(super::missing_feature(
        "stdio",
        "servers that are processes",
    ))
}

#[cfg(feature = "http")]
fn http(address: &str) -> Result<McpServer, McpError> {
    Ok(McpServer::http(address))
}

#[cfg(not(feature = "http"))]
fn http(_: &str) -> Result<McpServer, McpError> {
    Err(super::missing_feature(
        "http",
        "servers behind an HTTP address",
    ))
}

#[cfg(feature = "nats")]
fn nats(address: &str) -> Result<McpServer, McpError> {
    Ok(McpServer::nats(
        crate::transport::nats::NatsConfig::from_url(address)?,
    ))
}

#[cfg(not(feature = "nats"))]
fn nats(_: &str) -> Result<McpServer, McpError> {
    Err(super::missing_feature("nats", "servers on NATS"))
}

/// An address as it may be shown: without user and password.
pub(crate) fn without_secrets(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://***@{}", &rest[at + 1..]),
        None => address.to_owned(),
    }
}

/// Words as a shell parts them: by spaces, with quotes and backslashes; nothing else is special.
#[cfg(feature = "stdio")]
pub(super) fn split_words(text: &str) -> Result<Vec<String>, McpError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some(end) if end == c => break,
                        Some('\\')
                            if c == '"' && matches!(chars.peek(), Some('"' | '\\' | '$' | '`')) =>
                        {
                            word.extend(chars.next());
                        }
                        Some(inside) => word.push(inside),
                        None => {
                            return Err(McpError::config(format!(
                                "a quote {c} is not closed in `{text}`"
                            )));
                        }
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}
