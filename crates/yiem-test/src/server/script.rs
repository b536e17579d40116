//! The script of a fake server: requests → acts.

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;

/// A server as a script: for each method, or each tool, what it does when asked.
///
/// A request is met by the first rule that fits and is not used up; `initialize`, `server/discover` and
/// `tools/list` have rules by default, so that a script needs to say only what is odd. In raw text,
/// `$id` stands for the request's id as JSON and `$method` for its method.
///
/// ```
/// use yiem_test::server::{Act, FakeMcpServer};
/// let server = FakeMcpServer::legacy()
///     .tool("echo")
///     .on("tools/call:echo", [Act::raw(r#"{"id":$id,"result":{"content":[]},"error":null}"#)]);
/// # let _ = server;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FakeMcpServer {
    /// What it does before it is asked anything.
    pub first: Vec<Act>,
    /// What it does when it is asked.
    pub rules: Vec<Rule>,
    /// The tools that the default `tools/list` lists.
    pub tools: Vec<Value>,
    /// Whether it is modern; else legacy.
    pub modern: bool,
}

/// One rule of a script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// The method, or `tools/call:NAME` for one tool, or `*` for anything with an id.
    pub on: String,
    /// How many times it is used; `None` without end.
    pub times: Option<usize>,
    /// What is done.
    pub acts: Vec<Act>,
}

/// One thing that a fake server does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Act {
    /// Answers with this result, as the protocol has it.
    Reply(Value),
    /// Answers with the JSON of all messages that came so far, as the text of a tool result.
    Seen,
    /// Answers with its own process id, as the text of a tool result.
    Pid,
    /// Answers with the text of the request's argument `text`.
    Echo,
    /// Writes this text: a line over a pipe, the whole body of a response over HTTP.
    Raw(String),
    /// Writes this text many times.
    Flood(usize, String),
    /// Writes these bytes, in base64, as they are; over HTTP head included, and the connection is closed.
    Bytes(String),
    /// Writes this text as it is, a byte at a time with so many milliseconds in between.
    Drip(String, u64),
    /// Writes a result whose text is this many bytes long.
    Huge(usize),
    /// Writes to standard error (pipe).
    Stderr(String),
    /// Waits for so many milliseconds.
    Sleep(u64),
    /// Asks the client for this (`{"method": …, "params": …}`), and answers with the JSON of its answer as the
    /// text of a tool result, once that has come (pipe).
    Ask(Value),
    /// Does nothing more for this request, and answers it never.
    Hang,
    /// Ends the process with this status (pipe), or the connection (HTTP).
    Exit(i32),
    /// Kills its own process (pipe).
    Kill,
    /// Closes standard output and stays (pipe).
    CloseOutput,
    /// Keeps requests back until there are so many of them, then answers all, the last first, each with
    /// the text of its argument `text`.
    Gather(usize),
    /// Answers with this status, these headers and this body (HTTP).
    Http(u16, Vec<(String, String)>, String),
    /// Writes this text to the connection as it is, head included, and closes it (HTTP).
    Wire(String),
}

impl Act {
    /// Writes this text.
    pub fn raw(text: impl Into<String>) -> Self {
        Self::Raw(text.into())
    }

    /// Answers a call with one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Reply(json!({"content": [{"type": "text", "text": text.into()}]}))
    }

    /// Writes these bytes as they are; see [`Act::Bytes`].
    pub fn bytes(bytes: impl AsRef<[u8]>) -> Self {
        Self::Bytes(base64::engine::general_purpose::STANDARD.encode(bytes))
    }

    /// Answers with an event stream of these data (HTTP).
    pub fn events<S: AsRef<str>>(data: impl IntoIterator<Item = S>) -> Self {
        let body: String = data
            .into_iter()
            .map(|data| format!("data: {}\n\n", data.as_ref()))
            .collect();
        Self::Http(
            200,
            vec![("Content-Type".into(), "text/event-stream".into())],
            body,
        )
    }
}

impl FakeMcpServer {
    /// A legacy server without tools that keeps to the protocol.
    #[must_use]
    pub fn legacy() -> Self {
        Self::default()
    }

    /// A modern server without tools that keeps to the protocol.
    #[must_use]
    pub fn modern() -> Self {
        Self {
            modern: true,
            ..Self::default()
        }
    }

    /// The same with a tool that takes any object.
    #[must_use]
    pub fn tool(self, name: &str) -> Self {
        self.definition(
            json!({"name": name, "description": name, "inputSchema": {"type": "object"}}),
        )
    }

    /// The same with a tool's definition, whatever it is.
    #[must_use]
    pub fn definition(mut self, definition: Value) -> Self {
        self.tools.push(definition);
        self
    }

    /// The same, doing these things whenever it is asked this.
    #[must_use]
    pub fn on(mut self, on: &str, acts: impl IntoIterator<Item = Act>) -> Self {
        self.rules.push(Rule {
            on: on.into(),
            times: None,
            acts: acts.into_iter().collect(),
        });
        self
    }

    /// The same, doing these things the next time that it is asked this.
    #[must_use]
    pub fn once(mut self, on: &str, acts: impl IntoIterator<Item = Act>) -> Self {
        self.rules.push(Rule {
            on: on.into(),
            times: Some(1),
            acts: acts.into_iter().collect(),
        });
        self
    }

    /// The same, doing these things before it is asked anything.
    #[must_use]
    pub fn first(mut self, acts: impl IntoIterator<Item = Act>) -> Self {
        self.first.extend(acts);
        self
    }

    /// The script as JSON, for a process that plays it.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a script is always written")
    }
}

/// A script that is being played.
#[derive(Debug)]
pub(super) struct Play {
    script: FakeMcpServer,
    used: HashMap<usize, usize>,
    pub(super) seen: Vec<Value>,
}

impl Play {
    pub(super) fn new(script: FakeMcpServer) -> Self {
        Self {
            script,
            used: HashMap::new(),
            seen: Vec::new(),
        }
    }

    pub(super) fn first(&self) -> Vec<Act> {
        self.script.first.clone()
    }

    /// Takes a message and says what to do. Messages without an id are only noted, unless a rule names
    /// their method.
    pub(super) fn meet(&mut self, message: &Value) -> Vec<Act> {
        self.seen.push(message.clone());
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            return Vec::new();
        };
        let has_id = message.get("id").is_some();
        let tool = message["params"]["name"].as_str().unwrap_or_default();
        let full = format!("{method}:{tool}");
        for (at, rule) in self.script.rules.iter().enumerate() {
            let fits = rule.on == method || rule.on == full || (rule.on == "*" && has_id);
            let used = self.used.entry(at).or_default();
            if fits && rule.times.is_none_or(|times| *used < times) {
                *used += 1;
                return rule.acts.clone();
            }
        }
        if has_id {
            self.by_default(method, message)
        } else {
            Vec::new()
        }
    }

    fn by_default(&self, method: &str, message: &Value) -> Vec<Act> {
        let mut capabilities = json!({});
        if !self.script.tools.is_empty() {
            capabilities["tools"] = json!({"listChanged": true});
        }
        let resources = |rule: &Rule| rule.on.starts_with("resources/");
        if self.script.rules.iter().any(resources) {
            capabilities["resources"] = json!({"listChanged": true, "subscribe": true});
        }
        let mut result = match (method, self.script.modern) {
            ("initialize", false) => json!({
                "protocolVersion": message["params"]["protocolVersion"], "capabilities": capabilities,
                "serverInfo": {"name": "fake", "version": "1"},
            }),
            ("server/discover", true) => json!({
                "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private",
            }),
            ("tools/list", _) => json!({"tools": self.script.tools}),
            ("ping", _) => json!({}),
            ("subscriptions/listen", _) => return vec![Act::Hang],
            _ => {
                return vec![Act::raw(
                    r#"{"jsonrpc":"2.0","id":$id,"error":{"code":-32601,"message":"Method not found"}}"#,
                )];
            }
        };
        if self.script.modern {
            result["resultType"] = "complete".into();
        }
        vec![Act::Reply(result)]
    }
}

/// Puts a request's id and method into raw text.
pub(super) fn fill(text: &str, message: &Value) -> String {
    text.replace("$id", &message["id"].to_string())
        .replace("$method", message["method"].as_str().unwrap_or_default())
}

/// An answer with a result, as the protocol has it.
pub(super) fn reply(message: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string()
}

/// The text of a call's argument `text`.
pub(super) fn argument_text(message: &Value) -> &str {
    message["params"]["arguments"]["text"]
        .as_str()
        .unwrap_or_default()
}

/// A tool result of one text.
pub(super) fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "resultType": "complete"})
}
