//! The librarian: shows files of the repository, verbatim, within the budget; local and deterministic.

use std::fs;
use std::path::PathBuf;

use crucible_host::fs::read_prefix;
use crucible_model::{ByteLimit, RepoPath};
use crucible_pack::{Entry, Source, SourceError};
use crucible_secrets::Scanner;

/// A repository's work tree as the pack reads it.
pub(crate) struct WorkTree {
    root: PathBuf,
    real_root: PathBuf,
}

impl WorkTree {
    pub(crate) fn new(root: PathBuf) -> Self {
        let real_root = fs::canonicalize(&root).unwrap_or_else(|_| root.clone());
        Self { root, real_root }
    }
}

impl Source for WorkTree {
    fn entry(&self, path: &RepoPath) -> Entry {
        let mut here = self.root.clone();
        let mut linked = false;
        for segment in path.segments() {
            here.push(segment);
            match fs::symlink_metadata(&here) {
                Err(_) if !linked => return Entry::Missing,
                Ok(meta) => linked |= meta.file_type().is_symlink(),
                Err(_) => {}
            }
        }
        let Ok(real) = fs::canonicalize(&here) else {
            return Entry::LeavesRepository;
        };
        let Ok(meta) = fs::metadata(&real) else {
            return Entry::Missing;
        };
        let size = meta.len();
        if !linked {
            return if meta.is_file() { Entry::File { size } } else { Entry::NotAFile };
        }
        let inside = real.strip_prefix(&self.real_root).ok().and_then(|rest| rest.to_str());
        match inside.map(str::parse::<RepoPath>) {
            Some(Ok(to)) if meta.is_file() => Entry::Linked { to, size },
            Some(Ok(_)) => Entry::NotAFile,
            Some(Err(_)) | None => Entry::LeavesRepository,
        }
    }

    fn read(&self, path: &RepoPath, max: u64) -> Result<Vec<u8>, SourceError> {
        read_prefix(&self.root.join(path), ByteLimit(max))
            .map(|prefix| prefix.bytes)
            .map_err(|error| SourceError { path: path.clone(), problem: error.to_string() })
    }

    fn is_secret(&self, path: &RepoPath, content: &[u8]) -> Option<String> {
        if crucible_secrets::is_secret_file(path.as_str()) {
            return Some("secret-file".to_owned());
        }
        Scanner::builtin().scan(content).first().map(|found| found.rule.to_string())
    }
}
