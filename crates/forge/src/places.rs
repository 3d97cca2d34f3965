//! What a place of a project means to others than the skill that writes there: Crucible's and git's own directories, what is named like a
//! secret, and what other programs run or read commands from.
//!
//! The same judgement decides which directories may be granted, which of their contents a skill sees, and which leftovers of a run are reported.
//!
//! What always holds: a place is judged by its whole path from the project's top, and upper and lower case are the same.

use crucible_model::{
    Denial, PathPrefix, PathRole, PathRoles, RepoPath, RepoPathError, denied_place, is_hidden,
};
use crucible_patch::{is_ci, is_git_setting, is_manifest};
use crucible_repo::is_dot_git;
use crucible_secrets::{is_secret_directory, is_secret_file};

/// Crucible's own directory.
const OWN: &str = ".crucible";
/// A directory that means nothing. Names that mean something at the top alone are the places of what programs make (`build`, `dist`).
const ANYWHERE: &str = "anywhere";
/// A name that means nothing.
const PLAIN: &str = "x";
/// Names that some program runs or loads because they are there, and that are ordinary source to everybody else.
const RUN_BY_NAME: [&str; 3] = ["conftest.py", "__main__.py", "tasks.py"];
/// Endings of what is loaded, run or opened because it is there.
const LOADED: [&str; 7] = ["pth", "pyc", "so", "dylib", "dll", "pyd", "desktop"];

/// Why a place is not like others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathSensitivity {
    /// Crucible or git keeps there what it believes.
    Own,
    /// It is named like a secret.
    Secret,
    /// Other programs run what is there, or read commands from it.
    Obeyed,
}

/// What is found at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceKind {
    Directory,
    /// Anything else.
    File,
}

/// What a skill is let do below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceUse {
    Write,
    Read,
}

impl PlaceUse {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// A path below which no skill is let write, or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a skill must not {verb} below {path}: {why} ({name}); grant a directory that only skills {verb}, such as notes/"
)]
pub struct RefusedPlace {
    /// What it is not let do.
    pub verb: &'static str,
    /// The path of the requested grant.
    pub path: String,
    /// The name on its way that keeps it from being granted.
    pub name: String,
    /// What that name means.
    pub why: &'static str,
}

/// Whether the name is that of Crucible's own directory or of git's, in any spelling that some file system takes for it.
pub(crate) fn is_own(name: &str) -> bool {
    name.eq_ignore_ascii_case(OWN) || is_dot_git(name.as_ref())
}

/// What the path, from the project's top, means by itself; what the directories on its way mean is for who walks there.
pub(crate) fn meaning(path: &str, kind: PlaceKind) -> Option<PathSensitivity> {
    let name = path.rsplit('/').next().unwrap_or(path);
    if is_own(name) {
        Some(PathSensitivity::Own)
    } else if is_secret_file(path) || kind == PlaceKind::Directory && is_secret_directory(path) {
        Some(PathSensitivity::Secret)
    } else {
        let is_obeyed = match kind {
            PlaceKind::Directory => is_obeyed(&format!("{path}/{PLAIN}")),
            PlaceKind::File => is_obeyed(path),
        };
        is_obeyed.then_some(PathSensitivity::Obeyed)
    }
}

/// Judges whether a skill may be let write or read below this path. What others run may be read.
///
/// # Errors
///
/// [`RefusedPlace`] names the first name on the way that means something to others.
pub(crate) fn may_be_granted(place: &PathPrefix, usage: PlaceUse) -> Result<(), RefusedPlace> {
    let path = place.to_string();
    let verb = usage.as_str();
    let refused = |name: &str, why| RefusedPlace {
        verb,
        path: path.clone(),
        name: name.to_owned(),
        why,
    };
    if let Some(home) = path.split('/').next().filter(|name| name.starts_with('~')) {
        return Err(refused(
            home,
            "it is taken as it is written, below the project's top, and is no home",
        ));
    }
    let mut prefix = String::new();
    for name in path.split('/') {
        if !prefix.is_empty() {
            prefix.push('/');
        }
        prefix.push_str(name);
        if name.contains(['*', '?']) {
            return Err(refused(
                name,
                "it is not a pattern, and means a directory of that very name",
            ));
        }
        if name.contains(is_hidden) {
            return Err(refused(name, "it holds characters that nobody sees"));
        }
        let why = match meaning(&prefix, PlaceKind::Directory) {
            Some(PathSensitivity::Obeyed) if usage == PlaceUse::Read => continue,
            None => continue,
            Some(PathSensitivity::Own) => "that is where Crucible or git keeps what it believes",
            Some(PathSensitivity::Secret) => "it is named like a place of secrets",
            Some(PathSensitivity::Obeyed) => {
                "other programs run what is in such a directory, or read commands from it"
            }
        };
        return Err(refused(name, why));
    }
    Ok(())
}

/// Whether other programs run a file of this path, or read from it what to run.
fn is_obeyed(path: &str) -> bool {
    let mut names = Vec::new();
    for name in path.split('/') {
        names.push(match name.parse::<RepoPath>() {
            Ok(_) => name,
            Err(RepoPathError::GitDirectory) => return true,
            // A drive's name or a backslash means nothing here.
            Err(_) => PLAIN,
        });
    }
    let path = names.join("/");
    let (Ok(deep), Ok(path)) = (
        format!("{ANYWHERE}/{path}").parse::<RepoPath>(),
        path.parse::<RepoPath>(),
    ) else {
        return true;
    };
    let says_what_is_run = |path: &RepoPath| {
        is_manifest(path)
            || is_ci(path)
            || is_git_setting(path)
            || PathRoles::from_path(path).has(PathRole::TestSettings)
    };
    is_run_by_name(&path.file_name().to_ascii_lowercase())
        || denied_place(&deep, Denial::Changed).is_some()
        || says_what_is_run(&deep)
        || says_what_is_run(&path)
}

/// Whether a program runs, loads or opens what has this name, in lower case, because it is there.
fn is_run_by_name(name: &str) -> bool {
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    // `libx.so.1`.
    let is_versioned = |rest: &str| {
        rest.split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    RUN_BY_NAME.contains(&name)
        || !stem.is_empty() && LOADED.contains(&extension)
        || extension == "py" && (stem.starts_with("test_") || stem.ends_with("_test"))
        || name
            .split_once(".so.")
            .is_some_and(|(_, rest)| is_versioned(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &str) -> Option<String> {
        may_be_granted(&path.parse().unwrap(), PlaceUse::Write)
            .err()
            .map(|refused| refused.name)
    }

    #[test]
    fn controlling_names_are_never_grantable() {
        for (path, name) in [
            (".crucible", ".crucible"),
            (".crucible/skills", ".crucible"),
            ("a/.Crucible/x", ".Crucible"),
            ("a/b/.CRUCIBLE", ".CRUCIBLE"),
            (".github", ".github"),
            ("a/.GitHub/workflows", ".GitHub"),
            (".cargo", ".cargo"),
            ("sub/.Cargo", ".Cargo"),
            (".claude/commands", ".claude"),
            (".vscode", ".vscode"),
            (".husky", ".husky"),
            (".ssh", ".ssh"),
            ("home/.SSH/x", ".SSH"),
            ("a/.gnupg", ".gnupg"),
            (".config/gcloud", ".config"),
            (".new-tool/x", ".new-tool"),
            ("notes/.env", ".env"),
            ("notes/server.pem/x", "server.pem"),
            ("node_modules/x", "node_modules"),
            ("a/__pycache__", "__pycache__"),
            ("requirements", "requirements"),
            ("scripts/ci", "ci"),
            ("~/x", "~"),
            ("~ada/notes", "~ada"),
            ("notes/*", "*"),
            ("no?es/x", "no?es"),
            ("notes/a\nb", "a\nb"),
            ("notes/\u{202e}b", "\u{202e}b"),
        ] {
            assert_eq!(refused(path).as_deref(), Some(name), "{path}");
        }
        let message = may_be_granted(&"a/.GitHub/x".parse().unwrap(), PlaceUse::Write)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("a/.GitHub/x") && message.contains("(.GitHub); grant a directory"),
            "{message}"
        );
    }

    #[test]
    fn ordinary_directories_are_granted() {
        for path in [
            "notes",
            "a/b/c",
            "src/",
            "build",
            "dist/reports",
            "target/x",
            "runs",
            "docs/~old",
            "tests/data",
            "out.d",
            "env",
            "ssh",
            "crucible",
            "README.md",
            "pages/[id]",
            "résumés/漢字",
        ] {
            assert_eq!(refused(path), None, "{path}");
        }
    }

    #[test]
    fn file_names_that_programs_load_are_recognized() {
        for path in [
            "notes/test_a.py",
            "notes/a_test.py",
            "Notes/Test_A.PY",
            "notes/__main__.py",
            "notes/tasks.py",
            "notes/a.dylib",
            "notes/a.DLL",
            "notes/a.pyd",
            "notes/lib.so.1",
            "notes/lib.so.1.2.3",
            "notes/x.desktop",
            "build/.husky/x",
            "requirements/base.txt",
            "scripts/ci/run.py",
        ] {
            assert_eq!(
                meaning(path, PlaceKind::File),
                Some(PathSensitivity::Obeyed),
                "{path}"
            );
        }
        for path in [
            "build/x.txt",
            "runs/y",
            "notes/testing.py",
            "notes/latest.py",
            "notes/a.so.md",
            "notes/a.so.",
            "notes/so",
            "notes/desktop",
            "notes/test_a.txt",
            "notes/tasks.md",
        ] {
            assert_eq!(meaning(path, PlaceKind::File), None, "{path}");
        }
    }
}
