//! `cargo xtask soak --mutations [NAME…]`: each committed mutation is caught by a test.
//!
//! Knows: the list `xtask/mutations.toml`: in which file which words are replaced by which, and
//! which promise that breaks. It works on a copy of the sources, so nothing can be left broken.
//! Does not know: which test notices; any will do.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::failure::{Failure, Outcome};
use crate::{manifest, process};

/// What is copied: everything that a build of the crates needs.
const COPIED: &[&str] = &[
    "crates",
    "tests",
    "xtask",
    "docs",
    "Cargo.toml",
    "Cargo.lock",
    "layers.toml",
    "rust-toolchain.toml",
    "clippy.toml",
    ".config",
    "README.md",
];

/// One way to break a promise.
#[derive(Debug, PartialEq)]
struct Mutation {
    name: String,
    breaks: String,
    package: String,
    file: String,
    find: String,
    replace: String,
}

/// Applies each mutation whose name contains one of `names` (all without names), and runs the
/// tests of its crate.
pub(crate) fn run(names: &[&str]) -> Outcome {
    let root = manifest::root();
    let copy = process::target_folder()?.join("mutations/tree");
    let target = process::target_folder()?.join("mutations/target");
    let mut survivors = Vec::new();
    for mutation in mutations(&root)? {
        if !names.is_empty() && !names.iter().any(|name| mutation.name.contains(name)) {
            continue;
        }
        refresh(&root, &copy)?;
        let file = copy.join(&mutation.file);
        let mutated = mutation.applied(&process::read(&file)?)?;
        write_if_changed(&file, mutated.as_bytes())?;
        let cargo = |arguments: &[&str]| {
            let mut command = process::cargo(arguments);
            command.args([
                "--package",
                &mutation.package,
                "--all-features",
                "--lib",
                "--tests",
            ]);
            command.current_dir(&copy).env("CARGO_TARGET_DIR", &target);
            command
        };
        if let Err(failure) = process::output(&mut cargo(&["test", "--quiet", "--no-run"])) {
            return Err(format!(
                "the mutation {} does not compile, so it proves nothing: {failure}",
                mutation.name
            )
            .into());
        }
        // Two minutes are many times what the tests take; a mutation that hangs them is caught.
        let mut tests = std::process::Command::new("timeout");
        let inner = cargo(&["test", "--quiet"]);
        tests
            .args(["--kill-after=5", "120"])
            .arg(inner.get_program())
            .args(inner.get_args());
        tests.current_dir(&copy).env("CARGO_TARGET_DIR", &target);
        let caught = process::output(&mut tests).is_err();
        println!(
            "{:<9} {} ({})",
            if caught { "caught" } else { "SURVIVED" },
            mutation.name,
            mutation.breaks
        );
        if !caught {
            survivors.push(format!(
                "{} in {}: {}",
                mutation.name, mutation.file, mutation.breaks
            ));
        }
    }
    Failure::unless_empty("mutations survived", &survivors)
}

/// Mutations whose words are not in their file exactly once: they have gone stale.
pub(crate) fn stale(root: &Path) -> Outcome<Vec<String>> {
    let mut findings = Vec::new();
    for mutation in mutations(root)? {
        let applied =
            process::read(&root.join(&mutation.file)).and_then(|source| mutation.applied(&source));
        findings.extend(applied.err().map(|failure| failure.to_string()));
    }
    Ok(findings)
}

impl Mutation {
    fn applied(&self, source: &str) -> Outcome<String> {
        match source.matches(&self.find).count() {
            1 => Ok(source.replacen(&self.find, &self.replace, 1)),
            times => Err(format!(
                "xtask/mutations.toml: the words of {:?} are {times} times in {}, not once",
                self.name, self.file
            )
            .into()),
        }
    }
}

fn mutations(root: &Path) -> Outcome<Vec<Mutation>> {
    parse(&process::read(&root.join("xtask/mutations.toml"))?)
}

fn parse(text: &str) -> Outcome<Vec<Mutation>> {
    let table: Table = text
        .parse()
        .map_err(|e| format!("xtask/mutations.toml: {e}"))?;
    let list = table
        .get("mutation")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    list.iter()
        .map(|entry| {
            let text = |key: &str| match entry.get(key).and_then(Value::as_str) {
                Some(text) => Ok(text.to_owned()),
                None => Err(format!(
                    "xtask/mutations.toml: a mutation has no {key:?}: {entry:?}"
                )),
            };
            let file = text("file")?;
            let package = file.split('/').nth(1).unwrap_or_default().to_owned();
            Ok(Mutation {
                name: text("name")?,
                breaks: text("breaks")?,
                package,
                find: text("find")?,
                replace: text("replace")?,
                file,
            })
        })
        .collect()
}

/// Makes the copy equal to the sources, touching only what differs, so that little is built again.
fn refresh(root: &Path, copy: &Path) -> Outcome {
    for part in COPIED {
        let from = root.join(part);
        let files: Vec<PathBuf> = if from.is_dir() {
            manifest::files_below(&from)?
        } else {
            vec![from]
        };
        for file in files {
            let (Ok(inside), Ok(bytes)) = (file.strip_prefix(root), fs::read(&file)) else {
                continue;
            };
            write_if_changed(&copy.join(inside), &bytes)?;
        }
    }
    Ok(())
}

fn write_if_changed(file: &Path, bytes: &[u8]) -> Outcome {
    if fs::read(file).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let cannot = |e: std::io::Error| format!("cannot write {}: {e}", file.display());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(cannot)?;
    }
    fs::write(file, bytes).map_err(cannot)?;
    Ok(())
}

#[cfg(test)]
mod tests;
