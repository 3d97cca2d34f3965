//! Copying one file after the other, by several threads.
//!
//! A source is opened without following links and without waiting (a pipe would make us wait for ever), and only then
//! looked at: what was opened is what is copied. Where files are judged by what they hold, that is judged which the copy holds: a small file
//! from the bytes that are written, a large one from the copy itself, which goes again where it must not stay.
//!
//! A copy has the time of its original, because build tools compare times: a build output that came along is as old as it was beside its
//! sources. What changed a moment ago, or has a time in the future, does not keep it: a source then counts as new and an output as old, so
//! that it is built again.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crucible_model::{Digest, DigestWriter};
use rustix::fs::{FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use super::manifest::CopyEntry;
use super::{ContentCheck, CopyMethod, FileContent, Omission, OmitReason, TreeLimits, kind};
use crate::beneath::Root;
use crate::error::RepoError;

/// Maximum bytes copied by one system call.
const PIECE: usize = 1 << 30;

/// Maximum neighbouring files per thread: threads that create files in one directory block each other.
const RUN: usize = 32;

/// Minimum turns per thread for few files, so that one thread does not copy all.
const TURNS: usize = 4;

/// The largest file that is held in memory as a whole.
const SMALL: usize = 1 << 20;

/// Number of seconds before the copy in which a file counts as just changed.
const MOMENT: i64 = 2;

/// Whether file digests are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Digests {
    Wanted,
    Unwanted,
}

/// How files are judged by content.
pub(super) struct CopyChecks<'a> {
    pub(super) check: &'a ContentCheck,
    pub(super) digests: Digests,
    /// Files that stay out under another name: device and number.
    pub(super) other_names: HashSet<(u64, u64)>,
    pub(super) limits: TreeLimits,
}

/// What the threads did together.
#[derive(Debug)]
pub(super) struct CopyTotals {
    pub(super) method: CopyMethod,
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) omitted: Vec<Omission>,
    /// Every copied file, if files are judged.
    pub(super) entries: Vec<(PathBuf, CopyEntry)>,
}

impl CopyTotals {
    const fn nothing() -> Self {
        Self {
            method: CopyMethod::ParallelCopy,
            files: 0,
            bytes: 0,
            omitted: Vec::new(),
            entries: Vec::new(),
        }
    }
}

/// What one path came to.
enum Outcome {
    Copied {
        bytes: u64,
        entry: Option<CopyEntry>,
    },
    Omitted(OmitReason),
}

/// What the threads share.
struct Work<'a> {
    source: &'a Root,
    target: &'a Root,
    paths: &'a [PathBuf],
    judging: Option<&'a CopyChecks<'a>>,
    /// How many bytes were judged until now.
    judged: AtomicU64,
    /// Neighbouring files that a thread takes at once.
    run: usize,
    next: AtomicUsize,
    stop: AtomicBool,
    /// Whether the file system shares blocks; the first file that shows it does not settles that for all.
    can_share: AtomicBool,
}

/// Copies every path. Their directories are there.
pub(super) fn copy_all(
    source: &Root,
    target: &Root,
    paths: &[PathBuf],
    judging: Option<&CopyChecks<'_>>,
) -> Result<CopyTotals, RepoError> {
    let threads = std::thread::available_parallelism()
        .map_or(2, usize::from)
        .clamp(2, 8);
    let work = Work {
        source,
        target,
        paths,
        judging,
        judged: AtomicU64::new(0),
        run: (paths.len() / (threads * TURNS)).clamp(1, RUN),
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        can_share: AtomicBool::new(true),
    };
    let parts: Vec<Result<CopyTotals, RepoError>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(|| work.run())).collect();
        let died = || {
            RepoError::io(
                "copy",
                "the work tree",
                io::Error::other("a copying thread panicked"),
            )
        };
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|_| Err(died())))
            .collect()
    });
    let mut all = CopyTotals::nothing();
    for part in parts {
        let part = part?;
        all.files += part.files;
        all.bytes += part.bytes;
        all.omitted.extend(part.omitted);
        all.entries.extend(part.entries);
    }
    if work.can_share.into_inner() && all.files > 0 {
        all.method = CopyMethod::Reflink;
    }
    Ok(all)
}

impl Work<'_> {
    fn run(&self) -> Result<CopyTotals, RepoError> {
        let mut done = CopyTotals::nothing();
        let mut buffer = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let start = self.next.fetch_add(self.run, Ordering::Relaxed);
            let rest = self.paths.get(start..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            for path in rest.iter().take(self.run) {
                match self.copy(path, &mut buffer) {
                    Ok(Outcome::Copied { bytes, entry }) => {
                        done.files += 1;
                        done.bytes += bytes;
                        done.entries
                            .extend(entry.map(|entry| (path.clone(), entry)));
                    }
                    Ok(Outcome::Omitted(reason)) => {
                        done.omitted.push(Omission {
                            path: path.clone(),
                            reason,
                        });
                    }
                    Err(error) => {
                        self.stop.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
        }
        Ok(done)
    }

    fn copy(&self, path: &Path, buffer: &mut Vec<u8>) -> Result<Outcome, RepoError> {
        let omit = |reason| Ok(Outcome::Omitted(reason));
        let source = match self.source.open_file(
            path,
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY,
            Mode::empty(),
        ) {
            Ok(source) => source,
            // Links are created last if files are judged; this one was a file before.
            Err(Errno::LOOP) if self.judging.is_some() => return omit(OmitReason::BehindLink),
            Err(Errno::LOOP) => return self.copy_link(path),
            Err(Errno::NOENT | Errno::NOTDIR) => return omit(OmitReason::Missing),
            // A socket, or a device without a driver.
            Err(Errno::NXIO | Errno::NODEV) => return omit(OmitReason::Special),
            Err(Errno::ACCESS | Errno::PERM) => return omit(OmitReason::Unreadable),
            Err(errno) => return Err(self.source.fail("open", path, errno)),
        };
        let stat =
            rustix::fs::fstat(&source).map_err(|errno| self.source.fail("look at", path, errno))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return omit(OmitReason::Directory),
            _ => return omit(OmitReason::Special),
        }
        if let Some(judging) = self.judging {
            return self.copy_judged(judging, path, File::from(source), &stat, buffer);
        }
        // The owner may always write in a copy; no bit that gives another user's rights comes along.
        let mode = Mode::from_raw_mode(stat.st_mode & 0o777 | 0o600);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let fail = |errno| self.target.fail("write", path, errno);
        let target = self.target.open_file(path, flags, mode).map_err(fail)?;
        let target_fd = target
            .try_clone()
            .map_err(|error| RepoError::io("copy", path, error))?;
        let bytes = self
            .copy_bytes(source, target)
            .map_err(|error| RepoError::io("copy", path, error))?;
        keep_time(&target_fd, &stat, Recent::IsNew).map_err(fail)?;
        Ok(Outcome::Copied { bytes, entry: None })
    }

    fn copy_judged(
        &self,
        judging: &CopyChecks<'_>,
        path: &Path,
        mut source: File,
        stat: &Stat,
        buffer: &mut Vec<u8>,
    ) -> Result<Outcome, RepoError> {
        let fail = |error| RepoError::io("copy", path, error);
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        if size > judging.limits.file.0 {
            return Ok(Outcome::Omitted(OmitReason::TooLarge));
        }
        if stat.st_nlink > 1 && judging.other_names.contains(&(stat.st_dev, stat.st_ino)) {
            let why = "it is a hard link to a file that holds secrets".to_owned();
            return Ok(Outcome::Omitted(OmitReason::Secret(why)));
        }
        let total = self
            .judged
            .fetch_add(size, Ordering::Relaxed)
            .saturating_add(size);
        if total > judging.limits.total.0 {
            return Err(RepoError::TooLarge {
                what: "the project".to_owned(),
                limit: judging.limits.total.0,
            });
        }
        let mode = Mode::from_raw_mode(stat.st_mode & 0o777 | 0o600);
        let make = || {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
            self.target
                .open_file(path, flags, mode)
                .map_err(|errno| self.target.fail("write", path, errno))
        };
        buffer.clear();
        let most = SMALL as u64 + 1;
        if size < most {
            Read::by_ref(&mut source)
                .take(most)
                .read_to_end(buffer)
                .map_err(fail)?;
        }
        // One that grew over the bound while it was read is copied like any other large one.
        let (target, bytes, digest) = if size < most && buffer.len() <= SMALL {
            let judged = match kind::of_content(buffer) {
                None => (judging.check)(FileContent::Whole(buffer)).map_err(fail)?,
                some => some,
            };
            if let Some(reason) = judged {
                return Ok(Outcome::Omitted(reason));
            }
            let mut target = File::from(make()?);
            target.write_all(buffer).map_err(fail)?;
            let digest = (judging.digests == Digests::Wanted).then(|| Digest::compute(buffer));
            (target, buffer.len() as u64, digest)
        } else {
            source.rewind().map_err(fail)?;
            let mut target = File::from(make()?);
            let target_fd = target.try_clone().map_err(fail)?;
            self.copy_bytes(OwnedFd::from(source), OwnedFd::from(target_fd))
                .map_err(fail)?;
            target.rewind().map_err(fail)?;
            let (bytes, found) = judge_large(judging, &mut target, buffer).map_err(fail)?;
            match found {
                Ok(digest) => (target, bytes, digest),
                Err(reason) => {
                    self.target
                        .unlink(path)
                        .map_err(|errno| self.target.fail("remove", path, errno))?;
                    return Ok(Outcome::Omitted(reason));
                }
            }
        };
        let made =
            rustix::fs::fstat(&target).map_err(|errno| self.target.fail("look at", path, errno))?;
        let entry = CopyEntry::File {
            bytes,
            mode: made.st_mode & 0o7777,
            names: made.st_nlink,
            digest,
        };
        keep_time(&target, stat, Recent::IsOld)
            .map_err(|errno| self.target.fail("date", path, errno))?;
        Ok(Outcome::Copied {
            bytes,
            entry: Some(entry),
        })
    }

    fn copy_bytes(&self, source: OwnedFd, target: OwnedFd) -> io::Result<u64> {
        if self.can_share.load(Ordering::Relaxed) {
            match rustix::fs::ioctl_ficlone(&target, &source) {
                Ok(()) => {
                    return Ok(u64::try_from(rustix::fs::fstat(&target)?.st_size).unwrap_or(0));
                }
                Err(_) => self.can_share.store(false, Ordering::Relaxed),
            }
        }
        let mut copied = 0;
        loop {
            match rustix::fs::copy_file_range(&source, None, &target, None, PIECE) {
                Ok(0) => return Ok(copied),
                Ok(count) => copied += count as u64,
                Err(Errno::INTR) => {}
                Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                    break;
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        // Both descriptors are at the kernel's position.
        Ok(copied + io::copy(&mut File::from(source), &mut File::from(target))?)
    }

    fn copy_link(&self, path: &Path) -> Result<Outcome, RepoError> {
        let link = match self.source.read_link(path) {
            Ok(link) => link,
            // Not the last part is the link, but one before it.
            Err(Errno::LOOP | Errno::NOTDIR | Errno::INVAL) => {
                return Ok(Outcome::Omitted(OmitReason::BehindLink));
            }
            Err(Errno::NOENT) => return Ok(Outcome::Omitted(OmitReason::Missing)),
            Err(errno) => return Err(self.source.fail("read the link", path, errno)),
        };
        // By its text it must stay inside, and if it leads anywhere now, that must be inside too.
        if !stays_inside(path, &link) || self.source.resolves_inside(path) == Some(false) {
            return Ok(Outcome::Omitted(OmitReason::LeavesTree));
        }
        self.target
            .make_link(path, &link)
            .map_err(|errno| self.target.fail("make the link", path, errno))?;
        Ok(Outcome::Copied {
            bytes: 0,
            entry: None,
        })
    }
}

/// How many bytes a large file holds, and their digest, or why it stays out.
fn judge_large(
    judging: &CopyChecks<'_>,
    file: &mut File,
    buffer: &mut Vec<u8>,
) -> io::Result<(u64, Result<Option<Digest>, OmitReason>)> {
    let mut head = Vec::new();
    Read::by_ref(file).take(64).read_to_end(&mut head)?;
    if let Some(reason) = kind::of_content(&head) {
        return Ok((0, Err(reason)));
    }
    file.rewind()?;
    let mut tee = Tee {
        file,
        digest: DigestWriter::default(),
        bytes: 0,
    };
    if let Some(reason) = (judging.check)(FileContent::Large(&mut tee))? {
        return Ok((tee.bytes, Err(reason)));
    }
    if judging.digests == Digests::Unwanted {
        return Ok((tee.file.metadata()?.len(), Ok(None)));
    }
    buffer.resize(SMALL, 0);
    while tee.read(buffer)? > 0 {}
    Ok((tee.bytes, Ok(Some(tee.digest.finish()))))
}

/// Digests a file while it is read.
struct Tee<'a> {
    file: &'a mut File,
    digest: DigestWriter,
    bytes: u64,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    let count = read?;
                    self.digest.update(buffer.get(..count).unwrap_or_default());
                    self.bytes += count as u64;
                    return Ok(count);
                }
            }
        }
    }
}

/// What a file that changed a moment ago counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recent {
    /// A source: it keeps the time of the copy.
    IsNew,
    /// An output: it is older than whatever is written from now on.
    IsOld,
}

/// Gives the new `target` the modification time of its original.
pub(super) fn keep_time(target: impl AsFd, original: &Stat, recent: Recent) -> Result<(), Errno> {
    let stat = rustix::fs::fstat(&target)?;
    let latest = stat.st_mtime - MOMENT;
    let (seconds, nanoseconds) = match recent {
        _ if original.st_mtime < latest => (original.st_mtime, original.st_mtime_nsec),
        Recent::IsNew => return Ok(()),
        Recent::IsOld => (latest, 0),
    };
    let time = Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds.cast_signed(),
    };
    rustix::fs::futimens(
        &target,
        &Timestamps {
            last_access: time,
            last_modification: time,
        },
    )
}

/// Gives the directories of a copy the times of their originals, the deepest first.
pub(super) fn keep_directory_times(source: &Root, target: &Root, directories: &[&Path]) {
    for directory in directories.iter().rev() {
        // A time is a help for build tools and no more.
        let times = source
            .stat(directory)
            .and_then(|stat| Ok((stat, target.open_dir(directory)?)));
        if let Ok((stat, made)) = times {
            let _ = keep_time(&made, &stat, Recent::IsNew);
        }
    }
}

/// Returns whether a link at `path` with target `link` stays below the top, by its text alone.
pub(super) fn stays_inside(path: &Path, link: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    for part in link.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_link_is_checked() {
        let inside = [
            ("a", "b"),
            ("d/a", "../b"),
            ("d/e/a", "../../b/c"),
            ("a", "./b/../c"),
            ("a", "missing"),
        ];
        let outside = [
            ("a", "/etc/passwd"),
            ("a", "../x"),
            ("d/a", "../../x"),
            ("a", "b/../../top/b"),
            ("d/a", "../../d/b"),
        ];
        assert!(
            inside
                .iter()
                .all(|(path, link)| stays_inside(Path::new(path), Path::new(link)))
        );
        assert!(
            outside
                .iter()
                .all(|(path, link)| !stays_inside(Path::new(path), Path::new(link)))
        );
    }
}
