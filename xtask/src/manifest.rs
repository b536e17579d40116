//! The workspace as its manifests describe it.
//!
//! Knows: where the root is, which packages there are, and their `Cargo.toml` as a table.
//! Does not know: what cargo resolves them to (`layers` and `tidy` ask cargo where it matters).

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::failure::Outcome;
use crate::process;

/// The root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// A package of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) table: Table,
}

/// Which kind of dependency table an edge stands in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Normal,
    Dev,
    Build,
}

/// A dependency as the manifest names it.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) entry: Value,
}

impl Package {
    /// Reads the package in `folder`.
    pub(crate) fn open(folder: &Path) -> Outcome<Self> {
        let path = folder.join("Cargo.toml");
        let table: Table = process::read(&path)?
            .parse()
            .map_err(|e| format!("{}: {e}", path.display()))?;
        let name = table
            .get("package")
            .and_then(|package| package.get("name"))
            .and_then(Value::as_str)
            .ok_or_else(|| format!("{} has no package name", path.display()))?;
        Ok(Self {
            name: name.to_owned(),
            folder: folder.to_owned(),
            table,
        })
    }

    /// All dependencies, those of `[target.….dependencies]` included.
    pub(crate) fn dependencies(&self) -> Vec<Dependency> {
        let mut found = Vec::new();
        collect(&self.table, &mut found);
        for (_, target) in tables(self.table.get("target")) {
            if let Value::Table(target) = target {
                collect(target, &mut found);
            }
        }
        found
    }

    /// The names of its features, `default` excepted.
    pub(crate) fn features(&self) -> Vec<String> {
        let declared = tables(self.table.get("features")).map(|(name, _)| name.clone());
        declared.filter(|name| name != "default").collect()
    }

    /// Whether it stands in `crates/` and so is meant for others to use.
    pub(crate) fn is_public(&self) -> bool {
        self.folder
            .parent()
            .is_some_and(|parent| parent.ends_with("crates"))
    }

    /// Its Rust files, sorted by folder: sources, tests, benches, examples. The package of the
    /// whole-stack tests has its tests in `corpus`, `it` and `live`, that of the fuzz targets
    /// its targets in `fuzz_targets`.
    pub(crate) fn rust_files(&self) -> Outcome<Vec<PathBuf>> {
        let mut files = Vec::new();
        for part in [
            "src",
            "tests",
            "benches",
            "examples",
            "corpus",
            "it",
            "live",
            "fuzz_targets",
        ] {
            files.extend(files_below(&self.folder.join(part))?);
        }
        files.retain(|file| file.extension().is_some_and(|e| e == "rs"));
        Ok(files)
    }
}

fn collect(table: &Table, found: &mut Vec<Dependency>) {
    for (key, kind) in [
        ("dependencies", Kind::Normal),
        ("dev-dependencies", Kind::Dev),
        ("build-dependencies", Kind::Build),
    ] {
        for (name, entry) in tables(table.get(key)) {
            found.push(Dependency {
                name: name.clone(),
                kind,
                entry: entry.clone(),
            });
        }
    }
}

/// Every package of the workspace at `root`, in the order of its folders.
pub(crate) fn packages(root: &Path) -> Outcome<Vec<Package>> {
    let mut folders = vec![root.join("tests"), root.join("xtask")];
    if let Ok(entries) = fs::read_dir(root.join("crates")) {
        folders.extend(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())));
    }
    folders.retain(|folder| folder.join("Cargo.toml").exists());
    folders.sort();
    folders.iter().map(|folder| Package::open(folder)).collect()
}

/// All files below `folder`, sorted; none when it does not exist.
pub(crate) fn files_below(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry
                .map_err(|e| format!("cannot list {}: {e}", folder.display()))?
                .path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The texts of a TOML list; nothing else in it counts.
pub(crate) fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    items
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// The entries of a TOML table; none when it is not one.
pub(crate) fn tables(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_table).into_iter().flatten()
}
