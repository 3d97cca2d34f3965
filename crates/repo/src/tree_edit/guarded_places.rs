//! Protects files that decide what git runs from changes proposed by a model.
//!
//! [`Git::guarded_places`] lists these files; hooks are kept from the same ones. If the list is unknown,
//! every file is protected. Only a file that the user names exactly is exempt.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_model::RepoPath;
use crucible_sandbox::Sandbox;

use crate::error::RepoError;
use crate::git::{Git, GuardConflict, Guards};

/// The paths of a directory that decide what git runs there, if known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardedPlaces {
    known: Result<Vec<PathBuf>, String>,
}

impl GuardedPlaces {
    /// Finds them below `root`, now. A failure is no error here: then every file that is not named is
    /// refused.
    pub async fn find(sandbox: Arc<Sandbox>, env: &Environment, root: &Path) -> Self {
        let Ok(root) = root.canonicalize() else {
            return Self::unknown(format!("{} cannot be opened", root.display()));
        };
        let directories = [root.clone()];
        let guards = Git::guarded_places(sandbox, env, &directories, &[]).await;
        Self::new(&root, guards)
    }

    /// Creates the result for the paths below `root`, a path without links.
    pub(crate) fn new(root: &Path, guards: Result<Guards, RepoError>) -> Self {
        match guards {
            Ok(guards) => {
                let is_around =
                    |conflict: &GuardConflict| matches!(conflict, GuardConflict::Around { .. });
                let full_path = guards
                    .conflicts
                    .iter()
                    .any(is_around)
                    .then(|| root.to_owned());
                let places = guards.places.into_iter().chain(full_path).collect();
                Self::in_root(root, with_real(places))
            }
            Err(error) => Self::unknown(error.to_string()),
        }
    }

    /// No place at all.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            known: Ok(Vec::new()),
        }
    }

    /// These places, of which only those below `root` count.
    #[must_use]
    pub fn in_root(root: &Path, places: Vec<PathBuf>) -> Self {
        let below = |place: &PathBuf| place.strip_prefix(root).ok().and_then(resolved);
        Self {
            known: Ok(places.iter().filter_map(below).collect()),
        }
    }

    /// Nobody can tell, and why.
    #[must_use]
    pub const fn unknown(why: String) -> Self {
        Self { known: Err(why) }
    }

    /// Returns why the file at `path`, without links, must not change, as the middle of a sentence. `None` if
    /// it may, as for files in `named`.
    #[must_use]
    pub fn refusal(&self, path: &RepoPath, named: &[RepoPath]) -> Option<String> {
        if named.contains(path) {
            return None;
        }
        match &self.known {
            Ok(places) => {
                let place = places.iter().find(|place| holds(place, path))?;
                Some(
                    if place.as_os_str().is_empty() || place.as_os_str() == path.as_str() {
                        "it decides what git runs in this project".to_owned()
                    } else {
                        format!(
                            "it is in {}, which decides what git runs in this project",
                            place.display()
                        )
                    },
                )
            }
            Err(why) => Some(format!(
                "cannot determine which files decide what git runs here ({why})"
            )),
        }
    }
}

/// Returns the same paths, also as resolved through links: a hooks directory may be reached through one.
fn with_real(places: Vec<PathBuf>) -> Vec<PathBuf> {
    let real = |place: &PathBuf| {
        let above = || {
            Some(
                place
                    .parent()?
                    .canonicalize()
                    .ok()?
                    .join(place.file_name()?),
            )
        };
        place.canonicalize().ok().or_else(above)
    };
    let real: Vec<PathBuf> = places.iter().filter_map(real).collect();
    places.into_iter().chain(real).collect()
}

/// Returns whether the path is the place or inside it. A file system may ignore case.
fn holds(place: &Path, path: &RepoPath) -> bool {
    let mut path = Path::new(path.as_str()).components();
    let is_same = |(place, path): (&OsStr, &OsStr)| place.eq_ignore_ascii_case(path);
    place.components().all(|part| {
        path.next()
            .is_some_and(|next| is_same((part.as_os_str(), next.as_os_str())))
    })
}

/// Returns the path without `..` and `.`; `None` if it leaves the root.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => resolved.push(name),
            Component::ParentDir if !resolved.pop() => return None,
            Component::ParentDir | Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(resolved)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests plant links")]
mod tests {
    use super::*;

    fn path(text: &str) -> RepoPath {
        text.parse().unwrap()
    }

    #[test]
    fn guarded_place_covers_all_spellings() {
        let places = [
            "gitconf",
            "bare/repo",
            "hooks/",
            ".git/hooks/../../tools/check",
            "../elsewhere",
        ];
        let places = GuardedPlaces::in_root(
            Path::new("/p"),
            places
                .iter()
                .map(|place| Path::new("/p").join(place))
                .collect(),
        );
        for held in [
            "gitconf",
            "GitConf",
            "bare/repo/config",
            "bare/repo",
            "hooks/pre-commit",
            "tools/check",
        ] {
            let why = places.refusal(&path(held), &[]).unwrap();
            assert!(why.contains("decides what git runs"), "{held}: {why}");
            assert_eq!(places.refusal(&path(held), &[path(held)]), None, "{held}");
        }
        let other = [path("gitconf")];
        assert!(
            places
                .refusal(&path("bare/repo/config"), &other)
                .unwrap()
                .contains("bare/repo")
        );
        for free in [
            "gitconf.md",
            "bare/a.py",
            "bare/repository",
            "src/hooks/a.py",
            "elsewhere",
            "tools/other",
        ] {
            assert_eq!(places.refusal(&path(free), &[]), None, "{free}");
        }
    }

    #[test]
    fn guarded_place_is_resolved_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("other/deep")).unwrap();
        std::os::unix::fs::symlink("other", root.join("tools")).unwrap();
        let named = vec![root.join("tools/"), root.join("tools/deep/gitconf")];
        let places = GuardedPlaces::in_root(&root, with_real(named));
        for held in ["tools/pre-commit", "other/pre-commit", "other/deep/gitconf"] {
            assert!(places.refusal(&path(held), &[]).is_some(), "{held}");
        }
        let one = GuardedPlaces::in_root(&root, with_real(vec![root.join("tools/deep/gitconf")]));
        assert!(one.refusal(&path("other/deep/gitconf"), &[]).is_some());
        assert_eq!(one.refusal(&path("other/deep/other"), &[]), None);
    }

    #[test]
    fn unknown_guards_allow_only_named_files() {
        let places = GuardedPlaces::unknown("git is missing".to_owned());
        let why = places.refusal(&path("a.py"), &[path("b.py")]).unwrap();
        assert!(why.contains("git is missing"), "{why}");
        assert_eq!(places.refusal(&path("b.py"), &[path("b.py")]), None);
        assert_eq!(GuardedPlaces::none().refusal(&path("a.py"), &[]), None);
    }
}
