//! Which files differ between two commits, and the links of one.

use std::collections::BTreeSet;

use crucible_model::ByteLimit;
use crucible_patch::FileMode;

use super::{CommitReader, ReadObject, empty_tree};
use crate::error::RepoError;
use crate::git::Call;
use crate::git::store::ObjectKind;
use crate::oid::Oid;
use crate::patch_index::parse_entry;

/// The longest target of a link that is read.
const MAX_LINK: ByteLimit = ByteLimit(4096);

impl CommitReader {
    /// Returns the files that differ between `older` and `newer`, also those that one of them does not have. Without `older`,
    /// all files of `newer`.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn changed_files(
        &self,
        older: Option<&Oid>,
        newer: &Oid,
    ) -> Result<BTreeSet<String>, RepoError> {
        let words = [
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-renames",
            "--end-of-options",
            older.map_or(empty_tree(newer), Oid::as_str),
            newer.as_str(),
        ];
        let output = self.ok(Call::new(words)).await?;
        let names = output.records();
        Ok(names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect())
    }

    /// Returns the symbolic links of a commit: the path of each, and what it leads to.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn links(&self, commit: &Oid) -> Result<Vec<(String, String)>, RepoError> {
        let words = ["ls-tree", "-r", "-z", "--full-tree", commit.as_str()];
        let output = self.ok(Call::new(words)).await?;
        let (mut paths, mut blobs) = (Vec::new(), Vec::new());
        for record in output.records() {
            let (path, entry) = parse_entry(record).ok_or_else(|| output.unreadable())?;
            if let Some((FileMode::Symlink, blob)) = entry {
                paths.push(path.to_string_lossy().into_owned());
                blobs.push(blob);
            }
        }
        let read = self
            .read_objects(&blobs, ObjectKind::Blob, MAX_LINK)
            .await?;
        let target = |object| match object {
            ReadObject::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            ReadObject::Missing | ReadObject::TooLarge => String::new(),
        };
        Ok(paths
            .into_iter()
            .zip(read.into_iter().map(target))
            .collect())
    }
}
