//! A folder held open: what is done in it is done in that folder, whatever its name comes to mean.
//!
//! Knows: opening, making and naming files inside one folder, without following links, and keeping
//! others from doing so at the same time. Does not know: what the files are. Where the system has no
//! such handles, names are all there is.

#[cfg(unix)]
mod held {
    use std::ffi::OsStr;
    use std::fs::{File, TryLockError};
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use nix::errno::Errno;
    use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, renameat};
    use nix::sys::stat::Mode;
    use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

    /// See the module.
    #[derive(Debug)]
    pub(crate) struct Handle(OwnedFd);

    impl Handle {
        /// Opens a folder. One that is a link is opened only if that may be.
        pub(crate) fn open(dir: &Path, may_be_link: bool) -> io::Result<Self> {
            let mut flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            flags.set(OFlag::O_NOFOLLOW, !may_be_link);
            Ok(Self(openat(AT_FDCWD, dir, flags, Mode::empty())?))
        }

        /// Takes the folder for this writer alone, as long as the handle is open; the system gives it
        /// back when the process ends. False where another writer has it. A file system without
        /// locks keeps nobody away.
        pub(crate) fn lock(&self) -> io::Result<bool> {
            match File::from(self.0.try_clone()?).try_lock() {
                Err(TryLockError::WouldBlock) => Ok(false),
                Ok(()) | Err(TryLockError::Error(_)) => Ok(true),
            }
        }

        /// Opens a file for reading; a link is an error, and nothing is waited for.
        pub(crate) fn open_file(&self, name: &OsStr) -> io::Result<File> {
            let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
            Ok(openat(&self.0, name, flags, Mode::empty())?.into())
        }

        /// Makes a file that is not there yet; its rights are what the user's umask leaves.
        pub(crate) fn create(&self, name: &str) -> io::Result<File> {
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
            Ok(openat(&self.0, name, flags, Mode::from_bits_truncate(0o666))?.into())
        }

        /// Gives a file another name, in place of what has it.
        pub(crate) fn replace(&self, from: &str, to: &str) -> io::Result<()> {
            Ok(renameat(&self.0, from, &self.0, to)?)
        }

        /// Gives a file another name that nothing has yet.
        pub(crate) fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
            match linkat(&self.0, from, &self.0, to, AtFlags::empty()) {
                Ok(()) => self.remove(from),
                // A file system without hard links.
                Err(Errno::EPERM | Errno::EOPNOTSUPP | Errno::ENOSYS) => {
                    self.rename_exclusively(from, to)
                }
                Err(error) => Err(error.into()),
            }
        }

        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        fn rename_exclusively(&self, from: &str, to: &str) -> io::Result<()> {
            use nix::fcntl::{RenameFlags, renameat2};
            let flags = RenameFlags::RENAME_NOREPLACE;
            Ok(renameat2(&self.0, from, &self.0, to, flags)?)
        }

        #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
        fn rename_exclusively(&self, _: &str, _: &str) -> io::Result<()> {
            Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this file system cannot name a file without replacing another",
            ))
        }

        /// Takes a name away.
        pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
            Ok(unlinkat(&self.0, name, UnlinkatFlags::NoRemoveDir)?)
        }

        /// Waits until the names are on the disk.
        pub(crate) fn sync(&self) -> io::Result<()> {
            File::from(self.0.try_clone()?).sync_all()
        }
    }
}

#[cfg(not(unix))]
mod held {
    use std::ffi::OsStr;
    use std::fs::{self, File};
    use std::io;
    use std::path::{Path, PathBuf};

    /// See the module.
    #[derive(Debug)]
    pub(crate) struct Handle(PathBuf);

    impl Handle {
        /// The folder. One that is a link is taken only if that may be.
        pub(crate) fn open(dir: &Path, may_be_link: bool) -> io::Result<Self> {
            let kind = match may_be_link {
                true => fs::metadata(dir)?,
                false => fs::symlink_metadata(dir)?,
            };
            if !kind.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            Ok(Self(dir.to_owned()))
        }

        /// No folder is locked here; names that differ in case are one name.
        #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
        pub(crate) fn lock(&self) -> io::Result<bool> {
            Ok(true)
        }

        /// Opens a file for reading; a link is an error.
        pub(crate) fn open_file(&self, name: &OsStr) -> io::Result<File> {
            let path = self.0.join(name);
            if fs::symlink_metadata(&path)?.is_symlink() {
                return Err(io::Error::other("it is a symbolic link"));
            }
            File::open(path)
        }

        /// Makes a file that is not there yet.
        pub(crate) fn create(&self, name: &str) -> io::Result<File> {
            File::create_new(self.0.join(name))
        }

        /// Gives a file another name, in place of what has it.
        pub(crate) fn replace(&self, from: &str, to: &str) -> io::Result<()> {
            fs::rename(self.0.join(from), self.0.join(to))
        }

        /// Gives a file another name that nothing has yet.
        pub(crate) fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
            fs::hard_link(self.0.join(from), self.0.join(to))?;
            self.remove(from)
        }

        /// Takes a name away.
        pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
            fs::remove_file(self.0.join(name))
        }

        /// Names are on the disk when the system says so.
        pub(crate) fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }
}

pub(crate) use held::Handle;
