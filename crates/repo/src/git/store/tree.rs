//! Walks trees: a path in a tree, all files of a tree, the differences of two trees.
//!
//! Invariants: a malformed tree (unsorted, duplicate or empty names) is left to git. A walk holds one tree
//! per level, is not recursive, and ends at a maximum number of bytes of names, because a few kilobytes of
//! trees can expand to more files than any machine holds.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crucible_patch::FileMode;

use super::{HashKind, ObjectKind, ReadFailure, Reader, oid_from};
use crate::oid::Oid;

/// A larger tree or commit is left to git, in bytes.
pub(super) const MAX_TREE: u64 = 64 << 20;

/// How many bytes of trees are held at once.
const MAX_HELD: usize = 128 << 20;

/// How many bytes the paths of a walk have together at most.
const MAX_NAMES: usize = 256 << 20;

/// What an entry of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeMode {
    /// A directory.
    Tree,
    /// Anything else.
    File(FileMode),
}

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedEntry {
    pub(crate) mode: TreeMode,
    pub(crate) oid: Oid,
}

/// A path at which two trees differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) path: Vec<u8>,
    pub(crate) old: Option<OwnedEntry>,
    pub(crate) new: Option<OwnedEntry>,
}

/// An entry of a tree.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) mode: TreeMode,
    pub(super) name: &'a [u8],
    pub(super) id: &'a [u8],
}

/// A tree whose entries were checked.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    bytes: Arc<Vec<u8>>,
    hash_len: usize,
}

/// Trees by the paths of their directories, for looking up several paths.
#[derive(Debug, Default)]
pub(crate) struct KnownTrees {
    trees: BTreeMap<Vec<u8>, Tree>,
    held_bytes: usize,
}

impl Reader<'_> {
    /// Returns the tree of a commit, or the tree itself, after checking that it exists.
    pub(crate) fn tree_of(&mut self, oid: &Oid) -> Result<Oid, ReadFailure> {
        let object = self.object(oid, MAX_TREE).map_err(defer_to_git)?;
        let tree = match object.kind {
            ObjectKind::Tree => return Ok(oid.clone()),
            ObjectKind::Commit => {
                let line = object
                    .bytes
                    .split(|byte| *byte == b'\n')
                    .next()
                    .unwrap_or_default();
                let name = line.strip_prefix(b"tree ").ok_or(ReadFailure::AskGit)?;
                Oid::from_ascii(name).ok_or(ReadFailure::AskGit)?
            }
            ObjectKind::Blob | ObjectKind::Tag => return Err(ReadFailure::AskGit),
        };
        self.tree(&tree).map(|_| tree)
    }

    /// Returns the tree of a commit only.
    pub(crate) fn tree_of_commit(&mut self, commit: &Oid) -> Result<Oid, ReadFailure> {
        let tree = self.tree_of(commit)?;
        if tree == *commit {
            Err(ReadFailure::AskGit)
        } else {
            Ok(tree)
        }
    }

    /// Returns the entry at `path` below the tree `root`; `known` caches trees.
    pub(crate) fn find(
        &mut self,
        root: &Oid,
        path: &[u8],
        known: &mut KnownTrees,
    ) -> Result<Option<OwnedEntry>, ReadFailure> {
        let mut at = OwnedEntry {
            mode: TreeMode::Tree,
            oid: root.clone(),
        };
        let mut begin = 0;
        for part in path.split(|byte| *byte == b'/') {
            if at.mode != TreeMode::Tree {
                return Ok(None);
            }
            let directory = &path[..begin];
            let tree = match known.trees.get(directory) {
                Some(tree) => tree.clone(),
                None => {
                    let tree = self.tree(&at.oid)?;
                    known.held_bytes += tree.bytes.len();
                    if known.held_bytes > MAX_HELD {
                        return Err(ReadFailure::AskGit);
                    }
                    known.trees.insert(directory.to_owned(), tree.clone());
                    tree
                }
            };
            let Some(entry) = tree.entries().find(|entry| entry.name == part) else {
                return Ok(None);
            };
            at = entry.read()?;
            begin += part.len() + 1;
        }
        Ok(Some(at))
    }

    /// Calls `visit` for each file below a tree with its path, in git's order, until it breaks.
    pub(crate) fn each_file(
        &mut self,
        root: &Oid,
        visit: impl FnMut(&[u8], FileMode, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), ReadFailure> {
        self.each_file_within(root, MAX_NAMES, visit)
    }

    pub(super) fn each_file_within(
        &mut self,
        root: &Oid,
        most: usize,
        mut visit: impl FnMut(&[u8], FileMode, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), ReadFailure> {
        let first = self.tree(root)?;
        let mut held_bytes = first.bytes.len();
        let mut left = vec![(first, 0, 0)];
        let mut path = Vec::new();
        let mut names = 0;
        while let Some((tree, offset, prefix)) = left.pop() {
            path.truncate(prefix);
            let Some((entry, next)) = parse(&tree.bytes, offset, tree.hash_len) else {
                held_bytes -= tree.bytes.len();
                continue;
            };
            path.extend_from_slice(entry.name);
            names += path.len() + 1;
            if names > most {
                return Err(ReadFailure::AskGit);
            }
            let below = match entry.mode {
                TreeMode::File(mode) => {
                    if visit(&path, mode, entry.id).is_break() {
                        return Ok(());
                    }
                    None
                }
                TreeMode::Tree => Some(self.tree(&oid_from(entry.id).ok_or(ReadFailure::AskGit)?)?),
            };
            left.push((tree, next, prefix));
            if let Some(below) = below {
                held_bytes += below.bytes.len();
                if held_bytes > MAX_HELD {
                    return Err(ReadFailure::AskGit);
                }
                path.push(b'/');
                left.push((below, 0, path.len()));
            }
        }
        Ok(())
    }

    /// What differs between two trees: each path with its entry before and after, sorted by bytes.
    pub(crate) fn differences(
        &mut self,
        old: &Oid,
        new: &Oid,
    ) -> Result<Vec<Difference>, ReadFailure> {
        let mut found: Vec<Difference> = Vec::new();
        let mut left = vec![(Vec::new(), Some(old.clone()), Some(new.clone()))];
        let mut names = 0;
        while let Some((prefix, old, new)) = left.pop() {
            // A file and a directory of one name are two entries, as they are for git.
            let mut both: BTreeMap<(&[u8], bool), [Option<Entry<'_>>; 2]> = BTreeMap::new();
            let sides = [old, new].map(|oid| oid.map(|oid| self.tree(&oid)).transpose());
            let [old, new] = sides;
            let sides = [old?, new?];
            for (side, tree) in sides.iter().enumerate() {
                for entry in tree.iter().flat_map(Tree::entries) {
                    both.entry((entry.name, entry.mode == TreeMode::Tree))
                        .or_default()[side] = Some(entry);
                }
            }
            for ((name, is_tree), [old, new]) in both {
                let is_same = |a: Entry<'_>, b: Entry<'_>| a.mode == b.mode && a.id == b.id;
                if old.zip(new).is_some_and(|(old, new)| is_same(old, new)) {
                    continue;
                }
                names += prefix.len() + name.len() + 1;
                if names > MAX_NAMES {
                    return Err(ReadFailure::AskGit);
                }
                let mut path: Vec<u8> = [&prefix, name].concat();
                let read = |entry: Option<Entry<'_>>| entry.map(|entry| entry.read()).transpose();
                let (old, new) = (read(old)?, read(new)?);
                if is_tree {
                    path.push(b'/');
                    left.push((path, old.map(|old| old.oid), new.map(|new| new.oid)));
                } else {
                    found.push(Difference { path, old, new });
                }
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    pub(super) fn tree(&mut self, oid: &Oid) -> Result<Tree, ReadFailure> {
        let object = self.object(oid, MAX_TREE).map_err(defer_to_git)?;
        let tree = Tree {
            bytes: Arc::new(object.bytes),
            hash_len: hash_len(self.hash()),
        };
        if object.kind == ObjectKind::Tree && tree.is_sane() {
            Ok(tree)
        } else {
            Err(ReadFailure::AskGit)
        }
    }
}

impl Entry<'_> {
    fn read(self) -> Result<OwnedEntry, ReadFailure> {
        Ok(OwnedEntry {
            mode: self.mode,
            oid: oid_from(self.id).ok_or(ReadFailure::AskGit)?,
        })
    }
}

/// Returns the entries of a tree that `select` selects by their names, each with what it returns. `None` unless every byte of
/// the tree belongs to an entry, in git's order and without duplicates.
pub(crate) fn tree_entries<T>(
    bytes: Vec<u8>,
    hash: HashKind,
    select: impl Fn(&[u8]) -> Option<T>,
) -> Option<Vec<(T, OwnedEntry)>> {
    let tree = Tree {
        bytes: Arc::new(bytes),
        hash_len: hash_len(hash),
    };
    let mut selected = Vec::new();
    for entry in tree.is_sane().then(|| tree.entries())? {
        if let Some(value) = select(entry.name) {
            let (mode, oid) = (entry.mode, oid_from(entry.id)?);
            selected.push((value, OwnedEntry { mode, oid }));
        }
    }
    Some(selected)
}

impl Tree {
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut offset = 0;
        std::iter::from_fn(move || {
            let (entry, next) = parse(&self.bytes, offset, self.hash_len)?;
            offset = next;
            Some(entry)
        })
    }

    /// Returns whether every byte belongs to an entry, in git's order and without duplicates.
    fn is_sane(&self) -> bool {
        let mut offset = 0;
        let mut last: Option<Entry<'_>> = None;
        while offset < self.bytes.len() {
            let Some((entry, next)) = parse(&self.bytes, offset, self.hash_len) else {
                return false;
            };
            if last
                .is_some_and(|last| last.name == entry.name || order(last, entry) != Ordering::Less)
            {
                return false;
            }
            last = Some(entry);
            offset = next;
        }
        true
    }
}

/// Compares names in git's order, in which a directory's name ends with a slash.
fn order(a: Entry<'_>, b: Entry<'_>) -> Ordering {
    let ended = |entry: Entry<'_>| (entry.mode == TreeMode::Tree).then_some(b'/');
    a.name
        .iter()
        .copied()
        .chain(ended(a))
        .cmp(b.name.iter().copied().chain(ended(b)))
}

/// Parses `mode SP name NUL id` at `offset`; returns the start of the next entry.
fn parse(bytes: &[u8], offset: usize, hash_len: usize) -> Option<(Entry<'_>, usize)> {
    let rest = bytes.get(offset..)?;
    let space = rest.iter().take(8).position(|byte| *byte == b' ')?;
    let mut mode = 0;
    for digit in &rest[..space] {
        if !(b'0'..=b'7').contains(digit) {
            return None;
        }
        mode = mode << 3 | u32::from(digit - b'0');
    }
    let name = &rest[space + 1..];
    let end = name.iter().position(|byte| *byte == 0)?;
    let id = name.get(end + 1..end + 1 + hash_len)?;
    let name = &name[..end];
    if name.is_empty() || name.contains(&b'/') || space == 0 {
        return None;
    }
    Some((
        Entry {
            mode: canonical(mode),
            name,
            id,
        },
        offset + space + 1 + end + 1 + hash_len,
    ))
}

/// The mode as git reads it: of the permissions of a file only the owner's right to execute it counts.
fn canonical(mode: u32) -> TreeMode {
    match mode & 0o170_000 {
        0o040_000 => TreeMode::Tree,
        0o100_000 if mode & 0o100 != 0 => TreeMode::File(FileMode::Executable),
        0o100_000 => TreeMode::File(FileMode::Regular),
        0o120_000 => TreeMode::File(FileMode::Symlink),
        _ => TreeMode::File(FileMode::Gitlink),
    }
}

pub(super) fn hash_len(hash: HashKind) -> usize {
    hash.len_in_bytes()
}

/// What is too large to be held here is git's to read.
pub(super) fn defer_to_git(why: ReadFailure) -> ReadFailure {
    if why == ReadFailure::TooLarge {
        ReadFailure::AskGit
    } else {
        why
    }
}
