//! Detects whether the process of an active session is still running.
//!
//! Each session locks its own file before the session becomes visible: if the lock of an active session
//! can be taken, its process is gone. The kernel releases a lock with its holder, so the session of a
//! running process, even a stopped one or one in another process namespace, never appears dead.

use std::path::{Path, PathBuf};

use crucible_host::fs;
use crucible_host::lock::{Lock, LockError};
use crucible_ledger::{CrawlStatus, Ledger, LedgerError, Moment};

use super::SessionError;

/// The lock that shows that a session's process is running.
#[derive(Debug)]
pub(super) struct SessionLock {
    file: PathBuf,
    lock: Lock,
}

impl SessionLock {
    /// Takes the lock of session `id` in the directory `locks`.
    pub(super) fn begin(locks: &Path, id: u64) -> Result<Self, LockError> {
        fs::create_dir_all(locks)?;
        let file = locks.join(format!("crawl-{id}.lock"));
        Ok(Self {
            lock: Lock::acquire(&file, &format!("crawl {id}"))?,
            file,
        })
    }

    /// Releases the lock, after the session is no longer active. Session numbers are never reused, so
    /// nothing waits for this file.
    pub(super) fn end(self) {
        let _stays_unused = fs::remove_file(&self.file);
        drop(self.lock);
    }
}

/// Ends, as aborted, every active session whose process is gone, and returns them. `locks` is the directory that sessions are
/// started with.
///
/// # Errors
///
/// See [`SessionError`].
pub fn abort_dead_sessions(
    ledger: &mut Ledger,
    locks: &Path,
    now: Moment,
) -> Result<Vec<u64>, SessionError> {
    let mut dead = Vec::new();
    for id in ledger.active_crawls()? {
        let pulse = match SessionLock::begin(locks, id) {
            Err(LockError::Held { .. }) => continue,
            pulse => pulse?,
        };
        match ledger.end_crawl(id, now, CrawlStatus::Aborted) {
            Ok(()) => dead.push(id),
            // Its process ended it, or another one found it dead, after the check.
            Err(LedgerError::NoActiveCrawl { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        pulse.end();
    }
    Ok(dead)
}
