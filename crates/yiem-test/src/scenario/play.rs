//! How a script is played.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};
use yiem_agent::{Agent, BeforeToolCall, QueueKind};

use super::parse::{Act, Script, UserAct};
use super::{Played, ScriptError};
use crate::clock::PausedEnv;
use crate::model::ScriptedModel;
use crate::transcript::Events;

/// The longest that a script may take on its own clock.
const HOUR: Duration = Duration::from_secs(3600);

pub(super) async fn play(script: &Script) -> Result<Played, ScriptError> {
    let model = ScriptedModel::new(script.replies.clone());
    let events = Events::new();
    let refusals = script.refusals.clone();
    let mut builder = Agent::builder(model.clone())
        .config(script.config.clone())
        .tools(script.tools.clone())
        .env(PausedEnv::shared())
        .listener(events.listener());
    if !refusals.is_empty() {
        builder = builder.before_tool_call(move |view| {
            let refusal = refusals
                .iter()
                .find(|(name, ..)| *name == view.tool.name)
                .cloned();
            async move {
                Ok(match refusal {
                    Some((_, reason, terminate)) => BeforeToolCall::Refuse { reason, terminate },
                    None => BeforeToolCall::Run,
                })
            }
        });
    }
    let agent = builder
        .build()
        .map_err(|e| super::parse::problem(&e.to_string()))?;
    let start = Instant::now();
    let mut played = Played {
        events: Vec::new(),
        outcomes: Vec::new(),
        requests: Vec::new(),
        history: agent.history(),
        undelivered: Vec::new(),
        sent: Vec::new(),
        breaches: Vec::new(),
        refused: Vec::new(),
        ended: true,
        took: Duration::ZERO,
    };
    for step in &script.steps {
        let began = Instant::now();
        let continuing = match &step.what {
            UserAct::Say(text) => {
                match agent.run(text.as_str()) {
                    Ok(_) => played.sent.push(text.clone()),
                    Err(error) => played.refused.push(error.to_string()),
                }
                None
            }
            UserAct::Continue => {
                let agent = agent.clone();
                Some(Box::pin(async move { agent.continue_run().await }))
            }
        };
        let acts = async {
            let mut acts = step.then.clone();
            acts.sort_by_key(|(when, _)| *when);
            for (when, act) in acts {
                sleep_until(began + when).await;
                do_act(&agent, act, &mut played).await;
            }
        };
        let outcome = match continuing {
            None => {
                acts.await;
                None
            }
            Some(continuing) => {
                let ((), outcome) = tokio::join!(acts, timeout(HOUR, continuing));
                Some(outcome)
            }
        };
        match outcome {
            None => {}
            Some(Ok(Ok(outcome))) => played.outcomes.push(outcome),
            Some(Ok(Err(error))) => played.refused.push(error.to_string()),
            Some(Err(_)) => played.ended = false,
        }
        if timeout(HOUR, agent.wait_idle()).await.is_err() {
            played.ended = false;
        }
        while let Ok(Ok(outcome)) = timeout(Duration::ZERO, agent.take_response()).await {
            played.outcomes.push(outcome);
        }
    }
    // What does what it should not does it now.
    tokio::time::sleep(Duration::from_secs(60)).await;
    played.took = start.elapsed();
    played.events = events.take();
    played.requests = model.requests();
    played.breaches = model.take_breaches();
    played.history = agent.history();
    played.undelivered.extend(agent.queued(QueueKind::Steering));
    played.undelivered.extend(agent.queued(QueueKind::FollowUp));
    Ok(played)
}

async fn do_act(agent: &Agent, act: Act, played: &mut Played) {
    let sent = match act {
        Act::Steer(text) => agent.run(text.as_str()).map(|_| Some(text)),
        Act::FollowUp(text) => agent.follow_up(text.as_str()).map(|()| Some(text)),
        Act::Abort => {
            agent.abort();
            Ok(None)
        }
        Act::Clear => {
            played.undelivered.extend(agent.clear_queues());
            Ok(None)
        }
        Act::Stop => {
            played.undelivered.extend(agent.stop().await.undelivered);
            Ok(None)
        }
    };
    match sent {
        Ok(Some(text)) => played.sent.push(text),
        Ok(None) => {}
        Err(error) => played.refused.push(error.to_string()),
    }
}
