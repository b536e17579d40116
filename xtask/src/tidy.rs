//! `cargo xtask tidy`: house rules that no compiler knows.
//!
//! Knows: which rules there are and in which order they are told. Each is a function from the
//! workspace (or from one text) to findings, so that a test shows a case that it refuses.
//! Does not know: layers (`layers`), anything that clippy can say.

mod documented;
mod facade;
mod fixture;
mod licence;
mod manifests;
mod module;
mod purity;
mod specification;

use std::path::Path;

use crate::failure::{Failure, Outcome};
use crate::{fuzzing, manifest, mutations};

pub(crate) fn check(root: &Path) -> Outcome {
    let packages = manifest::packages(root)?;
    let fuzz = [fuzzing::package(root)?];
    let checks = [
        manifests::check(root, &packages),
        module::check(root, &packages),
        module::check(root, &fuzz),
        facade::check(root, &packages),
        purity::check(root, &packages),
        fixture::check(root, &packages),
        documented::check(root),
        specification::check(root, &packages),
        licence::check(root),
        mutations::stale(root),
    ];
    // A check that could not read what it needs is a finding too, and the others still speak.
    let findings: Vec<String> = checks
        .into_iter()
        .flat_map(|found| found.unwrap_or_else(|failure| vec![failure.to_string()]))
        .collect();
    Failure::unless_empty("findings", &findings)
}

/// A path as people write it, from the root of the workspace.
fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string()
}

#[cfg(test)]
mod tests;
