//! Why an evaluation could not go on. What becomes of one task is an outcome, not an error.

use std::path::PathBuf;

use crucible_model::CanonicalError;

/// Why an evaluation, a validation or an import ended early.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The file system refused.
    #[error(transparent)]
    Fs(#[from] crucible_host::fs::FsError),
    /// A repository cannot be created or read.
    #[error(transparent)]
    Repo(#[from] crucible_repo::RepoError),
    /// A value has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// The directory holds no task.
    #[error("no task in {}; a task is a directory with a task.toml", directory.display())]
    NoTasks {
        /// Where tasks were looked for.
        directory: PathBuf,
    },
    /// The folder of tasks cannot be listed.
    #[error("cannot list {}: {problem}", directory.display())]
    Directory {
        /// The folder.
        directory: PathBuf,
        /// What is wrong with it.
        problem: std::io::Error,
    },
    /// No task has this name.
    #[error("no task {name:?} in {}", directory.display())]
    NoSuchTask {
        /// The name that was asked for.
        name: String,
        /// Where tasks were looked for.
        directory: PathBuf,
    },
    /// A task cannot be used.
    #[error("task {name:?}: {problem}")]
    Task {
        /// Its directory's name.
        name: String,
        /// What is wrong with it.
        problem: crate::task::TaskProblem,
    },
    /// A document of an earlier evaluation cannot be read.
    #[error("invalid evaluation result {}: {problem}; remove it to run the task again", path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A line of an imported file is invalid.
    #[error("{} line {line}: {problem}", path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}
