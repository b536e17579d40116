//! The demonstration's model: it answers from word lists, and it is no LLM.
//!
//! Knows: which calls a conversation asks for, which are done, and how results are told.
//! Does not know: tools beyond their names and texts, the network, time.

use serde_json::json;
use yiem::{
    ChatEvent, ChatModel, ChatRequest, ChatStream, History, Message, ModelInfo, ReplyInfo,
    StopReason, ToolArguments, ToolCall, ToolResultMessage, Usage,
};

use super::question::{Talk, Wish};

/// What it says when it does not understand.
const ABILITIES: &str = "I am the built-in demonstration of Yiem, not a language model. I can tell the weather \
     (\"What's the weather in Tokyo?\"), the time (\"What time is it in New York?\"), several of these at once, \
     which tools there are (\"What tools do you have?\"), and I can call any tool for you \
     (`call NAME {\"argument\": \"value\"}`). For more than that, give me a real model with --base-url and \
     --model, or with OPENAI_API_KEY.";

/// The model of the demonstration.
#[derive(Debug)]
pub(crate) struct DemoModel(ModelInfo);

impl DemoModel {
    pub(crate) fn new() -> Self {
        Self(ModelInfo {
            name: "Yiem's demonstration".into(),
            provider: "yiem".into(),
            ..ModelInfo::new("demo")
        })
    }
}

impl ChatModel for DemoModel {
    fn info(&self) -> &ModelInfo {
        &self.0
    }

    fn stream(&self, request: ChatRequest) -> ChatStream {
        let tools: Vec<&str> = request
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        let started = ChatEvent::Started(Box::new(ReplyInfo {
            api: "demo".into(),
            provider: self.0.provider.clone(),
            model: self.0.id.clone(),
            ..ReplyInfo::default()
        }));
        let mut events = vec![started];
        events.extend(match reply(&request.messages, &tools) {
            Reply::Calls(calls) => of_calls(calls, &request.messages),
            Reply::Text(text) => of_text(&text),
        });
        ChatStream::from_events(events.into_iter().map(Ok))
    }
}

#[derive(Debug, PartialEq)]
enum Reply {
    Calls(Vec<(String, ToolArguments)>),
    Text(String),
}

fn of_calls(calls: Vec<(String, ToolArguments)>, messages: &History) -> Vec<ChatEvent> {
    let made = messages
        .iter()
        .filter_map(|m| m.as_assistant())
        .map(|m| m.tool_calls().count());
    let first = made.sum::<usize>() + 1;
    let mut events = Vec::new();
    for (index, (name, arguments)) in calls.into_iter().enumerate() {
        let mut call = ToolCall::new(
            format!("call_{}", first + index),
            name,
            yiem::JsonObject::new(),
        );
        call.arguments = arguments;
        events.push(ChatEvent::ToolCallStarted {
            index,
            id: call.id.clone(),
            name: call.name.clone(),
        });
        events.push(ChatEvent::ToolCallEnded {
            index,
            call: Box::new(call),
        });
    }
    events.push(ChatEvent::Finished {
        stop: StopReason::ToolCalls,
        usage: Usage::UNKNOWN,
    });
    events
}

/// Word by word, so that whoever shows it can show that it streams.
fn of_text(text: &str) -> Vec<ChatEvent> {
    let mut events: Vec<ChatEvent> = text
        .split_inclusive(' ')
        .map(|word| ChatEvent::Text(word.to_owned()))
        .collect();
    events.push(ChatEvent::Finished {
        stop: StopReason::EndTurn,
        usage: Usage::UNKNOWN,
    });
    events
}

fn reply(messages: &History, tools: &[&str]) -> Reply {
    let exchange = Exchange::last_of(messages, tools);
    let mut open = Vec::new();
    let mut unknown = Vec::new();
    for wish in &exchange.wishes {
        let Wish::Call { name, arguments } = wish else {
            continue;
        };
        let offered = offered_as(name, tools);
        let said = offered.clone().unwrap_or_else(|| name.clone());
        if exchange.has_made(&said, arguments) {
            continue;
        }
        match offered {
            Some(name) => open.push((name, arguments.clone())),
            None => unknown.push((said, arguments.clone())),
        }
    }
    if !unknown.is_empty()
        && tools.contains(&"listTools")
        && !exchange.has_made("listTools", &ToolArguments::default())
    {
        // Tools may be found only when they are asked for.
        open.push(("listTools".into(), ToolArguments::default()));
    } else {
        // Called all the same: what becomes of it is worth seeing.
        open.append(&mut unknown);
    }
    if !open.is_empty() {
        return Reply::Calls(open);
    }
    Reply::Text(exchange.answer(tools))
}

/// The name that a tool is offered by, which may have its server's name before it.
fn offered_as(name: &str, tools: &[&str]) -> Option<String> {
    let suffix = format!("__{name}");
    let exact = tools.iter().find(|tool| **tool == name);
    exact
        .or_else(|| tools.iter().find(|tool| tool.ends_with(&suffix)))
        .map(|tool| (*tool).to_owned())
}

/// What was asked since the last answer, and what was done about it.
struct Exchange<'a> {
    wishes: Vec<Wish>,
    calls: Vec<&'a ToolCall>,
    results: Vec<&'a ToolResultMessage>,
}

impl<'a> Exchange<'a> {
    fn last_of(messages: &'a History, tools: &[&str]) -> Self {
        let mut talk = Talk::default();
        let mut exchange = Self {
            wishes: Vec::new(),
            calls: Vec::new(),
            results: Vec::new(),
        };
        let mut answered = false;
        for message in messages.iter() {
            match &**message {
                Message::User(user) => {
                    if std::mem::take(&mut answered) {
                        exchange.wishes.clear();
                        exchange.calls.clear();
                        exchange.results.clear();
                    }
                    for wish in talk.hear(&user.text(), tools) {
                        if !exchange.wishes.contains(&wish) {
                            exchange.wishes.push(wish);
                        }
                    }
                }
                Message::Assistant(reply) if reply.has_tool_calls() => {
                    exchange.calls.extend(reply.tool_calls());
                }
                Message::Assistant(_) => answered = true,
                Message::ToolResult(result) => exchange.results.push(result),
                Message::Custom(_) => {}
            }
        }
        exchange
    }

    fn has_made(&self, name: &str, arguments: &ToolArguments) -> bool {
        self.calls.iter().any(|call| {
            let same = match (call.arguments.object(), arguments.object()) {
                (Some(made), Some(meant)) => made == meant,
                (made, meant) => made.is_none() && meant.is_none(),
            };
            call.name == name && same
        })
    }

    fn answer(&self, tools: &[&str]) -> String {
        let asked_for = self
            .wishes
            .iter()
            .any(|w| matches!(w, Wish::Call { name, .. } if name == "listTools"));
        let mut told: Vec<String> = self
            .results
            .iter()
            .filter(|result| result.tool_name != "listTools" || asked_for)
            .map(|result| tell(result))
            .collect();
        for wish in &self.wishes {
            match wish {
                Wish::Call { .. } => {}
                Wish::Tools => told.push(format!("I can call these tools: {}.", tools.join(", "))),
                Wish::Greeting => told.push(format!("Hello! {ABILITIES}")),
                Wish::Thanks => told.push("You are welcome.".into()),
            }
        }
        if told.is_empty() {
            told.push(ABILITIES.into());
        }
        let apart = if told.iter().any(|text| text.contains('\n')) {
            "\n\n"
        } else {
            " "
        };
        told.join(apart)
    }
}

/// A result as a sentence: `Weather in Tokyo: Sunny, 22°C` is told as in T.
fn tell(result: &ToolResultMessage) -> String {
    let text = result.text();
    let text = text.trim();
    let name = &result.tool_name;
    if result.is_error {
        let hint = match name.rsplit("__").next() {
            Some("getWeather" | "getTime") if text.starts_with("Missing required") => {
                " Which city do you mean?"
            }
            _ => "",
        };
        return format!(
            "The tool {name} answered with an error: {text}{}{hint}",
            full_stop(text)
        );
    }
    let sentence = |topic: &str| {
        let (place, what) = text
            .strip_prefix(topic)?
            .strip_prefix(" in ")?
            .split_once(": ")?;
        let topic = topic.to_lowercase();
        let what = what.replacen("Sunny", "sunny", 1);
        Some(format!(
            "The {topic} in {place} is {what}{}",
            full_stop(&what)
        ))
    };
    if let Some(sentence) = sentence("Weather").or_else(|| sentence("Time")) {
        return sentence;
    }
    if text.is_empty() {
        let kinds: Vec<_> = result
            .content
            .iter()
            .map(|block| json!(block)["type"].clone())
            .collect();
        return match kinds.len() {
            0 => format!("The tool {name} answered nothing."),
            n => format!("The tool {name} answered with {n} block(s) that are no text."),
        };
    }
    if text.contains('\n') {
        return format!("The tool {name} answered:\n\n{text}");
    }
    format!("The tool {name} answered: {text}")
}

fn full_stop(text: &str) -> &'static str {
    if text.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    }
}

#[cfg(test)]
mod tests;
