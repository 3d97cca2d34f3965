//! The record of a change in progress, with which the next process finishes or undoes it.
//!
//! It names files and digests, no contents. Another program may have put it there, so it is believed in
//! nothing before its owner agrees to what it claims; and what it may ask for is narrow: paths inside the
//! root and not in git's or Crucible's own directory, directories on the way to them, and names that only a
//! change of files makes.

use std::path::{Path, PathBuf};

use crucible_host::fs;
use crucible_model::{ByteLimit, Digest, RepoPath, to_canonical_json};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::edit_target::Target;
use super::{ClaimedEdit, EditClaim, TreeEditError};
use crate::beneath::Root;

/// The schema of the journal.
const SCHEMA: &str = "crucible-tree-edit-v1";

/// Larger ones are not ours.
const MAX_JOURNAL: ByteLimit = ByteLimit(4 << 20);

/// A change that is under way.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    schema_version: String,
    pub(super) stage: JournalStage,
    /// What the change was made for.
    purpose: Digest,
    /// The random part of temporary names: 32 hexadecimal digits.
    token: String,
    /// The directories that the change creates, top down.
    pub(super) made: Vec<RepoPath>,
    pub(super) entries: Vec<JournalEntry>,
}

/// How far a change had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalStage {
    /// No file was changed yet.
    Staging,
    /// Every new content is there; files may have been changed.
    Ready,
    /// The change failed; files may still have to be restored.
    GivenUp,
    /// Every file was changed; temporary files are being removed.
    Clearing,
}

/// A file of a change.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JournalEntry {
    pub(super) path: RepoPath,
    pub(super) before: Option<Digest>,
    pub(super) after: Option<Digest>,
}

/// The temporary names of a change beside a file.
#[derive(Debug)]
pub(super) struct TemporaryNames {
    /// Where the new content waits, and after the exchange the old one.
    pub(super) swap_file: PathBuf,
    /// Holds the old content if there is nothing to exchange it with.
    pub(super) old: PathBuf,
}

impl Journal {
    /// The record of a change that is about to begin.
    pub(super) fn new(
        token: String,
        purpose: Digest,
        root: &Root,
        targets: &[Target],
    ) -> Result<Self, TreeEditError> {
        let mut paths: Vec<RepoPath> = Vec::new();
        for target in targets.iter().filter(|target| target.after.is_some()) {
            let parents: Vec<&Path> = Path::new(target.path.as_str())
                .ancestors()
                .skip(1)
                .collect();
            for parent in parents
                .into_iter()
                .rev()
                .filter(|parent| !parent.as_os_str().is_empty())
            {
                let Some(path) = parent
                    .to_str()
                    .and_then(|text| text.parse::<RepoPath>().ok())
                else {
                    continue;
                };
                let is_new = match root.stat(parent) {
                    Ok(_) => false,
                    Err(Errno::NOENT) => true,
                    Err(errno) => return Err(root.fail("look at", parent, errno).into()),
                };
                if is_new && !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        let entries = targets
            .iter()
            .map(|target| JournalEntry {
                path: target.path.clone(),
                before: target.before,
                after: target.after.map(Digest::compute),
            })
            .collect();
        Ok(Self {
            schema_version: SCHEMA.to_owned(),
            stage: JournalStage::Staging,
            purpose,
            token,
            made: paths,
            entries,
        })
    }

    /// Reads the record at `path`; `None` if it does not exist.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, TreeEditError> {
        let bytes = match fs::read_regular_up_to(path, MAX_JOURNAL) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let refuse = |why: String| TreeEditError::Journal {
            path: path.to_owned(),
            why,
        };
        let journal: Self =
            serde_json::from_slice(&bytes).map_err(|error| refuse(error.to_string()))?;
        if journal.schema_version != SCHEMA {
            return Err(refuse(format!("its schema_version is not {SCHEMA}")));
        }
        let is_token = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if journal.token.len() != 32 || !journal.token.bytes().all(is_token) {
            return Err(refuse("its token is invalid".to_owned()));
        }
        let paths = journal
            .entries
            .iter()
            .map(|entry| &entry.path)
            .chain(&journal.made);
        for path in paths {
            if path
                .segments()
                .any(|segment| segment.eq_ignore_ascii_case(".crucible"))
            {
                return Err(refuse(format!("it names {path}")));
            }
        }
        let is_on_the_way = |new_path: &RepoPath| {
            let new = journal.entries.iter().filter(|entry| entry.after.is_some());
            new.into_iter()
                .any(|entry| entry.parent().starts_with(new_path))
        };
        if let Some(made) = journal.made.iter().find(|made| !is_on_the_way(made)) {
            return Err(refuse(format!(
                "{made} is not a parent of any of its files"
            )));
        }
        Ok(Some(journal))
    }

    /// Returns the change that the record claims.
    pub(super) fn claim(&self) -> EditClaim {
        EditClaim {
            purpose: self.purpose,
            edits: self.entries.iter().map(JournalEntry::claimed).collect(),
        }
    }

    /// The files of the change.
    pub(super) fn paths(&self) -> Vec<RepoPath> {
        self.entries
            .iter()
            .map(|entry| entry.path.clone())
            .collect()
    }

    /// Writes it, whole and flushed.
    pub(super) fn write(&self, path: &Path) -> Result<(), TreeEditError> {
        Ok(fs::write_atomic(path, &to_canonical_json(self)?)?)
    }

    /// Removes the record at `path`: the change is over.
    pub(super) fn remove(path: &Path) -> Result<(), TreeEditError> {
        fs::remove_file(path)?;
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        Root::open(parent)?
            .sync()
            .map_err(|errno| crate::error::RepoError::io("flush", parent, errno))?;
        Ok(())
    }

    /// Returns the temporary names beside the file of this number.
    pub(super) fn names(&self, index: usize) -> TemporaryNames {
        let name =
            |end: &str| PathBuf::from(format!(".crucible-edit-{}-{index}.{end}", self.token));
        TemporaryNames {
            swap_file: name("new"),
            old: name("old"),
        }
    }
}

impl JournalEntry {
    /// What it says of its file.
    pub(super) fn claimed(&self) -> ClaimedEdit {
        ClaimedEdit {
            path: self.path.clone(),
            before: self.before,
            after: self.after,
        }
    }

    /// The name of the file in its directory.
    pub(super) fn name(&self) -> &Path {
        Path::new(self.path.file_name())
    }

    /// The directory of the file, from the root on; empty for the root itself.
    pub(super) fn parent(&self) -> &Path {
        Path::new(self.path.as_str())
            .parent()
            .unwrap_or(Path::new(""))
    }
}
