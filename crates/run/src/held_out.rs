//! Held-out tests: files of a person outside of the repository, which no proposer sees.
//!
//! A run keeps their paths and digests. Their content is read at its landing, written into a copy, and run there. It is in no
//! pack, prompt, log or copy before, and gates and agents cannot read the files where they are.

use std::path::{Path, PathBuf};

use crucible_host::fs::read_regular_up_to;
use crucible_model::{ByteLimit, Digest, RepoPath};
use serde::{Deserialize, Serialize};

/// The largest held-out file.
pub(crate) const MAX_FILE: ByteLimit = ByteLimit(1 << 20);
/// The most held-out files.
const MAX_FILES: usize = 500;
/// How deep a directory is entered.
const MAX_DEPTH: usize = 12;

/// The held-out files of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldOut {
    /// The files and directories that the operator named.
    pub places: Vec<PathBuf>,
    /// Every file.
    pub files: Vec<HeldOutFile>,
}

/// One held-out file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldOutFile {
    /// Where it is.
    pub from: PathBuf,
    /// Where it belongs in the repository.
    pub at: RepoPath,
    /// The digest of its content.
    pub digest: Digest,
}

/// Why held-out files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HeldOutError {
    /// It is part of the repository, where models can read it.
    #[error("{path} is inside the repository, where a model can read it; move it out")]
    Inside {
        /// The path.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read {path}: {why}")]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// There are too many files, or none.
    #[error("{path} contains {count} files; 1 to {MAX_FILES} are allowed")]
    Count {
        /// The path.
        path: PathBuf,
        /// How many.
        count: usize,
    },
}

impl HeldOut {
    /// Returns whether the run has no held-out file.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.files.is_empty()
    }

    /// Reads the files at these absolute paths. A file of a directory belongs at its path in that directory, a single file at the
    /// top of the repository.
    ///
    /// # Errors
    ///
    /// Fails if a path is inside the repository at `top`, cannot be read, or contains no file or too many.
    pub fn read(places: &[PathBuf], top: &Path) -> Result<Self, HeldOutError> {
        let unreadable = |path: &Path, why: &dyn ToString| HeldOutError::Unreadable {
            path: path.to_owned(),
            why: why.to_string(),
        };
        let real_top = std::fs::canonicalize(top).unwrap_or_else(|_| top.to_owned());
        let mut held_out = Self::default();
        for place in places {
            let real = std::fs::canonicalize(place).map_err(|error| unreadable(place, &error))?;
            if real.starts_with(&real_top) || real_top.starts_with(&real) {
                return Err(HeldOutError::Inside {
                    path: place.clone(),
                });
            }
            let mut found = Vec::new();
            if real.is_dir() {
                list(&real, 0, &mut found);
            } else {
                found.push(real.clone());
            }
            let root = if real.is_dir() {
                Some(real.as_path())
            } else {
                real.parent()
            };
            let count = held_out.files.len() + found.len();
            if found.is_empty() || count > MAX_FILES {
                return Err(HeldOutError::Count {
                    path: place.clone(),
                    count,
                });
            }
            for from in found {
                let at = root.and_then(|root| from.strip_prefix(root).ok()?.to_str());
                let at = at.and_then(|at| at.parse::<RepoPath>().ok());
                let at = at.ok_or_else(|| {
                    unreadable(&from, &"its name cannot be a path of a repository")
                })?;
                let bytes = read_regular_up_to(&from, MAX_FILE)
                    .map_err(|error| unreadable(&from, &error))?;
                let digest = Digest::compute(&bytes);
                held_out.files.push(HeldOutFile { from, at, digest });
            }
            held_out.places.push(real);
        }
        held_out.files.sort_by(|a, b| a.at.cmp(&b.at));
        Ok(held_out)
    }
}

/// Lists the regular files of a directory, without following links; hidden ones are left out.
fn list(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let is_hidden = name.to_string_lossy().starts_with('.') || name == "__pycache__";
        match entry.file_type() {
            Ok(kind) if is_hidden || kind.is_symlink() || found.len() > MAX_FILES => {}
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => list(&entry.path(), depth + 1, found),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            Ok(_) | Err(_) => {}
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out directories")]
mod tests {
    use super::*;

    #[test]
    fn held_out_files_are_outside_and_keep_their_place() {
        let temp_dir = tempfile::tempdir().unwrap();
        let (repo, held) = (temp_dir.path().join("repo"), temp_dir.path().join("held"));
        std::fs::create_dir_all(repo.join("tests")).unwrap();
        std::fs::create_dir_all(held.join("tests")).unwrap();
        std::fs::write(repo.join("tests/test_in.py"), "").unwrap();
        std::fs::write(held.join("tests/test_a.py"), "x").unwrap();
        std::fs::write(held.join(".hidden"), "x").unwrap();
        std::os::unix::fs::symlink(repo.join("tests"), held.join("link")).unwrap();
        let read = |place: &Path| HeldOut::read(&[place.to_owned()], &repo);
        let found = read(&held).unwrap();
        let places: Vec<&str> = found.files.iter().map(|file| file.at.as_str()).collect();
        assert_eq!(places, ["tests/test_a.py"]);
        let one = read(&held.join("tests/test_a.py")).unwrap();
        assert_eq!(one.files[0].at.as_str(), "test_a.py");
        for inside in [
            repo.join("tests"),
            held.join("link"),
            temp_dir.path().to_owned(),
        ] {
            assert!(
                matches!(read(&inside), Err(HeldOutError::Inside { .. })),
                "{inside:?}"
            );
        }
        assert!(matches!(
            read(&held.join("none")),
            Err(HeldOutError::Unreadable { .. })
        ));
    }
}
