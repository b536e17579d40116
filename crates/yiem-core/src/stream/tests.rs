use super::*;
use serde_json::json;

fn made_of(events: impl IntoIterator<Item = ChatEvent>) -> AssistantMessage {
    let mut assembler = MessageAssembler::new();
    for event in events {
        if let Some(message) = assembler.push(event) {
            return message;
        }
    }
    assembler.broken_off(StopReason::Error, Some("cut".into()))
}

fn finished(stop: StopReason) -> ChatEvent {
    ChatEvent::Finished {
        stop,
        usage: Usage::UNKNOWN,
    }
}

fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "t", json!({"a":1}).as_object().unwrap().clone())
}

#[test]
fn pieces_make_blocks_in_the_order_in_which_they_began() {
    let m = made_of([
        ChatEvent::Started(Box::new(ReplyInfo {
            model: "m".into(),
            ..ReplyInfo::default()
        })),
        ChatEvent::Reasoning {
            text: "h".into(),
            field: Some("reasoning_content"),
        },
        ChatEvent::Reasoning {
            text: "m".into(),
            field: None,
        },
        ChatEvent::Text("a".into()),
        ChatEvent::ToolCallStarted {
            index: 1,
            id: "".into(),
            name: "t".into(),
        },
        ChatEvent::ToolCallStarted {
            index: 0,
            id: "".into(),
            name: "t".into(),
        },
        ChatEvent::ToolCallArguments {
            index: 1,
            delta: "{".into(),
        },
        ChatEvent::ToolCallEnded {
            index: 0,
            call: Box::new(call("zero")),
        },
        ChatEvent::ToolCallEnded {
            index: 1,
            call: Box::new(call("one")),
        },
        ChatEvent::Text("b".into()),
        finished(StopReason::ToolCalls),
    ]);
    let ids: Vec<&str> = m.tool_calls().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["one", "zero"]);
    assert_eq!(
        (m.text(), m.reasoning(), m.model.as_str()),
        ("ab".into(), "hm".into(), "m")
    );
    let AssistantContent::Reasoning(r) = &m.content[0] else {
        panic!("reasoning came first")
    };
    assert_eq!(r.field.as_deref(), Some("reasoning_content"));
}

#[test]
fn what_broke_off_keeps_its_text_and_no_call_that_could_be_run() {
    let m = made_of([
        ChatEvent::Text("I will".into()),
        ChatEvent::ToolCallStarted {
            index: 0,
            id: "c".into(),
            name: "rm".into(),
        },
        ChatEvent::ToolCallArguments {
            index: 0,
            delta: "{}".into(),
        },
    ]);
    assert_eq!(m.text(), "I will");
    let call = m.tool_calls().next().unwrap();
    assert!(call.arguments().is_none());
    assert_eq!(call.arguments.raw(), "{}");
    assert!(m.is_broken());
}

#[test]
fn a_whole_message_takes_the_place_of_the_pieces() {
    let whole = AssistantMessage::new(vec![AssistantContent::text("right")], Timestamp::default());
    let m = made_of([
        ChatEvent::Text("wrong".into()),
        ChatEvent::Message(Box::new(whole.clone())),
    ]);
    assert_eq!(m, whole);
}

#[test]
fn pieces_after_the_end_and_empty_pieces_change_nothing() {
    let mut assembler = MessageAssembler::new();
    assembler.push(ChatEvent::Text(String::new()));
    assert!(assembler.is_empty());
    assert!(assembler.push(finished(StopReason::EndTurn)).is_some());
    assert!(assembler.push(ChatEvent::Text("late".into())).is_none());
    assert!(assembler.is_empty());
    assert!(assembler.push(finished(StopReason::EndTurn)).is_none());
}

#[test]
fn the_partial_message_can_be_looked_at() {
    let mut assembler = MessageAssembler::new();
    assembler.push(ChatEvent::Text("a".into()));
    assembler.push(ChatEvent::ToolCallStarted {
        index: 0,
        id: "c".into(),
        name: "t".into(),
    });
    assembler.push(ChatEvent::ToolCallArguments {
        index: 0,
        delta: "{\"x".into(),
    });
    let seen: Vec<_> = assembler.partial().collect();
    assert!(matches!(seen[0], PartialBlock::Block(AssistantContent::Text(t)) if t.text == "a"));
    assert!(matches!(seen[1], PartialBlock::ToolCall(c) if c.arguments == "{\"x"));
}
