//! Answers of a wanted shape, and agents as tools (R-13, R-14).

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use yiem_agent::{Agent, EventKind, OutputMode, RunError};
use yiem_test::{Events, PausedEnv, Reply, ScriptedModel, tool};

use crate::within;

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Trip {
    city: String,
    days: u32,
}

fn agent(model: &ScriptedModel) -> Agent {
    Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .tool(tool::echo())
        .build()
        .unwrap()
}

fn tokyo() -> Trip {
    Trip {
        city: "Tokyo".to_owned(),
        days: 2,
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_comes_by_the_final_tool_beside_other_tools() {
    let model = ScriptedModel::new([
        Reply::call("echo", json!({"value": "x"})),
        Reply::call("final_answer", json!({"city": "Tokyo", "days": 2})),
    ]);
    let agent = agent(&model);
    let typed = within(agent.prompt("plan").output::<Trip>()).await.unwrap();
    assert_eq!(typed.value, tokyo());
    assert_eq!(
        typed.outcome.output,
        Some(json!({"city": "Tokyo", "days": 2}))
    );
    let names: Vec<_> = model.requests()[0]
        .tools
        .iter()
        .map(|t| t.name.clone())
        .collect();
    assert_eq!(names, ["echo", "final_answer"]);
    // The next run is not asked for it.
    model.push(Reply::say("hi"));
    within(agent.prompt("hi")).await.unwrap();
    assert_eq!(model.requests()[2].tools.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_answer_goes_back_a_bounded_number_of_times() {
    let wrong = || Reply::call("final_answer", json!({"city": "Tokyo", "days": "many"}));
    let model = ScriptedModel::new([
        wrong(),
        wrong(),
        Reply::call("final_answer", json!({"city": "Tokyo", "days": 2})),
    ]);
    let typed = within(agent(&model).prompt("plan").output::<Trip>())
        .await
        .unwrap();
    assert_eq!(typed.days, 2);
    let result = typed
        .outcome
        .messages()
        .nth(2)
        .unwrap()
        .as_tool_result()
        .unwrap()
        .text();
    assert!(result.contains("days"), "{result}");

    let model = ScriptedModel::new([wrong(), wrong(), wrong(), wrong()]);
    let error = within(agent(&model).prompt("plan").output::<Trip>())
        .await
        .unwrap_err();
    assert!(matches!(error, RunError::Output { .. }), "{error}");
    assert_eq!(model.calls(), 3);
    assert!(error.outcome().unwrap().transcript.len() > 3);
}

#[tokio::test(start_paused = true)]
async fn an_answer_as_text_is_taken_if_it_fits_and_asked_for_again_if_not() {
    let model = ScriptedModel::new([
        Reply::say("Two days in Tokyo!"),
        Reply::say("```json\n{\"city\": \"Tokyo\", \"days\": 2}\n```"),
    ]);
    let typed = within(agent(&model).prompt("plan").output::<Trip>())
        .await
        .unwrap();
    assert_eq!(typed.value, tokyo());
    assert!(
        typed
            .outcome
            .messages()
            .nth(2)
            .unwrap()
            .as_user()
            .unwrap()
            .text()
            .contains("final_answer")
    );
}

#[tokio::test(start_paused = true)]
async fn by_response_format_the_schema_goes_with_the_request() {
    let model = ScriptedModel::new([Reply::say("{\"city\": \"Tokyo\", \"days\": 2}")]);
    let typed = within(
        agent(&model)
            .prompt("plan")
            .output::<Trip>()
            .by_response_format(),
    )
    .await
    .unwrap();
    assert_eq!(typed.value, tokyo());
    let request = &model.requests()[0];
    assert!(request.options.response_format.is_some());
    assert_eq!(request.tools.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn shapes_that_are_no_objects_are_wrapped_for_the_model_alone() {
    let model = ScriptedModel::new([Reply::call("final_answer", json!({"answer": [1, 2, 3]}))]);
    let typed = within(agent(&model).prompt("count").output::<Vec<u32>>())
        .await
        .unwrap();
    assert_eq!(typed.value, [1, 2, 3]);
    let model = ScriptedModel::new([Reply::say("[4, 5]")]);
    let typed = within(agent(&model).prompt("count").output::<Vec<u32>>())
        .await
        .unwrap();
    assert_eq!(typed.value, [4, 5]);
    let bad = json!({"type": "nonsense"});
    let error = within(
        agent(&model)
            .prompt("x")
            .output_schema(bad, OutputMode::Tool),
    )
    .await;
    assert!(matches!(error, Err(RunError::Schema { .. })));
}

fn sub_agent(model: &ScriptedModel, own: yiem_test::TestTool) -> Agent {
    Agent::builder(model.clone())
        .env(PausedEnv::shared())
        .tool(own)
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_a_tool_its_events_are_updates_and_its_tokens_are_added_apart() {
    let inner = ScriptedModel::new([
        Reply::call("echo", json!({"value": "deep"})).usage(10, 1),
        Reply::say("found it").usage(20, 2),
    ]);
    let outer = ScriptedModel::new([
        Reply::call("research", json!({"prompt": "look"})).usage(1, 1),
        Reply::say("done").usage(2, 2),
    ]);
    let events = Events::new();
    let agent = Agent::builder(outer)
        .env(PausedEnv::shared())
        .tool(sub_agent(&inner, tool::echo()).as_tool("research", "Finds things out."))
        .listener(events.listener())
        .build()
        .unwrap();
    let outcome = within(agent.prompt("hi")).await.unwrap();
    let result = outcome.messages().nth(2).unwrap().as_tool_result().unwrap();
    assert_eq!(
        (result.text().as_str(), result.details["end"].as_str()),
        ("found it", Some("completed"))
    );
    assert_eq!(
        (outcome.usage.all(), outcome.tool_usage.all()),
        (Some(6), Some(33))
    );
    let updates: Vec<String> = events
        .all()
        .iter()
        .filter_map(|e| match &e.kind {
            EventKind::ToolExecutionUpdate { partial_result, .. } => {
                partial_result["type"].as_str().map(str::to_owned)
            }
            _ => None,
        })
        .collect();
    assert_eq!(updates.first().map(String::as_str), Some("agentStart"));
    assert_eq!(updates.last().map(String::as_str), Some("agentEnd"));
    assert!(updates.iter().any(|u| u == "toolExecutionEnd"));
    assert_eq!(
        inner.requests()[0]
            .messages
            .last()
            .unwrap()
            .as_user()
            .unwrap()
            .text(),
        "look"
    );
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_sub_agent_run_at_once_and_the_callers_abort_ends_them() {
    let inner = ScriptedModel::answering(|r| {
        if r.messages.last().unwrap().as_tool_result().is_some() {
            Reply::say("ok")
        } else {
            Reply::call("slow", json!({}))
        }
    });
    let slow = tool::slow("slow", Duration::from_secs(10), "ok");
    let sub = sub_agent(&inner, slow).as_tool("research", "Finds things out.");
    let two = || {
        Reply::call("research", json!({"prompt": "a"})).and_call("research", json!({"prompt": "b"}))
    };
    let outer = ScriptedModel::new([two(), Reply::say("done"), two(), Reply::say("never")]);
    let agent = Agent::builder(outer)
        .env(PausedEnv::shared())
        .tool(sub)
        .build()
        .unwrap();
    let start = tokio::time::Instant::now();
    within(agent.prompt("hi")).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(10));
    agent.run("again").unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let start = tokio::time::Instant::now();
    agent.abort();
    let outcome = within(agent.take_response()).await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
    let result = outcome.messages().nth(2).unwrap().as_tool_result().unwrap();
    assert!(
        result.is_error && result.details["end"] == "aborted",
        "{result:?}"
    );
}
