//! Whether a session that says it is active has a process behind it.
//!
//! Each session holds the lock of a file of its own, taken before anyone else can see the session: whoever can take the
//! lock of an active session knows that its process is gone. The kernel lets go of a lock with its holder, so a session of
//! a living process, be it stopped or on the other side of a process namespace, is never taken for dead.

use std::path::{Path, PathBuf};

use crucible_host::fs;
use crucible_host::lock::{Lock, LockError};
use crucible_ledger::{CrawlStatus, Ledger, LedgerError, Moment};

use super::SessionError;

/// The sign that a session has a process behind it.
#[derive(Debug)]
pub(super) struct Pulse {
    file: PathBuf,
    lock: Lock,
}

impl Pulse {
    /// Takes the lock of session `id` in the directory `locks`.
    pub(super) fn begin(locks: &Path, id: u64) -> Result<Self, LockError> {
        fs::create_dir_all(locks)?;
        let file = locks.join(format!("crawl-{id}.lock"));
        Ok(Self { lock: Lock::acquire(&file, &format!("crawl {id}"))?, file })
    }

    /// Lets go of it, once the session is no longer active. Numbers are never used twice, so nobody waits for this file.
    pub(super) fn end(self) {
        let _stays_unused = fs::remove_file(&self.file);
        drop(self.lock);
    }
}

/// Ends, as aborted, every active session whose process is gone, and tells which those were. `locks` is the directory that
/// sessions are begun with.
///
/// # Errors
///
/// See [`SessionError`].
pub fn abort_dead_sessions(ledger: &mut Ledger, locks: &Path, now: Moment) -> Result<Vec<u64>, SessionError> {
    let mut dead = Vec::new();
    for id in ledger.active_crawls()? {
        let pulse = match Pulse::begin(locks, id) {
            Err(LockError::Held { .. }) => continue,
            pulse => pulse?,
        };
        match ledger.end_crawl(id, now, CrawlStatus::Aborted) {
            Ok(()) => dead.push(id),
            // Its process ended it, or another one found it dead, after we looked.
            Err(LedgerError::NoActiveCrawl { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        pulse.end();
    }
    Ok(dead)
}
