//! What git's index holds: the tracked files, and the flags that tell git not to look.
//!
//! The file is decoded here (`index_file`), and the list is kept together with the digest of its bytes: as long as the bytes are the
//! same, so is the list. The bytes are read again for each question, so an index that anybody wrote in between is listed again.
//!
//! What always holds: a list is kept only where those bytes alone decide it. Part of a split index lies in another file, and in a
//! sparse work tree git looks at the files as well; there git lists it, each time. An index that we cannot read is listed by git, too.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crucible_host::fs::read_regular_up_to;
use crucible_model::{ByteLimit, Digest};
use crucible_patch::FileMode;

use super::config::SparseWorkTree;
use super::parse::split_at;
use super::store::refuse_pipe;
use super::{Call, Git, as_path};
use crate::error::RepoError;
use crate::git::parse::read_mode;
use crate::index_file::{self, FileEntry, IndexFlag, Stat};
use crate::oid::Oid;

/// A larger index is not cached.
const MAX_KEPT: ByteLimit = ByteLimit(64 << 20);

/// A file that git tracks, as its index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedFile {
    /// The path from the top of the work tree, byte for byte.
    pub path: PathBuf,
    /// What it is; [`FileMode::Gitlink`] is a submodule.
    pub mode: FileMode,
    /// Its content, or a submodule's commit.
    pub oid: Oid,
    /// The length of the content in bytes; 0 for a submodule.
    pub size: u64,
}

/// The list that was made last.
#[derive(Debug, Default)]
pub(super) struct IndexCache(Mutex<Option<CachedIndex>>);

#[derive(Debug)]
struct CachedIndex {
    digest: Digest,
    list: Arc<IndexList>,
    /// The same with sizes, once requested.
    tracked: Option<Arc<Vec<TrackedFile>>>,
}

/// What an index holds.
#[derive(Debug)]
pub(super) struct IndexList {
    pub(super) entries: Vec<IndexEntry>,
    /// The tree of the entries, if the index has it.
    pub(super) tree: Option<Oid>,
}

/// An entry of the index. A path with an open merge has up to three.
#[derive(Debug)]
pub(super) struct IndexEntry {
    pub(super) watch: IndexFlag,
    pub(super) mode: FileMode,
    pub(super) oid: Oid,
    pub(super) path: PathBuf,
    /// 0, or the side of an open merge.
    pub(super) stage: u8,
    /// The recorded file metadata; `None` if git listed the file, which does not print it.
    pub(super) stat: Option<Stat>,
}

impl IndexEntry {
    /// Returns whether a flag makes git ignore the file.
    pub(super) fn is_hidden(&self) -> bool {
        self.watch == IndexFlag::Hidden
    }
}

impl Git {
    /// Returns every tracked file with the size of its content, sorted by path.
    ///
    /// # Errors
    ///
    /// [`RepoError::MissingObject`] if the repository lacks a content.
    pub async fn tracked_files(&self) -> Result<Vec<TrackedFile>, RepoError> {
        let list = self.index_list().await?;
        let entries = &list.entries;
        let known = self
            .index
            .lock_cache()
            .as_ref()
            .filter(|cached| Arc::ptr_eq(&cached.list, &list))
            .and_then(|cached| cached.tracked.clone());
        if let Some(known) = known {
            return Ok(known.to_vec());
        }
        let files = || each_once(entries).filter(|entry| entry.mode != FileMode::Gitlink);
        let oids: Vec<Oid> = files().map(|entry| entry.oid.clone()).collect();
        let mut sizes = self.sizes(&oids).await?.into_iter();
        let tracked = each_once(entries).map(|entry| {
            let size = if entry.mode == FileMode::Gitlink {
                0
            } else {
                sizes.next().unwrap_or(0)
            };
            TrackedFile {
                path: entry.path.clone(),
                mode: entry.mode,
                oid: entry.oid.clone(),
                size,
            }
        });
        let tracked: Vec<TrackedFile> = tracked.collect();
        if let Some(cached) = self
            .index
            .lock_cache()
            .as_mut()
            .filter(|cached| Arc::ptr_eq(&cached.list, &list))
        {
            cached.tracked = Some(Arc::new(tracked.clone()));
        }
        Ok(tracked)
    }

    /// Returns the names and kinds of all tracked files, sorted, without reading contents.
    ///
    /// # Errors
    ///
    /// Fails when git fails.
    pub async fn tracked_names(&self) -> Result<Vec<(PathBuf, FileMode)>, RepoError> {
        let list = self.index_list().await?;
        let entries = &list.entries;
        Ok(each_once(entries)
            .map(|entry| (entry.path.clone(), entry.mode))
            .collect())
    }

    /// Where the index has submodules, also those that are not there, from the top of the work tree on.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn submodules(&self) -> Result<Vec<PathBuf>, RepoError> {
        let list = self.index_list().await?;
        let entries = &list.entries;
        let links = each_once(entries).filter(|entry| entry.mode == FileMode::Gitlink);
        Ok(links.map(|entry| entry.path.clone()).collect())
    }

    /// What the index holds now.
    pub(super) async fn index_list(&self) -> Result<Arc<IndexList>, RepoError> {
        match self.read_index_directly()? {
            Some(list) => Ok(list),
            None => self.listed_index().await,
        }
    }

    /// The same, if git need not be asked.
    pub(super) fn read_index_directly(&self) -> Result<Option<Arc<IndexList>>, RepoError> {
        let path = self.place.git_dir.join("index");
        refuse_pipe(&path)?;
        let (Some(hash), SparseWorkTree::No) = (self.hash(), self.sparse) else {
            return Ok(None);
        };
        let Ok(bytes) = read_regular_up_to(&path, MAX_KEPT) else {
            return Ok(None);
        };
        let digest = Digest::compute(&bytes);
        if let Some(cached) = self
            .index
            .lock_cache()
            .as_ref()
            .filter(|cached| cached.digest == digest)
        {
            return Ok(Some(Arc::clone(&cached.list)));
        }
        let Some(file) = index_file::read(&bytes, hash) else {
            return Ok(None);
        };
        let entry = |entry: FileEntry| IndexEntry {
            watch: entry.watch,
            mode: entry.mode,
            oid: entry.oid,
            path: entry.path,
            stage: entry.stage,
            stat: Some(entry.stat),
        };
        let list = Arc::new(IndexList {
            entries: file.entries.into_iter().map(entry).collect(),
            tree: file.tree,
        });
        *self.index.lock_cache() = Some(CachedIndex {
            digest,
            list: Arc::clone(&list),
            tracked: None,
        });
        Ok(Some(list))
    }

    /// The same as git lists it.
    async fn listed_index(&self) -> Result<Arc<IndexList>, RepoError> {
        let output = self
            .run_ok(Call::new(["ls-files", "--stage", "-v", "-z"]))
            .await?;
        let entries: Result<Vec<_>, _> = output
            .records()
            .map(|record| parse_entry(record).ok_or_else(|| output.unreadable()))
            .collect();
        Ok(Arc::new(IndexList {
            entries: entries?,
            tree: None,
        }))
    }
}

impl IndexCache {
    fn lock_cache(&self) -> MutexGuard<'_, Option<CachedIndex>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entries, those of an open merge but once.
fn each_once(entries: &[IndexEntry]) -> impl Iterator<Item = &IndexEntry> {
    let mut last = None;
    entries
        .iter()
        .filter(move |entry| last.replace(&entry.path) != Some(&entry.path))
}

/// `tag SP mode SP oid SP stage TAB path`
fn parse_entry(record: &[u8]) -> Option<IndexEntry> {
    let (head, path) = split_at(record, b'\t')?;
    let fields: Vec<&[u8]> = head.split(|byte| *byte == b' ').collect();
    let [tag, mode, oid, stage] = fields[..] else {
        return None;
    };
    let tag = *tag.first()?;
    Some(IndexEntry {
        watch: if tag.is_ascii_lowercase() || tag == b'S' {
            IndexFlag::Hidden
        } else {
            IndexFlag::Looked
        },
        stage: std::str::from_utf8(stage).ok()?.parse().ok()?,
        stat: None,
        mode: read_mode(mode)??,
        oid: Oid::from_ascii(oid)?,
        path: as_path(path),
    })
}
