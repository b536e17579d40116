//! `lib.rs` only exports, and the facade only re-exports.
//!
//! Knows: which items may stand in a root file. A root file that holds no logic is a diff that
//! shows the change of the public API.

use std::path::Path;

use crate::failure::Outcome;
use crate::manifest::Package;
use crate::process;
use crate::rust_source::{Item, code_only, items};
use crate::tidy::shown;

pub(super) fn check(root: &Path, packages: &[Package]) -> Outcome<Vec<String>> {
    let mut findings = Vec::new();
    for package in packages {
        let facade = package.name == "yiem";
        for file in package.rust_files()? {
            let inside = file.strip_prefix(&package.folder).unwrap_or(&file);
            let is_root = inside == Path::new("src/lib.rs");
            let name = shown(root, &file);
            let source = process::read(&file)?;
            if is_root || (facade && inside.starts_with("src")) {
                findings.extend(
                    more_than_exports(&source)
                        .into_iter()
                        .map(|f| format!("{name}{f}")),
                );
            }
            // What a macro writes must name its crate's own path, so that crate re-exports it there.
            let is_macro_support = inside.ends_with("support.rs");
            if inside.starts_with("src") && package.is_public() && !facade && !is_macro_support {
                let found = re_exports_of_siblings(&package.name, &source);
                findings.extend(found.into_iter().map(|f| format!("{name}{f}")));
            }
        }
    }
    Ok(findings)
}

/// Items that are neither modules nor uses, modules with a body looked into.
fn more_than_exports(source: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut queue = items(&code_only(source), 1);
    while let Some(item) = queue.pop() {
        if is_export(&item) {
            continue;
        }
        match (&item.body, is_module(&item)) {
            (Some(body), true) => queue.extend(items(body, item.body_line)),
            _ => findings.push(format!(
                ":{}: only exports may stand here, not `{}`",
                item.line,
                item.head.lines().next().unwrap_or_default()
            )),
        }
    }
    findings
}

fn words(item: &Item) -> Vec<&str> {
    let head = item.head.strip_prefix("pub(crate)").unwrap_or(&item.head);
    head.split_whitespace()
        .filter(|word| *word != "pub")
        .collect()
}

fn is_module(item: &Item) -> bool {
    words(item).first() == Some(&"mod")
}

fn is_export(item: &Item) -> bool {
    let words = words(item);
    match words.as_slice() {
        ["use", ..] | ["extern", "crate", ..] => true,
        ["mod", _] => item.body.is_none() || item.attributes.contains("cfg(test)"),
        // A procedural macro must be declared in the root of its crate.
        ["fn", ..] => item.attributes.contains("proc_macro"),
        _ => false,
    }
}

/// `pub use yiem_…` below the facade. Exceptions are yiem-tools' `#[tool]`, and a whole crate of
/// the contracts under its own name (`pub use yiem_core;`, docs/decisions/0011).
fn re_exports_of_siblings(package: &str, source: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for item in items(&code_only(source), 1) {
        let Some(target) = item.head.strip_prefix("pub use ") else {
            continue;
        };
        let target = target.trim_start_matches("::");
        let is_whole = matches!(target.trim_end_matches(';'), "yiem_core" | "yiem_tools");
        let planned = is_whole || package == "yiem-tools" && target.starts_with("yiem_macros");
        if target.starts_with("yiem_") && !planned {
            findings.push(format!(
                ":{}: re-exports {target}; only the facade does that",
                item.line
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests;
