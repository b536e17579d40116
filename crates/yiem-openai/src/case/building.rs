//! Cases of the direction `request`: a conversation and settings in, the body that is sent out.
//!
//! Knows: how a case writes messages, blocks, tools, settings and flags. Does not know: how a
//! request is written; that is the encoder's part.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use yiem_core::{
    AssistantContent, AssistantMessage, ChatOptions, ChatRequest, Content, CustomMessage, Extra,
    JsonObject, Message, ModelInfo, StopReason, Timestamp, ToolArguments, ToolCall, ToolChoice,
    ToolDefinition, ToolResultMessage, UserMessage,
};

use super::{CaseError, object, on_one_line};
use crate::request::SYSTEM_KIND;
use crate::{
    CallIds, Compat, ContentStyle, EmptyContent, MaxTokensField, PROVIDER_DATA, ReasoningReplay,
    RequestEncoder,
};

#[derive(Debug, Deserialize)]
struct RequestCase {
    input: RequestInput,
    #[serde(default)]
    compat: Option<JsonObject>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RequestInput {
    system: Value,
    messages: Vec<Box<RawValue>>,
    tools: Option<Vec<JsonObject>>,
    settings: Option<JsonObject>,
}

/// A case of a request.
const EXAMPLE: &str =
    r#"{"direction": "request", "input": {"messages": [{"role": "user", "content": "hi"}]}}"#;

/// Builds a case's request and gives its body (`yiem wire encode`).
///
/// # Errors
/// The case cannot be read.
pub fn encode(json: &str) -> Result<String, CaseError> {
    let case: RequestCase = object(json, EXAMPLE)?;
    let settings = case.input.settings.unwrap_or_default();
    let mut info = ModelInfo::new(text_of(settings.get("model")));
    info.input.push(yiem_core::Modality::Audio);
    let compat = compat_of(&case.compat.unwrap_or_default());
    let encoder = RequestEncoder::new(&info, Arc::new(compat));
    let system: Vec<String> = match &case.input.system {
        Value::Array(list) => list.iter().map(prompt).collect(),
        Value::Null => Vec::new(),
        single => vec![prompt(single)],
    };
    let system: Vec<&str> = system.iter().map(String::as_str).collect();
    let tools: Vec<Arc<ToolDefinition>> = case
        .input
        .tools
        .unwrap_or_default()
        .iter()
        .map(|tool| Arc::new(tool_of(tool)))
        .collect();
    let request = ChatRequest {
        messages: case
            .input
            .messages
            .iter()
            .map(|message| message_of(message.get()))
            .filter_map(Result::transpose)
            .collect::<Result<_, _>>()?,
        tools: tools.into(),
        options: Arc::new(options_of(&settings)),
        ..ChatRequest::default()
    };
    let stream = settings
        .get("stream")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let encoded = encoder.encode_with(&system, &request, stream);
    String::from_utf8(encoded.body).map_err(CaseError::new)
}

/// Flags that are not set leave the style of the seeds (SP-011 to SP-016).
fn compat_of(flags: &JsonObject) -> Compat {
    let flag = |name: &str| flags.get(name).and_then(Value::as_bool);
    let word = |name: &str| flags.get(name).and_then(Value::as_str);
    let style = |name: &str, default: ContentStyle| match flag(name) {
        Some(true) => ContentStyle::String,
        Some(false) | None => default,
    };
    let content = style("content_as_string", ContentStyle::Blocks);
    Compat {
        content,
        assistant_content: style("assistant_content_as_string", content),
        tool_content: style("tool_result_as_string", content),
        empty_assistant_content: match word("empty_assistant_content") {
            Some("empty_string") => EmptyContent::EmptyString,
            Some("omit") => EmptyContent::Omit,
            _ => EmptyContent::Null,
        },
        tool_name_field: flag("tool_name_field").unwrap_or(false),
        tool_call_ids: match (
            word("tool_call_id_format"),
            flags.get("tool_call_id_max_length").and_then(Value::as_u64),
        ) {
            (Some("mistral9"), _) => CallIds::Mistral9,
            (_, Some(most)) => CallIds::MaxLength(usize::try_from(most).unwrap_or(usize::MAX)),
            _ => CallIds::Any,
        },
        assistant_after_tool_result: flag("assistant_after_tool_result").unwrap_or(false),
        merge_consecutive: flag("merge_consecutive").unwrap_or(false),
        single_system_message: flag("single_system_message").unwrap_or(false),
        developer_role: flag("developer_role").unwrap_or(false),
        reasoning_replay: match word("reasoning_replay") {
            Some("reasoning_content") => ReasoningReplay::ReasoningContent,
            Some("reasoning") => ReasoningReplay::Reasoning,
            Some("reasoning_details") => ReasoningReplay::ReasoningDetails,
            Some("think_tags") => ReasoningReplay::ThinkTags,
            Some("same_field") => ReasoningReplay::SameField,
            _ => ReasoningReplay::None,
        },
        max_tokens_field: match word("max_tokens_field") {
            Some("max_completion_tokens") => MaxTokensField::MaxCompletionTokens,
            _ => MaxTokensField::MaxTokens,
        },
        stream_usage: flag("stream_usage").unwrap_or(true),
        parallel_tool_calls: flag("parallel_tool_calls").unwrap_or(true),
        strict_tools: flag("strict_tools").unwrap_or(true),
        empty_tools_with_tool_history: flag("empty_tools_with_tool_history").unwrap_or(false),
        ..Compat::default()
    }
}

fn options_of(settings: &JsonObject) -> ChatOptions {
    ChatOptions {
        max_tokens: settings.get("max_output_tokens").and_then(Value::as_u64),
        temperature: settings.get("temperature").and_then(Value::as_f64),
        stop: match settings.get("stop") {
            Some(Value::String(word)) => vec![word.clone()],
            Some(Value::Array(words)) => words
                .iter()
                .filter_map(|word| word.as_str().map(str::to_owned))
                .collect(),
            _ => Vec::new(),
        },
        tool_choice: settings.get("tool_choice").and_then(|choice| match choice {
            Value::String(word) => match word.as_str() {
                "auto" => Some(ToolChoice::Auto),
                "none" => Some(ToolChoice::None),
                "required" | "any" => Some(ToolChoice::Required),
                name => Some(ToolChoice::Tool(name.to_owned())),
            },
            object => {
                let function = object.get("function").unwrap_or(object);
                let kind = object.get("type").and_then(Value::as_str);
                match (function.get("name"), kind.unwrap_or_default()) {
                    (Some(name), _) => Some(ToolChoice::Tool(name.as_str()?.to_owned())),
                    (None, "none") => Some(ToolChoice::None),
                    (None, "required" | "any") => Some(ToolChoice::Required),
                    (None, _) => Some(ToolChoice::Auto),
                }
            }
        }),
        parallel_tool_calls: settings.get("parallel_tool_calls").and_then(Value::as_bool),
        reasoning_effort: settings
            .get("reasoning_effort")
            .and_then(Value::as_str)
            .map(str::to_owned),
        ..ChatOptions::default()
    }
}

fn tool_of(tool: &JsonObject) -> ToolDefinition {
    ToolDefinition {
        name: text_of(tool.get("name")),
        description: text_of(tool.get("description")),
        input_schema: tool.get("schema").cloned().unwrap_or_default(),
        strict: tool.get("strict").and_then(Value::as_bool),
        ..ToolDefinition::default()
    }
}

fn text_of(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A system prompt: text, a block, or a list of blocks.
fn prompt(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(prompt).collect(),
        Value::Object(block) => block_text(block),
        _ => String::new(),
    }
}

/// The text of a block: as text, or as UTF-16 that may have lone surrogates.
fn block_text(block: &JsonObject) -> String {
    match block.get("utf16").and_then(Value::as_array) {
        Some(units) => {
            let units: Vec<u16> = units
                .iter()
                .filter_map(|unit| unit.as_u64().and_then(|unit| u16::try_from(unit).ok()))
                .collect();
            String::from_utf16_lossy(&units)
        }
        None => text_of(block.get("text")),
    }
}

fn blocks_of(message: &JsonObject) -> Vec<JsonObject> {
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks
            .iter()
            .filter_map(|block| match block {
                Value::Object(block) => Some(block.clone()),
                Value::String(text) => text_block(text),
                _ => None,
            })
            .collect(),
        Some(Value::String(text)) => text_block(text).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn text_block(text: &str) -> Option<JsonObject> {
    match serde_json::json!({"type": "text", "text": text}) {
        Value::Object(block) => Some(block),
        _ => None,
    }
}

/// A message of which only the arguments of its calls are looked at, as they stand: numbers in
/// them are kept to the last digit.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AsWritten<'a> {
    #[serde(borrow)]
    content: Vec<WrittenBlock<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenBlock<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

fn message_of(json: &str) -> Result<Option<Message>, CaseError> {
    let message: JsonObject = serde_json::from_str(json).map_err(CaseError::new)?;
    let mut blocks = blocks_of(&message);
    let written: AsWritten<'_> = serde_json::from_str(json).unwrap_or_default();
    if written.content.len() == blocks.len() {
        for (block, written) in blocks.iter_mut().zip(written.content) {
            if let Some(arguments) = written.arguments.filter(|json| json.get().starts_with('{')) {
                block.insert("arguments".to_owned(), on_one_line(arguments.get()).into());
            }
        }
    }
    Ok(message_made(&message, &blocks))
}

fn message_made(message: &JsonObject, blocks: &[JsonObject]) -> Option<Message> {
    let is = |block: &JsonObject, kind: &str| block.get("type").is_some_and(|tag| tag == kind);
    match message.get("role")?.as_str()? {
        "user" => Some(Message::User(UserMessage {
            content: blocks.iter().filter_map(content_of).collect(),
            ..UserMessage::default()
        })),
        "tool" | "toolResult" => Some(Message::ToolResult(ToolResultMessage {
            tool_call_id: text_of(message.get("tool_call_id")).into(),
            tool_name: text_of(message.get("tool_name")),
            content: blocks.iter().filter_map(content_of).collect(),
            is_error: message
                .get("is_error")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            ..ToolResultMessage::default()
        })),
        "assistant" => {
            let content: Vec<AssistantContent> = blocks
                .iter()
                .filter_map(|block| {
                    if is(block, "tool_call") {
                        return Some(AssistantContent::ToolCall(call_of(block)));
                    }
                    if is(block, "reasoning") {
                        return Some(AssistantContent::reasoning(block_text(block)));
                    }
                    match content_of(block)? {
                        Content::Text(text) => Some(AssistantContent::Text(text)),
                        Content::Image(image) => Some(AssistantContent::Image(image)),
                        _ => None,
                    }
                })
                .collect();
            let mut made = AssistantMessage::new(content, Timestamp::default());
            made.model = text_of(message.get("model"));
            if let Some(Value::String(stop)) =
                message.get("stop").or_else(|| message.get("stop_reason"))
            {
                made.stop_reason = StopReason::from(stop.as_str());
            }
            keep_in_parts(&mut made, message.get("keep"));
            Some(Message::Assistant(made))
        }
        "system" | "developer" => {
            let text: String = blocks.iter().map(block_text).collect();
            Some(Message::Custom(CustomMessage {
                kind: SYSTEM_KIND.to_owned(),
                data: Value::from(text),
                ..CustomMessage::default()
            }))
        }
        _ => None,
    }
}

fn content_of(block: &JsonObject) -> Option<Content> {
    match block.get("type").and_then(Value::as_str).unwrap_or("text") {
        "text" => Some(Content::text(block_text(block))),
        "image" => {
            let mime = block.get("mime").or_else(|| block.get("mime_type"));
            Some(Content::image(text_of(block.get("data")), text_of(mime)))
        }
        _ => None,
    }
}

fn call_of(block: &JsonObject) -> ToolCall {
    let raw = block.get("arguments_raw").and_then(Value::as_str);
    let arguments = match (block.get("arguments"), raw) {
        (_, Some(raw)) if block.get("arguments_invalid") == Some(&Value::Bool(true)) => {
            ToolArguments::unreadable(raw, "the arguments could not be read")
        }
        (Some(Value::Object(object)), _) => ToolArguments::from(object.clone()),
        (Some(Value::String(text)), _) => ToolArguments::read(text.as_str()),
        (_, Some(raw)) => ToolArguments::read(raw),
        _ => ToolArguments::default(),
    };
    let mut call = ToolCall {
        id: text_of(block.get("id")).into(),
        name: text_of(block.get("name")),
        arguments,
        extra: Extra::NONE,
    };
    keep_into(&mut call.extra, block.get("keep"));
    call
}

/// The call that an item of a list of `keep` belongs to: `tool_calls/<n>`.
fn call_place(item: &Value) -> Option<usize> {
    let place = item.get("at")?.as_str()?;
    place.strip_prefix("tool_calls/")?.parse().ok()
}

/// `keep` of a message; the list that `decode` reports also holds what belongs to its calls.
fn keep_in_parts(message: &mut AssistantMessage, keep: Option<&Value>) {
    let Some(Value::Array(list)) = keep else {
        return keep_into(&mut message.extra, keep);
    };
    let of = |place: Option<usize>| -> Value {
        let items = list.iter().filter(|item| call_place(item) == place);
        items.cloned().collect()
    };
    keep_into(&mut message.extra, Some(&of(None)));
    let calls = message.content.iter_mut().filter_map(|block| match block {
        AssistantContent::ToolCall(call) => Some(call),
        _ => None,
    });
    for (at, call) in calls.enumerate() {
        keep_into(&mut call.extra, Some(&of(Some(at))));
    }
}

/// `keep` as an object of fields, or as the list that `decode` reports.
fn keep_into(extra: &mut Extra, keep: Option<&Value>) {
    let data: JsonObject = match keep {
        Some(Value::Object(fields))
            if fields.contains_key("field") && fields.contains_key("value") =>
        {
            [(text_of(fields.get("field")), fields["value"].clone())]
                .into_iter()
                .collect()
        }
        Some(Value::Object(fields)) => fields.clone(),
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(|item| {
                Some((
                    item.get("field")?.as_str()?.to_owned(),
                    item.get("value")?.clone(),
                ))
            })
            .collect(),
        _ => return,
    };
    if !data.is_empty() {
        extra.insert(PROVIDER_DATA, Value::Object(data));
    }
}
