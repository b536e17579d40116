//! T's "Complete Lifecycle Example", event for event and message for message.

use expect_test::expect;
use serde_json::json;
use yiem_agent::{Agent, ToolExecution};
use yiem_core::{ToolDefinition, ToolOutput};
use yiem_test::{Events, PausedEnv, Reply, ScriptedModel, TestTool, transcript};

fn get_weather() -> TestTool {
    TestTool::new("getWeather", |args, _| async move {
        Ok(ToolOutput::text(format!(
            "Weather in {}: Sunny, 22°C",
            args["city"].as_str().unwrap_or_default()
        )))
    })
    .define(|d: &mut ToolDefinition| d.label = "Weather Lookup".to_owned())
    .schema(json!({
        "type": "object",
        "properties": {"city": {"type": "string", "description": "City name"}},
        "required": ["city"],
    }))
}

#[tokio::test(start_paused = true)]
async fn lifecycle_example_of_t_event_for_event() {
    for execution in [ToolExecution::Sequential, ToolExecution::Parallel] {
        let model = ScriptedModel::new([
            Reply::call("getWeather", json!({"city": "Tokyo"})).whole(),
            Reply::say("The weather in Tokyo is sunny, 22°C.").whole(),
        ]);
        let events = Events::new();
        let agent = Agent::builder(model.clone())
            .system("You are a helpful assistant.")
            .tool(get_weather())
            .tool_execution(execution)
            .env(PausedEnv::shared())
            .listener(events.listener())
            .build()
            .unwrap();
        agent.run("What's the weather in Tokyo?").unwrap();
        let outcome = agent.take_response().await.unwrap();
        assert_eq!(outcome.text(), "The weather in Tokyo is sunny, 22°C.");
        expect![[r#"
            agentStart
            turnStart 1
              messageStart user
              messageEnd user "What's the weather in Tokyo?"
              messageStart assistant
              messageEnd assistant call call_1 getWeather {"city":"Tokyo"} [tool_calls]
              toolExecutionStart call_1 getWeather {"city":"Tokyo"}
              toolExecutionEnd call_1 ok "Weather in Tokyo: Sunny, 22°C"
              messageStart toolResult
              messageEnd toolResult call_1 ok "Weather in Tokyo: Sunny, 22°C"
            turnEnd 1, 1 result
            turnStart 2
              messageStart assistant
              messageEnd assistant "The weather in Tokyo is sunny, 22°C." [end_turn]
            turnEnd 2
            agentEnd completed
        "#]]
        .assert_eq(&events.transcript());
        expect![[r#"
            user "What's the weather in Tokyo?"
            assistant call call_1 getWeather {"city":"Tokyo"} [tool_calls]
            toolResult call_1 ok "Weather in Tokyo: Sunny, 22°C"
            assistant "The weather in Tokyo is sunny, 22°C." [end_turn]
        "#]]
        .assert_eq(&transcript::of_messages(outcome.transcript.iter()));
    }
}
