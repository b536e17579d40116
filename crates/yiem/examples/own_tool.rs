//! A tool of one's own type: with state, a check across two arguments in place of the required
//! check, and a result that is more than text.
//!
//! `cargo run -p yiem --example own_tool`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

mod offline;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use yiem::prelude::*;
use yiem::{ArgsCheck, JsonObject, ToolDefinition, ValidArgs};

/// A notebook that the model writes to and reads from.
struct Notes {
    definition: Arc<ToolDefinition>,
    notes: Mutex<BTreeMap<String, String>>,
}

impl Notes {
    fn new() -> Self {
        Self {
            definition: Arc::new(ToolDefinition {
                name: "notes".to_owned(),
                label: "Notes".to_owned(),
                description: "Writes a note, or reads one.".to_owned(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "write": { "type": "string", "description": "Text to write under the name" },
                        "name": { "type": "string", "default": "scratch" },
                        "read": { "type": "string", "description": "Name of the note to read" }
                    }
                }),
                parallel: Some(false),
                ..ToolDefinition::default()
            }),
            notes: Mutex::default(),
        }
    }
}

#[async_trait]
impl Tool for Notes {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    async fn validate_required_args(&self, args: &JsonObject) -> ArgsCheck {
        match (args.contains_key("write"), args.contains_key("read")) {
            (true, true) | (false, false) => {
                ArgsCheck::Reject("Give either 'write' or 'read', and not both.".to_owned())
            }
            _ => ArgsCheck::Accept,
        }
    }

    async fn call(&self, args: ValidArgs, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let mut notes = self
            .notes
            .lock()
            .map_err(|_| ToolError::new("the notebook is torn"))?;
        let text = |name: &str| args.get(name).and_then(Value::as_str);
        if let Some(note) = text("write") {
            notes.insert(
                text("name").unwrap_or("scratch").to_owned(),
                note.to_owned(),
            );
            return Ok(ToolOutput::text("written").with_details(json!({ "notes": notes.len() })));
        }
        let name = text("read").unwrap_or_default();
        match notes.get(name) {
            Some(note) => Ok(ToolOutput::text(note.as_str())),
            None => {
                let names: Vec<&str> = notes.keys().map(String::as_str).collect();
                Err(ToolError::new(format!(
                    "no note {name:?}; there are {names:?}"
                )))
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let model = offline::calling(vec![
        ("notes", json!({ "write": "buy bread", "name": "shopping" })),
        ("notes", json!({ "read": "shopping" })),
        ("notes", json!({ "read": "secrets" })),
        ("notes", json!({})),
    ]);
    let agent = Agent::builder(model).tool(Notes::new()).build()?;
    println!("{}", agent.prompt("Take notes").await?.ok()?);
    Ok(())
}
