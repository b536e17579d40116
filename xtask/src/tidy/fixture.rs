//! Fixtures: each is read by a test of its crate.
//!
//! Knows: that a fixture is meant when a test names its file, or names its folder and lists it.

use std::path::Path;

use crate::failure::Outcome;
use crate::manifest::{Package, files_below};
use crate::process;
use crate::tidy::shown;

pub(super) fn check(root: &Path, packages: &[Package]) -> Outcome<Vec<String>> {
    let mut findings = Vec::new();
    for package in packages {
        let fixtures = package.folder.join("tests/fixtures");
        let files = files_below(&fixtures)?;
        if files.is_empty() {
            continue;
        }
        let mut sources = Vec::new();
        for file in package.rust_files()? {
            sources.push(process::read(&file)?);
        }
        for file in files {
            let inside = file.strip_prefix(&fixtures).unwrap_or(&file);
            if !is_read(inside, &sources) {
                findings.push(format!(
                    "{}: no test of {} reads this fixture",
                    shown(root, &file),
                    package.name
                ));
            }
        }
    }
    Ok(findings)
}

fn is_read(inside: &Path, sources: &[String]) -> bool {
    if inside.file_name().is_some_and(|name| name == "README.md") {
        return true;
    }
    let name = inside.file_name().unwrap_or_default().to_string_lossy();
    let folder = match inside.parent() {
        Some(parent) if parent != Path::new("") => format!("fixtures/{}", parent.display()),
        _ => "tests/fixtures\"".to_owned(),
    };
    let last = inside
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default();
    let alone = format!("\"{}\"", last.to_string_lossy());
    sources.iter().any(|source| {
        let lists = source.contains("read_dir")
            && (source.contains(&folder)
                || (source.contains("tests/fixtures") && source.contains(&alone)));
        source.contains(name.as_ref()) || lists
    })
}

#[cfg(test)]
mod tests;
