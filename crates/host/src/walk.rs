//! Walking a directory: every file below it, in the order of their names, links not followed.

use std::path::{Path, PathBuf};

/// What a walk comes by, directories aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WalkedEntry {
    /// A regular file.
    File(PathBuf),
    /// A link, a pipe, a socket or a device. It was not opened, and a link was not followed.
    Other(PathBuf),
}

/// The files below `root`, or `root` itself where it is a file. `.git` and what git's ignore files name are left
/// out; hidden files are not. An error is one sentence that names the place.
pub fn files(root: &Path) -> impl Iterator<Item = Result<PathBuf, String>> + use<> {
    entries(root).filter_map(|entry| match entry {
        Ok(WalkedEntry::File(path)) => Some(Ok(path)),
        Ok(WalkedEntry::Other(_)) => None,
        Err(error) => Some(Err(error)),
    })
}

/// The same, with what is there and is not a regular file.
pub fn entries(root: &Path) -> impl Iterator<Item = Result<WalkedEntry, String>> + use<> {
    ignore::WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build()
        .filter_map(|entry| match entry {
            Ok(entry) => match entry.file_type() {
                Some(kind) if kind.is_dir() => None,
                Some(kind) if kind.is_file() => Some(Ok(WalkedEntry::File(entry.into_path()))),
                Some(_) | None => Some(Ok(WalkedEntry::Other(entry.into_path()))),
            },
            Err(error) => Some(Err(error.to_string())),
        })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out links by hand")]
mod tests {
    use super::*;

    #[test]
    fn walk_finds_hidden_files_but_not_ignored() {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in [
            ("b", ""),
            (".env", ""),
            ("skip.log", ""),
            (".gitignore", "*.log\n"),
            (".git/config", ""),
        ] {
            let path = dir.path().join(name);
            crate::fs::create_dir_all(path.parent().unwrap()).unwrap();
            crate::fs::write_atomic(&path, content.as_bytes()).unwrap();
        }
        let found: Vec<_> = files(dir.path())
            .map(|file| file.unwrap().file_name().unwrap().to_owned())
            .collect();
        assert_eq!(found, [".env", ".gitignore", "b"]);
        let path = |name: &str| dir.path().join(name);
        std::os::unix::fs::symlink("b", path("link.md")).unwrap();
        std::os::unix::fs::symlink(".git", path("directory")).unwrap();
        std::os::unix::fs::symlink("b", path("ignored.log")).unwrap();
        let found: Vec<_> = entries(dir.path()).map(Result::unwrap).collect();
        let (file, other) = (
            |name| WalkedEntry::File(path(name)),
            |name| WalkedEntry::Other(path(name)),
        );
        let all = [
            file(".env"),
            file(".gitignore"),
            file("b"),
            other("directory"),
            other("link.md"),
        ];
        assert_eq!(found, all, "a link is told, and nothing behind it");
        assert_eq!(files(dir.path()).count(), 3);
    }
}
