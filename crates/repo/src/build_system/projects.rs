//! Whether a repository holds several projects, and which.

use std::collections::BTreeSet;

use crucible_model::RepoPath;

use super::members::{self, Members};
use super::rules::{BUILD_FILES, detect_in};
use super::{BuildSystem, ProjectFiles};

/// The projects that a repository holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Projects {
    /// Why it has several projects, one sentence per sign; empty for a single project.
    pub signs: Vec<String>,
    /// Each project's directory and build system, sorted; empty for a single project.
    pub projects: Vec<(RepoPath, BuildSystem)>,
    /// Notes for people on what was skipped.
    pub notes: Vec<String>,
}

impl Projects {
    /// Whether there are several.
    #[must_use]
    pub fn is_monorepo(&self) -> bool {
        !self.signs.is_empty()
    }
}

/// Finds the three signs of several projects: two directories one level below with build files, `workspaces`
/// in `package.json`, `[workspace]` in `Cargo.toml`. Lists the directories and members.
#[must_use]
pub fn find_projects(files: &ProjectFiles<'_>) -> Projects {
    let mut found = Projects::default();
    let directories = directories_with_build_files(files);
    if directories.len() >= 2 {
        let text = directories
            .iter()
            .take(3)
            .copied()
            .collect::<Vec<_>>()
            .join(", ");
        let more = if directories.len() > 3 { ", ..." } else { "" };
        let count = directories.len();
        found.signs.push(format!(
            "{count} directories below the top have build files of their own ({text}{more})"
        ));
    }
    let mut paths: BTreeSet<&str> = directories.into_iter().collect();
    for (declared, sign) in [
        (
            members::of_package_json(files),
            "package.json has workspaces",
        ),
        (
            members::of_cargo_toml(files),
            "Cargo.toml has a [workspace]",
        ),
    ] {
        if let Some(Members { directories, notes }) = declared {
            found.signs.push(sign.to_owned());
            paths.extend(directories);
            found.notes.extend(notes);
        }
    }
    if found.is_monorepo() {
        let project = |path: &str| Some((path.parse().ok()?, detect_in(files, path).system));
        found.projects = paths.into_iter().filter_map(project).collect();
    }
    found
}

/// Returns the directories one level below the top that have build files, sorted.
pub(super) fn directories_with_build_files<'a>(files: &ProjectFiles<'a>) -> Vec<&'a str> {
    let parts = files.listing.iter().filter_map(|path| path.split_once('/'));
    let directories: BTreeSet<&str> = parts
        .filter(|(_, name)| BUILD_FILES.contains(name))
        .map(|(directory, _)| directory)
        .collect();
    directories.into_iter().collect()
}
