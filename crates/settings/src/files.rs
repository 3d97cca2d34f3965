//! The files of a configuration: where they are, and how they are read.

use std::path::{Path, PathBuf};

use crucible_host::env::Environment;
use crucible_host::fs::{FsError, read_beneath};
use crucible_model::ByteLimit;

/// Where a project has its settings.
pub(crate) const PROJECT_FILE: &str = ".crucible/config.toml";
/// Configuration files are small; anything larger is a mistake or an attack.
pub(crate) const MAX_FILE: ByteLimit = ByteLimit(1024 * 1024);

/// The files a configuration is made of, beside its defaults.
#[derive(Debug, Clone, Default)]
pub struct ConfigFiles {
    /// `.crucible/config.toml` of the project.
    pub project: Option<PathBuf>,
    /// The user's own file; used where it exists. Empty where the user has no home.
    pub user: PathBuf,
    /// Further files of the user, each above the environment and the files before it; below flags.
    pub over: Vec<PathBuf>,
}

impl ConfigFiles {
    /// Looks for the project's file from `start` upward, to the directory that holds a `.git` or to the root.
    #[must_use]
    pub fn discover(env: &Environment, start: &Path) -> Self {
        let mut project = None;
        for dir in start.ancestors() {
            let candidate = dir.join(PROJECT_FILE);
            if exists(&candidate) {
                project = Some(candidate);
                break;
            }
            if dir.join(".git").exists() {
                break;
            }
        }
        let base = env
            .get("XDG_CONFIG_HOME")
            .filter(|dir| dir.starts_with('/'))
            .map(PathBuf::from);
        let base = base.or_else(|| env.home().map(|home| home.join(".config")));
        // Without a home there is no such file: a name in the working directory would be the project's.
        let user = base
            .map(|base| base.join("crucible/config.toml"))
            .unwrap_or_default();
        Self {
            project,
            user,
            over: Vec::new(),
        }
    }
}

/// Whether anything has this name, be it what it may: what cannot be read, or is not a regular file, is reported when it is read, and
/// never taken for settings that nobody made.
pub(crate) fn exists(path: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), NotFound | NotADirectory),
    }
}

/// Reads a project's file. No link is followed there: it would have a cloned repository choose a file of the user's, whose lines an error
/// quotes.
pub(crate) fn read_of_project(path: &Path) -> Result<Vec<u8>, FsError> {
    let place = if path.ends_with(PROJECT_FILE) {
        PROJECT_FILE
    } else {
        ""
    };
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let root = path
        .ancestors()
        .nth(if place.is_empty() { 1 } else { 2 })
        .unwrap_or(path);
    read_beneath(root, if place.is_empty() { name } else { place }, MAX_FILE)
}
