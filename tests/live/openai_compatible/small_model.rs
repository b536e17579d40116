//! A real model, SmolLM2 with 135 million parameters, behind llama.cpp's own server.
//!
//! It is very small: what is checked is that its call is valid, run and answered, not what it says.

use std::path::Path;
use std::time::Duration;

use yiem::openai::Preset;
use yiem::prelude::*;
use yiem_core::{ChatOptions, Message, ToolChoice};
use yiem_tests::{RunningServer, Servers, live};

use super::{config, get_weather};

fn start(servers: &Servers, port: u16) -> RunningServer {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers");
    let mut command = std::process::Command::new(servers.file("llama/bin/python"));
    command
        .arg(scripts.join("llama_serve.py"))
        .arg(port.to_string())
        .arg(scripts.join("llama_chat_template.jinja"));
    RunningServer::listening(&mut command, port)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_model_calls_a_tool_and_answers() {
    let Some(servers) = live("openai_compatible::small_model") else {
        return;
    };
    let port = RunningServer::free_port();
    let _server = start(&servers, port);
    let model = config(port)
        .model("smollm2")
        .preset(Preset::LlamaCpp)
        .build()
        .expect("a model");
    let agent = Agent::builder(model)
        .system("You are a helpful assistant.")
        .tool(get_weather)
        .options(ChatOptions {
            max_tokens: Some(96),
            temperature: Some(0.0),
            parallel_tool_calls: Some(false),
            ..ChatOptions::default()
        })
        // With `auto` this model never calls; afterwards it may only answer.
        .before_model_call(|view| async move {
            let called = view
                .request
                .messages
                .iter()
                .any(|m| matches!(**m, Message::ToolResult(_)));
            let mut request = view.request.clone();
            let mut options = (*request.options).clone();
            options.tool_choice = Some(if called {
                ToolChoice::None
            } else {
                ToolChoice::Required
            });
            request.options = std::sync::Arc::new(options);
            Ok(yiem::BeforeModelCall::Replace(Box::new(request)))
        })
        .max_turns(4)
        .build()
        .expect("an agent");
    let asked = agent.prompt("What is the weather in Paris?");
    let outcome = tokio::time::timeout(Duration::from_secs(120), async { asked.await })
        .await
        .expect("an answer in time")
        .expect("a run");
    assert!(outcome.is_ok(), "{outcome:?}");
    assert!(!outcome.text.trim().is_empty(), "{outcome:?}");
    let results: Vec<_> = outcome
        .messages()
        .filter_map(|m| m.as_tool_result())
        .collect();
    assert!(!results.is_empty(), "{outcome:?}");
    assert!(
        results
            .iter()
            .all(|result| !result.is_error && result.text().contains("Sunny")),
        "{outcome:?}"
    );
    assert!(
        outcome.usage.output.is_some_and(|tokens| tokens > 0),
        "{outcome:?}"
    );
}
