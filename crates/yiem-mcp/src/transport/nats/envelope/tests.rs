//! Envelopes as tables of shapes, written by hand.

use super::*;
use proptest::prelude::*;

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;

fn answer() -> Value {
    serde_json::from_str(ANSWER).expect("JSON")
}

fn message_of(envelope: &str) -> Value {
    match read(envelope.as_bytes()) {
        Ok(Unwrapped::Message { message, .. }) => message,
        other => panic!("{envelope}: {other:?}"),
    }
}

fn refusal_of(envelope: &str) -> String {
    match read(envelope.as_bytes()) {
        Err(error) => error.to_string(),
        Ok(read) => panic!("{envelope}: {read:?}"),
    }
}

fn with_payload(payload: &str) -> String {
    format!(r#"{{"msg_id":"m","payloads":[{payload}]}}"#)
}

#[test]
fn what_is_written_has_every_field_and_the_message_in_base64() {
    let head = EnvelopeHead {
        correlation_id: "c".into(),
        msg_id: "m".into(),
        timestamp: "2026-11-30T00:00:00.000Z".into(),
        send_to: "mcp.weather".into(),
        msg_purpose: purpose("tools/list"),
        sender_name: "yiem".into(),
        sender_id: "agent-1".into(),
        broker_url: "nats://h:4222".into(),
        ..EnvelopeHead::default()
    };
    let written: Value =
        serde_json::from_slice(&write(&head, "p", br#"{"a":1}"#, "http://files")).expect("JSON");
    let expected = json!({
        "correlation_id": "c", "msg_id": "m", "timestamp": "2026-11-30T00:00:00.000Z",
        "send_to": "mcp.weather", "msg_purpose": "mcp_tools_list", "sender_name": "yiem",
        "sender_id": "agent-1", "receiver_name": "", "receiver_id": "", "reply_to": "",
        "reply_to_msg_id": "", "broker_url": "nats://h:4222",
        "metadata": {"fileserver_url": "http://files"},
        "payloads": [{"id": "p", "dataname": "payload", "payload_type": "dictionary",
            "transport": "direct", "encoding": "base64", "size": 7, "data": "eyJhIjoxfQ==", "metadata": {}}],
    });
    assert_eq!(written, expected);
    assert_eq!(
        written
            .as_object()
            .map(|o| o.keys().cloned().collect::<Vec<_>>()),
        expected
            .as_object()
            .map(|o| o.keys().cloned().collect::<Vec<_>>())
    );
}

#[test]
fn purposes_are_the_seeds_words() {
    assert_eq!(purpose("tools/list"), "mcp_tools_list");
    assert_eq!(purpose("tools/call"), "mcp_tool_call");
    assert_eq!(purpose("server/discover"), "mcp_server_discover");
}

#[test]
fn a_payload_is_read_in_every_form_whatever_its_encoding_says() {
    let base64 = STANDARD.encode(ANSWER);
    let padless = base64.trim_end_matches('=').to_owned();
    let broken: String = base64
        .as_bytes()
        .chunks(20)
        .map(|c| format!("{}\\n", String::from_utf8_lossy(c)))
        .collect();
    let text = serde_json::to_string(ANSWER).expect("text");
    let twice = serde_json::to_string(&text).expect("text");
    let bytes = serde_json::to_string(ANSWER.as_bytes()).expect("list");
    let forms = [
        ANSWER.to_owned(),
        format!("\"{base64}\""),
        format!("\"{padless}\""),
        format!("\"{broken}\""),
        text,
        twice,
        bytes,
    ];
    for form in &forms {
        for encoding in [
            r#""encoding":"base64","#,
            r#""encoding":"json","#,
            r#""encoding":"none","#,
            r#""encoding":7,"#,
            "",
        ] {
            for kind in [
                r#""payload_type":"dictionary","#,
                r#""payload_type":"jsontable","#,
                "",
            ] {
                let payload = format!(
                    r#"{{{encoding}{kind}"dataname":"payload","transport":"direct","data":{form}}}"#
                );
                assert_eq!(message_of(&with_payload(&payload)), answer(), "{payload}");
            }
        }
        assert_eq!(
            message_of(&with_payload(&format!(r#"{{"data":{form}}}"#))),
            answer()
        );
        assert_eq!(
            message_of(&with_payload(&format!(
                r#"["payload",{form},"dictionary"]"#
            ))),
            answer()
        );
    }
}

#[test]
fn the_url_safe_alphabet_is_read_too() {
    let text = r#"{"jsonrpc":"2.0","id":1,"result":"???>>>~~~ü"}"#;
    let data = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    assert!(
        data.contains('-') || data.contains('_'),
        "the case is one: {data}"
    );
    let value: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(
        message_of(&with_payload(&format!(r#"{{"data":"{data}"}}"#))),
        value
    );
}

#[test]
fn missing_and_extra_fields_and_unknown_purposes_are_accepted() {
    let bare = format!(r#"{{"payloads":[{{"data":{ANSWER}}}]}}"#);
    assert_eq!(message_of(&bare), answer());
    let odd = format!(
        r#"{{"msg_purpose":"whatever","version":9,"metadata":null,"sender_id":12,"x":{{}},"payloads":[{{"extra":[1],"data":{ANSWER},"size":-1}}]}}"#
    );
    let Ok(Unwrapped::Message { head, message }) = read(odd.as_bytes()) else {
        panic!("not read")
    };
    assert_eq!(message, answer());
    assert_eq!(
        (head.msg_purpose.as_str(), head.sender_id.as_str()),
        ("whatever", "12")
    );
}

#[test]
fn the_payload_named_payload_is_meant_and_others_are_asked_in_order() {
    let several = format!(
        r#"{{"payloads":[{{"dataname":"note","data":"hello"}},{{"dataname":"other","data":{{"x":1}}}},{{"dataname":"payload","data":{ANSWER}}}]}}"#
    );
    assert_eq!(message_of(&several), answer());
    let unnamed =
        format!(r#"{{"payloads":[{{"dataname":"note","data":"hello"}},{{"data":{ANSWER}}}]}}"#);
    assert_eq!(message_of(&unnamed), answer());
    let single = format!(r#"{{"payloads":{{"dataname":"payload","data":{ANSWER}}}}}"#);
    assert_eq!(message_of(&single), answer());
    assert_eq!(
        message_of(&format!(
            r#"{{"payloads":["payload",{ANSWER},"dictionary"]}}"#
        )),
        answer()
    );
}

#[test]
fn a_message_without_an_envelope_is_accepted() {
    for bytes in [
        ANSWER.to_owned(),
        format!("\u{feff}{ANSWER}"),
        serde_json::to_string(ANSWER).expect("text"),
        STANDARD.encode(ANSWER),
    ] {
        assert_eq!(
            read(bytes.as_bytes()),
            Ok(Unwrapped::Bare(answer())),
            "{bytes}"
        );
    }
}

#[test]
fn an_envelope_within_text_is_opened() {
    let envelope = with_payload(&format!(r#"{{"data":{ANSWER}}}"#));
    let text = serde_json::to_string(&envelope).expect("text");
    assert_eq!(message_of(&text), answer());
    assert_eq!(message_of(&STANDARD.encode(&envelope)), answer());
}

#[test]
fn a_link_is_told_apart() {
    for payload in [
        r#"{"dataname":"payload","transport":"link","encoding":"none","data":"http://files/7"}"#,
        r#"{"transport":"LINK","data":"http://files/7"}"#,
        r#"{"dataname":"payload","data":"http://files/7"}"#,
    ] {
        match read(with_payload(payload).as_bytes()) {
            Ok(Unwrapped::Link { url, .. }) => assert_eq!(url, "http://files/7"),
            other => panic!("{payload}: {other:?}"),
        }
    }
}

#[test]
fn what_holds_no_message_is_refused_in_words() {
    for (envelope, words) in [
        (r#"{"payloads":[]}"#, "no payload"),
        (r#"{"payloads":null}"#, "no payload"),
        (
            r#"{"payloads":[{"dataname":"payload","payload_type":"text","data":"boom"}]}"#,
            "boom",
        ),
        (
            r#"{"payloads":[{"payload_type":"text","data":"dGhlIHNlcnZlciBpcyBkb3du"}]}"#,
            "the server is down",
        ),
        (r#"{"payloads":[{"transport":"direct"}]}"#, "no data"),
        (
            r#"{"payloads":[{"transport":"link"}]}"#,
            "without an address",
        ),
        (r#"{"payloads":[{"data":17}]}"#, "no JSON object"),
        ("hello", "neither an envelope nor JSON"),
        ("", "neither an envelope nor JSON"),
        ("17", "neither an envelope nor a JSON-RPC message"),
        (r#"{"a":1}"#, "neither an envelope nor a JSON-RPC message"),
    ] {
        let refusal = refusal_of(envelope);
        assert!(refusal.contains(words), "{envelope}: {refusal}");
    }
}

#[test]
fn texts_in_texts_have_an_end() {
    let mut text = ANSWER.to_owned();
    for _ in 0..12 {
        text = serde_json::to_string(&text).expect("text");
    }
    assert!(read(text.as_bytes()).is_err());
}

#[test]
fn an_answer_goes_back_to_whom_it_came_from() {
    let asked = EnvelopeHead {
        correlation_id: "c".into(),
        msg_id: "m1".into(),
        sender_id: "a".into(),
        sender_name: "A".into(),
        msg_purpose: "mcp_tool_call".into(),
        ..EnvelopeHead::default()
    };
    let config = EnvelopeConfig {
        sender_id: "b".into(),
        ..EnvelopeConfig::default()
    };
    let answer = asked.answered_by(&config, "m2".into(), "t".into(), "_INBOX.x");
    assert_eq!(
        (
            answer.correlation_id.as_str(),
            answer.reply_to_msg_id.as_str()
        ),
        ("c", "m1")
    );
    assert_eq!(
        (answer.receiver_id.as_str(), answer.sender_id.as_str()),
        ("a", "b")
    );
    assert_eq!(
        (answer.msg_id.as_str(), answer.send_to.as_str()),
        ("m2", "_INBOX.x")
    );
}

proptest! {
    #[test]
    fn any_bytes_end_in_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes);
    }

    #[test]
    fn any_payload_data_ends_in_a_message_or_an_error(data in "[A-Za-z0-9+/=_{}\\[\\]\", :.-]{0,80}") {
        let envelope = json!({"payloads": [{"data": data}]}).to_string();
        let _ = read(envelope.as_bytes());
    }

    #[test]
    fn what_is_written_is_read_back(text in ".{0,60}", id in any::<i32>()) {
        let message = json!({"jsonrpc": "2.0", "id": id, "result": {"text": text}});
        let bytes = write(&EnvelopeHead::default(), "p", &serde_json::to_vec(&message).expect("JSON"), "");
        let read = read(&bytes);
        prop_assert!(matches!(&read, Ok(Unwrapped::Message { message: back, .. }) if *back == message), "{:?}", read);
    }
}
