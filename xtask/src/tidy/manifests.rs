//! Manifests: everything that can be inherited is, and each foreign crate has its reason.
//!
//! Knows: the root manifest, those of the packages, `docs/dependencies.md`.

use std::path::Path;

use toml::{Table, Value};

use crate::failure::Outcome;
use crate::manifest::{Package, tables};
use crate::process;
use crate::tidy::shown;

/// What every package inherits from the workspace.
const INHERITED: &[&str] = &[
    "version",
    "edition",
    "rust-version",
    "license",
    "authors",
    "publish",
];

pub(super) fn check(root: &Path, packages: &[Package]) -> Outcome<Vec<String>> {
    let manifest: Table = process::read(&root.join("Cargo.toml"))?
        .parse()
        .map_err(|e| format!("Cargo.toml: {e}"))?;
    let mut findings = workspace_findings(&manifest);
    for package in packages {
        let name = shown(root, &package.folder.join("Cargo.toml"));
        findings.extend(
            package_findings(package)
                .into_iter()
                .map(|f| format!("{name}: {f}")),
        );
    }
    let reasons = process::read(&root.join("docs/dependencies.md"))?;
    findings.extend(reasons_missing(&manifest, &reasons));
    for (name, _) in foreign(&manifest) {
        let is_used = packages
            .iter()
            .any(|package| package.dependencies().iter().any(|d| d.name == *name));
        if !is_used {
            findings.push(format!("Cargo.toml: no package uses {name}"));
        }
    }
    for file in [
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
    ] {
        if !root.join(file).exists() {
            findings.push(format!("{file} is not there"));
        }
    }
    Ok(findings)
}

fn workspace_findings(manifest: &Table) -> Vec<String> {
    let mut findings = Vec::new();
    let workspace = manifest.get("workspace");
    let package = workspace.and_then(|workspace| workspace.get("package"));
    for (key, want) in [("edition", "2024"), ("license", "MIT OR Apache-2.0")] {
        if package
            .and_then(|package| package.get(key))
            .and_then(Value::as_str)
            != Some(want)
        {
            findings.push(format!(
                "Cargo.toml: workspace.package.{key} is not {want:?}"
            ));
        }
    }
    if manifest.contains_key("package") {
        findings.push("Cargo.toml: the root manifest is virtual, it has no package".to_owned());
    }
    let lints = workspace.and_then(|workspace| workspace.get("lints"));
    let unsafe_code = lints
        .and_then(|lints| lints.get("rust"))
        .and_then(|rust| rust.get("unsafe_code"));
    if unsafe_code.and_then(Value::as_str) != Some("forbid") {
        findings.push("Cargo.toml: the lint unsafe_code is not \"forbid\"".to_owned());
    }
    findings
}

fn is_inherited(value: Option<&Value>) -> bool {
    value
        .and_then(|value| value.get("workspace"))
        .and_then(Value::as_bool)
        == Some(true)
}

fn package_findings(package: &Package) -> Vec<String> {
    let mut findings = Vec::new();
    let own = package.table.get("package");
    for key in INHERITED {
        // A package that is never published may say so itself.
        let value = own.and_then(|own| own.get(*key));
        let says_never = *key == "publish" && value.and_then(Value::as_bool) == Some(false);
        if !is_inherited(value) && !says_never {
            findings.push(format!(
                "package.{key} is not inherited (`{key}.workspace = true`)"
            ));
        }
    }
    if package.is_public() && own.and_then(|own| own.get("description")).is_none() {
        findings.push("package.description is missing".to_owned());
    }
    if !is_inherited(package.table.get("lints")) {
        findings.push("the lints are not inherited (`[lints] workspace = true`)".to_owned());
    }
    for dependency in package.dependencies() {
        if !is_inherited(Some(&dependency.entry)) {
            findings.push(format!(
                "{} is not inherited (`{0}.workspace = true`)",
                dependency.name
            ));
        }
    }
    findings
}

/// Dependencies of the root manifest that are not our own.
fn foreign(manifest: &Table) -> impl Iterator<Item = (&String, &Value)> {
    let all = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"));
    tables(all).filter(|(_, entry)| entry.get("path").is_none())
}

fn reasons_missing(manifest: &Table, reasons: &str) -> Vec<String> {
    let rows: Vec<(&str, &str)> = reasons
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .collect();
    let mut findings = Vec::new();
    for (name, _) in foreign(manifest) {
        if !rows
            .iter()
            .any(|(row, reason)| row == name && reason.trim_end_matches('|').trim().len() > 3)
        {
            findings.push(format!(
                "docs/dependencies.md does not say why {name} is here"
            ));
        }
    }
    for (row, _) in &rows {
        if !foreign(manifest).any(|(name, _)| name == row) {
            findings.push(format!(
                "docs/dependencies.md speaks of {row}, which the root manifest does not have"
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests;
