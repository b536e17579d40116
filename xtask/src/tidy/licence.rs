//! What cargo resolved: licences that we may ship, and no crate in two versions without a reason.
//!
//! Knows: `Cargo.lock` by way of cargo, the accepted licences, and the doubles that are known.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Table;

use crate::failure::Outcome;
use crate::manifest::tables;
use crate::{fuzzing, process};

/// Licences that go with MIT OR Apache-2.0 without asking more than a notice.
const ACCEPTED: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "BSL-1.0",
    "CC0-1.0",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "CDLA-Permissive-2.0",
    "MPL-2.0",
    "NCSA",
];

struct Resolved {
    name: String,
    version: String,
    licence: String,
}

pub(super) fn check(root: &Path) -> Outcome<Vec<String>> {
    let plan: Table = process::read(&root.join("layers.toml"))?
        .parse()
        .map_err(|e| format!("layers.toml: {e}"))?;
    let known: Vec<String> = tables(plan.get("everywhere").and_then(|row| row.get("doubles")))
        .map(|(name, _)| name.clone())
        .collect();
    let resolved = resolved(&["--workspace", "--all-features"])?;
    let mut findings = refused_licences(&resolved);
    // The fuzz targets are a workspace of their own, whose doubles nobody compiles by the way.
    let fuzz = fuzzing::folder(root).join("Cargo.toml");
    let fuzz = fuzz.display().to_string();
    findings.extend(refused_licences(&self::resolved(&[
        "--manifest-path",
        &fuzz,
    ])?));
    findings.extend(doubles(&resolved, &known));
    Ok(findings)
}

/// The foreign crates that a build on this kind of machine compiles.
fn resolved(which: &[&str]) -> Outcome<Vec<Resolved>> {
    let mut command = process::cargo(&["tree", "--prefix", "none"]);
    command.args(which);
    let text =
        process::output(command.args(["--edges", "normal,build,dev", "--format", "{p}\t{l}"]))?;
    let mut found: Vec<Resolved> = Vec::new();
    for line in text.lines() {
        let line = line.trim_end_matches("(*)").trim_end();
        let (id, licence) = line.split_once('\t').unwrap_or((line, ""));
        let mut words = id.split_whitespace();
        let (Some(name), Some(version)) = (words.next(), words.next()) else {
            continue;
        };
        // Ours have a path behind the version.
        if id.contains("(/")
            || found
                .iter()
                .any(|known| known.name == name && known.version == version)
        {
            continue;
        }
        found.push(Resolved {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: licence.trim().to_owned(),
        });
    }
    Ok(found)
}

fn refused_licences(resolved: &[Resolved]) -> Vec<String> {
    let refused = resolved.iter().filter(|one| !is_accepted(&one.licence));
    refused
        .map(|one| {
            format!(
                "{} {} has the licence {:?}, which is not on our list",
                one.name, one.version, one.licence
            )
        })
        .collect()
}

/// Whether one of the offered alternatives is made of accepted licences only.
fn is_accepted(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], " ").replace('/', " OR ");
    let all_of = |part: &str| {
        part.split(" AND ").all(|licence| {
            ACCEPTED.contains(
                &licence
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
                    .as_str(),
            )
        })
    };
    if expression.contains('(') {
        // `(A OR B) AND C`: each group must offer something.
        return expression.split(" AND ").all(|group| {
            group
                .replace(['(', ')'], " ")
                .replace('/', " OR ")
                .split(" OR ")
                .any(all_of)
        });
    }
    plain.split(" OR ").any(all_of)
}

fn doubles(resolved: &[Resolved], known: &[String]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in resolved {
        versions.entry(&one.name).or_default().push(&one.version);
    }
    let mut findings = Vec::new();
    for (name, versions) in &versions {
        if versions.len() > 1 && !known.iter().any(|known| known == name) {
            findings.push(format!(
                "{name} is compiled in several versions ({}): bring them together, or give the reason in layers.toml [everywhere.doubles]",
                versions.join(", ")
            ));
        }
    }
    for name in known {
        if versions
            .get(name.as_str())
            .is_none_or(|versions| versions.len() < 2)
        {
            findings.push(format!(
                "layers.toml [everywhere.doubles] excuses {name}, which is there once at most"
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests;
