//! What a gate must not see: the repository that its copy was made of, and every run.
//!
//! A gate runs the repository's own commands, and after a patch they are the model's. Their copy is all they need, so
//! the original is covered, and so are the run directories and the temporary ones: no gate reads another run, or a file
//! that was kept from its copy. Where tools are installed inside the repository (a virtual environment that is on the
//! `PATH`, say), they stay in sight and all beside them is covered.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;

use crate::contract::RunRecord;
use crate::world::World;

/// The paths to cover for the gates of a run that get the variables `env`.
pub(crate) fn hidden(world: &World<'_>, record: &RunRecord, env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let mut hidden = vec![world.runs_root.clone(), world.tmp.clone()];
    let tools = tools(&record.repo, env, record);
    cover(&record.repo, &tools, &mut hidden);
    hidden
}

/// The places inside the repository that the gates' variables and programs lead to.
fn tools(repo: &Path, env: &[(OsString, OsString)], record: &RunRecord) -> Vec<PathBuf> {
    let pairs = env.iter().map(|(name, value)| (name.clone(), value.clone()));
    let programs = Environment::from_pairs(pairs, "/").path_dirs();
    let named = record.settings.gates.iter().filter_map(|gate| Path::new(gate.command.first()?).parent());
    let programs = programs.into_iter().chain(named.map(Path::to_owned));
    // A directory of programs stands beside its libraries: the directory above is the installation.
    let installations = programs.filter_map(|programs| {
        let above = programs.parent()?;
        Some(if above == repo { programs } else { above.to_owned() })
    });
    let variables = env.iter().filter(|(name, _)| name != "PATH").map(|(_, value)| PathBuf::from(value));
    installations.chain(variables).filter(|place| place.starts_with(repo) && place != repo).collect()
}

/// Covers `place` where it leads to none of the tools, else what lies in it. Links show nothing by themselves.
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
#[expect(clippy::disallowed_methods, reason = "tests lay out directories and links by hand")]
mod tests {
    use crucible_host::fs::{create_dir_all, write_atomic};

    use super::*;

    fn covered(tools: &[&str]) -> Vec<String> {
        let repo = tempfile::tempdir().unwrap();
        for path in [".env", ".git/HEAD", ".venv/bin/python", ".venv/lib/x", "a/b/bin/tool", "a/b/x", "a/c"] {
            let path = repo.path().join(path);
            create_dir_all(path.parent().unwrap()).unwrap();
            write_atomic(&path, b"").unwrap();
        }
        std::os::unix::fs::symlink("/usr", repo.path().join("link")).unwrap();
        let tools: Vec<PathBuf> = tools.iter().map(|tool| repo.path().join(tool)).collect();
        let mut hidden = Vec::new();
        cover(repo.path(), &tools, &mut hidden);
        let inside = hidden.iter().map(|path| path.strip_prefix(repo.path()).unwrap());
        let mut names: Vec<String> = inside.map(|path| path.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn without_tools_inside_the_whole_repository_is_covered() {
        assert_eq!(covered(&[]), [""]);
    }

    #[test]
    fn tools_inside_stay_in_sight_and_all_beside_them_is_covered() {
        assert_eq!(covered(&[".venv"]), [".env", ".git", "a"]);
        assert_eq!(covered(&[".venv", "a/b"]), [".env", ".git", "a/c"]);
    }
}
