//! The steps of CI that only call cargo, and CI itself.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::{conformance, fuzzing, layers, manifest, mutations, process, servers, surface, tidy};

/// `cargo xtask ci [--no-test]`: every step, also after one that fails, then one verdict.
pub(crate) fn ci(rest: &[&str]) -> Outcome {
    let root = manifest::root();
    let without_tests = rest.contains(&"--no-test");
    if let Some(unknown) = rest.iter().find(|word| **word != "--no-test") {
        return Err(format!("ci knows only --no-test, not {unknown:?}").into());
    }
    let mut findings = Vec::new();
    let mut times = Vec::new();
    let mut step = |name: &str, result: &dyn Fn() -> Outcome| {
        println!("\n=== {name}");
        let start = now();
        let result = result();
        let time = start.elapsed();
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        times.push(format!(
            "{name:<12} {verdict:<7} {:>6.1} s",
            time.as_secs_f64()
        ));
        if let Err(failure) = result {
            eprintln!("{name}: {failure}");
            findings.push(name.to_owned());
        }
    };
    step("fmt", &|| fmt(&[]));
    step("layers", &|| layers::check(&root));
    step("tidy", &|| tidy::check(&root));
    step("lint", &lint);
    step("features", &features);
    step("docs", &docs);
    if !without_tests {
        step("test", &|| test(&[]));
    }
    step("live", &|| live(&[]));
    step("conformance", &|| conformance::run(&[]));
    println!("\n=== summary\n{}", times.join("\n"));
    Failure::unless_empty("steps failed", &findings)
}

/// `cargo xtask fmt [--fix]`.
pub(crate) fn fmt(rest: &[&str]) -> Outcome {
    let mut command = process::cargo(&["fmt", "--all"]);
    if !rest.contains(&"--fix") {
        command.args(["--", "--check"]);
    }
    process::run(&mut command)
}

/// `cargo xtask lint`: default features first, since that is what most people build.
pub(crate) fn lint() -> Outcome {
    for features in [&[][..], &["--all-features"]] {
        let mut command = process::cargo(&["clippy", "--workspace", "--all-targets"]);
        process::run(command.args(features).args(["--", "-D", "warnings"]))?;
    }
    fuzzing::lint()
}

/// `cargo xtask features`: each crate alone, so that no sibling's features hide a gap.
pub(crate) fn features() -> Outcome {
    let mut findings = Vec::new();
    for package in manifest::packages(&manifest::root())? {
        if !package.is_public() {
            continue;
        }
        let mut check = |features: &[&str]| {
            let mut command = process::cargo(&["clippy", "--quiet", "--package", &package.name]);
            let checked = process::run(command.args(features).args(["--", "-D", "warnings"]));
            findings.extend(checked.err().map(|failure| failure.to_string()));
        };
        let names = package.features();
        check(&["--no-default-features"]);
        for name in &names {
            check(&["--no-default-features", "--features", name]);
        }
        if names.len() > 1 {
            check(&["--all-features"]);
        }
    }
    Failure::unless_empty("builds failed", &findings)
}

/// `cargo xtask test [ARGS…]`: what the README tells people to run. Arguments go to the runner.
pub(crate) fn test(rest: &[&str]) -> Outcome {
    println!(
        "fetching the servers that the tests talk to (target/servers; at once when they are there)"
    );
    servers::setup(&["test"])?;
    let mut command = if has_nextest() {
        println!("running all tests with cargo-nextest");
        process::cargo(&[
            "nextest",
            "run",
            "--workspace",
            "--all-features",
            "--no-fail-fast",
        ])
    } else {
        println!("running all tests with cargo test (cargo-nextest is not installed)");
        let mut command =
            process::cargo(&["test", "--workspace", "--all-features", "--no-fail-fast"]);
        command.args(["--lib", "--bins", "--tests", "--examples"]);
        command
    };
    // The tests against real servers have a command of their own, which fetches those.
    command.args(rest).env("YIEM_LIVE", "0");
    let tests = process::run(command.env("YIEM_SERVERS", servers::folder()));
    if !rest.is_empty() {
        return tests;
    }
    println!("running the examples in the documentation");
    let doctests = process::run(&mut process::cargo(&[
        "test",
        "--workspace",
        "--all-features",
        "--doc",
    ]));
    tests.and(doctests)
}

/// Builds what `test` builds, commands and helper programs included. The same selection of
/// packages and features each time means that nothing is compiled twice.
pub(crate) fn build_all() -> Outcome {
    let mut command = process::cargo(&[
        "test",
        "--workspace",
        "--all-features",
        "--no-run",
        "--quiet",
    ]);
    process::run(command.args(["--lib", "--bins", "--tests", "--examples"]))
}

/// `cargo xtask docs`.
pub(crate) fn docs() -> Outcome {
    let mut command = process::cargo(&["doc", "--workspace", "--all-features", "--no-deps"]);
    // The command has the facade's name, and no API.
    command.args([
        "--exclude",
        "xtask",
        "--exclude",
        "yiem-tests",
        "--exclude",
        "yiem-cli",
    ]);
    process::run(command.env("RUSTDOCFLAGS", "-D warnings"))?;
    surface::check()
}

/// `cargo xtask live [FILTER]`: the tests against real servers, which must be there.
pub(crate) fn live(rest: &[&str]) -> Outcome {
    servers::setup(&["live"])?;
    build_all()?;
    let mut command = process::cargo(&["test", "--workspace", "--all-features", "--test", "live"]);
    // One after another: they share two cores with the servers that they start.
    command
        .arg("--")
        .args(["--nocapture", "--test-threads=1"])
        .args(rest);
    process::run(
        command
            .env("YIEM_LIVE", "1")
            .env("YIEM_SERVERS", servers::folder()),
    )
}

/// `cargo xtask soak [PACKAGE…]`: the property tests with many more cases than in a normal run.
///
/// A property test takes its number of cases from `YIEM_CASES`; those that are worth a long run
/// have `soak` in their name.
pub(crate) fn soak(rest: &[&str]) -> Outcome {
    if let Some((&"--mutations", names)) = rest.split_first() {
        return mutations::run(names);
    }
    let cases = std::env::var("YIEM_CASES").unwrap_or_else(|_| "100000".to_owned());
    println!("{cases} cases each (YIEM_CASES sets another number)");
    let mut command = process::cargo(&["test", "--release", "--all-features"]);
    if rest.is_empty() {
        command.arg("--workspace");
    }
    for package in rest {
        command.args(["--package", package]);
    }
    command.args(["--lib", "--tests", "--", "soak", "--nocapture"]);
    process::run(command.env("YIEM_CASES", cases))
}

/// `cargo xtask bench [PACKAGE… | peers ARGS…]`: every bench target of the workspace, one after
/// another, then the agent loop beside its floor.
pub(crate) fn bench(rest: &[&str]) -> Outcome {
    if let Some((&"peers", arguments)) = rest.split_first() {
        return bench_peers(arguments);
    }
    for package in manifest::packages(&manifest::root())? {
        if !rest.is_empty() && !rest.contains(&package.name.as_str()) {
            continue;
        }
        for target in manifest::files_below(&package.folder.join("benches"))? {
            let is_target = target.extension().is_some_and(|e| e == "rs")
                && target
                    .parent()
                    .is_some_and(|parent| parent.ends_with("benches"));
            let Some(name) = target.file_stem().filter(|_| is_target) else {
                continue;
            };
            let mut command = process::cargo(&[
                "bench",
                "--all-features",
                "--package",
                &package.name,
                "--bench",
            ]);
            process::run(command.arg(name))?;
        }
    }
    if rest.is_empty() {
        bench_peers(&[])?;
    }
    Ok(())
}

/// The agent loop beside a bare loop (P-1), from the workspace `benches/peers`: first with a
/// server that checks every request, then for the table. Arguments go to its runner.
fn bench_peers(arguments: &[&str]) -> Outcome {
    let target = process::target_folder()?.join("peers");
    // Apart: built together they share reqwest's features, and the floor has no TLS provider then.
    for packages in [
        &[
            "--package=peer-floor",
            "--package=peer-mock",
            "--package=peer-runner",
        ][..],
        &["--package=peer-yiem"],
    ] {
        let mut build = process::cargo(&[
            "build",
            "--release",
            "--manifest-path",
            "benches/peers/Cargo.toml",
        ]);
        process::run(build.args(packages).env("CARGO_TARGET_DIR", &target))?;
    }
    let binaries = target.join("release");
    let runner = binaries.join("peer-runner");
    let run =
        |arguments: &[&str]| process::run(Command::new(&runner).arg(&binaries).args(arguments));
    if !arguments.is_empty() {
        return run(arguments);
    }
    run(&["--audit"])?;
    run(&["--reps", "5"])?;
    if process::first_available(&["valgrind"]).is_none() {
        println!("instructions are not counted: valgrind is not installed");
        return Ok(());
    }
    run(&["--instructions", "--gate"])
}

fn has_nextest() -> bool {
    process::output(Command::new("cargo-nextest").args(["nextest", "--version"])).is_ok()
}

#[expect(
    clippy::disallowed_methods,
    reason = "xtask tells how long its steps took; nothing depends on it"
)]
fn now() -> Instant {
    Instant::now()
}

/// How long a program may run before it is ended.
pub(crate) fn deadline(limit: Duration) -> impl Fn() -> bool {
    let start = now();
    move || start.elapsed() > limit
}
