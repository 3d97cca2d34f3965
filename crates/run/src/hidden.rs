//! The paths hidden from a gate: the original repository and every run.
//!
//! A gate runs the repository's own commands, which a patch may have changed. They need only their copy, so
//! run directories and temporary directories are hidden: no gate reads another run, or a file left out of its
//! copy. The original is hidden because the copy is mounted at its path. Without mounts it is covered, except
//! its packages and tools (a virtual environment that is on the `PATH`, say). Of a linked work tree or a
//! submodule the repository that it belongs to is covered as well.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;
use crucible_host::fs::read_up_to;
use crucible_model::ByteLimit;
use crucible_verify::GateSpec;

use crate::run_context::RunContext;

/// Returns the paths to hide from these gates of the repository at `repo`. The gates get the variables `env`.
/// The copy is mounted at `mounted`, if any, and `shown` stays visible.
pub(crate) fn hidden_paths(
    world: &RunContext<'_>,
    repo: &Path,
    gates: &[GateSpec],
    env: &[(OsString, OsString)],
    mounted: Option<&Path>,
    paths: &[PathBuf],
) -> Vec<PathBuf> {
    let is_copy = |place: &Path| mounted.is_some_and(|mounted| place.starts_with(mounted));
    let mut hidden = vec![world.runs_root.clone(), world.tmp.clone()];
    for place in kin(repo).into_iter().filter(|place| !is_copy(place)) {
        let mut tools = tool_paths(&place, env, gates);
        tools.extend(
            paths
                .iter()
                .filter(|path| path.starts_with(&place))
                .cloned(),
        );
        tools.retain(|tool| !is_copy(tool));
        // The copy is there, so hiding it would be a contradiction.
        tools.extend(
            [world.runs_root.clone(), world.tmp.clone()]
                .into_iter()
                .filter(|own| own.starts_with(&place)),
        );
        cover(&place, &tools, &mut hidden);
    }
    hidden
}

/// Git's own pointer files hold only a path.
const POINTER: ByteLimit = ByteLimit(64 * 1024);

/// Returns the repository; for a linked work tree or a submodule also its git directory, the main work tree,
/// the other linked ones, and every enclosing repository.
fn kin(repo: &Path) -> Vec<PathBuf> {
    let mut kin = vec![repo.to_owned()];
    let dot_git = repo.join(".git");
    let own = pointed(&dot_git, b"gitdir:", repo).unwrap_or(dot_git);
    let common = pointed(&own.join("commondir"), b"", &own).unwrap_or_else(|| own.clone());
    if common.file_name() == Some(OsStr::new(".git")) {
        kin.extend(common.parent().map(Path::to_owned));
    }
    for entry in std::fs::read_dir(common.join("worktrees"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let place = pointed(&entry.path().join("gitdir"), b"", &entry.path());
        kin.extend(place.and_then(|git| git.parent().map(Path::to_owned)));
    }
    // `super/.git/modules/sub`, and so on inwards.
    for git in common
        .ancestors()
        .skip(1)
        .filter(|path| path.file_name() == Some(OsStr::new(".git")))
    {
        kin.extend(git.parent().map(Path::to_owned));
    }
    kin.extend([own, common]);
    kin.retain(|place| place.parent().is_some() && place.is_dir());
    kin.sort();
    kin.dedup();
    kin
}

/// Returns the path after `mark` in such a file, resolved from its base.
fn pointed(file: &Path, mark: &[u8], from: &Path) -> Option<PathBuf> {
    let bytes = read_up_to(file, POINTER).ok()?;
    let path = bytes.strip_prefix(mark)?.trim_ascii();
    (!path.is_empty()).then(|| from.join(OsStr::from_bytes(path)).canonicalize().ok())?
}

/// The places inside the repository that the gates' variables and programs lead to.
pub(crate) fn tool_paths(
    repo: &Path,
    env: &[(OsString, OsString)],
    gates: &[GateSpec],
) -> Vec<PathBuf> {
    let pairs = env
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()));
    let programs = Environment::from_pairs(pairs, "/").path_dirs();
    let commands = gates
        .iter()
        .flat_map(|gate| gate.setup.iter().chain([&gate.command]));
    let named = commands.filter_map(|command| Path::new(command.first()?).parent());
    let programs = programs.into_iter().chain(named.map(Path::to_owned));
    // A directory of programs is beside its libraries: its parent is the installation.
    let installations = programs.filter_map(|programs| {
        let above = programs.parent()?;
        Some(if above == repo {
            programs
        } else {
            above.to_owned()
        })
    });
    let variables = env
        .iter()
        .filter(|(name, _)| name != "PATH")
        .map(|(_, value)| PathBuf::from(value));
    installations
        .chain(variables)
        .filter(|place| place.starts_with(repo) && place != repo)
        .collect()
}

/// Hides `place` if it contains none of the tools, else its other entries. Links alone show nothing.
fn cover(place: &Path, tools: &[PathBuf], hidden: &mut Vec<PathBuf>) {
    if tools.iter().any(|tool| place.starts_with(tool)) {
        return;
    }
    if !tools.iter().any(|tool| tool.starts_with(place)) {
        hidden.push(place.to_owned());
        return;
    }
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            cover(&entry.path(), tools, hidden);
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests lay out directories and links by hand"
)]
mod tests {
    use crucible_host::fs::{create_dir_all, write_atomic};

    use super::*;

    fn covered(tools: &[&str]) -> Vec<String> {
        let repo = tempfile::tempdir().unwrap();
        for path in [
            ".env",
            ".git/HEAD",
            ".venv/bin/python",
            ".venv/lib/x",
            "a/b/bin/tool",
            "a/b/x",
            "a/c",
        ] {
            let path = repo.path().join(path);
            create_dir_all(path.parent().unwrap()).unwrap();
            write_atomic(&path, b"").unwrap();
        }
        std::os::unix::fs::symlink("/usr", repo.path().join("link")).unwrap();
        let tools: Vec<PathBuf> = tools.iter().map(|tool| repo.path().join(tool)).collect();
        let mut hidden = Vec::new();
        cover(repo.path(), &tools, &mut hidden);
        let inside = hidden
            .iter()
            .map(|path| path.strip_prefix(repo.path()).unwrap());
        let mut names: Vec<String> = inside
            .map(|path| path.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn related_repositories_are_hidden() {
        let temp_dir = tempfile::tempdir().unwrap();
        let scratch_dir = temp_dir.path().canonicalize().unwrap();
        let put = |path: &str, text: String| {
            create_dir_all(scratch_dir.join(path).parent().unwrap()).unwrap();
            write_atomic(&scratch_dir.join(path), text.as_bytes()).unwrap();
        };
        put("main/.git/HEAD", String::new());
        put("main/.git/worktrees/a/commondir", "../..\n".to_owned());
        put(
            "main/.git/worktrees/a/gitdir",
            format!("{}/a/.git\n", scratch_dir.display()),
        );
        put(
            "main/.git/worktrees/b/gitdir",
            format!("{}/b/.git\n", scratch_dir.display()),
        );
        put(
            "a/.git",
            format!("gitdir: {}/main/.git/worktrees/a\n", scratch_dir.display()),
        );
        put("b/.git", "gitdir: nowhere".to_owned());
        put("main/.git/modules/sub/HEAD", String::new());
        put("main/sub/.git", "gitdir: ../.git/modules/sub\n".to_owned());
        let names = |repo: &str| -> Vec<String> {
            let kin = kin(&scratch_dir.join(repo));
            kin.iter()
                .map(|path| {
                    path.strip_prefix(&scratch_dir)
                        .unwrap()
                        .display()
                        .to_string()
                })
                .collect()
        };
        assert_eq!(
            names("a"),
            ["a", "b", "main", "main/.git", "main/.git/worktrees/a"]
        );
        assert_eq!(names("main"), ["a", "b", "main", "main/.git"]);
        assert_eq!(
            names("main/sub"),
            ["main", "main/.git/modules/sub", "main/sub"]
        );
    }

    #[test]
    fn without_tools_inside_the_whole_repository_is_covered() {
        assert_eq!(covered(&[]), [""]);
    }

    #[test]
    fn tools_stay_visible_and_siblings_are_hidden() {
        assert_eq!(covered(&[".venv"]), [".env", ".git", "a"]);
        assert_eq!(covered(&[".venv", "a/b"]), [".env", ".git", "a/c"]);
    }
}
