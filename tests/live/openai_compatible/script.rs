//! aimock plays a conversation of several turns, strictly: what it does not expect is an error.

use serde_json::json;
use yiem::prelude::*;
use yiem_tests::{RunningServer, live};

use super::{get_weather, model};

#[tokio::test(flavor = "multi_thread")]
async fn a_scripted_conversation_is_played_to_its_end() {
    let Some(servers) = live("openai_compatible::script") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("fixture.json");
    let fixtures = json!({"fixtures": [
        {"match": {"toolCallId": "call_weather"}, "response": {"content": "In Tokyo it is sunny, 22°C."}},
        {"match": {"userMessage": "weather in Tokyo"}, "response": {"toolCalls": [
            {"id": "call_weather", "name": "get_weather", "arguments": {"city": "Tokyo"}}
        ]}},
        {"match": {"userMessage": "thanks"}, "response": {"content": "You are welcome."}},
    ]});
    std::fs::write(&script, fixtures.to_string()).expect("a file");
    let port = RunningServer::free_port();
    let mut command = servers.node("aimock/node_modules/.bin/llmock");
    command
        .args(["-p", &port.to_string(), "--strict", "-f"])
        .arg(&script);
    let _server = RunningServer::listening(&mut command, port);
    let agent = Agent::builder(model(port))
        .tool(get_weather)
        .build()
        .expect("an agent");
    let outcome = agent
        .prompt("What's the weather in Tokyo?")
        .await
        .expect("a run");
    assert_eq!(outcome.text, "In Tokyo it is sunny, 22°C.", "{outcome:?}");
    assert_eq!((outcome.turns, outcome.tool_calls), (2, 1));
    let outcome = agent.prompt("thanks").await.expect("a run");
    assert_eq!(outcome.text, "You are welcome.", "{outcome:?}");
}
