//! Arguments that a modern request over HTTP repeats in headers (`x-mcp-header`).
//!
//! Knows: which tools mark which arguments, from their list, and whether headers and arguments agree.
//! Does not know: connections.

use super::super::core::{Asked, Asking, Core};
use super::mismatch;
use super::rules::{Refusal, decoded, header};
use crate::jsonrpc::IncomingRequest;
use crate::protocol::{ParamHeader, method, param_headers};
use hyper::header::HeaderMap;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use yiem_core::CancelToken;

/// How many pages of the list are looked through.
const PAGES: usize = 1_000;

/// What is known of the tools' marks.
#[derive(Debug, Default)]
pub(super) struct Marks(Mutex<HashMap<String, Arc<[ParamHeader]>>>);

impl Marks {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<[ParamHeader]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns from a page of the list that is on its way to a caller.
    pub(super) fn learn(&self, page: &Value) {
        let tools = page.get("tools").and_then(Value::as_array);
        for tool in tools.into_iter().flatten() {
            if let Some(name) = tool.get("name").and_then(Value::as_str) {
                let schema = tool.get("inputSchema").unwrap_or(&Value::Null);
                // A tool with bad marks has none that could be checked; callers leave it out.
                let marks = param_headers(name, schema).unwrap_or_default();
                self.lock().insert(name.to_owned(), marks.into());
            }
        }
    }

    /// Holds the headers of a call to its arguments.
    pub(super) async fn check(
        &self,
        core: &Core,
        headers: &HeaderMap,
        request: &IncomingRequest,
    ) -> Result<(), Refusal> {
        let Some(name) = request.params.get("name").and_then(Value::as_str) else {
            return Ok(());
        };
        if !self.lock().contains_key(name) {
            self.load(core, name).await;
        }
        let Some(marks) = self.lock().get(name).cloned() else {
            return Ok(());
        };
        let none = Map::new();
        let arguments = request
            .params
            .get("arguments")
            .and_then(Value::as_object)
            .unwrap_or(&none);
        marks.iter().try_for_each(|mark| {
            agrees(headers, mark, arguments).map_err(|why| mismatch(&request.id, why))
        })
    }

    /// Asks for the list until the tool is on a page of it.
    async fn load(&self, core: &Core, name: &str) {
        let mut cursor = None;
        for _ in 0..PAGES {
            let asked = Asked {
                caller: "gateway".into(),
                id: None,
                method: method::TOOLS_LIST.into(),
                params: cursor.map_or_else(|| json!({}), |cursor: Value| json!({"cursor": cursor})),
                session: None,
                cancel: CancelToken::new(),
                asking: Asking::No,
                told: false,
            };
            let Some(Ok(page)) = core.answer(asked, |_| false).await else {
                return;
            };
            self.learn(&page);
            let next = page
                .get("nextCursor")
                .filter(|next| next.as_str().is_some_and(|next| !next.is_empty()));
            match next {
                Some(next) if !self.lock().contains_key(name) => cursor = Some(next.clone()),
                _ => return,
            }
        }
    }
}

/// Whether one header says what its argument says.
fn agrees(
    headers: &HeaderMap,
    mark: &ParamHeader,
    arguments: &Map<String, Value>,
) -> Result<(), String> {
    let name = format!("mcp-param-{}", mark.header.to_ascii_lowercase());
    let argument = argument(mark, arguments);
    let Some(given) = headers.get(&name).map(|_| header(headers, &name)) else {
        return match argument {
            Some(_) => Err(format!(
                "the header {name} is missing; the body has a value for it"
            )),
            None => Ok(()),
        };
    };
    let given = given
        .and_then(decoded)
        .ok_or_else(|| format!("the header {name} is no base64 behind its sentinel, or no text"))?;
    match argument {
        Some(argument) if says(&argument, &given) => Ok(()),
        Some(_) => Err(format!(
            "the header {name} and the body say different things"
        )),
        None => Err(format!(
            "the header {name} is there, and the body has no value for it"
        )),
    }
}

fn argument(mark: &ParamHeader, arguments: &Map<String, Value>) -> Option<Value> {
    let (first, rest) = mark.path.split_first()?;
    let value = rest
        .iter()
        .try_fold(arguments.get(first)?, |value, key| value.get(key))?;
    (!value.is_null()).then(|| value.clone())
}

fn says(argument: &Value, given: &str) -> bool {
    match argument {
        Value::String(text) => text == given,
        Value::Bool(flag) => given == flag.to_string(),
        Value::Number(number) => {
            number.to_string() == given
                || given
                    .parse::<f64>()
                    .ok()
                    .zip(number.as_f64())
                    .is_some_and(|(given, number)| given == number)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.insert(*name, value.parse().expect("a value"));
        }
        headers
    }

    #[test]
    fn a_header_repeats_its_argument_and_nothing_else() {
        let marks = Marks::default();
        marks.learn(&json!({"tools": [{"name": "t", "inputSchema": {"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "where": {"type": "object", "properties": {"priority": {"type": "integer", "x-mcp-header": "Priority"}}}
        }}}, {"inputSchema": 7}, 9]}));
        let marks = marks.lock().get("t").cloned().expect("learnt");
        let check = |lines: &[(&'static str, &'static str)], arguments: Value| {
            let headers = headers(lines);
            marks
                .iter()
                .all(|mark| agrees(&headers, mark, arguments.as_object().expect("object")).is_ok())
        };
        assert!(check(&[], json!({})));
        assert!(check(
            &[("mcp-param-region", "eu")],
            json!({"region": "eu"})
        ));
        assert!(check(
            &[("mcp-param-region", "=?base64?w7w=?=")],
            json!({"region": "ü"})
        ));
        assert!(check(
            &[("mcp-param-priority", "7")],
            json!({"where": {"priority": 7}})
        ));
        assert!(check(&[], json!({"region": null})));
        assert!(!check(&[], json!({"region": "eu"})), "missing");
        assert!(
            !check(&[("mcp-param-region", "us")], json!({"region": "eu"})),
            "other"
        );
        assert!(
            !check(&[("mcp-param-region", "eu")], json!({})),
            "more than the body"
        );
        assert!(
            !check(
                &[("mcp-param-region", "=?base64?w7w?=")],
                json!({"region": "ü"})
            ),
            "bad padding"
        );
        assert!(
            !check(&[("mcp-param-region", "w7w=")], json!({"region": "ü"})),
            "no sentinel, no base64"
        );
    }
}
