//! Locks between processes: a file with a kernel lock that contains the name of its owner.
//!
//! The kernel releases the lock when its holder and every copy of the descriptor are gone, so a lock never becomes
//! stale. The text in the file only names the holder. A file of a dead holder is taken over silently. A killed process
//! may leave a copy of the descriptor in a process that it was starting, for some milliseconds. So if a lock is held but
//! its recorded holder is dead, the caller waits a moment instead of reporting a dead process.
//!
//! A lock can be taken from a living holder by replacing its file. The holder of such a lock calls
//! [`Lock::is_still_held`] before each change, during a [`DirectoryTurn`] that the new holder takes too before it continues.
//!
//! Invariants: nothing is written through a link, and the held lock is the file at the path at the moment of locking.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use crate::fs::{self, FsError};
use crate::process::ProcessStat;
use crate::random;

/// The longest wait for a lock whose recorded holder is dead.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// The prefix of the name of a new lock file before it is renamed.
const SEIZING: &str = ".lock-";

/// A lock, released when dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

/// Why a lock could not be acquired.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("another process is at work here ({owner}); wait for it to end, or end it: the lock is {}", path.display())]
    Held {
        /// The lock's file.
        path: PathBuf,
        /// The text that the holder wrote.
        owner: String,
    },
    /// The file system refused.
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl Lock {
    /// Acquires the lock at `path` and writes `owner` into it, one line that names the owner and its purpose. Does not wait for a
    /// living holder. If the recorded holder is dead, retries for two seconds.
    ///
    /// # Errors
    ///
    /// [`LockError::Held`] when another process, or another handle of this one, holds it.
    pub fn acquire(path: &Path, owner: &str) -> Result<Self, LockError> {
        let fail = |action| move |source| FsError::io(action, path, source);
        let mut waited = Duration::ZERO;
        let mut file = open(path).map_err(fail("open the lock"))?;
        loop {
            match file.try_lock() {
                Ok(()) if fs::is_at(&file, path) => break,
                // The file was replaced meanwhile; the new one counts.
                Ok(()) => file = open(path).map_err(fail("open the lock"))?,
                Err(TryLockError::WouldBlock) => {
                    let holder = Holder::read(&mut file);
                    if holder.is_alive() || waited >= TIMEOUT {
                        return Err(LockError::Held {
                            path: path.to_owned(),
                            owner: holder.words,
                        });
                    }
                    std::thread::sleep(PAUSE);
                    waited += PAUSE;
                }
                Err(TryLockError::Error(source)) => return Err(fail("lock")(source).into()),
            }
        }
        sign(&mut file, owner).map_err(fail("write the lock"))?;
        Ok(Self {
            file,
            path: path.to_owned(),
        })
    }

    /// Takes the lock at `path` from its holder by replacing the file. The holder is not stopped; it notices through
    /// [`Lock::is_still_held`].
    ///
    /// # Errors
    ///
    /// Fails when the directory is missing, not writable or full; the holder then still holds it.
    pub fn seize(path: &Path, owner: &str) -> Result<Self, LockError> {
        let fail = |source| FsError::io("write the lock", path, source);
        // Not the name of a temporary file, because the holder may remove those of killed processes.
        let new = path.with_file_name(format!("{SEIZING}{}", random::token()?));
        let mut file = fs::create_new(&new)?;
        let signed = file
            .lock()
            .and_then(|()| sign(&mut file, owner))
            .map_err(fail);
        if let Err(error) = signed.and_then(|()| fs::rename(&new, path)) {
            let _stays = fs::remove_file(&new);
            return Err(error.into());
        }
        Ok(Self {
            file,
            path: path.to_owned(),
        })
    }

    /// Returns whether the file was neither replaced nor removed.
    #[must_use]
    pub fn is_still_held(&self) -> bool {
        fs::is_at(&self.file, &self.path)
    }
}

/// Unlocks explicitly: a process that is being started has a copy of the descriptor until its `exec`, so closing ours would
/// not release the lock.
impl Drop for Lock {
    fn drop(&mut self) {
        let _held_by_nobody = self.file.unlock();
    }
}

/// Returns the recorded holder of the lock at `path`; `None` if it is not locked or its holder has ended. Does not lock, so it
/// keeps no other process from locking. A process that released the lock and still runs is reported as the holder.
///
/// # Errors
///
/// Fails when something is there that cannot be read.
pub fn holder(path: &Path) -> Result<Option<String>, FsError> {
    let mut file = match open_to_look(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(FsError::io("read the lock", path, source)),
    };
    let holder = Holder::read(&mut file);
    Ok(holder.is_alive().then_some(holder.words))
}

/// A short lock of a directory between processes: one writer, or any number of readers. The directory itself is
/// locked, so no file is left behind.
#[derive(Debug)]
pub struct DirectoryTurn {
    directory: File,
}

/// As for [`Lock`].
impl Drop for DirectoryTurn {
    fn drop(&mut self) {
        let _held_by_nobody = self.directory.unlock();
    }
}

/// The kind of a directory lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnPurpose {
    /// For changes: exclusive.
    Change,
    /// For reading: shared.
    Look,
}

impl DirectoryTurn {
    /// Waits at most `timeout` for the lock; returns `None` after that.
    ///
    /// # Errors
    ///
    /// Fails when the directory cannot be opened or locked.
    pub fn take(
        directory: &Path,
        purpose: TurnPurpose,
        timeout: Duration,
    ) -> Result<Option<Self>, FsError> {
        let fail = |source| FsError::io("lock", directory, source);
        let file = File::open(directory).map_err(fail)?;
        let mut waited = Duration::ZERO;
        loop {
            let tried = match purpose {
                TurnPurpose::Change => file.try_lock(),
                TurnPurpose::Look => file.try_lock_shared(),
            };
            match tried {
                Ok(()) => return Ok(Some(Self { directory: file })),
                Err(TryLockError::WouldBlock) if waited >= timeout => return Ok(None),
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(PAUSE);
                    waited += PAUSE;
                }
                Err(TryLockError::Error(source)) => return Err(fail(source)),
            }
        }
    }
}

/// Opens or creates a lock file. Fails if it is not a regular file; does not follow a link.
#[expect(clippy::disallowed_methods, reason = "host owns the writing of files")]
fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
    let opened = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(flags)
        .open(path);
    // The system's error for a link or a directory does not say what to do.
    let odd = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "it must be a regular file, not a link; move it away",
        )
    };
    let is_odd = |meta: std::fs::Metadata| !meta.is_file();
    match opened {
        Ok(file) if is_odd(file.metadata()?) => Err(odd()),
        Err(_) if path.symlink_metadata().is_ok_and(is_odd) => Err(odd()),
        opened => opened,
    }
}

/// Opens a file for reading without following a link or waiting for a pipe.
#[expect(
    clippy::disallowed_methods,
    reason = "host owns the opening of files; this one is read"
)]
fn open_to_look(path: &Path) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
    File::options().read(true).custom_flags(flags).open(path)
}

fn sign(file: &mut File, owner: &str) -> io::Result<()> {
    let id = std::process::id();
    let started = start_of(id).map_or_else(String::new, |start| format!("{STARTED}{start}\n"));
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    write!(file, "process {id}: {owner}\n{started}")
}

/// The prefix of the line with the start time of the holder.
const STARTED: &str = "started at tick ";

/// The content of a lock file.
struct Holder {
    /// The first line, for people.
    words: String,
    process: Option<u32>,
    started: Option<u64>,
}

impl Holder {
    fn read(file: &mut File) -> Self {
        let mut text = String::new();
        let _unreadable_is_unknown = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.take(512).read_to_string(&mut text));
        let mut lines = text.lines();
        let words = lines
            .next()
            .filter(|line| !line.is_empty())
            .unwrap_or("unknown")
            .to_owned();
        let process = words
            .strip_prefix("process ")
            .and_then(|rest| rest.split(':').next()?.parse().ok());
        let started = lines.find_map(|line| line.strip_prefix(STARTED)?.parse().ok());
        Self {
            words,
            process,
            started,
        }
    }

    /// Returns whether the recorded process still runs; false if nothing is recorded yet.
    fn is_alive(&self) -> bool {
        let Some(process) = self.process else {
            return false;
        };
        match (start_of(process), self.started) {
            (Some(now), Some(then)) => now == then,
            (Some(_), None) => true,
            // Without process information, no holder counts as dead.
            (None, _) => start_of(std::process::id()).is_none(),
        }
    }
}

/// Returns the start time of a process; `None` if it has ended.
fn start_of(process: u32) -> Option<u64> {
    let stat = ProcessStat::read(i32::try_from(process).ok()?)?;
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
    fn lock_names_its_owner_until_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = Lock::acquire(&path, "run advance").unwrap();
        let begun = Instant::now();
        let refused = Lock::acquire(&path, "another").unwrap_err();
        assert!(begun.elapsed() < TIMEOUT / 2, "waited for a living holder");
        assert!(refused.to_string().contains("run advance"), "{refused}");
        drop(held);
        Lock::acquire(&path, "another").unwrap();
    }

    #[test]
    fn dropped_lock_is_free_despite_inherited_descriptor() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = Lock::acquire(&path, "skill build").unwrap();
        let _of_the_child = held.file.try_clone().unwrap();
        drop(held);
        Lock::acquire(&path, "skill build").unwrap();

        let turn = DirectoryTurn::take(dir.path(), TurnPurpose::Change, Duration::ZERO)
            .unwrap()
            .unwrap();
        let _of_the_child = turn.directory.try_clone().unwrap();
        drop(turn);
        assert!(
            DirectoryTurn::take(dir.path(), TurnPurpose::Change, Duration::ZERO)
                .unwrap()
                .is_some()
        );
    }

    #[test]
    fn querying_the_lock_holder_takes_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert_eq!(holder(&path).unwrap(), None);
        let held = Lock::acquire(&path, "advancing").unwrap();
        assert!(holder(&path).unwrap().unwrap().ends_with(": advancing"));
        assert!(held.is_still_held());
        drop(held);
        std::fs::write(&path, format!("process {}: advancing\n", a_dead_process())).unwrap();
        assert_eq!(holder(&path).unwrap(), None);
    }

    /// A lock that this text stands in, and whose descriptor a child has inherited for so many seconds.
    fn left_behind(path: &Path, text: &str, seconds: &str) -> Child {
        std::fs::write(path, text).unwrap();
        let file = File::options().read(true).write(true).open(path).unwrap();
        file.lock().unwrap();
        Command::new("sleep")
            .arg(seconds)
            .stdin(Stdio::from(file))
            .spawn()
            .unwrap()
    }

    fn a_dead_process() -> u32 {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn lock_briefly_outliving_dead_holder_is_awaited() {
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
    fn wait_for_a_dead_holder_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let dead = a_dead_process();
        let mut child = left_behind(&path, &format!("process {dead}: advancing the run\n"), "60");
        let refused = Lock::acquire(&path, "another").unwrap_err();
        assert!(
            refused
                .to_string()
                .contains(&format!("process {dead}: advancing")),
            "{refused}"
        );
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn forced_lock_changes_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let old = Lock::acquire(&path, "the first").unwrap();
        assert!(old.is_still_held());
        let new = Lock::seize(&path, "the second").unwrap();
        assert!(!old.is_still_held() && new.is_still_held());
        let names: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(names, ["lock"]);
        drop(old);
        let refused = Lock::acquire(&path, "a third").unwrap_err().to_string();
        assert!(refused.contains("the second"), "{refused}");
        drop(new);
        assert!(Lock::acquire(&path, "a third").unwrap().is_still_held());
        let free = dir.path().join("free");
        assert!(
            Lock::seize(&free, "nobody held it")
                .unwrap()
                .is_still_held()
        );
        assert!(Lock::seize(&dir.path().join("missing/lock"), "x").is_err());
    }

    #[test]
    fn cleanup_by_holder_does_not_prevent_locking() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    fs::remove_stale_temporaries(dir.path()).unwrap();
                }
            });
            let seized: Vec<_> = (0..300)
                .map(|_| Lock::seize(&path, "the next").map(|_| ()))
                .collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(seized.iter().all(Result::is_ok), "{seized:?}");
        });
    }

    #[test]
    fn waiter_takes_the_replaced_lock_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        // The holder is dead, and its child keeps the descriptor for a moment: who comes now waits at the old file.
        let mut child = left_behind(
            &path,
            &format!("process {}: gone\n", a_dead_process()),
            "0.5",
        );
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || Lock::acquire(&path, "waiting").map(|_| ())
        });
        std::thread::sleep(Duration::from_millis(100));
        let seized = Lock::seize(&path, "the second").unwrap();
        let refused = waiting.join().unwrap().unwrap_err().to_string();
        assert!(refused.contains("the second"), "{refused}");
        assert!(seized.is_still_held());
        child.wait().unwrap();
    }

    #[test]
    fn lock_must_be_file_and_links_stay_unwritten() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("precious");
        std::fs::write(&target, "precious").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::Mode::from_raw_mode(0o600),
        )
        .unwrap();
        for unusual_path in [&link, &pipe, dir.path()] {
            let refused = Lock::acquire(unusual_path, "x").unwrap_err();
            assert!(
                matches!(refused, LockError::Fs(_)),
                "{}",
                unusual_path.display()
            );
            let message = refused.to_string();
            assert!(
                message.contains("it must be a regular file, not a link; move it away"),
                "{message}"
            );
        }
        assert!(Lock::seize(&link, "x").unwrap().is_still_held());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    }

    #[test]
    fn change_turn_excludes_look_turns() {
        let dir = tempfile::tempdir().unwrap();
        let take =
            |purpose| DirectoryTurn::take(dir.path(), purpose, Duration::from_millis(20)).unwrap();
        let looking = (take(TurnPurpose::Look), take(TurnPurpose::Look));
        assert!(looking.0.is_some() && looking.1.is_some());
        assert!(take(TurnPurpose::Change).is_none());
        drop(looking);
        let changing = take(TurnPurpose::Change);
        assert!(
            changing.is_some()
                && take(TurnPurpose::Look).is_none()
                && take(TurnPurpose::Change).is_none()
        );
        drop(changing);
        assert!(take(TurnPurpose::Look).is_some());
        assert!(
            DirectoryTurn::take(&dir.path().join("missing"), TurnPurpose::Look, TIMEOUT).is_err()
        );
    }

    #[test]
    fn unreaped_process_is_not_alive() {
        let mut child = Command::new("true").spawn().unwrap();
        let begun = Instant::now();
        while start_of(child.id()).is_some() {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "an ended process counts as alive"
            );
            std::thread::sleep(PAUSE);
        }
        child.wait().unwrap();
        assert!(start_of(std::process::id()).is_some());
    }
}
