//! What git makes of a file's bytes when it checks them out.
//!
//! `.gitattributes`, `.git/info/attributes` and two settings say that the work tree holds other bytes than the
//! repository: other line ends, an expanded `$Id$`, another encoding, or whatever a filter makes of them. What is
//! tried must be what lies in the work tree after landing. So line ends and `$Id$` are turned by git itself for the
//! trial, as it turns them for the landing; a filter (a command that nobody here runs) and another encoding (text
//! that nobody here has read) are refused, for the paths that a patch touches.
//!
//! What always holds: an attribute that could apply is never overlooked because of where it stands. Where none can,
//! git is not even asked.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crucible_host::fs::read_up_to;
use crucible_model::ByteLimit;
use crucible_patch::FileMode;

use crate::error::RepoError;
use crate::git::{Call, Git, as_path};
use crate::tree::{MAX_TOUCHED, TemporaryIndex, TreeChange};

/// The attributes that change bytes. The first two are refused.
const ATTRIBUTES: [&str; 6] = [
    "filter",
    "working-tree-encoding",
    "text",
    "eol",
    "crlf",
    "ident",
];

/// How many of [`ATTRIBUTES`] are refused.
const REFUSED: usize = 2;

/// How the work tree differs from the tree, for the paths of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CheckoutConversion {
    /// The contents of the files that git checks out with other bytes than the repository holds.
    pub(crate) contents: BTreeMap<PathBuf, Vec<u8>>,
    /// Paths with unpredictable bytes, and the attribute that causes it.
    pub(crate) refused: BTreeMap<PathBuf, String>,
}

impl Git {
    /// What the files of `changes` are in the work tree after a landing. The index of `aside` has them.
    pub(crate) async fn checked_out(
        &self,
        changes: &[TreeChange],
        temporary_index: &TemporaryIndex,
    ) -> Result<CheckoutConversion, RepoError> {
        let mut found = CheckoutConversion::default();
        let files = files_of(changes);
        if !self.has_attributes(&files) {
            return Ok(found);
        }
        let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
        let words = ["check-attr", "-z", "--stdin"]
            .into_iter()
            .chain(ATTRIBUTES);
        let output = self
            .run_ok(
                Call::new(words)
                    .reading(ended_by_nul(&paths))
                    .with_envs(&temporary_index.env),
            )
            .await?;
        let mut converted = self.converts();
        // `path NUL attribute NUL value NUL`, again and again; a value may be empty.
        let fields: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
        for entry in fields.chunks_exact(3) {
            let [path, attribute, value] = entry else {
                continue;
            };
            if matches!(*value, b"unspecified" | b"unset") {
                continue;
            }
            let is_refused = ATTRIBUTES[..REFUSED]
                .iter()
                .any(|name| name.as_bytes() == *attribute);
            if is_refused {
                let setting = format!(
                    "{}={}",
                    String::from_utf8_lossy(attribute),
                    String::from_utf8_lossy(value)
                );
                found.refused.entry(as_path(path)).or_insert(setting);
            }
            converted = true;
        }
        if fields.len() != files.len() * ATTRIBUTES.len() * 3 + 1 {
            return Err(output.unreadable());
        }
        if !converted {
            return Ok(found);
        }
        let accepted = files
            .into_iter()
            .filter(|file| !found.refused.contains_key(&file.path));
        found.contents = self
            .convert(
                accepted.map(|file| file.path.clone()).collect(),
                temporary_index,
            )
            .await?;
        Ok(found)
    }

    /// The bytes of the files as git checks them out: it does so, into a directory of ours.
    pub(crate) async fn convert(
        &self,
        paths: Vec<PathBuf>,
        temporary_index: &TemporaryIndex,
    ) -> Result<BTreeMap<PathBuf, Vec<u8>>, RepoError> {
        let mut contents = BTreeMap::new();
        if paths.is_empty() {
            return Ok(contents);
        }
        let checkout = temporary_index.dir.path().join("checked-out");
        let mut prefix = OsString::from("--prefix=");
        prefix.push(checkout.join(""));
        let words = ["checkout-index", "--quiet", "-z", "--stdin"].map(OsString::from);
        let call = Call::new(words.into_iter().chain([prefix]));
        self.run_ok(
            call.reading(ended_by_nul(&paths))
                .with_envs(&temporary_index.env),
        )
        .await?;
        let mut left = MAX_TOUCHED.0;
        for path in paths {
            let bytes = read_up_to(&checkout.join(&path), ByteLimit(left))?;
            left = left.saturating_sub(bytes.len() as u64);
            contents.insert(path, bytes);
        }
        Ok(contents)
    }

    /// Returns whether files of `changes` may have other bytes in the work tree than in the repository. Only
    /// the places of settings are examined.
    pub(crate) fn may_convert(&self, changes: &[TreeChange]) -> bool {
        self.has_attributes(&files_of(changes))
    }

    /// Returns whether any attribute or setting could apply to these files. Only the places of the files are
    /// examined.
    fn has_attributes(&self, files: &[&TreeChange]) -> bool {
        let exists = |path: PathBuf| path.symlink_metadata().is_ok();
        let in_directories = || {
            let directories = files.iter().flat_map(|file| file.path.ancestors().skip(1));
            let distinct: BTreeSet<&Path> = directories.collect();
            distinct
                .into_iter()
                .any(|directory| exists(self.top().join(directory).join(".gitattributes")))
        };
        self.converts() || exists(self.info_attributes()) || in_directories()
    }
}

/// The changes after which there is a file.
fn files_of(changes: &[TreeChange]) -> Vec<&TreeChange> {
    let is_file = |change: &&TreeChange| {
        matches!(
            change.new_mode,
            Some(FileMode::Regular | FileMode::Executable)
        )
    };
    changes.iter().filter(is_file).collect()
}

fn ended_by_nul(paths: &[PathBuf]) -> Vec<u8> {
    paths
        .iter()
        .flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat())
        .collect()
}
