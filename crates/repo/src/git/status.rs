//! Finds the differences from the last commit.
//!
//! Two flags in git's index can hide a change from `git status`: "assume unchanged" and "skip work tree". A
//! file with such a flag is listed as dirty, because git does not examine it.
//!
//! Where the index holds the tree of the commit and every file is as the index noted it, nothing differs, and
//! that is seen here. In every other case git compares: filters, line ends and modes are its business.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::checked_out::checked_out;
use super::index::IndexEntry;
use super::store::{ReadFailure, Reader, oid_from};
use super::unchanged::{ByteEquality, all_unchanged};
use super::{Branch, Call, Git, Output, as_path};
use crate::error::RepoError;
use crate::oid::Oid;

/// A path that is not as the last commit has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirtyEntry {
    /// The path from the top of the work tree, byte for byte.
    pub path: PathBuf,
    /// How it differs.
    pub kind: DirtyKind,
}

/// How a path differs from the last commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DirtyKind {
    /// The index or the work tree has something else.
    Changed,
    /// A merge was left open.
    Unmerged,
    /// A flag in the index makes git ignore it.
    Hidden,
    /// git does not track it and does not ignore it.
    Untracked,
}

impl DirtyKind {
    /// Returns why git itself reports no change, and how to end that; `None` if git reports it.
    #[must_use]
    pub fn hidden(self) -> Option<&'static str> {
        (self == Self::Hidden).then_some(
            "git's index ignores it because of a sparse checkout (end it with `git sparse-checkout disable`) or a flag (clear it with \
             `git update-index --no-skip-worktree --no-assume-unchanged`)",
        )
    }
}

/// The checked-out commit and its changed files, from one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedState {
    /// The commit that is checked out.
    pub commit: Oid,
    /// Its branch.
    pub branch: Branch,
    /// The tracked paths that differ from it, sorted. Untracked files are not searched.
    pub changed: Vec<DirtyEntry>,
}

impl Git {
    /// Returns every path that differs from the last commit, sorted. A submodule counts if another commit is
    /// checked out, not for changes inside it.
    ///
    /// # Errors
    ///
    /// Fails when git fails.
    pub async fn status(&self) -> Result<Vec<DirtyEntry>, RepoError> {
        Ok(self.look(LookFor::UntrackedToo).await?.entries)
    }

    /// Returns the checked-out commit and every tracked path that differs; submodules as for [`Git::status`].
    ///
    /// # Errors
    ///
    /// [`RepoError::Empty`] if there is no commit; otherwise fails when git fails.
    pub async fn tracked_state(&self) -> Result<TrackedState, RepoError> {
        if let Some(clean) = self.clean_state().await? {
            return Ok(clean);
        }
        let StatusResult {
            commit,
            branch,
            entries,
        } = self.look(LookFor::Tracked).await?;
        let commit = commit.ok_or_else(|| RepoError::Empty {
            path: self.top().to_owned(),
        })?;
        let branch = match branch {
            Some(name) => Branch::Named(name),
            None => self.branch().await?,
        };
        Ok(TrackedState {
            commit,
            branch,
            changed: entries,
        })
    }

    /// Returns the state without differences; `None` if git has to compare.
    async fn clean_state(&self) -> Result<Option<TrackedState>, RepoError> {
        let Some(store) = &self.store else {
            return Ok(None);
        };
        // Taken before the index is read: an index written meanwhile makes files look newer, not older.
        let Ok(index) = self.place.git_dir.join("index").symlink_metadata() else {
            return Ok(None);
        };
        let Ok((branch, commit)) = checked_out(&self.place, store.hash()) else {
            return Ok(None);
        };
        let Some(list) = self.read_index_directly()?.filter(|_| index.is_file()) else {
            return Ok(None);
        };
        let bytes = if self.converts() || self.info_attributes().symlink_metadata().is_ok() {
            ByteEquality::PerhapsOther
        } else {
            ByteEquality::Same
        };
        let (top, commit_id) = (self.top().to_owned(), commit.clone());
        let is_clean = self.read(&[], move |reader| {
            let tree = reader.tree_of_commit(&commit_id)?;
            Ok(all_unchanged(&top, &index, &list.entries, bytes)
                && (list.tree.as_ref() == Some(&tree) || holds(reader, &tree, &list.entries)?))
        });
        Ok(is_clean.await?.unwrap_or(false).then_some(TrackedState {
            commit,
            branch,
            changed: Vec::new(),
        }))
    }

    async fn look(&self, what: LookFor) -> Result<StatusResult, RepoError> {
        let untracked = match what {
            LookFor::Tracked => "--untracked-files=no",
            LookFor::UntrackedToo => "--untracked-files=all",
        };
        let words = [
            "status",
            "--porcelain=v2",
            "--branch",
            "-z",
            untracked,
            "--ignore-submodules=dirty",
            "--no-renames",
            "--no-ahead-behind",
        ];
        let (output, index) = tokio::try_join!(self.run_ok(Call::new(words)), self.index_list())?;
        let mut looked = parse_status(&output)?;
        let entries = &mut looked.entries;
        let hidden = index.entries.iter().filter(|entry| entry.is_hidden());
        entries.extend(hidden.map(|entry| DirtyEntry {
            path: entry.path.clone(),
            kind: DirtyKind::Hidden,
        }));
        entries.sort_by(|a, b| (&a.path, a.kind).cmp(&(&b.path, b.kind)));
        entries.dedup_by(|a, b| a.path == b.path);
        Ok(looked)
    }

    /// Returns whether the work tree has only tracked files, without calling git; `false` also if git has to
    /// look.
    pub(crate) async fn holds_only_tracked(&self) -> Result<bool, RepoError> {
        let Some(list) = self.read_index_directly()? else {
            return Ok(false);
        };
        let top = self.top().to_owned();
        let looked =
            tokio::task::spawn_blocking(move || only_tracked(&top, &list.entries).unwrap_or(false));
        looked
            .await
            .map_err(|error| RepoError::io("list", self.top(), std::io::Error::other(error)))
    }

    /// Returns untracked entries, selected by options of `ls-files`; a directory with nothing else is one
    /// entry.
    pub(crate) async fn untracked_entries(
        &self,
        which: &'static [&'static str],
    ) -> Result<Vec<PathBuf>, RepoError> {
        let words = [
            "ls-files",
            "--others",
            "--directory",
            "--exclude-standard",
            "-z",
        ];
        let output = self
            .run_ok(Call::new(words.iter().chain(which).copied()))
            .await?;
        Ok(output
            .records()
            .map(|record| as_path(record.strip_suffix(b"/").unwrap_or(record)))
            .collect())
    }

    /// The files that git neither tracks nor ignores, sorted.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn untracked_files(&self) -> Result<Vec<PathBuf>, RepoError> {
        let call = Call::new(["ls-files", "--others", "--exclude-standard", "-z"]);
        let output = self.run_ok(call).await?;
        Ok(output.records().map(as_path).collect())
    }
}

/// Returns whether a tree has exactly these files, without an unfinished merge.
fn holds(reader: &mut Reader<'_>, tree: &Oid, entries: &[IndexEntry]) -> Result<bool, ReadFailure> {
    let mut left = entries.iter();
    let mut is_same = true;
    reader.each_file(tree, |path, mode, id| {
        is_same = left.next().is_some_and(|entry| {
            entry.stage == 0
                && entry.mode == mode
                && entry.path.as_os_str().as_bytes() == path
                && oid_from(id).as_ref() == Some(&entry.oid)
        });
        if is_same {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(is_same && left.next().is_none())
}

/// Whether each name in the work tree is that of a tracked file or leads to one.
fn only_tracked(top: &Path, entries: &[IndexEntry]) -> std::io::Result<bool> {
    let files: HashSet<&Path> = entries.iter().map(|entry| entry.path.as_path()).collect();
    let directories: HashSet<&Path> = files
        .iter()
        .flat_map(|path| path.ancestors().skip(1))
        .collect();
    let mut left = vec![PathBuf::new()];
    while let Some(directory) = left.pop() {
        for listed in std::fs::read_dir(top.join(&directory))? {
            let listed = listed?;
            let path = directory.join(listed.file_name());
            let is_directory = listed.file_type()?.is_dir();
            if is_directory && directories.contains(path.as_path()) {
                left.push(path);
            } else if path != Path::new(".git") && (is_directory || !files.contains(path.as_path()))
            {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// What one look tells.
#[derive(Default)]
struct StatusResult {
    /// The checked-out commit, if any.
    commit: Option<Oid>,
    /// The branch, if its short name is unambiguous.
    branch: Option<String>,
    entries: Vec<DirtyEntry>,
}

/// How far a look at the work tree goes.
#[derive(Clone, Copy)]
enum LookFor {
    Tracked,
    UntrackedToo,
}

fn parse_status(output: &Output) -> Result<StatusResult, RepoError> {
    let mut looked = StatusResult::default();
    for record in output.records() {
        if let Some(header) = record.strip_prefix(b"# ") {
            looked.header(header);
            continue;
        }
        // Number of fields before the path.
        let (kind, fields) = match record.first() {
            Some(b'1') => (DirtyKind::Changed, 8),
            Some(b'u') => (DirtyKind::Unmerged, 10),
            Some(b'?') => (DirtyKind::Untracked, 1),
            _ => return Err(output.unreadable()),
        };
        let path = record
            .splitn(fields + 1, |byte| *byte == b' ')
            .nth(fields)
            .ok_or_else(|| output.unreadable())?;
        looked.entries.push(DirtyEntry {
            path: as_path(path),
            kind,
        });
    }
    Ok(looked)
}

impl StatusResult {
    /// `branch.oid OID` and `branch.head NAME`, among others.
    fn header(&mut self, header: &[u8]) {
        if let Some(oid) = header.strip_prefix(b"branch.oid ") {
            self.commit = Oid::from_ascii(oid);
        } else if let Some(name) = header.strip_prefix(b"branch.head ") {
            // `(detached)` may be a branch name, and other references have full names.
            let name = std::str::from_utf8(name).ok();
            let name = name.filter(|name| !name.starts_with('(') && !name.starts_with("refs/"));
            self.branch = name.map(str::to_owned);
        }
    }
}
