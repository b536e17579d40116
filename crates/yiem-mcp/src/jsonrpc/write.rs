//! Messages → bytes. Always `"jsonrpc":"2.0"`, always an object as `params`, never a line break.

use super::{JsonRpcError, RequestId};
use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Serialize)]
struct RequestBody<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    method: &'a str,
    params: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct ResultBody<'a> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    result: &'a Value,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RequestId>,
    error: Value,
}

/// A request, without a line's end.
#[must_use]
pub fn request(id: &RequestId, method: &str, params: &Map<String, Value>) -> Vec<u8> {
    bytes(&RequestBody {
        jsonrpc: "2.0",
        id: Some(id),
        method,
        params,
    })
}

/// A notification, without a line's end.
#[must_use]
pub fn notification(method: &str, params: &Map<String, Value>) -> Vec<u8> {
    bytes(&RequestBody {
        jsonrpc: "2.0",
        id: None,
        method,
        params,
    })
}

/// A request or notification that was read, as bytes again; nothing for anything else. Parameters that are
/// no object are left out.
#[cfg(feature = "gateway")]
#[must_use]
pub(crate) fn outgoing(message: &super::Incoming) -> Option<Vec<u8>> {
    let (id, method, params) = match message {
        super::Incoming::Request(request) => (Some(&request.id), &request.method, &request.params),
        super::Incoming::Notification { method, params } => (None, method, params),
        _ => return None,
    };
    let none = Map::new();
    Some(bytes(&RequestBody {
        jsonrpc: "2.0",
        id,
        method,
        params: params.as_object().unwrap_or(&none),
    }))
}

/// An answer with a result, without a line's end.
#[must_use]
pub fn result_response(id: &RequestId, result: &Value) -> Vec<u8> {
    bytes(&ResultBody {
        jsonrpc: "2.0",
        id,
        result,
    })
}

/// An answer with an error, without a line's end; `None` as id where the request's could not be read.
#[must_use]
pub fn error_response(id: Option<&RequestId>, error: &JsonRpcError) -> Vec<u8> {
    bytes(&ErrorBody {
        jsonrpc: "2.0",
        id,
        error: error.to_value(),
    })
}

fn bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("JSON values with text keys are always written")
}
