//! `cargo xtask build-cost`: what the smallest agent costs people to build (P-5).
//!
//! Knows: the smallest agent with MCP over stdio and HTTP, validation and TLS; how many crates it
//! brings; the CPU time of a clean dev build of it and of its foreign dependencies alone.
//! Does not know: what a build costs on another machine; only the ratio is worth keeping.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Outcome};
use crate::manifest::{self, Kind, Package};
use crate::process;

/// The most crates that the smallest agent may bring, itself excepted.
const MOST_CRATES: usize = 170;

/// The most CPU time of a clean build, as a multiple of that of the foreign dependencies alone.
const MOST_RATIO: f64 = 1.3;

/// The facade's features that the smallest agent wants.
const FEATURES: &[&str] = &["openai", "mcp-stdio", "mcp-http", "macros"];

const PROGRAM: &str = r#"use yiem::prelude::*;

/// Current weather of a city.
#[tool]
async fn get_weather(city: String) -> Result<String> {
    Ok(format!("Weather in {city}: Sunny, 22°C"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let agent = Agent::builder(OpenAiModel::from_env()?)
        .tool(get_weather)
        .mcp(McpServer::stdio("npx", ["-y", "@modelcontextprotocol/server-everything"]))
        .build()?;
    println!("{}", agent.prompt("What's the weather in Tokyo?").await?);
    Ok(())
}
"#;

pub(crate) fn measure() -> Outcome {
    let folder = process::target_folder()?.join("build-cost");
    let agent = write_agent(&folder)?;
    let crates = tree(&agent)?;
    println!("{} crates (at most {MOST_CRATES})", crates.len());
    let foreign = direct_foreign(&crates, &nameable(&agent)?)?;
    let mut bare_arguments = vec!["build".to_owned()];
    for name in &foreign {
        bare_arguments.extend(["--package".to_owned(), name.clone()]);
    }
    let bare = cpu_seconds(&agent, &folder.join("bare"), &bare_arguments)?;
    let whole = cpu_seconds(&agent, &folder.join("whole"), &["build".to_owned()])?;
    let ratio = whole / bare;
    println!(
        "foreign dependencies alone: {bare:.1} CPU s\nthe smallest agent: {whole:.1} CPU s\nratio {ratio:.2} (at most {MOST_RATIO})"
    );
    let mut findings = Vec::new();
    if crates.len() > MOST_CRATES {
        findings.push(format!(
            "{} crates are more than {MOST_CRATES}",
            crates.len()
        ));
    }
    if ratio > MOST_RATIO {
        findings.push(format!("the ratio {ratio:.2} is more than {MOST_RATIO}"));
    }
    Failure::unless_empty("figures of P-5 are not kept", &findings)
}

/// More crates than the smallest agent may bring, if there are.
pub(crate) fn too_many_crates() -> Outcome<Option<String>> {
    let crates = tree(&write_agent(&process::target_folder()?.join("build-cost"))?)?;
    Ok((crates.len() > MOST_CRATES).then(|| {
        format!(
            "the smallest agent brings {} crates, more than {MOST_CRATES} (P-5)",
            crates.len()
        )
    }))
}

/// Writes the smallest agent as a package of its own, with the versions of our lock file.
fn write_agent(folder: &Path) -> Outcome<PathBuf> {
    let agent = folder.join("agent");
    let root = manifest::root();
    let manifest = format!(
        "[workspace]\n\n[package]\nname = \"smallest-agent\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n\n[dependencies]\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n\
         yiem = {{ path = {:?}, default-features = false, features = {FEATURES:?} }}\n",
        root.join("crates/yiem"),
    );
    let write = |path: &str, text: &str| -> Outcome {
        let path = agent.join(path);
        fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()).into())
    };
    fs::create_dir_all(agent.join("src"))
        .map_err(|e| format!("cannot make {}: {e}", agent.display()))?;
    write("Cargo.toml", &manifest)?;
    write("src/main.rs", PROGRAM)?;
    write("Cargo.lock", &process::read(&root.join("Cargo.lock"))?)?;
    Ok(agent)
}

/// The crates of its tree that are compiled for users, ours included, itself excepted.
fn tree(agent: &Path) -> Outcome<BTreeSet<String>> {
    let lines = tree_lines(agent, "normal")?;
    Ok(lines.iter().filter_map(|line| id_of(line)).collect())
}

/// Those of them that cargo builds by their names. It does not those that only procedural macros
/// use; they are built all the same, with the macros.
fn nameable(agent: &Path) -> Outcome<BTreeSet<String>> {
    let mut lines = tree_lines(agent, "normal,no-proc-macro")?;
    let all = tree_lines(agent, "normal")?;
    lines.extend(all.into_iter().filter(|line| line.contains("(proc-macro)")));
    Ok(lines.iter().filter_map(|line| id_of(line)).collect())
}

fn tree_lines(agent: &Path, edges: &str) -> Outcome<Vec<String>> {
    let mut command = process::cargo(&[
        "tree", "--edges", edges, "--prefix", "none", "--format", "{p}",
    ]);
    let text = process::output(command.current_dir(agent))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// `name@version` of a line such as `name v1.0.0 (proc-macro)`; none of the agent itself.
fn id_of(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let (name, version) = (words.next()?, words.next()?);
    (name != "smallest-agent").then(|| format!("{name}@{}", version.trim_start_matches('v')))
}

/// Those foreign crates of the tree that our own crates in it name in their manifests, as far as
/// cargo builds them by their names.
fn direct_foreign(
    tree: &BTreeSet<String>,
    nameable: &BTreeSet<String>,
) -> Outcome<BTreeSet<String>> {
    let packages = manifest::packages(&manifest::root())?;
    let version_of = |name: &str| {
        tree.iter()
            .find(|id| id.rsplit_once('@').is_some_and(|(n, _)| n == name))
    };
    let own = |name: &str| {
        packages
            .iter()
            .any(|package: &Package| package.name == name)
    };
    let mut found = BTreeSet::new();
    for package in packages
        .iter()
        .filter(|package| version_of(&package.name).is_some())
    {
        for dependency in package.dependencies() {
            if let (Kind::Normal, false, Some(id)) = (
                dependency.kind,
                own(&dependency.name),
                version_of(&dependency.name),
            ) {
                found.insert(id.clone());
            }
        }
    }
    found.extend(version_of("tokio").cloned());
    found.retain(|id| nameable.contains(id));
    Ok(found)
}

/// User and system time of a clean build, by the shell's own count of its children.
fn cpu_seconds(agent: &Path, target: &Path, arguments: &[String]) -> Outcome<f64> {
    if target.exists() {
        fs::remove_dir_all(target)
            .map_err(|e| format!("cannot clear {}: {e}", target.display()))?;
    }
    let mut command = Command::new("bash");
    command.args([
        "-c",
        "cargo \"$@\" >&2; code=$?; times; exit $code",
        "build-cost",
    ]);
    command
        .args(arguments)
        .env("CARGO_TARGET_DIR", target)
        .current_dir(agent);
    children_seconds(&process::output(&mut command)?)
}

/// Reads what the shell's `times` says: itself in the first line, its children in the second.
fn children_seconds(times: &str) -> Outcome<f64> {
    let seconds = |word: &str| -> Option<f64> {
        let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    let sum = times
        .lines()
        .nth(1)
        .and_then(|line| line.split_whitespace().map(seconds).sum::<Option<f64>>());
    sum.ok_or_else(|| format!("the shell's times cannot be read: {times:?}").into())
}

#[cfg(test)]
mod tests;
