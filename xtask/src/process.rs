//! Running other programs, with errors that name the command line.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::{Failure, Outcome};

/// Cargo as it was called, at the root of the workspace.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(crate::manifest::root());
    command
}

/// Runs a command to its end; its output goes to the terminal.
pub(crate) fn run(command: &mut Command) -> Outcome {
    println!("$ {}", line(command));
    let status = command.status().map_err(|e| cannot_start(command, &e))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("`{}` ended with {status}", line(command)).into())
}

/// Runs a command to its end and gives back what it wrote to standard output.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| cannot_start(command, &e))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!(
        "`{}` ended with {}:\n{}{}",
        line(command),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    )
    .into())
}

/// The first of these programs that can be started with `--version`.
pub(crate) fn first_available(programs: &[&str]) -> Option<String> {
    programs
        .iter()
        .find(|program| {
            Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        })
        .map(|program| (*program).to_owned())
}

/// Where cargo builds: `target`, unless the environment or a setting says otherwise.
pub(crate) fn target_folder() -> Outcome<PathBuf> {
    let metadata = output(&mut cargo(&["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: serde_json::Value =
        serde_json::from_str(&metadata).map_err(|e| format!("cargo metadata: {e}"))?;
    match metadata["target_directory"].as_str() {
        Some(folder) => Ok(folder.into()),
        None => Err("cargo metadata names no target directory".into()),
    }
}

/// A text file, with its path in the error.
pub(crate) fn read(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()).into())
}

fn line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

fn cannot_start(command: &Command, error: &std::io::Error) -> Failure {
    format!("cannot start `{}`: {error}", line(command)).into()
}
