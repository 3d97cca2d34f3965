//! Another way to write a gate's command, with the same meaning.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crucible_host::env::find_program;

/// How a gate's command is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Spelling {
    /// As the gate has it.
    #[default]
    AsGiven,
    /// The program by its absolute path, and a Python module through code that calls it.
    Other,
}

/// Python modules that run tests, and code that runs them with the remaining arguments.
const MODULES: [(&str, &str); 2] = [
    ("unittest", "import unittest; unittest.main(module=None)"),
    ("pytest", "import sys, pytest; sys.exit(pytest.main())"),
];

/// Returns the same command in other words; a program that is not found stays as it is.
pub(crate) fn respelled(
    command: &[String],
    cwd: &Path,
    env: &[(OsString, OsString)],
) -> Vec<String> {
    let mut words = command.to_vec();
    if let [program, flag, module, ..] = command
        && flag == "-m"
        && Path::new(program)
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("python"))
        && let Some((_, code)) = MODULES.iter().find(|(name, _)| name == module)
    {
        words.splice(1..3, ["-c".to_owned(), (*code).to_owned()]);
    }
    let path = env.iter().find(|(name, _)| name == "PATH");
    if let (Some(program), Some((_, path))) = (words.first_mut(), path)
        && !program.contains('/')
        && let Ok(found) = find_program(Path::new(program), cwd, OsStr::new(path))
        && let Some(found) = found.to_str()
    {
        *program = found.to_owned();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn command_keeps_its_arguments() {
        let env = [("PATH".into(), "/usr/bin:/bin".into())];
        let other = |line: &str| respelled(&words(line), Path::new("/"), &env);
        assert!(other("sh -c true")[0].ends_with("bin/sh"));
        assert_eq!(other("sh -c true")[1..], words("-c true"));
        assert_eq!(other("./run -m unittest"), words("./run -m unittest"));
        assert_eq!(
            other("/no/such/python3 -m json"),
            words("/no/such/python3 -m json")
        );
        let unittest = other("/opt/python3 -m unittest discover -v");
        assert_eq!(unittest[..2], words("/opt/python3 -c"));
        assert!(unittest[2].contains("unittest.main"));
        assert_eq!(unittest[3..], words("discover -v"));
        assert!(other("").iter().all(String::is_empty));
    }
}
