//! Work directories: temporary, for their owner alone, and gone when their work is, even after a kill.
//!
//! Each directory has a lock file beside it (its name and `.lock`), made and locked before the directory is made and
//! removed after it is gone. The kernel lets go of the lock when its holder dies, however that happens, so a later
//! [`WorkDir::sweep`] tells the dead from the living without asking how old anything is.
//!
//! What always holds: a directory whose holder lives is not swept; neither is anything that belongs to another user,
//! nor what a link points to.

use std::fs::{DirBuilder, File, Metadata, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use crate::fs::{self, FsError};
use crate::random;

/// What the name of a lock file ends with.
const LOCK: &str = ".lock";

/// When a directory without a lock file is taken for dead. Only other programs take the lock file of a living one away, as
/// cleaners of `/tmp` do after days.
const ORPHAN: Duration = Duration::from_secs(48 * 3600);

/// A new directory that is removed when this is dropped, and by a later [`WorkDir::sweep`] when nobody was left to drop it.
#[derive(Debug)]
pub struct WorkDir {
    path: PathBuf,
    lock: PathBuf,
    _held: File,
}

impl WorkDir {
    /// Makes `PREFIX<label>-<random>` in `parent`, which must exist; readable for this user alone.
    ///
    /// # Errors
    ///
    /// Fails when `parent` is missing, not writable or full, or when `label` is not a part of a file name.
    pub fn create(parent: &Path, prefix: &str, label: &str) -> Result<Self, FsError> {
        if prefix.contains(['/', '\0']) || label.contains(['/', '\0']) {
            let source = io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{label:?} is not a valid name component"),
            );
            return Err(FsError::io("make a work directory in", parent, source));
        }
        let random = random::token()?;
        let path = parent.join(format!("{prefix}{label}-{random}"));
        let lock = lock_beside(&path);
        // A sweep between the making of the lock file and its locking takes it away; then it is made again.
        let lock_file = loop {
            let fail = |source| FsError::io("make the lock", &lock, source);
            let file = open_lock(&lock, OFlags::CREATE).map_err(fail)?;
            file.lock().map_err(fail)?;
            if fs::is_at(&file, &lock) {
                break file;
            }
        };
        let work_dir = Self {
            path,
            lock,
            _held: lock_file,
        };
        make_directory(&work_dir.path)?;
        Ok(work_dir)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what dead holders left of directories with this prefix in `parent`, and says how many those were. What
    /// cannot be removed stays for the next time.
    pub fn sweep(parent: &Path, prefix: &str) -> usize {
        let Ok(entries) = std::fs::read_dir(parent) else {
            return 0;
        };
        let mut removed = 0;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let path = entry.path();
            let Ok(meta) = path.symlink_metadata() else {
                continue;
            };
            if !name.as_bytes().starts_with(prefix.as_bytes()) || !is_ours(&meta) {
                continue;
            }
            if let Some(directory) = name.as_bytes().strip_suffix(LOCK.as_bytes())
                && meta.is_file()
            {
                removed += usize::from(sweep_locked(
                    &path,
                    &parent.join(std::ffi::OsStr::from_bytes(directory)),
                ));
            } else if meta.is_dir() && is_orphan(&path, &meta) {
                removed += usize::from(fs::remove_dir_all(&path).is_ok());
            }
        }
        removed
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // The lock goes last: where the directory cannot be removed, a later sweep finds it by its lock.
        if fs::remove_dir_all(&self.path).is_ok() {
            let _stays = fs::remove_file(&self.lock);
        }
    }
}

/// Removes the directory that the lock at `lock` stands for, and the lock, where nobody holds it.
fn sweep_locked(lock: &Path, directory: &Path) -> bool {
    let Ok(file) = open_lock(lock, OFlags::empty()) else {
        return false;
    };
    match file.try_lock() {
        Ok(()) if fs::is_at(&file, lock) => {}
        Ok(()) | Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return false,
    }
    let was_there = match directory.symlink_metadata() {
        Ok(meta) if meta.is_dir() && is_ours(&meta) => true,
        Ok(_) => return false,
        Err(_) => false,
    };
    if fs::remove_dir_all(directory).is_err() {
        return false;
    }
    let _stays = fs::remove_file(lock);
    was_there
}

fn lock_beside(directory: &Path) -> PathBuf {
    let mut name = directory.as_os_str().to_owned();
    name.push(LOCK);
    PathBuf::from(name)
}

#[expect(clippy::disallowed_methods, reason = "host owns the writing of files")]
fn open_lock(path: &Path, extra: OFlags) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | extra;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = File::options()
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() && is_ours(&meta) {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a file of this user",
        ))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "host owns changes of the file system"
)]
fn make_directory(path: &Path) -> Result<(), FsError> {
    DirBuilder::new()
        .mode(0o700)
        .create(path)
        .map_err(|source| FsError::io("make the work directory", path, source))
}

fn is_ours(meta: &Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw()
}

/// Whether a directory lost its lock file long ago.
fn is_orphan(path: &Path, meta: &Metadata) -> bool {
    let is_old = meta
        .modified()
        .ok()
        .and_then(|system_time| system_time.elapsed().ok())
        .is_some_and(|age| age > ORPHAN);
    is_old && lock_beside(path).symlink_metadata().is_err()
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        reason = "a test kills a process of its own and plants what others might"
    )]

    use std::future::{Future, pending};
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::{Command, Stdio};
    use std::task::{Context, Waker};
    use std::time::{Instant, SystemTime};

    use super::*;

    const PREFIX: &str = "crucible-test-";

    fn names(parent: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(parent)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn work_dir_is_private_and_removed_with_contents() {
        let parent = tempfile::tempdir().unwrap();
        let work_dir = WorkDir::create(parent.path(), PREFIX, "7").unwrap();
        let name = work_dir
            .path()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        assert!(
            name.starts_with("crucible-test-7-") && name.len() > 30,
            "{name}"
        );
        assert_eq!(
            work_dir.path().metadata().unwrap().permissions().mode() & 0o7777,
            0o700
        );
        fs::create_dir_all(&work_dir.path().join("a/b")).unwrap();
        fs::write_atomic(&work_dir.path().join("a/b/c"), b"x").unwrap();
        symlink("/etc", work_dir.path().join("link")).unwrap();
        fs::set_mode(&work_dir.path().join("a/b"), 0).unwrap();
        assert_eq!(names(parent.path()), [name.clone(), format!("{name}.lock")]);
        drop(work_dir);
        assert!(names(parent.path()).is_empty());
    }

    #[test]
    fn work_dir_is_removed_on_failure_and_drop() {
        let parent = tempfile::tempdir().unwrap();
        let failed: Result<(), FsError> = (|| {
            let work = WorkDir::create(parent.path(), PREFIX, "1")?;
            fs::remove_file(&work.path().join("no/such/place"))?;
            fs::read_up_to(&work.path().join("nothing"), crucible_model::ByteLimit(1)).map(|_| ())
        })();
        assert!(failed.is_err() && names(parent.path()).is_empty());
        let mut going_on = Box::pin(async {
            let _work = WorkDir::create(parent.path(), PREFIX, "2").unwrap();
            pending::<()>().await;
        });
        assert!(
            going_on
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        assert_eq!(names(parent.path()).len(), 2);
        drop(going_on);
        assert!(names(parent.path()).is_empty());
        assert!(WorkDir::create(&parent.path().join("missing"), PREFIX, "3").is_err());
        assert!(WorkDir::create(parent.path(), PREFIX, "../x").is_err());
        assert!(names(parent.path()).is_empty());
    }

    /// This test is its own child: the one that holds a directory until it is killed.
    #[test]
    fn sweep_removes_only_directories_of_dead_processes() {
        const CHILD: &str = "WORK_DIR_OF_A_CHILD";
        if let Some(parent) = std::env::var_os(CHILD) {
            let work = WorkDir::create(Path::new(&parent), PREFIX, "child").unwrap();
            println!("made {}", work.path().display());
            loop {
                std::thread::park();
            }
        }
        let parent = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture"])
            .arg("work_dir::tests::sweep_removes_only_directories_of_dead_processes")
            .env(CHILD, parent.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let text = lines
            .map(Result::unwrap)
            .find_map(|line| Some(line.split_once("made ")?.1.to_owned()))
            .unwrap();
        let new_path = PathBuf::from(text);
        fs::write_atomic(&new_path.join("file"), b"x").unwrap();
        let mine = WorkDir::create(parent.path(), PREFIX, "mine").unwrap();
        assert_eq!(WorkDir::sweep(parent.path(), PREFIX), 0);
        assert!(new_path.join("file").exists() && mine.path().exists());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(new_path.join("file").exists());
        let begun = Instant::now();
        while WorkDir::sweep(parent.path(), PREFIX) == 0 {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "a dead process's directory is not swept"
            );
        }
        assert!(!new_path.exists() && mine.path().exists());
        assert_eq!(names(parent.path()).len(), 2);
    }

    #[test]
    fn only_what_is_ours_and_dead_is_swept() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write_atomic(&elsewhere.path().join("kept"), b"x").unwrap();
        symlink(elsewhere.path(), at("crucible-test-link")).unwrap();
        fs::write_atomic(&at("crucible-test-link.lock"), b"").unwrap();
        symlink(elsewhere.path().join("kept"), at("crucible-test-x.lock")).unwrap();
        fs::create_dir_all(&at("crucible-test-x")).unwrap();
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            at("crucible-test-p.lock"),
            rustix::fs::Mode::from_raw_mode(0o600),
        )
        .unwrap();
        fs::create_dir_all(&at("crucible-test-fresh")).unwrap();
        fs::create_dir_all(&at("crucible-test-old")).unwrap();
        fs::create_dir_all(&at("crucible-other-old")).unwrap();
        fs::write_atomic(&at("crucible-test-file"), b"").unwrap();
        for name in ["crucible-test-old", "crucible-other-old"] {
            let past = SystemTime::now() - ORPHAN - Duration::from_secs(60);
            File::open(at(name)).unwrap().set_modified(past).unwrap();
        }
        // A lock of a dead holder that came no further than this.
        fs::write_atomic(&at("crucible-test-early.lock"), b"").unwrap();
        fs::create_dir_all(&at("crucible-test-dead")).unwrap();
        fs::write_atomic(&at("crucible-test-dead.lock"), b"").unwrap();
        assert_eq!(WorkDir::sweep(parent.path(), PREFIX), 2);
        assert_eq!(
            names(parent.path()),
            [
                "crucible-other-old",
                "crucible-test-file",
                "crucible-test-fresh",
                "crucible-test-link",
                "crucible-test-link.lock",
                "crucible-test-p.lock",
                "crucible-test-x",
                "crucible-test-x.lock",
            ]
        );
        assert!(elsewhere.path().join("kept").exists());
        assert_eq!(WorkDir::sweep(&at("missing"), PREFIX), 0);
    }

    #[test]
    fn sweep_never_takes_a_directory_being_created() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let makers: Vec<_> = (0..4)
                .map(|label| {
                    let parent = parent.path();
                    scope.spawn(move || {
                        for _ in 0..100 {
                            let work = WorkDir::create(parent, PREFIX, &label.to_string()).unwrap();
                            std::thread::yield_now();
                            assert!(work.path().is_dir(), "it was swept while its holder lives");
                        }
                    })
                })
                .collect();
            while makers.iter().any(|maker| !maker.is_finished()) {
                WorkDir::sweep(parent.path(), PREFIX);
            }
        });
        assert!(names(parent.path()).is_empty());
    }
}
