//! A repository's work tree as a pack reads it.

use std::path::Path;

use crucible_model::{ByteLimit, RepoPath};
use crucible_pack::{Entry, Source, SourceError};
use crucible_repo::{PathState, RepoError, TreeReader};
use crucible_secrets::{Scanner, is_secret_file};

/// The files below the top directory of a repository.
pub(crate) struct WorkTree {
    reader: Result<TreeReader, String>,
}

impl WorkTree {
    pub(crate) fn new(root: impl AsRef<Path>) -> Self {
        Self {
            reader: TreeReader::open(root.as_ref()).map_err(|error| without_path(&error)),
        }
    }
}

impl Source for WorkTree {
    fn entry(&self, path: &RepoPath) -> Entry {
        match self.reader.as_ref().map(|reader| reader.state(path)) {
            Ok(PathState::File { size }) => Entry::File { size },
            Ok(PathState::ViaLink { through, to, size }) => Entry::Linked { through, to, size },
            Ok(PathState::Missing) => Entry::Missing,
            Ok(PathState::NotAFile) => Entry::NotAFile,
            Ok(PathState::Outside) => Entry::LeavesRepository,
            Ok(PathState::LinkLoop) => Entry::LinkCycle,
            Ok(PathState::DanglingLink) => Entry::LinkToNothing,
            Ok(PathState::Unreadable { problem }) => Entry::Unreadable { problem },
            Err(problem) => Entry::Unreadable {
                problem: problem.clone(),
            },
        }
    }

    fn read(&self, path: &RepoPath, max: u64) -> Result<Vec<u8>, SourceError> {
        let fail = |problem| SourceError {
            path: path.clone(),
            problem,
        };
        let reader = self
            .reader
            .as_ref()
            .map_err(|problem| fail(problem.clone()))?;
        let mut bytes = Vec::new();
        match reader.read_prefix(path, ByteLimit(max), &mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(fail(without_path(&error))),
        }
    }

    fn is_secret(&self, path: &RepoPath, content: &[u8]) -> Option<String> {
        if is_secret_file(path.as_str()) {
            return Some("secret-file".to_owned());
        }
        Scanner::builtin()
            .first_in_file(content)
            .map(ToString::to_string)
    }
}

/// Formats the error without the checkout's location, so that a pack is the same at every location.
fn without_path(error: &RepoError) -> String {
    match error {
        RepoError::Io { source, .. } => source.to_string(),
        _ => "it cannot be opened".to_owned(),
    }
}
