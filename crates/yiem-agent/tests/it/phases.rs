//! Every place where a run may be, and everything that may happen there.
//!
//! A phase is a script that is in one place from its first second on; an act comes at the second.
//! Whatever it is: the invariants hold, the run ends in bounded time, the next prompt works.

use std::time::Duration;

use yiem_agent::{EndKind, EventKind};
use yiem_test::{Played, Scenario};

use crate::invariants;

/// A place in a run, and the lines that bring a run there for a while.
struct Phase {
    name: &'static str,
    lines: &'static str,
    /// How long an abort may take here.
    abort_takes: Duration,
}

const AT_ONCE: Duration = Duration::ZERO;
const GRACE: Duration = Duration::from_secs(5);

/// Places that last for ten seconds from the beginning, or for ever.
const PHASES: &[Phase] = &[
    Phase {
        name: "before the first piece of a reply",
        lines: "model: say \"x\" & after 10s",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "between two pieces",
        lines: "model: say \"x\" \"y\" & every 10s",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in a reply that hangs",
        lines: "model: say \"x\" & hang",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "waiting for a retry",
        lines: "model: fail server \"busy\" 10s\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in transform_context",
        lines: "hook transform-context slow 10s time 1\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in before_model_call",
        lines: "hook before-model slow 10s time 1\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in should_stop_after_turn",
        lines: "hook stop-after-turn slow 10s time 1\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in prepare_next_turn",
        lines: "hook next-turn slow 10s time 1\ntool echo echo\nmodel: call echo {\"value\":\"x\"}\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in before_tool_call",
        lines: "hook before-call slow 10s time 1\ntool echo echo\nmodel: call echo {\"value\":\"x\"}\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in before_tool_call of the second of three",
        lines: "hook before-call slow 10s time 2\ntool echo echo\nmodel: call echo {\"value\":\"x\"} & call echo {\"value\":\"y\"} & call echo {\"value\":\"z\"}\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in before_tool_call of the second of three, one after another",
        lines: "set sequential\nhook before-call slow 10s time 2\ntool echo echo\nmodel: call echo {\"value\":\"x\"} & call echo {\"value\":\"y\"} & call echo {\"value\":\"z\"}\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in a call that listens",
        lines: "tool slow slow 10s \"done\"\nmodel: call slow {}\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in a call that does not listen",
        lines: "tool deaf deaf 10s \"done\"\nmodel: call deaf {}\nmodel: say \"x\"",
        abort_takes: GRACE,
    },
    Phase {
        name: "in a call that never ends",
        lines: "tool never never\nmodel: call never {}\nmodel: say \"x\"",
        abort_takes: GRACE,
    },
    Phase {
        name: "in two calls at once, one deaf, with a third that waits",
        lines: "set max-parallel 2\ntool slow slow 10s \"done\"\ntool deaf deaf 10s \"done\"\nmodel: call slow {} & call deaf {} & call slow {\"n\":3}\nmodel: say \"x\"",
        abort_takes: GRACE,
    },
    Phase {
        name: "in a call that tells of its progress",
        lines: "tool up updates 20 500ms\nmodel: call up {}\nmodel: say \"x\"",
        abort_takes: GRACE,
    },
    Phase {
        name: "in after_tool_call",
        lines: "hook after-call slow 10s time 1\ntool echo echo\nmodel: call echo {\"value\":\"x\"}\nmodel: say \"x\"",
        abort_takes: GRACE,
    },
    Phase {
        name: "waiting for a person",
        lines: "ask echo \"May it?\"\ntool echo echo\nmodel: call echo {\"value\":\"x\"}\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "waiting for a person about the second of three",
        lines: "ask slow \"May it?\"\ntool echo echo\ntool slow slow 1s \"done\"\nmodel: call echo {\"value\":\"x\"} & call slow {} & call echo {\"value\":\"z\"}\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in a call that a call made",
        lines: "tool slow slow 10s \"done\"\ntool outer calls slow {}\nmodel: call outer {}\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in a deaf call that a call made",
        lines: "tool deaf deaf 10s \"done\"\ntool outer calls deaf {}\nmodel: call outer {}\nmodel: say \"x\"",
        abort_takes: GRACE,
    },
    Phase {
        name: "waiting for a person about a call that a call made",
        lines: "ask echo \"May it?\"\ntool echo echo\ntool outer calls echo {\"value\":\"x\"}\nmodel: call outer {}\nmodel: say \"x\"",
        abort_takes: GRACE,
    },
    Phase {
        name: "in the reply of a sub-agent",
        lines: "tool sub agent\nmodel: call sub {\"prompt\":\"do\"}\nmodel: say \"in it\" & after 10s\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in a call of a sub-agent",
        lines: "tool slow slow 10s \"done\"\ntool sub agent\nmodel: call sub {\"prompt\":\"do\"}\nmodel: call slow {}\nmodel: say \"in it\"\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in a deaf call of a sub-agent",
        lines: "tool deaf deaf 10s \"done\"\ntool sub agent\nmodel: call sub {\"prompt\":\"do\"}\nmodel: call deaf {}\nmodel: say \"in it\"\nmodel: say \"x\"",
        abort_takes: GRACE,
    },
    Phase {
        name: "in a compaction by a hook",
        lines: "hook compact slow 10s time 1\nmodel: fail context_length \"too long\"\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in the summary that the model makes for the compactor",
        lines: "tool echo echo\nmodel: call echo {\"value\":\"x\"}\nmodel: call echo {\"value\":\"y\"}\nmodel: fail context_length \"too long\"\nmodel: say \"so far\" & after 10s\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in the second try at an answer of a shape",
        lines: "want {\"type\":\"integer\"}\nmodel: say \"no number\"\nmodel: say \"7\" & after 10s",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in the call that gives an answer of a shape again",
        lines: "want {\"type\":\"integer\"}\nhook before-call slow 10s time 1\nmodel: say \"no number\"\nmodel: call final_answer {\"answer\":7,\"n\":7}",
        abort_takes: AT_ONCE,
    },
    Phase {
        name: "in a sink that takes its time",
        lines: "sink turnStart slow 10s time 1\nmodel: say \"x\"",
        abort_takes: GRACE,
    },
    Phase {
        name: "in a sink that hangs at the end of a turn",
        lines: "sink turnEnd hangs time 1\nmodel: say \"x\"",
        abort_takes: GRACE,
    },
    Phase {
        name: "in a sink that hangs at the end of the run",
        lines: "sink agentEnd hangs time 1\nmodel: say \"x\"",
        abort_takes: GRACE,
    },
    Phase {
        name: "in a sink that hangs at the start of a call",
        lines: "sink toolExecutionStart hangs time 1\ntool echo echo\nmodel: call echo {\"value\":\"x\"}\nmodel: say \"x\"",
        abort_takes: GRACE,
    },
    Phase {
        name: "in the journal",
        lines: "journal slow 10s time 2\nmodel: say \"x\"",
        abort_takes: GRACE,
    },
    Phase {
        name: "in a journal that hangs at an intent",
        lines: "journal hangs time 4\ntool echo echo\nmodel: call echo {\"value\":\"x\"}\nmodel: say \"x\"",
        abort_takes: GRACE,
    },
    Phase {
        name: "waiting for a source",
        lines: "source server slow 10s\nmodel: say \"x\"",
        abort_takes: AT_ONCE,
    },
];

/// Answers for whatever may be asked after the act; of the shape that is wanted, where one is.
const REST: &str = "model: say \"8\"\nmodel: say \"8\"\nmodel: say \"8\"\nmodel: say \"8\"";

fn play(lines: &str) -> (Scenario, Played) {
    let scenario: Scenario = lines.parse().unwrap_or_else(|e| panic!("{e}:\n{lines}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let played = runtime
        .block_on(scenario.play())
        .unwrap_or_else(|e| panic!("{e}"));
    (scenario, played)
}

/// Plays an act in every phase; `holds` looks at what came of it.
fn in_every_phase(acts: &str, holds: impl Fn(&Phase, &Played) -> Result<(), String>) {
    let mut faults = Vec::new();
    for phase in PHASES {
        // An answer of a shape is asked for by who waits for it.
        let acts = match phase.lines.starts_with("want") {
            true => acts.replace("user: ", "prompt: "),
            false => acts.to_owned(),
        };
        let (scenario, played) = play(&format!("{}\n{REST}\n{acts}", phase.lines));
        let fault = invariants::all(&played).and_then(|()| holds(phase, &played));
        if let Err(fault) = fault {
            faults.push(format!(
                "{}: {fault}\n\n{scenario}\n{}",
                phase.name,
                played.transcript()
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn wants(fine: bool, words: &str) -> Result<(), String> {
    fine.then_some(()).ok_or_else(|| words.to_owned())
}

fn ends(played: &Played) -> Vec<EndKind> {
    played
        .events
        .iter()
        .filter_map(|e| match &e.kind {
            EventKind::AgentEnd { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect()
}

/// What the script's clock says beyond its acts and the minute that it waits at its end.
fn took(played: &Played, acts: u64) -> Duration {
    played.took - Duration::from_secs(60 + acts)
}

#[test]
fn an_abort_ends_the_run_in_every_phase_and_the_next_prompt_works() {
    in_every_phase("user: hi\nat 2s: abort\nuser: again", |phase, played| {
        let ends = ends(played);
        // At the very end of a run there is nothing left to abort.
        let over = phase.name.ends_with("the end of the run");
        let first = if over {
            EndKind::Completed
        } else {
            EndKind::Aborted
        };
        wants(ends.first() == Some(&first), "it was not aborted")?;
        wants(ends.len() == 2, "there is no second run")?;
        let again = played.outcomes.last().map(|o| o.end.kind());
        wants(
            again == Some(EndKind::Completed),
            "the next prompt did not work",
        )
    });
}

#[test]
fn an_abort_takes_no_longer_than_the_grace_period_and_no_time_where_nothing_runs() {
    in_every_phase("user: hi\nat 2s: abort", |phase, played| {
        let took = took(played, 2);
        wants(
            took <= phase.abort_takes,
            &format!("it took {took:?} and may take {:?}", phase.abort_takes),
        )
    });
}

#[test]
fn a_message_before_an_abort_stays_queued_in_every_phase() {
    in_every_phase(
        "user: hi\nat 1s: steer \"now\"\nat 1s: follow-up \"later\"\nat 2s: abort",
        |phase, played| {
            let over = phase.name.ends_with("the end of the run");
            let left = played.undelivered.len();
            wants(left == 2 || over, &format!("{left} messages are left"))
        },
    );
}

#[test]
fn steering_and_follow_ups_are_delivered_from_every_phase() {
    in_every_phase(
        "user: hi\nat 2s: steer \"now\"\nat 2s: follow-up \"later\"\nat 30s: abort",
        |_, played| {
            let told = |text: &str| {
                played
                    .history
                    .iter()
                    .chain(&played.undelivered)
                    .filter(|m| m.as_user().is_some_and(|u| u.text() == text))
                    .count()
            };
            wants(
                told("now") == 1 && told("later") == 1,
                "a message is lost or doubled",
            )
        },
    );
}

#[test]
fn stop_ends_every_phase_within_its_deadline() {
    in_every_phase(
        "user: hi\nat 1s: follow-up \"later\"\nat 2s: stop\nuser: too late",
        |phase, played| {
            wants(
                played.refused.len() == 1,
                "a stopped agent took something in",
            )?;
            let over = phase.name.ends_with("the end of the run");
            wants(
                played.undelivered.len() == 1 || over,
                "the follow-up was not given back",
            )?;
            let took = took(played, 2);
            wants(
                took <= Duration::from_secs(30) + 2 * GRACE,
                &format!("it took {took:?}"),
            )
        },
    );
}

#[test]
fn stop_ends_what_is_waited_for_in_every_phase() {
    in_every_phase("prompt: hi\nat 2s: stop", |phase, played| {
        let answered = played.outcomes.len() + played.refused.len();
        wants(answered == 1, "the prompt has no answer")?;
        let begun = !phase.name.contains("source") || played.refused.len() == 1;
        wants(begun, "it began without its source")?;
        let took = took(played, 2);
        wants(
            took <= Duration::from_secs(30) + 2 * GRACE,
            &format!("it took {took:?}"),
        )
    });
}

#[test]
fn a_source_that_hangs_holds_up_nobody() {
    for (acts, end, refused) in [
        ("user: hi\nat 2s: abort", Some(EndKind::Aborted), 0),
        ("user: hi\nat 2s: stop", Some(EndKind::Aborted), 0),
        ("prompt: hi\nat 2s: abort", Some(EndKind::Aborted), 0),
        ("prompt: hi\nat 2s: drop", None, 0),
        ("prompt: hi\nat 2s: stop", None, 1),
    ] {
        let (_, played) = play(&format!("source server hangs\n{REST}\n{acts}"));
        let told = played.transcript();
        assert_eq!(invariants::all(&played), Ok(()), "{acts}\n{told}");
        assert_eq!(ends(&played).first().copied(), end, "{acts}\n{told}");
        assert_eq!(played.refused.len(), refused, "{acts}\n{told}");
    }
}

#[test]
fn abort_and_stop_at_once_end_every_phase() {
    in_every_phase("user: hi\nat 2s: abort\nat 2s: stop", |phase, played| {
        let took = took(played, 2);
        wants(
            took <= phase.abort_takes + GRACE,
            &format!("it took {took:?}"),
        )?;
        wants(ends(played).len() == 1, "there is another run")
    });
}

#[test]
fn dropping_a_prompt_aborts_its_run_in_every_phase_and_the_next_prompt_works() {
    in_every_phase("prompt: hi\nat 2s: drop\nprompt: again", |phase, played| {
        let ends = ends(played);
        let first = ends.first().copied();
        let over = phase.name.ends_with("the end of the run");
        // A prompt that still waits for its sources has begun nothing.
        if phase.name.contains("source") {
            return wants(ends == [EndKind::Completed], "the dropped prompt began");
        }
        wants(
            first
                == Some(if over {
                    EndKind::Completed
                } else {
                    EndKind::Aborted
                }),
            "it was not aborted",
        )?;
        wants(ends.len() == 2, "there is no second run")
    });
}

#[test]
fn continue_after_an_abort_goes_on_from_every_phase() {
    in_every_phase("user: hi\nat 2s: abort\ncontinue:", |phase, played| {
        let over = phase.name.ends_with("the end of the run");
        // After a good answer there is nothing to go on from.
        let answered = played.refused.len() == 1 && played.letters() == "u a";
        let went_on = played.outcomes.last().map(|o| o.end.kind());
        wants(
            (went_on == Some(EndKind::Completed) && played.outcomes.len() == 2) || over || answered,
            "it does not go on",
        )
    });
}

#[test]
fn wall_time_ends_every_phase() {
    in_every_phase("set wall 2s\nuser: hi", |phase, played| {
        let over = phase.name.ends_with("the end of the run");
        wants(
            ends(played)
                == [if over {
                    EndKind::Completed
                } else {
                    EndKind::Limit
                }],
            "it was not ended by its limit",
        )?;
        let took = took(played, 2);
        wants(took <= GRACE, &format!("it took {took:?}"))
    });
}

#[test]
fn a_wanted_answer_is_aborted_like_any_other() {
    in_every_phase(
        "want {\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}\nprompt: hi\nat 2s: abort",
        |phase, played| {
            if phase.name.contains("source") {
                return Ok(());
            }
            wants(
                ends(played).first() == Some(&EndKind::Aborted)
                    || phase.name.ends_with("the end of the run"),
                "it was not aborted",
            )
        },
    );
}
