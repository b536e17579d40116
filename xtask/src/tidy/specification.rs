//! `docs/specification.md` is true: every promised id has a row, and every item and test that a
//! row names exists.
//!
//! Knows: the promised ids, how a row is written, and how an item or a test is found in source.
//! Does not know: whether the test proves the rule; the reader of a row does.

use std::collections::BTreeSet;
use std::path::Path;

use crate::failure::Outcome;
use crate::manifest::Package;
use crate::process;
use crate::rust_source::{code_only, holds_word, test_names};

/// A rule family: its letter, and how many rules it has.
const RULES: &[(&str, u32)] = &[
    ("C", 11),
    ("O", 7),
    ("T", 8),
    ("R", 17),
    ("S", 5),
    ("M", 11),
    ("P", 5),
];

/// How many numbers YiemAgent's specification has.
const SEEDS: u32 = 24;

pub(super) fn check(root: &Path, packages: &[Package]) -> Outcome<Vec<String>> {
    let page = process::read(&root.join("docs/specification.md"))?;
    let mut known = Known::default();
    for package in packages {
        known.add(package)?;
    }
    Ok(findings(&page, &known, &|file| root.join(file).is_file()))
}

/// What the source has, as far as rows speak of it.
#[derive(Default)]
struct Known {
    /// Crate (with underscores) and its code without tests.
    crates: Vec<(String, String)>,
    /// Crate, the file's path in it without `.rs`, test name.
    tests: BTreeSet<(String, String, String)>,
}

impl Known {
    fn add(&mut self, package: &Package) -> Outcome {
        let name = package.name.replace('-', "_");
        let mut code = String::new();
        for file in package.rust_files()? {
            let source = process::read(&file)?;
            let inside = file
                .strip_prefix(&package.folder)
                .unwrap_or(&file)
                .with_extension("");
            for test in test_names(&source) {
                self.tests
                    .insert((name.clone(), inside.display().to_string(), test));
            }
            if inside.starts_with("src") && !inside.ends_with("tests") {
                code.push_str(&code_only(&source));
            }
        }
        self.crates.push((name, code));
        Ok(())
    }

    /// `yiem_core::message::Message`, or a method, field or variant of it.
    fn has_item(&self, path: &str) -> bool {
        let parts: Vec<&str> = path.split("::").collect();
        let [krate, .., last] = parts.as_slice() else {
            return false;
        };
        let Some((_, code)) = self.crates.iter().find(|(name, _)| name == krate) else {
            return false;
        };
        let owner = parts
            .len()
            .checked_sub(2)
            .and_then(|at| parts.get(at))
            .copied()
            .unwrap_or_default();
        if owner.starts_with(|c: char| c.is_ascii_uppercase()) {
            return declares(code, owner) && holds_word(code, last);
        }
        declares(code, last)
    }

    /// `yiem_agent::run::tests::name`, `yiem_cli::it::name` or `tests/it/file.rs::name`.
    fn has_test(&self, path: &str) -> bool {
        let Some((place, test)) = path.rsplit_once("::") else {
            return false;
        };
        let mut named = self.tests.iter().filter(|(_, _, name)| name == test);
        let (krate, rest) = place.split_once("::").unwrap_or((place, ""));
        if self.crates.iter().any(|(name, _)| name == krate) {
            // The modules of the path must stand in the file's path, in their order.
            return named.any(|(name, file, _)| {
                let mut steps = file.split('/');
                name == krate
                    && rest
                        .split("::")
                        .filter(|part| !["", "it", "tests"].contains(part))
                        .all(|part| steps.any(|step| step == part))
            });
        }
        let place = place.trim_end_matches(".rs").replace("::", "/");
        named.any(|(name, file, _)| {
            let whole = match name.as_str() {
                "yiem_tests" => file.clone(),
                _ => format!("crates/{}/{file}", name.replace('_', "-")),
            };
            whole.ends_with(&place) || format!("tests/{whole}").ends_with(&place)
        })
    }
}

fn declares(code: &str, name: &str) -> bool {
    [
        "struct",
        "enum",
        "trait",
        "fn",
        "type",
        "const",
        "static",
        "mod",
        "union",
        "macro_rules!",
    ]
    .iter()
    .any(|kind| holds_word(code, &format!("{kind} {name}")))
}

/// Every id that must have a row.
fn promised() -> Vec<String> {
    let mut ids: Vec<String> = RULES
        .iter()
        .flat_map(|(letter, count)| (1..=*count).map(move |number| format!("{letter}-{number}")))
        .collect();
    ids.extend((1..=SEEDS).map(|number| format!("SP-{number:03}")));
    ids.extend(
        [
            "SP-006.1", "SP-006.2", "SP-006.3", "SP-018.1", "SP-018.2", "SP-018.3", "SP-018.4",
        ]
        .map(str::to_owned),
    );
    ids
}

struct Row<'a> {
    line: usize,
    id: &'a str,
    item: &'a str,
    test: &'a str,
}

fn rows(page: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for (at, line) in page.lines().enumerate() {
        let cells: Vec<&str> = line
            .trim()
            .trim_matches('|')
            .split(" | ")
            .map(str::trim)
            .collect();
        let [id, _, item, test] = cells.as_slice() else {
            continue;
        };
        if line.starts_with("| ") && *id != "id" && !id.starts_with("---") {
            rows.push(Row {
                line: at + 1,
                id,
                item,
                test,
            });
        }
    }
    rows
}

fn names(cell: &str) -> impl Iterator<Item = &str> {
    let parts = cell.split(|c: char| c.is_whitespace() || matches!(c, '`' | ',' | '<' | '>'));
    parts.filter(|part| !part.is_empty() && *part != "br")
}

fn findings(page: &str, known: &Known, is_file: &dyn Fn(&str) -> bool) -> Vec<String> {
    let rows = rows(page);
    let mut findings = Vec::new();
    for row in &rows {
        let at = format!("docs/specification.md:{} {}", row.line, row.id);
        if row.item == "open" && row.test == "open" {
            findings.push(format!("{at}: still open"));
            continue;
        }
        if names(row.item).next().is_none() || names(row.test).next().is_none() {
            findings.push(format!("{at}: a row names an item and a test"));
        }
        for item in names(row.item) {
            let is_there = known.has_item(item) || (item.contains(['/', '.']) && is_file(item));
            if !is_there {
                findings.push(format!("{at}: there is no item {item}"));
            }
        }
        for test in names(row.test) {
            let is_there = known.has_test(test) || (test.contains('/') && is_file(test));
            if !is_there {
                findings.push(format!("{at}: there is no test {test}"));
            }
        }
    }
    for id in promised() {
        if !rows.iter().any(|row| row.id == id) {
            findings.push(format!("docs/specification.md has no row for {id}"));
        }
    }
    for (family, headings) in [("T: ", 27), ("R: ", 8), ("CLI ", 8)] {
        let found: BTreeSet<&str> = rows
            .iter()
            .map(|row| row.id)
            .filter(|id| id.starts_with(family))
            .collect();
        if found.len() < headings {
            findings.push(format!("docs/specification.md has {} rows that begin with {family:?}, there are {headings}", found.len()));
        }
    }
    findings
}

#[cfg(test)]
mod tests;
