use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::{Value, json};
use yiem_core::{AssistantMessage, ChatEvent, MessageAssembler, SystemEnv};

use super::{Alike, Frame, Piece, says_choices_alone};
use crate::stream::{Asked, ChunkDecoder, ReadOptions};
use crate::wire::Body;

fn after(first: &str) -> Alike {
    let body: Body<'_> = serde_json::from_str(first).expect("a chunk");
    let mut alike = Alike::default();
    if says_choices_alone(&body) {
        alike.remember(&body.choices.0, first);
    }
    alike
}

fn chunk(delta: &str) -> String {
    format!(
        r#"{{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#
    )
}

#[track_caller]
fn check(first: &str, second: &str, expected: Option<(Piece, &str)>) {
    let (first, second) = (chunk(first), chunk(second));
    let expected = expected.map(|(piece, text)| (piece, Cow::Borrowed(text)));
    assert_eq!(after(&first).text(&second), expected);
}

#[test]
fn one_text_may_differ() {
    use Piece::{Arguments, Content, Reasoning};
    check(
        r#"{"content":"a"}"#,
        r#"{"content":"bc"}"#,
        Some((Content, "bc")),
    );
    check(
        r#"{"content":"a"}"#,
        r#"{"content":""}"#,
        Some((Content, "")),
    );
    check(
        r#"{"content":""}"#,
        r#"{"content":"}]}"}"#,
        Some((Content, "}]}")),
    );
    check(
        r#"{"content":"a"}"#,
        r#"{"content":"\n\"\u00e9"}"#,
        Some((Content, "\n\"é")),
    );
    check(
        r#"{"reasoning_content":"a"}"#,
        r#"{"reasoning_content":"b"}"#,
        Some((Reasoning, "b")),
    );
    let call = |text: &str| {
        format!(r#"{{"tool_calls":[{{"index":2,"function":{{"arguments":{text}}}}}]}}"#)
    };
    check(
        &call(r#""{\"a\"""#),
        &call(r#"":\"b\\n\"}""#),
        Some((Arguments(Some(2)), ":\"b\\n\"}")),
    );
}

#[test]
fn whatever_else_differs_is_read_as_json() {
    for (first, second) in [
        (r#"{"content":"a"}"#, r#"{"content":null}"#),
        (r#"{"content":"a"}"#, r#"{"reasoning_content":"a"}"#),
        (r#"{"content":"a"}"#, r#"{"content":"a","refusal":"no"}"#),
        (r#"{"content":"a"}"#, r#"{"content":"a","content":"b"}"#),
        (r#"{"content":"a"}"#, "{\"content\":\"a\nb\"}"),
        (r#"{"content":"a"}"#, r#"{"content":"\ud83d"}"#),
        (r#"{"content":"a"}"#, r#"{"content":"\x"}"#),
        (r#"{"content":"a"}"#, r#"{"content":"\"}"#),
        // The first of these says more than one text.
        (
            r#"{"content":"a","refusal":"x"}"#,
            r#"{"content":"b","refusal":"x"}"#,
        ),
        (
            r#"{"content":"a","reasoning_content":"x"}"#,
            r#"{"content":"b","reasoning_content":"x"}"#,
        ),
        (
            r#"{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"a"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"b"}}]}"#,
        ),
    ] {
        check(first, second, None);
    }
    let counted = chunk(r#"{"content":"a"}"#)
        .replace("null", r#"null}],"usage":{"total_tokens":1},"x":[{"y":1"#);
    assert_eq!(after(&counted).text(&counted), None);
    let ended = chunk(r#"{"content":"a"}"#).replace("null", r#""stop""#);
    assert_eq!(after(&ended).text(&ended), None);
}

#[test]
fn choices_are_read_alone_where_all_around_them_is_the_same() {
    let framed = |first: &str, second: &str| {
        let body: Body<'_> = serde_json::from_str(first).expect("a chunk");
        assert!(says_choices_alone(&body));
        let mut frame = Frame::default();
        frame.remember(first);
        let choices = frame.choices(second)?.0;
        Some(choices.iter().map(|c| c.index.index().unwrap()).collect())
    };
    let some = |indices: &[i64]| Some::<Vec<i64>>(indices.to_vec());
    for (first, second, expected) in [
        (
            r#"{"model":"m","choices":[{"index":1}]}"#,
            r#"{"model":"m","choices":[{"index":2}]}"#,
            some(&[2]),
        ),
        (
            r#"{"choices":[{"index":1}],"x":1}"#,
            r#"{"choices":[{"index":2},{"index":3}],"x":1}"#,
            some(&[2, 3]),
        ),
        (
            r#"{"choices":[{"index":1}]}"#,
            r#"{"choices":[]}"#,
            some(&[]),
        ),
        (
            r#"{"a":"\"choices\":","choices":[{"index":1}]}"#,
            r#"{"a":"\"choices\":","choices":[{"index":2}]}"#,
            some(&[2]),
        ),
        // Something else differs.
        (
            r#"{"model":"m","choices":[{"index":1}]}"#,
            r#"{"model":"n","choices":[{"index":1}]}"#,
            None,
        ),
        (
            r#"{"choices":[{"index":1}],"x":1}"#,
            r#"{"choices":[{"index":1}],"x":2}"#,
            None,
        ),
        (
            r#"{"choices":[{"index":1}]}"#,
            r#"{"choices":[{"index":1}],"usage":{}}"#,
            None,
        ),
        // It is not clear where they begin or end, or which of two counts.
        (
            r#"{"x":{"choices":[1]},"choices":[{"index":1}]}"#,
            r#"{"x":{"choices":[2]},"choices":[{"index":1}]}"#,
            None,
        ),
        (
            r#"{"choices":[{"index":1}],"x":[1]}"#,
            r#"{"choices":[{"index":1}],"x":[1]}"#,
            None,
        ),
        (
            r#"{"choices":[{"index":1}],"choices":[{"index":2}]}"#,
            r#"{"choices":[{"index":3}],"choices":[{"index":2}]}"#,
            None,
        ),
        (
            r#"{"choices":[{"index":1}],"choices":{"index":2}}"#,
            r#"{"choices":[{"index":3}],"choices":{"index":2}}"#,
            None,
        ),
        (
            r#"{"choices":[{"index":1}],"\u0063hoices":{"index":2}}"#,
            r#"{"choices":[{"index":3}],"\u0063hoices":{"index":2}}"#,
            None,
        ),
        (
            r#"{"choices":{"index":1,"x":[1]}}"#,
            r#"{"choices":{"index":2,"x":[1]}}"#,
            None,
        ),
        (
            r#"{"choices" : [{"index":1}]}"#,
            r#"{"choices" : [{"index":2}]}"#,
            None,
        ),
        // No JSON between.
        (
            r#"{"choices":[{"index":1}]}"#,
            r#"{"choices":[{"index":2}}"#,
            None,
        ),
        (
            r#"{"choices":[{"index":1}]}"#,
            r#"{"choices":[{"index":2}]]}"#,
            None,
        ),
        (r#"{"choices":[{"index":1}]}"#, r#"{"choices":}"#, None),
        (
            r#"{"choices":[{"index":1}],"x":1}"#,
            r#"{"choices":,"x":1}"#,
            None,
        ),
    ] {
        assert_eq!(framed(first, second), expected, "{first} {second}");
    }
}

fn read(chunks: &[Value], alike: bool) -> (Vec<ChatEvent>, Option<AssistantMessage>) {
    let mut decoder = ChunkDecoder::new(Asked::Stream, ReadOptions::default(), SystemEnv::shared());
    for (n, chunk) in chunks.iter().enumerate() {
        let mut chunk = chunk.clone();
        if !alike {
            chunk["nth"] = json!(n);
        }
        decoder.feed(format!("data: {chunk}\n\n").as_bytes());
    }
    decoder.feed(b"data: [DONE]\n\n");
    decoder.finish();
    let mut assembler = MessageAssembler::new();
    let (mut events, mut message) = (Vec::new(), None);
    while let Some(Ok(mut event)) = decoder.next() {
        // Ids that are made are new each time.
        if let ChatEvent::ToolCallEnded { call, .. } = &mut event
            && call.id.as_str().starts_with("call_")
        {
            call.id = "made".into();
        }
        events.push(event.clone());
        message = message.or(assembler.push(event));
    }
    (events, message)
}

proptest! {
    /// A stream means the same whether its chunks are alike or not.
    #[test]
    fn chunks_that_are_alike_mean_what_they_say(
        pieces in prop::collection::vec(
            (0..12_u8, prop_oneof![".{0,6}", Just("<think>".to_owned()), Just("</think>".to_owned()), Just("{}".to_owned())], 0..2_i64),
            1..24,
        ),
    ) {
        let chunks: Vec<Value> = pieces
            .iter()
            .map(|(kind, text, index)| {
                let delta = match kind {
                    0..=2 => json!({"content": text}),
                    3 => json!({"reasoning_content": text}),
                    4 => json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]}),
                    5 => json!({"tool_calls": [{"index": index, "id": format!("id{index}"), "function": {"name": "f", "arguments": text}}]}),
                    6 => json!({"content": text, "refusal": null, "role": "assistant"}),
                    7 => json!({"role": "assistant", "content": null}),
                    _ => json!({}),
                };
                let mut choice = json!({"index": index * i64::from(*kind == 8), "delta": delta, "finish_reason": null});
                match kind {
                    8 => choice["delta"] = json!({"content": text}),
                    9 => choice["usage"] = json!({"prompt_tokens": index}),
                    10 => choice["finish_reason"] = json!("length"),
                    11 => choice["text"] = json!(text),
                    _ => {}
                }
                json!({"id": "c", "model": "m", "choices": [choice]})
            })
            .collect();
        let (alike, message) = read(&chunks, true);
        let (apart, other) = read(&chunks, false);
        prop_assert_eq!(alike, apart);
        prop_assert_eq!(message, other);
    }
}
