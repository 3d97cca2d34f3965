//! Programs without a `/` in their name: where on `PATH` they are found, or would be found if they were created.
//!
//! git searches its own programs before `PATH`, also for subcommands, credential helpers (`git-credential-NAME`)
//! and remote helpers (`git-remote-NAME`).

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;

use super::command::as_path;
use super::command_files::likely_words;
use super::config_files::prefix_of_git;
use super::nested::paths_in;
use super::programs::NamedPath;

/// Where git keeps its own programs, below the directory that it is installed in.
const GIT_EXEC_DIRS: [&str; 2] = ["lib/git-core", "libexec/git-core"];
/// Builtins and keywords of a shell, which it does not search on `PATH`.
const BUILTINS: [&str; 37] = [
    ".", ":", "[", "break", "builtin", "case", "cd", "command", "continue", "done", "echo", "esac",
    "eval", "exec", "exit", "export", "false", "fi", "for", "function", "in", "local", "popd",
    "printf", "pushd", "pwd", "read", "return", "set", "shift", "source", "test", "trap", "true",
    "umask", "unset", "}",
];

/// The directories in which programs are looked for, in this order.
pub(super) struct SearchPath(Vec<PathBuf>);

impl SearchPath {
    /// Returns the search path of programs that git runs in `base`. Relative entries are resolved against `base`.
    pub(super) fn new(env: &Environment, base: &Path) -> Self {
        Self(
            git_exec_dirs(env)
                .into_iter()
                .chain(entries(env, base))
                .collect(),
        )
    }

    /// Returns the search path after an assignment to `PATH` in a command.
    pub(super) fn after_assignment(value: &[u8], env: &Environment, base: &Path) -> Self {
        let mut directories = git_exec_dirs(env);
        for entry in value.split(|byte| *byte == b':') {
            if matches!(entry, b"$PATH" | b"${PATH}") {
                directories.extend(entries(env, base));
            } else {
                let likely = likely_words(entry, base, env).into_iter();
                directories.extend(likely.map(|entry| base.join(as_path(&entry))));
            }
        }
        Self(directories)
    }

    /// Returns the paths that are tried for this name, up to the first program, and whether one was found.
    pub(super) fn candidates(&self, name: &[u8]) -> (Vec<PathBuf>, bool) {
        let mut candidates = Vec::new();
        for directory in &self.0 {
            let file = directory.join(as_path(name));
            let is_program = is_executable(&file);
            candidates.push(file);
            if is_program {
                return (candidates, true);
            }
        }
        (candidates, false)
    }

    /// Returns each path that could be run as this program, now or once a file is created there.
    pub(super) fn candidate_programs(
        &self,
        name: &[u8],
    ) -> impl Iterator<Item = NamedPath> + use<> {
        self.candidates(name).0.into_iter().map(NamedPath::Program)
    }

    /// Returns the program that this name runs, if one exists.
    pub(super) fn find(&self, name: &[u8]) -> Option<NamedPath> {
        match self.candidates(name) {
            (mut files, true) => files.pop().map(NamedPath::Program),
            _ => None,
        }
    }
}

/// Returns whether a shell runs this word itself.
pub(super) fn is_builtin(word: &[u8]) -> bool {
    BUILTINS.iter().any(|builtin| builtin.as_bytes() == word)
}

/// Returns the subcommands of git (`git-NAME`) in the directories of `PATH`, resolved against each of `bases`.
pub(super) fn git_subcommands(env: &Environment, bases: &BTreeSet<&Path>) -> BTreeSet<PathBuf> {
    let directories: BTreeSet<PathBuf> = bases.iter().flat_map(|base| entries(env, base)).collect();
    let is_git_subcommand = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.as_bytes().starts_with(b"git-"))
    };
    let all = directories.iter().flat_map(|directory| paths_in(directory));
    all.filter(is_git_subcommand).collect()
}

fn entries(env: &Environment, base: &Path) -> Vec<PathBuf> {
    // An empty entry among others is the working directory.
    let path = env.get_os("PATH").filter(|path| !path.is_empty());
    path.into_iter()
        .flat_map(std::env::split_paths)
        .map(|entry| base.join(entry))
        .collect()
}

fn git_exec_dirs(env: &Environment) -> Vec<PathBuf> {
    if let Some(own) = env.get_os("GIT_EXEC_PATH").filter(|own| !own.is_empty()) {
        return vec![env.working_directory().join(own)];
    }
    let below = |prefix: PathBuf| GIT_EXEC_DIRS.map(|own| prefix.join(own));
    prefix_of_git(env)
        .map(below)
        .into_iter()
        .flatten()
        .collect()
}

fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out files by hand")]
mod tests {
    use super::*;

    fn program(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    #[test]
    fn candidates_end_with_the_found_program() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        program(&at("second/tool"));
        std::fs::create_dir(at("first")).unwrap();
        std::fs::write(at("first/plain"), "").unwrap();
        let path = format!("first:{}:third", at("second").display());
        let env = Environment::from_pairs([("PATH", path.as_str())], dir.path());
        let search = SearchPath::new(&env, dir.path());
        let before = vec![at("first/tool"), at("second/tool")];
        assert_eq!(search.candidates(b"tool"), (before, true));
        let missing = ["first/plain", "second/plain", "third/plain"].map(at);
        assert_eq!(search.candidates(b"plain"), (missing.to_vec(), false));
        let search = SearchPath::after_assignment(b"own:$PATH", &env, dir.path());
        let before = ["own/tool", "first/tool", "second/tool"].map(at);
        assert_eq!(search.candidates(b"tool"), (before.to_vec(), true));
    }

    #[test]
    fn subcommands_on_path_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        program(&dir.path().join("bin/git-x"));
        program(&dir.path().join("bin/gitk"));
        let env = Environment::from_pairs([("PATH", "bin")], dir.path());
        let found = git_subcommands(&env, &BTreeSet::from([dir.path()]));
        assert_eq!(found, BTreeSet::from([dir.path().join("bin/git-x")]));
    }
}
