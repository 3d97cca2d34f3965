//! Locks between processes: one file, held by the kernel's own lock, with its owner written inside.
//!
//! The kernel lets go of the lock when its holder dies, so a lock never goes stale; the text in the file
//! only tells who holds it. A file left by a dead holder is taken over silently.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::fs::FsError;

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why a lock could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("another process is at work here ({owner}); wait for it to end, or end it: the lock is {}", path.display())]
    Held {
        /// The lock's file.
        path: PathBuf,
        /// What the holder says of itself.
        owner: String,
    },
    /// The file system does not let us.
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl Lock {
    /// Takes the lock at `path` without waiting, and writes `owner` into it: who and what for, one line.
    ///
    /// # Errors
    ///
    /// [`LockError::Held`] when another process, or another handle of this one, holds it.
    #[expect(clippy::disallowed_methods, reason = "host owns the writing of files")]
    pub fn acquire(path: &Path, owner: &str) -> Result<Self, LockError> {
        let fail = |action| move |source| FsError::io(action, path, source);
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(fail("open the lock"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let _unreadable_is_unknown = (&mut file).take(512).read_to_string(&mut owner);
                let owner =
                    owner.lines().next().filter(|line| !line.is_empty()).unwrap_or("unknown").to_owned();
                return Err(LockError::Held { path: path.to_owned(), owner });
            }
            Err(TryLockError::Error(source)) => return Err(fail("lock")(source).into()),
        }
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "process {}: {owner}", std::process::id()))
            .map_err(fail("write the lock"))?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_names_its_owner_and_a_dropped_one_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = Lock::acquire(&path, "run advance").unwrap();
        let refused = Lock::acquire(&path, "another").unwrap_err();
        assert!(refused.to_string().contains("run advance"), "{refused}");
        drop(held);
        Lock::acquire(&path, "another").unwrap();
    }
}
