//! Pure modules stay pure: no async, clock, randomness, task or IO.
//!
//! Knows: which modules are promised to be pure, and the words that would break the promise.

use std::path::{Path, PathBuf};

use crate::failure::Outcome;
use crate::manifest::Package;
use crate::process;
use crate::rust_source::{code_only, line_of_word};
use crate::tidy::shown;

/// Modules that decide and do nothing else: crate and module.
const PURE: &[(&str, &str)] = &[
    ("yiem-agent", "run"),
    ("yiem-mcp", "correlate"),
    ("yiem-openai", "stream"),
    ("yiem-openai", "classify"),
];

/// What a pure module has no use for.
const IMPURE: &[&str] = &[
    "async",
    ".await",
    "tokio",
    "tokio_util",
    "Instant",
    "SystemTime",
    "now_utc",
    "Uuid",
    "rand",
    "spawn",
    "thread",
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "reqwest",
    "async_nats",
    "env.now(",
    ".sleep(",
];

pub(super) fn check(root: &Path, packages: &[Package]) -> Outcome<Vec<String>> {
    let mut findings = Vec::new();
    for (name, module) in PURE {
        let Some(package) = packages.iter().find(|package| package.name == *name) else {
            findings.push(format!(
                "{name}, which holds the pure module {module}, is not there"
            ));
            continue;
        };
        let files: Vec<PathBuf> = package.rust_files()?;
        let of_module = files
            .iter()
            .filter(|file| belongs(&package.folder, file, module));
        let mut any = false;
        for file in of_module {
            any = true;
            let found = impurities(&process::read(file)?);
            findings.extend(
                found
                    .into_iter()
                    .map(|f| format!("{}{f}", shown(root, file))),
            );
        }
        if !any {
            findings.push(format!(
                "{name} has no module {module}, which was promised to be pure"
            ));
        }
    }
    Ok(findings)
}

fn belongs(package: &Path, file: &Path, module: &str) -> bool {
    let Ok(inside) = file.strip_prefix(package.join("src")) else {
        return false;
    };
    let is_module = inside == Path::new(&format!("{module}.rs")) || inside.starts_with(module);
    is_module && inside.file_stem().is_none_or(|stem| stem != "tests")
}

fn impurities(source: &str) -> Vec<String> {
    let code = code_only(source);
    let found = IMPURE
        .iter()
        .filter_map(|word| Some((word, line_of_word(&code, word)?)));
    found
        .map(|(word, line)| {
            format!(
                ":{line}: `{word}` in a module that is pure (time, ids and IO come in as arguments)"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests;
