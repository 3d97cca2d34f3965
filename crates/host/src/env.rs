//! The process environment, captured once and handed on as a value.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crucible_model::Failure;
use rustix::fs::{Access, access};

/// The environment variables and the working directory a command began with.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    working_directory: PathBuf,
}

impl Environment {
    /// Captures the environment of this process. Called once, by `cli`.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the environment"
    )]
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
        let variables = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        Self {
            variables,
            working_directory: working_directory.into(),
        }
    }

    /// A variable, where it is set and UTF-8.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_os(name)?.to_str()
    }

    /// A variable, where it is set.
    #[must_use]
    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// Every variable, by name.
    pub fn pairs(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The working directory the command began in.
    #[must_use]
    pub fn working_directory(&self) -> &Path {
        &self.working_directory
    }

    /// The user's home directory, where an absolute one is set: a relative one would follow the working directory, which may be
    /// a foreign project.
    #[must_use]
    pub fn home(&self) -> Option<PathBuf> {
        self.get_os("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute())
    }

    /// A text that names the user's home by `~`: for what is written down, where nobody needs to know who the user is.
    #[must_use]
    pub fn without_home(&self, text: &str) -> String {
        let home = self.home();
        match home
            .as_deref()
            .and_then(Path::to_str)
            .map(|home| home.trim_end_matches('/'))
        {
            Some(home) if !home.is_empty() => text.replace(home, "~"),
            Some(_) | None => text.to_owned(),
        }
    }

    /// Crucible's own directory, which holds the ledger and the runs: `CRUCIBLE_HOME`, else `crucible` in
    /// `XDG_DATA_HOME`, else `~/.local/share/crucible`.
    ///
    /// # Errors
    ///
    /// [`HomeError`] when `CRUCIBLE_HOME` is relative, or `HOME` where it is needed, or nothing names a directory.
    pub fn crucible_home(&self) -> Result<PathBuf, HomeError> {
        let set = |name: &str| {
            self.get_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        match set("CRUCIBLE_HOME") {
            Some(home) if home.is_absolute() => return Ok(home),
            Some(_) => {
                return Err(HomeError::Relative {
                    variable: "CRUCIBLE_HOME",
                });
            }
            None => {}
        }
        let data = set("XDG_DATA_HOME").filter(|data| data.is_absolute());
        match data.or_else(|| Some(self.home()?.join(".local/share"))) {
            Some(data) => Ok(data.join("crucible")),
            None if set("HOME").is_some() => Err(HomeError::Relative { variable: "HOME" }),
            None => Err(HomeError::NotSet),
        }
    }

    /// Returns [`Environment::crucible_home`] if it can be used: its path is UTF-8, and it is a directory or does not exist.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be used.
    pub fn usable_home(&self) -> Result<PathBuf, Failure> {
        let refuse = |message: String| Err(Failure::usage(message).hint(HomeError::HINT));
        let home = match self.crucible_home() {
            Ok(home) => home,
            Err(error) => return refuse(error.to_string()),
        };
        let display = home.display();
        if home.to_str().is_none() {
            return refuse(format!(
                "the path of Crucible's own directory is not UTF-8: {display}"
            ));
        }
        if home.symlink_metadata().is_ok() && !home.is_dir() {
            return refuse(format!(
                "{display}, Crucible's own directory, is not a directory"
            ));
        }
        Ok(home)
    }

    /// Where temporary files go: `TMPDIR` where it is an absolute path, else `/tmp`.
    #[must_use]
    pub fn temporary_directory(&self) -> PathBuf {
        let named = self
            .get_os("TMPDIR")
            .map(PathBuf::from)
            .filter(|directory| directory.is_absolute());
        named.unwrap_or_else(|| PathBuf::from("/tmp"))
    }

    /// The absolute directories of `PATH`; relative entries would follow the working directory and are left out.
    #[must_use]
    pub fn path_dirs(&self) -> Vec<PathBuf> {
        path_dirs(self.get_os("PATH").unwrap_or_default())
    }

    /// The executable file that a program's name or path means here: see [`find_program`].
    ///
    /// # Errors
    ///
    /// As [`find_program`].
    pub fn find_program(&self, program: impl AsRef<Path>) -> Result<PathBuf, ProgramError> {
        let path = self.get_os("PATH").unwrap_or_default();
        find_program(program.as_ref(), &self.working_directory, path)
    }
}

/// Why Crucible's own directory is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HomeError {
    /// It is named, and not by an absolute path.
    #[error("{variable} is not an absolute path; set it to a path that begins with `/`")]
    Relative {
        /// The variable that names it.
        variable: &'static str,
    },
    /// It is not named.
    #[error(
        "neither CRUCIBLE_HOME nor HOME is set; set CRUCIBLE_HOME to where the ledger and the runs are kept"
    )]
    NotSet,
}

impl HomeError {
    /// What to do if Crucible's own directory cannot be used.
    pub const HINT: &'static str = "Set CRUCIBLE_HOME to a directory that you may write to; the ledger and the runs are kept there.";
}

/// Why a program cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// No such program.
    #[error("it was not found; searched {}", list(searched))]
    NotFound {
        /// The files that were looked for.
        searched: Vec<PathBuf>,
    },
    /// There is something by that name, and it is a directory.
    #[error("{} is a directory", file.display())]
    IsDirectory {
        /// What was found.
        file: PathBuf,
    },
    /// There is a file by that name, without permission to run it.
    #[error("{} is not executable", file.display())]
    NotExecutable {
        /// What was found.
        file: PathBuf,
    },
}

/// The file that `program` means: a path with a `/` relative to `cwd`, or the first executable file of that name in the
/// absolute directories of `path`.
///
/// # Errors
///
/// [`ProgramError`], about the first thing of that name where there is one.
pub fn find_program(program: &Path, cwd: &Path, path: &OsStr) -> Result<PathBuf, ProgramError> {
    let candidates: Vec<PathBuf> = if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        vec![cwd.join(program)]
    } else {
        path_dirs(path)
            .into_iter()
            .map(|dir| dir.join(program))
            .collect()
    };
    let mut first_problem = None;
    for candidate in &candidates {
        let Ok(meta) = candidate.metadata() else {
            continue;
        };
        let file = candidate.clone();
        if meta.is_dir() {
            first_problem.get_or_insert(ProgramError::IsDirectory { file });
        } else if access(candidate, Access::EXEC_OK).is_err() {
            first_problem.get_or_insert(ProgramError::NotExecutable { file });
        } else {
            return Ok(file);
        }
    }
    Err(first_problem.unwrap_or(ProgramError::NotFound {
        searched: candidates,
    }))
}

fn path_dirs(path: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .collect()
}

fn list(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return "nothing: PATH holds no absolute directory".to_owned();
    }
    paths
        .iter()
        .map(|path| path.to_string_lossy())
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out a link by hand")]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_directory_is_absolute() {
        for (named, used) in [("/var/tmp", "/var/tmp"), ("relative", "/tmp"), ("", "/tmp")] {
            let env = Environment::from_pairs([("TMPDIR", named)], "/");
            assert_eq!(env.temporary_directory(), Path::new(used));
        }
        assert_eq!(
            Environment::default().temporary_directory(),
            Path::new("/tmp")
        );
    }

    #[test]
    fn crucible_home_is_named_and_absolute() {
        let home = |pairs: &[(&str, &str)]| {
            Environment::from_pairs(pairs.iter().copied(), "/").crucible_home()
        };
        let own = ("HOME", "/home/me");
        assert_eq!(
            home(&[own, ("CRUCIBLE_HOME", "/x"), ("XDG_DATA_HOME", "/d")]),
            Ok("/x".into())
        );
        assert_eq!(
            home(&[own, ("CRUCIBLE_HOME", ""), ("XDG_DATA_HOME", "/d")]),
            Ok("/d/crucible".into())
        );
        assert_eq!(
            home(&[own, ("XDG_DATA_HOME", "d")]),
            Ok("/home/me/.local/share/crucible".into())
        );
        let relative = |variable| Err(HomeError::Relative { variable });
        assert_eq!(
            home(&[own, ("CRUCIBLE_HOME", "x")]),
            relative("CRUCIBLE_HOME")
        );
        for unusual_text in ["relh", ".", "./x", "~"] {
            assert_eq!(
                home(&[("HOME", unusual_text)]),
                relative("HOME"),
                "{unusual_text}"
            );
            assert_eq!(
                home(&[("HOME", unusual_text), ("CRUCIBLE_HOME", "/x")]),
                Ok("/x".into())
            );
            assert_eq!(
                Environment::from_pairs([("HOME", unusual_text)], "/").home(),
                None,
                "{unusual_text}"
            );
        }
        assert_eq!(home(&[("HOME", "")]), Err(HomeError::NotSet));
        assert_eq!(home(&[]), Err(HomeError::NotSet));
    }

    #[test]
    fn bare_name_is_searched_only_on_given_path() {
        let found = find_program(
            Path::new("sh"),
            Path::new("/"),
            "/nowhere:/bin:/usr/bin".as_ref(),
        )
        .unwrap();
        assert!(found.ends_with("sh"));
        let error = find_program(Path::new("sh"), Path::new("/"), OsStr::new("")).unwrap_err();
        assert_eq!(
            error,
            ProgramError::NotFound {
                searched: Vec::new()
            }
        );
        assert!(
            error
                .to_string()
                .contains("PATH holds no absolute directory"),
            "{error}"
        );
    }

    #[test]
    fn a_relative_entry_of_path_is_never_searched() {
        let home = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/bin/sh", home.path().join("tool")).unwrap();
        for path in [".", "", "bin:."] {
            let result = find_program(Path::new("tool"), home.path(), path.as_ref());
            assert!(
                matches!(result, Err(ProgramError::NotFound { .. })),
                "{path:?}"
            );
        }
        assert!(find_program(Path::new("./tool"), home.path(), OsStr::new("")).is_ok());
    }

    #[test]
    fn non_executable_program_is_named() {
        let tried =
            |name: &str| Environment::from_pairs([("PATH", "/bin")], "/").find_program(name);
        assert!(matches!(
            tried("/etc"),
            Err(ProgramError::IsDirectory { .. })
        ));
        assert!(matches!(
            tried("/etc/passwd"),
            Err(ProgramError::NotExecutable { .. })
        ));
        let error = tried("/no/such").unwrap_err();
        assert!(error.to_string().contains("/no/such"), "{error}");
    }
}
