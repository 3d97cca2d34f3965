//! A private copy of a tree by walking it: no git is needed, and what git ignores comes along.
//!
//! What is not the project stays out (`kind`), and what holds secrets, by its name and by what it holds. Files are copied by several
//! threads, each judged from the very bytes that end up in the copy. Links come last: one is kept where it leads to something that the copy
//! has. Another name of a file that stays out because of its name is known by the file.
//!
//! What always holds: the original is only read; every file of the copy is in its manifest with the digest of its bytes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crucible_model::ByteLimit;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::copy::{self, CopyChecks, Digests, stays_inside};
use super::kind::{self, CACHE_SIGNATURE, CACHE_TAG, ListedKind};
use super::manifest::{CopyEntry, TreeManifest};
use super::walk::{EntryBudget, Listing, join};
use super::{Omission, OmitReason, prepare};
use crate::beneath::Root;
use crate::error::RepoError;

/// Returns why a path, relative to the top, is excluded with all of its contents; `None` if it is included.
pub type PathCheck = Arc<dyn Fn(&Path) -> Option<OmitReason> + Send + Sync>;

/// Tells why a file that holds these bytes stays out. An error is one of reading.
pub type ContentCheck =
    Arc<dyn Fn(FileContent<'_>) -> io::Result<Option<OmitReason>> + Send + Sync>;

/// What a file holds.
pub enum FileContent<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// A large file, to be read until its end or until it is clear that it is excluded.
    Large(&'a mut dyn Read),
}

/// What goes into a copy.
#[derive(Clone)]
pub struct TreeCopyOptions {
    /// Which paths stay out by their names.
    pub path: PathCheck,
    /// Which files are excluded by content.
    pub content: ContentCheck,
    /// How much is copied at most.
    pub limits: TreeLimits,
}

/// Limits on a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Names in all directories together.
    pub entries: usize,
    /// Bytes of one file that is copied; a larger one stays out.
    pub file: ByteLimit,
    /// Bytes of all files together.
    pub total: ByteLimit,
    /// Maximum bytes of a new or resized file that is read when the copy is compared.
    pub read: ByteLimit,
    /// How many omissions are listed.
    pub omissions: usize,
}

impl TreeLimits {
    /// What projects for people stay below.
    pub const STANDARD: Self = Self {
        entries: 200_000,
        file: ByteLimit(256 << 20),
        total: ByteLimit(8 << 30),
        read: ByteLimit(4 << 20),
        omissions: 2_000,
    };
}

/// A copy that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeCopy {
    /// What it holds.
    pub manifest: TreeManifest,
    /// Omissions, sorted by path; a directory is one entry.
    pub omitted: Vec<Omission>,
    /// How many more were left out than are listed.
    pub more_omitted: u64,
    /// How many bytes the files hold.
    pub bytes: u64,
}

/// Copies the tree at `source` to `dest`, a new or empty directory.
///
/// # Errors
///
/// [`RepoError::TooLarge`] for more names or bytes than the limits; otherwise when `dest` is not empty or not
/// writable. Files that cannot be copied are listed, not an error.
pub async fn copy_tree(
    source: &Path,
    dest: &Path,
    options: &TreeCopyOptions,
) -> Result<TreeCopy, RepoError> {
    prepare(dest)?;
    let (from, to) = (Root::open(source)?, Root::open(dest)?);
    let options = options.clone();
    // Copying waits for disks, so it has separate threads from those that wait for the network.
    let copied = tokio::task::spawn_blocking(move || copy_all(&from, &to, &options)).await;
    copied.map_err(|error| RepoError::io("copy to", dest, io::Error::other(error)))?
}

fn copy_all(from: &Root, to: &Root, options: &TreeCopyOptions) -> Result<TreeCopy, RepoError> {
    let mut walked = Walked::default();
    walked.walk(from, options)?;
    let mut entries = BTreeMap::new();
    for directory in &walked.directories {
        to.make_dir(directory)
            .map_err(|errno| to.fail("create", directory, errno))?;
        let mode = to
            .stat(directory)
            .map_err(|errno| to.fail("look at", directory, errno))?
            .st_mode;
        entries.insert(
            directory.clone(),
            CopyEntry::Directory {
                mode: mode & 0o7777,
            },
        );
    }
    let secret_files = walked.secrets.iter().filter_map(|path| {
        let stat = from.stat(path).ok()?;
        (stat.st_nlink > 1).then_some((stat.st_dev, stat.st_ino))
    });
    let judging = CopyChecks {
        check: &options.content,
        digests: Digests::Wanted,
        other_names: secret_files.collect::<HashSet<_>>(),
        limits: options.limits,
    };
    let copied = copy::copy_all(from, to, &walked.files, Some(&judging))?;
    walked.omitted.extend(copied.omitted);
    entries.extend(copied.entries);
    for (link, outcome) in make_links(from, to, &walked.links, &BTreeSet::new())? {
        match outcome {
            Ok(target) => drop(entries.insert(link, CopyEntry::Link { target })),
            Err(reason) => walked.omitted.push(Omission { path: link, reason }),
        }
    }
    let mut omitted = walked.omitted;
    omitted.sort();
    let more_omitted = omitted.len().saturating_sub(options.limits.omissions) as u64;
    omitted.truncate(options.limits.omissions);
    Ok(TreeCopy {
        manifest: TreeManifest { entries },
        omitted,
        more_omitted,
        bytes: copied.bytes,
    })
}

/// The contents of a tree, before any file was opened.
#[derive(Default)]
struct Walked {
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
    links: Vec<PathBuf>,
    /// Files that stay out because of their names: they may have other names.
    secrets: Vec<PathBuf>,
    omitted: Vec<Omission>,
}

impl Walked {
    fn walk(&mut self, from: &Root, options: &TreeCopyOptions) -> Result<(), RepoError> {
        let mut allowance = EntryBudget::from_limits(&options.limits);
        let mut left = vec![PathBuf::new()];
        while let Some(directory) = left.pop() {
            let is_top = directory.as_os_str().is_empty();
            let names = match allowance.list(from, &directory) {
                Listing::Names(names) => names,
                Listing::TooMany => {
                    let what = "the number of names in the project, in thousands,".to_owned();
                    return Err(RepoError::TooLarge {
                        what,
                        limit: options.limits.entries as u64 / 1000,
                    });
                }
                Listing::Closed(errno) if is_top => {
                    return Err(from.fail("list", &directory, errno));
                }
                Listing::Closed(_) => {
                    self.omitted.push(Omission {
                        path: directory,
                        reason: OmitReason::Unreadable,
                    });
                    continue;
                }
            };
            if !is_top {
                let tag = || has_tag(from, &directory);
                if let Some(reason) = kind::of_directory(&names, tag) {
                    self.omitted.push(Omission {
                        path: directory,
                        reason,
                    });
                    continue;
                }
                self.directories.push(directory.clone());
            }
            for listed in names {
                let path = join(&directory, &listed.name);
                let named = kind::of_name(&listed.name.to_string_lossy());
                if let Some(reason) = named.or_else(|| (options.path)(&path)) {
                    if listed.kind == ListedKind::File && matches!(reason, OmitReason::Secret(_)) {
                        self.secrets.push(path.clone());
                    }
                    self.omitted.push(Omission { path, reason });
                    continue;
                }
                match listed.kind {
                    ListedKind::Directory => left.push(path),
                    ListedKind::File => self.files.push(path),
                    ListedKind::Link => self.links.push(path),
                    ListedKind::Special => {
                        self.omitted.push(Omission {
                            path,
                            reason: OmitReason::Special,
                        });
                    }
                }
            }
        }
        // Neighbours are adjacent, and a directory precedes its contents.
        self.directories.sort_unstable();
        self.files.sort_unstable();
        Ok(())
    }
}

/// Returns whether the directory has a cache tag.
fn has_tag(from: &Root, directory: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let Ok(fd) = from.open_file(&directory.join(CACHE_TAG), flags, Mode::empty()) else {
        return false;
    };
    let mut head = vec![0; CACHE_SIGNATURE.len()];
    std::fs::File::from(fd).read_exact(&mut head).is_ok() && head == CACHE_SIGNATURE
}

pub(super) type LinkOutcome = (PathBuf, Result<PathBuf, OmitReason>);

/// Creates the links whose target inside the original is part of the copy, or lies in a tree that is mounted there later.
pub(super) fn make_links(
    from: &Root,
    to: &Root,
    links: &[PathBuf],
    mounted: &BTreeSet<&Path>,
) -> Result<Vec<LinkOutcome>, RepoError> {
    let mut outcomes = Vec::new();
    for link in links {
        let outcome = match from.read_link(link) {
            Ok(target) => judge_link(from, link, target),
            Err(Errno::NOENT | Errno::INVAL | Errno::NOTDIR | Errno::LOOP) => {
                Err(OmitReason::BehindLink)
            }
            Err(Errno::ACCESS | Errno::PERM) => Err(OmitReason::Unreadable),
            Err(errno) => return Err(from.fail("read the link", link, errno)),
        };
        if let Ok(target) = &outcome {
            to.make_link(link, target)
                .map_err(|errno| to.fail("make the link", link, errno))?;
        }
        outcomes.push((link.clone(), outcome));
    }
    // Whether a link leads to something shows when all of them are there.
    for (link, outcome) in &mut outcomes {
        let is_mounted = outcome.as_ref().is_ok_and(|target| {
            let place = place_of(link, target);
            place.ancestors().any(|above| mounted.contains(above))
        });
        if outcome.is_ok() && !is_mounted && to.resolves_inside(link) != Some(true) {
            to.unlink(link)
                .map_err(|errno| to.fail("remove the link", link, errno))?;
            *outcome = Err(OmitReason::LeadsToOmitted);
        }
    }
    Ok(outcomes)
}

/// Where a link leads by its text.
fn place_of(link: &Path, target: &Path) -> PathBuf {
    let mut place = link.parent().map(Path::to_owned).unwrap_or_default();
    for part in target.components() {
        match part {
            Component::ParentDir => drop(place.pop()),
            Component::Normal(name) => place.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    place
}

fn judge_link(from: &Root, link: &Path, target: PathBuf) -> Result<PathBuf, OmitReason> {
    if let Some(reason) = kind::of_link(link) {
        return Err(reason);
    }
    if !stays_inside(link, &target) {
        return Err(OmitReason::LeavesTree);
    }
    match from.resolves_inside(link) {
        Some(true) => Ok(target),
        Some(false) if from.is_loop(link) => Err(OmitReason::Dangling),
        Some(false) => Err(OmitReason::LeavesTree),
        None => Err(OmitReason::Dangling),
    }
}
