use super::*;
use crate::content::{
    AudioContent, ImageContent, OtherContent, ReasoningContent, ResourceBody, ResourceContent,
    TextContent,
};
use crate::tool_call::ToolArguments;
use proptest::prelude::*;
use serde_json::json;

fn read(value: Value) -> Message {
    serde_json::from_value(value).unwrap()
}

fn assistant(value: Value) -> AssistantMessage {
    match read(value) {
        Message::Assistant(m) => m,
        other => panic!("expected an assistant message, found {other:?}"),
    }
}

#[test]
fn a_user_message_has_the_fields_of_sp_001() {
    let m = Message::user("hi", Timestamp::from_millis(1));
    assert_eq!(
        serde_json::to_value(&m).unwrap(),
        json!({"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":"1970-01-01T00:00:00.001Z"})
    );
}

#[test]
fn an_assistant_message_has_the_fields_and_defaults_of_sp_002() {
    let m = AssistantMessage::new(
        vec![AssistantContent::text("hi")],
        Timestamp::from_millis(0),
    );
    assert_eq!(
        serde_json::to_value(&m).unwrap(),
        json!({"role":"assistant","content":[{"type":"text","text":"hi"}],"api":"","provider":"",
               "model":"","usage":{},"stopReason":"end_turn","timestamp":"1970-01-01T00:00:00.000Z"})
    );
}

#[test]
fn a_message_with_calls_has_the_views_of_sp_003() {
    let call = ToolCall::new(
        "call_1",
        "getWeather",
        json!({"city":"Tokyo"}).as_object().unwrap().clone(),
    );
    let m = AssistantMessage::new(
        vec![
            AssistantContent::reasoning("hm"),
            call.clone().into(),
            AssistantContent::text("on it"),
        ],
        Timestamp::default(),
    );
    assert_eq!(m.stop_reason, StopReason::ToolCalls);
    assert_eq!(m.tool_calls().collect::<Vec<_>>(), [&call]);
    assert_eq!((m.text().as_str(), m.reasoning().as_str()), ("on it", "hm"));
}

#[test]
fn the_seeds_spellings_are_read() {
    let m = assistant(json!({
        "role":"assistant",
        "content":[{"type":"reasoning","text":"I need to"}],
        "toolCalls":[{"type":"function","id":"call_1","name":"getWeather","arguments":{"city":"Bangkok"}},
                     {"type":"function","id":"call_2","function":{"name":"getTime","arguments":"{\"city\": \"Oslo\"}"}}],
        "usage":{"input":1,"output":2,"cache_read":3},
        "stop_reason":"tool_calls","error_message":"oops","timestamp":"2026-09-11T08:28:49"
    }));
    let calls: Vec<_> = m.tool_calls().collect();
    assert_eq!(calls[0].arguments().unwrap()["city"], "Bangkok");
    assert_eq!(calls[1].name, "getTime");
    assert_eq!(calls[1].arguments.raw(), "{\"city\": \"Oslo\"}");
    assert_eq!(m.usage.cache_read, Some(3));
    assert_eq!(m.error_message.as_deref(), Some("oops"));
    assert_eq!(m.timestamp.to_string(), "2026-09-11T08:28:49.000Z");

    let Message::ToolResult(r) = read(
        json!({"role":"tool","tool_call_id":"call_1","tool_name":"t",
        "content":"done","is_error":true,"added_tool_names":["x"]}),
    ) else {
        panic!("role tool is a tool result")
    };
    assert_eq!(
        (r.tool_call_id.as_str(), r.text().as_str(), r.is_error),
        ("call_1", "done", true)
    );
    assert_eq!(r.added_tool_names, ["x"]);
}

#[test]
fn unknown_keys_and_kinds_are_kept() {
    let value = json!({"role":"user","content":[
        {"type":"hologram","depth":3},
        {"type":"text","text":"a","annotations":{"audience":["user"]}},
        {"type":"text"}, 7],
        "timestamp":"1970-01-01T00:00:00.000Z","mood":"good"});
    assert_eq!(serde_json::to_value(read(value.clone())).unwrap(), value);
}

#[test]
fn a_known_key_with_a_value_that_it_cannot_have_is_set_aside() {
    let m = read(json!({"role":"user","content":"x","timestamp":"yesterday"}));
    let written = serde_json::to_value(&m).unwrap();
    assert_eq!(written["?timestamp"], "yesterday");
    assert_eq!(read(written), m);
}

#[test]
fn unreadable_arguments_keep_what_came() {
    for text in ["{\"a\":", "[1]", "7", "{\"n\":1e400}"] {
        let m = assistant(
            json!({"role":"assistant","content":[{"type":"toolCall","id":"c","name":"t","arguments":text}]}),
        );
        let call = m.tool_calls().next().unwrap();
        assert!(call.arguments().is_none(), "{text}");
        assert_eq!(call.arguments.raw(), text);
        assert_eq!(assistant(serde_json::to_value(&m).unwrap()), m);
    }
}

#[test]
fn absent_null_and_empty_arguments_are_an_empty_object() {
    for arguments in [
        json!(null),
        json!(""),
        json!("  "),
        json!("null"),
        json!({}),
    ] {
        let m = assistant(
            json!({"role":"assistant","content":[{"type":"toolCall","id":"c","name":"t","arguments":arguments}]}),
        );
        assert!(
            m.tool_calls()
                .next()
                .unwrap()
                .arguments()
                .unwrap()
                .is_empty()
        );
    }
}

#[test]
fn a_role_that_nobody_knows_is_an_error_that_names_it() {
    let e = serde_json::from_value::<Message>(json!({"role":"narrator"})).unwrap_err();
    assert!(e.to_string().contains("narrator"));
}

#[test]
fn what_cannot_be_shown_is_told_in_a_line() {
    let cases = [
        (
            json!({"type":"audio","data":"AAAA","mimeType":"audio/wav"}),
            "[audio: audio/wav, 3 bytes]",
        ),
        (
            json!({"type":"resource","uri":"file:///a","title":"A"}),
            "[resource: A, file:///a]",
        ),
        (
            json!({"type":"resource","uri":"file:///a","blob":"AAAA"}),
            "[resource: file:///a, unknown type, 3 bytes]",
        ),
        (
            json!({"type":"resource","uri":"file:///a","text":"inside"}),
            "inside",
        ),
        (json!({"type":"hologram"}), "[content of kind hologram]"),
        (json!(7), "[content of an unknown kind]"),
    ];
    for (value, text) in cases {
        assert_eq!(Content::from(value).to_plain_text(), text);
    }
}

fn extra() -> impl Strategy<Value = Extra> {
    proptest::collection::vec(("x[a-z]{1,5}", any::<i32>()), 0..3)
        .prop_map(|pairs| pairs.into_iter().map(|(k, v)| (k, json!(v))).collect())
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300f64..1e300).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::vec((".{0,5}", inner), 0..3)
                .prop_map(|p| Value::Object(p.into_iter().collect())),
        ]
    })
}

fn call() -> impl Strategy<Value = ToolCall> {
    let arguments = prop_oneof![
        proptest::collection::vec((".{0,5}", json_value()), 0..3)
            .prop_map(|p| ToolArguments::from(p.into_iter().collect::<JsonObject>())),
        Just(ToolArguments::read("{ \"b\" : 1.50, \"a\": [ ] }")),
        (".{0,8}", ".{0,8}").prop_map(|(a, b)| ToolArguments::unreadable(a, b)),
    ];
    (".{0,8}", ".{0,8}", arguments, extra()).prop_map(|(id, name, arguments, extra)| ToolCall {
        id: id.into(),
        name,
        arguments,
        extra,
    })
}

fn user_content() -> impl Strategy<Value = Content> {
    prop_oneof![
        (".{0,8}", extra()).prop_map(|(text, extra)| Content::Text(TextContent { text, extra })),
        (".{0,8}", ".{0,8}", extra()).prop_map(|(data, mime_type, extra)| Content::Image(
            ImageContent {
                data,
                mime_type,
                extra
            }
        )),
        (".{0,8}", ".{0,8}", extra()).prop_map(|(data, mime_type, extra)| Content::Audio(
            AudioContent {
                data,
                mime_type,
                extra
            }
        )),
        (
            ".{0,8}",
            proptest::option::of(".{0,8}"),
            proptest::option::of(".{0,8}"),
            0..3,
            extra()
        )
            .prop_map(|(uri, mime_type, title, body, extra)| Content::Resource(
                ResourceContent {
                    body: match body {
                        0 => ResourceBody::Link,
                        1 => ResourceBody::Text(uri.clone()),
                        _ => ResourceBody::Blob(uri.clone()),
                    },
                    uri,
                    mime_type,
                    title,
                    extra
                }
            )),
        (extra()).prop_map(|extra| Content::Other(OtherContent {
            value: json!({"type":"later","e":extra})
        })),
    ]
}

fn assistant_content() -> impl Strategy<Value = AssistantContent> {
    prop_oneof![
        (".{0,8}", extra())
            .prop_map(|(text, extra)| AssistantContent::Text(TextContent { text, extra })),
        (
            ".{0,8}",
            proptest::option::of(".{0,8}"),
            proptest::option::of(".{0,8}"),
            proptest::option::of(json_value()),
            extra()
        )
            .prop_map(
                |(text, field, signature, data, extra)| AssistantContent::Reasoning(
                    ReasoningContent {
                        text,
                        field,
                        signature,
                        data,
                        extra
                    }
                )
            ),
        call().prop_map(AssistantContent::ToolCall),
        (".{0,8}", ".{0,8}", extra()).prop_map(|(data, mime_type, extra)| AssistantContent::Image(
            ImageContent {
                data,
                mime_type,
                extra
            }
        )),
        Just(AssistantContent::Other(OtherContent {
            value: json!({"type":"later","n":[1,2]})
        })),
    ]
}

fn usage() -> impl Strategy<Value = Usage> {
    proptest::array::uniform6(proptest::option::of(any::<u64>())).prop_map(
        |[input, output, cache_read, cache_write, reasoning, total]| Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
            total,
        },
    )
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp::from_millis)
}

fn any_message() -> impl Strategy<Value = Message> {
    let contents = || proptest::collection::vec(user_content(), 0..4);
    prop_oneof![
        (contents(), timestamp(), extra()).prop_map(|(content, timestamp, extra)| UserMessage {
            content,
            timestamp,
            extra
        }
        .into()),
        (
            proptest::collection::vec(assistant_content(), 0..4),
            (".{0,5}", ".{0,5}", ".{0,5}"),
            usage(),
            "[a-z_]{0,12}",
            proptest::option::of(".{0,8}"),
            timestamp(),
            extra(),
        )
            .prop_map(
                |(
                    content,
                    (api, provider, model),
                    usage,
                    stop,
                    error_message,
                    timestamp,
                    extra,
                )| AssistantMessage {
                    content,
                    api,
                    provider,
                    model,
                    usage,
                    stop_reason: stop.as_str().into(),
                    error_message,
                    timestamp,
                    extra
                }
                .into()
            ),
        (
            (".{0,8}", ".{0,8}"),
            contents(),
            json_value(),
            proptest::option::of(usage()),
            proptest::collection::vec(".{0,5}", 0..3),
            any::<bool>(),
            timestamp(),
            extra(),
        )
            .prop_map(
                |(
                    (id, tool_name),
                    content,
                    details,
                    usage,
                    added_tool_names,
                    is_error,
                    timestamp,
                    extra,
                )| ToolResultMessage {
                    tool_call_id: id.into(),
                    tool_name,
                    content,
                    details,
                    usage,
                    added_tool_names,
                    is_error,
                    timestamp,
                    extra
                }
                .into()
            ),
        (".{0,8}", json_value(), timestamp(), extra()).prop_map(
            |(kind, data, timestamp, extra)| CustomMessage {
                kind,
                data,
                timestamp,
                extra
            }
            .into()
        ),
    ]
}

proptest! {
    #[test]
    fn what_is_written_reads_back_equal(message in any_message()) {
        let text = serde_json::to_string(&message).unwrap();
        let back: Message = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&back, &message);
        prop_assert_eq!(serde_json::to_string(&back).unwrap(), text);
    }

    #[test]
    fn any_object_with_a_known_role_opens_and_loses_nothing(
        role in prop_oneof![Just("user"), Just("assistant"), Just("tool"), Just("custom")],
        keys in proptest::collection::vec((prop_oneof![Just("content".to_owned()), Just("usage".to_owned()), Just("timestamp".to_owned()), Just("toolCalls".to_owned()), Just("isError".to_owned()), "[a-z]{1,4}".prop_map(String::from)], json_value()), 0..5),
    ) {
        let mut object: JsonObject = keys.into_iter().collect();
        object.insert("role".into(), json!(role));
        let message: Message = serde_json::from_value(Value::Object(object)).unwrap();
        let back: Message = serde_json::from_str(&serde_json::to_string(&message).unwrap()).unwrap();
        prop_assert_eq!(back, message);
    }
}

#[test]
fn a_calls_arguments_are_made_of_what_is_at_hand() {
    let of = |value: serde_json::Value| ToolCall::new("c", "t", value).arguments;
    let object = JsonObject::from_iter([("a".to_owned(), 1.into())]);
    let call = ToolCall::new("c", "t", object.clone());
    assert_eq!(of(serde_json::json!({"a": 1})), call.arguments);
    assert_eq!(of(serde_json::json!("{\"a\": 1}")).object(), Some(&object));
    assert_eq!(of(serde_json::Value::Null), ToolArguments::default());
    for odd in [serde_json::json!([1]), serde_json::json!("no"), 7.into()] {
        assert!(of(odd.clone()).object().is_none(), "{odd}");
    }
}
