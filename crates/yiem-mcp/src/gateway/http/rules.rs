//! What a request over HTTP has to look like, as plain functions of its head and body.
//!
//! Knows: both eras' headers, which of a machine's own names are trusted, statuses. Does not know: IO.

use super::config::GatewayHttpConfig;
use super::{mismatch, says_modern};
use crate::dialect::ProtocolVersion;
use crate::jsonrpc::{
    INVALID_PARAMS, INVALID_REQUEST, Incoming, IncomingRequest, JsonRpcError, METHOD_NOT_FOUND,
    RequestId,
};
use crate::protocol::{code, method};
use crate::responder::check_modern;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::StatusCode;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN,
};
use serde_json::{Value, json};

/// The header of a legacy session.
pub(super) const SESSION_ID: &str = "mcp-session-id";
const PROTOCOL_VERSION: &str = "mcp-protocol-version";
const MCP_METHOD: &str = "mcp-method";
const MCP_NAME: &str = "mcp-name";

/// Which rules a request is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// With a handshake, or bare.
    Legacy,
    /// Stateless.
    Modern,
}

/// Why a request is not worked on.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) id: Option<RequestId>,
    pub(super) error: Box<JsonRpcError>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self {
            status,
            id: None,
            error: Box::new(JsonRpcError::new(INVALID_REQUEST, why)),
        }
    }

    pub(super) fn rpc(status: StatusCode, id: Option<RequestId>, error: JsonRpcError) -> Self {
        Self {
            status,
            id,
            error: Box::new(error),
        }
    }
}

pub(super) fn no_session() -> Refusal {
    Refusal::rpc(
        StatusCode::NOT_FOUND,
        None,
        JsonRpcError::new(-32001, "Session not found: initialize again"),
    )
}

pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// A web page may reach this machine through a name that leads here: such requests carry its name or its
/// origin, and are refused.
pub(super) fn check_origin(
    headers: &HeaderMap,
    loopback: bool,
    config: &GatewayHttpConfig,
) -> Result<(), Refusal> {
    if let Some(origin) = headers.get(ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let own = loopback
            && origin
                .split_once("://")
                .is_some_and(|(_, host)| is_own_name(host));
        if !own
            && !config
                .origins
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(origin))
        {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "pages of this origin may not ask here",
            ));
        }
    }
    if loopback && let Some(host) = headers.get(HOST) {
        let host = host.to_str().unwrap_or_default();
        if !is_own_name(host)
            && !config
                .hosts
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(host))
        {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "this is not a name of the gateway's machine",
            ));
        }
    }
    Ok(())
}

fn is_own_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port))
            if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            name
        }
        _ => host,
    };
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.parse::<std::net::IpAddr>()
        .is_ok_and(|address| address.is_loopback())
}

/// Compares in a time that does not tell how much was right.
pub(super) fn check_token(headers: &HeaderMap, token: Option<&str>) -> Result<(), Refusal> {
    let Some(token) = token else { return Ok(()) };
    let given = header_of(headers, &AUTHORIZATION).unwrap_or_default();
    let given = match given.split_once(' ') {
        Some((scheme, given)) if scheme.eq_ignore_ascii_case("bearer") => given.trim(),
        _ => "",
    };
    let mut different = u8::from(given.len() != token.len());
    for (at, byte) in token.bytes().enumerate() {
        different |= byte ^ given.as_bytes().get(at).copied().unwrap_or(!byte);
    }
    if different == 0 {
        Ok(())
    } else {
        Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            "this gateway wants its bearer token",
        ))
    }
}

fn header_of<'a>(headers: &'a HeaderMap, name: &hyper::header::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    match header_of(headers, &CONTENT_TYPE) {
        Some(kind) if !kind.to_ascii_lowercase().contains("json") => Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("the body is {kind}; it must be application/json"),
        )),
        _ => Ok(()),
    }
}

/// Whether the caller takes streams. One that takes neither JSON nor streams is refused.
pub(super) fn accepted(headers: &HeaderMap) -> Result<bool, Refusal> {
    let mut streams = false;
    let mut whole = false;
    let mut any = false;
    for value in headers.get_all(ACCEPT) {
        for kind in value.to_str().unwrap_or_default().split(',') {
            let kind = kind
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase();
            any = true;
            streams |= matches!(kind.as_str(), "text/event-stream" | "text/*");
            whole |= matches!(kind.as_str(), "application/json" | "application/*" | "*/*");
        }
    }
    if any && !streams && !whole {
        return Err(Refusal::new(
            StatusCode::NOT_ACCEPTABLE,
            "the answer is application/json or text/event-stream; accept both",
        ));
    }
    Ok(streams)
}

/// Which rules hold, by what header and body say of the revision.
pub(super) fn era(headers: &HeaderMap, first: Option<&Incoming>) -> Result<Era, Refusal> {
    let named = header(headers, PROTOCOL_VERSION);
    let said = match first {
        Some(Incoming::Request(request)) => {
            says_modern(&request.params).map(|version| (version, Some(request)))
        }
        Some(Incoming::Notification { params, .. }) => {
            says_modern(params).map(|version| (version, None))
        }
        _ => None,
    };
    if said.is_some()
        || named
            .and_then(ProtocolVersion::parse)
            .is_some_and(ProtocolVersion::is_modern)
    {
        return Ok(Era::Modern);
    }
    match named {
        Some(name) if ProtocolVersion::parse(name).is_none() => {
            let id = match first {
                Some(Incoming::Request(request)) => Some(request.id.clone()),
                _ => None,
            };
            let supported: Vec<&str> = ProtocolVersion::ALL
                .iter()
                .map(|version| version.as_str())
                .collect();
            let error =
                JsonRpcError::new(code::UNSUPPORTED_VERSION, "Unsupported protocol version")
                    .with_data(json!({"supported": supported, "requested": name}));
            Err(Refusal::rpc(StatusCode::BAD_REQUEST, id, error))
        }
        _ => Ok(Era::Legacy),
    }
}

/// Holds a modern request to its headers and its metadata.
pub(super) fn check_modern_request(
    headers: &HeaderMap,
    request: &IncomingRequest,
) -> Result<(), Refusal> {
    let id = &request.id;
    let bad = |error: JsonRpcError| Refusal::rpc(StatusCode::BAD_REQUEST, Some(id.clone()), error);
    let Some(version) = says_modern(&request.params) else {
        return Err(bad(JsonRpcError::new(
            INVALID_PARAMS,
            "a request of this revision needs _meta with protocolVersion and clientCapabilities",
        )));
    };
    let named = header(headers, PROTOCOL_VERSION)
        .ok_or_else(|| mismatch(id, "the header MCP-Protocol-Version is missing"))?;
    if version.as_str() != Some(named) {
        return Err(mismatch(
            id,
            format!("MCP-Protocol-Version is {named}, and _meta says {version}"),
        ));
    }
    let params = request.params.as_object().ok_or_else(|| {
        bad(JsonRpcError::new(
            INVALID_PARAMS,
            "params must be an object",
        ))
    })?;
    check_modern(version, params).map_err(bad)?;
    let named = header(headers, MCP_METHOD)
        .ok_or_else(|| mismatch(id, "the header Mcp-Method is missing"))?;
    if named != request.method {
        return Err(mismatch(
            id,
            format!(
                "Mcp-Method is {named}, and the body asks for {}",
                request.method
            ),
        ));
    }
    let key = match request.method.as_str() {
        method::TOOLS_CALL | method::PROMPTS_GET => "name",
        method::RESOURCES_READ => "uri",
        _ => return Ok(()),
    };
    let named =
        header(headers, MCP_NAME).ok_or_else(|| mismatch(id, "the header Mcp-Name is missing"))?;
    let named = decoded(named)
        .ok_or_else(|| mismatch(id, "the header Mcp-Name is no base64 behind its sentinel"))?;
    let said = params.get(key).and_then(Value::as_str).unwrap_or_default();
    if named != said {
        return Err(mismatch(
            id,
            format!("Mcp-Name is {named}, and the body says {said}"),
        ));
    }
    Ok(())
}

/// A header's value; what is not plain ASCII stands in it as `=?base64?…?=`.
pub(super) fn decoded(value: &str) -> Option<String> {
    match value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

/// The status of an error in the modern era.
pub(super) fn status_of(error: &JsonRpcError) -> StatusCode {
    match error.code {
        METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        code::UNSUPPORTED_VERSION | code::MISSING_CAPABILITY | code::HEADER_MISMATCH => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}

pub(super) fn json_headers(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
}

pub(super) fn stream_headers(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}

#[cfg(test)]
mod tests;
