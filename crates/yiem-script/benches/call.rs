//! One script tool call (P-4): `execute` alone, and with `prepare` and `validate` before it.
//!
//! The input is `inputs/searchWine.js`, a tool as `writeTool` makes them. Each call has a sandbox of
//! its own, which the engine's threads make ahead: a call that comes after a pause finds it made, one
//! right after another waits for it. Prints the least and the median time of both, as a table.
//!
//! For instructions, which no load disturbs, run one case alone under a counter, at two numbers of
//! rounds, and take the difference; the making of sandboxes is in it:
//!
//! ```text
//! valgrind --tool=callgrind target/release/deps/call-… count execute 100
//! ```

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use yiem_core::{Env, JsonObject, SystemEnv, Tool, ToolContext, ValidArgs};
use yiem_script::{ScriptEngine, ScriptTool};

const SOURCE: &str = include_str!("inputs/searchWine.js");

fn args() -> JsonObject {
    match json!({ "query": " cabernet ", "maxResults": 5 }) {
        serde_json::Value::Object(args) => args,
        other => panic!("{other} is no object"),
    }
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let (least, median) = (times[0], times[times.len() / 2]);
    println!(
        "| {what} | {:.1} µs | {:.1} µs |",
        micros(least),
        micros(median)
    );
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// How long a model takes at the least between two calls, for the engine to make its sandboxes.
const PAUSE: Duration = Duration::from_millis(6);

async fn once(case: &str, engine: &ScriptEngine, tool: &ScriptTool, env: &Arc<dyn Env>) {
    let context = ToolContext::new("call_1", "searchWine", Arc::clone(env));
    let (output, expected) = match case {
        "execute" => {
            let args = ValidArgs::accepted(args());
            (tool.call(args, context).await, "Found 0")
        }
        "prepare, validate, execute" => {
            let args = tool.prepare_arguments(args()).await;
            let args = args.expect("the arguments are good");
            tool.validate_required_args(&args).await;
            (
                tool.call(ValidArgs::accepted(args), context).await,
                "Found 2",
            )
        }
        _ => {
            let tool = ScriptTool::from_source(engine, "searchWine.js", SOURCE).await;
            tool.expect("the input is a tool");
            return;
        }
    };
    let text = output.expect("the call is good").plain_text();
    assert!(text.starts_with(expected), "{text}");
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime can be made");
    let words: Vec<String> = std::env::args().collect();
    runtime.block_on(async {
        let env: Arc<dyn Env> = SystemEnv::shared();
        let engine = ScriptEngine::new(Arc::clone(&env));
        let tool = ScriptTool::from_source(&engine, "searchWine.js", SOURCE)
            .await
            .expect("the input is a tool");
        if let [_, command, case, rounds, ..] = words.as_slice()
            && command == "count"
        {
            for _ in 0..rounds.parse().expect("a number") {
                once(case, &engine, &tool, &env).await;
            }
            return;
        }
        println!("| script call | least | median |\n| --- | --- | --- |");
        for (rounds, pause) in [(500, Some(PAUSE)), (2_000, None)] {
            for case in [
                "execute",
                "prepare, validate, execute",
                "reading a tool file",
            ] {
                let mut times = Vec::with_capacity(rounds);
                for _ in 0..rounds {
                    if let Some(pause) = pause {
                        env.sleep(pause).await;
                    }
                    let start = env.elapsed();
                    once(case, &engine, &tool, &env).await;
                    times.push(env.elapsed().saturating_sub(start));
                }
                let when = if pause.is_some() {
                    "after a pause"
                } else {
                    "right after another"
                };
                report(&format!("{case}, {when}"), times);
            }
        }
    });
}
