//! `cargo xtask fuzz`: the fuzz targets of the workspace in `fuzz/`.
//!
//! Knows: how the targets are built on the stable toolchain, where their seeds come from, and
//! for how long each runs. Does not know: what they promise (`fuzz/src`).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Outcome};
use crate::manifest::{self, Package};
use crate::process;

/// For how long one target runs when nothing else is said.
const SECONDS: u64 = 600;

/// The longest input that is tried, in bytes.
const LONGEST_INPUT: usize = 16_384;

/// What was asked for.
#[derive(Debug, PartialEq)]
struct Plan<'a> {
    /// The targets; all when there are none.
    targets: Vec<&'a str>,
    seconds: u64,
    /// Only the seeds are written.
    seeds_only: bool,
}

/// `cargo xtask fuzz [TARGET…] [--seconds N]`, or `--seeds` to only write the seeds.
pub(crate) fn run(rest: &[&str]) -> Outcome {
    let plan = plan(rest)?;
    let folder = folder(&manifest::root());
    let known = targets(&folder)?;
    if let Some(unknown) = plan
        .targets
        .iter()
        .find(|name| !known.iter().any(|t| t == *name))
    {
        let known = known.join(", ");
        return Err(format!("there is no target {unknown:?}; there are {known}").into());
    }
    let build = process::target_folder()?.join("fuzz");
    println!("writing the seeds into fuzz/corpus");
    let mut seeds = process::cargo(&["run", "--quiet", "--example", "seeds", "--manifest-path"]);
    process::run(
        seeds
            .arg(folder.join("Cargo.toml"))
            .env("CARGO_TARGET_DIR", &build),
    )?;
    if plan.seeds_only {
        return Ok(());
    }
    install()?;
    let mut findings = Vec::new();
    for target in known {
        if !plan.targets.is_empty() && !plan.targets.contains(&target.as_str()) {
            continue;
        }
        let mut command = process::cargo(&["fuzz", "run", "--fuzz-dir"]);
        command
            .arg(&folder)
            .arg("--target-dir")
            .arg(&build)
            .arg(&target);
        command.args(["--", "-timeout=20", "-rss_limit_mb=4096"]);
        command.arg(format!("-max_total_time={}", plan.seconds));
        command.arg(format!("-max_len={LONGEST_INPUT}"));
        command.arg(format!("-dict={}", folder.join("formats.dict").display()));
        // The flags of the sanitizer and of coverage are unstable; the compiler is not.
        let ran = process::run(command.env("RUSTC_BOOTSTRAP", "1"));
        findings.extend(ran.err().map(|failure| format!("{target}: {failure}")));
    }
    Failure::unless_empty(
        "fuzz targets found something (fuzz/artifacts has the inputs)",
        &findings,
    )
}

/// Checks the fuzz targets as all other code is checked, without what it takes to run them: neither
/// cargo-fuzz, nor a C++ compiler, nor unstable flags.
pub(crate) fn lint() -> Outcome {
    let build = process::target_folder()?.join("fuzz");
    let mut command = process::cargo(&["clippy", "--all-targets", "--manifest-path"]);
    command.arg(folder(&manifest::root()).join("Cargo.toml"));
    command.args(["--", "-D", "warnings"]);
    // Nothing is linked, so that libFuzzer need not be there; without this it would be compiled.
    command.env("CUSTOM_LIBFUZZER_PATH", build.join("libnone.a"));
    process::run(command.env("CARGO_TARGET_DIR", &build))
}

/// The folder of the fuzz targets.
pub(crate) fn folder(root: &Path) -> PathBuf {
    root.join("fuzz")
}

/// The package of the fuzz targets, which is no member of the workspace.
pub(crate) fn package(root: &Path) -> Outcome<Package> {
    Package::open(&folder(root))
}

fn plan<'a>(rest: &[&'a str]) -> Outcome<Plan<'a>> {
    let mut plan = Plan {
        targets: Vec::new(),
        seconds: SECONDS,
        seeds_only: false,
    };
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match *word {
            "--seeds" => plan.seeds_only = true,
            "--seconds" => {
                plan.seconds = words
                    .next()
                    .and_then(|number| number.parse().ok())
                    .ok_or("--seconds wants a number")?;
            }
            flag if flag.starts_with('-') => {
                return Err(format!("fuzz knows --seconds N and --seeds, not {flag}").into());
            }
            target => plan.targets.push(target),
        }
    }
    Ok(plan)
}

/// The names of all targets, in the order of their files.
fn targets(folder: &Path) -> Outcome<Vec<String>> {
    let files = manifest::files_below(&folder.join("fuzz_targets"))?;
    let stems = files.iter().filter_map(|file| file.file_stem());
    Ok(stems
        .map(|stem| stem.to_string_lossy().into_owned())
        .collect())
}

fn install() -> Outcome {
    if process::output(Command::new("cargo-fuzz").arg("--version")).is_ok() {
        return Ok(());
    }
    println!("cargo-fuzz is not there; cargo installs it");
    process::run(&mut process::cargo(&["install", "cargo-fuzz", "--locked"]))
}

#[cfg(test)]
mod tests;
