//! What it costs to take arguments to a tool (P-4): `RegisteredTool::accept` over committed
//! inputs, `inputs/*.json`, each a schema, arguments, and whether they are accepted.
//!
//! `cargo bench -p yiem-tools --bench validate` prints times. For instructions, which no load
//! disturbs, run one case alone under a counter, at two numbers of rounds, and take the
//! difference:
//!
//! ```text
//! perf stat -e instructions:u target/release/deps/validate-… count weather 10000
//! valgrind --tool=none --stats=yes …
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde::Deserialize;
use serde_json::Value;
use yiem_core::{JsonObject, SystemEnv};
use yiem_tools::{FunctionTool, RegisteredTool, ToolRegistry};

const INPUTS: [(&str, &str); 5] = [
    ("weather", include_str!("inputs/weather.json")),
    (
        "weather_default",
        include_str!("inputs/weather_default.json"),
    ),
    ("edit_file", include_str!("inputs/edit_file.json")),
    ("coerced", include_str!("inputs/coerced.json")),
    ("refused", include_str!("inputs/refused.json")),
];
const ROUNDS: usize = 20_000;

#[derive(Deserialize)]
struct Input {
    schema: Value,
    args: JsonObject,
    accepted: bool,
}

fn prepared(text: &str) -> (Arc<RegisteredTool>, Input) {
    let input: Input = serde_json::from_str(text).expect("an input");
    let tool = FunctionTool::builder("tool").json(input.schema.clone(), |_, _| async move { "x" });
    let tool = ToolRegistry::new().register(tool).expect("a good schema");
    (tool, input)
}

fn accept(tool: &RegisteredTool, args: JsonObject) -> bool {
    let accepted = tool.accept(args).now_or_never().expect("nothing waits");
    accepted.is_ok()
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, command, case, rounds, ..] = words.as_slice()
        && command == "count"
    {
        let (_, text) = INPUTS
            .iter()
            .find(|(name, _)| name == case)
            .expect("a case");
        let (tool, input) = prepared(text);
        for _ in 0..rounds.parse().expect("a number") {
            assert_eq!(accept(&tool, input.args.clone()), input.accepted);
        }
        return;
    }
    let env = SystemEnv::shared();
    println!("| arguments | least | median |\n| --- | --- | --- |");
    for (name, text) in INPUTS {
        let (tool, input) = prepared(text);
        let mut times = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let args = input.args.clone();
            let start = env.elapsed();
            let accepted = accept(&tool, args);
            times.push(env.elapsed().saturating_sub(start));
            assert_eq!(accepted, input.accepted);
        }
        times.sort_unstable();
        println!(
            "| {name} | {:.2} µs | {:.2} µs |",
            micros(times[0]),
            micros(times[ROUNDS / 2])
        );
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
