//! Answers of a wanted shape (R-13).
//!
//! Knows: how the model is told of the shape, and how an answer is held against it. Does not
//! know: how often it is asked again; the run does.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::{Value, json};
use yiem_core::{
    ChatOptions, ResponseFormat, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput,
    ValidArgs,
};
use yiem_tools::{ArgsValidator, InputSchema, RegisteredTool, SchemaLimits, ToolRegistry};

use crate::run::{Answer, AnswerCheck};

/// How the model is told of the wanted shape (R-13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutputMode {
    /// By a tool `final_answer` that it calls with the answer. Works with every model that calls
    /// tools, and beside other tools.
    #[default]
    Tool,
    /// By the request's response format, for servers that hold the model to a JSON schema.
    ResponseFormat,
}

/// The tool by which a final answer is given.
pub(crate) const FINAL_ANSWER: &str = "final_answer";
/// Where an answer stands whose shape is not an object.
const WRAPPER: &str = "answer";

/// A wanted shape, compiled.
pub(crate) struct OutputSpec {
    schema: Value,
    wrapped: bool,
    validator: ArgsValidator,
    mode: OutputMode,
    tool: Option<Arc<RegisteredTool>>,
    given: Arc<Mutex<Option<Value>>>,
}

impl OutputSpec {
    /// Of a JSON Schema.
    pub(crate) fn new(schema: Value, mode: OutputMode) -> Result<Self, String> {
        let wrapped = schema.get("type").and_then(Value::as_str) != Some("object");
        let schema = if wrapped { wrap(schema) } else { schema };
        let compiled = InputSchema::compile(&schema, &SchemaLimits::own())
            .map_err(|error| format!("the schema of the wanted answer cannot be used: {error}"))?;
        let given = Arc::new(Mutex::new(None));
        let tool = match mode {
            OutputMode::ResponseFormat => None,
            OutputMode::Tool => {
                let answer = FinalAnswer {
                    definition: Arc::new(ToolDefinition {
                        name: FINAL_ANSWER.to_owned(),
                        label: "Final answer".to_owned(),
                        description: "Gives the final answer. Call this once, when you are done; \
                                      the arguments are the answer."
                            .to_owned(),
                        input_schema: schema.clone(),
                        parallel: Some(true),
                        ..ToolDefinition::default()
                    }),
                    given: Arc::clone(&given),
                };
                let registered = ToolRegistry::new()
                    .register(answer)
                    .map_err(|e| e.to_string())?;
                Some(registered)
            }
        };
        let validator = ArgsValidator::from_schema(compiled);
        Ok(Self {
            schema,
            wrapped,
            validator,
            mode,
            tool,
            given,
        })
    }

    pub(crate) fn tool(&self) -> Option<&Arc<RegisteredTool>> {
        self.tool.as_ref()
    }

    pub(crate) fn tool_name(&self) -> Option<Arc<str>> {
        self.tool.as_ref().map(|t| t.name().into())
    }

    /// The options of a request, with the response format if it is by that.
    pub(crate) fn options(&self, options: &Arc<ChatOptions>) -> Arc<ChatOptions> {
        match self.mode {
            OutputMode::Tool => Arc::clone(options),
            OutputMode::ResponseFormat => Arc::new(ChatOptions {
                response_format: Some(ResponseFormat::JsonSchema {
                    name: FINAL_ANSWER.to_owned(),
                    schema: self.schema.clone(),
                    strict: false,
                }),
                ..ChatOptions::clone(options)
            }),
        }
    }

    /// Holds the answer against the shape: what the tool was given in the last turn; else the
    /// final text; where that does not fit, what the tool was given earlier.
    pub(crate) fn check(&self, text: &str, answer: &Answer) -> AnswerCheck {
        let given = match answer {
            Answer::Given | Answer::Earlier => {
                let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
                given.clone().map(|value| self.unwrapped(value))
            }
            Answer::None | Answer::Refused(_) => None,
        };
        match given {
            Some(value) if *answer == Answer::Given => AnswerCheck::Good(value),
            given => match (self.check_text(text), given) {
                (AnswerCheck::Wrong(_), Some(value)) => AnswerCheck::Good(value),
                (check, _) => check,
            },
        }
    }

    fn check_text(&self, text: &str) -> AnswerCheck {
        let how = match self.mode {
            OutputMode::Tool => format!("Call the tool {FINAL_ANSWER} with the answer."),
            OutputMode::ResponseFormat => {
                format!(
                    "Answer with JSON alone that fits this schema: {}",
                    self.schema
                )
            }
        };
        let Some(value) = json_in(text) else {
            return AnswerCheck::Wrong(format!("The answer is no JSON. {how}"));
        };
        let object = match value {
            Value::Object(object) if !self.wrapped || object.contains_key(WRAPPER) => object,
            other if self.wrapped => [(WRAPPER.to_owned(), other)].into_iter().collect(),
            _ => return AnswerCheck::Wrong(format!("The answer is no JSON object. {how}")),
        };
        match self
            .validator
            .check_required(&object)
            .and_then(|()| self.validator.check_schema(object))
        {
            Ok(valid) => AnswerCheck::Good(self.unwrapped(Value::Object(valid.into_object()))),
            Err(error) => AnswerCheck::Wrong(format!("{error}\n{how}")),
        }
    }

    fn unwrapped(&self, value: Value) -> Value {
        match value {
            Value::Object(mut object) if self.wrapped => {
                object.shift_remove(WRAPPER).unwrap_or_default()
            }
            other => other,
        }
    }
}

/// A shape that is not an object, inside one. Definitions move to the root, where they are
/// referred to.
fn wrap(mut schema: Value) -> Value {
    let mut whole = json!({"type": "object", "required": [WRAPPER]});
    if let Some(inner) = schema.as_object_mut() {
        inner.shift_remove("$schema");
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = inner.shift_remove(key) {
                whole[key] = definitions;
            }
        }
    }
    whole["properties"] = json!({ WRAPPER: schema });
    whole
}

/// The JSON of a text: the whole of it, or what stands in its first code fence, or from its
/// first bracket to its last.
fn json_in(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let fenced = text
        .split("```")
        .nth(1)
        .map(|t| t.strip_prefix("json").unwrap_or(t).trim());
    if let Some(Ok(value)) = fenced.map(serde_json::from_str) {
        return Some(value);
    }
    let from = text.find(['{', '['])?;
    let to = text.rfind(['}', ']'])?;
    serde_json::from_str(text.get(from..=to)?).ok()
}

struct FinalAnswer {
    definition: Arc<ToolDefinition>,
    given: Arc<Mutex<Option<Value>>>,
}

#[async_trait]
impl Tool for FinalAnswer {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    async fn call(&self, args: ValidArgs, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let answer = Value::Object(args.into_object());
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer.clone());
        Ok(ToolOutput::text("The answer was given.")
            .with_details(answer)
            .terminating())
    }
}

#[cfg(test)]
mod tests;
