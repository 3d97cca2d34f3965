//! A repository in a temporary directory, made with the git on `PATH` and a configuration of its own.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests make repositories, files and processes of their own"
)]

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_repo::{Git, Oid, RepoError};
use crucible_sandbox::Sandbox;

pub(crate) struct Repo {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) top: PathBuf,
}

/// The environment that the code under test is given: the machine's `PATH`, a home without a configuration.
pub(crate) fn environment(home: &Path) -> Environment {
    let path = std::env::var_os("PATH").unwrap();
    Environment::from_pairs(
        [
            ("PATH", path),
            ("HOME", home.into()),
            ("TMPDIR", home.into()),
        ],
        "/",
    )
}

pub(crate) fn sandbox() -> Arc<Sandbox> {
    Arc::new(Sandbox::new(None, &Environment::default()))
}

impl Repo {
    /// A repository without a commit.
    pub(crate) fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let dir_path = dir.path().canonicalize().unwrap();
        let repo = Self {
            top: dir_path.join("repo"),
            dir,
        };
        std::fs::create_dir(&repo.top).unwrap();
        std::fs::create_dir(repo.home()).unwrap();
        repo.git(["init", "-q", "-b", "main", "."]);
        repo.git(["config", "user.name", "A Person"]);
        repo.git(["config", "user.email", "person@example.org"]);
        repo
    }

    /// A repository with these files in one commit.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let repo = Self::empty();
        for (path, content) in files {
            repo.write(path, content);
        }
        repo.commit("first");
        repo
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("home")
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.top.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.top.join(path)).unwrap()
    }

    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.top.join(path)).unwrap();
    }

    pub(crate) fn commit(&self, message: &str) -> Oid {
        self.git(["add", "-A"]);
        self.git(["commit", "-q", "--allow-empty", "-m", message]);
        self.oid("HEAD")
    }

    pub(crate) fn oid(&self, name: &str) -> Oid {
        self.git(["rev-parse", name]).trim().parse().unwrap()
    }

    pub(crate) fn git<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> String {
        self.git_in(&self.top, words)
    }

    pub(crate) fn git_in<S: AsRef<OsStr>>(
        &self,
        dir: &Path,
        words: impl IntoIterator<Item = S>,
    ) -> String {
        let output = Command::new("git")
            .args(words)
            .current_dir(dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.home())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) async fn try_open(&self, path: &Path) -> Result<Git, RepoError> {
        Git::open(sandbox(), &environment(&self.home()), path).await
    }

    pub(crate) async fn open(&self) -> Git {
        self.try_open(&self.top).await.unwrap()
    }

    /// Makes all files older than the index, so that git need not compare their contents.
    pub(crate) fn settle(&self) {
        let listed = self.git(["ls-files", "-z"]);
        let past = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
        for name in listed.split('\0') {
            let path = self.top.join(name);
            if path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
                std::fs::File::open(path)
                    .unwrap()
                    .set_modified(past)
                    .unwrap();
            }
        }
        self.git(["update-index", "-q", "--refresh"]);
        // The kernel's own time of a change cannot be set, so the index is from a later second instead.
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(2);
        std::fs::File::open(self.top.join(".git/index"))
            .unwrap()
            .set_modified(later)
            .unwrap();
    }

    /// What changed in the files, as git makes it; the work tree is as before afterwards.
    pub(crate) fn diff(&self, change: impl FnOnce(&Self)) -> Vec<u8> {
        change(self);
        self.git(["add", "-A"]);
        let patch = self.git(["diff", "--cached", "--no-renames", "--full-index"]);
        self.git(["reset", "-q", "--hard"]);
        patch.into_bytes()
    }
}

/// A repository that is opened with a git that counts its calls.
pub(crate) async fn counted(repo: &Repo, top: &Path) -> (Git, impl Fn() -> usize + use<>) {
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path)
        .map(|dir| dir.join("git"))
        .find(|git| git.is_file())
        .unwrap();
    let (room, log) = (repo.home().join("bin"), repo.home().join("calls"));
    std::fs::create_dir_all(&room).unwrap();
    let _ = std::fs::remove_file(&log);
    let script = format!(
        "#!/bin/sh\necho >> '{}'\nexec '{}' \"$@\"\n",
        log.display(),
        real.display()
    );
    std::fs::write(room.join("git"), script).unwrap();
    std::fs::set_permissions(room.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
    let env = Environment::from_pairs(
        [
            ("PATH", room.as_os_str()),
            ("TMPDIR", repo.home().as_os_str()),
        ],
        "/",
    );
    let git = Git::open(sandbox(), &env, top).await.unwrap();
    let mut seen = 0;
    let calls = move |log: &Path| std::fs::read(log).unwrap().len();
    let mut since = move || {
        let all = calls(&log);
        let new = all - seen;
        seen = all;
        new
    };
    since();
    let since = std::sync::Mutex::new(since);
    (git, move || (since.lock().unwrap())())
}
