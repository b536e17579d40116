//! `yiem wire`: cases on standard input.

use serde_json::{Value, json};

use crate::command::call_with_input;

#[test]
fn a_reply_is_decoded_with_all_keys() {
    let case = json!({
        "direction": "response",
        "input": {"choices": [{"message": {"content": "hi", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
        ]}, "finish_reason": "tool_calls"}]},
        "expect": {"text": "ignored"},
    });
    let done = call_with_input(["wire", "decode"], &case.to_string()).with_code(0);
    let read: Value = serde_json::from_str(&done.out).unwrap();
    for key in [
        "text",
        "reasoning",
        "tool_calls",
        "stop",
        "usage",
        "error",
        "error_message",
        "retryable",
        "retry_after_s",
        "keep",
    ] {
        assert!(read.get(key).is_some(), "{key}: {read}");
    }
    assert_eq!(read["text"], "hi");
    assert_eq!(read["stop"], "tool_calls");
    assert_eq!(read["tool_calls"][0]["arguments"], json!({"a": 1}));
}

#[test]
fn a_failure_of_the_server_is_decoded_too() {
    let case = json!({
        "direction": "response", "status": 429, "headers": {"Retry-After": "7"},
        "input": {"error": {"message": "slow down", "type": "rate_limit_error"}},
    });
    let done = call_with_input(["wire", "decode"], &case.to_string()).with_code(0);
    let read: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(read["error"], "rate_limit");
    assert_eq!(read["retry_after_s"], 7);
    assert_eq!(read["retryable"], true);
}

#[test]
fn a_conversation_is_encoded() {
    let case = json!({
        "direction": "request",
        "input": {
            "system": "Be brief.",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
            "settings": {"model": "m"},
        },
        "compat": {"content_as_string": true},
    });
    let done = call_with_input(["wire", "encode"], &case.to_string()).with_code(0);
    let body: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(body["model"], "m");
    assert_eq!(
        body["messages"][1],
        json!({"role": "user", "content": "hi"})
    );
}

#[test]
fn what_is_no_case_is_wrong_use() {
    for (direction, input) in [
        ("decode", "nonsense"),
        ("decode", "{}"),
        ("encode", "[]"),
        ("encode", ""),
    ] {
        let done = call_with_input(["wire", direction], input).with_code(2);
        done.only_line();
    }
}
