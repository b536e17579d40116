//! Whatever the conversation, what is written is what a strict server takes (O-2).

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;
use yiem_core::{
    AssistantContent, AssistantMessage, ChatRequest, Content, CustomMessage, History, JsonObject,
    Memo, Message, Modality, ModelInfo, StopReason, Timestamp, ToolArguments, ToolCall,
    ToolDefinition, ToolResultMessage, UserMessage,
};
use yiem_openai::{
    CallIds, Compat, ContentStyle, EmptyContent, ForeignReasoning, Preset, ReasoningReplay,
    RequestEncoder,
};

use crate::strict::refusal;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(" \n".to_owned()),
        Just("Hi".to_owned()),
        Just("a\u{fffd}\"\\\u{1}\u{2028}é🦀".to_owned()),
    ]
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        4 => text().prop_map(Content::text),
        1 => Just(Content::image("AAAA", "image/png")),
        1 => Just(Content::image("", "")),
    ]
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("call_1".to_owned()),
        Just("call_2".to_owned()),
        Just("abcDEF123".to_owned()),
        Just("functions.x:0".to_owned()),
        Just("call_".to_owned() + &"x".repeat(60)),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("add".to_owned()),
        Just("a.b c".to_owned()),
        Just("ü".repeat(70)),
    ]
}

fn call() -> impl Strategy<Value = AssistantContent> {
    let arguments = prop_oneof![
        Just(ToolArguments::default()),
        Just(ToolArguments::read("{\"a\" : 1}")),
        Just(ToolArguments::unreadable("{\"a\":", "it was cut")),
        Just(ToolArguments::Object {
            value: Arc::new(JsonObject::new()),
            raw: Some("no object".into()),
        }),
    ];
    (id(), name(), arguments).prop_map(|(id, name, arguments)| {
        let mut call = ToolCall::new(id, name, JsonObject::new());
        call.arguments = arguments;
        AssistantContent::ToolCall(call)
    })
}

fn block() -> impl Strategy<Value = AssistantContent> {
    prop_oneof![
        2 => text().prop_map(AssistantContent::text),
        1 => text().prop_map(AssistantContent::reasoning),
        3 => call(),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let user = prop::collection::vec(content(), 0..3).prop_map(|content| {
        Message::User(UserMessage {
            content,
            ..UserMessage::default()
        })
    });
    let assistant = (prop::collection::vec(block(), 0..4), 0..8, any::<bool>()).prop_map(
        |(content, end, foreign)| {
            let mut message = AssistantMessage::new(content, Timestamp::default());
            match end {
                0 => message.stop_reason = StopReason::Error,
                1 => message.stop_reason = StopReason::Aborted,
                _ => {}
            }
            if foreign {
                message.model = "another".to_owned();
            }
            Message::Assistant(message)
        },
    );
    let result = (id(), prop::collection::vec(content(), 0..3), any::<bool>()).prop_map(
        |(id, content, is_error)| {
            Message::ToolResult(ToolResultMessage {
                tool_call_id: id.into(),
                content,
                is_error,
                ..ToolResultMessage::default()
            })
        },
    );
    let custom = Just(Message::Custom(CustomMessage {
        kind: "note".into(),
        ..CustomMessage::default()
    }));
    prop_oneof![3 => user, 4 => assistant, 5 => result, 1 => custom]
}

fn compat() -> impl Strategy<Value = Compat> {
    let preset = prop::sample::select(Preset::ALL.to_vec());
    let replay = prop::sample::select(vec![
        ReasoningReplay::None,
        ReasoningReplay::SameField,
        ReasoningReplay::ReasoningContent,
        ReasoningReplay::ReasoningDetails,
        ReasoningReplay::ThinkTags,
    ]);
    (preset, any::<[bool; 8]>(), replay).prop_map(|((_, preset), flags, replay)| {
        let mut compat = preset.compat();
        if flags[0] {
            compat.content = ContentStyle::Blocks;
            compat.assistant_content = ContentStyle::Blocks;
            compat.tool_content = ContentStyle::Blocks;
        }
        compat.merge_consecutive = flags[1];
        compat.assistant_after_tool_result = flags[2];
        compat.single_system_message = flags[3];
        if flags[4] {
            compat.empty_assistant_content = EmptyContent::Omit;
        }
        if flags[5] {
            compat.tool_call_ids = CallIds::MaxLength(12);
        }
        if flags[6] {
            compat.foreign_reasoning = ForeignReasoning::AsText;
        }
        compat.reasoning_required |= flags[7];
        compat.reasoning_replay = replay;
        compat
    })
}

fn request(messages: &[Message], memo: &Memo) -> ChatRequest {
    let tool = |name: &str| {
        Arc::new(ToolDefinition {
            name: name.to_owned(),
            ..ToolDefinition::default()
        })
    };
    ChatRequest {
        system: Some("S".into()),
        messages: messages.iter().cloned().collect(),
        tools: vec![tool("add"), tool("a.b c")].into(),
        memo: memo.clone(),
        ..ChatRequest::default()
    }
}

fn encoder(compat: &Compat, images: bool) -> RequestEncoder {
    let mut info = ModelInfo::new("m");
    if !images {
        info.input = vec![Modality::Text];
    }
    RequestEncoder::new(&info, Arc::new(compat.clone()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_conversation_is_written_acceptably(
        messages in prop::collection::vec(message(), 0..14),
        compat in compat(),
        images in any::<bool>(),
    ) {
        let encoder = encoder(&compat, images);
        let body = encoder.encode(&request(&messages, &Memo::new()), true).body;
        let again = encoder.encode(&request(&messages, &Memo::new()), true).body;
        prop_assert_eq!(&body, &again, "the same request gives the same bytes");
        let value: Value = serde_json::from_slice(&body).expect("JSON in UTF-8");
        let refusal = refusal(&value, &compat);
        prop_assert!(refusal.is_none(), "{}: {value:#}", refusal.unwrap_or_default());
    }

    /// Remembered bytes are the bytes that would be written: for a history that grows, forks,
    /// shrinks, and for a window that slides over it.
    #[test]
    fn remembered_bytes_are_those_that_would_be_written(
        messages in prop::collection::vec(message(), 1..20),
        windows in prop::collection::vec((0usize..20, 0usize..20), 1..8),
        compat in compat(),
    ) {
        let encoder = encoder(&compat, true);
        let shared: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
        let memo = Memo::new();
        for (from, to) in windows {
            let to = to.min(shared.len());
            let window: History = shared[from.min(to)..to].iter().cloned().collect();
            let asked = |memo: &Memo| ChatRequest {
                messages: window.clone(),
                memo: memo.clone(),
                ..ChatRequest::default()
            };
            let remembered = encoder.encode(&asked(&memo), false).body;
            let fresh = encoder.encode(&asked(&Memo::new()), false).body;
            prop_assert_eq!(
                String::from_utf8_lossy(&remembered),
                String::from_utf8_lossy(&fresh)
            );
        }
    }

    #[test]
    fn a_history_that_grows_is_written_as_it_would_be_whole(
        messages in prop::collection::vec(message(), 1..16),
        compat in compat(),
    ) {
        let encoder = encoder(&compat, true);
        let memo = Memo::new();
        let mut history = History::new();
        for message in messages {
            history.push(message);
            let asked = |memo: &Memo| ChatRequest {
                system: Some("S".into()),
                messages: history.clone(),
                memo: memo.clone(),
                ..ChatRequest::default()
            };
            let remembered = encoder.encode(&asked(&memo), true).body;
            let fresh = encoder.encode(&asked(&Memo::new()), true).body;
            prop_assert_eq!(
                String::from_utf8_lossy(&remembered),
                String::from_utf8_lossy(&fresh)
            );
        }
    }
}
