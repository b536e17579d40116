//! No foreign type in a public signature.
//!
//! Knows: which foreign crates are our own business, and how rustdoc describes a public API.
//! Does not know: what a signature is for.
//!
//! rustdoc's JSON needs its unstable options. They are turned on for rustdoc alone, by way of a
//! wrapper (this program itself, see [`as_rustdoc`]), so that no build script sees them and
//! nothing is compiled again.

use std::collections::BTreeSet;
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::failure::{Failure, Outcome};
use crate::{manifest, process};

/// Crates whose next version must not be ours: none of their types stands in a signature.
const HIDDEN: &[&str] = &[
    "async_nats",
    "hyper",
    "jsonschema",
    "nix",
    "reqwest",
    "rmcp",
    "rquickjs",
    "rustls",
    "schemars",
    "clap",
    "toml",
];

/// Types that do stand in a signature, and why. `CRATE::TYPE seen in CRATE`.
const KNOWN: &[(&str, &str, &str)] = &[
    // A typed tool is made of a type that derives it; the facade re-exports the derive.
    ("yiem_tools", "schemars", "JsonSchema"),
    ("yiem_agent", "schemars", "JsonSchema"),
    // One configuration for the process is what yiem-tls is for; only siblings use it.
    ("yiem_tls", "rustls", "ClientConfig"),
];

/// Set when this program was called as rustdoc.
const WRAPPER: &str = "YIEM_XTASK_AS_RUSTDOC";

/// Runs the real rustdoc with its unstable options, if this program was called in its place.
pub(crate) fn as_rustdoc() -> Option<ExitCode> {
    std::env::var_os(WRAPPER)?;
    let mut command = Command::new("rustdoc");
    command
        .args(std::env::args_os().skip(1))
        .env("RUSTC_BOOTSTRAP", "1");
    let status = command.status();
    Some(if status.is_ok_and(|status| status.success()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Checks each library in `crates/`.
pub(crate) fn check() -> Outcome {
    let own = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let target = process::target_folder()?;
    let mut findings = Vec::new();
    for package in manifest::packages(&manifest::root())? {
        let is_library = package.folder.join("src/lib.rs").exists();
        let is_macro = package
            .table
            .get("lib")
            .and_then(|lib| lib.get("proc-macro"))
            .is_some();
        if !package.is_public() || !is_library || is_macro {
            continue;
        }
        let mut command = process::cargo(&[
            "rustdoc",
            "--quiet",
            "--lib",
            "--all-features",
            "--package",
            &package.name,
        ]);
        command.args(["--", "-Z", "unstable-options", "--output-format", "json"]);
        process::run(command.env("RUSTDOC", &own).env(WRAPPER, "1"))?;
        let name = package.name.replace('-', "_");
        let text = process::read(&target.join(format!("doc/{name}.json")))?;
        let api: Value =
            serde_json::from_str(&text).map_err(|e| format!("doc/{name}.json: {e}"))?;
        findings.extend(foreign_types(&name, &api));
    }
    Failure::unless_empty("foreign types in public signatures", &findings)
}

fn foreign_types(krate: &str, api: &Value) -> BTreeSet<String> {
    let mut findings = BTreeSet::new();
    for item in api["index"]
        .as_object()
        .into_iter()
        .flat_map(|index| index.values())
    {
        let implementation = &item["inner"]["impl"];
        // What other crates implement for all types says nothing about ours.
        if !implementation["blanket_impl"].is_null() || implementation["is_synthetic"] == true {
            continue;
        }
        let mut ids = Vec::new();
        paths(&item["inner"], &mut ids);
        for id in ids {
            let Some((foreign, path)) = foreign_path(api, &id) else {
                continue;
            };
            let last = path.rsplit("::").next().unwrap_or_default();
            let is_known = KNOWN
                .iter()
                .any(|(at, from, name)| (*at, *from, *name) == (krate, foreign.as_str(), last));
            if HIDDEN.contains(&foreign.as_str()) && !is_known {
                findings.insert(format!("{krate}: {path} in {}", place(item)));
            }
        }
    }
    findings
}

/// The ids of all types and traits that a description refers to.
fn paths(value: &Value, ids: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            // Items inside are items of the index themselves.
            let refers = fields.contains_key("path") && fields.contains_key("args");
            if let Some(id) = fields.get("id").filter(|_| refers) {
                ids.push(id.to_string().trim_matches('"').to_owned());
            }
            for field in fields.values() {
                paths(field, ids);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| paths(value, ids)),
        _ => {}
    }
}

/// The foreign crate of an id and its path there.
fn foreign_path(api: &Value, id: &str) -> Option<(String, String)> {
    let summary = &api["paths"][id];
    let krate = summary["crate_id"].as_u64().filter(|krate| *krate != 0)?;
    let name = api["external_crates"][krate.to_string()]["name"].as_str()?;
    let path: Vec<&str> = summary["path"]
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    Some((name.to_owned(), path.join("::")))
}

fn place(item: &Value) -> String {
    let name = item["name"].as_str().unwrap_or("an impl");
    let file = item["span"]["filename"].as_str().unwrap_or("?");
    let line = item["span"]["begin"][0].as_u64().unwrap_or_default();
    format!("{name} ({file}:{line})")
}

#[cfg(test)]
mod tests;
