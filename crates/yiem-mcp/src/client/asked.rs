//! What a server may ask of its client, and who answers (M-9).

use super::Shared;
use crate::jsonrpc::{INVALID_PARAMS, JsonRpcError, METHOD_NOT_FOUND};
use crate::protocol::method;
use crate::responder::{AskCaller, can_answer};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Weak};

/// Answers when a server asks a person (elicitation).
///
/// When: a server asks in the course of a call, or, with the legacy dialect, at any time.
/// May answer: accept with values, decline, cancel.
/// If it never answers: the call that it belongs to ends by its own deadline.
/// If the server takes the question back, or the call that it belongs to ends, or the connection: the future is
/// dropped. Take whatever is shown away then.
#[async_trait]
pub trait Elicit: Send + Sync {
    /// Puts the question to a person.
    async fn elicit(&self, question: Elicitation) -> ElicitationAnswer;
}

/// A question of a server to a person.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Elicitation {
    /// The configured name of the server that asks.
    pub server: Arc<str>,
    /// The question.
    pub message: String,
    /// What is asked for.
    pub kind: ElicitationKind,
}

impl Elicitation {
    /// A question, for tests of whoever answers it.
    pub fn new(
        server: impl Into<Arc<str>>,
        message: impl Into<String>,
        kind: ElicitationKind,
    ) -> Self {
        Self {
            server: server.into(),
            message: message.into(),
            kind,
        }
    }
}

/// What a server asks a person for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationKind {
    /// Values that suit this schema: an object of plain fields.
    Form {
        /// The schema as it came.
        schema: Value,
    },
    /// To visit an address. It is the server's: show it whole before it is opened.
    Url {
        /// The address.
        url: String,
        /// The server's name for the visit.
        id: Option<String>,
    },
}

/// What a person said.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationAnswer {
    /// Yes, with these values (empty for an address). Fields that are missing and have a default in the
    /// schema get it.
    Accept(Map<String, Value>),
    /// No.
    Decline,
    /// No answer.
    Cancel,
}

/// Answers when a server asks the client's model (sampling). Only servers that are given one may ask.
#[async_trait]
pub trait Sample: Send + Sync {
    /// Answers `sampling/createMessage`: its parameters in, its result out, both as MCP has them.
    ///
    /// # Errors
    /// The refusal that the server is answered with.
    async fn sample(&self, server: &str, params: Value) -> Result<Value, JsonRpcError>;
}

/// A folder that a server is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Its address, a `file://` URI.
    pub uri: String,
    /// Its name for people.
    pub name: Option<String>,
}

/// Answers a server's questions in this client's place, for those who stand behind it: the gateway.
pub(crate) trait HandOn: Send + Sync {
    /// Whom a question is put to that came without a word on whose request it belongs to; `None` when that
    /// cannot be known.
    fn whom(&self) -> Option<Arc<dyn AskCaller>>;
}

/// Answers one request of a server. `caller` is who it is for, where that is known.
pub(super) async fn answer(
    client: &Weak<Shared>,
    name: &str,
    params: Value,
    caller: Option<Arc<dyn AskCaller>>,
) -> Result<Value, JsonRpcError> {
    let Some((server, config, caller)) = client.upgrade().map(|client| {
        let caller = caller.or_else(|| client.hand_on.get().and_then(|hand_on| hand_on.whom()));
        (Arc::clone(&client.name), client.config.clone(), caller)
    }) else {
        return Err(JsonRpcError::new(METHOD_NOT_FOUND, "the client is closing"));
    };
    if let Some(caller) = caller
        && can_answer(caller.capabilities(), name, &params)
        && let Some(answer) = caller.ask(name, &params).await
    {
        return answer;
    }
    match name {
        method::PING => Ok(json!({})),
        method::ELICITATION => {
            let question = read_question(server, &params)?;
            let schema = match &question.kind {
                ElicitationKind::Form { schema } => Some(schema.clone()),
                ElicitationKind::Url { .. } => None,
            };
            let answer = match &config.elicit {
                Some(elicit) => elicit.elicit(question).await,
                None => ElicitationAnswer::Decline,
            };
            Ok(write_answer(answer, schema.as_ref()))
        }
        method::SAMPLING => match &config.sample {
            Some(sample) => sample.sample(&server, params).await,
            None => Err(JsonRpcError::new(
                METHOD_NOT_FOUND,
                "sampling is not enabled in this client",
            )),
        },
        method::ROOTS_LIST => match &config.roots {
            Some(roots) => Ok(write_roots(roots)),
            None => Err(JsonRpcError::new(
                METHOD_NOT_FOUND,
                "this client has no roots",
            )),
        },
        other => Err(JsonRpcError::new(
            METHOD_NOT_FOUND,
            format!("Method not found: {other}"),
        )),
    }
}

/// What a server is told whose question nobody answers any more, since what it was for has ended.
pub(super) fn too_late(name: &str) -> Result<Value, JsonRpcError> {
    if name == method::ELICITATION {
        return Ok(write_answer(ElicitationAnswer::Cancel, None));
    }
    Err(JsonRpcError::new(
        crate::jsonrpc::INTERNAL_ERROR,
        "the request in whose course this was asked has ended",
    ))
}

fn read_question(server: Arc<str>, params: &Value) -> Result<Elicitation, JsonRpcError> {
    let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
    let kind = match (params.get("mode").and_then(Value::as_str), text("url")) {
        (Some("url"), Some(url)) | (None, Some(url)) => ElicitationKind::Url {
            url,
            id: text("elicitationId"),
        },
        (Some("url"), None) => {
            return Err(JsonRpcError::new(
                INVALID_PARAMS,
                "an elicitation by URL needs a url",
            ));
        }
        (Some("form") | None, _) => ElicitationKind::Form {
            schema: params
                .get("requestedSchema")
                .cloned()
                .unwrap_or_else(|| json!({"type": "object"})),
        },
        (Some(other), _) => {
            return Err(JsonRpcError::new(
                INVALID_PARAMS,
                format!("unknown mode of elicitation: {other}"),
            ));
        }
    };
    Ok(Elicitation {
        server,
        message: text("message").unwrap_or_default(),
        kind,
    })
}

fn write_answer(answer: ElicitationAnswer, schema: Option<&Value>) -> Value {
    match answer {
        ElicitationAnswer::Decline => json!({"action": "decline"}),
        ElicitationAnswer::Cancel => json!({"action": "cancel"}),
        ElicitationAnswer::Accept(values) => match schema {
            None => json!({"action": "accept"}),
            Some(schema) => json!({"action": "accept", "content": with_defaults(values, schema)}),
        },
    }
}

fn with_defaults(mut values: Map<String, Value>, schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (key, property) in properties.into_iter().flatten() {
        if let Some(default) = property.get("default")
            && !values.contains_key(key)
        {
            values.insert(key.clone(), default.clone());
        }
    }
    values
}

fn write_roots(roots: &[Root]) -> Value {
    let roots: Vec<Value> = roots
        .iter()
        .map(|root| match &root.name {
            Some(name) => json!({"uri": root.uri, "name": name}),
            None => json!({"uri": root.uri}),
        })
        .collect();
    json!({"roots": roots})
}
