//! Why a configuration is refused.

use std::path::{Path, PathBuf};

use crucible_host::fs::FsError;
use crucible_host::words::WordsError;

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file could not be read.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// A file is not TOML.
    #[error("{origin} is not TOML: {message}")]
    Syntax {
        /// Which file.
        origin: String,
        /// What the parser said.
        message: String,
    },
    /// There is no such key.
    #[error("{origin}: there is no setting `{key}`{}; `crucible config show` lists them", nearest.as_ref().map(|n| format!(", did you mean `{n}`?")).unwrap_or_default())]
    UnknownKey {
        /// Where it was named.
        origin: String,
        /// The unknown dotted key.
        key: String,
        /// The existing key that looks most like it.
        nearest: Option<String>,
    },
    /// A command in a variable cannot be split into words.
    #[error("{origin}: invalid command: {problem}")]
    NotWords {
        /// Where it was set.
        origin: String,
        /// What is wrong with it.
        problem: WordsError,
    },
    /// The value has another type than its default.
    #[error("{origin}: `{key}` takes {expected}")]
    WrongType {
        /// Where it was set.
        origin: String,
        /// The setting's dotted key.
        key: String,
        /// What it takes.
        expected: &'static str,
    },
    /// A project's file sets what only the user may.
    #[error(
        "{origin}: a project's file cannot set `{key}`, because it may be untrusted; set it in your own {} or with {variable}",
        display_file(user_file)
    )]
    NotForProjects {
        /// The project's file.
        origin: String,
        /// The setting's dotted key.
        key: String,
        /// Where the user can set it.
        user_file: PathBuf,
        /// The variable that sets it.
        variable: String,
    },
    /// A project's file loosens a limit.
    #[error(
        "{origin}: a project's file may lower `{key}`, not raise it; it is {limit}; set it in your own {} or with {variable}",
        display_file(user_file)
    )]
    OnlyLower {
        /// The project's file.
        origin: String,
        /// The setting's dotted key.
        key: String,
        /// The limit that holds without the project's file.
        limit: String,
        /// Where the user can set it.
        user_file: PathBuf,
        /// The variable that sets it.
        variable: String,
    },
}

/// The user's own file, for people.
pub(crate) fn display_file(user_file: &Path) -> String {
    if user_file.as_os_str().is_empty() {
        "configuration (set HOME: without it, no such file exists)".to_owned()
    } else {
        user_file.display().to_string()
    }
}
