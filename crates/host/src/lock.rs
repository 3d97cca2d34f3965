//! Locks between processes: one file, held by the kernel's own lock, with its owner written inside.
//!
//! The kernel lets go of the lock when its holder and every copy of the holder's descriptor are gone, so a lock never
//! goes stale; the text in the file only tells who holds it. A file left by a dead holder is taken over silently. A
//! process that was killed while it started another one may leave a copy of the descriptor there for some
//! milliseconds: who finds the lock held by nobody alive waits for that moment to pass instead of naming a dead process.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::fs::FsError;
use crate::process::ProcessStat;

/// How long a lock is waited for whose recorded holder is dead.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(10);

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
    /// Takes the lock at `path`, and writes `owner` into it: who and what for, one line. A lock that a living process
    /// holds is not waited for; one whose holder has died is tried again for two seconds.
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
        let mut waited = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    let holder = Holder::read(&mut file);
                    if holder.is_alive() || waited >= PATIENCE {
                        return Err(LockError::Held { path: path.to_owned(), owner: holder.words });
                    }
                    std::thread::sleep(PAUSE);
                    waited += PAUSE;
                }
                Err(TryLockError::Error(source)) => return Err(fail("lock")(source).into()),
            }
        }
        let id = std::process::id();
        let started = start_of(id).map_or_else(String::new, |start| format!("{STARTED}{start}\n"));
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| write!(file, "process {id}: {owner}\n{started}"))
            .map_err(fail("write the lock"))?;
        Ok(Self { _file: file })
    }
}

/// The line that tells when the holder began.
const STARTED: &str = "started at tick ";

/// What stands in a lock's file.
struct Holder {
    /// The first line, for people.
    words: String,
    process: Option<u32>,
    started: Option<u64>,
}

impl Holder {
    fn read(file: &mut File) -> Self {
        let mut text = String::new();
        let _unreadable_is_unknown =
            file.seek(SeekFrom::Start(0)).and_then(|_| file.take(512).read_to_string(&mut text));
        let mut lines = text.lines();
        let words = lines.next().filter(|line| !line.is_empty()).unwrap_or("unknown").to_owned();
        let process = words.strip_prefix("process ").and_then(|rest| rest.split(':').next()?.parse().ok());
        let started = lines.find_map(|line| line.strip_prefix(STARTED)?.parse().ok());
        Self { words, process, started }
    }

    /// Whether the process that wrote itself down still runs. A holder that has written nothing yet does not count.
    fn is_alive(&self) -> bool {
        let Some(process) = self.process else { return false };
        match (start_of(process), self.started) {
            (Some(now), Some(then)) => now == then,
            (Some(_), None) => true,
            // Where the system does not tell of processes, nobody is taken for dead.
            (None, _) => start_of(std::process::id()).is_none(),
        }
    }
}

/// When a living process began; nothing for one that has ended.
fn start_of(process: u32) -> Option<u64> {
    let stat = ProcessStat::of(i32::try_from(process).ok()?)?;
    (!stat.has_ended()).then_some(stat.started)
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        reason = "another process has to hold the lock, and time is measured"
    )]

    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_held_lock_names_its_owner_and_a_dropped_one_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = Lock::acquire(&path, "run advance").unwrap();
        let begun = Instant::now();
        let refused = Lock::acquire(&path, "another").unwrap_err();
        assert!(begun.elapsed() < PATIENCE / 2, "waited for a living holder");
        assert!(refused.to_string().contains("run advance"), "{refused}");
        drop(held);
        Lock::acquire(&path, "another").unwrap();
    }

    /// A lock that this text stands in, and whose descriptor a child has inherited for so many seconds.
    fn left_behind(path: &Path, text: &str, seconds: &str) -> Child {
        std::fs::write(path, text).unwrap();
        let file = File::options().read(true).write(true).open(path).unwrap();
        file.lock().unwrap();
        Command::new("sleep").arg(seconds).stdin(Stdio::from(file)).spawn().unwrap()
    }

    fn a_dead_process() -> u32 {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn a_lock_that_outlives_its_dead_holder_for_a_moment_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let own = std::process::id();
        let another_start = start_of(own).unwrap() - 1;
        for text in [
            format!("process {}: advancing the run\n", a_dead_process()),
            // The number is in use again, by another process.
            format!("process {own}: advancing the run\n{STARTED}{another_start}\n"),
            String::new(),
        ] {
            let mut child = left_behind(&path, &text, "0.3");
            let lock = Lock::acquire(&path, "another").unwrap();
            let written = std::fs::read_to_string(&path).unwrap();
            let expected = format!("process {own}: another\n{STARTED}{}\n", another_start + 1);
            assert_eq!(written, expected);
            drop(lock);
            child.wait().unwrap();
        }
    }

    #[test]
    fn the_wait_for_a_dead_holder_has_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let dead = a_dead_process();
        let mut child = left_behind(&path, &format!("process {dead}: advancing the run\n"), "60");
        let refused = Lock::acquire(&path, "another").unwrap_err();
        assert!(refused.to_string().contains(&format!("process {dead}: advancing")), "{refused}");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_ended_and_was_not_waited_for_is_not_alive() {
        let mut child = Command::new("true").spawn().unwrap();
        let begun = Instant::now();
        while start_of(child.id()).is_some() {
            assert!(begun.elapsed() < Duration::from_secs(20), "an ended process counts as alive");
            std::thread::sleep(PAUSE);
        }
        child.wait().unwrap();
        assert!(start_of(std::process::id()).is_some());
    }
}
