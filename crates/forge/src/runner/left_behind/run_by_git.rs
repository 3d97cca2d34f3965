//! Reports changed files that git runs or obeys because of its settings, under any name.
//!
//! The sandbox protects these files, but a person who replaces one during the run lifts its protection, and a setting may name a
//! file for the first time. So each is compared with its state before the run.
//!
//! Git directories and `.crucible` are left to the scan of all directories, which tells their parts apart.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crucible_repo::{is_dot_git, is_git_directory};

use super::{DirectoryState, Left, ResidueReason, entries, stamp};
use crate::places::is_own;

/// The sandbox marks the empty file that it puts in the place of a missing one with this bit, until no run needs it.
const PLACEHOLDER: u32 = 0o1000;

impl DirectoryState {
    /// Records the present state of these paths, where the scan did not reach them.
    pub(in crate::runner) fn keep_guarded(&mut self, guarded: &BTreeSet<PathBuf>) {
        let mut seen = 0;
        for path in guarded {
            let entries = self.entries_of(path, &mut seen);
            for (path, meta) in entries {
                self.found.entry(path).or_insert_with(|| stamp(&meta));
            }
        }
    }

    /// Reports what is new or changed in these paths: each file, and what is in a directory together.
    pub(super) fn add_run_by_git(&self, guarded: &BTreeSet<PathBuf>, left: &mut Left) {
        let mut seen = 0;
        for path in guarded {
            let entries = self.entries_of(path, &mut seen);
            let residue = |path: &Path| self.residue_at(path, ResidueReason::RunByGit);
            let changed = entries.into_iter().filter(|(path, meta)| {
                self.is_new(path, meta) && (self.found.contains_key(path) || !is_placeholder(meta))
            });
            let changed: Vec<_> = changed.map(|(path, _)| residue(&path)).collect();
            if path.is_dir() && !path.is_symlink() {
                left.groups.push((residue(path), changed));
            } else {
                left.each.extend(changed);
            }
        }
    }

    /// Returns the file or link at a path in the scanned directories, or those in a directory. The scan reports a directory that
    /// cannot be read.
    fn entries_of(&self, path: &Path, seen: &mut usize) -> Vec<(PathBuf, Metadata)> {
        let is_scanned = self.places.iter().any(|place| path.starts_with(place));
        let Some(meta) = path.symlink_metadata().ok().filter(|_| is_scanned) else {
            return Vec::new();
        };
        if !meta.is_dir() {
            return vec![(path.to_owned(), meta)];
        }
        let mut found = Vec::new();
        let mut open = vec![path.to_owned()];
        while let Some(at) = open.pop() {
            let name = at.file_name().unwrap_or_default();
            if is_dot_git(name) || is_own(&name.to_string_lossy()) || is_git_directory(&at) {
                continue;
            }
            let Ok(entries) = entries(&at, seen, self.most) else {
                continue;
            };
            for (_, path, meta) in entries {
                if meta.is_dir() {
                    open.push(path);
                } else {
                    found.push((path, meta));
                }
            }
        }
        found
    }
}

pub(super) fn is_placeholder(meta: &Metadata) -> bool {
    meta.is_file() && meta.len() == 0 && meta.permissions().mode() & PLACEHOLDER != 0
}
