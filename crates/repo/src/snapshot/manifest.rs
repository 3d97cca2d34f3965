//! Records the contents of a copied tree, and finds later differences.
//!
//! Nothing in the copy is asked what changed, no git and no clock: every name is listed, and every file that
//! could be the same is read and digested. Links are not followed. Files placed there to keep us busy are
//! bounded: names by [`TreeLimits::entries`] above what the copy held, bytes by [`TreeLimits::read`].
//!
//! What always holds: a difference is a [`WorkspaceChange`]; what cannot be looked at is one as well, never
//! an error.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crucible_model::{Digest, DigestWriter};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::TreeLimits;
use super::kind::ListedKind;
use super::walk::{EntryBudget, Listing, join};
use crate::beneath::Root;
use crate::error::RepoError;

/// Bytes that are digested at once.
const PIECE: usize = 128 << 10;
/// The bits of a mode that count.
const MODE: u32 = 0o7777;

/// An entry of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyEntry {
    /// A directory.
    Directory {
        /// Its permission bits.
        mode: u32,
    },
    /// A plain file.
    File {
        /// How large it is.
        bytes: u64,
        /// Its permission bits.
        mode: u32,
        /// How many names it has; more than one is a hard link.
        names: u64,
        /// The digest of its content; `None` if it is too large, or was truncated while being read.
        digest: Option<Digest>,
    },
    /// A symbolic link.
    Link {
        /// What it says.
        target: PathBuf,
    },
    /// A socket, a pipe or a device.
    Special,
    /// It cannot be looked at.
    Unseen {
        /// Why.
        why: UnseenReason,
    },
}

/// Why something in a copy was not examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnseenReason {
    /// The maximum number of names is exceeded.
    TooMany,
    /// Its path is too long for the system, it changes meanwhile, or it is unreadable.
    Closed,
}

/// One path of a copy that is not as it was. At least one of the two is there, and they differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceChange {
    /// The path from the top, byte for byte.
    pub path: PathBuf,
    /// The entry when the copy was made.
    pub was: Option<CopyEntry>,
    /// The current content.
    pub now: Option<CopyEntry>,
}

/// The contents of a copy when it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeManifest {
    pub(super) entries: BTreeMap<PathBuf, CopyEntry>,
}

impl TreeManifest {
    /// What stood at `path`.
    #[must_use]
    pub fn get(&self, path: &Path) -> Option<&CopyEntry> {
        self.entries.get(path)
    }

    /// How many paths it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the copy was empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the current differences in the copy at `top`, sorted by path. Names at the top in
    /// `passed_over` are skipped.
    ///
    /// # Errors
    ///
    /// Fails when the copy itself cannot be opened.
    pub fn changes(
        &self,
        top: &Path,
        excluded: &Path,
        limits: &TreeLimits,
    ) -> Result<Vec<WorkspaceChange>, RepoError> {
        let root = Root::open(top)?;
        let above = TreeLimits {
            entries: self.entries.len().saturating_add(limits.entries),
            ..*limits
        };
        let mut seen = CopyWalk {
            root: &root,
            limits,
            manifest: self,
            allowance: EntryBudget::from_limits(&above),
            found: BTreeMap::new(),
        };
        seen.look_at_all(excluded);
        Ok(seen.compare(excluded))
    }
}

/// A look at a copy.
struct CopyWalk<'a> {
    root: &'a Root,
    limits: &'a TreeLimits,
    manifest: &'a TreeManifest,
    allowance: EntryBudget,
    found: BTreeMap<PathBuf, CopyEntry>,
}

impl CopyWalk<'_> {
    fn look_at_all(&mut self, passed_over: &Path) {
        let mut left = vec![PathBuf::new()];
        while let Some(directory) = left.pop() {
            let names = match self.allowance.list(self.root, &directory) {
                Listing::Names(names) => names,
                Listing::TooMany => {
                    self.found.insert(
                        directory,
                        CopyEntry::Unseen {
                            why: UnseenReason::TooMany,
                        },
                    );
                    continue;
                }
                Listing::Closed(_) => {
                    self.found.insert(
                        directory,
                        CopyEntry::Unseen {
                            why: UnseenReason::Closed,
                        },
                    );
                    continue;
                }
            };
            for listed in names {
                let path = join(&directory, &listed.name);
                if path == passed_over {
                    continue;
                }
                let entry = self.entry(&path).unwrap_or(CopyEntry::Unseen {
                    why: UnseenReason::Closed,
                });
                if listed.kind == ListedKind::Directory
                    && matches!(entry, CopyEntry::Directory { .. })
                {
                    left.push(path.clone());
                }
                self.found.insert(path, entry);
            }
        }
    }

    fn entry(&self, path: &Path) -> Result<CopyEntry, Errno> {
        let stat = self.root.stat(path)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                return Ok(CopyEntry::Directory {
                    mode: stat.st_mode & MODE,
                });
            }
            FileType::Symlink => {
                return Ok(CopyEntry::Link {
                    target: self.root.read_link(path)?,
                });
            }
            FileType::RegularFile => {}
            _ => return Ok(CopyEntry::Special),
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let bytes = u64::try_from(stat.st_size).unwrap_or_default();
        // A file of unchanged size may be the same; one of another size is read only if small.
        let is_as_large = matches!(
            self.manifest.get(path), Some(CopyEntry::File { bytes: was, .. }) if *was == bytes
        );
        let digest = if is_as_large || bytes <= self.limits.read.0 {
            let file = File::from(self.root.open_file(path, flags, Mode::empty())?);
            digest_of(file, bytes)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?
        } else {
            None
        };
        let names = stat.st_nlink;
        Ok(CopyEntry::File {
            bytes,
            mode: stat.st_mode & MODE,
            names,
            digest,
        })
    }

    fn compare(self, passed_over: &Path) -> Vec<WorkspaceChange> {
        let is_unseen = |path: &Path| {
            path.ancestors()
                .any(|above| matches!(self.found.get(above), Some(CopyEntry::Unseen { .. })))
        };
        let was = &self.manifest.entries;
        let mut changes: Vec<WorkspaceChange> = was
            .iter()
            .filter(|(path, _)| {
                *path != passed_over && !self.found.contains_key(*path) && !is_unseen(path)
            })
            .map(|(path, entry)| WorkspaceChange {
                path: path.clone(),
                was: Some(entry.clone()),
                now: None,
            })
            .collect();
        for (path, now) in &self.found {
            let before = was.get(path);
            if before != Some(now) {
                let now = Some(now.clone());
                changes.push(WorkspaceChange {
                    path: path.clone(),
                    was: before.cloned(),
                    now,
                });
            }
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }
}

/// Returns the digest of a file of this size; `None` if its size has changed.
fn digest_of(file: File, size: u64) -> io::Result<Option<Digest>> {
    let mut digest = DigestWriter::default();
    let mut buffer = vec![
        0;
        usize::try_from(size.saturating_add(1))
            .unwrap_or(PIECE)
            .min(PIECE)
    ];
    let mut file = file.take(size.saturating_add(1));
    let mut read = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                digest.write_all(buffer.get(..count).unwrap_or_default())?;
                read += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((read == size).then(|| digest.finish()))
}
