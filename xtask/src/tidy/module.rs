//! Files: each says what it is, has a name that means something, and hides nothing from the lints.

use std::path::Path;

use crate::failure::Outcome;
use crate::manifest::Package;
use crate::process;
use crate::rust_source::{code_only, line_of_word};
use crate::tidy::shown;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &[
    "utils", "util", "common", "helpers", "helper", "types", "misc",
];

/// Crates that speak on a terminal.
const SPEAKERS: &[&str] = &["yiem-cli", "xtask", "yiem-tests"];

pub(super) fn check(root: &Path, packages: &[Package]) -> Outcome<Vec<String>> {
    let mut findings = Vec::new();
    for package in packages {
        for file in package.rust_files()? {
            let inside = file.strip_prefix(&package.folder).unwrap_or(&file);
            let found = file_findings(&package.name, inside, &process::read(&file)?);
            findings.extend(
                found
                    .into_iter()
                    .map(|finding| format!("{}{finding}", shown(root, &file))),
            );
        }
    }
    Ok(findings)
}

/// Findings of one file, each beginning with `:LINE` or `:`.
fn file_findings(package: &str, inside: &Path, source: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let is_source = inside.starts_with("src");
    let is_test = inside.file_stem().is_some_and(|stem| stem == "tests") || !is_source;
    let first = source
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    if !is_test && !first.starts_with("//!") {
        findings.push(": does not begin with a module head (`//! What this is.`)".to_owned());
    }
    if source.trim().is_empty() {
        findings.push(": is empty".to_owned());
    }
    for part in inside
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
    {
        if EMPTY_NAMES.contains(&part.trim_end_matches(".rs")) {
            findings.push(format!(": {part:?} says nothing about what is inside"));
        }
    }
    let code = code_only(source);
    let mut refuse = |word: &str, why: &str| {
        if let Some(line) = line_of_word(&code, word) {
            findings.push(format!(":{line}: {word}: {why}"));
        }
    };
    // What a macro writes may be needed or not in someone else's crate, so `expect` will not do.
    if package != "yiem-macros" {
        refuse("#[allow(", "exceptions are #[expect(…, reason = \"…\")]");
    }
    refuse("#![allow(", "exceptions are #![expect(…, reason = \"…\")]");
    refuse("#[ignore", "a test that does not run proves nothing");
    if !is_test && !SPEAKERS.contains(&package) {
        for print in ["println!", "eprintln!", "print!", "eprint!"] {
            refuse(print, "libraries do not print; use tracing or an event");
        }
    }
    findings.extend(expects_without_reason(source, &code));
    findings
}

fn expects_without_reason(source: &str, code: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for open in ["#[expect(", "#![expect("] {
        for (at, _) in code.match_indices(open) {
            // The reason is a text, which `code` no longer has.
            let end = code[at..].find(")]").map_or(code.len(), |end| at + end);
            if !source[at..end].contains("reason") {
                let line = 1 + code[..at].bytes().filter(|b| *b == b'\n').count();
                findings.push(format!(":{line}: an exception without its reason"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests;
