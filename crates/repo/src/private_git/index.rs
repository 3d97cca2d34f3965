//! The index of a private git directory: the files of the commit, and how they lie in the copy.
//!
//! How it works: a file of the copy that holds the bytes and the mode of the commit is noted with its times and size, so git need not read
//! it again. A file that is not there is entered without them, and git tells that it is missing.
//!
//! What always holds: nothing is noted of a file that was not compared byte for byte. Line ends that attributes change are git's to
//! compare.

use std::fs::{read_link, symlink_metadata};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crucible_host::fs;
use crucible_model::ByteLimit;
use crucible_patch::FileMode;

use crate::error::RepoError;
use crate::git::store::{has_name, oid_from};
use crate::git::unchanged::has_mode;
use crate::git::{Git, as_path};
use crate::index_file::{self, Stat};
use crate::oid::Oid;

/// The largest file that is compared here.
const MAX_FILE: ByteLimit = ByteLimit(32 << 20);

/// A file of the commit.
pub(super) type Entry = (PathBuf, FileMode, Oid);

/// Whether the index has metadata for every file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexMetadata {
    /// It does, but for files that are not there.
    All,
    /// git has to compare some.
    Some,
}

impl Git {
    /// Returns the files of a commit; `None` if git has to be asked.
    pub(super) async fn entries_of(&self, commit: &Oid) -> Result<Option<Vec<Entry>>, RepoError> {
        let commit = commit.clone();
        let read = self.read(&[], move |reader| {
            let mut entries = Vec::new();
            let tree = reader.tree_of_commit(&commit)?;
            reader.each_file(&tree, |path, mode, id| {
                entries.extend(oid_from(id).map(|id| (as_path(path), mode, id)));
                ControlFlow::Continue(())
            })?;
            Ok(entries)
        });
        read.await
    }
}

/// Writes the index of `copy`, which has its own git directory.
pub(super) fn write(copy: &Path, entries: &[Entry]) -> Result<IndexMetadata, RepoError> {
    let mut index_metadata = IndexMetadata::All;
    let written = entries.iter().map(|(path, mode, oid)| {
        let stat = look(&copy.join(path), *mode, oid).unwrap_or_else(|| {
            index_metadata = IndexMetadata::Some;
            Stat::default()
        });
        (path.as_path(), *mode, oid, stat)
    });
    let bytes = index_file::bytes(written);
    fs::write_unflushed(&copy.join(".git/index"), &bytes, 0o644)?;
    Ok(index_metadata)
}

/// Returns the metadata of a file; `None` if git has to compare it.
fn look(place: &Path, mode: FileMode, oid: &Oid) -> Option<Stat> {
    let Ok(meta) = symlink_metadata(place) else {
        return Some(Stat::default());
    };
    let content = match mode {
        // Its own directory tells git its commit.
        FileMode::Gitlink => return meta.is_dir().then(Stat::default),
        _ if !has_mode(mode, &meta) => return None,
        FileMode::Symlink => read_link(place).ok()?.into_os_string().into_vec(),
        FileMode::Regular | FileMode::Executable => fs::read_regular_up_to(place, MAX_FILE).ok()?,
    };
    has_name(oid, b"blob", &content).then(|| Stat::from_metadata(&meta))
}
