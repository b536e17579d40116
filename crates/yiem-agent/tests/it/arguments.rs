//! What a model gives as arguments, and what becomes of the call (T-4, O-4, R-2).

use std::sync::Arc;

use expect_test::expect;
use serde_json::json;
use yiem_agent::{Agent, PrepareNextTurn};
use yiem_core::{CancelToken, LoadedTools, SourceError, ToolSource, async_trait};
use yiem_test::{PausedEnv, Reply, ScriptedModel, tool};

use crate::{check_calls, within};

#[test]
fn v07_missing_two() {
    check_calls(
        r#"
tool echo echo
model: call echo {}
model: say "sorry"
user: hi
"#,
        expect![[r#"
              toolCallRejected call_1 invalidArguments "Missing required arguments: value"
              messageEnd toolResult call_1 error "Missing required arguments: value"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "sorry"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn unreadable_arguments_are_quoted_to_the_model() {
    check_calls(
        r#"
tool echo echo
model: raw echo "{\"value\": "
model: say "sorry"
user: hi
"#,
        expect![[r#"
              toolCallRejected call_1 unreadableArguments "The arguments of this call could not be read: the arguments are not valid JSON: EOF while parsing a value at line 1 column 9. What came: {\"value\": \nMake the call again with a JSON object as arguments."
              messageEnd toolResult call_1 error "The arguments of this call could not be read: the arguments are not valid JSON: EOF while parsing a value at line 1 column 9. What came: {\"value\": \nMake the call again with a JSON object as arguments."
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "sorry"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn empty_arguments_are_an_empty_object() {
    check_calls(
        r#"
tool a slow 1s "ok"
model: raw a ""
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 a {}
              toolExecutionEnd call_1 ok "ok"
              messageEnd toolResult call_1 ok "ok"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn v03_wrong_type_lists_path_and_reason() {
    check_calls(
        r#"
tool echo echo
model: call echo {"value":{"n":1}}
model: say "sorry"
user: hi
"#,
        expect![[r#"
              toolCallRejected call_1 invalidArguments "Invalid arguments, 1 problem:\n- value: got {\"n\":1}; expected a string\nReceived: {\"value\":{\"n\":1}}"
              messageEnd toolResult call_1 error "Invalid arguments, 1 problem:\n- value: got {\"n\":1}; expected a string\nReceived: {\"value\":{\"n\":1}}"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "sorry"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

#[test]
fn v02_number_becomes_the_wanted_string() {
    check_calls(
        r#"
tool echo echo
model: call echo {"value":42}
model: say "done"
user: hi
"#,
        expect![[r#"
              toolExecutionStart call_1 echo {"value":"42"}
              toolExecutionEnd call_1 ok "42"
              messageEnd toolResult call_1 ok "42"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "done"
            history u a t a
            model asked 2 times
        "#]],
    );
}

#[test]
fn l28_unknown_tool() {
    check_calls(
        r#"
tool echo echo
model: call nope {}
model: say "sorry"
user: hi
"#,
        expect![[r#"
              toolCallRejected call_1 unknownTool "Tool nope not found"
              messageEnd toolResult call_1 error "Tool nope not found"
            turnEnd 1, 1 result
            turnEnd 2
            agentEnd completed
            outcome completed "sorry"
            history u a t! a
            model asked 2 times
        "#]],
    );
}

/// A source with one tool, `getWeather`.
struct Weather;

#[async_trait]
impl ToolSource for Weather {
    fn name(&self) -> &str {
        "server"
    }
    fn generation(&self) -> u64 {
        1
    }
    async fn load(&self, _: &CancelToken) -> Result<LoadedTools, SourceError> {
        let tool = tool::echo().define(|d| d.name = "getWeather".to_owned());
        Ok(LoadedTools {
            generation: 1,
            tools: vec![Arc::new(tool)],
            ..LoadedTools::default()
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_not_offered_yet_is_had_by_a_model_that_does_what_it_is_told() {
    let model = ScriptedModel::new([
        Reply::call("getWeather", json!({ "value": "Tokyo" })),
        Reply::call("listTools", json!({})),
        Reply::call("getWeather", json!({ "value": "Tokyo" })),
        Reply::say("done"),
    ]);
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .source(Weather)
        .build()
        .unwrap();
    let outcome = within(agent.prompt("hi")).await.unwrap();
    let results: Vec<_> = (outcome.transcript.iter())
        .filter_map(|m| m.as_tool_result().map(|r| (r.is_error, r.text())))
        .collect();
    let (refused, text) = &results[0];
    assert!(*refused);
    assert_eq!(
        text.as_str(),
        "Tool getWeather not found. Not all tools are offered yet: call listTools to see the others."
    );
    assert!(!results[1].0 && !results[2].0);
    assert_eq!(results[2].1, "Tokyo");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_a_hook_withholds_is_proposed_to_nobody() {
    let model = ScriptedModel::new([
        Reply::call("echo", json!({ "value": "x" })),
        Reply::call("echo", json!({ "value": "x" })).and_call("ecko", json!({})),
        Reply::say("done"),
    ]);
    let agent = Agent::builder(model)
        .env(PausedEnv::shared())
        .tool(tool::echo())
        .tool(tool::never("other"))
        .prepare_next_turn(|_| async { Ok(PrepareNextTurn::keep().tools(["other"])) })
        .build()
        .unwrap();
    let outcome = within(agent.prompt("hi")).await.unwrap();
    let results: Vec<_> = (outcome.transcript.iter())
        .filter_map(|m| m.as_tool_result().map(|r| r.text().to_string()))
        .collect();
    assert_eq!(
        results[1..],
        [
            "Tool echo not found. It exists but cannot be used in this turn.",
            "Tool ecko not found",
        ]
    );
}
