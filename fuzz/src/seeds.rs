//! Seeds: the cases of yiem-openai and messages of MCP servers, in the form that each promise takes.

use std::path::Path;

use serde_json::Value;
use yiem_openai::Asked;
use yiem_openai::RecordedReply;

/// An input to begin with.
#[derive(Debug)]
pub struct Seed {
    /// The promise that it is for.
    pub promise: &'static str,
    /// A name for its file.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

const MESSAGES: [&str; 12] = [
    r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":""}}"#,
    r#"{"jsonrpc":"2.0","id":"1","error":{"code":-32601,"message":"Method not found","data":{"supported":["2025-06-18"]}}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":"no"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
    r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"notifications/message"}]"#,
    r#"{"id":1.0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}"#,
    r#"{"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":1000}}"#,
    r#"{"id":1,"error":{"code":-32022,"message":"unsupported","data":{"supported":["2026-07-28","2025-06-18"],"requested":"x"}}}"#,
    r#"{"id":1,"error":{"code":-32020,"message":"header mismatch"}}"#,
    "{\"id\":1,\"result\":{\"text\":\"\\ud83d \u{1} NaN\",\"n\":NaN}}",
    "Listening on stdio\u{1b}[0m\r",
];

/// All seeds, made of the cases below `root`, the folder of the workspace.
///
/// # Errors
/// A folder or a case cannot be read.
pub fn seeds(root: &Path) -> Result<Vec<Seed>, Box<dyn std::error::Error>> {
    let mut seeds = Vec::new();
    let mut add = |promise, name: &str, head: &[u8], body: &[u8]| {
        seeds.push(Seed {
            promise,
            name: name.to_owned(),
            bytes: [head, body].concat(),
        });
    };
    for folder in ["cases", "neighbours"] {
        let folder = root.join("crates/yiem-openai/tests/fixtures").join(folder);
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let text = std::fs::read_to_string(&path)?;
            let Ok(reply) = RecordedReply::from_case(&text) else {
                continue;
            };
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let flags = u8::from(reply.asked == Asked::Whole)
                | u8::from(reply.options.recover_leaked_calls) << 1
                | u8::from(reply.options.think_open_implied) << 2;
            let body = reply.pieces.concat();
            let number = u32::try_from(seeds_number(&name))
                .unwrap_or(7)
                .to_le_bytes();
            add("whole_reply", &name, &[flags], &body);
            add(
                "stream_reply",
                &name,
                &[&[flags][..], &number].concat(),
                &body,
            );
            add("round_trip", &name, &[number[0], number[1], flags], &body);
            add("sse", &name, &number, &body);
            let mut found = Vec::new();
            let case: Value = serde_json::from_str(&text)?;
            texts_of_arguments(&case["input"], &mut found);
            for (n, arguments) in found.iter().enumerate() {
                let head = [&[flags][..], &number].concat();
                add(
                    "arguments",
                    &format!("{name}-{n}"),
                    &head,
                    arguments.as_bytes(),
                );
            }
        }
    }
    for (n, message) in MESSAGES.iter().enumerate() {
        let number = 7_u32.to_le_bytes();
        add("jsonrpc", &n.to_string(), &number, message.as_bytes());
        for choice in 0..5 {
            let lines = [message, MESSAGES[6], MESSAGES[1]].join("\n");
            add(
                "dialect",
                &format!("{n}-{choice}"),
                &[choice],
                lines.as_bytes(),
            );
        }
    }
    add(
        "jsonrpc",
        "all",
        &7_u32.to_le_bytes(),
        MESSAGES.join("\n").as_bytes(),
    );
    add(
        "correlate",
        "one",
        &[],
        &[0, 0, 3, 0, 3, 0, 0, 0, 1, 1, 4, 1],
    );
    add(
        "correlate",
        "more",
        &[],
        &[0, 0, 0, 0, 0, 0, 5, 1, 4, 2, 2, 0, 5, 1, 0, 0, 5, 1],
    );
    Ok(seeds)
}

/// Some number that is always the same for a name.
fn seeds_number(name: &str) -> usize {
    name.bytes()
        .fold(7, |n, byte| (n * 31 + usize::from(byte)) % 65_521)
}

/// Every text that stands under `arguments`.
fn texts_of_arguments(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(text) if key == "arguments" => found.push(text.clone()),
                    other => texts_of_arguments(other, found),
                }
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| texts_of_arguments(item, found)),
        _ => {}
    }
}
