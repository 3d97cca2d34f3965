//! git's index as a file: read as git wrote it, and written for a private place that is gone soon.
//!
//! Versions 2, 3 and 4 are read, with the names of either hash. Of the extensions only the root of the cached tree is taken. git
//! checks the sum at the end of an index when it repairs a repository and at no other time; it is not checked here either. The
//! decoder of `gix-index` is not used, because it trusts the file: nested extensions end the process, and shared prefixes of version
//! 4 take as much memory as they like (`docs/decisions/0045-reads-through-gitoxide.md`).
//!
//! What is written is version 2: each entry has a path, a mode, the name of an object, and what is noted of the file, if anything. The sum is left
//! out: it is all zeros, which git takes for "not summed". Whether a path may stand in a tree is not asked here; git asks it of every
//! path that a patch touches.
//!
//! What always holds: entries stand as git sorts them, byte by byte. What is read takes no more memory than [`MAX_NAMES`] beside the
//! file, and whatever git would refuse, or read with the help of other files (a split or sparse index), is not read at all.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crucible_patch::FileMode;

use crate::git::as_path;
use crate::git::parse::read_mode;
use crate::git::store::{HashKind, oid_from};
use crate::oid::Oid;

/// The device of a file, which git does not compare.
const NO_DEVICE: u32 = 0;
/// Maximum path length that fits into an entry's flags; a longer one ends with its NUL.
const MAX_STATED_LEN: usize = 0xfff;
/// Entries begin at multiples of it.
const STEP: usize = 8;
/// Maximum bytes of all paths together. In version 4, one byte can expand to a long path.
const MAX_NAMES: usize = 64 << 20;

/// File metadata recorded by git, as far as its index has room: seconds, sizes and numbers are truncated to
/// 32 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) changed: (u32, u32),
    pub(crate) modified: (u32, u32),
    pub(crate) number: u32,
    pub(crate) owner: u32,
    pub(crate) group: u32,
    pub(crate) size: u32,
}

impl Stat {
    /// What git would note of a file.
    pub(crate) fn from_metadata(meta: &Metadata) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "git truncates these numbers to 32 bits"
        )]
        Self {
            changed: (meta.ctime() as u32, meta.ctime_nsec() as u32),
            modified: (meta.mtime() as u32, meta.mtime_nsec() as u32),
            number: meta.ino() as u32,
            owner: meta.uid(),
            group: meta.gid(),
            size: meta.size() as u32,
        }
    }
}

/// What git is to do with a file of the work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexFlag {
    /// Look at it.
    Looked,
    /// Look at it; it is to be added, and its content is not known yet.
    Intended,
    /// git does not examine it: it counts as unchanged, or is not in the work tree.
    Hidden,
}

/// An entry as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileEntry {
    pub(crate) path: PathBuf,
    pub(crate) mode: FileMode,
    pub(crate) oid: Oid,
    /// 0, or the side of an open merge.
    pub(crate) stage: u8,
    pub(crate) watch: IndexFlag,
    pub(crate) stat: Stat,
}

/// An index that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IndexFile {
    pub(crate) entries: Vec<FileEntry>,
    /// The tree of all entries, if git recorded it.
    pub(crate) tree: Option<Oid>,
}

/// Parses an index with object names of this hash; `None` if git has to be asked.
pub(crate) fn read(bytes: &[u8], hash: HashKind) -> Option<IndexFile> {
    let sum = hash.len_in_bytes();
    let mut rest = Bytes(bytes.get(..bytes.len().checked_sub(sum)?)?);
    if rest.take(4)? != b"DIRC" {
        return None;
    }
    let version = rest.u32()?;
    let count = usize::try_from(rest.u32()?).ok()?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut entries: Vec<FileEntry> = Vec::new();
    let (mut names, mut last) = (0, Vec::new());
    for _ in 0..count {
        let entry = entry(&mut rest, version, sum, &mut last)?;
        names += last.len();
        if names > MAX_NAMES {
            return None;
        }
        if entries
            .last()
            .is_some_and(|before| !follows(before, &entry))
        {
            return None;
        }
        entries.push(entry);
    }
    let mut tree = None;
    while !rest.0.is_empty() {
        let name = rest.take(4)?;
        let length = usize::try_from(rest.u32()?).ok()?;
        let content = rest.take(length)?;
        // Small letters say that the entries cannot be read without it: split, sparse, or of a later git.
        if !name[0].is_ascii_uppercase() {
            return None;
        }
        if name == b"TREE" {
            tree = root(content, entries.len(), sum);
        }
    }
    Some(IndexFile { entries, tree })
}

/// Returns whether `entry` may follow `before`: by its path, or by its merge stage.
fn follows(before: &FileEntry, entry: &FileEntry) -> bool {
    match before
        .path
        .as_os_str()
        .as_bytes()
        .cmp(entry.path.as_os_str().as_bytes())
    {
        Ordering::Less => true,
        Ordering::Equal => 0 < before.stage && before.stage < entry.stage,
        Ordering::Greater => false,
    }
}

/// Parses the next entry; `path` has the previous path, and then its own.
fn entry(rest: &mut Bytes<'_>, version: u32, sum: usize, path: &mut Vec<u8>) -> Option<FileEntry> {
    let begin = rest.0.len();
    let changed = (rest.u32()?, rest.u32()?);
    let modified = (rest.u32()?, rest.u32()?);
    let (_device, number, mode) = (rest.u32()?, rest.u32()?, rest.u32()?);
    let (owner, group, size) = (rest.u32()?, rest.u32()?, rest.u32()?);
    let oid = oid_from(rest.take(sum)?)?;
    let flags = rest.u16()?;
    let extended = if flags & 0x4000 == 0 {
        0
    } else if version == 2 {
        return None;
    } else {
        rest.u16()?
    };
    // Only two bits have a meaning.
    if extended & !0x6000 != 0 {
        return None;
    }
    if version == 4 {
        let strip = usize::try_from(rest.offset_number()?).ok()?;
        path.truncate(path.len().checked_sub(strip)?);
        let end = rest.0.iter().position(|byte| *byte == 0)?;
        if path.len() + end > MAX_NAMES {
            return None;
        }
        path.extend_from_slice(rest.take(end)?);
        rest.take(1)?;
    } else {
        let stated_length = usize::from(flags) & MAX_STATED_LEN;
        let length = rest.0.iter().position(|byte| *byte == 0)?;
        if stated_length != length.min(MAX_STATED_LEN) {
            return None;
        }
        path.clear();
        path.extend_from_slice(rest.take(length)?);
        let size = begin - rest.0.len();
        rest.take((size / STEP + 1) * STEP - size)?;
    }
    if path.is_empty() {
        return None;
    }
    let hidden = flags & 0x8000 != 0 || extended & 0x4000 != 0;
    let watch = match (hidden, extended & 0x2000 != 0) {
        (true, _) => IndexFlag::Hidden,
        (false, true) => IndexFlag::Intended,
        (false, false) => IndexFlag::Looked,
    };
    Some(FileEntry {
        path: as_path(path),
        mode: read_mode(format!("{mode:06o}").as_bytes())??,
        oid,
        stage: u8::try_from(flags >> 12 & 3).ok()?,
        watch,
        stat: Stat {
            changed,
            modified,
            number,
            owner,
            group,
            size,
        },
    })
}

/// Returns the root of the cached tree, if it covers all entries: `NUL count SP subtrees LF id`.
fn root(content: &[u8], entries: usize, sum: usize) -> Option<Oid> {
    let line = content.strip_prefix(b"\0")?;
    let end = line.iter().position(|byte| *byte == b'\n')?;
    let (count, _) = std::str::from_utf8(&line[..end]).ok()?.split_once(' ')?;
    if count.parse() == Ok(entries) {
        oid_from(line.get(end + 1..end + 1 + sum)?)
    } else {
        None
    }
}

/// What of the file was not read yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (content, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(content)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// A number as packs have it for offsets: seven bits a byte, the high ones first, each further byte counting one more.
    fn offset_number(&mut self) -> Option<u64> {
        let mut byte = *self.take(1)?.first()?;
        let mut number = u64::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = *self.take(1)?.first()?;
            number = number
                .checked_add(1)?
                .checked_mul(128)?
                .checked_add(u64::from(byte & 0x7f))?;
        }
        Some(number)
    }
}

/// The content of an index for one file; without metadata for a file that was not examined.
pub(crate) type NewIndexEntry<'a> = (&'a Path, FileMode, &'a Oid, Stat);

/// The bytes of an index with these entries. All names of objects have one length.
pub(crate) fn bytes<'a>(entries: impl Iterator<Item = NewIndexEntry<'a>>) -> Vec<u8> {
    let sorted: BTreeMap<&[u8], (FileMode, &Oid, Stat)> = entries
        .map(|(path, mode, oid, stat)| (path.as_os_str().as_bytes(), (mode, oid, stat)))
        .collect();
    let mut bytes = b"DIRC".to_vec();
    bytes.extend(2_u32.to_be_bytes());
    bytes.extend(
        u32::try_from(sorted.len())
            .unwrap_or(u32::MAX)
            .to_be_bytes(),
    );
    let mut sum = 0;
    for (path, (mode, oid, stat)) in sorted {
        let begin = bytes.len();
        let mode = u32::from_str_radix(mode.as_str(), 8).unwrap_or_default();
        let Stat {
            changed,
            modified,
            number,
            owner,
            group,
            size,
        } = stat;
        let times = [changed.0, changed.1, modified.0, modified.1];
        let rest = [NO_DEVICE, number, mode, owner, group, size];
        bytes.extend(times.into_iter().chain(rest).flat_map(u32::to_be_bytes));
        let name = oid.raw();
        sum = name.len();
        bytes.extend(name);
        bytes.extend(
            u16::try_from(path.len().min(MAX_STATED_LEN))
                .unwrap_or_default()
                .to_be_bytes(),
        );
        bytes.extend(path);
        let length = bytes.len() - begin;
        bytes.resize(begin + (length / STEP + 1) * STEP, 0);
    }
    bytes.resize(bytes.len() + sum, 0);
    bytes
}
