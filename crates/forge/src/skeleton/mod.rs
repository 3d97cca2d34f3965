//! The Python package that `crucible skill init` lays down: a base class, one example skill with its test, and the
//! settings of the tools.
//!
//! What always holds: a file that is there keeps its content, whatever it is; of those that are missing all are
//! written, or none.

use std::path::Path;

use crucible_host::fs::FsError;
use crucible_host::lock::LockError;
use crucible_model::{Digest, RepoPath, RepoPathError};
use crucible_repo::{
    EditClaim, EditJournal, NewFile, TreeEdit, TreeEditError, edit_tree, recover_tree_edit,
};

use crate::paths::PackageName;
use crate::project::{ForgeProject, POLICY_FILE};

/// The settings of the tools, and what tells Python of the package.
const SETTINGS: &str = "pyproject.toml";
/// What stands for the package's name in the texts.
const PLACEHOLDER: &str = "PACKAGE";
/// The base class, as every skill is run with it.
pub(crate) const BASE_CLASS: &str = include_str!("files/base.py");

/// A skill as an example.
pub(crate) const EXAMPLE_TEXT: &str = include_str!("files/word_count.py");
pub(crate) const EXAMPLE_TEST_TEXT: &str = include_str!("files/test_word_count.py");

/// One of these texts for this package.
pub(crate) fn of_package(text: &str, package: &PackageName) -> String {
    text.replace(PLACEHOLDER, package.as_str())
}

/// What `init` lays down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skeleton {
    files: Vec<(RepoPath, String)>,
}

/// The result of writing a skeleton.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenSkeleton {
    /// The files that were written, in their order.
    pub written: Vec<RepoPath>,
    /// Those that were there already and stayed as they are.
    pub existing: Vec<RepoPath>,
    /// Settings for a `pyproject.toml` that is not of this program.
    pub settings_to_add: Option<String>,
}

/// Why nothing was laid down.
#[derive(Debug, thiserror::Error)]
pub enum SkeletonError {
    /// A file cannot be written as it has to be.
    #[error(transparent)]
    Edit(#[from] TreeEditError),
    /// The directory of the forge cannot be made.
    #[error(transparent)]
    Own(#[from] LockError),
    /// A name makes no path.
    #[error(transparent)]
    Path(#[from] RepoPathError),
    /// What is there cannot be looked at.
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl Skeleton {
    /// The files for this package.
    ///
    /// # Errors
    ///
    /// Never in practice: the package's name is a plain path component.
    pub fn from_package(package: &PackageName) -> Result<Self, RepoPathError> {
        let texts = [
            (SETTINGS.to_owned(), include_str!("files/pyproject.toml")),
            (
                format!("src/{package}/__init__.py"),
                include_str!("files/package.py"),
            ),
            (format!("src/{package}/py.typed"), ""),
            (
                format!("src/{package}/skills/__init__.py"),
                include_str!("files/skills.py"),
            ),
            (format!("src/{package}/skills/base.py"), BASE_CLASS),
            (format!("src/{package}/skills/word_count.py"), EXAMPLE_TEXT),
            (
                "tests/test_skill_word_count.py".to_owned(),
                EXAMPLE_TEST_TEXT,
            ),
            (POLICY_FILE.to_owned(), include_str!("files/policy.yaml")),
        ];
        let named = |(path, text): (String, &str)| {
            path.parse()
                .map(|path: RepoPath| (path, of_package(text, package)))
        };
        Ok(Self {
            files: texts.into_iter().map(named).collect::<Result<_, _>>()?,
        })
    }

    /// Writes those files that are missing: all of them, or none. `home` is Crucible's own directory.
    ///
    /// # Errors
    ///
    /// [`SkeletonError`], after which the project is as it was.
    pub fn write(
        &self,
        project: &ForgeProject,
        home: &Path,
    ) -> Result<WrittenSkeleton, SkeletonError> {
        let path = project
            .own_directory(home)?
            .join(format!("{}-init.json", project.key()));
        let ours = |claimed: &EditClaim| {
            claimed.edits.iter().all(|edit| {
                edit.before.is_none() && self.files.iter().any(|(path, _)| *path == edit.path)
            })
        };
        let journal = EditJournal {
            path: &path,
            purpose: Digest::compute(b"crucible skill init"),
            agrees: &ours,
        };
        // What a killed process left is finished or taken back before anybody looks at what is there.
        recover_tree_edit(project.root(), &journal)?;
        let mut skeleton = WrittenSkeleton {
            written: Vec::new(),
            existing: Vec::new(),
            settings_to_add: None,
        };
        let mut edits = Vec::new();
        for (path, text) in &self.files {
            let place = project.root().join(path.as_str());
            match place.symlink_metadata() {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    edits.push(TreeEdit {
                        path: path.clone(),
                        before: None,
                        after: Some(text.clone().into_bytes()),
                        new_file: NewFile::Plain,
                    });
                    skeleton.written.push(path.clone());
                }
                Err(source) => {
                    return Err(FsError::Io {
                        action: "look at",
                        path: place,
                        source,
                    }
                    .into());
                }
                Ok(_) => skeleton.existing.push(path.clone()),
            }
        }
        edit_tree(project.root(), &edits, &journal)?;
        skeleton.settings_to_add = skeleton
            .existing
            .iter()
            .any(|path| path.as_str() == SETTINGS && !skeleton.written.is_empty())
            .then(|| self.settings_of_tools());
        Ok(skeleton)
    }

    /// The settings of the tools alone, for a project that has its own `pyproject.toml`.
    fn settings_of_tools(&self) -> String {
        let all = self
            .files
            .iter()
            .find(|(path, _)| path.as_str() == SETTINGS)
            .map_or("", |(_, text)| text);
        let begin = all.find("[tool.ruff]").unwrap_or(0);
        all.get(begin..).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests;
