//! The folder that tool files stand in: reading it, and adding a file to it.
//!
//! Knows: files, links, and how a file comes to be whole or not at all. Does not know: scripts.
//! Everything here blocks; [`aside`] does it where that harms nobody.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use tempfile::Builder;

/// Does blocking work on a thread of its own. The thread ends with the work, also when nobody
/// waits for it any more.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (done, wait) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("yiem-script-files".to_owned())
        .spawn(move || {
            // Nobody may wait any more.
            let _ = done.send(work());
        })?;
    wait.await
        .map_err(|_| io::Error::other("the thread that works on the files panicked"))
}

/// One tool file, or why it cannot be one.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) file: String,
    pub(crate) text: Result<String, String>,
}

/// The tool files of a folder, in the order of their names: those that end in `.js` or `.mjs`
/// and do not begin with a dot.
pub(crate) fn read(dir: &Path, most_bytes: usize) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        let file = entry.file_name().to_string_lossy().into_owned();
        let is_script = path
            .extension()
            .is_some_and(|ending| ending == "js" || ending == "mjs");
        if !is_script || file.starts_with('.') {
            continue;
        }
        let text = match entry.file_type() {
            Ok(kind) if kind.is_dir() => continue,
            Ok(kind) if kind.is_symlink() => {
                Err("it is a symbolic link, which is not followed".to_owned())
            }
            Ok(kind) if kind.is_file() => read_text(&path, most_bytes),
            Ok(_) => Err("it is not a regular file".to_owned()),
            Err(e) => Err(format!("it could not be looked at: {e}")),
        };
        found.push(Found { path, file, text });
    }
    found.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(found)
}

fn read_text(path: &Path, most_bytes: usize) -> Result<String, String> {
    let file = File::open(path).map_err(|e| format!("it could not be opened: {e}"))?;
    let mut bytes = Vec::new();
    // One byte more tells that there is more.
    let most = u64::try_from(most_bytes)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(|e| format!("it could not be read: {e}"))?;
    if bytes.len() > most_bytes {
        return Err(format!(
            "it has more than the {most_bytes} bytes that are read of a tool file"
        ));
    }
    String::from_utf8(bytes).map_err(|e| {
        let before = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        format!("it is not UTF-8 in line {line}")
    })
}

/// Why a file could not be added.
#[derive(Debug)]
pub(crate) enum PutError {
    /// A file of that name is there already, in this or another spelling.
    Exists(String),
    /// A tool that stands elsewhere has the name.
    Taken,
    /// What has the name is no file: a folder, a pipe.
    NoFile(String),
    /// The file, or the folder, is a symbolic link.
    Link(PathBuf),
    /// The system refused.
    Io(io::Error),
}

impl From<io::Error> for PutError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writes a file into the folder, whole or not at all. `file` has been checked to be a plain
/// name. Makes the folder if it is not there.
pub(crate) fn put(
    dir: &Path,
    file: &str,
    overwrite: bool,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<PathBuf, PutError> {
    match fs::symlink_metadata(dir) {
        Ok(kind) if kind.is_symlink() => return Err(PutError::Link(dir.to_owned())),
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => fs::create_dir_all(dir)?,
        Err(e) => return Err(e.into()),
    }
    let target = dir.join(file);
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let there = entry.file_name().to_string_lossy().into_owned();
        if !there.eq_ignore_ascii_case(file) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            return Err(PutError::Link(entry.path()));
        }
        if !kind.is_file() {
            return Err(PutError::NoFile(there));
        }
        // Another spelling would be the same file on some systems, and another one here.
        if !overwrite || there != file {
            return Err(PutError::Exists(there));
        }
    }
    let mut builder = Builder::new();
    builder.prefix(".writing-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What the user's umask leaves of this; a temporary file's own default is for its owner.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut temporary = builder.tempfile_in(dir)?;
    write(temporary.as_file_mut())?;
    temporary.as_file_mut().flush()?;
    temporary.as_file().sync_all()?;
    let kept = if overwrite {
        temporary.persist(&target)
    } else {
        temporary.persist_noclobber(&target)
    };
    match kept {
        Ok(_) => {}
        Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(PutError::Exists(file.to_owned()));
        }
        Err(e) => return Err(e.error.into()),
    }
    #[cfg(unix)]
    File::open(dir)?.sync_all()?;
    Ok(target)
}

#[cfg(test)]
mod tests;
