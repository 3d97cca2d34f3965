//! Real git repositories in temporary directories, the same bytes and commit ids on every machine.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Who commits, and when: fixed, so that commit ids are.
const IDENTITY: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "Fixture"),
    ("GIT_AUTHOR_EMAIL", "fixture@example.invalid"),
    ("GIT_AUTHOR_DATE", "2024-01-01T00:00:00Z"),
    ("GIT_COMMITTER_NAME", "Fixture"),
    ("GIT_COMMITTER_EMAIL", "fixture@example.invalid"),
    ("GIT_COMMITTER_DATE", "2024-01-01T00:00:00Z"),
];

enum Entry {
    File(Vec<u8>),
    Executable(Vec<u8>),
    Symlink(PathBuf),
}

/// Describes a repository: what the first commit holds, and what lies uncommitted beside it.
#[derive(Default)]
pub struct RepoBuilder {
    committed: Vec<(PathBuf, Entry)>,
    uncommitted: Vec<(PathBuf, Entry)>,
}

/// A repository with one commit on `main`; removed when it is dropped.
pub struct TestRepo {
    directory: TempDir,
}

impl RepoBuilder {
    /// An empty description.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A file in the first commit.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>, content: impl AsRef<[u8]>) -> Self {
        self.committed
            .push((path.into(), Entry::File(content.as_ref().to_vec())));
        self
    }

    /// Several files in the first commit.
    #[must_use]
    pub fn files<'a>(mut self, files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        for (path, content) in files {
            self = self.file(path, content);
        }
        self
    }

    /// An executable file in the first commit.
    #[must_use]
    pub fn executable(mut self, path: impl Into<PathBuf>, content: impl AsRef<[u8]>) -> Self {
        self.committed
            .push((path.into(), Entry::Executable(content.as_ref().to_vec())));
        self
    }

    /// A symbolic link in the first commit.
    #[must_use]
    pub fn symlink(mut self, path: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Self {
        self.committed
            .push((path.into(), Entry::Symlink(target.into())));
        self
    }

    /// A file written after the commit: new, or a change that makes the tree dirty.
    #[must_use]
    pub fn uncommitted(mut self, path: impl Into<PathBuf>, content: impl AsRef<[u8]>) -> Self {
        self.uncommitted
            .push((path.into(), Entry::File(content.as_ref().to_vec())));
        self
    }

    /// Makes the repository. An empty description gives a repository without a commit.
    #[must_use]
    pub fn build(self) -> TestRepo {
        let repo = TestRepo {
            directory: tempfile::tempdir().expect("a temporary directory"),
        };
        repo.git(["init", "--quiet", "--initial-branch=main"]);
        if !self.committed.is_empty() {
            put_all(repo.path(), self.committed);
            repo.commit("First commit");
        }
        put_all(repo.path(), self.uncommitted);
        repo
    }
}

impl TestRepo {
    /// The root of the working tree.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file into the working tree.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        put(
            self.path(),
            path.as_ref(),
            &Entry::File(content.as_ref().to_vec()),
        );
    }

    /// Commits everything in the working tree and returns the commit's id.
    pub fn commit(&self, message: &str) -> String {
        self.git(["add", "--all", "--force"]);
        self.git(["commit", "--quiet", "--message", message]);
        self.head()
    }

    /// The id of the commit that `HEAD` names.
    #[must_use]
    pub fn head(&self) -> String {
        self.git(["rev-parse", "HEAD"])
    }

    /// What `git status --porcelain` prints, ignored files included.
    #[must_use]
    pub fn status(&self) -> String {
        self.git(["status", "--porcelain", "--ignored"])
    }

    /// Runs git here and returns its standard output, trimmed at the end.
    ///
    /// # Panics
    ///
    /// When git fails; with what it said.
    pub fn git<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> String {
        let output = Command::new("git")
            .args([
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "commit.gpgSign=false",
                "-c",
                "protocol.file.allow=always",
            ])
            .args(args)
            .current_dir(self.path())
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs(IDENTITY)
            .output()
            .expect("git is installed");
        if !output.status.success() {
            panic!(
                "git failed in {}: {}",
                self.path().display(),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }
}

fn put_all(root: &Path, entries: Vec<(PathBuf, Entry)>) {
    for (path, entry) in entries {
        put(root, &path, &entry);
    }
}

fn put(root: &Path, path: &Path, entry: &Entry) {
    let target = root.join(path);
    let parent = target.parent().expect("a path below the repository's root");
    std::fs::create_dir_all(parent).expect("the file's directory");
    match entry {
        Entry::File(content) => std::fs::write(&target, content).expect("the file"),
        Entry::Executable(content) => {
            std::fs::write(&target, content).expect("the file");
            std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o755))
                .expect("its mode");
        }
        Entry::Symlink(to) => symlink(to, &target).expect("the link"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> RepoBuilder {
        RepoBuilder::new()
            .file("src/lib.rs", "pub fn one() -> u8 { 1 }\n")
            .executable("run", "#!/bin/sh\n")
            .symlink("link", "src/lib.rs")
    }

    #[test]
    fn the_same_description_has_the_same_commit_everywhere() {
        let (a, b) = (example().build(), example().build());
        assert_eq!(a.head(), b.head());
        assert_eq!(a.git(["ls-files", "--stage"]).matches("100755").count(), 1);
        assert_eq!(a.git(["ls-files", "--stage"]).matches("120000").count(), 1);
        assert_eq!(a.status(), "");
    }

    #[test]
    fn uncommitted_files_make_it_dirty() {
        let repo = example()
            .uncommitted("src/lib.rs", "changed")
            .uncommitted("new", "")
            .build();
        assert_eq!(repo.status(), " M src/lib.rs\n?? new");
    }
}
