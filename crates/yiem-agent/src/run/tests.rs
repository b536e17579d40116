//! The pure run, driven by hand: no runtime, no clock, no task.

use serde_json::json;
use yiem_core::{
    AssistantContent, AssistantMessage, ChatEvent, ModelInfo, Timestamp, ToolCall, ToolOutput,
};

use super::*;

struct World {
    model: ModelInfo,
    ids: std::cell::Cell<u32>,
}

impl RunFacts for World {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1)
    }
    fn new_call_id(&self) -> ToolCallId {
        self.ids.set(self.ids.get() + 1);
        format!("call_{}", self.ids.get()).into()
    }
    fn random(&self) -> f64 {
        1.0
    }
    fn parallel(&self, tool: &str) -> Option<bool> {
        (tool == "alone").then_some(false)
    }
    fn model(&self) -> &ModelInfo {
        &self.model
    }
}

fn world() -> World {
    World {
        model: ModelInfo::new("m"),
        ids: std::cell::Cell::new(0),
    }
}

fn run() -> Run {
    let rules = RunRules::new(Arc::new(AgentConfig::default()));
    Run::new("run_1".into(), rules, History::new(), None)
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::user(text, Timestamp::default()))
}

fn reply(calls: &[&str], text: &str) -> Input {
    let mut blocks = vec![AssistantContent::text(text)];
    blocks.extend(calls.iter().map(|name| {
        let args = json!({}).as_object().cloned().unwrap_or_default();
        AssistantContent::ToolCall(ToolCall::new("", *name, args))
    }));
    let message = AssistantMessage::new(blocks, Timestamp::default());
    Input::Model(ChatEvent::Message(Box::new(message)))
}

/// The requests that are due, effects left out.
fn requests(run: &mut Run) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(step) = run.next_step() {
        if !step.is_effect() || matches!(step, Step::Done) {
            all.push(format!("{step:?}"));
        }
    }
    all
}

#[test]
fn a_run_is_driven_by_hand() {
    let (mut run, world) = (run(), world());
    run.handle(Input::Start(vec![user("hi")]), &world);
    assert_eq!(requests(&mut run), ["CallModel { attempt: 1 }"]);
    run.handle(reply(&["a", "b"], ""), &world);
    // Prepared one after another, then begun at once.
    assert_eq!(requests(&mut run), ["Prepare(0)"]);
    run.handle(
        Input::Prepared {
            call: 0,
            args: Arc::default(),
        },
        &world,
    );
    assert_eq!(requests(&mut run), ["Prepare(1)"]);
    run.handle(
        Input::Prepared {
            call: 1,
            args: Arc::default(),
        },
        &world,
    );
    assert_eq!(requests(&mut run), ["Execute(0)", "Execute(1)"]);
    run.handle(
        Input::Settled {
            call: 1,
            output: Box::new(ToolOutput::text("B")),
        },
        &world,
    );
    assert_eq!(requests(&mut run), Vec::<String>::new());
    run.handle(
        Input::Settled {
            call: 0,
            output: Box::new(ToolOutput::text("A")),
        },
        &world,
    );
    assert_eq!(requests(&mut run), ["Take(Steering)"]);
    run.handle(Input::Taken(Vec::new()), &world);
    assert_eq!(requests(&mut run), ["CallModel { attempt: 1 }"]);
    run.handle(reply(&[], "done"), &world);
    assert_eq!(requests(&mut run), ["CountQueues"]);
    assert!(run.outcome().is_none() && !run.is_ending());
    run.handle(
        Input::Waiting {
            steering: 0,
            follow_ups: 0,
        },
        &world,
    );
    assert_eq!(requests(&mut run), ["Done"]);
    let outcome = run.outcome().unwrap();
    assert_eq!(
        (outcome.text.as_str(), outcome.turns, outcome.tool_calls),
        ("done", 2, 2)
    );
    let results: Vec<_> = outcome
        .transcript
        .iter()
        .filter_map(|m| m.as_tool_result().map(|r| r.text()))
        .collect();
    assert_eq!(results, ["A", "B"]);
}

#[test]
fn late_and_foreign_answers_change_nothing() {
    let (mut run, world) = (run(), world());
    run.handle(Input::Start(vec![user("hi")]), &world);
    requests(&mut run);
    let inputs = || {
        vec![
            Input::Waited,
            Input::Settled {
                call: 0,
                output: Box::new(ToolOutput::text("x")),
            },
            Input::Prepared {
                call: 3,
                args: Arc::default(),
            },
            Input::Updated {
                call: 0,
                partial: json!(1),
            },
            Input::Taken(Vec::new()),
            Input::GraceOver,
            Input::Waiting {
                steering: 1,
                follow_ups: 1,
            },
        ]
    };
    for input in inputs() {
        run.handle(input, &world);
        assert_eq!(requests(&mut run), Vec::<String>::new());
    }
    run.handle(Input::Cut(EndReason::Aborted), &world);
    run.handle(Input::Cut(EndReason::Aborted), &world);
    assert_eq!(requests(&mut run), ["Done"]);
    run.handle(reply(&["a"], "late"), &world);
    for input in inputs() {
        run.handle(input, &world);
    }
    assert_eq!(requests(&mut run), Vec::<String>::new());
    assert_eq!(run.outcome().unwrap().transcript.len(), 1);
}

#[test]
fn a_cut_keeps_effects_and_drops_requests() {
    let (mut run, world) = (run(), world());
    run.handle(Input::Start(vec![user("hi")]), &world);
    // Nothing was done yet: the events of the beginning are told, the model is not asked.
    run.handle(Input::Cut(EndReason::Aborted), &world);
    let mut told = 0;
    while let Some(step) = run.next_step() {
        match step {
            Step::Emit(event) => {
                assert_eq!(event.seq, told);
                told += 1;
            }
            Step::Done => {}
            other => panic!("{other:?}"),
        }
    }
    // agentStart, turnStart, the message's two, turnEnd, agentEnd.
    assert_eq!(told, 6);
}

#[test]
fn a_call_whose_start_was_told_and_that_never_began_gets_its_end() {
    let (mut run, world) = (run(), world());
    run.handle(Input::Start(vec![user("hi")]), &world);
    run.handle(reply(&["a"], ""), &world);
    requests(&mut run);
    run.handle(
        Input::Prepared {
            call: 0,
            args: Arc::default(),
        },
        &world,
    );
    run.handle(Input::Cut(EndReason::Aborted), &world);
    let mut kinds = Vec::new();
    while let Some(step) = run.next_step() {
        match step {
            Step::Emit(event) => kinds.push(event.kind),
            Step::Execute(_) => panic!("it is run after a cut"),
            _ => {}
        }
    }
    assert!(matches!(kinds[0], EventKind::ToolExecutionStart { .. }));
    assert!(matches!(
        kinds[1],
        EventKind::ToolExecutionEnd { is_error: true, .. }
    ));
    assert!(matches!(kinds.last(), Some(EventKind::AgentEnd { .. })));
}
