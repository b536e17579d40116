//! A recorded reply, read in one call.

use std::sync::Arc;

use serde_json::json;
use yiem_core::{Env, ModelErrorKind, StopReason, SystemEnv, ToolArguments};
use yiem_openai::{Asked, OfferedTools, ReadOptions, RecordedReply, read_reply};
use yiem_test::ManualEnv;

const CALL: &str =
    r#"{"type":"function","function":{"name":"getWeather","arguments":"{\"city\":\"Bangkok\"}"}"#;

#[test]
fn every_shape_of_the_seeds_is_read_in_one_call() {
    for (body, text, calls) in [
        // SP-017, with and without calls.
        (
            format!(
                r#"{{"finish_reason":"tool_calls","message":{{"role":"assistant","content":"","tool_calls":[{CALL}}}]}}}}"#
            ),
            "",
            1,
        ),
        (
            r#"{"finish_reason":"stop","message":{"role":"assistant","content":"It's 22°C"}}"#
                .to_owned(),
            "It's 22°C",
            0,
        ),
        // SP-018.1 to SP-018.3.
        (
            format!(r#"{{"content":[{{"type":"tool_calls","tool_calls":[{CALL}}}]}}]}}"#),
            "",
            1,
        ),
        (
            json!({"content": [{"type": "tool_call", "name": "getWeather",
                "arguments": {"city": "Bangkok"}, "id": "call_1"}]})
            .to_string(),
            "",
            1,
        ),
        (
            json!({"content": [{"type": "text", "text": "It's 22°C"}]}).to_string(),
            "It's 22°C",
            0,
        ),
        // The full form, whole and streamed.
        (
            json!({"choices": [{"message": {"content": "It's 22°C"}, "finish_reason": "stop"}]})
                .to_string(),
            "It's 22°C",
            0,
        ),
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"It's \"}}]}\n\n\
             data: {\"choices\":[{\"delta\":{\"content\":\"22°C\"},\"finish_reason\":\"stop\"}]}\n\n\
             data: [DONE]\n\n"
                .to_owned(),
            "It's 22°C",
            0,
        ),
    ] {
        let message = read_reply(body.as_str()).unwrap_or_else(|e| panic!("{body}: {e}"));
        assert_eq!(message.text(), text, "{body}");
        assert_eq!(message.tool_calls().count(), calls, "{body}");
        for call in message.tool_calls() {
            assert_eq!(call.name, "getWeather");
            assert!(!call.id.as_str().is_empty(), "a call has an id");
            assert_eq!(call.arguments.raw(), r#"{"city":"Bangkok"}"#);
            assert_eq!(message.stop_reason, StopReason::ToolCalls);
        }
    }
}

#[test]
fn a_body_is_text_or_bytes_owned_or_not() {
    let body = String::from(r#"{"choices":[{"message":{"content":"hi"}}]}"#);
    let read = [
        read_reply(&body),
        read_reply(body.as_str()),
        read_reply(body.as_bytes()),
        read_reply(body.clone().into_bytes()),
        read_reply(body),
    ];
    for message in read {
        assert_eq!(message.unwrap().text(), "hi");
    }
}

#[test]
fn its_time_and_the_ids_of_calls_without_are_those_of_the_env() {
    let env = ManualEnv::new();
    let body = format!(r#"{{"choices":[{{"message":{{"tool_calls":[{CALL}}}]}}}}]}}"#);
    let message = RecordedReply::new(body).read(&env.shared()).unwrap();
    assert_eq!(message.timestamp, env.shared().now());
    assert!(
        message
            .tool_calls()
            .all(|call| !call.id.as_str().is_empty())
    );
}

#[test]
fn a_reply_that_broke_off_gives_its_error_and_what_had_come() {
    let cut = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"Let me see.\"}}],\"usage\":null}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",",
        "\"function\":{\"name\":\"getWeather\",\"arguments\":\"{\\\"ci\"}}]}}]}\n\n",
    );
    let broken = read_reply(cut).unwrap_err();
    assert_eq!(broken.error().kind, ModelErrorKind::TruncatedStream);
    assert!(broken.error().is_retryable());
    assert_eq!(broken.partial().text(), "Let me see.");
    assert_eq!(broken.partial().stop_reason, StopReason::Error);
    let call = broken.partial().tool_calls().next().unwrap();
    assert!(matches!(&call.arguments, ToolArguments::Unreadable { raw, .. } if &**raw == "{\"ci"));
    assert_eq!(broken.to_string(), broken.error().to_string());
    assert_eq!(
        broken.into_error().kind,
        ModelErrorKind::TruncatedStream,
        "it goes on as a ModelError"
    );
}

#[test]
fn a_failure_is_told_by_its_status_headers_and_body() {
    let env: Arc<dyn Env> = SystemEnv::shared();
    let refused = RecordedReply::new(r#"{"error":{"message":"Slow down."}}"#)
        .status(429)
        .header("retry-after", "7");
    let broken = refused.read(&env).unwrap_err();
    assert_eq!(broken.error().kind, ModelErrorKind::RateLimit);
    assert_eq!(broken.error().retry_after.unwrap().as_secs(), 7);
    assert!(broken.partial().content.is_empty());
    for (body, kind) in [
        ("<html>Bad gateway</html>", ModelErrorKind::Malformed),
        ("", ModelErrorKind::Malformed),
        (
            r#"{"error":{"message":"nope","code":401}}"#,
            ModelErrorKind::Auth,
        ),
    ] {
        assert_eq!(read_reply(body).unwrap_err().error().kind, kind, "{body}");
    }
}

#[test]
fn a_body_that_cannot_be_read_says_what_it_is() {
    for (body, why) in [
        (
            r#"{"choices":[{"message":{"content":"Hel"#,
            "the server's reply is cut: it ends before its JSON does: {",
        ),
        (r#"{"choices" 1}"#, "is not valid JSON"),
        ("[1,2]", "is no object"),
        ("<html>Bad gateway</html>", "is an HTML page"),
        ("nonsense", "neither JSON nor a stream of events"),
    ] {
        let told = read_reply(body).unwrap_err().to_string();
        assert!(told.contains(why), "{body}: {told}");
    }
}

#[test]
fn how_it_is_read_and_in_which_pieces_it_came_can_be_said() {
    let leaked = r#"{"choices":[{"message":{"content":"<tool_call>{\"name\":\"getWeather\",\"arguments\":{}}</tool_call>"},"finish_reason":"stop"}]}"#;
    let options = ReadOptions {
        offered: Arc::new(OfferedTools::new(["getWeather"])),
        recover_leaked_calls: true,
        ..ReadOptions::default()
    };
    let env: Arc<dyn Env> = SystemEnv::shared();
    let mut reply = RecordedReply::new(leaked).options(options);
    assert_eq!(reply.read(&env).unwrap().tool_calls().count(), 1);
    assert_eq!(read_reply(leaked).unwrap().tool_calls().count(), 0);
    // A reply is read again as often as one likes, whatever the pieces.
    reply.asked = Asked::Stream;
    reply.pieces = leaked.bytes().map(|byte| vec![byte]).collect();
    assert_eq!(reply.read(&env).unwrap().tool_calls().count(), 1);
}
