//! A git directory of its own for a copy.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests make repositories and files by hand"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_model::ByteLimit;
use crucible_repo::{HistoryLimits, SecretCheck, SnapshotOptions, Untracked, snapshot};

use crate::common::{Repo, counted};

const NONE: HistoryLimits = HistoryLimits {
    objects: 0,
    bytes: ByteLimit(0),
};

fn secret() -> SecretCheck {
    Arc::new(|path: &Path| (path.file_name()? == ".env").then(|| "its name".to_owned()))
}

/// A repository with tags, a secret in its history, and what is nobody's business.
fn busy() -> Repo {
    let repo = Repo::with(&[("a", "a\n"), (".env", "A=1\n"), ("d/e", "e\n")]);
    repo.git(["tag", "-a", "v1.0", "-m", "one"]);
    repo.remove(".env");
    repo.write("a", "b\n");
    repo.commit("second");
    repo.git(["tag", "light"]);
    repo.git(["checkout", "-q", "-b", "elsewhere"]);
    repo.write("other", "another branch\n");
    repo.commit("third");
    repo.git(["tag", "not-ours"]);
    repo.git(["checkout", "-q", "main"]);
    repo.write("a", "stashed\n");
    repo.git(["stash", "-q"]);
    repo.git([
        "remote",
        "add",
        "origin",
        "https://user:password@example.org/x",
    ]);
    repo.write("a", "c\n");
    repo.commit("fourth");
    std::fs::write(repo.top.join(".git/hooks/post-checkout"), "#!/bin/sh\n").unwrap();
    repo
}

async fn copied(repo: &Repo, top: &Path, limits: HistoryLimits) -> PathBuf {
    let git = repo.try_open(top).await.unwrap();
    let scratch_dir = repo.dir.path().canonicalize().unwrap().join("room");
    let copy = scratch_dir.join("copy");
    let options = SnapshotOptions {
        untracked: Untracked::Leave,
        secret: secret(),
    };
    snapshot(&git, &copy, &options).await.unwrap();
    let head = git.head().await.unwrap().commit;
    let private = git
        .private_git(&head, &scratch_dir.join("git"), &secret(), limits)
        .await
        .unwrap();
    private.install_into(&git, &copy).await.unwrap();
    copy
}

#[tokio::test]
async fn private_git_answers_typical_queries() {
    for limits in [HistoryLimits::STANDARD, NONE] {
        let repo = busy();
        let copy = copied(&repo, &repo.top, limits).await;
        let git = |words: &[&str]| repo.git_in(&copy, words).trim_end().to_owned();
        assert!(
            git(&["describe", "--long", "--dirty"]).starts_with("v1.0-2-g"),
            "{limits:?}"
        );
        assert!(git(&["describe", "--tags"]).starts_with("light-1-g"));
        assert_eq!(git(&["status", "--porcelain"]), "");
        assert_eq!(git(&["diff-index", "--name-only", "HEAD"]), "");
        assert_eq!(git(&["log", "--format=%s"]), "fourth\nsecond\nfirst");
        assert_eq!(git(&["tag"]), "light\nv1.0");
        assert_eq!(
            git(&["branch", "--format=%(refname)"]).lines().last(),
            Some("refs/heads/main")
        );
        assert_eq!(git(&["ls-files"]), "a\nd/e");
        assert_eq!(git(&["show", "HEAD:a"]), "c");
        assert_eq!(git(&["rev-parse", "HEAD"]), repo.oid("main").to_string());
        assert_eq!(git(&["remote"]), "");
        // It can be written to, and the original knows nothing of that.
        std::fs::write(copy.join("a"), "d\n").unwrap();
        assert_eq!(git(&["diff", "--stat"]).lines().count(), 2);
        git(&[
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
            "commit",
            "-qam",
            "own",
        ]);
        assert_eq!(repo.git(["log", "-1", "--format=%s"]), "fourth\n");
    }
}

#[tokio::test]
async fn private_git_has_no_user_settings() {
    let repo = busy();
    let copy = copied(&repo, &repo.top, HistoryLimits::STANDARD).await;
    let objects = repo.git_in(&copy, ["cat-file", "--batch-all-objects", "--batch-check"]);
    let holds = |name: &str| objects.contains(repo.oid(name).as_str());
    assert!(holds("main:a") && holds("v1.0:a") && holds("v1.0"));
    for missing in [
        "v1.0:.env",
        "refs/stash",
        "stash:a",
        "elsewhere",
        "elsewhere:other",
    ] {
        assert!(!holds(missing), "{missing}");
    }
    let config = std::fs::read_to_string(copy.join(".git/config")).unwrap();
    assert!(
        !config.contains("remote") && !config.contains("user"),
        "{config}"
    );
    for path in ["hooks", "objects/info/alternates", "logs", "FETCH_HEAD"] {
        assert!(!copy.join(".git").join(path).exists(), "{path}");
    }
}

#[tokio::test]
async fn linked_and_shallow_trees_get_private_git() {
    let repo = busy();
    let base = repo.dir.path().canonicalize().unwrap();
    repo.git(["worktree", "add", "-q", "--detach", "../linked", "v1.0"]);
    let copy = copied(&repo, &base.join("linked"), HistoryLimits::STANDARD).await;
    assert_eq!(
        repo.git_in(&copy, ["describe", "--dirty"]),
        "v1.0-dirty\n",
        "the secret is not there"
    );
    assert_eq!(repo.git_in(&copy, ["log", "--format=%s"]), "first\n");
    std::fs::remove_dir_all(base.join("room")).unwrap();
    let url = format!("file://{}", repo.top.display());
    repo.git_in(&base, ["clone", "-q", "--depth=2", &url, "shallow"]);
    let copy = copied(&repo, &base.join("shallow"), HistoryLimits::STANDARD).await;
    assert_eq!(
        repo.git_in(&copy, ["log", "--format=%s"]),
        "fourth\nsecond\n"
    );
}

#[tokio::test]
async fn private_git_starts_git_once() {
    let repo = Repo::with(&[("a", "a\n"), ("d/e", "e\n"), (".gitignore", "out\n")]);
    let scratch_dir = repo.dir.path().canonicalize().unwrap().join("room");
    let (git, calls) = counted(&repo, &repo.top).await;
    let options = SnapshotOptions {
        untracked: Untracked::Leave,
        secret: secret(),
    };
    let head = git.head().await.unwrap().commit;
    let private = git
        .private_git(
            &head,
            &scratch_dir.join("git"),
            &secret(),
            HistoryLimits::STANDARD,
        )
        .await
        .unwrap();
    for copy in ["one", "two"] {
        let copy = scratch_dir.join(copy);
        snapshot(&git, &copy, &options).await.unwrap();
        private.install_into(&git, &copy).await.unwrap();
        assert_eq!(
            repo.git_in(&copy, ["diff-index", "--name-only", "HEAD"]),
            ""
        );
        std::fs::write(copy.join("a"), "b\n").unwrap();
        assert_eq!(repo.git_in(&copy, ["diff-files", "--name-only"]), "a\n");
    }
    assert_eq!(calls(), 1);
}

#[tokio::test]
async fn files_that_attributes_convert_are_compared_by_git() {
    let repo = Repo::with(&[(".gitattributes", "*.txt text eol=crlf\n")]);
    repo.write("a.txt", "one\r\ntwo\r\n");
    repo.commit("text");
    let copy = copied(&repo, &repo.top, HistoryLimits::STANDARD).await;
    assert_eq!(repo.git_in(&copy, ["cat-file", "-s", "HEAD:a.txt"]), "8\n");
    assert_eq!(
        repo.git_in(&copy, ["diff-index", "--name-only", "HEAD"]),
        ""
    );
}
