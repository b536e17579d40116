//! Where tokens are kept, so that a person is not asked again at the next start.
//!
//! Knows: one secret text for each server, and files that only their owner can read. Does not know: what the
//! text means.

use crate::error::{McpError, McpErrorKind};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Keeps what was had by OAuth for each server. The text is a secret, and no other code's business.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// What is kept for the server at this address.
    ///
    /// # Errors
    /// It cannot be read. The person is asked again then.
    async fn load(&self, server: &str) -> Result<Option<String>, McpError>;

    /// Keeps this in place of what was there.
    ///
    /// # Errors
    /// It cannot be written. The request that wanted a token fails.
    async fn save(&self, server: &str, secret: &str) -> Result<(), McpError>;

    /// Forgets the server.
    ///
    /// # Errors
    /// It cannot be removed.
    async fn clear(&self, server: &str) -> Result<(), McpError>;
}

/// Keeps tokens as long as the process runs. The default.
#[derive(Default)]
pub struct MemoryTokenStore(Mutex<HashMap<String, String>>);

impl fmt::Debug for MemoryTokenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryTokenStore")
    }
}

#[async_trait]
impl TokenStore for MemoryTokenStore {
    async fn load(&self, server: &str) -> Result<Option<String>, McpError> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(kept.get(server).cloned())
    }

    async fn save(&self, server: &str, secret: &str) -> Result<(), McpError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(server.to_owned(), secret.to_owned());
        Ok(())
    }

    async fn clear(&self, server: &str) -> Result<(), McpError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(server);
        Ok(())
    }
}

/// Keeps tokens in a directory, one file a server, readable by its owner alone (0600, the directory 0700).
///
/// A file that others can read is not used. Files are replaced whole, so that two processes never leave half
/// of one; what a process left behind that was killed while it wrote goes with the next use of the directory.
#[derive(Debug, Clone)]
pub struct FileTokenStore {
    directory: PathBuf,
}

impl FileTokenStore {
    /// Keeps them in this directory, which is made at the first token.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    /// A name that a person knows again, the host, made unique by a hash; the file says whose it is. A
    /// password in the address is no part of it.
    fn path(&self, server: &str) -> PathBuf {
        let mut url = reqwest::Url::parse(server).ok();
        if let Some(url) = &mut url {
            // Refused where there can be none.
            let _ = url.set_password(None);
        }
        let host: String = url
            .as_ref()
            .and_then(reqwest::Url::host_str)
            .unwrap_or("server")
            .chars()
            .take(60)
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        // FNV-1a: the same at every start.
        let hash = url
            .as_ref()
            .map_or(server, reqwest::Url::as_str)
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        self.directory.join(format!("{host}-{hash:016x}.json"))
    }
}

/// Does work that waits for a disk where it stops nobody else.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, McpError> + Send + 'static,
) -> Result<T, McpError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| {
            Err(McpError::new(McpErrorKind::Config(
                "the token file was not reached: the work on it ended early".into(),
            ))
            .with_source(error))
        })
}

fn failed(what: &str, path: &Path, error: io::Error) -> McpError {
    let path = path.display();
    McpError::new(McpErrorKind::Config(format!(
        "the token file {path} cannot be {what}: {error}"
    )))
    .with_source(error)
}

#[async_trait]
impl TokenStore for FileTokenStore {
    async fn load(&self, server: &str) -> Result<Option<String>, McpError> {
        let (path, server) = (self.path(server), server.to_owned());
        let directory = self.directory.clone();
        aside(move || {
            sweep(&directory);
            read_private(&path, &server)
        })
        .await
    }

    async fn save(&self, server: &str, secret: &str) -> Result<(), McpError> {
        let (directory, path) = (self.directory.clone(), self.path(server));
        let text = json!({"server": server, "secret": secret}).to_string();
        aside(move || {
            write_private(&directory, &path, text.as_bytes())
                .map_err(|error| failed("written", &path, error))
        })
        .await
    }

    async fn clear(&self, server: &str) -> Result<(), McpError> {
        let (directory, path) = (self.directory.clone(), self.path(server));
        aside(move || {
            sweep(&directory);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(failed("removed", &path, error))
                }
                _ => Ok(()),
            }
        })
        .await
    }
}

fn read_private(path: &Path, server: &str) -> Result<Option<String>, McpError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", path, error)),
    };
    check_private(path)?;
    let kept: Value = serde_json::from_str(&text)
        .map_err(|error| failed("read", path, io::Error::other(error)))?;
    if kept.get("server").and_then(Value::as_str) != Some(server) {
        return Ok(None);
    }
    let secret = kept.get("secret").and_then(Value::as_str);
    Ok(secret.map(str::to_owned))
}

#[cfg(unix)]
fn check_private(path: &Path) -> Result<(), McpError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(path)
        .map_err(|error| failed("read", path, error))?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        let why = io::Error::other("others can read it; make it 0600, or remove it");
        return Err(failed("used", path, why));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private(_: &Path) -> Result<(), McpError> {
    Ok(())
}

/// What the names of drafts end in.
const DRAFT: &str = "new";
/// How often a draft is begun anew that was swept before it was locked.
const DRAFTS_TRIED: usize = 5;

/// A name for a draft that nobody else uses: neither this process, nor one of the same number elsewhere.
fn draft(path: &Path) -> PathBuf {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let random = RandomState::new().hash_one(number);
    path.with_extension(format!(
        "{}-{number}-{random:016x}.{DRAFT}",
        std::process::id()
    ))
}

/// Whether it is a name that [`draft`] gives.
fn is_draft(name: &str) -> bool {
    let mut parts = name.rsplit('.');
    let (Some(DRAFT), Some(middle), Some(stem)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let numbers: Vec<&str> = middle.split('-').collect();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let hash = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let [process, number, random] = numbers[..] else {
        return false;
    };
    let of_a_server = stem.rsplit('-').next().is_some_and(hash);
    of_a_server && digits(process) && digits(number) && hash(random)
}

/// Takes away the drafts of processes that are gone. Who writes one holds its lock, and a process that is killed
/// lets go of it. What cannot be looked at stays.
fn sweep(directory: &Path) {
    let Ok(files) = std::fs::read_dir(directory) else {
        return;
    };
    for file in files.flatten() {
        let is_file = file.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || !file.file_name().to_str().is_some_and(is_draft) {
            continue;
        }
        let path = file.path();
        let left = std::fs::File::open(&path).is_ok_and(|draft| draft.try_lock().is_ok());
        if left {
            let _ = std::fs::remove_file(&path);
        }
    }
}

fn write_private(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut make = std::fs::DirBuilder::new();
    make.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        make.mode(0o700);
    }
    make.create(directory)?;
    sweep(directory);
    let mut tries = 1;
    loop {
        let draft = draft(path);
        let written = write_draft(&draft, bytes).and_then(|locked| {
            std::fs::rename(&draft, path)?;
            // Its lock is kept until it is no draft any more.
            drop(locked);
            Ok(())
        });
        let Err(error) = written else { return Ok(()) };
        let _ = std::fs::remove_file(&draft);
        let swept = error.kind() == io::ErrorKind::NotFound;
        if !swept || tries == DRAFTS_TRIED {
            return Err(error);
        }
        tries += 1;
    }
}

fn write_draft(draft: &Path, bytes: &[u8]) -> io::Result<std::fs::File> {
    let mut open = std::fs::File::options();
    open.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        open.mode(0o600);
    }
    let mut file = open.open(draft)?;
    // Where there are no locks, drafts are never found unlocked either, and stay.
    let _ = file.try_lock();
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests;
