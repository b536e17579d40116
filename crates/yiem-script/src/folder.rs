//! The folder that tool files stand in: reading it, and adding a file to it.
//!
//! Knows: files, links, and how a file comes to be whole or not at all. Does not know: scripts.
//! Everything here blocks; [`aside`] does it where that harms nobody.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use yiem_core::Env;

mod handle;

use handle::Handle;

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
    let folder = Handle::open(dir, true)?;
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
            Ok(kind) if kind.is_file() => read_text(&folder, &entry.file_name(), most_bytes),
            Ok(_) => Err("it is not a regular file".to_owned()),
            Err(e) => Err(format!("it could not be looked at: {e}")),
        };
        found.push(Found { path, file, text });
    }
    found.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(found)
}

/// The text of a file. What was looked at before may be another now: what counts is what is open.
fn read_text(folder: &Handle, name: &OsStr, most_bytes: usize) -> Result<String, String> {
    let file = folder
        .open_file(name)
        .map_err(|e| format!("it could not be opened: {e}"))?;
    let kind = file
        .metadata()
        .map_err(|e| format!("it could not be looked at: {e}"))?;
    if !kind.is_file() {
        return Err("it is not a regular file".to_owned());
    }
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
    /// Another writer is at work in the folder.
    Busy,
    /// The system refused.
    Io(io::Error),
}

impl From<io::Error> for PutError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// How long a writer waits for others, and how often it looks.
const BUSY_PAUSE: Duration = Duration::from_millis(20);
const BUSY_TRIES: usize = 250;

/// As [`put`], aside, and once the other writers in the folder are done.
pub(crate) async fn put_in_turn(
    env: &dyn Env,
    put: impl Fn() -> Result<PathBuf, PutError> + Clone + Send + 'static,
) -> Result<PathBuf, PutError> {
    for _ in 1..BUSY_TRIES {
        match aside(put.clone()).await? {
            Err(PutError::Busy) => env.sleep(BUSY_PAUSE).await,
            done => return done,
        }
    }
    aside(put).await?
}

/// Writes a file into the folder, whole or not at all. `file` has been checked to be a plain
/// name. Makes the folder if it is not there.
///
/// One writer at a time: two that looked at the same moment could both find a name free that is
/// spelt in two ways. What a writer left behind that was killed goes with the next.
pub(crate) fn put(
    dir: &Path,
    file: &str,
    overwrite: bool,
    write: impl FnOnce(&mut &File) -> io::Result<()>,
) -> Result<PathBuf, PutError> {
    match fs::symlink_metadata(dir) {
        Ok(kind) if kind.is_symlink() => return Err(PutError::Link(dir.to_owned())),
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => fs::create_dir_all(dir)?,
        Err(e) => return Err(e.into()),
    }
    // From here on the folder is this one, whatever becomes of its name.
    let folder = Handle::open(dir, false)?;
    if !folder.lock()? {
        return Err(PutError::Busy);
    }
    let target = dir.join(file);
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let there = entry.file_name().to_string_lossy().into_owned();
        if Draft::is_name(&there) {
            Draft::sweep(&folder, &there);
        }
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
    let draft = Draft::new(&folder)?;
    let mut open = &draft.file;
    write(&mut open)?;
    open.flush()?;
    open.sync_all()?;
    match draft.keep_as(file, overwrite) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            return Err(PutError::Exists(file.to_owned()));
        }
        Err(e) => return Err(e.into()),
    }
    folder.sync()?;
    Ok(target)
}

/// A file that is being written, and gone unless it is kept.
struct Draft<'f> {
    folder: &'f Handle,
    name: String,
    file: File,
    kept: bool,
}

impl<'f> Draft<'f> {
    /// How many names are tried that others may have left behind.
    const TRIES: usize = 1_000;

    fn new(folder: &'f Handle) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let process = std::process::id();
        for _ in 0..Self::TRIES {
            let name = format!(
                ".writing-{process}-{}.tmp",
                NEXT.fetch_add(1, Ordering::Relaxed)
            );
            match folder.create(&name) {
                Ok(file) => {
                    // Where there are no locks, drafts are never found unlocked either, and stay.
                    let _ = file.try_lock();
                    return Ok(Self {
                        folder,
                        name,
                        file,
                        kept: false,
                    });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::other(
            "the folder is full of files that begin with .writing-; remove them",
        ))
    }

    /// Whether it is a name that [`Draft::new`] gives.
    fn is_name(name: &str) -> bool {
        let middle = name
            .strip_prefix(".writing-")
            .and_then(|name| name.strip_suffix(".tmp"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        middle
            .and_then(|middle| middle.split_once('-'))
            .is_some_and(|(process, number)| digits(process) && digits(number))
    }

    /// Takes away a draft whose writer is gone. Who writes one holds its lock, and a process that
    /// is killed lets go of it. What cannot be looked at stays.
    fn sweep(folder: &Handle, name: &str) {
        let Ok(file) = folder.open_file(OsStr::new(name)) else {
            return;
        };
        let left = file.metadata().is_ok_and(|kind| kind.is_file()) && file.try_lock().is_ok();
        if left {
            let _ = folder.remove(name);
        }
    }

    fn keep_as(mut self, name: &str, overwrite: bool) -> io::Result<()> {
        match overwrite {
            true => self.folder.replace(&self.name, name)?,
            false => self.folder.rename_new(&self.name, name)?,
        }
        self.kept = true;
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be removed is passed over by whoever reads the folder.
            let _ = self.folder.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests;
