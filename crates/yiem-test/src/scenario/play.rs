//! How a script is played.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};
use yiem_agent::{
    Agent, AgentBuilder, ApprovalAnswer, BeforeToolCall, Outcome, OutputMode, Question, QueueKind,
    RunError,
};
use yiem_tools::Discovery;

use super::parse::{Act, Script, ScriptTool, UserAct, Where};
use super::place::{ScriptHook, ScriptJournal, ScriptSink, ScriptSource};
use super::{Played, ScriptError};
use crate::clock::PausedEnv;
use crate::model::ScriptedModel;
use crate::tool;
use crate::transcript::Events;

/// The longest that a script may take on its own clock.
const HOUR: Duration = Duration::from_secs(3600);

/// What a user waits for.
type Waited = Pin<Box<dyn Future<Output = Result<Outcome, RunError>> + Send>>;

pub(super) async fn play(script: &Script) -> Result<Played, ScriptError> {
    let model = ScriptedModel::new(script.replies.clone());
    let events = Events::new();
    let agent = builder(script, &model)
        .and_then(|builder| Ok(builder.listener(events.listener()).build()?))
        .map_err(|e| super::parse::problem(&e.to_string()))?;
    let start = Instant::now();
    let mut played = Played {
        events: Vec::new(),
        outcomes: Vec::new(),
        requests: Vec::new(),
        history: agent.history(),
        undelivered: Vec::new(),
        sent: Vec::new(),
        dropped: 0,
        breaches: Vec::new(),
        refused: Vec::new(),
        ended: true,
        took: Duration::ZERO,
    };
    for step in &script.steps {
        let began = Instant::now();
        let mut waited = begin(script, &agent, &step.what, &mut played);
        let mut acts = step.then.clone();
        acts.sort_by_key(|(when, _)| *when);
        for (when, act) in acts {
            let due = sleep_until(began + when);
            if let Some(outcome) = until(due, &mut waited).await {
                take(outcome, &step.what, &mut played);
            }
            do_act(&agent, act, &mut waited, &mut played).await;
        }
        if let Some(waited) = waited {
            match timeout(HOUR, waited).await {
                Ok(outcome) => take(outcome, &step.what, &mut played),
                Err(_) => played.ended = false,
            }
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

fn builder(script: &Script, model: &ScriptedModel) -> Result<AgentBuilder, yiem_core::Error> {
    let mut builder = Agent::builder(model.clone())
        .config(script.config.clone())
        .env(PausedEnv::shared());
    for (at, tool) in script.tools.iter().enumerate() {
        builder = match tool {
            ScriptTool::Own(tool) => builder.tool(tool.clone()),
            ScriptTool::Agent(name) => {
                let own = script.tools[..at].iter().filter_map(|tool| match tool {
                    ScriptTool::Own(tool) => Some(tool.clone()),
                    ScriptTool::Agent(_) => None,
                });
                let inner = Agent::builder(model.clone())
                    .config(script.config.clone())
                    .env(PausedEnv::shared())
                    .tools(own)
                    .build()?;
                builder.tool(inner.as_tool(name, "An agent."))
            }
        };
    }
    for (at, place) in &script.places {
        let place = Arc::clone(place);
        builder = match at {
            Where::Hook(point) => builder.hook(ScriptHook(*point, place)),
            Where::Sink(kind) => builder.sink(ScriptSink(kind.clone(), place)),
            Where::Journal => builder.journal(ScriptJournal(place)),
            Where::Source(name) => builder.discovery(Discovery::Eager).source(ScriptSource {
                name: name.clone(),
                place,
                tools: vec![Arc::new(tool::slow("far", Duration::from_secs(1), "far"))],
            }),
        };
    }
    let (refusals, questions) = (script.refusals.clone(), script.questions.clone());
    if !refusals.is_empty() || !questions.is_empty() {
        builder = builder.before_tool_call(move |view| {
            let name = &view.tool.name;
            let refusal = refusals.iter().find(|(tool, ..)| tool == name).cloned();
            let asked = questions.iter().find(|asked| asked.tool == *name).cloned();
            async move {
                Ok(match (refusal, asked) {
                    (Some((_, reason, terminate)), _) => {
                        BeforeToolCall::Refuse { reason, terminate }
                    }
                    (None, Some(asked)) => {
                        let question = Question::new(asked.question);
                        BeforeToolCall::Ask(match asked.within {
                            Some(within) => question.within(within),
                            None => question,
                        })
                    }
                    (None, None) => BeforeToolCall::Run,
                })
            }
        });
    }
    Ok(builder)
}

/// Does what the user does; gives what is waited for.
fn begin(script: &Script, agent: &Agent, what: &UserAct, played: &mut Played) -> Option<Waited> {
    match what {
        UserAct::Say(text) => {
            match agent.run(text.as_str()) {
                Ok(_) => played.sent.push(text.clone()),
                Err(error) => played.refused.push(error.to_string()),
            }
            None
        }
        UserAct::Prompt(text) => {
            let prompt = agent.prompt(text.as_str());
            Some(Box::pin(match &script.wanted {
                None => prompt.into_future(),
                Some(schema) => prompt.output_schema(schema.clone(), OutputMode::Tool),
            }))
        }
        UserAct::Continue => {
            let agent = agent.clone();
            Some(Box::pin(async move { agent.continue_run().await }))
        }
    }
}

/// Waits for a time; when what is waited for comes before it, gives that and waits on.
async fn until(
    due: tokio::time::Sleep,
    waited: &mut Option<Waited>,
) -> Option<Result<Outcome, RunError>> {
    let mut due = std::pin::pin!(due);
    let Some(waiting) = waited else {
        due.await;
        return None;
    };
    tokio::select! {
        biased;
        () = &mut due => None,
        outcome = waiting => {
            *waited = None;
            due.await;
            Some(outcome)
        }
    }
}

fn take(outcome: Result<Outcome, RunError>, what: &UserAct, played: &mut Played) {
    match outcome {
        Ok(outcome) => {
            if let UserAct::Prompt(text) = what {
                played.sent.push(text.clone());
            }
            played.outcomes.push(outcome);
        }
        Err(error) => played.refused.push(error.to_string()),
    }
}

async fn do_act(agent: &Agent, act: Act, waited: &mut Option<Waited>, played: &mut Played) {
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
            // What is waited for is waited for while the agent stops.
            let stopped = match waited {
                None => agent.stop().await,
                Some(waiting) => {
                    let stop = agent.stop();
                    let (stopped, outcome) = tokio::join!(stop, timeout(HOUR, waiting));
                    *waited = Some(match outcome {
                        Ok(outcome) => Box::pin(std::future::ready(outcome)),
                        Err(_) => Box::pin(std::future::pending()),
                    });
                    stopped
                }
            };
            played.undelivered.extend(stopped.undelivered);
            Ok(None)
        }
        Act::Drop => {
            played.dropped += usize::from(waited.take().is_some());
            Ok(None)
        }
        Act::Allow(args) => {
            let with = args.and_then(|args| args.as_object().cloned());
            let yes = with.map_or(ApprovalAnswer::Allow, ApprovalAnswer::AllowWith);
            answer(agent, yes, played);
            Ok(None)
        }
        Act::Deny(reason) => {
            answer(agent, ApprovalAnswer::deny(reason), played);
            Ok(None)
        }
    };
    match sent {
        Ok(Some(text)) => played.sent.push(text),
        Ok(None) => {}
        Err(error) => played.refused.push(error.to_string()),
    }
}

/// Answers the question that has been open for longest.
fn answer(agent: &Agent, answer: ApprovalAnswer, played: &mut Played) {
    let answered = agent
        .pending_approvals()
        .first()
        .is_some_and(|open| agent.answer(&open.id, answer));
    if !answered {
        played.refused.push("no question is open".to_owned());
    }
}
