//! Work that blocks its thread: `#[tool(blocking)]` gives it a thread of its own, so that other
//! calls go on.
//!
//! `cargo run -p yiem --example blocking_tool`

#![expect(clippy::print_stdout, reason = "an example says what it does")]

mod offline;

use serde_json::json;
use yiem::prelude::*;

/// The n-th prime number.
#[tool(blocking, timeout = "10s")]
fn nth_prime(
    /// Which one, from 1.
    n: u32,
    context: ToolContext,
) -> Result<u64, ToolError> {
    let mut found = 0;
    let mut candidate = 1_u64;
    while found < n {
        candidate += 1;
        // A blocking tool is not dropped in the middle: it has to look whether it should end.
        if context.cancel.is_cancelled() {
            return Err(ToolError::new("cancelled"));
        }
        if (2..)
            .take_while(|d| d * d <= candidate)
            .all(|d| !candidate.is_multiple_of(d))
        {
            found += 1;
        }
    }
    Ok(candidate)
}

#[tokio::main]
async fn main() -> Result<()> {
    let model = offline::calling(vec![
        ("nth_prime", json!({ "n": 2_000 })),
        ("nth_prime", json!({ "n": 10 })),
    ]);
    let agent = Agent::builder(model).tool(nth_prime).build()?;
    println!("{}", agent.prompt("Find primes").await?.ok()?);
    Ok(())
}
