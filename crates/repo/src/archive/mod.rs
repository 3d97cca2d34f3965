//! Unpacking a repository's archive, a gzip-compressed tar with one top folder, from a place that is not trusted.
//!
//! An archive is refused as soon as one of its entries could mean anything but a file, a directory or a link inside of the top
//! folder; nothing is repaired and nothing left out. `entries` reads what the archive says, one entry at a time, and decides
//! which name counts; `place` puts it below a directory, part by part and without following any link.
//!
//! What always holds:
//!
//! - Nothing outside of the given directory is made, changed or read, and no link that is made leads out of the top folder.
//! - Links are made last: while files are written, no link exists that could be followed.
//! - The whole stream is read: a wrong checksum or length, a missing end or bytes behind it are errors.
//! - What is in memory at once does not grow with the contents, only with the number of directories and links.
//!
//! A backslash is a character like any other, as it is for git on this system; systemd's own sources have file names with it.

mod entries;
mod pax;
mod place;
mod stream;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crucible_model::ByteLimit;

use crate::error::RepoError;
use crate::oid::Oid;
use entries::Entries;
use place::Unpacker;

/// What an archive may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Bytes of the archive itself.
    pub compressed: ByteLimit,
    /// Unpacked bytes, headers included.
    pub unpacked: ByteLimit,
    /// Files, directories and links, directories that only paths name included.
    pub entries: u64,
    /// Bytes of one path.
    pub path: usize,
    /// Names in one path.
    pub depth: usize,
    /// Maximum expansion ratio, applied after the first 64 MiB.
    pub ratio: u64,
    /// Time limit for unpacking, enforced by the caller of [`unpack`].
    pub time: Duration,
}

impl ArchiveLimits {
    /// 512 MiB that become 4 GiB, 400,000 entries, paths of 4,096 bytes and 128 names, a ratio of 200, ten
    /// minutes as for a clone.
    pub const DEFAULT: Self = Self {
        compressed: ByteLimit(512 << 20),
        unpacked: ByteLimit(4 << 30),
        entries: 400_000,
        path: 4096,
        depth: 128,
        ratio: 200,
        time: Duration::from_secs(600),
    };
}

/// What was unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// The name of the top folder.
    pub top: String,
    /// The top folder.
    pub tree: PathBuf,
    /// The commit recorded in the archive.
    pub commit: Option<Oid>,
    /// Number of entries whose set-user, set-group or sticky bit was dropped.
    pub special_bits: u64,
}

/// Why an archive was not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It has an entry that a source archive cannot have.
    #[error("the archive is refused: its entry {entry} {why}")]
    Refused {
        /// The entry's name, escaped and shortened.
        entry: String,
        /// What is wrong with it.
        why: Refusal,
    },
    /// It is not an archive, or a broken one.
    #[error("the archive is damaged: {what}; download it again")]
    Damaged {
        /// What is broken.
        what: String,
    },
    /// It is truncated.
    #[error("the archive is truncated: {what}; download it again")]
    Truncated {
        /// What is missing.
        what: &'static str,
    },
    /// Something follows its end.
    #[error("trailing data after the archive; download it again")]
    Trailing,
    /// It is more than may be unpacked.
    #[error("the archive is too large: more than {limit} {what}; inspect a smaller repository")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// It took longer than it may.
    #[error(
        "unpacking the archive took longer than {} s, the limit; inspect a smaller repository, or set TMPDIR to a faster disk",
        limit.as_secs()
    )]
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// The caller interrupted it.
    #[error("unpacking was interrupted; start it again")]
    Stopped,
    /// The archive could not be read, or the files not written.
    #[error(transparent)]
    Io(#[from] RepoError),
}

/// What is wrong with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It begins at the file system's root.
    #[error("has an absolute name")]
    Absolute,
    /// A part of its name is `..`.
    #[error("has `..` in its name")]
    Parent,
    /// Its name, or a part of it, is empty or `.`.
    #[error("has an empty component in its name")]
    EmptyPart,
    /// Its name holds a NUL byte.
    #[error("has a NUL byte in its name")]
    Nul,
    /// A part of its name is longer than a file's name can be.
    #[error("has a name that is too long")]
    TooLong,
    /// It is nested more deeply than any source.
    #[error("is nested too deeply")]
    TooDeep,
    /// It is inside git's own directory, in any spelling.
    #[error("is inside git's own directory")]
    GitDirectory,
    /// It is in another top directory than the first entry, or is not a directory.
    #[error("is outside the archive's top directory")]
    OtherTop,
    /// Its name is a duplicate, or a file is in the place of its directory.
    #[error("has the name of another entry, or is below an entry that is not a directory")]
    Duplicate,
    /// It is a link that leaves the top directory.
    #[error("is a link that points outside the archive")]
    LeadsOut,
    /// It is a link with `..` behind another link.
    #[error("is a link with `..` behind another link")]
    ThroughLink,
    /// It is a hard link to no file that came before.
    #[error("is a hard link to a file that does not precede it")]
    HardLink,
    /// It is a device, a pipe, a socket, sparse, or something newer.
    #[error("is not a file, directory or link")]
    Kind,
    /// It has content that its kind cannot have, or a directory's name without being one.
    #[error("contradicts itself")]
    Contradiction,
}

/// Unpacks `archive` below the directory `into`, which must not have the archive's top directory yet. Setting
/// `stop` ends it soon. Blocking: call it on its own thread.
///
/// # Errors
///
/// See [`ArchiveError`]. Partial output is left for the owner of the directory to remove.
pub fn unpack(
    archive: &Path,
    into: &Path,
    limits: &ArchiveLimits,
    stop: &AtomicBool,
) -> Result<Unpacked, ArchiveError> {
    let file = File::open(archive).map_err(|source| RepoError::io("read", archive, source))?;
    let meta = file
        .metadata()
        .map_err(|source| RepoError::io("read", archive, source))?;
    if meta.len() > limits.compressed.0 {
        return Err(ArchiveError::TooLarge {
            what: "bytes in the archive",
            limit: limits.compressed.0,
        });
    }
    let mut place = Unpacker::create_in(into, limits)?;
    let commit = Entries::new(file, archive, limits, stop)
        .each(|member, content| place.create(member, content))?;
    place.finish(into, commit, stop)
}

impl Refusal {
    /// The error of an entry by this name.
    fn into_error(self, name: &[u8]) -> ArchiveError {
        const SHOWN: usize = 200;
        let text = String::from_utf8_lossy(name);
        let content: String = text.chars().take(SHOWN).collect();
        let more = if content.len() < text.len() {
            "…"
        } else {
            ""
        };
        ArchiveError::Refused {
            entry: format!("{content:?}{more}"),
            why: self,
        }
    }
}

/// A name inside the archive: relative, normalised, never in git's own directory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MemberName(Vec<u8>);

impl MemberName {
    /// Judges the name of an entry.
    fn judge(name: &[u8], limits: &ArchiveLimits) -> Result<Self, Refusal> {
        if name.contains(&0) {
            return Err(Refusal::Nul);
        }
        if name.first() == Some(&b'/') {
            return Err(Refusal::Absolute);
        }
        if name.len() > limits.path {
            return Err(Refusal::TooLong);
        }
        for (depth, part) in name.split(|byte| *byte == b'/').enumerate() {
            match part {
                b"" | b"." => return Err(Refusal::EmptyPart),
                b".." => return Err(Refusal::Parent),
                _ if part.len() > 255 => return Err(Refusal::TooLong),
                _ if depth >= limits.depth => return Err(Refusal::TooDeep),
                _ if reaches_git(part) => return Err(Refusal::GitDirectory),
                _ => {}
            }
        }
        Ok(Self(name.to_vec()))
    }

    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn path(&self) -> PathBuf {
        crate::git::as_path(&self.0)
    }

    fn parts(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }
}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        String::from_utf8_lossy(&self.0).fmt(f)
    }
}

/// Returns whether some file system treats this component as `.git`.
fn reaches_git(part: &[u8]) -> bool {
    use crucible_model::{RepoPath, RepoPathError};
    // What is not UTF-8 is not a spelling of it.
    matches!(RepoPath::from_bytes(part), Err(RepoPathError::GitDirectory))
}
