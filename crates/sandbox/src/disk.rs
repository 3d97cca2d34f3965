//! Measures the disk space that a program uses while it runs.
//!
//! The size of the writable directories is counted before the start and again from time to time. The growth, plus
//! open files without a name, is what the program used. Counting takes at most a twentieth of the time, unless the
//! remaining allowance could fill the file system itself: then it is checked sooner.
//! If a directory cannot be counted because it is too deep or inaccessible, the growth of the whole file system counts
//! instead, so that hiding files gains nothing.
//!
//! Invariants: no link is followed; every file counts at least one block, so that many empty files count;
//! a file with several names counts once.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crucible_host::clock::Stopwatch;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, StatVfs, openat2, statat};
use rustix::io::Errno;
use rustix::process::Pid;
use tokio::time::sleep;

use crate::spawn::Cap;
use crate::tree;

/// The time between two checks of the clock and the file system.
const TICK: Duration = Duration::from_millis(100);
/// A count may take one part in this many of the time between two counts.
const SHARE: u32 = 20;
/// The least bytes that a file counts.
const BLOCK: u64 = 4096;
/// The unit of `st_blocks`, in bytes.
const SECTOR: u64 = 512;

/// Measures the disk usage of one program.
pub(crate) struct DiskUsage {
    places: Vec<PathBuf>,
    /// The limit in bytes.
    most: u64,
    /// The bytes in the directories before the start.
    before: u64,
    /// The bytes that the program used at the last count.
    program_bytes: u64,
    /// The used bytes of the file systems at the last count and at the start.
    used: [u64; 2],
    since: Stopwatch,
    cost: Duration,
    stop: Stop,
}

/// Stops a count that is no longer needed.
#[derive(Clone, Default)]
struct Stop(Arc<AtomicBool>);

struct OnDrop(Stop);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// The result of a count.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    bytes: u64,
    extent: Reach,
}

/// Whether a count is complete.
#[derive(Debug, Default, PartialEq, Eq)]
enum Reach {
    #[default]
    Everything,
    NotAll,
}

impl DiskUsage {
    /// Counts the directories before the program starts. Returns `None` if nothing is limited.
    pub(crate) async fn before(places: Vec<PathBuf>, cap: Cap) -> Option<Self> {
        let Cap::At(most) = cap else { return None };
        if places.is_empty() {
            return None;
        }
        let stop = Stop::default();
        let _stopping = OnDrop(stop.clone());
        let counting = tokio::task::spawn_blocking(move || {
            let places = outermost(places);
            let since = Stopwatch::start();
            let before = count(&places, u64::MAX, &stop).bytes;
            let used = used(&places);
            Self {
                places,
                most,
                before,
                program_bytes: 0,
                used: [used; 2],
                cost: since.elapsed(),
                since,
                stop,
            }
        });
        let mut disk = counting.await.ok()?;
        disk.stop = Stop::default();
        disk.since = Stopwatch::start();
        Some(disk)
    }

    /// Returns when the program `root` and its descendants exceed the limit, otherwise never.
    pub(crate) async fn exceeded(mut self, root: Pid) {
        let _stopping = OnDrop(self.stop.clone());
        loop {
            sleep(TICK).await;
            let looked = tokio::task::spawn_blocking(move || {
                let over = self.look(root);
                (self, over)
            });
            match looked.await {
                Ok((_, Verdict::Over)) => return,
                Ok((disk, Verdict::Within)) => self = disk,
                // The runtime ends, and so does the program.
                Err(_) => return std::future::pending().await,
            }
        }
    }

    fn look(&mut self, root: Pid) -> Verdict {
        let used = used(&self.places);
        let waited = self.since.elapsed();
        let pressing = self
            .program_bytes
            .saturating_add(used.saturating_sub(self.used[1]))
            > self.most;
        if waited < self.cost || (waited < self.cost * SHARE && !pressing) {
            return Verdict::Within;
        }
        let count_time = Stopwatch::start();
        let enough = self.before.saturating_add(self.most);
        let found = count(&self.places, enough, &self.stop);
        self.program_bytes = found
            .bytes
            .saturating_sub(self.before)
            .saturating_add(nameless(&self.places, root));
        if found.extent == Reach::NotAll {
            self.program_bytes = self.program_bytes.max(used.saturating_sub(self.used[0]));
        }
        self.used[1] = used;
        self.cost = count_time.elapsed();
        self.since = Stopwatch::start();
        if self.program_bytes > self.most {
            Verdict::Over
        } else {
            Verdict::Within
        }
    }
}

/// Whether the program exceeded the limit.
enum Verdict {
    Within,
    Over,
}

/// Returns the directories that are not below another one of them.
fn outermost(mut places: Vec<PathBuf>) -> Vec<PathBuf> {
    for place in &mut places {
        if let Ok(real) = place.canonicalize() {
            *place = real;
        }
    }
    places.sort();
    places.dedup_by(|inner, outer| inner.starts_with(outer));
    places
}

/// Counts the bytes in these directories, up to `enough`.
fn count(places: &[PathBuf], enough: u64, stop: &Stop) -> Count {
    let mut count = Count::default();
    let mut many_names = BTreeSet::new();
    for place in places {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(top) = rustix::fs::open(place, flags, Mode::empty()) else {
            count.extent = Reach::NotAll;
            continue;
        };
        let mut waiting = vec![PathBuf::from(".")];
        while let Some(directory) = waiting.pop() {
            if stop.0.load(Ordering::Relaxed) {
                return count;
            }
            match enter(&top, &directory) {
                Ok(handle) => count.add(handle, &directory, &mut waiting, &mut many_names),
                // Moved or removed meanwhile. The target of a link in its place does not count.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {}
                Err(_) => count.extent = Reach::NotAll,
            }
            if count.bytes > enough {
                return count;
            }
        }
    }
    count
}

/// Opens a directory below `top` without following any link.
fn enter(top: &OwnedFd, directory: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let bounds = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(top, directory, flags, Mode::empty(), bounds) {
        // Linux before 5.6, or a seccomp filter that rejects the call.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(top, directory, flags, Mode::empty()),
        other => other,
    }
}

impl Count {
    fn add(
        &mut self,
        handle: OwnedFd,
        directory: &Path,
        waiting: &mut Vec<PathBuf>,
        many_names: &mut BTreeSet<(u64, u64)>,
    ) {
        let Ok(entries) = Dir::read_from(handle.as_fd()) else {
            self.extent = Reach::NotAll;
            return;
        };
        for entry in entries {
            let Ok(entry) = entry else {
                self.extent = Reach::NotAll;
                return;
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(stat) = statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let kind = FileType::from_raw_mode(stat.st_mode);
            if kind == FileType::Directory {
                waiting.push(directory.join(OsStr::from_bytes(name.to_bytes())));
            } else if stat.st_nlink > 1 && !many_names.insert((stat.st_dev, stat.st_ino)) {
                continue;
            }
            self.bytes = self.bytes.saturating_add(size(stat.st_blocks));
        }
    }
}

/// Returns the bytes that a file with this many sectors uses.
fn size(sectors: impl TryInto<u64>) -> u64 {
    sectors
        .try_into()
        .unwrap_or(0)
        .saturating_mul(SECTOR)
        .max(BLOCK)
}

/// Returns the used bytes of the file systems of these directories, by all writers.
fn used(places: &[PathBuf]) -> u64 {
    let used_bytes = |stat: StatVfs| {
        stat.f_blocks
            .saturating_sub(stat.f_bfree)
            .saturating_mul(stat.f_frsize)
    };
    let mut seen = BTreeSet::new();
    let stats = places
        .iter()
        .filter_map(|place| rustix::fs::statvfs(place).ok());
    stats
        .filter(|stat| seen.insert(stat.f_fsid))
        .map(used_bytes)
        .fold(0, u64::saturating_add)
}

/// Returns the bytes of unlinked files that the descendants of `root` hold open on these file systems.
fn nameless(places: &[PathBuf], root: Pid) -> u64 {
    let devices: BTreeSet<u64> = places
        .iter()
        .filter_map(|place| Some(place.metadata().ok()?.dev()))
        .collect();
    let mut seen = BTreeSet::new();
    let mut bytes: u64 = 0;
    for pid in tree::live_processes(root) {
        let open = std::fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()));
        for descriptor in open.into_iter().flatten().flatten() {
            // This reads the metadata of the open file and opens nothing.
            let Ok(meta) = descriptor.path().metadata() else {
                continue;
            };
            let nameless = meta.is_file() && meta.nlink() == 0 && devices.contains(&meta.dev());
            if nameless && seen.insert((meta.dev(), meta.ino())) {
                bytes = bytes.saturating_add(size(meta.blocks()));
            }
        }
    }
    bytes
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests lay out directories and links by hand"
)]
mod tests {
    use super::*;

    fn counted(place: &Path) -> Count {
        count(
            &outermost(vec![place.to_owned()]),
            u64::MAX,
            &Stop::default(),
        )
    }

    #[test]
    fn every_file_counts_once_and_links_lead_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("place");
        std::fs::create_dir_all(place.join("a/b")).unwrap();
        let empty = counted(&place).bytes;
        std::fs::write(dir.path().join("outside"), vec![7; 1 << 20]).unwrap();
        std::fs::write(place.join("a/b/file"), vec![7; 1 << 20]).unwrap();
        let one = counted(&place).bytes - empty;
        assert!((1 << 20..2 << 20).contains(&one), "{one}");
        std::fs::hard_link(place.join("a/b/file"), place.join("again")).unwrap();
        assert_eq!(counted(&place).bytes - empty, one);
        std::os::unix::fs::symlink(dir.path(), place.join("out")).unwrap();
        std::os::unix::fs::symlink(".", place.join("a/loop")).unwrap();
        assert_eq!(
            counted(&place),
            Count {
                bytes: empty + one + 2 * BLOCK,
                extent: Reach::Everything
            }
        );
        assert!(
            count(
                &[place.clone(), "/no/such".into()],
                u64::MAX,
                &Stop::default()
            )
            .extent
                == Reach::NotAll
        );
        // It goes no deeper once it has enough.
        std::fs::remove_file(place.join("again")).unwrap();
        assert_eq!(count(&[place], 1, &Stop::default()).bytes, 2 * BLOCK);
    }

    #[test]
    fn empty_files_count_too() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..100 {
            std::fs::write(dir.path().join(number.to_string()), b"").unwrap();
        }
        assert_eq!(counted(dir.path()).bytes, 100 * BLOCK);
    }

    #[test]
    fn tree_too_deep_to_count_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let name = "d".repeat(200);
        let mut at = std::fs::File::open(dir.path()).map(OwnedFd::from).unwrap();
        for _ in 0..40 {
            rustix::fs::mkdirat(&at, name.as_str(), Mode::RWXU).unwrap();
            at = rustix::fs::openat(&at, name.as_str(), OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        assert_eq!(counted(dir.path()).extent, Reach::NotAll);
    }

    #[test]
    fn places_within_others_are_not_counted_twice() {
        let places = ["/usr/bin", "/usr", "/usr/lib", "/etc"]
            .map(PathBuf::from)
            .to_vec();
        assert_eq!(outermost(places), [PathBuf::from("/etc"), "/usr".into()]);
    }
}
