//! The tree that a patch produces.
//!
//! git itself applies the patch to a temporary index, with a temporary directory for new objects; the
//! repository is only read. The difference of the two trees counts, not what the patch says.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crucible_host::fs;
use crucible_model::{ByteLimit, RepoPath};
use crucible_patch::FileMode;

use crate::attributes::CheckoutConversion;
use crate::error::RepoError;
use crate::git::parse::{read_mode, split_at};
use crate::git::store::{Difference, OwnedEntry, TreeMode};
use crate::git::{Call, Flush, Git, Output, as_path};
use crate::oid::Oid;

/// Maximum bytes of the changed files afterwards, in total.
pub const MAX_TOUCHED: ByteLimit = ByteLimit(256 << 20);

/// What happened to one path between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// The path from the top, byte for byte.
    pub path: PathBuf,
    /// The kind of change.
    pub status: ChangeStatus,
    /// The old mode; `None` if new.
    pub old_mode: Option<FileMode>,
    /// The new mode; `None` if removed.
    pub new_mode: Option<FileMode>,
    /// The old content; `None` if new.
    pub old_oid: Option<Oid>,
    /// The new content; `None` if removed.
    pub new_oid: Option<Oid>,
}

/// What a path is: its mode and its content.
pub(crate) type ModeAndOid = Option<(FileMode, Oid)>;

impl TreeChange {
    /// A change from `old` to `new`, which differ.
    pub(crate) fn new(path: PathBuf, old: ModeAndOid, new: ModeAndOid) -> Self {
        let status = match (&old, &new) {
            (None, _) => ChangeStatus::Added,
            (_, None) => ChangeStatus::Deleted,
            (Some((old, _)), Some((new, _))) if kind(*old) != kind(*new) => {
                ChangeStatus::TypeChanged
            }
            _ => ChangeStatus::Modified,
        };
        let (old_mode, old_oid) = old.unzip();
        let (new_mode, new_oid) = new.unzip();
        Self {
            path,
            status,
            old_mode,
            new_mode,
            old_oid,
            new_oid,
        }
    }

    fn from_difference(difference: Difference) -> Self {
        let file = |found: Option<OwnedEntry>| match found {
            Some(OwnedEntry {
                mode: TreeMode::File(mode),
                oid,
            }) => Some((mode, oid)),
            Some(OwnedEntry {
                mode: TreeMode::Tree,
                ..
            })
            | None => None,
        };
        Self::new(
            as_path(&difference.path),
            file(difference.old),
            file(difference.new),
        )
    }
}

/// A file is a file whether or not it can be executed.
fn kind(mode: FileMode) -> FileMode {
    if mode == FileMode::Executable {
        FileMode::Regular
    } else {
        mode
    }
}

/// The kind of change of one path. A rename is a removal and an addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeStatus {
    /// It is new.
    Added,
    /// Its content or its mode changed.
    Modified,
    /// It is gone.
    Deleted,
    /// It became something else: a file, a link, a submodule.
    TypeChanged,
}

/// A tree, and how it differs from the one the patch was applied to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducedTree {
    /// The commit it was made from.
    pub base: Oid,
    /// The tree.
    pub tree: Oid,
    /// Every path that differs, sorted as git sorts.
    pub changes: Vec<TreeChange>,
    /// The contents of the changed paths afterwards, by object name.
    pub after: BTreeMap<Oid, Vec<u8>>,
    /// What git's attributes make of the changed files in a work tree.
    pub(crate) checked_out: CheckoutConversion,
}

/// The changes of a patch, without the resulting tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducedChanges {
    /// The commit it was made from.
    pub base: Oid,
    /// Every path that differs, sorted as git sorts.
    pub changes: Vec<TreeChange>,
    /// The contents of the changed paths afterwards, by object name.
    pub after: BTreeMap<Oid, Vec<u8>>,
    /// What git's attributes make of the changed files in a work tree.
    pub(crate) checked_out: CheckoutConversion,
}

impl ProducedTree {
    /// The contents of the changed files afterwards, by path. Submodules and paths that are no [`RepoPath`] have no entry.
    #[must_use]
    pub fn files_after(&self) -> BTreeMap<RepoPath, Vec<u8>> {
        let file = |change: &TreeChange| {
            let path = RepoPath::from_bytes(change.path.as_os_str().as_bytes()).ok()?;
            Some((path, self.after.get(change.new_oid.as_ref()?)?.clone()))
        };
        self.changes.iter().filter_map(file).collect()
    }

    /// The same as checked out in a work tree: with the line endings and `$Id$` of git's attributes.
    #[must_use]
    pub fn files_checked_out(&self) -> BTreeMap<RepoPath, Vec<u8>> {
        let mut files = self.files_after();
        for (path, bytes) in &self.checked_out.contents {
            if let Ok(path) = RepoPath::from_bytes(path.as_os_str().as_bytes()) {
                files.insert(path, bytes.clone());
            }
        }
        files
    }
}

impl Git {
    /// Applies `patch` to the tree of `base` outside the repository, and returns the result.
    ///
    /// # Errors
    ///
    /// [`RepoError::PatchRefused`] when git does not accept the complete patch.
    pub async fn tree_after_patch(
        &self,
        base: &Oid,
        patch: &[u8],
    ) -> Result<ProducedTree, RepoError> {
        let temporary_index = TemporaryIndex::new(self)?;
        let tree = self
            .apply_to_index(base, patch, &temporary_index.env, Flush::No)
            .await?;
        let changes = self.tree_changes(base, &tree, &temporary_index.env).await?;
        let ProducedChanges {
            base,
            changes,
            after,
            checked_out,
        } = self.with_contents(base, changes, &temporary_index).await?;
        Ok(ProducedTree {
            base,
            tree,
            changes,
            after,
            checked_out,
        })
    }

    /// Reads the new contents of the changed files.
    pub(crate) async fn with_contents(
        &self,
        base: &Oid,
        changes: Vec<TreeChange>,
        temporary_index: &TemporaryIndex,
    ) -> Result<ProducedChanges, RepoError> {
        let files = changes
            .iter()
            .filter(|change| change.new_mode != Some(FileMode::Gitlink));
        let contents: BTreeSet<Oid> = files.filter_map(|change| change.new_oid.clone()).collect();
        let contents: Vec<Oid> = contents.into_iter().collect();
        let (after, checked_out) = tokio::try_join!(
            self.blobs(&contents, MAX_TOUCHED, &temporary_index.env),
            self.checked_out(&changes, temporary_index)
        )?;
        Ok(ProducedChanges {
            base: base.clone(),
            changes,
            after,
            checked_out,
        })
    }

    /// Fills the index that `env` names from `base`, applies the patch to it and writes its tree.
    pub(crate) async fn apply_to_index(
        &self,
        base: &Oid,
        patch: &[u8],
        env: &[(OsString, OsString)],
        flush: Flush,
    ) -> Result<Oid, RepoError> {
        self.run_ok(Call::new(["read-tree", base.as_str()]).with_envs(env))
            .await?;
        self.apply_cached(patch, env, flush).await?;
        self.run_oid(Call::new(["write-tree"]).with_envs(env).flushing(flush))
            .await
    }

    /// Applies the patch to the index that `env` names.
    pub(crate) async fn apply_cached(
        &self,
        patch: &[u8],
        env: &[(OsString, OsString)],
        flush: Flush,
    ) -> Result<(), RepoError> {
        // `git apply` accepts a patch completely or not at all, so no earlier check is needed.
        let words = ["apply", "--cached", "--whitespace=nowarn", "-p1", "-"];
        let output = self
            .run(
                Call::new(words)
                    .reading(patch.to_vec())
                    .with_envs(env)
                    .flushing(flush),
            )
            .await?;
        if output.code == 0 {
            return Ok(());
        }
        Err(RepoError::PatchRefused {
            detail: output.stderr.chars().take(2000).collect(),
        })
    }

    /// What differs between two trees (or commits).
    pub(crate) async fn tree_changes(
        &self,
        old: &Oid,
        new: &Oid,
        env: &[(OsString, OsString)],
    ) -> Result<Vec<TreeChange>, RepoError> {
        let sides = (old.clone(), new.clone());
        let read = self.read(env, move |reader| {
            let (old, new) = (reader.tree_of(&sides.0)?, reader.tree_of(&sides.1)?);
            reader.differences(&old, &new)
        });
        if let Some(differences) = read.await? {
            return Ok(differences
                .into_iter()
                .map(TreeChange::from_difference)
                .collect());
        }
        let words = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            "--no-abbrev",
            "--no-ext-diff",
            old.as_str(),
            new.as_str(),
        ];
        let output = self.run_ok(Call::new(words).with_envs(env)).await?;
        parse_raw(&output)
    }
}

/// A private index and a private place for objects, gone when dropped.
#[derive(Debug)]
pub(crate) struct TemporaryIndex {
    /// Makes git use them.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) dir: tempfile::TempDir,
}

impl TemporaryIndex {
    pub(crate) fn new(git: &Git) -> Result<Self, RepoError> {
        let dir = fs::temp_dir_in(git.scratch(), "crucible-git-")?;
        let objects = dir.path().join("objects");
        fs::create_dir_all(&objects)?;
        let env = vec![
            ("GIT_INDEX_FILE".into(), index_in(&dir).into()),
            ("GIT_OBJECT_DIRECTORY".into(), objects.into()),
            (
                "GIT_ALTERNATE_OBJECT_DIRECTORIES".into(),
                quoted(&git.objects_dir()),
            ),
        ];
        Ok(Self { env, dir })
    }

    /// Where the index lies.
    pub(crate) fn index(&self) -> PathBuf {
        index_in(&self.dir)
    }

    /// The same index, with its objects in the repository itself.
    pub(crate) fn in_repository(mut self) -> Self {
        self.env.retain(|(name, _)| name == "GIT_INDEX_FILE");
        self
    }
}

fn index_in(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("index")
}

/// Quotes a path for git's list of alternates, so that `:` is no separator.
pub(crate) fn quoted(path: &Path) -> OsString {
    let mut text = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            b' '..=b'~' => text.push(*byte),
            other => text.extend(format!("\\{other:03o}").into_bytes()),
        }
    }
    text.push(b'"');
    OsString::from_vec(text)
}

/// `:oldmode SP newmode SP oldoid SP newoid SP status NUL path NUL`, again and again.
fn parse_raw(output: &Output) -> Result<Vec<TreeChange>, RepoError> {
    let mut changes = Vec::new();
    let mut records = output.records();
    while let Some(head) = records.next() {
        let path = records.next().ok_or_else(|| output.unreadable())?;
        changes.push(parse_change(head, path).ok_or_else(|| output.unreadable())?);
    }
    Ok(changes)
}

pub(crate) fn parse_change(head: &[u8], path: &[u8]) -> Option<TreeChange> {
    let fields: Vec<&[u8]> = split_at(head, b':')
        .filter(|(before, _)| before.is_empty())?
        .1
        .split(|b| *b == b' ')
        .collect();
    let [old_mode, new_mode, old_oid, new_oid, status] = fields[..] else {
        return None;
    };
    let oid = |digits| Oid::from_ascii(digits).map(|oid| Some(oid).filter(|oid| !oid.is_null()));
    Some(TreeChange {
        path: as_path(path),
        status: match status {
            b"A" => ChangeStatus::Added,
            b"M" => ChangeStatus::Modified,
            b"D" => ChangeStatus::Deleted,
            b"T" => ChangeStatus::TypeChanged,
            _ => return None,
        },
        old_mode: read_mode(old_mode)?,
        new_mode: read_mode(new_mode)?,
        old_oid: oid(old_oid)?,
        new_oid: oid(new_oid)?,
    })
}
