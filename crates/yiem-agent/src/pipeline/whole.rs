//! Results that are too long: what the model is shown, and where the whole of it goes (T-8).
//!
//! Knows: the agent's choice, and how a file is named. Does not know: how text is cut; the
//! crate of the tools does.

use std::io::Write;
use std::path::{Path, PathBuf};

use yiem_core::{ToolCallId, ToolOutput};
use yiem_tools::{ResultLimit, WHOLE_OUTPUT_FILE, WholeOutput, keep_in_details};

use super::TurnEnv;

/// Cuts a result to `bytes` of text. Gives the whole of what was cut.
pub(super) fn cut(turn: &TurnEnv, output: &mut ToolOutput, bytes: usize) -> Option<String> {
    ResultLimit::new(bytes)
        .with_whole(turn.config.whole_results.clone())
        .apply(output)
}

/// Puts the whole of a result where the agent's settings say. A file that cannot be written
/// costs the file and not the result: the details say why.
pub(super) async fn keep(
    turn: &TurnEnv,
    call: &ToolCallId,
    output: &mut ToolOutput,
    whole: String,
) {
    if let WholeOutput::InFolder(folder) = &turn.config.whole_results {
        let path = file(folder, turn.run_id.as_str(), call.as_str());
        let told = path.display().to_string();
        let told = match tokio::task::spawn_blocking(move || write(&path, &whole)).await {
            Ok(Ok(path)) => path.display().to_string(),
            Ok(Err(error)) => format!("{told} could not be written: {error}"),
            Err(error) => format!("{told} could not be written: {error}"),
        };
        keep_in_details(&mut output.details, WHOLE_OUTPUT_FILE, &told);
    }
}

/// Writes a file of that name, or of that name and a number: servers give the same id to calls of
/// several replies, and what one of them came to is not written over.
fn write(path: &Path, text: &str) -> std::io::Result<PathBuf> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut file = path.to_owned();
    let mut number = 1_u32;
    loop {
        match std::fs::File::create_new(&file) {
            Ok(mut open) => return open.write_all(text.as_bytes()).map(|()| file),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                number += 1;
                file = path.with_file_name(format!("{stem}-{number}.txt"));
            }
            Err(error) => return Err(error),
        }
    }
}

/// The file of a call's whole result. Ids come from models: nothing of them leads elsewhere.
fn file(folder: &Path, run: &str, call: &str) -> PathBuf {
    let plain = |id: &str| -> String {
        id.chars()
            .take(80)
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '-' {
                    c
                } else {
                    '_'
                }
            })
            .collect()
    };
    folder.join(format!("{}-{}.txt", plain(run), plain(call)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_models_lead_nowhere_else() {
        let path = file(Path::new("/results"), "run_1", "../../etc/passwd");
        assert_eq!(path, Path::new("/results/run_1-______etc_passwd.txt"));
    }
}
