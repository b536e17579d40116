//! Bad input ends in a message or a typed error: it is bounded and never panics.

use std::sync::Arc;

use proptest::prelude::*;
use yiem_core::{
    AssistantMessage, MessageAssembler, ModelError, ModelErrorKind, SystemEnv, ToolArguments,
};
use yiem_openai::{Asked, ChunkDecoder, ReadLimits, ReadOptions};

const MIB: usize = 1 << 20;

fn small() -> ReadOptions {
    ReadOptions {
        limits: ReadLimits {
            reply_bytes: 4 * MIB,
            event_bytes: MIB,
            calls: 100,
        },
        ..ReadOptions::default()
    }
}

/// Reads pieces to their end; gives the message or the error, and how much was taken.
fn read(
    asked: Asked,
    options: ReadOptions,
    pieces: impl IntoIterator<Item = Vec<u8>>,
) -> (Result<AssistantMessage, ModelError>, usize) {
    let mut decoder = ChunkDecoder::new(asked, options, SystemEnv::shared());
    let mut assembler = MessageAssembler::new();
    let mut pieces = pieces.into_iter();
    let mut taken = 0;
    loop {
        match decoder.next() {
            Some(Ok(event)) => {
                if let Some(message) = assembler.push(event) {
                    return (Ok(message), taken);
                }
            }
            Some(Err(error)) => return (Err(error), taken),
            None => match pieces.next() {
                Some(piece) => {
                    taken += piece.len();
                    decoder.feed(&piece);
                }
                None => decoder.finish(),
            },
        }
    }
}

fn malformed(result: &Result<AssistantMessage, ModelError>) -> bool {
    matches!(result, Err(error) if error.kind == ModelErrorKind::Malformed)
}

/// 100 MB in pieces, a beginning first.
fn flood(start: &str, piece: &str) -> impl Iterator<Item = Vec<u8>> {
    let piece = piece.repeat((64 << 10) / piece.len()).into_bytes();
    let count = 100 * MIB / piece.len();
    std::iter::once(start.as_bytes().to_vec()).chain(std::iter::repeat_n(piece, count))
}

#[test]
fn a_body_of_a_hundred_megabytes_is_refused_at_the_limit() {
    for start in ["{\"a\":\"", "[", "<html>", "data: ", "x", ": comment "] {
        let (result, taken) = read(Asked::Stream, small(), flood(start, "xxxx"));
        assert!(malformed(&result), "{start}: {result:?}");
        assert!(taken <= 5 * MIB, "{start}: {taken}");
    }
}

#[test]
fn a_stream_without_end_is_refused_at_the_limit() {
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"spam \"}}]}\n\n";
    let (result, taken) = read(Asked::Stream, small(), flood("", event));
    assert!(malformed(&result), "{result:?}");
    assert!(taken <= 5 * MIB);
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for whole in [true, false] {
            let mut body = open.repeat(10_000);
            if whole {
                body.push('1');
                body.push_str(&close.repeat(10_000));
            }
            let (result, _) = read(Asked::Whole, small(), [body.clone().into_bytes()]);
            assert!(result.is_err());
            let stream = format!("data: {body}\n\n").into_bytes();
            assert!(read(Asked::Stream, small(), [stream]).0.is_err());
        }
    }
}

/// A reply with these arguments as text.
fn with_arguments(arguments: &str) -> AssistantMessage {
    let body = serde_json::json!({"choices": [{"message": {"tool_calls": [
        {"id": "c", "function": {"name": "f", "arguments": arguments}}
    ]}, "finish_reason": "tool_calls"}]});
    read(Asked::Whole, small(), [body.to_string().into_bytes()])
        .0
        .expect("a message")
}

#[test]
fn deep_or_endless_arguments_are_unusable() {
    let hostile = [
        "{\"a\":".repeat(10_000) + "1" + &"}".repeat(10_000),
        "{'a':".repeat(10_000) + "1" + &"}".repeat(10_000),
        "[".repeat(10_000),
        "{\"a\":1e999}".to_owned(),
        "{\"a\":-1e999999999}".to_owned(),
        "\"".repeat(10_000),
        "\\".repeat(10_000),
        "{}".repeat(10_000) + "x\"",
        "{\"a\":\"\\u".to_owned(),
    ];
    for arguments in hostile {
        let message = with_arguments(&arguments);
        let call = message.tool_calls().next().expect("a call");
        assert!(
            matches!(call.arguments, ToolArguments::Unreadable { .. }),
            "{}",
            &arguments[..20.min(arguments.len())]
        );
        assert_eq!(*call.arguments.raw(), *arguments);
    }
}

/// White space that JSON has not is not sent back with the arguments.
#[test]
fn usable_arguments_are_json_whatever_stands_around_them() {
    for around in ["\u{b}", "\u{a0}", "\u{3000}\n", " \u{85}", "\t \r\n", ""] {
        let message = with_arguments(&format!("{around}{{\"a\": 1}}{around}"));
        let call = message.tool_calls().next().expect("a call");
        let raw = call.arguments.raw();
        let value: serde_json::Value = serde_json::from_str(&raw).expect("JSON");
        assert_eq!(value.as_object(), call.arguments(), "{around:?}");
    }
}

#[test]
fn numbers_beyond_a_double_cost_only_themselves() {
    let body = "{\"created\":1e999,\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}";
    let (result, _) = read(Asked::Whole, small(), [body.as_bytes().to_vec()]);
    assert_eq!(result.expect("a message").text(), "Hi");
}

#[test]
fn ten_thousand_calls_are_refused_at_the_limit() {
    let call = "{\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}";
    let calls = vec![call; 10_000].join(",");
    let body = format!("{{\"choices\":[{{\"message\":{{\"tool_calls\":[{calls}]}}}}]}}");
    let (result, _) = read(Asked::Whole, small(), [body.into_bytes()]);
    assert!(malformed(&result), "{result:?}");
    assert!(
        result
            .expect_err("too many")
            .message
            .contains("100 tool calls")
    );
    let stream = (0..10_000).map(|n| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{n},\"id\":\"c{n}\",\"function\":{{\"name\":\"f\",\"arguments\":\"{{}}\"}}}}]}}}}]}}\n\n").into_bytes()
    });
    assert!(malformed(&read(Asked::Stream, small(), stream).0));
}

#[test]
fn many_calls_within_the_limit_are_read_with_ids_of_their_own() {
    let call = "{\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}";
    let calls = vec![call; 1_000].join(",");
    let body = format!("{{\"choices\":[{{\"message\":{{\"tool_calls\":[{calls}]}}}}]}}");
    let message = read(Asked::Whole, ReadOptions::default(), [body.into_bytes()])
        .0
        .expect("a message");
    let ids: std::collections::HashSet<String> = message
        .tool_calls()
        .map(|call| call.id.to_string())
        .collect();
    assert_eq!(ids.len(), 1_000);
}

/// Two megabytes in single bytes: quadratic work would not come back.
#[test]
fn single_bytes_of_arguments_and_thoughts_cost_no_more_than_their_number() {
    let fragment =
        |text: &str| format!("data: {{\"choices\":[{{\"delta\":{text}}}]}}\n\n").into_bytes();
    let blanks = std::iter::once(fragment("{\"content\":\"<think>\"}"))
        .chain(std::iter::repeat_n(fragment("{\"content\":\" \"}"), 30_000));
    let (result, _) = read(Asked::Stream, ReadOptions::default(), blanks);
    assert!(matches!(result, Err(error) if error.kind == ModelErrorKind::TruncatedStream));
    let objects = std::iter::repeat_n(
        fragment(
            "{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":{\"}}]}",
        ),
        10_000,
    );
    let (result, _) = read(Asked::Stream, ReadOptions::default(), objects);
    assert!(result.is_err());
}

/// A model that stammers the beginning of a call costs no more than its length, and stays text.
/// Looking at each anew would take hours here.
#[test]
fn stammered_markup_stays_text() {
    for word in [
        "x <tool_call>\\n",
        "[TOOL_CALLS]",
        "functools[",
        "<function=f>",
    ] {
        let text = word.repeat(50_000);
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"{text}"}},"finish_reason":"stop"}}]}}"#
        );
        let options = ReadOptions {
            recover_leaked_calls: true,
            offered: Arc::new(yiem_openai::OfferedTools::new(["f"])),
            ..ReadOptions::default()
        };
        let (result, _) = read(Asked::Whole, options, [body.into_bytes()]);
        let message = result.expect("a message");
        assert_eq!(message.text(), text.replace("\\n", "\n"), "{word}");
        assert!(!message.has_tool_calls());
    }
}

fn json_soup() -> impl Strategy<Value = Vec<u8>> {
    const WORDS: [&str; 40] = [
        "data: ",
        "\n\n",
        "\r\n",
        "[DONE]",
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\\",
        "null",
        "1",
        "-1e5",
        "\"choices\":",
        "\"delta\":",
        "\"message\":",
        "\"content\":",
        "\"tool_calls\":",
        "\"function\":",
        "\"name\":\"f\"",
        "\"arguments\":",
        "\"{\\\"a\\\":1}\"",
        "\"id\":\"x\"",
        "\"index\":0",
        "\"finish_reason\":\"stop\"",
        "\"finish_reason\":\"tool_calls\"",
        "\"usage\":",
        "\"error\":",
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "[TOOL_CALLS]",
        "\\ud83d",
        "\u{feff}",
        "é",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}",
        "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}",
    ];
    prop::collection::vec(prop::sample::select(&WORDS[..]), 0..40)
        .prop_map(|words| words.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_in_any_pieces_end_in_the_same_message_or_typed_error(
        bytes in prop_oneof![json_soup(), prop::collection::vec(any::<u8>(), 0..200)],
        cuts in prop::collection::vec(0usize..400, 0..6),
        whole in any::<bool>(),
        options in any::<[bool; 2]>(),
    ) {
        let asked = if whole { Asked::Whole } else { Asked::Stream };
        let options = || ReadOptions {
            recover_leaked_calls: options[0],
            think_open_implied: options[1],
            offered: Arc::new(yiem_openai::OfferedTools::new(["f"])),
            ..small()
        };
        let shown = |result: Result<AssistantMessage, ModelError>| match result {
            Ok(message) => format!(
                "{:?} {:?} {:?} {}",
                message.text(), message.reasoning(), message.stop_reason,
                message.tool_calls().map(|call| format!("{} {:?}", call.name, call.arguments)).collect::<String>(),
            ),
            Err(error) => format!("{:?}", error.kind),
        };
        let one = shown(read(asked, options(), [bytes.clone()]).0);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<Vec<u8>> = cuts.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect();
        prop_assert_eq!(one, shown(read(asked, options(), pieces).0));
    }

    /// Arguments are what they were, or unusable; text that is an object is never touched.
    #[test]
    fn arguments_that_are_an_object_stay_byte_for_byte(
        key in "[a-z\"\\\\{}' ]{0,8}", value in "[a-z\"\\\\{},:' \n\t]{0,20}", space in "[ \n]{0,3}",
    ) {
        let text = format!("{{{space}{}:{space}{}}}{space}", serde_json::json!(key), serde_json::json!(value));
        let message = with_arguments(&text);
        let call = message.tool_calls().next().expect("a call");
        prop_assert_eq!(&*call.arguments.raw(), text.as_str());
        prop_assert_eq!(call.arguments().and_then(|object| object.get(&key)), Some(&serde_json::json!(value)));
    }

    #[test]
    fn any_case_is_read_or_refused(json in "[\\[\\]{}\",:a-z0-9 ]{0,60}") {
        if let Ok(reply) = yiem_openai::RecordedReply::from_case(&json) {
            let _ = reply.decode(&(SystemEnv::shared() as Arc<_>));
        }
        let _ = yiem_openai::case::encode(&json);
    }
}
