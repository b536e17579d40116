//! One script tool call (P-4): `execute` alone, and with `prepare` and `validate` before it.
//!
//! The input is `inputs/searchWine.js`, a tool as `writeTool` makes them. Each call makes a
//! sandbox of its own; the thread finds it made before the call comes. Prints the least and the
//! median time of a call, as a table.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use yiem_core::{Env, JsonObject, SystemEnv, Tool, ToolContext, ValidArgs};
use yiem_script::{ScriptEngine, ScriptTool};

const SOURCE: &str = include_str!("inputs/searchWine.js");
const ROUNDS: usize = 2_000;

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

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime can be made");
    runtime.block_on(async {
        let env: Arc<dyn Env> = SystemEnv::shared();
        let engine = ScriptEngine::new(Arc::clone(&env));
        let tool = ScriptTool::from_source(&engine, "searchWine.js", SOURCE)
            .await
            .expect("the input is a tool");
        println!("| script call | least | median |\n| --- | --- | --- |");

        let mut times = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let context = ToolContext::new("call_1", "searchWine", Arc::clone(&env));
            let args = ValidArgs::accepted(args());
            let start = env.elapsed();
            let output = tool.call(args, context).await.expect("the call is good");
            times.push(env.elapsed().saturating_sub(start));
            assert!(
                output.plain_text().starts_with("Found 0"),
                "{}",
                output.plain_text()
            );
        }
        report("execute", times);

        let mut times = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let context = ToolContext::new("call_1", "searchWine", Arc::clone(&env));
            let start = env.elapsed();
            let args = tool
                .prepare_arguments(args())
                .await
                .expect("the arguments are good");
            tool.validate_required_args(&args).await;
            let output = tool
                .call(ValidArgs::accepted(args), context)
                .await
                .expect("the call is good");
            times.push(env.elapsed().saturating_sub(start));
            assert!(
                output.plain_text().starts_with("Found 2"),
                "{}",
                output.plain_text()
            );
        }
        report("prepare, validate, execute", times);

        let mut times = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let start = env.elapsed();
            ScriptTool::from_source(&engine, "searchWine.js", SOURCE)
                .await
                .expect("the input is a tool");
            times.push(env.elapsed().saturating_sub(start));
        }
        report("reading a tool file", times);
    });
}
