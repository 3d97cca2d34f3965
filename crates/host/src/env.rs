//! The process environment, captured once and handed on as a value.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The environment variables and the working directory a command began with.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    working_directory: PathBuf,
}

impl Environment {
    /// Captures the environment of this process. Called once, by `cli`.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
    pub fn capture() -> Self {
        Self {
            variables: std::env::vars_os().collect(),
            working_directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        }
    }

    /// An environment of exactly these variables, in this working directory.
    pub fn from_pairs<K, V>(
        pairs: impl IntoIterator<Item = (K, V)>,
        working_directory: impl Into<PathBuf>,
    ) -> Self
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let variables = pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, working_directory: working_directory.into() }
    }

    /// A variable, where it is set and UTF-8.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_os(name)?.to_str()
    }

    /// A variable, where it is set.
    #[must_use]
    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Every variable, by name.
    pub fn pairs(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The working directory the command began in.
    #[must_use]
    pub fn working_directory(&self) -> &Path {
        &self.working_directory
    }

    /// The user's home directory, where one is set.
    #[must_use]
    pub fn home(&self) -> Option<PathBuf> {
        self.get_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
    }

    /// Where temporary files go: `TMPDIR` where it is an absolute path, else `/tmp`.
    #[must_use]
    pub fn temporary_directory(&self) -> PathBuf {
        let named = self.get_os("TMPDIR").map(PathBuf::from).filter(|directory| directory.is_absolute());
        named.unwrap_or_else(|| PathBuf::from("/tmp"))
    }

    /// The absolute directories of `PATH`; relative entries would follow the working directory and are left out.
    #[must_use]
    pub fn path_dirs(&self) -> Vec<PathBuf> {
        let path = self.get_os("PATH").unwrap_or_default();
        std::env::split_paths(path).filter(|dir| dir.is_absolute()).collect()
    }

    /// The first executable file of this name on `PATH`; a name with a `/` is looked up as it is.
    #[must_use]
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        let is_program = |path: &PathBuf| {
            path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        };
        if name.contains('/') {
            return Some(self.working_directory.join(name)).filter(is_program);
        }
        self.path_dirs().into_iter().map(|dir| dir.join(name)).find(is_program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_directory_is_absolute() {
        for (named, used) in [("/var/tmp", "/var/tmp"), ("relative", "/tmp"), ("", "/tmp")] {
            let env = Environment::from_pairs([("TMPDIR", named)], "/");
            assert_eq!(env.temporary_directory(), Path::new(used));
        }
        assert_eq!(Environment::default().temporary_directory(), Path::new("/tmp"));
    }
}
