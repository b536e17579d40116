//! A thousand agents that stream at once over HTTP (P-3).

use serde_json::Value;
use std::process::Command;

/// The most that they may take in memory.
const MOST: u64 = 64 << 20;

#[test]
fn a_thousand_agents_stream_at_once_over_http_in_bounded_memory_and_none_is_left_behind() {
    // A connection for each: more files than some systems allow unasked.
    let allowed = "ulimit -n 4096; exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args([
            "-c",
            allowed,
            env!("CARGO_BIN_EXE_many-streams"),
            "1000",
            "20",
        ])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |of: &Value| of.as_u64().unwrap();
    assert!(number(&measured["bytes"]) <= MOST, "{measured}");
    // By what all were told until then, and not by time, which is the machine's.
    let (half, last) = (&measured["updates"][0], &measured["updates"][1]);
    assert!(number(last) <= 2 * number(half), "{measured}");
}
