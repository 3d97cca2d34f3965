//! From a program's name to one executable file, before anything is started.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::error::{PathProblem, SandboxError};

/// The file that `program` means: a path with a `/` relative to `cwd`, or the first executable file of
/// that name in the absolute directories of the `PATH` in `env`.
pub(crate) fn resolve(
    program: &Path,
    cwd: &Path,
    env: &[(OsString, OsString)],
) -> Result<PathBuf, SandboxError> {
    let has_slash = program.as_os_str().as_encoded_bytes().contains(&b'/');
    let candidates = if has_slash {
        vec![cwd.join(program)]
    } else {
        let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        let dirs = std::env::split_paths(path.unwrap_or(OsStr::new("")));
        dirs.filter(|dir| dir.is_absolute()).map(|dir| dir.join(program)).collect()
    };
    let mut first_problem = None;
    for candidate in &candidates {
        match judge(candidate) {
            Ok(()) => return Ok(candidate.clone()),
            Err(None) => {}
            Err(Some(problem)) => {
                first_problem.get_or_insert((candidate.clone(), problem));
            }
        }
    }
    Err(match first_problem {
        Some((program, problem)) => SandboxError::NotExecutable { program, problem },
        None => SandboxError::NotFound { program: program.to_owned(), searched: candidates },
    })
}

/// Nothing where the file can be run; `Err(None)` where there is no such file.
fn judge(candidate: &Path) -> Result<(), Option<PathProblem>> {
    let meta = candidate.metadata().map_err(|_| None)?;
    if meta.is_dir() {
        return Err(Some(PathProblem::IsDirectory));
    }
    rustix::fs::access(candidate, Access::EXEC_OK).map_err(|_| Some(PathProblem::NotExecutable))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out directories and links by hand")]
mod tests {
    use super::*;

    fn env(path: &str) -> Vec<(OsString, OsString)> {
        vec![("PATH".into(), path.into())]
    }

    #[test]
    fn a_bare_name_is_found_on_the_given_path_only() {
        let found = resolve(Path::new("sh"), Path::new("/"), &env("/nowhere:/bin:/usr/bin")).unwrap();
        assert!(found.ends_with("sh"));
        let lost = resolve(Path::new("sh"), Path::new("/"), &[]).unwrap_err();
        assert!(matches!(&lost, SandboxError::NotFound { searched, .. } if searched.is_empty()));
        assert!(lost.to_string().contains("PATH holds no absolute directory"), "{lost}");
    }

    #[test]
    fn a_relative_entry_of_path_is_never_searched() {
        let home = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/bin/sh", home.path().join("tool")).unwrap();
        for path in [".", "", "bin:."] {
            let result = resolve(Path::new("tool"), home.path(), &env(path));
            assert!(matches!(result, Err(SandboxError::NotFound { .. })), "{path:?}");
        }
        assert!(resolve(Path::new("./tool"), home.path(), &[]).is_ok());
    }

    #[test]
    fn what_is_no_program_is_named() {
        let error = resolve(Path::new("/etc"), Path::new("/"), &[]).unwrap_err();
        assert!(matches!(error, SandboxError::NotExecutable { problem: PathProblem::IsDirectory, .. }));
        let error = resolve(Path::new("/etc/passwd"), Path::new("/"), &[]).unwrap_err();
        assert!(matches!(error, SandboxError::NotExecutable { problem: PathProblem::NotExecutable, .. }));
        let error = resolve(Path::new("/no/such"), Path::new("/"), &[]).unwrap_err();
        assert!(error.to_string().contains("/no/such"), "{error}");
    }
}
