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
/// of one.
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
        aside(move || read_private(&path, &server)).await
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
        let path = self.path(server);
        aside(move || match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("removed", &path, error))
            }
            _ => Ok(()),
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

/// A name for a draft that nobody else uses: neither this process, nor one of the same number elsewhere.
fn draft(path: &Path) -> PathBuf {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let random = RandomState::new().hash_one(number);
    path.with_extension(format!("{}-{number}-{random:016x}.new", std::process::id()))
}

fn write_private(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut make = std::fs::DirBuilder::new();
    make.recursive(true);
    let mut open = std::fs::File::options();
    open.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        make.mode(0o700);
        open.mode(0o600);
    }
    make.create(directory)?;
    let draft = draft(path);
    let written = open
        .open(&draft)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests;
