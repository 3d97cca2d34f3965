//! What differs from the last commit, and what git tracks.
//!
//! Two flags in git's index can hide a change from `git status`: "assume unchanged" and "skip work tree". A file that
//! has one is listed as dirty, whatever git says about it, because nobody looked.

use std::path::PathBuf;

use crucible_patch::FileMode;

use super::objects::split_at;
use super::{Call, Git, Output, as_path};
use crate::error::RepoError;
use crate::oid::Oid;
use crate::tree::read_mode;

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
    /// The index tells git not to look.
    Hidden,
    /// git does not track it and does not ignore it.
    Untracked,
}

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

struct IndexEntry {
    tag: u8,
    mode: FileMode,
    oid: Oid,
    path: PathBuf,
}

impl Git {
    /// Every path that is not as the last commit has it, sorted. Submodules count when another commit of them is checked
    /// out; what changed inside of them does not.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn status(&self) -> Result<Vec<DirtyEntry>, RepoError> {
        let words = [
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--ignore-submodules=dirty",
            "--no-renames",
            "--no-ahead-behind",
        ];
        let output = self.run_ok(Call::new(words)).await?;
        let mut entries = parse_status(&output)?;
        for entry in self.index_entries().await? {
            let is_flagged = entry.tag.is_ascii_lowercase() || entry.tag == b'S';
            if is_flagged {
                entries.push(DirtyEntry { path: entry.path, kind: DirtyKind::Hidden });
            }
        }
        entries.sort_by(|a, b| (&a.path, a.kind).cmp(&(&b.path, b.kind)));
        entries.dedup_by(|a, b| a.path == b.path);
        Ok(entries)
    }

    /// Every file that git tracks, with the size of its content, sorted by path.
    ///
    /// # Errors
    ///
    /// [`RepoError::MissingObject`] where the repository lacks a content.
    pub async fn tracked_files(&self) -> Result<Vec<TrackedFile>, RepoError> {
        let mut entries = self.index_entries().await?;
        // A path with an open merge stands there up to three times.
        entries.dedup_by(|a, b| a.path == b.path);
        let files = entries.iter().filter(|entry| entry.mode != FileMode::Gitlink);
        let oids: Vec<Oid> = files.map(|entry| entry.oid.clone()).collect();
        let mut sizes = self.sizes(&oids).await?.into_iter();
        let tracked = entries.into_iter().map(|IndexEntry { mode, oid, path, .. }| {
            let size = if mode == FileMode::Gitlink { 0 } else { sizes.next().unwrap_or(0) };
            TrackedFile { path, mode, oid, size }
        });
        Ok(tracked.collect())
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

    /// Where the index has submodules, also those that are not there, from the top of the work tree on.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn submodules(&self) -> Result<Vec<PathBuf>, RepoError> {
        let tracked = self.tracked_paths().await?;
        Ok(tracked.into_iter().filter(|(_, mode)| *mode == FileMode::Gitlink).map(|(path, _)| path).collect())
    }

    pub(crate) async fn tracked_paths(&self) -> Result<Vec<(PathBuf, FileMode)>, RepoError> {
        let mut entries = self.index_entries().await?;
        entries.dedup_by(|a, b| a.path == b.path);
        Ok(entries.into_iter().map(|entry| (entry.path, entry.mode)).collect())
    }

    async fn index_entries(&self) -> Result<Vec<IndexEntry>, RepoError> {
        let output = self.run_ok(Call::new(["ls-files", "--stage", "-v", "-z"])).await?;
        output.records().map(|record| parse_entry(record).ok_or_else(|| output.unreadable())).collect()
    }
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

fn parse_status(output: &Output) -> Result<Vec<DirtyEntry>, RepoError> {
    let mut entries = Vec::new();
    for record in output.records() {
        // How many fields stand before the path.
        let (kind, fields) = match record.first() {
            Some(b'1') => (DirtyKind::Changed, 8),
            Some(b'u') => (DirtyKind::Unmerged, 10),
            Some(b'?') => (DirtyKind::Untracked, 1),
            _ => return Err(output.unreadable()),
        };
        let path =
            record.splitn(fields + 1, |byte| *byte == b' ').nth(fields).ok_or_else(|| output.unreadable())?;
        entries.push(DirtyEntry { path: as_path(path), kind });
    }
    Ok(entries)
}
