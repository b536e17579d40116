//! Events as a stream: text as it comes, calls as they run.
//!
//! `cargo run -p yiem --example stream_events`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use std::time::Duration;

use yiem::prelude::*;
use yiem::{
    ChatEvent, ChatStream, Delivery, FunctionModel, MessageDelta, ModelInfo, StopReason, Usage,
};

/// A model that says its words one after another.
fn talker() -> FunctionModel {
    FunctionModel::streaming(ModelInfo::new("talker"), |_| {
        let words = "Streams come piece by piece."
            .split_inclusive(' ')
            .map(str::to_owned);
        let mut events: Vec<ChatEvent> = words.map(ChatEvent::Text).collect();
        events.push(ChatEvent::Finished {
            stop: StopReason::EndTurn,
            usage: Usage::new(3, 5),
        });
        ChatStream::unfold(events.into_iter(), |mut events| async move {
            tokio::time::sleep(Duration::from_millis(40)).await;
            Some((Ok(events.next()?), events))
        })
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let agent = Agent::builder(talker()).build()?;
    let mut run = agent.prompt("Tell me.").stream();
    while let Some(delivery) = run.next().await {
        let Delivery::Event(event) = delivery else {
            continue; // this reader was too slow, and was told how many it missed
        };
        match &event.kind {
            EventKind::MessageUpdate {
                delta: MessageDelta::Text { text },
            } => println!("{text}"),
            EventKind::AgentEnd { reason, .. } => println!("({reason:?})"),
            _ => {}
        }
    }
    let outcome = run.outcome().await?;
    println!("{outcome}");
    Ok(())
}
