//! Questions to a caller in the course of its request: which it can answer, and the way to it.
//!
//! Knows: what a caller declared. Does not know: how a question travels; whoever carries the request does.

use crate::jsonrpc::JsonRpcError;
use crate::protocol::method;
use async_trait::async_trait;
use serde_json::{Map, Value};

/// What a client may be able to answer, by the capability that it declares.
const ANSWERABLE: [(&str, &str); 3] = [
    (method::ELICITATION, "elicitation"),
    (method::SAMPLING, "sampling"),
    (method::ROOTS_LIST, "roots"),
];

/// Takes questions to one caller.
#[async_trait]
pub(crate) trait AskCaller: Send + Sync {
    /// What the caller can do, as it declared it.
    fn capabilities(&self) -> &Map<String, Value>;

    /// Whether a question to the caller is open already.
    #[cfg(feature = "gateway")]
    fn is_asked(&self) -> bool;

    /// Puts a question to the caller. `None` when it did not get there, or was not answered.
    async fn ask(&self, name: &str, params: &Value) -> Option<Result<Value, JsonRpcError>>;
}

/// Whether a caller that declared these capabilities can answer that question.
pub(crate) fn can_answer(declared: &Map<String, Value>, name: &str, params: &Value) -> bool {
    let Some((_, capability)) = ANSWERABLE.into_iter().find(|(method, _)| *method == name) else {
        return false;
    };
    match declared.get(capability) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(details) if name == method::ELICITATION => {
            // Before there were two kinds, an empty declaration meant forms.
            let kinds = details.as_object().filter(|kinds| !kinds.is_empty());
            let by_url = params.get("mode").and_then(Value::as_str) == Some("url");
            match kinds {
                Some(kinds) => kinds.contains_key(if by_url { "url" } else { "form" }),
                None => !by_url,
            }
        }
        Some(_) => true,
    }
}

/// Of what a caller declared, that which questions are asked by.
#[cfg(feature = "gateway")]
pub(crate) fn answerable(declared: &Map<String, Value>) -> Map<String, Value> {
    let known = |key: &str| ANSWERABLE.iter().any(|(_, capability)| *capability == key);
    declared
        .iter()
        .filter(|(key, value)| known(key) && !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_caller_declares_is_what_it_is_asked() {
        let can = |declared: Value, name: &str, params: Value| {
            can_answer(declared.as_object().expect("an object"), name, &params)
        };
        let form = json!({"message": "?", "requestedSchema": {}});
        let url = json!({"mode": "url", "url": "https://h/"});
        for (declared, by_form, by_url) in [
            (json!({}), false, false),
            (json!({"elicitation": null}), false, false),
            (json!({"elicitation": {}}), true, false),
            (json!({"elicitation": {"form": {}}}), true, false),
            (json!({"elicitation": {"url": {}}}), false, true),
            (json!({"elicitation": {"form": {}, "url": {}}}), true, true),
            (json!({"sampling": {}, "roots": {}}), false, false),
        ] {
            assert_eq!(
                can(declared.clone(), method::ELICITATION, form.clone()),
                by_form,
                "{declared}"
            );
            assert_eq!(
                can(declared.clone(), method::ELICITATION, url.clone()),
                by_url,
                "{declared}"
            );
        }
        assert!(can(json!({"sampling": {}}), method::SAMPLING, json!({})));
        assert!(!can(json!({"sampling": {}}), method::ROOTS_LIST, json!({})));
        assert!(can(json!({"roots": {}}), method::ROOTS_LIST, json!(null)));
        assert!(!can(json!({"x": {}}), "x/y", json!({})));
    }
}
