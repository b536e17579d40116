//! Hooks and events are documented: each hook says when it runs and what it may answer, and
//! `docs/hooks.md` and `docs/events.md` have them all. Source files that a page names are there.
//!
//! Knows: the trait `AgentHook` and the enum `AgentEvent` of yiem-agent, by their source.

use std::path::Path;

use crate::failure::Outcome;
use crate::process;
use crate::rust_source::code_only;

/// What the doc block of a hook says, in this order.
const HOOK_LINES: &[&str] = &["When:", "Sees:", "May answer:", "Order:", "If it fails:"];

pub(super) fn check(root: &Path) -> Outcome<Vec<String>> {
    let agent = root.join("crates/yiem-agent/src");
    let hooks = source_of(&agent, "hook")?;
    let events = source_of(&agent, "event")?;
    let mut findings = hook_findings(&hooks, &process::read(&root.join("docs/hooks.md"))?);
    findings.extend(event_findings(
        &events,
        &process::read(&root.join("docs/events.md"))?,
    ));
    let pages = crate::manifest::files_below(&root.join("docs"))?;
    for page in pages
        .iter()
        .filter(|page| page.extension().is_some_and(|e| e == "md"))
    {
        let name = page.strip_prefix(root).unwrap_or(page).display();
        let is_there =
            |file: &str| root.join(file).exists() || root.join("crates").join(file).exists();
        for file in named_files(&process::read(page)?) {
            if !is_there(&file) {
                findings.push(format!("{name} names {file}, which is not there"));
            }
        }
    }
    let names = pages
        .iter()
        .filter(|page| page.parent().is_some_and(|folder| folder.ends_with("docs")))
        .filter(|page| page.extension().is_some_and(|e| e == "md"))
        .filter_map(|page| Some(page.file_name()?.to_string_lossy().into_owned()));
    findings.extend(index_findings(
        &process::read(&root.join("docs/README.md"))?,
        &names.collect::<Vec<_>>(),
    ));
    Ok(findings)
}

/// The source files that a page names in backticks, but those that stand for any: `x.rs`, `crates/X/…`.
fn named_files(page: &str) -> Vec<String> {
    let stands_for_any = |part: &str| matches!(part.trim_end_matches(".rs"), "x" | "X" | "foo");
    page.split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| name.ends_with(".rs") && name.contains("/src/") && !name.contains(' '))
        .filter(|name| !name.split('/').any(stands_for_any))
        .map(str::to_owned)
        .collect()
}

/// Pages that the index does not name, and names in the index without a page.
fn index_findings(index: &str, pages: &[String]) -> Vec<String> {
    let rows: Vec<&str> = index
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .filter(|name| name.ends_with(".md"))
        .collect();
    let mut findings = Vec::new();
    for page in pages.iter().filter(|page| *page != "README.md") {
        if !rows.contains(&page.as_str()) {
            findings.push(format!("docs/README.md does not name {page}"));
        }
    }
    for row in rows {
        if !pages.iter().any(|page| page == row) {
            findings.push(format!("docs/README.md names {row}, which is not there"));
        }
    }
    findings
}

/// A module with all of its files.
fn source_of(folder: &Path, module: &str) -> Outcome<String> {
    let mut source = process::read(&folder.join(format!("{module}.rs")))?;
    for file in crate::manifest::files_below(&folder.join(module))? {
        if file.file_stem().is_some_and(|stem| stem != "tests") {
            source.push_str(&process::read(&file)?);
        }
    }
    Ok(source)
}

/// The text between the braces that follow `head`.
fn braces<'a>(source: &'a str, head: &str) -> Option<&'a str> {
    let code = code_only(source);
    let open = code.find(head)? + code[code.find(head)?..].find('{')?;
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&source[open + 1..at]);
        }
    }
    None
}

/// Items directly inside, each with the doc comment above it.
fn documented_items<'a>(
    body: &'a str,
    name_of: impl Fn(&'a str) -> Option<&'a str>,
) -> Vec<(&'a str, String)> {
    let code = code_only(body);
    let mut found = Vec::new();
    let (mut docs, mut depth) = (String::new(), 0_i32);
    for (line, code) in body.lines().zip(code.lines()) {
        let trimmed = line.trim();
        if depth == 0 {
            if let Some(text) = trimmed.strip_prefix("///") {
                docs.push_str(text.trim());
                docs.push('\n');
            } else if let Some(name) = name_of(trimmed) {
                found.push((name, std::mem::take(&mut docs)));
            }
        }
        for byte in code.bytes() {
            depth += i32::from(b"({[".contains(&byte)) - i32::from(b")}]".contains(&byte));
        }
    }
    found
}

fn hook_findings(source: &str, page: &str) -> Vec<String> {
    let Some(body) = braces(source, "trait AgentHook") else {
        return vec!["yiem-agent: no trait AgentHook in the module hook".to_owned()];
    };
    let methods = documented_items(body, |line| {
        let rest = line
            .strip_prefix("async ")
            .unwrap_or(line)
            .strip_prefix("fn ")?;
        rest.split(['(', '<']).next()
    });
    let mut findings = Vec::new();
    // `name` and the like are no hooks: a hook begins with a word that says when.
    let hooks = methods.iter().filter(|(name, _)| {
        ["before_", "after_", "transform_", "should_", "prepare_"]
            .iter()
            .any(|start| name.starts_with(start))
    });
    for (name, docs) in hooks {
        let mut rest = docs.as_str();
        for line in HOOK_LINES {
            match rest.find(line) {
                Some(at) => rest = &rest[at..],
                None => findings.push(format!(
                    "AgentHook::{name}: its docs have no line {line:?} in its place"
                )),
            }
        }
        if !page.contains(&format!("`{name}`")) {
            findings.push(format!("docs/hooks.md does not speak of `{name}`"));
        }
    }
    findings
}

fn event_findings(source: &str, page: &str) -> Vec<String> {
    // The kinds may stand in an enum of their own, beside what all events carry.
    let body = ["enum AgentEventKind", "enum EventKind", "enum AgentEvent"]
        .iter()
        .find_map(|head| braces(source, head));
    let Some(body) = body else {
        return vec!["yiem-agent: no enum AgentEvent in the module event".to_owned()];
    };
    let variants = documented_items(body, |line| {
        let end = line
            .find(|c: char| !c.is_alphanumeric())
            .unwrap_or(line.len());
        line.starts_with(|c: char| c.is_ascii_uppercase())
            .then(|| &line[..end])
    });
    let mut findings = Vec::new();
    for (name, docs) in variants {
        if docs.trim().is_empty() {
            findings.push(format!("AgentEvent::{name} has no docs"));
        }
        let tag = format!("{}{}", name[..1].to_lowercase(), &name[1..]);
        if !page.contains(&format!("`{tag}`")) {
            findings.push(format!("docs/events.md does not speak of `{tag}`"));
        }
    }
    findings
}

#[cfg(test)]
mod tests;
