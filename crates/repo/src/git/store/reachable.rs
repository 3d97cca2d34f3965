//! Walks history: every object reachable from commits and tags.
//!
//! Invariants: the walk is not recursive, reads an object once, and ends at a maximum number of objects. File
//! contents are named but not read. Parents of a shallow commit are not searched.

use std::collections::HashSet;

use crucible_patch::FileMode;

use super::tree::{MAX_TREE, TreeMode, defer_to_git};
use super::{ObjectKind, ReadFailure, Reader, oid_from};
use crate::git::as_path;
use crate::oid::Oid;
use crate::snapshot::SecretCheck;

/// How many bytes the paths of directories have together at most.
const MAX_PATHS: usize = 64 << 20;

impl Reader<'_> {
    /// Returns the objects reachable from `starts`, except files and directories with a secret path. More
    /// than `most` give [`ReadFailure::TooLarge`].
    pub(crate) fn reachable(
        &mut self,
        starts: &[Oid],
        shallow: &HashSet<Oid>,
        most: u64,
        secret: &SecretCheck,
    ) -> Result<Vec<Oid>, ReadFailure> {
        let mut found = Found {
            seen: HashSet::new(),
            names: Vec::new(),
            most,
            remaining_paths: MAX_PATHS,
        };
        let mut trees: Vec<(Oid, Vec<u8>)> = Vec::new();
        let mut left: Vec<Oid> = starts.to_vec();
        while let Some(oid) = left.pop() {
            if found.seen.contains(&oid) {
                continue;
            }
            let object = self.object(&oid, MAX_TREE).map_err(defer_to_git)?;
            if object.kind == ObjectKind::Tree {
                found.queue(oid, Vec::new(), &mut trees)?;
                continue;
            }
            found.add(&oid)?;
            found.names.push(oid.clone());
            let mut lines = object.bytes.split(|byte| *byte == b'\n').peekable();
            let mut named = |field: &[u8]| {
                let line = lines.next_if(|line| line.starts_with(field));
                line.map(|line| Oid::from_ascii(&line[field.len()..]).ok_or(ReadFailure::AskGit))
                    .transpose()
            };
            match object.kind {
                ObjectKind::Blob | ObjectKind::Tree => {}
                ObjectKind::Tag => left.push(named(b"object ")?.ok_or(ReadFailure::AskGit)?),
                ObjectKind::Commit => {
                    found.queue(
                        named(b"tree ")?.ok_or(ReadFailure::AskGit)?,
                        Vec::new(),
                        &mut trees,
                    )?;
                    while let Some(parent) = named(b"parent ")? {
                        if !shallow.contains(&oid) && !found.seen.contains(&parent) {
                            left.push(parent);
                        }
                    }
                }
            }
        }
        while let Some((oid, path)) = trees.pop() {
            if path.is_empty() || secret(&as_path(&path)).is_none() {
                found.names.push(oid.clone());
            }
            let tree = self.tree(&oid)?;
            for entry in tree.entries() {
                let id = oid_from(entry.id).ok_or(ReadFailure::AskGit)?;
                // The commit of a submodule is in another repository.
                if entry.mode == TreeMode::File(FileMode::Gitlink) || found.seen.contains(&id) {
                    continue;
                }
                let separator: &[u8] = if path.is_empty() { b"" } else { b"/" };
                let below = [&path, separator, entry.name].concat();
                if entry.mode == TreeMode::Tree {
                    found.queue(id, below, &mut trees)?;
                } else if secret(&as_path(&below)).is_none() {
                    found.add(&id)?;
                    found.names.push(id);
                }
            }
        }
        Ok(found.names)
    }
}

/// What a walk has found.
struct Found {
    seen: HashSet<Oid>,
    names: Vec<Oid>,
    most: u64,
    /// Bytes of paths that may still be held.
    remaining_paths: usize,
}

impl Found {
    /// Records an object; returns whether it is new.
    fn add(&mut self, oid: &Oid) -> Result<bool, ReadFailure> {
        if !self.seen.insert(oid.clone()) {
            return Ok(false);
        }
        if self.seen.len() as u64 > self.most {
            Err(ReadFailure::TooLarge)
        } else {
            Ok(true)
        }
    }

    /// Queues a tree that was not seen yet.
    fn queue(
        &mut self,
        tree: Oid,
        path: Vec<u8>,
        left: &mut Vec<(Oid, Vec<u8>)>,
    ) -> Result<(), ReadFailure> {
        if self.add(&tree)? {
            self.remaining_paths = self
                .remaining_paths
                .checked_sub(path.len())
                .ok_or(ReadFailure::TooLarge)?;
            left.push((tree, path));
        }
        Ok(())
    }
}
