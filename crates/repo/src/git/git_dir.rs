//! Recognises git directories in the same way as git.
//!
//! A git directory has a valid `HEAD`, and either `objects` and `refs` or a `commondir` that names the directory with them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crucible_host::fs::read_regular_up_to;
use crucible_model::{ByteLimit, RepoPath, RepoPathError};

/// Longer than a `HEAD` with any name of a reference.
const HEAD_BYTES: ByteLimit = ByteLimit(64 << 10);
/// Entries of a git directory that are git's own. A work tree may have any other name there.
const OWN_ENTRIES: [&str; 22] = [
    "branches",
    "commondir",
    "COMMIT_EDITMSG",
    "config",
    "config.worktree",
    "description",
    "FETCH_HEAD",
    "gitdir",
    "HEAD",
    "hooks",
    "index",
    "info",
    "lfs",
    "logs",
    "modules",
    "objects",
    "ORIG_HEAD",
    "packed-refs",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "worktrees",
];

/// Returns whether git, or a file system that ignores case, takes a name for `.git`.
#[must_use]
pub fn is_dot_git(name: &OsStr) -> bool {
    // Most names differ in their first byte.
    let may_be = name
        .as_bytes()
        .first()
        .is_some_and(|byte| b".gG".contains(byte) || !byte.is_ascii());
    may_be
        && matches!(
            name.to_string_lossy().parse::<RepoPath>(),
            Err(RepoPathError::GitDirectory)
        )
}

/// Returns whether a name in a git directory is one of git's own.
#[must_use]
pub fn is_git_entry(name: &OsStr) -> bool {
    OWN_ENTRIES.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Returns whether git accepts the directory as a git directory.
#[must_use]
pub fn is_git_directory(path: &Path) -> bool {
    has_entry(path, "objects") && is_git_directory_without_objects(path)
        || has_entry(path, "commondir") && has_valid_head(path)
}

/// Returns whether git accepts the directory as a git directory if `GIT_OBJECT_DIRECTORY` names the objects.
pub(super) fn is_git_directory_without_objects(path: &Path) -> bool {
    (has_entry(path, "commondir") || has_entry(path, "refs")) && has_valid_head(path)
}

fn has_entry(path: &Path, name: &str) -> bool {
    path.join(name).symlink_metadata().is_ok()
}

/// Returns the git directory that `directory` is or is inside.
///
/// A work tree may be in a git directory, beside the entries of git. What is in the work tree is not in the git directory.
#[must_use]
pub fn git_directory_around(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|at| {
        at.file_name().is_some_and(is_dot_git)
            || is_git_directory(at) && !is_in_work_tree(directory, at)
    })
}

/// Returns whether `path` is in a work tree that is in the git directory `git_dir`.
pub(super) fn is_in_work_tree(path: &Path, git_dir: &Path) -> bool {
    let Some(first) = path
        .strip_prefix(git_dir)
        .ok()
        .and_then(|rest| rest.iter().next())
    else {
        return false;
    };
    let has_top = || {
        let inside = path.ancestors().take_while(|at| *at != git_dir);
        inside
            .into_iter()
            .any(|at| at.join(".git").symlink_metadata().is_ok())
    };
    !is_git_entry(first) && has_top()
}

/// Returns whether `HEAD` is a link to a reference, or names a reference or an object. One that cannot be read counts.
fn has_valid_head(git_dir: &Path) -> bool {
    let head = git_dir.join("HEAD");
    match fs::read_link(&head) {
        Ok(target) => target.starts_with("refs"),
        Err(_) if !head.is_file() => false,
        Err(_) => read_regular_up_to(&head, HEAD_BYTES).map_or(true, |bytes| is_valid_head(&bytes)),
    }
}

fn is_valid_head(bytes: &[u8]) -> bool {
    match bytes.strip_prefix(b"ref:") {
        Some(name) => name.trim_ascii_start().starts_with(b"refs/"),
        None => bytes.len() >= 40 && bytes[..40].iter().all(u8::is_ascii_hexdigit),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out files by hand")]
mod tests {
    use super::*;

    fn directory(files: &[(&str, &str)], dirs: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in dirs {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    #[test]
    fn git_directory_is_recognised_as_by_git() {
        let oid = "0123456789012345678901234567890123456789\n";
        let parts = ["objects", "refs"];
        for (head, dirs, is_one) in [
            ("ref: refs/heads/main\n", &parts[..], true),
            ("ref:refs/heads/.invalid", &parts, true),
            (oid, &parts, true),
            ("ref: refs/heads/main\n", &["commondir"], true),
            ("ref: refs/heads/main\n", &["objects"], false),
            ("x\n", &parts, false),
            ("ref: heads/main\n", &parts, false),
            ("", &["commondir"], false),
        ] {
            let dir = directory(&[("HEAD", head)], dirs);
            assert_eq!(is_git_directory(dir.path()), is_one, "{head:?} {dirs:?}");
        }
        let dir = directory(&[], &parts);
        std::os::unix::fs::symlink("refs/heads/main", dir.path().join("HEAD")).unwrap();
        assert!(is_git_directory(dir.path()));
    }

    #[test]
    fn work_tree_in_git_directory_is_beside_it() {
        let head = ("HEAD", "ref: refs/heads/main\n");
        let dirs = ["objects", "refs", "main/src", "hooks/wt", "free"];
        let dir = directory(&[head, ("main/.git", ""), ("hooks/wt/.git", "")], &dirs);
        let around = |name: &str| git_directory_around(&dir.path().join(name)).is_some();
        assert!(around("") && around("hooks") && around("hooks/wt") && around("free"));
        assert!(!around("main") && !around("main/src"));
        assert!(around("main/.git") && around("main/.GIT/x"));
    }
}
