//! Approval: a person is asked before a tool runs, and answers from another task.
//!
//! `cargo run -p yiem --example approval`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

mod offline;

use std::time::Duration;

use serde_json::json;
use yiem::prelude::*;
use yiem::{ApprovalAnswer, BeforeToolCall, Delivery, Question};

/// Pays somebody.
#[tool]
async fn pay(to: String, amount: u32) -> Result<String> {
    Ok(format!("paid {amount} to {to}"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let model = offline::calling(vec![
        ("pay", json!({ "to": "Ann", "amount": 5 })),
        ("pay", json!({ "to": "Bob", "amount": 5000 })),
    ]);
    let agent = Agent::builder(model)
        .tool(pay)
        .before_tool_call(|call| async move {
            let to = call.args["to"].as_str().unwrap_or_default();
            let text = format!("Pay {} to {to}?", call.args["amount"]);
            Ok(BeforeToolCall::Ask(
                Question::new(text).within(Duration::from_secs(60)),
            ))
        })
        .build()?;
    let mut events = agent.subscribe();
    agent.run("Pay what we owe.")?;
    // The person: here they say yes to small amounts.
    while let Some(delivery) = events.next().await {
        let Delivery::Event(event) = delivery else {
            continue;
        };
        match &event.kind {
            EventKind::ApprovalRequested {
                approval_id,
                question,
                args,
                ..
            } => {
                let yes = args["amount"].as_u64().is_some_and(|amount| amount < 100);
                println!("{question} {}", if yes { "yes" } else { "no" });
                let answer = if yes {
                    ApprovalAnswer::Allow
                } else {
                    ApprovalAnswer::deny("That is too much.")
                };
                agent.answer(approval_id, answer);
            }
            EventKind::AgentEnd { .. } => break,
            _ => {}
        }
    }
    println!("{}", agent.take_response().await?.ok()?);
    Ok(())
}
