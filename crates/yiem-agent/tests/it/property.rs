//! Random scripts through the public agent: 2,000 here, 100,000 by `cargo xtask soak`
//! (`YIEM_CASES`). A script that fails is made shorter line by line, and printed so that it
//! can be pasted as a test.

use std::fmt::Write as _;

use yiem_test::Scenario;

use crate::invariants;

/// A small generator of numbers: the scripts depend on the seed alone.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }
}

const TOOLS: &[&str] = &[
    "tool echo echo",
    "tool quick slow 10ms \"quick\"",
    "tool slow slow 2s \"slow\"",
    "tool alone slow 300ms \"alone\" sequential",
    "tool deaf deaf 3s \"deaf\"",
    "tool never never",
    "tool fails fails \"broken\"",
    "tool panics panics",
    "tool up updates 3 200ms",
    "tool burst updates 90 0ms",
    "tool ends terminates \"the end\"",
    "tool outer calls slow {}",
    "tool deep calls outer {}",
    "tool sub agent",
];

const NAMES: &[&str] = &[
    "echo", "quick", "slow", "alone", "deaf", "never", "fails", "panics", "up", "burst", "ends",
    "nope", "outer", "deep", "sub",
];

fn script(seed: u64) -> Vec<String> {
    let r = &mut Random(seed);
    let mut lines: Vec<String> = TOOLS.iter().map(|t| (*t).to_owned()).collect();
    lines.push("set tool-time 20s".to_owned());
    for setting in [
        "set sequential",
        "set terminate all",
        "set steering one-at-a-time",
        "set follow-ups all",
        "set interrupt",
        "set max-parallel 2",
        "set turns 3",
        "set tool-calls 4",
        "set wall 6s",
        "set retries 1",
        "set grace 1s",
        "refuse quick \"refused\"",
    ] {
        if r.one_in(6) {
            lines.push(setting.to_owned());
        }
    }
    for place in [
        "hook transform-context",
        "hook before-model",
        "hook before-call",
        "hook after-call",
        "hook stop-after-turn",
        "hook next-turn",
        "hook compact",
        "sink",
        "sink turnEnd",
        "sink toolExecutionStart",
        "journal",
        "source server",
    ] {
        if r.one_in(12) {
            let does = r.pick(&[
                "slow 300ms",
                "slow 3s",
                "fails \"broken\"",
                "panics",
                "hangs",
            ]);
            let time = 1 + r.below(5);
            // A sink can only panic.
            if !place.starts_with("sink") || !does.starts_with("fails") {
                lines.push(format!("{place} {does} time {time}"));
            }
        }
    }
    for question in ["ask quick \"May it?\" 5s", "ask slow \"May it?\""] {
        if r.one_in(6) {
            lines.push(question.to_owned());
        }
    }
    if r.one_in(8) {
        lines.push("want {\"type\":\"integer\"}".to_owned());
    }
    for _ in 0..r.below(9) {
        lines.push(model(r));
    }
    for n in 0..=r.below(3) {
        if n > 0 && r.one_in(4) {
            lines.push("continue:".to_owned());
        } else {
            let how = if r.one_in(4) { "prompt" } else { "user" };
            lines.push(format!("{how}: message {n}"));
        }
        for m in 0..r.below(4) {
            let when = r.below(40) * 100;
            let act = match r.below(12) {
                0 | 1 => format!("steer \"steer {n}.{m}\""),
                2 | 3 => format!("follow-up \"follow {n}.{m}\""),
                4..=6 => "abort".to_owned(),
                7 if r.one_in(3) => "stop".to_owned(),
                8 | 9 => "allow".to_owned(),
                10 => "deny \"no\"".to_owned(),
                11 => "drop".to_owned(),
                _ => "clear".to_owned(),
            };
            lines.push(format!("at {when}ms: {act}"));
        }
    }
    lines
}

fn model(r: &mut Random) -> String {
    let mut parts = Vec::new();
    if r.one_in(2) {
        parts.push("say \"some\" \"text\"".to_owned());
    }
    if r.one_in(12) {
        parts.push("call echo {} & restart & say \"other\"".to_owned());
    }
    for _ in 0..r.below(4) {
        let mut call = String::new();
        match r.below(8) {
            0 => call.push_str("raw echo \"{oops\""),
            1 => call.push_str("call echo {}"),
            2 => call.push_str("call echo {\"value\":\"x\"} id=same"),
            _ => {
                let name = r.pick(NAMES);
                let _ = write!(call, "call {name} {{\"value\":\"{}\"}}", r.below(3));
            }
        }
        parts.push(call);
    }
    if r.one_in(4) {
        parts.push(format!("every {}ms", r.below(10) * 100));
    }
    if r.one_in(6) {
        parts.push(format!("after {}ms", r.below(20) * 100));
    }
    parts.push(match r.below(20) {
        0 => "stop length".to_owned(),
        1 => "stop tool_calls".to_owned(),
        2 => "fail server \"busy\"".to_owned(),
        3 => "fail rate_limit \"slow down\" 2s".to_owned(),
        4 => "fail auth \"no key\"".to_owned(),
        5 => "fail context_length \"too long\"".to_owned(),
        6 => "break-off".to_owned(),
        7 => "hang".to_owned(),
        8 => "panic".to_owned(),
        9 | 10 => "whole".to_owned(),
        _ => "usage 5 5".to_owned(),
    });
    format!("model: {}", parts.join(" & "))
}

/// What is wrong with what comes of a script, if anything is.
fn fault(lines: &[String]) -> Option<String> {
    let scenario = Scenario::of_lines(lines.to_vec());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let played = runtime
        .block_on(scenario.play())
        .unwrap_or_else(|e| panic!("{e}"));
    let mut fault = invariants::all(&played).err();
    // What hangs is ended by nobody but an abort, and so is a question that nobody answers: the
    // hour is the script's.
    let waits = |l: &String| l.contains("hang") || l.starts_with("ask slow");
    if !played.ended && lines.iter().any(waits) {
        fault = None;
    }
    // The scenario's agent is gone: so is everything that it started.
    let tasks = || runtime.metrics().num_alive_tasks();
    runtime.block_on(async {
        for _ in 0..100 {
            if tasks() == 0 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    });
    if fault.is_none() && tasks() > 0 {
        fault = Some(format!("{} tasks outlive the agent", tasks()));
    }
    fault
}

/// The script without every line that the fault does not need.
fn shrunk(mut lines: Vec<String>) -> Vec<String> {
    let fails =
        |lines: &[String]| std::panic::catch_unwind(|| fault(lines)).is_ok_and(|f| f.is_some());
    let mut at = 0;
    while at < lines.len() {
        let mut fewer = lines.clone();
        fewer.remove(at);
        if fails(&fewer) {
            lines = fewer;
        } else {
            at += 1;
        }
    }
    lines
}

#[test]
fn soak_invariants_hold_over_random_scripts() {
    let number = |name: &str, default| {
        std::env::var(name)
            .ok()
            .and_then(|n| n.parse::<u64>().ok())
            .unwrap_or(default)
    };
    let (scripts, first) = (number("YIEM_CASES", 2_000), number("YIEM_SOAK_SEED", 0));
    std::panic::set_hook(Box::new(|info| {
        // Tools and models of the scripts panic on purpose.
        if !info
            .payload_as_str()
            .is_some_and(|said| said.ends_with("was told to panic"))
        {
            eprintln!("{info}");
        }
    }));
    for seed in first..first + scripts {
        let lines = script(seed);
        if let Some(fault) = fault(&lines) {
            let short = Scenario::of_lines(shrunk(lines));
            panic!("seed {seed}: {fault}\n\n{short}");
        }
    }
}
