use yiem::{AssistantContent, AssistantMessage, ChatModelExt, Content, Timestamp};

use super::*;

const TOOLS: &[&str] = &["getTime", "getWeather", "listTools"];

fn at() -> Timestamp {
    Timestamp::default()
}

fn asked(text: &str) -> History {
    let mut history = History::new();
    history.push(Message::user(text, at()));
    history
}

/// Lets the model answer until it says something, with this answer to every call.
fn conversation(
    history: &mut History,
    tools: &[&str],
    answer: impl Fn(&str, &ToolArguments) -> (String, bool),
) -> String {
    for _ in 0..10 {
        match reply(history, tools) {
            Reply::Text(text) => {
                history.push(Message::Assistant(AssistantMessage::new(
                    vec![AssistantContent::text(text.clone())],
                    at(),
                )));
                return text;
            }
            Reply::Calls(calls) => {
                let mut blocks = Vec::new();
                let mut results = Vec::new();
                for (index, (name, arguments)) in calls.into_iter().enumerate() {
                    let (text, is_error) = answer(&name, &arguments);
                    let mut call = ToolCall::new(
                        format!("call_{index}"),
                        name.clone(),
                        yiem::JsonObject::new(),
                    );
                    call.arguments = arguments;
                    results.push(ToolResultMessage {
                        tool_call_id: call.id.clone(),
                        tool_name: name,
                        content: vec![Content::text(text)],
                        is_error,
                        ..ToolResultMessage::default()
                    });
                    blocks.push(AssistantContent::ToolCall(call));
                }
                history.push(Message::Assistant(AssistantMessage::new(blocks, at())));
                for result in results {
                    history.push(Message::ToolResult(result));
                }
            }
        }
    }
    panic!("the model calls and calls");
}

fn sunny(_: &str, arguments: &ToolArguments) -> (String, bool) {
    match arguments
        .object()
        .and_then(|args| args.get("city")?.as_str())
    {
        Some(city) => (format!("Weather in {city}: Sunny, 22°C"), false),
        None => ("Missing required arguments: city".into(), true),
    }
}

#[test]
fn the_answer_is_that_of_t() {
    let mut history = asked("What's the weather in Tokyo?");
    assert_eq!(
        conversation(&mut history, TOOLS, sunny),
        "The weather in Tokyo is sunny, 22°C."
    );
}

#[test]
fn several_questions_are_called_at_once_and_answered_in_order() {
    let mut history = asked("Weather in Tokyo and Paris?");
    assert!(matches!(reply(&history, TOOLS), Reply::Calls(calls) if calls.len() == 2));
    assert_eq!(
        conversation(&mut history, TOOLS, sunny),
        "The weather in Tokyo is sunny, 22°C. The weather in Paris is sunny, 22°C."
    );
    history.push(Message::user("And Rome?", at()));
    assert_eq!(
        conversation(&mut history, TOOLS, sunny),
        "The weather in Rome is sunny, 22°C."
    );
}

#[test]
fn a_message_that_steers_is_answered_with_the_rest() {
    let mut history = asked("Weather in Tokyo?");
    let call = ToolCall::new("call_1", "getWeather", serde_json::json!({"city": "Tokyo"}));
    history.push(Message::Assistant(AssistantMessage::new(
        vec![AssistantContent::ToolCall(call)],
        at(),
    )));
    history.push(Message::ToolResult(ToolResultMessage {
        tool_call_id: "call_1".into(),
        tool_name: "getWeather".into(),
        content: vec![Content::text("Weather in Tokyo: Sunny, 22°C")],
        ..ToolResultMessage::default()
    }));
    history.push(Message::user("Oslo too", at()));
    assert_eq!(
        conversation(&mut history, TOOLS, sunny),
        "The weather in Tokyo is sunny, 22°C. The weather in Oslo is sunny, 22°C."
    );
}

#[test]
fn a_tool_that_is_not_offered_is_looked_for_and_then_called_all_the_same() {
    let history = asked("What's the weather in Tokyo?");
    let first = reply(&history, &["listTools"]);
    assert_eq!(
        first,
        Reply::Calls(vec![("listTools".into(), ToolArguments::default())])
    );
    let mut history = asked("call nothing_of_this {}");
    let text = conversation(&mut history, &["echo"], |_, _| {
        ("There is no tool nothing_of_this.".into(), true)
    });
    assert_eq!(
        text,
        "The tool nothing_of_this answered with an error: There is no tool nothing_of_this."
    );
}

#[test]
fn a_tool_is_found_behind_its_servers_name() {
    let history = asked("What's the weather in Tokyo?");
    let Reply::Calls(calls) = reply(&history, &["demo__getWeather"]) else {
        panic!("no call");
    };
    assert_eq!(calls[0].0, "demo__getWeather");
}

#[test]
fn what_is_missing_is_asked_for() {
    let mut history = asked("What's the weather?");
    assert_eq!(
        conversation(&mut history, TOOLS, sunny),
        "The tool getWeather answered with an error: Missing required arguments: city. Which city do you mean?"
    );
}

#[test]
fn what_it_can_do_is_told_when_it_does_not_understand() {
    for text in ["Write me a poem.", "", "\u{0}"] {
        assert!(
            conversation(&mut asked(text), TOOLS, sunny)
                .starts_with("I am the built-in demonstration")
        );
    }
    assert_eq!(
        conversation(&mut asked("what tools are there"), TOOLS, sunny),
        "I can call these tools: getTime, getWeather, listTools."
    );
}

#[tokio::test]
async fn the_stream_is_that_of_a_model() {
    let request = ChatRequest::new(asked("hello"));
    let message = DemoModel::new().complete(request).await.unwrap();
    assert!(
        message
            .text()
            .starts_with("Hello! I am the built-in demonstration")
    );
    assert_eq!(message.model, "demo");
    assert_eq!(message.stop_reason, StopReason::EndTurn);
}
