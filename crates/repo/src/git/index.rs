//! What git's index holds: the tracked files, and the flags that tell git not to look.
//!
//! git lists it, and the list is kept together with the digest of the index's own bytes: as long as the bytes are the same, so
//! is the list. The bytes are read anew for each question, so an index that anybody wrote in between is listed again.
//!
//! What always holds: a list is kept only where those bytes alone decide it. Part of a split index lies in another file, and in a
//! sparse work tree git looks at the files as well; there it is asked each time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crucible_host::fs::read_regular_up_to;
use crucible_model::{ByteLimit, Digest};
use crucible_patch::FileMode;

use super::config::SparseWorkTree;
use super::objects::split_at;
use super::{Call, Git, as_path};
use crate::error::RepoError;
use crate::oid::Oid;
use crate::tree::read_mode;

/// Of a larger index no list is kept.
const MAX_KEPT: ByteLimit = ByteLimit(64 << 20);

/// How the part of an index begins that says that it is split: its name, and the first byte of its length.
const SPLIT: &[u8] = b"link\0";

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
pub(super) struct KeptIndex(Mutex<Option<Kept>>);

#[derive(Debug)]
struct Kept {
    digest: Digest,
    entries: Arc<Vec<IndexEntry>>,
    /// The same with sizes, once somebody asked for them.
    tracked: Option<Arc<Vec<TrackedFile>>>,
}

/// An entry of the index. A path with an open merge has up to three.
#[derive(Debug)]
pub(super) struct IndexEntry {
    tag: u8,
    mode: FileMode,
    oid: Oid,
    pub(super) path: PathBuf,
}

impl IndexEntry {
    /// Whether a flag of it tells git not to look at the file.
    pub(super) fn is_hidden(&self) -> bool {
        self.tag.is_ascii_lowercase() || self.tag == b'S'
    }
}

impl Git {
    /// Every file that git tracks, with the size of its content, sorted by path.
    ///
    /// # Errors
    ///
    /// [`RepoError::MissingObject`] where the repository lacks a content.
    pub async fn tracked_files(&self) -> Result<Vec<TrackedFile>, RepoError> {
        let entries = self.index_entries().await?;
        let known = self
            .index
            .kept()
            .as_ref()
            .filter(|kept| Arc::ptr_eq(&kept.entries, &entries))
            .and_then(|kept| kept.tracked.clone());
        if let Some(known) = known {
            return Ok(known.to_vec());
        }
        let files = || each_once(&entries).filter(|entry| entry.mode != FileMode::Gitlink);
        let oids: Vec<Oid> = files().map(|entry| entry.oid.clone()).collect();
        let mut sizes = self.sizes(&oids).await?.into_iter();
        let tracked = each_once(&entries).map(|entry| {
            let size = if entry.mode == FileMode::Gitlink { 0 } else { sizes.next().unwrap_or(0) };
            TrackedFile { path: entry.path.clone(), mode: entry.mode, oid: entry.oid.clone(), size }
        });
        let tracked: Vec<TrackedFile> = tracked.collect();
        if let Some(kept) = self.index.kept().as_mut().filter(|kept| Arc::ptr_eq(&kept.entries, &entries)) {
            kept.tracked = Some(Arc::new(tracked.clone()));
        }
        Ok(tracked)
    }

    /// The names and kinds of all files that git tracks, sorted; their contents are not looked up.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn tracked_names(&self) -> Result<Vec<(PathBuf, FileMode)>, RepoError> {
        let entries = self.index_entries().await?;
        Ok(each_once(&entries).map(|entry| (entry.path.clone(), entry.mode)).collect())
    }

    /// Where the index has submodules, also those that are not there, from the top of the work tree on.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn submodules(&self) -> Result<Vec<PathBuf>, RepoError> {
        let entries = self.index_entries().await?;
        let links = each_once(&entries).filter(|entry| entry.mode == FileMode::Gitlink);
        Ok(links.map(|entry| entry.path.clone()).collect())
    }

    /// What the index holds now.
    pub(super) async fn index_entries(&self) -> Result<Arc<Vec<IndexEntry>>, RepoError> {
        let before = self.index_digest();
        if let Some(kept) = self.index.kept().as_ref().filter(|kept| Some(kept.digest) == before) {
            return Ok(Arc::clone(&kept.entries));
        }
        let output = self.run_ok(Call::new(["ls-files", "--stage", "-v", "-z"])).await?;
        let entries: Result<Vec<_>, _> =
            output.records().map(|record| parse_entry(record).ok_or_else(|| output.unreadable())).collect();
        let entries = Arc::new(entries?);
        // Somebody may have written it while git read it.
        if let Some(digest) = before.filter(|digest| Some(*digest) == self.index_digest()) {
            *self.index.kept() = Some(Kept { digest, entries: Arc::clone(&entries), tracked: None });
        }
        Ok(entries)
    }

    /// The digest of the index; nothing where its bytes alone do not decide what git lists.
    fn index_digest(&self) -> Option<Digest> {
        if self.sparse == SparseWorkTree::Yes {
            return None;
        }
        let bytes = read_regular_up_to(&self.place.git_dir.join("index"), MAX_KEPT).ok()?;
        (!bytes.windows(SPLIT.len()).any(|part| part == SPLIT)).then(|| Digest::of(&bytes))
    }
}

impl KeptIndex {
    fn kept(&self) -> MutexGuard<'_, Option<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entries, those of an open merge but once.
fn each_once(entries: &[IndexEntry]) -> impl Iterator<Item = &IndexEntry> {
    let mut last = None;
    entries.iter().filter(move |entry| last.replace(&entry.path) != Some(&entry.path))
}

/// `tag SP mode SP oid SP stage TAB path`
fn parse_entry(record: &[u8]) -> Option<IndexEntry> {
    let (head, path) = split_at(record, b'\t')?;
    let fields: Vec<&[u8]> = head.split(|byte| *byte == b' ').collect();
    let [tag, mode, oid, _] = fields[..] else {
        return None;
    };
    Some(IndexEntry {
        tag: *tag.first()?,
        mode: read_mode(mode)??,
        oid: Oid::from_ascii(oid)?,
        path: as_path(path),
    })
}
