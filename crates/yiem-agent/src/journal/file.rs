//! A journal in a file: JSON Lines with a versioned header (S-2).
//!
//! Knows: lines, the lock, what is safe when. Does not know: what records mean.
//!
//! The first line is `{"yiem":"journal","version":1,"sessionId":"…"}`, every other one a record.
//! Each record is handed to the operating system before `append` returns, so it survives the end
//! of the process, however hard; [`FlushPolicy`] says when it is made to survive that of the
//! machine. A last line that was torn is cut off and kept aside beside the file
//! (`NAME.torn-1`), a line that a full disk cut short is taken back at once. One process writes at
//! a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use yiem_core::{Env, History, IdKind, SessionId};

use super::{Journal, JournalError, JournalRecord, Session};

/// The version that is written. Files of older versions open; newer ones are refused.
const VERSION: u32 = 1;

/// When a file journal makes its records survive the end of the machine (S-2). They survive the
/// end of the process in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FlushPolicy {
    /// Before each record counts.
    PerRecord,
    /// At the end of each turn.
    #[default]
    PerTurn,
    /// When the operating system sees fit.
    Never,
}

/// A journal in a file; see the module.
#[derive(Debug)]
pub struct FileJournal {
    lines: Arc<Mutex<Lines>>,
    /// The same file as that of the lines: waiting for the disk holds up no `append`.
    file: Arc<File>,
    path: PathBuf,
    flush: FlushPolicy,
}

/// The file, and how much of it is whole lines.
#[derive(Debug)]
struct Lines {
    file: Arc<File>,
    whole: u64,
    /// A line was written in part and could not be cut off yet.
    torn: bool,
    /// The lock was given back: another may write.
    closed: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    yiem: String,
    version: u32,
    session_id: SessionId,
}

impl FileJournal {
    /// Opens a session's file, or makes one; gives what it holds. The file is locked for as long
    /// as the journal lives.
    ///
    /// # Errors
    /// The file cannot be read or written, another process has it, it is no journal, it is of a
    /// newer version, or a line before the last one cannot be read.
    pub fn open(path: impl AsRef<Path>, env: &dyn Env) -> Result<(Self, Session), JournalError> {
        let path = path.as_ref();
        let mut file = locked(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)
            .map_err(|e| io(path, "read", e))?;
        let whole = keep_torn_aside(path, &mut file, &text)?;
        let session = if text[..whole].is_empty() {
            let id = SessionId::new(env.new_id(IdKind::Session));
            write_header(path, &mut file, &id)?;
            Session {
                id: Some(id),
                ..Session::default()
            }
        } else {
            read(path, &text[..whole])?
        };
        let whole = file
            .seek(SeekFrom::End(0))
            .map_err(|e| io(path, "write", e))?;
        let file = Arc::new(file);
        let journal = Self {
            file: Arc::clone(&file),
            lines: Arc::new(Mutex::new(Lines {
                file,
                whole,
                torn: false,
                closed: false,
            })),
            path: path.to_owned(),
            flush: FlushPolicy::default(),
        };
        Ok((journal, session))
    }

    /// Makes the file of a session that begins with the first `messages` messages of another
    /// (S-4); fewer when a call would be parted from its result. The other one stays as it is.
    ///
    /// # Errors
    /// The file exists already or cannot be written.
    pub fn branch(
        path: impl AsRef<Path>,
        env: &dyn Env,
        of: &Session,
        messages: usize,
    ) -> Result<(Self, Session), JournalError> {
        let path = path.as_ref();
        if path.exists() {
            return Err(JournalError::new(format!(
                "{} exists already; a branch needs a file of its own",
                path.display()
            )));
        }
        let (journal, mut session) = Self::open(path, env)?;
        let messages = crate::compaction::without_open_calls(&of.history, messages);
        let from = of.id.clone().unwrap_or_default();
        journal.write(
            &JournalRecord::Branch {
                session_id: from,
                messages,
            },
            false,
        )?;
        let mut history = History::new();
        for message in of.history.iter().take(messages) {
            let message = Arc::clone(message);
            let record = match &*message {
                yiem_core::Message::ToolResult(_) => JournalRecord::CallResult {
                    message: Arc::clone(&message),
                },
                _ => JournalRecord::Message {
                    message: Arc::clone(&message),
                },
            };
            journal.write(&record, false)?;
            history.push(message);
        }
        session.history = history;
        Ok((journal, session))
    }

    /// The same with another flush policy.
    #[must_use]
    pub fn with_flush(mut self, flush: FlushPolicy) -> Self {
        self.flush = flush;
        self
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write(&self, record: &JournalRecord, sync: bool) -> Result<(), JournalError> {
        let line = line_of(record)?;
        self.lines().append(&self.path, &line, sync)
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FileJournal {
    /// Closing the file is not enough: a child process that is being started holds it as well,
    /// for a moment.
    fn drop(&mut self) {
        self.close();
    }
}

#[async_trait]
impl Journal for FileJournal {
    /// Unless each record is flushed, this only hands the line to the operating system, on the
    /// thread that asks: that is a copy in memory, and a flush that goes on meanwhile is not waited
    /// for.
    async fn append(&self, record: &JournalRecord) -> Result<(), JournalError> {
        if self.flush != FlushPolicy::PerRecord {
            return self.write(record, false);
        }
        // Waiting for the disk is not done on a thread of the runtime.
        let (lines, path) = (Arc::clone(&self.lines), self.path.clone());
        let line = line_of(record)?;
        blocking(move || {
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.append(&path, &line, true)
        })
        .await
    }

    async fn flush(&self) -> Result<(), JournalError> {
        if self.flush != FlushPolicy::PerTurn {
            return Ok(());
        }
        let (file, path) = (Arc::clone(&self.file), self.path.clone());
        blocking(move || file.sync_data().map_err(|e| io(&path, "write", e))).await
    }

    /// At once, or as soon as a write that was left behind is done; a thread of a runtime does
    /// not wait for the disk.
    fn close(&self) {
        match self.lines.try_lock() {
            Ok(mut lines) => lines.close(),
            Err(std::sync::TryLockError::Poisoned(lines)) => lines.into_inner().close(),
            Err(std::sync::TryLockError::WouldBlock) => {
                let lines = Arc::clone(&self.lines);
                let close = move || lines.lock().unwrap_or_else(PoisonError::into_inner).close();
                match tokio::runtime::Handle::try_current() {
                    Ok(runtime) => drop(runtime.spawn_blocking(close)),
                    Err(_) => close(),
                }
            }
        }
    }
}

async fn blocking(
    work: impl FnOnce() -> Result<(), JournalError> + Send + 'static,
) -> Result<(), JournalError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| JournalError::new("the journal's write was ended").with_source(e))?
}

fn line_of(record: &JournalRecord) -> Result<Vec<u8>, JournalError> {
    let mut line = serde_json::to_vec(record)
        .map_err(|e| JournalError::new("a record cannot be written as JSON").with_source(e))?;
    line.push(b'\n');
    Ok(line)
}

impl Lines {
    /// Appends a line, whole or not at all: what a full disk let through is cut off again.
    fn append(&mut self, path: &Path, line: &[u8], sync: bool) -> Result<(), JournalError> {
        if self.closed {
            return Err(JournalError::new(format!(
                "{} was let go when its agent was stopped or dropped",
                path.display()
            )));
        }
        if self.torn {
            self.cut(path)?;
        }
        if let Err(error) = (&*self.file).write_all(line) {
            self.torn = true;
            if let Err(error) = self.cut(path) {
                tracing::warn!(%error, "a line that was written in part stays until the next one");
            }
            return Err(io(path, "write", error));
        }
        self.whole += line.len() as u64;
        if sync {
            self.file.sync_data().map_err(|e| io(path, "write", e))?;
        }
        Ok(())
    }

    /// Gives the lock back.
    fn close(&mut self) {
        if !self.closed {
            self.closed = true;
            if let Err(error) = self.file.unlock() {
                tracing::warn!(%error, "the session's file could not be unlocked");
            }
        }
    }

    fn cut(&mut self, path: &Path) -> Result<(), JournalError> {
        self.file
            .set_len(self.whole)
            .map_err(|e| io(path, "cut", e))?;
        self.torn = false;
        Ok(())
    }
}

fn locked(path: &Path) -> Result<File, JournalError> {
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(path)
        .map_err(|e| io(path, "open", e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::new(format!(
            "{} is in use by another process; a session has one writer at a time",
            path.display()
        ))),
        Err(TryLockError::Error(e)) => Err(io(path, "lock", e)),
    }
}

fn write_header(path: &Path, file: &mut File, id: &SessionId) -> Result<(), JournalError> {
    let header = Header {
        yiem: "journal".to_owned(),
        version: VERSION,
        session_id: id.clone(),
    };
    let mut line = serde_json::to_vec(&header)
        .map_err(|e| JournalError::new("the header cannot be written as JSON").with_source(e))?;
    line.push(b'\n');
    file.write_all(&line).map_err(|e| io(path, "write", e))?;
    file.sync_data().map_err(|e| io(path, "write", e))
}

/// Cuts off a last line that was torn; gives how many bytes are whole.
fn keep_torn_aside(path: &Path, file: &mut File, text: &[u8]) -> Result<usize, JournalError> {
    let whole = text
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let last = text[..whole].strip_suffix(b"\n").unwrap_or_default();
    let last_at = last
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    // A line may end where a torn write ended and be no JSON all the same.
    let readable = last.is_empty()
        || serde_json::from_slice::<serde::de::IgnoredAny>(&last[last_at..]).is_ok();
    let whole = if readable { whole } else { last_at };
    if whole < text.len() {
        let aside = (1..)
            .map(|n| {
                let mut name = path.as_os_str().to_owned();
                name.push(format!(".torn-{n}"));
                PathBuf::from(name)
            })
            .find(|p| !p.exists());
        if let Some(aside) = aside {
            std::fs::write(&aside, &text[whole..]).map_err(|e| io(&aside, "write", e))?;
        }
        file.set_len(whole as u64).map_err(|e| io(path, "cut", e))?;
    }
    Ok(whole)
}

fn read(path: &Path, text: &[u8]) -> Result<Session, JournalError> {
    let mut lines = text.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let header: Header = lines
        .next()
        .and_then(|line| serde_json::from_slice(line).ok())
        .filter(|header: &Header| header.yiem == "journal")
        .ok_or_else(|| {
            JournalError::new(format!(
                "{} is no journal: its first line says so",
                path.display()
            ))
        })?;
    if header.version > VERSION {
        return Err(JournalError::new(format!(
            "{} is of version {}; this program knows versions up to {VERSION}",
            path.display(),
            header.version
        )));
    }
    let mut records = Vec::new();
    for (at, line) in lines.enumerate() {
        records.push(serde_json::from_slice(line).map_err(|e| {
            JournalError::new(format!(
                "{}, line {}, cannot be read",
                path.display(),
                at + 2
            ))
            .with_source(e)
        })?);
    }
    let mut session = Session::of_records(records);
    session.id = Some(header.session_id);
    Ok(session)
}

fn io(path: &Path, what: &str, error: std::io::Error) -> JournalError {
    JournalError::new(format!("cannot {what} {}: {error}", path.display())).with_source(error)
}

#[cfg(test)]
mod tests;
