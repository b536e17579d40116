//! The checks and chores of this workspace: `cargo xtask COMMAND`.
//!
//! Knows: what CI checks, in which order, and how to run it.
//! Does not know: what the crates do. Rules about layers stand in `layers.toml`, versions of
//! test servers in `xtask/servers.toml`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool speaks on both"
)]

mod build_cost;
mod conformance;
mod failure;
mod fuzzing;
mod layers;
mod manifest;
mod mutations;
mod process;
mod rust_source;
mod servers;
mod steps;
mod surface;
mod tidy;

use std::process::ExitCode;

use failure::Outcome;

const HELP: &str = "\
cargo xtask COMMAND

  ci [--no-test]      everything CI checks: fmt, lint, layers, tidy, features, docs,
                      live, conformance, and test unless --no-test
  fmt [--fix]         rustfmt, as a check or mending
  lint                clippy on all targets, default and all features, fuzz/ included
  layers              edges between our crates and forbidden dependencies (layers.toml)
  tidy                house rules that no compiler knows
  features            each crate alone with none, each and all of its features
  test [ARGS…]        installs what the tests need, then all tests and doctests
  docs                rustdoc, warnings are errors; no foreign type in a public signature
  setup [GROUP…]      fetches test servers into target/servers (groups: test live conformance)
  live [FILTER]       the tests against real servers
  conformance [MATCH] the MCP conformance suite
  soak [PACKAGE…]     the long property runs; with --mutations [NAME…] instead: every
                      committed mutation is caught by a test
  fuzz [TARGET…] [--seconds N]
                      the fuzz targets, 600 s each, one after another; --seeds only writes
                      what they begin with
  bench [PACKAGE…]    the benches, and the agent loop beside its floor (`bench peers` alone)
  build-cost          what the smallest agent with MCP and TLS costs to build (P-5)
";

fn main() -> ExitCode {
    if let Some(code) = surface::as_rustdoc() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = arguments.split_first() else {
        print!("{HELP}");
        return ExitCode::from(2);
    };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    match dispatch(command, &rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask {command}: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: &str, rest: &[&str]) -> Outcome {
    match command {
        "ci" => steps::ci(rest),
        "fmt" => steps::fmt(rest),
        "lint" => steps::lint(),
        "layers" => layers::check(&manifest::root()),
        "tidy" => tidy::check(&manifest::root()),
        "features" => steps::features(),
        "test" => steps::test(rest),
        "docs" => steps::docs(),
        "setup" => servers::setup(rest),
        "live" => steps::live(rest),
        "conformance" => conformance::run(rest),
        "soak" => steps::soak(rest),
        "fuzz" => fuzzing::run(rest),
        "bench" => steps::bench(rest),
        "build-cost" => build_cost::measure(),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => {
            Err(format!("there is no command {other:?}; `cargo xtask help` lists them").into())
        }
    }
}
