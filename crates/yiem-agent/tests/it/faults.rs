//! Every place that can fail or panic, at each time that it is come by (R-9, R-10, S-1, T-8).

use yiem_agent::{EndKind, EventKind};
use yiem_test::{Played, Scenario, transcript};

use crate::invariants;

/// A conversation that comes by every place more than once: calls at once, a call that a call
/// makes, a question, a compaction, a retry, steering, a follow-up.
const TALK: &str = r#"
tool echo echo
tool slow slow 2s "done"
tool outer calls echo {"value":"inner"}
ask slow "May it?" 10s
model: say "I look." & call echo {"value":"x"} & call slow {} & call outer {}
model: fail server "busy"
model: fail context_length "too long"
model: say "a summary"
model: call echo {"value":"y"} & call nope {}
model: say "to the steering"
model: say "to the follow-up"
model: say "to the second"
model: say "more"
model: say "more"
user: hi
at 1s: allow
at 2s: steer "now"
at 2s: follow-up "later"
user: again
"#;

fn play(line: &str) -> (Scenario, Played) {
    let scenario: Scenario = format!("{line}\n{TALK}").parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let played = runtime.block_on(scenario.play()).unwrap();
    (scenario, played)
}

/// Plays the talk with each of these lines; `holds` is given whether the place was come by: the
/// transcript is another than without it. Gives how often it was.
fn with_each(
    lines: impl IntoIterator<Item = String>,
    holds: impl Fn(&str, &Played, bool) -> bool,
) -> usize {
    let plain = play("# nothing").1;
    assert_eq!(invariants::all(&plain), Ok(()), "{}", plain.transcript());
    assert_eq!(
        ends(&plain),
        [EndKind::Completed; 2],
        "{}",
        plain.transcript()
    );
    let mut faults = Vec::new();
    let mut came_by = 0;
    for line in lines {
        let (scenario, played) = play(&line);
        let hit = played.transcript() != plain.transcript();
        came_by += usize::from(hit);
        let fault = match invariants::all(&played) {
            Err(fault) => Some(fault),
            Ok(()) => (!holds(&line, &played, hit)).then(|| "it does not hold".to_owned()),
        };
        if let Some(fault) = fault {
            faults.push(format!(
                "FAULT {line}: {fault}\n\n{scenario}\n{}",
                played.transcript()
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    came_by
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

/// How runs of the talk end, with and without a fault.
const FINE: [EndKind; 2] = [EndKind::Completed, EndKind::Failed];

fn lines(places: &[&str], times: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for place in places {
        for does in ["fails \"broken\"", "panics"] {
            for time in 1..=times {
                lines.push(format!("{place} {does} time {time}"));
            }
        }
    }
    lines
}

#[test]
fn a_hook_of_a_turn_that_fails_or_panics_ends_that_run_and_the_next_one_works() {
    let places = [
        "hook transform-context",
        "hook before-model",
        "hook stop-after-turn",
        "hook next-turn",
    ];
    let hit = with_each(lines(&places, 5), |_, played, hit| {
        let ends = ends(played);
        let failed = ends.iter().filter(|e| **e == EndKind::Failed).count();
        failed == usize::from(hit) && ends.iter().all(|e| FINE.contains(e))
    });
    assert!(hit > 0, "no place was come by");
}

#[test]
fn a_hook_of_a_call_that_fails_or_panics_fails_that_call_alone() {
    let places = ["hook before-call", "hook after-call"];
    let hit = with_each(lines(&places, 6), |line, played, hit| {
        let failed = played
            .history
            .iter()
            .filter_map(|m| m.as_tool_result())
            .filter(|r| r.is_error && r.text().contains("script"))
            .count();
        let told = played.transcript().contains("The hook script failed");
        // A call that a call made hands its failure on.
        ends(played).iter().all(|e| *e == EndKind::Completed)
            && failed <= 1
            && told == hit
            && (!line.contains("panics") || !hit || played.transcript().contains("panicked"))
    });
    assert!(hit > 0, "no place was come by");
}

#[test]
fn a_compaction_that_fails_or_panics_is_the_runs_typed_end() {
    let hit = with_each(lines(&["hook compact"], 1), |_, played, _| {
        let text = played.transcript();
        ends(played) == [EndKind::Failed, EndKind::Completed]
            && text.contains("too long; it could not be shortened: the hook script failed")
    });
    assert!(hit > 0, "no place was come by");
}

#[test]
fn a_sink_that_panics_at_any_event_changes_nothing() {
    let plain = transcript::of_events(&play("# nothing").1.events);
    let all = (1..=plain.lines().count() + 3).map(|n| format!("sink panics time {n}"));
    for line in all {
        let (_, played) = play(&line);
        assert_eq!(transcript::of_events(&played.events), plain, "{line}");
    }
}

#[test]
fn a_sink_that_is_slow_at_any_event_loses_none() {
    let all = (1..=60).map(|n| format!("sink slow 300ms time {n}"));
    let other = with_each(all, |_, played, _| ends(played) == [EndKind::Completed; 2]);
    assert_eq!(other, 0, "it changed what was told");
}

#[test]
fn a_journal_that_fails_or_panics_at_any_record_ends_that_run_alone() {
    let hit = with_each(lines(&["journal"], 26), |_, played, hit| {
        let ends = ends(played);
        let failed = ends.iter().filter(|e| **e == EndKind::Failed).count();
        failed == usize::from(hit) && ends.iter().all(|e| FINE.contains(e))
    });
    assert!(hit > 0, "no place was come by");
}

#[test]
fn a_source_that_the_first_turn_needs_and_that_fails_is_a_typed_end() {
    // Failing once is no matter: it is loaded again.
    let ways = ["fails \"broken\"", "panics"].map(|does| format!("source server {does}"));
    let hit = with_each(ways, |_, played, _| {
        ends(played).first() == Some(&EndKind::Failed)
            && played
                .transcript()
                .contains("required tool source \"server\"")
    });
    assert!(hit > 0, "no place was come by");
}
