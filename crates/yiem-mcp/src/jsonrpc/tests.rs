use super::*;
use proptest::prelude::*;
use serde_json::{Map, json};

fn one(text: &str) -> Incoming {
    let mut messages = read(text.as_bytes());
    assert_eq!(messages.len(), 1, "{text}");
    messages.remove(0)
}

fn outcome(text: &str) -> (Option<RequestId>, AnswerOutcome) {
    match one(text) {
        Incoming::Answer(answer) => (answer.id, answer.outcome),
        other => panic!("{text} was read as {other:?}"),
    }
}

#[test]
fn an_answer_resolves_whatever_its_shape() {
    let seven = Some(RequestId::Number(7));
    for (text, wanted) in [
        (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, json!({})),
        (r#"{"id":7,"result":{}}"#, json!({})),
        (r#"{"id":7.0,"result":[1],"error":null}"#, json!([1])),
        (r#"{"id":7,"result":null}"#, json!(null)),
        (r#"{"id":7,"result":true,"error":{}}"#, json!(true)),
        (r#"{"id":7,"method":"tools/call","result":"x"}"#, json!("x")),
        ("\u{feff}{\"id\":7,\"result\":1}", json!(1)),
        (
            r#"{"id":7,"result":{"a":"\ud83d"}}"#,
            json!({"a": "\u{fffd}"}),
        ),
        ("{\"id\":7,\"result\":\"a\tb\u{1}\"}", json!("a\tb\u{1}")),
        (
            r#"{"id":7,"result":[NaN,-Infinity,1e400,2]}"#,
            json!([null, null, null, 2]),
        ),
        (r#"{"id":7,"result":"c:\work \'"}"#, json!("c:\\work \\'")),
    ] {
        assert_eq!(
            outcome(text),
            (seven.clone(), AnswerOutcome::Result(wanted)),
            "{text}"
        );
    }
}

#[test]
fn an_error_is_kept_whatever_its_shape() {
    for (text, code, message) in [
        (
            r#"{"id":7,"error":{"code":-32601,"message":"Method not found"}}"#,
            -32601,
            "Method not found",
        ),
        (
            r#"{"id":7,"error":{"code":"-32000","message":"no"}}"#,
            -32000,
            "no",
        ),
        (
            r#"{"id":7,"error":{"code":"E_FAIL","message":"no"}}"#,
            0,
            "E_FAIL: no",
        ),
        (r#"{"id":7,"error":"it broke"}"#, 0, "it broke"),
        (
            r#"{"id":7,"error":{"code":1}}"#,
            1,
            "the server gave no message",
        ),
        (r#"{"id":7,"error":{"reason":"x"}}"#, 0, r#"{"reason":"x"}"#),
        (
            r#"{"id":7,"error":{"code":3,"message":{"a":1}},"result":null}"#,
            3,
            r#"{"a":1}"#,
        ),
        (r#"{"id":7,"error":[1,2]}"#, 0, "[1,2]"),
    ] {
        let (id, AnswerOutcome::Error(error)) = outcome(text) else {
            panic!("{text}")
        };
        assert_eq!(id, Some(RequestId::Number(7)), "{text}");
        assert_eq!(
            (error.code, error.message.as_str()),
            (code, message),
            "{text}"
        );
    }
}

#[test]
fn requests_notifications_and_batches_are_told_apart() {
    let request = IncomingRequest {
        id: RequestId::Text("a".into()),
        method: "ping".into(),
        params: Value::Null,
    };
    assert_eq!(
        one(r#"{"id":"a","method":"ping"}"#),
        Incoming::Request(request)
    );
    assert!(matches!(
        one(r#"{"method":"x","id":null,"params":{}}"#),
        Incoming::Notification { .. }
    ));
    let batch = read(br#"[{"id":1,"result":1},{"method":"n"},5]"#);
    assert!(matches!(
        batch.as_slice(),
        [
            Incoming::Answer(_),
            Incoming::Notification { .. },
            Incoming::Unreadable(_)
        ]
    ));
}

#[test]
fn what_is_no_message_is_told_and_never_answered() {
    for text in [
        "Server listening on stdio",
        "42",
        "\"hello\"",
        "null",
        "[]",
        "{}",
        r#"{"level":"info"}"#,
        "{oops",
    ] {
        assert!(matches!(one(text), Incoming::Unreadable(_)), "{text}");
    }
}

#[test]
fn a_broken_message_with_an_id_becomes_an_answer_to_it() {
    for text in [
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text""#,
        r#"{"result":{"id":9},"id":7,oops}"#,
        r#"{"id":7}"#,
        r#"{"id":7,"result":{"a":1}"#,
    ] {
        let (id, outcome) = outcome(text);
        assert_eq!(id, Some(RequestId::Number(7)), "{text}");
        assert!(matches!(outcome, AnswerOutcome::Malformed(_)), "{text}");
    }
    let deep = format!(
        r#"{{"id":7,"result":{}{}}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    assert_eq!(outcome(&deep).0, Some(RequestId::Number(7)));
}

#[test]
fn a_broken_request_is_not_taken_for_an_answer() {
    assert!(matches!(
        one(r#"{"method":"ping","id":7,oops"#),
        Incoming::Unreadable(_)
    ));
}

#[test]
fn what_is_written_is_strict_and_on_one_line() {
    let mut params = Map::new();
    params.insert("text".into(), "a\nb".into());
    let body = String::from_utf8(request(&RequestId::Number(1), "tools/call", &params)).unwrap();
    assert_eq!(
        body,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"text":"a\nb"}}"#
    );
    let error = JsonRpcError::new(METHOD_NOT_FOUND, "no").with_data(json!([1]));
    let body = String::from_utf8(error_response(None, &error)).unwrap();
    assert_eq!(
        body,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no","data":[1]}}"#
    );
}

fn lines(reader: &mut LineReader, pieces: &[&[u8]]) -> Vec<Line> {
    let mut found = Vec::new();
    for piece in pieces {
        reader.buffer().extend_from_slice(piece);
        while let Some(line) = reader.next_line() {
            found.push(line);
        }
    }
    found.extend(reader.finish());
    found
}

#[test]
fn lines_are_cut_whatever_the_pieces_and_the_last_needs_no_end() {
    let found = lines(
        &mut LineReader::new(100),
        &[b"on", b"e\r\n\n  \ntw", b"o\nthree"],
    );
    let texts = found.iter().map(|line| match line {
        Line::Whole(bytes) => std::str::from_utf8(bytes).unwrap(),
        Line::TooLong { .. } => "too long",
    });
    assert_eq!(texts.collect::<Vec<_>>(), ["one", "two", "three"]);
}

#[test]
fn a_line_over_the_cap_is_thrown_away_but_for_its_id() {
    let long = format!(
        r#"{{"result":{{"id":1,"x":"{}"}},"jsonrpc":"2.0","id":42}}"#,
        "y\\\"}".repeat(1000)
    );
    let mut reader = LineReader::new(64);
    let mut pieces: Vec<&[u8]> = long.as_bytes().chunks(50).collect();
    pieces.push(b"\n{}\n");
    let found = lines(&mut reader, &pieces);
    assert_eq!(
        found[0],
        Line::TooLong {
            length: long.len() as u64,
            id: Some(RequestId::Number(42))
        }
    );
    assert_eq!(found[1], Line::Whole("{}".into()));
    // In one piece it is the same.
    let mut reader = LineReader::new(64);
    assert_eq!(lines(&mut reader, &[long.as_bytes(), b"\n"])[0], found[0]);
}

/// Any JSON that may stand at a key of a message.
fn part() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(false)),
        Just(json!("")),
        Just(json!({})),
        Just(json!([])),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z/0-9]{0,6}".prop_map(Value::from),
        ("[a-z]{1,7}", any::<i32>()).prop_map(|(key, value)| json!({key: [value, {"x": null}]})),
    ]
}

proptest! {
    /// A message is the same whether it is read from bytes or from JSON, alone or in a batch.
    #[test]
    fn bytes_and_json_are_read_alike(
        parts in proptest::collection::vec(
            ("id|method|params|result|error|jsonrpc|x|result ", part()), 0..6),
    ) {
        let object: Map<String, Value> = parts.iter().cloned().collect();
        let wanted = read_value(Value::Object(object.clone()));
        prop_assert_eq!(&read(Value::Object(object.clone()).to_string().as_bytes()), &wanted);
        let batch = Value::from(vec![Value::Object(object)]);
        prop_assert_eq!(&read(batch.to_string().as_bytes()), &wanted);
        // A key that is there twice: the last counts.
        let twice: Vec<String> = parts.iter().map(|(key, part)| format!("{key:?}:{part}")).collect();
        prop_assert_eq!(&read(format!(" {{{}}}\r", twice.join(",")).as_bytes()), &wanted);
    }

    /// Any bytes end in answers, notifications, requests or something told as unreadable.
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(!read(&bytes).is_empty());
    }

    /// The same for text that is nearly JSON.
    #[test]
    fn nearly_json_is_read(text in r#"[\{\}\[\]":,0-9a-z\\ -]{0,80}"#) {
        prop_assert!(!read(text.as_bytes()).is_empty());
    }

    /// The id of an answer is found wherever it stands and however the rest is broken off.
    #[test]
    fn the_id_of_a_cut_answer_is_found(id in any::<u32>(), tail in "[a-z\\[{,]{0,40}") {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"x":{tail}"#);
        let (found, _) = outcome(&text);
        prop_assert_eq!(found, Some(RequestId::Number(i64::from(id))));
    }

    /// Cutting into lines does not depend on the pieces.
    #[test]
    fn lines_do_not_depend_on_pieces(
        text in "[ab\\n\\r]{0,60}",
        size in 1usize..9,
        cap in 1usize..20,
    ) {
        let whole = lines(&mut LineReader::new(cap), &[text.as_bytes()]);
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        let cut = lines(&mut LineReader::new(cap), &pieces);
        let texts = |lines: &[Line]| lines.iter().filter(|line| matches!(line, Line::Whole(_))).cloned().collect::<Vec<_>>();
        prop_assert_eq!(texts(&whole), texts(&cut));
    }

    /// What we write reads back as what it was.
    #[test]
    fn requests_read_back(method in "[a-z/]{1,12}", key in ".{0,8}", value in ".{0,30}", id in any::<i64>()) {
        let mut params = Map::new();
        params.insert(key, value.into());
        let bytes = request(&RequestId::Number(id), &method, &params);
        prop_assert!(!bytes.contains(&b'\n'));
        let wanted = IncomingRequest { id: RequestId::Number(id), method, params: Value::Object(params) };
        prop_assert_eq!(read(&bytes), vec![Incoming::Request(wanted)]);
    }
}
