//! Finds the changes of a patch without the complete tree.
//!
//! An index of a large tree costs more than anything else of a check. So the patch is applied to an index
//! that holds only what can matter to it: the entries that it names, files that stand where one of its
//! directories is to be, and the settings of git on the way. Where the patch names a directory of the tree,
//! all of it can matter, and the index holds everything.
//!
//! We write that index ourselves and read it afterwards, for the few bytes of it cost less than a process;
//! what the patch makes of it is git's to say.
//!
//! What always holds: what git would refuse on the whole tree it refuses here. A path that the patch changes
//! and that the reader of its text did not see has no entry, so git cannot change it; and it is found where
//! git makes it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crucible_host::fs;
use crucible_model::{ByteLimit, RepoPath};
use crucible_patch::FileMode;

use crate::error::RepoError;
use crate::git::parse::{read_mode, split_at};
use crate::git::store::{KnownTrees, OwnedEntry, TreeMode};
use crate::git::{Call, Flush, Git, as_path};
use crate::index_file::{self, FileEntry, Stat};
use crate::oid::Oid;
use crate::tree::{ProducedChanges, TemporaryIndex, TreeChange};

/// Maximum number of paths that are requested one by one.
const MAX_PATHS: usize = 500;

type Entries = BTreeMap<PathBuf, (FileMode, Oid)>;

/// What a patch is applied to: the part of a commit that can matter to it.
#[derive(Debug)]
pub struct PatchIndex {
    base: Oid,
    aside: TemporaryIndex,
    before: Entries,
}

impl Git {
    /// Prepares an index of the commit `base` for a patch of `paths`, and reads the contents of those that
    /// are files. The repository is only read.
    ///
    /// # Errors
    ///
    /// [`RepoError::TooLarge`] when the contents together are over `limit`; fails when git fails.
    pub async fn patch_index(
        &self,
        base: &Oid,
        paths: &[RepoPath],
        limit: ByteLimit,
    ) -> Result<(BTreeMap<RepoPath, Vec<u8>>, PatchIndex), RepoError> {
        let temporary_index = TemporaryIndex::new(self)?;
        // Neither needs the other.
        let (files, before) = tokio::try_join!(
            self.files_at(base, paths, limit),
            self.fill_from(base, paths, &temporary_index)
        )?;
        Ok((
            files,
            PatchIndex {
                base: base.clone(),
                aside: temporary_index,
                before,
            },
        ))
    }

    /// Fills the index, and returns its source.
    async fn fill_from(
        &self,
        base: &Oid,
        paths: &[RepoPath],
        temporary_index: &TemporaryIndex,
    ) -> Result<Entries, RepoError> {
        if let Some(entries) = self.entries_for(base, paths).await? {
            fill(&entries, temporary_index)?;
            return Ok(entries);
        }
        self.run_ok(Call::new(["read-tree", base.as_str()]).with_envs(&temporary_index.env))
            .await?;
        self.entries(temporary_index).await
    }

    /// Applies `patch` to the index, and returns the changes.
    ///
    /// # Errors
    ///
    /// [`RepoError::PatchRefused`] when git does not accept the complete patch.
    pub async fn changes_after_patch(
        &self,
        index: PatchIndex,
        patch: &[u8],
    ) -> Result<ProducedChanges, RepoError> {
        let PatchIndex {
            base,
            aside,
            before,
        } = index;
        self.apply_cached(patch, &aside.env, Flush::No).await?;
        let after = self.entries(&aside).await?;
        self.with_contents(&base, changes(&before, &after), &aside)
            .await
    }

    /// Returns the entries of the commit that can affect a patch of these paths; `None` if any entry may.
    async fn entries_for(
        &self,
        base: &Oid,
        paths: &[RepoPath],
    ) -> Result<Option<Entries>, RepoError> {
        let named: BTreeSet<&Path> = paths.iter().map(|path| Path::new(path.as_str())).collect();
        let above: BTreeSet<&Path> = named
            .iter()
            .flat_map(|path| path.ancestors().skip(1))
            .collect();
        let settings: Vec<PathBuf> = above
            .iter()
            .map(|directory| directory.join(".gitattributes"))
            .collect();
        let queried_paths: BTreeSet<&Path> = named
            .iter()
            .chain(&above)
            .copied()
            .chain(settings.iter().map(PathBuf::as_path))
            .collect();
        if queried_paths.len() > MAX_PATHS {
            return Ok(None);
        }
        let requested: Vec<(PathBuf, bool)> = queried_paths
            .iter()
            .map(|path| (path.to_path_buf(), named.contains(path)))
            .collect();
        let root = base.clone();
        let read = self.read(&[], move |reader| {
            let tree = reader.tree_of(&root)?;
            let mut known = KnownTrees::default();
            let mut entries = Entries::new();
            for (path, is_named) in requested
                .into_iter()
                .filter(|(path, _)| !path.as_os_str().is_empty())
            {
                match reader.find(&tree, path.as_os_str().as_bytes(), &mut known)? {
                    Some(OwnedEntry {
                        mode: TreeMode::Tree,
                        ..
                    }) if is_named => return Ok(None),
                    Some(OwnedEntry {
                        mode: TreeMode::File(mode),
                        oid,
                    }) => drop(entries.insert(path, (mode, oid))),
                    Some(_) | None => {}
                }
            }
            Ok(Some(entries))
        });
        if let Some(entries) = read.await? {
            return Ok(entries);
        }
        let words = ["ls-tree", "-z", "-t", "--full-tree", base.as_str(), "--"].map(OsString::from);
        let queried_paths = queried_paths
            .into_iter()
            .filter(|path| !path.as_os_str().is_empty());
        let call = Call::new(
            words
                .into_iter()
                .chain(queried_paths.map(|path| path.as_os_str().to_owned())),
        );
        let output = self.run_ok(call).await?;
        let mut entries = Entries::new();
        for record in output.records() {
            let entry = parse_entry(record).ok_or_else(|| output.unreadable())?;
            match entry {
                (path, None) if named.contains(path.as_path()) => return Ok(None),
                (_, None) => {}
                (path, Some(entry)) => drop(entries.insert(path, entry)),
            }
        }
        Ok(Some(entries))
    }

    /// What the index holds.
    async fn entries(&self, temporary_index: &TemporaryIndex) -> Result<Entries, RepoError> {
        if let Some(entries) = self.entries_here(temporary_index) {
            return Ok(entries);
        }
        let output = self
            .run_ok(Call::new(["ls-files", "--stage", "-z"]).with_envs(&temporary_index.env))
            .await?;
        let entry = |record| staged(record).ok_or_else(|| output.unreadable());
        output.records().map(entry).collect()
    }
}

/// The largest private index that is read here, in bytes.
const MAX_INDEX: ByteLimit = ByteLimit(64 << 20);

impl Git {
    /// Returns the content of the index, read in this process; `None` if git has to be asked.
    fn entries_here(&self, temporary_index: &TemporaryIndex) -> Option<Entries> {
        let bytes = fs::read_regular_up_to(&temporary_index.index(), MAX_INDEX).ok()?;
        let index = index_file::read(&bytes, self.hash()?)?;
        let entry =
            |entry: FileEntry| (entry.stage == 0).then_some((entry.path, (entry.mode, entry.oid)));
        index.entries.into_iter().map(entry).collect()
    }
}

/// Puts the entries into the index.
fn fill(entries: &Entries, temporary_index: &TemporaryIndex) -> Result<(), RepoError> {
    if entries.is_empty() {
        return Ok(());
    }
    let entries = entries
        .iter()
        .map(|(path, (mode, oid))| (path.as_path(), *mode, oid, Stat::default()));
    let path = temporary_index.index();
    let mut file = fs::create_new(&path)?;
    file.write_all(&index_file::bytes(entries))
        .map_err(|source| RepoError::io("write", path, source))
}

/// Parses a record of `git ls-tree`: `mode SP kind SP oid TAB path`. A directory has no entry of an index.
pub(crate) fn parse_entry(record: &[u8]) -> Option<(PathBuf, Option<(FileMode, Oid)>)> {
    let (head, path) = split_at(record, b'\t')?;
    let fields: Vec<&[u8]> = head.split(|byte| *byte == b' ').collect();
    let [mode, kind, oid] = fields[..] else {
        return None;
    };
    let entry = if kind == b"tree" {
        None
    } else {
        Some((read_mode(mode)??, Oid::from_ascii(oid)?))
    };
    Some((as_path(path), entry))
}

/// `mode SP oid SP stage TAB path`
fn staged(record: &[u8]) -> Option<(PathBuf, (FileMode, Oid))> {
    let (head, path) = split_at(record, b'\t')?;
    let fields: Vec<&[u8]> = head.split(|byte| *byte == b' ').collect();
    let [mode, oid, b"0"] = fields[..] else {
        return None;
    };
    Some((as_path(path), (read_mode(mode)??, Oid::from_ascii(oid)?)))
}

/// What differs between two indexes.
fn changes(before: &Entries, after: &Entries) -> Vec<TreeChange> {
    let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let mut changes = Vec::new();
    for path in paths {
        let (old, new) = (before.get(path), after.get(path));
        if old != new {
            changes.push(TreeChange::new(path.clone(), old.cloned(), new.cloned()));
        }
    }
    // As git sorts: byte by byte, and not name by name.
    changes.sort_by(|a, b| {
        a.path
            .as_os_str()
            .as_bytes()
            .cmp(b.path.as_os_str().as_bytes())
    });
    changes
}
