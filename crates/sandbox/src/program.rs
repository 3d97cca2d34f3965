//! From a program's name to one executable file, before anything is started.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crucible_host::env::{ProgramError, find_program};

use crate::error::{PathProblem, SandboxError};

/// The file that `program` means in `cwd`, on the `PATH` in `env`.
pub(crate) fn resolve(
    program: &Path,
    cwd: &Path,
    env: &[(OsString, OsString)],
) -> Result<PathBuf, SandboxError> {
    let path = env
        .iter()
        .rev()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| value.as_os_str());
    find_program(program, cwd, path.unwrap_or(OsStr::new("")))
        .map_err(|error| SandboxError::of_program(program, error))
}

impl SandboxError {
    pub(crate) fn of_program(program: &Path, error: ProgramError) -> Self {
        match error {
            ProgramError::NotFound { searched } => Self::NotFound {
                program: program.to_owned(),
                searched,
            },
            ProgramError::IsDirectory { file } => Self::NotExecutable {
                program: file,
                problem: PathProblem::IsDirectory,
            },
            ProgramError::NotExecutable { file } => Self::NotExecutable {
                program: file,
                problem: PathProblem::NotExecutable,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_path_variable_of_child_decides() {
        let env = |path: &str| -> (OsString, OsString) { ("PATH".into(), path.into()) };
        let tried = |env: &[_]| resolve(Path::new("sh"), Path::new("/"), env);
        assert!(
            tried(&[env("/nowhere"), env("/bin")])
                .unwrap()
                .ends_with("sh")
        );
        for without in [&[][..], &[env("/bin"), env("/nowhere")]] {
            let failure = tried(without).unwrap_err();
            assert!(
                matches!(failure, SandboxError::NotFound { .. }),
                "{failure}"
            );
        }
        let error = resolve(Path::new("/etc"), Path::new("/"), &[]).unwrap_err();
        assert!(matches!(
            error,
            SandboxError::NotExecutable {
                problem: PathProblem::IsDirectory,
                ..
            }
        ));
        let error = resolve(Path::new("/etc/passwd"), Path::new("/"), &[]).unwrap_err();
        assert!(matches!(
            error,
            SandboxError::NotExecutable {
                problem: PathProblem::NotExecutable,
                ..
            }
        ));
    }
}
