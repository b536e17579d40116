//! Plays the script of a fake MCP server, given as JSON in the first argument, on standard input and output.

#![expect(
    clippy::print_stderr,
    reason = "a program of the tests says why it ends"
)]

use std::process::ExitCode;
use yiem_test::server::serve_stdio;

fn main() -> ExitCode {
    let script = std::env::args().nth(1).unwrap_or_default();
    match serde_json::from_str(&script) {
        Ok(script) => {
            serve_stdio(script);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("the first argument is no script of a fake MCP server: {error}");
            ExitCode::from(2)
        }
    }
}
