//! The locations of a project's specs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crucible_host::fs::FsError;
use crucible_model::{Digest, RepoPath};

use crate::error::SpecError;
use crate::id::SpecId;
use crate::workspace::WorkspaceFile;

/// The name of Crucible's directory in a project.
pub(crate) const CRUCIBLE: &str = ".crucible";

/// The path of the idea in the spec's directory.
pub const IDEA: &str = "context/idea.md";

/// Whether a path is in a directory of Crucible's own, in any spelling that a file system accepts.
pub(crate) fn is_own(path: &RepoPath) -> bool {
    path.segments().any(|segment| {
        let name = segment
            .split(':')
            .next()
            .unwrap_or_default()
            .trim_end_matches(['.', ' ']);
        name.eq_ignore_ascii_case(CRUCIBLE)
    })
}

/// A project: the directory that holds `.crucible/`.
#[derive(Debug, Clone)]
pub struct SpecProject {
    root: PathBuf,
    /// Shared by all specs of this value, because resolving links reads every directory of the path.
    key: Arc<OnceLock<Digest>>,
}

impl PartialEq for SpecProject {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl Eq for SpecProject {}

impl SpecProject {
    /// The project in exactly this directory.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            key: Arc::default(),
        }
    }

    /// The project that contains `start`: the nearest directory upward with a `.crucible/`. The search
    /// stops at a directory with a `.git`, or with the `workspace.yaml` that [`WorkspaceFile::discover`]
    /// finds, whichever is nearer. If neither exists, the result is the directory with the `.git`, or
    /// else `start` itself.
    #[must_use]
    pub fn find(start: &Path) -> Self {
        let repository = repository_of(start);
        let within =
            |place: &&Path| repository.is_none_or(|repository| place.starts_with(repository));
        let own = start
            .ancestors()
            .take_while(within)
            .find(|place| place.join(CRUCIBLE).is_dir());
        let workspace = WorkspaceFile::discover(start).map(|file| file.project());
        match (own, workspace) {
            (Some(own), Some(workspace)) if own.starts_with(workspace.root()) => Self::at(own),
            (_, Some(workspace)) => workspace,
            (Some(own), None) => Self::at(own),
            (None, None) => Self::at(repository.unwrap_or(start)),
        }
    }

    /// The project's directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The identity of the project outside of it: the digest of its path without links, computed once.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be found.
    pub fn key(&self) -> Result<Digest, SpecError> {
        if let Some(key) = self.key.get() {
            return Ok(*key);
        }
        let root = if self.root.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &self.root
        };
        let path = root.canonicalize().map_err(|source| FsError::Io {
            action: "find",
            path: root.to_owned(),
            source,
        })?;
        let key = Digest::compute(path.as_os_str().as_encoded_bytes());
        Ok(*self.key.get_or_init(|| key))
    }

    /// The directory of the specs: `.crucible/specs`.
    #[must_use]
    pub fn specs(&self) -> PathBuf {
        self.root.join(CRUCIBLE).join("specs")
    }

    /// The directory of this spec.
    #[must_use]
    pub fn spec(&self, spec: &SpecId) -> PathBuf {
        self.specs().join(spec.as_str())
    }
}

/// The repository that contains `start`: the nearest directory upward with a `.git`.
#[must_use]
pub fn repository_of(start: &Path) -> Option<&Path> {
    start.ancestors().find(|place| place.join(".git").exists())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out directories")]
mod tests {
    use super::*;

    #[test]
    fn crucibles_own_directory_is_known_under_any_spelling() {
        for own in [
            ".crucible",
            ".Crucible/config.toml",
            "a/.crucible/x",
            ".crucible. /x",
            ".crucible::$DATA/x",
        ] {
            assert!(
                is_own(&RepoPath::from_bytes(own.as_bytes()).unwrap()),
                "{own}"
            );
        }
        for other in ["crucible/x", ".crucibles", "a.crucible/x", "x"] {
            assert!(!is_own(&other.parse().unwrap()), "{other}");
        }
    }

    #[test]
    fn nearest_marker_upward_determines_the_project() {
        let root = tempfile::tempdir().unwrap();
        let below = root.path().join("repo/sub/deep");
        std::fs::create_dir_all(&below).unwrap();
        let at = |place: &str| SpecProject::at(root.path().join(place));
        assert_eq!(SpecProject::find(&below), SpecProject::at(&below));
        std::fs::create_dir_all(root.path().join(".crucible")).unwrap();
        assert_eq!(SpecProject::find(&below), SpecProject::at(root.path()));
        std::fs::create_dir_all(root.path().join("repo/.git")).unwrap();
        assert_eq!(
            SpecProject::find(&below),
            at("repo"),
            "no further than a .git"
        );
        let file = root.path().join("workspace.yaml");
        for other in ["", "packages:\n- web\n", "version: \"9\"\nname: x\n", "\0"] {
            std::fs::write(&file, other).unwrap();
            assert_eq!(
                SpecProject::find(&below),
                at("repo"),
                "beyond the .git others name a file so"
            );
        }
        std::fs::write(&file, "version: \"1\"\nname: all\nspecs: []\n").unwrap();
        assert_eq!(
            SpecProject::find(&below),
            SpecProject::at(root.path()),
            "a workspace is found to the root"
        );
        std::fs::create_dir_all(root.path().join("repo/.crucible")).unwrap();
        assert_eq!(SpecProject::find(&below), at("repo"), "the nearer one");
        std::fs::write(root.path().join("repo/sub/workspace.yaml"), "").unwrap();
        assert_eq!(
            SpecProject::find(&below),
            at("repo/sub"),
            "the nearer one, and the repository's own counts as it is"
        );
    }
}
