//! `cargo xtask layers`: edges between our crates, and what their trees must not hold.
//!
//! Knows: `layers.toml`, the manifests, and what `cargo tree` resolves for one crate alone.
//! Does not know: why a line of `layers.toml` is as it is (docs/architecture.md).

use std::collections::BTreeMap;
use std::path::Path;

use toml::Table;

use crate::failure::{Failure, Outcome};
use crate::manifest::{self, Kind, Package, tables, texts};
use crate::{build_cost, fuzzing, process};

/// Our own test kit: a dev-dependency of whoever wants it, a normal one only where the plan says so.
const TEST_KIT: &str = "yiem-test";

pub(crate) fn check(root: &Path) -> Outcome {
    let plan: Table = process::read(&root.join("layers.toml"))?
        .parse()
        .map_err(|e| format!("layers.toml: {e}"))?;
    let packages = manifest::packages(root)?;
    // Only the edges of the fuzz targets are planned: what they build is nobody's tree.
    let all: Vec<Package> = manifest::packages(root)?
        .into_iter()
        .chain([fuzzing::package(root)?])
        .collect();
    let mut findings = edges(&plan, &all);
    for package in &packages {
        findings.extend(trees(&plan, package)?);
    }
    findings.extend(build_cost::too_many_crates()?);
    Failure::unless_empty("breaches of layers.toml", &findings)
}

/// Edges of the manifests that the plan does not have, rows of the plan that say nothing true.
fn edges(plan: &Table, packages: &[Package]) -> Vec<String> {
    let own = |name: &str| packages.iter().any(|package| package.name == name);
    let mut findings = Vec::new();
    for package in packages {
        let Some(row) = plan.get(&package.name) else {
            findings.push(format!(
                "{} has no row: give it a layer and say what it may use",
                package.name
            ));
            continue;
        };
        let (may, may_dev) = (texts(row.get("may")), texts(row.get("may_dev")));
        for dependency in package.dependencies() {
            let to = dependency.name.as_str();
            if !own(to) || to == package.name {
                continue;
            }
            let is_dev = dependency.kind == Kind::Dev;
            let planned = may.iter().any(|name| name == to)
                || (is_dev && (to == TEST_KIT || may_dev.iter().any(|name| name == to)));
            if !planned {
                findings.push(format!(
                    "{} -> {to}{}: the plan has no such edge",
                    package.name,
                    if is_dev { " (dev)" } else { "" },
                ));
            }
        }
        for to in &may {
            match (layer(plan, &package.name), layer(plan, to)) {
                (Some(from), Some(below)) if below < from => {}
                (Some(_), Some(_)) => findings.push(format!(
                    "{} -> {to} does not point to a lower layer",
                    package.name
                )),
                _ => findings.push(format!(
                    "{} may use {to}, which has no row with a layer",
                    package.name
                )),
            }
        }
    }
    for (name, _) in plan.iter().filter(|(name, _)| *name != "everywhere") {
        if !own(name) {
            findings.push(format!("[{name}] is no crate of this workspace"));
        }
    }
    findings
}

fn layer(plan: &Table, name: &str) -> Option<i64> {
    plan.get(name)?.get("layer")?.as_integer()
}

/// Forbidden crates in what cargo resolves for this package alone.
fn trees(plan: &Table, package: &Package) -> Outcome<Vec<String>> {
    let mut findings = Vec::new();
    let Some(row) = plan.get(&package.name) else {
        return Ok(findings);
    };
    let features = package.features();
    let bare = Tree::of(&package.name, &["--no-default-features"])?;
    let whole = Tree::of(&package.name, &["--all-features"])?;
    findings.extend(bare.forbidden("without features", &texts(row.get("bare"))));
    let never = texts(plan.get("everywhere").and_then(|row| row.get("never")));
    findings.extend(whole.forbidden("with all features", &never));
    if let Some(allowed) = row.get("tokio") {
        findings.extend(bare.features_beyond("tokio", &texts(Some(allowed))));
    }
    for (banned, doors) in tables(row.get("only")) {
        let doors = texts(Some(doors));
        for feature in &features {
            if doors.contains(feature) || opens(package, feature, &doors) || !whole.holds(banned) {
                continue;
            }
            let tree = Tree::of(
                &package.name,
                &["--no-default-features", "--features", feature],
            )?;
            findings.extend(tree.forbidden(
                &format!("with feature {feature}"),
                std::slice::from_ref(banned),
            ));
        }
    }
    Ok(findings)
}

/// Whether `feature` turns on one of `doors`, directly or by way of others.
fn opens(package: &Package, feature: &str, doors: &[String]) -> bool {
    let mut seen = vec![feature.to_owned()];
    let mut next = 0;
    while let Some(name) = seen.get(next).cloned() {
        next += 1;
        let entry = package
            .table
            .get("features")
            .and_then(|features| features.get(&name));
        for on in texts(entry) {
            if doors.contains(&on) {
                return true;
            }
            if !seen.contains(&on) {
                seen.push(on);
            }
        }
    }
    false
}

/// What one package brings along, for users (no dev-dependencies), each with its features.
struct Tree {
    package: String,
    crates: BTreeMap<String, Vec<String>>,
}

impl Tree {
    fn of(package: &str, features: &[&str]) -> Outcome<Self> {
        let mut command = process::cargo(&["tree", "--package", package, "--edges", "normal"]);
        command
            .args(["--prefix", "none", "--format", "{p}\t{f}"])
            .args(features);
        Ok(Self::read(package, &process::output(&mut command)?))
    }

    fn read(package: &str, text: &str) -> Self {
        let mut crates: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in text.lines() {
            let (id, features) = line.split_once('\t').unwrap_or((line, ""));
            let Some(name) = id.split_whitespace().next() else {
                continue;
            };
            let features = features.trim_end_matches("(*)").trim().split(',');
            let known = crates.entry(name.to_owned()).or_default();
            known.extend(features.filter(|f| !f.is_empty()).map(str::to_owned));
        }
        Self {
            package: package.to_owned(),
            crates,
        }
    }

    fn holds(&self, name: &str) -> bool {
        self.crates.contains_key(name)
    }

    fn forbidden(&self, when: &str, banned: &[String]) -> Vec<String> {
        let found = banned.iter().filter(|name| self.holds(name));
        found
            .map(|name| {
                format!(
                    "{} brings {name} {when} (`cargo tree -p {} -i {name}` shows the way)",
                    self.package, self.package
                )
            })
            .collect()
    }

    fn features_beyond(&self, name: &str, allowed: &[String]) -> Vec<String> {
        let on = self.crates.get(name).map(Vec::as_slice).unwrap_or_default();
        let mut beyond: Vec<&String> = on
            .iter()
            .filter(|f| *f != "default" && !allowed.contains(f))
            .collect();
        beyond.sort();
        beyond.dedup();
        beyond
            .iter()
            .map(|feature| {
                format!(
                    "{} turns on {name}/{feature}, the plan has only {allowed:?}",
                    self.package
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
