//! Placeholders: empty files and directories that serve as mount points for covers.
//!
//! A placeholder has the sticky bit, which distinguishes it from the files of the user. Each process that needs it holds a shared
//! kernel lock on it. The last run of a process tries to make the lock exclusive when it ends, and removes the placeholder only
//! if that succeeds. A killed process holds no lock, and the next run takes over its placeholders.
//!
//! Invariants: a placeholder is removed when the last run that covers it ends, in any process, and not before.
//! An earlier removal would uncover the path in every other run. A file of the user is never taken for a placeholder.

use std::collections::BTreeMap;
use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crucible_host::fs::is_at;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

/// The placeholders that runs of this process need.
static HELD: Mutex<BTreeMap<PathBuf, Entry>> = Mutex::new(BTreeMap::new());

/// The mode of a placeholder that is a directory, and of one that is a file.
const MODES: [u32; 2] = [0o1755, 0o1644];
/// The bits that identify a placeholder under any umask: sticky, and not writable by others.
const TELLING: u32 = 0o1022;
const STICKY: u32 = 0o1000;
/// The longest wait for another process that removes one.
const TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

struct Entry {
    /// The number of runs of this process that need it.
    runs: u32,
    kind: PlaceholderKind,
    /// The open and locked file, once it is created.
    file: Option<File>,
}

/// The kind of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceholderKind {
    File,
    Directory,
}

/// The empty files and directories that the covers of one run need in its writable directories.
/// Dropping this removes those that no other run needs, where they are still empty.
#[derive(Debug, Default)]
pub(crate) struct Placeholders(Vec<PathBuf>);

/// What exists at a path to cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// A file or directory of the user.
    Real,
    /// Nothing, or a placeholder of this kind, which is now held.
    Held(PlaceholderKind),
}

impl Placeholders {
    /// Holds a placeholder at `path` unless a real file exists: one of `kind`, unless one of the other kind exists already.
    pub(crate) fn hold(&mut self, path: &Path, kind: PlaceholderKind) -> Presence {
        let mut registry = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = match (registry.get(path), path.symlink_metadata()) {
            (Some(entry), _) => entry.kind,
            (None, Err(_)) => kind,
            (None, Ok(meta)) => match placeholder(path, &meta) {
                Some(kind) => kind,
                None => return Presence::Real,
            },
        };
        registry
            .entry(path.to_owned())
            .or_insert(Entry {
                runs: 0,
                kind,
                file: None,
            })
            .runs += 1;
        self.0.push(path.to_owned());
        Presence::Held(kind)
    }

    /// Creates the missing placeholders. Fails if anything else was created at such a path since it was held.
    pub(crate) fn make(&self) -> Result<(), (PathBuf, io::Error)> {
        let mut registry = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        for path in &self.0 {
            if let Some(entry) = registry.get_mut(path)
                && entry.file.is_none()
            {
                entry.file = Some(take(path, entry.kind).map_err(|error| (path.clone(), error))?);
            }
        }
        Ok(())
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        let mut registry = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        for path in self.0.drain(..).rev() {
            if let Some(entry) = registry.get_mut(&path) {
                entry.runs -= 1;
                if entry.runs > 0 {
                    continue;
                }
            }
            if let Some(Entry {
                file: Some(file), ..
            }) = registry.remove(&path)
            {
                give_back(&path, &file);
            }
        }
    }
}

/// Opens the placeholder at `path`, creates it if missing, and locks it shared.
fn take(path: &Path, kind: PlaceholderKind) -> io::Result<File> {
    let mut waited = Duration::ZERO;
    loop {
        let is_new = match create(path, kind) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
            Ok(handle) => {
                let file = File::from(handle);
                let locked = match file.try_lock_shared() {
                    Ok(()) => is_at(&file, path),
                    // The last process that needed it is removing it.
                    Err(TryLockError::WouldBlock) => false,
                    // A file system without locks: no process can know that it is the last, so the placeholder stays.
                    Err(TryLockError::Error(_)) => is_at(&file, path),
                };
                // From now on no process removes it during the check.
                if locked && (is_new || placeholder(path, &file.metadata()?) == Some(kind)) {
                    return Ok(file);
                }
                if locked {
                    return Err(io::Error::new(
                        io::ErrorKind::AlreadyExists,
                        "something came to be there",
                    ));
                }
            }
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        if waited >= TIMEOUT {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(PAUSE);
        waited += PAUSE;
    }
}

fn create(path: &Path, kind: PlaceholderKind) -> Result<(), Errno> {
    let [directory, file] = MODES.map(Mode::from_raw_mode);
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match kind {
        PlaceholderKind::Directory => rustix::fs::mkdirat(CWD, path, directory),
        PlaceholderKind::File => rustix::fs::openat(CWD, path, flags, file).map(drop),
    }
}

/// Removes a placeholder that no other process needs. One that cannot be removed stays as an empty file or directory. It is
/// harmless, and visible in the diff.
fn give_back(path: &Path, file: &File) {
    let Ok(meta) = file.metadata() else { return };
    if file.try_lock().is_err() || !is_at(file, path) {
        return;
    }
    match placeholder(path, &meta) {
        Some(PlaceholderKind::Directory) => drop(std::fs::remove_dir(path)),
        Some(PlaceholderKind::File) => drop(crucible_host::fs::remove_file(path)),
        // It is not empty any more, so it is now a directory of the user.
        None if meta.is_dir() => {
            let mode = meta.permissions().mode() & !STICKY;
            drop(file.set_permissions(std::fs::Permissions::from_mode(mode)));
        }
        None => {}
    }
}

/// Returns the kind of a placeholder; `None` for a file of the user.
fn placeholder(path: &Path, meta: &Metadata) -> Option<PlaceholderKind> {
    if meta.permissions().mode() & TELLING != STICKY {
        None
    } else if meta.is_dir() {
        std::fs::read_dir(path)
            .ok()?
            .next()
            .is_none()
            .then_some(PlaceholderKind::Directory)
    } else {
        (meta.is_file() && meta.len() == 0).then_some(PlaceholderKind::File)
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests lay out directories and links by hand"
)]
mod tests {
    use super::*;

    #[test]
    fn last_run_using_a_placeholder_removes_it() {
        let home = tempfile::tempdir().unwrap();
        for (name, kind) in [
            (".git", PlaceholderKind::Directory),
            ("kept", PlaceholderKind::File),
        ] {
            let path = home.path().join(name);
            let (mut one, mut two) = (Placeholders::default(), Placeholders::default());
            assert_eq!(one.hold(&path, kind), Presence::Held(kind));
            assert!(!path.exists(), "it is made when the sandbox starts");
            one.make().unwrap();
            assert_eq!(path.is_dir(), kind == PlaceholderKind::Directory);
            // Whatever the second asks for, there can be only one thing at a path.
            assert_eq!(two.hold(&path, PlaceholderKind::File), Presence::Held(kind));
            two.make().unwrap();
            drop(one);
            assert!(path.exists());
            drop(two);
            assert!(!path.exists());
        }
    }

    #[test]
    fn last_process_using_a_placeholder_removes_it() {
        let home = tempfile::tempdir().unwrap();
        for (name, kind) in [
            (".git", PlaceholderKind::Directory),
            ("kept", PlaceholderKind::File),
        ] {
            let path = home.path().join(name);
            let mut own_placeholders = Placeholders::default();
            own_placeholders.hold(&path, kind);
            own_placeholders.make().unwrap();
            // Another process knows nothing of our list; the lock of another open file stands for it.
            assert_eq!(
                placeholder(&path, &path.symlink_metadata().unwrap()),
                Some(kind)
            );
            let other = take(&path, kind).unwrap();
            drop(own_placeholders);
            assert!(path.exists(), "the other process still needs it");
            give_back(&path, &other);
            assert!(!path.exists());

            let other = take(&path, kind).unwrap();
            let mut ours = Placeholders::default();
            assert_eq!(ours.hold(&path, kind), Presence::Held(kind));
            ours.make().unwrap();
            give_back(&path, &other);
            drop(other);
            assert!(path.exists(), "we still need it");
            drop(ours);
            assert!(!path.exists());
        }
    }

    #[test]
    fn placeholder_of_killed_process_is_taken_and_removed() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".git");
        drop(take(&path, PlaceholderKind::Directory).unwrap());
        assert!(path.exists());
        let mut own_placeholders = Placeholders::default();
        assert_eq!(
            own_placeholders.hold(&path, PlaceholderKind::File),
            Presence::Held(PlaceholderKind::Directory)
        );
        own_placeholders.make().unwrap();
        drop(own_placeholders);
        assert!(!path.exists());
    }

    #[test]
    fn placeholder_removed_concurrently_is_recreated() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".git");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let file = take(&path, PlaceholderKind::Directory).unwrap();
                        assert!(is_at(&file, &path));
                        give_back(&path, &file);
                    }
                });
            }
        });
        assert!(!path.exists());
    }

    #[test]
    fn existing_files_are_never_removed() {
        let home = tempfile::tempdir().unwrap();
        let (file, directory) = (home.path().join("real"), home.path().join("empty"));
        crucible_host::fs::write_atomic(&file, b"").unwrap();
        std::fs::DirBuilder::new().create(&directory).unwrap();
        let mut one = Placeholders::default();
        assert_eq!(one.hold(&file, PlaceholderKind::File), Presence::Real);
        assert_eq!(
            one.hold(&directory, PlaceholderKind::Directory),
            Presence::Real
        );
        drop(one);
        assert!(file.exists() && directory.exists());
        // One that was filled meanwhile, by whom ever, is not empty and so not ours to remove.
        let other = home.path().join("other");
        let mut one = Placeholders::default();
        assert_eq!(
            one.hold(&other, PlaceholderKind::Directory),
            Presence::Held(PlaceholderKind::Directory)
        );
        one.make().unwrap();
        crucible_host::fs::write_atomic(&other.join("config"), b"content").unwrap();
        drop(one);
        assert!(other.join("config").exists());
        // A path that appeared after the plan is not mounted over.
        let late = home.path().join("late");
        let mut one = Placeholders::default();
        assert_eq!(
            one.hold(&late, PlaceholderKind::File),
            Presence::Held(PlaceholderKind::File)
        );
        crucible_host::fs::write_atomic(&late, b"content").unwrap();
        assert_eq!(one.make().unwrap_err().0, late);
        drop(one);
        assert!(late.exists());
    }
}
