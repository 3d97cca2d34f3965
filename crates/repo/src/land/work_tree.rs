//! Bringing the work tree and the index from the base to the landed commit.
//!
//! Only the changed paths are looked at. Each must be as the base has it or as the commit has it; git itself compares,
//! against two small indexes that hold just these paths, so line ends and links mean what they mean to git. A file that
//! is missing or holds the beginning of what the commit has is one that git was killed at, and is rewritten. Files
//! come first and the index last: an index that has every new entry says that the work was done.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crucible_host::fs;
use crucible_patch::FileMode;

use crate::beneath::Root;
use crate::error::RepoError;
use crate::git::{Call, Flush, Git, as_path};
use crate::oid::Oid;
use crate::tree::{TemporaryIndex, TreeChange};

/// Returns the paths that a change creates but that already exist.
pub(super) fn occupied_paths(
    top: &Path,
    changes: &[TreeChange],
) -> Result<Vec<PathBuf>, RepoError> {
    let root = Root::open(top)?;
    let goes = going(changes);
    let mut paths = Vec::new();
    for change in changes.iter().filter(|change| change.old_oid.is_none()) {
        if root.blocks_creation(&change.path, &goes)? {
            paths.push(change.path.clone());
        }
    }
    Ok(paths)
}

impl Git {
    /// Brings the files of every changed path, then the index.
    pub(super) async fn update_work_tree(&self, changes: &[TreeChange]) -> Result<(), RepoError> {
        // A submodule's own work tree is the user's; only the index is updated.
        let files: Vec<TreeChange> = changes
            .iter()
            .filter(|change| !is_gitlink(change))
            .cloned()
            .collect();
        let dir = fs::temp_dir_in(self.scratch(), "crucible-land-")?;
        let old_index = vec![(
            OsString::from("GIT_INDEX_FILE"),
            dir.path().join("old").into_os_string(),
        )];
        let new_index = vec![(
            OsString::from("GIT_INDEX_FILE"),
            dir.path().join("new").into_os_string(),
        )];
        self.fill_index(&files, Side::Old, &old_index).await?;
        self.fill_index(&files, Side::New, &new_index).await?;
        let not_old = self.differing(&old_index).await?;
        let not_new = self.differing(&new_index).await?;

        let root = Root::open(self.top())?;
        let goes = going(&files);
        let mut dirty = Vec::new();
        let mut remove = Vec::new();
        for change in &files {
            let is_old = match change.old_oid {
                Some(_) => !not_old.contains(&change.path),
                None => !root.blocks_creation(&change.path, &goes)?,
            };
            let is_new = match change.new_oid {
                Some(_) => !not_new.contains(&change.path),
                None => !root.has_file(&change.path)?,
            };
            if !is_old && !is_new {
                dirty.push(change.path.clone());
            } else if !is_new && change.new_oid.is_none() {
                remove.push(change.path.clone());
            }
        }
        if !dirty.is_empty() {
            let dir = fs::temp_dir_in(self.scratch(), "crucible-land-")?;
            let contents = self
                .convert(
                    regular(&files, &dirty),
                    &TemporaryIndex {
                        env: new_index.clone(),
                        dir,
                    },
                )
                .await?;
            let mut edited = Vec::new();
            for path in dirty {
                if !root.is_missing_or_prefix(&path, contents.get(&path).map(Vec::as_slice))? {
                    edited.push(path);
                }
            }
            if !edited.is_empty() {
                return Err(RepoError::Dirty { paths: edited });
            }
        }
        for path in &remove {
            root.remove(path)?;
        }
        let write: Vec<u8> = not_new
            .iter()
            .flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat())
            .collect();
        if !write.is_empty() {
            let call = Call::new(["checkout-index", "--force", "--quiet", "-z", "--stdin"]);
            self.run_ok(call.reading(write).with_envs(&new_index))
                .await?;
        }
        self.fill_index(changes, Side::New, &[]).await?;
        // The new entries have no file metadata yet; a path that still differs is not an error here.
        self.run(Call::new(["update-index", "-q", "--refresh"]))
            .await?;
        Ok(())
    }

    /// Returns whether the repository's own index has every changed path as in the commit; then everything is
    /// done.
    pub(super) async fn index_has(&self, changes: &[TreeChange]) -> Result<bool, RepoError> {
        let output = self
            .run_ok(Call::new(["ls-files", "--stage", "-z"]))
            .await?;
        let mut entries = std::collections::HashMap::new();
        for record in output.records() {
            let at = record
                .iter()
                .position(|byte| *byte == b'\t')
                .ok_or_else(|| output.unreadable())?;
            entries.insert(&record[at + 1..], &record[..at]);
        }
        Ok(changes.iter().all(|change| {
            let entry = entries.get(change.path.as_os_str().as_bytes());
            match (&change.new_oid, change.new_mode) {
                (Some(oid), Some(mode)) => entry
                    .is_some_and(|entry| *entry == format!("{} {oid} 0", mode.as_str()).as_bytes()),
                _ => entry.is_none(),
            }
        }))
    }

    /// Writes one side of the changes to an index: the one that `env` names, or the repository's own.
    async fn fill_index(
        &self,
        changes: &[TreeChange],
        side: Side,
        env: &[(OsString, OsString)],
    ) -> Result<(), RepoError> {
        let mut lines = Vec::new();
        let mut line = |mode: &str, oid: &Oid, path: &Path| {
            lines.extend_from_slice(format!("{mode} {oid}\t").as_bytes());
            lines.extend_from_slice(path.as_os_str().as_bytes());
            lines.push(0);
        };
        // Removals first: a directory may make room for a file of its name.
        for change in changes {
            if let (None, Some(oid)) = side.blob_and_index_entry(change) {
                line("0", oid, &change.path);
            }
        }
        for change in changes {
            if let (Some((mode, oid)), _) = side.blob_and_index_entry(change) {
                line(mode.as_str(), oid, &change.path);
            }
        }
        let call = Call::new(["update-index", "-z", "--index-info"])
            .reading(lines)
            .with_envs(env)
            .flushing(Flush::Yes);
        let mut output = self.run(call.clone()).await?;
        if output.code != 0 && self.index_lock().exists() {
            self.await_index().await?;
            output = self.run(call).await?;
        }
        if output.code == 0 {
            Ok(())
        } else {
            Err(output.into_error())
        }
    }

    /// Returns the paths of an index whose files are missing or different.
    async fn differing(
        &self,
        index: &[(OsString, OsString)],
    ) -> Result<BTreeSet<PathBuf>, RepoError> {
        let words = [
            "diff-files",
            "-z",
            "--name-only",
            "--no-renames",
            "--no-ext-diff",
            "--ignore-submodules=all",
        ];
        // Entries without metadata are compared by content afterwards.
        self.run(Call::new(["update-index", "-q", "--refresh"]).with_envs(index))
            .await?;
        let output = self.run_ok(Call::new(words).with_envs(index)).await?;
        Ok(output.records().map(as_path).collect())
    }
}

#[derive(Clone, Copy)]
enum Side {
    Old,
    New,
}

impl Side {
    /// Returns the entry of a path on this side, or on the other if it does not exist here.
    fn blob_and_index_entry(self, change: &TreeChange) -> (Option<(FileMode, &Oid)>, Option<&Oid>) {
        let (mode, here, there) = match self {
            Self::Old => (change.old_mode, &change.old_oid, &change.new_oid),
            Self::New => (change.new_mode, &change.new_oid, &change.old_oid),
        };
        (mode.zip(here.as_ref()), there.as_ref())
    }
}

/// Returns the paths that a change removes. A file can replace a directory if all of its contents are among
/// them.
fn going(changes: &[TreeChange]) -> BTreeSet<&Path> {
    let deletions = changes.iter().filter(|change| change.new_oid.is_none());
    deletions.map(|change| change.path.as_path()).collect()
}

/// Those of the paths that are files after the changes.
fn regular(changes: &[TreeChange], paths: &[PathBuf]) -> Vec<PathBuf> {
    let files = changes.iter().filter(|change| {
        matches!(
            change.new_mode,
            Some(FileMode::Regular | FileMode::Executable)
        )
    });
    files
        .map(|change| &change.path)
        .filter(|path| paths.contains(path))
        .cloned()
        .collect()
}

fn is_gitlink(change: &TreeChange) -> bool {
    [change.old_mode, change.new_mode].contains(&Some(FileMode::Gitlink))
}
