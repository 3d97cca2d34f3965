//! Landing: once, completely, and never over anything of the user's.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests change files by hand, and interrupt git"
)]

use std::os::unix::fs::PermissionsExt;

use crucible_host::env::Environment;
use crucible_model::{RunId, Timestamp};
use crucible_repo::{Branch, Commit, Git, Identity, LandRequest, Landed, Oid, RepoError};

use crate::common::{Repo, environment, sandbox};

struct Change {
    repo: Repo,
    base: Oid,
    branch: Branch,
    patch: Vec<u8>,
    tree: Oid,
    run: RunId,
    message: String,
    identity: Identity,
    at: Timestamp,
}

const FILES: &[(&str, &str)] = &[
    ("a", "1\n2\n3\n"),
    ("gone", "x\n"),
    ("dir/only", "o\n"),
    ("becomes-dir", "f\n"),
    ("d2/f", "f\n"),
    ("run.sh", "#!\n"),
];

fn edit(repo: &Repo) {
    repo.write("a", "1\ntwo\n3\n");
    repo.remove("gone");
    repo.remove("dir/only");
    repo.remove("becomes-dir");
    repo.write("becomes-dir/inside", "i\n");
    repo.remove("d2/f");
    std::fs::remove_dir(repo.top.join("d2")).unwrap();
    repo.write("d2", "now a file\n");
    repo.write("new dir/n", "n\n");
    std::os::unix::fs::symlink("a", repo.top.join("link")).unwrap();
    std::fs::set_permissions(
        repo.top.join("run.sh"),
        std::fs::Permissions::from_mode(0o755),
    )
    .unwrap();
}

impl Change {
    async fn new() -> Self {
        let repo = Repo::with(FILES);
        let patch = repo.diff(edit);
        Self::from_patch(repo, patch).await
    }

    async fn from_patch(repo: Repo, patch: Vec<u8>) -> Self {
        let git = repo.open().await;
        let base = repo.oid("HEAD");
        let run: RunId = "20260131t093000z-1f2e3d4c5b6a".parse().unwrap();
        Self {
            tree: git.tree_after_patch(&base, &patch).await.unwrap().tree,
            branch: git.branch().await.unwrap(),
            identity: git.identity().await.unwrap(),
            message: format!("Fix the parser\n\nCrucible-Run: {run}\nCrucible-Plan: abc\n"),
            at: "2026-01-31T09:30:00Z".parse().unwrap(),
            repo,
            base,
            patch,
            run,
        }
    }

    fn request(&self) -> LandRequest<'_> {
        LandRequest {
            run: &self.run,
            base: &self.base,
            branch: &self.branch,
            patch: &self.patch,
            tree: &self.tree,
            message: &self.message,
            identity: &self.identity,
            at: self.at,
            signature: None,
        }
    }

    async fn land(&self) -> Result<Commit, RepoError> {
        self.repo.open().await.land(&self.request()).await
    }

    async fn assert_landed(&self, commit: &Oid) {
        let repo = &self.repo;
        assert_eq!(repo.oid("HEAD"), *commit);
        assert_eq!(repo.oid("HEAD^"), self.base);
        assert_eq!(repo.oid("HEAD^{tree}"), self.tree);
        assert_eq!(repo.git(["status", "--porcelain"]), "");
        assert_eq!(repo.read("a"), "1\ntwo\n3\n");
        assert_eq!(repo.read("becomes-dir/inside"), "i\n");
        assert_eq!(repo.read("d2"), "now a file\n");
        assert_eq!(
            std::fs::read_link(repo.top.join("link")).unwrap().to_str(),
            Some("a")
        );
        assert!(!repo.top.join("gone").exists() && !repo.top.join("dir").exists());
        assert_eq!(repo.git(["rev-list", "--count", "HEAD"]).trim(), "2");
    }
}

#[tokio::test]
async fn verified_tree_lands_as_one_commit() {
    let change = Change::new().await;
    let commit = change.land().await.unwrap();
    assert_eq!(commit.landed, Landed::Now);
    change.assert_landed(&commit.oid).await;
    change.repo.git(["fsck", "--strict"]);
    let text = change
        .repo
        .git(["log", "-1", "--format=%an <%ae> %at|%cn %ct|%B"]);
    let who = "A Person <person@example.org> 1769851800|A Person 1769851800|";
    assert_eq!(
        text.trim_end(),
        format!("{who}{}", change.message.trim_end())
    );
    assert!(change.repo.git(["reflog", "-1"]).contains("crucible: land"));
}

#[tokio::test]
async fn landing_again_finds_it_done() {
    let change = Change::new().await;
    let first = change.land().await.unwrap();
    let second_commit = change.land().await.unwrap();
    assert_eq!(
        second_commit,
        Commit {
            oid: first.oid.clone(),
            landed: Landed::Before
        }
    );
    change.assert_landed(&first.oid).await;
    // Also behind later work, which is left alone.
    change.repo.write("a", "later\n");
    change.repo.commit("later");
    change.repo.write("a", "and dirty\n");
    assert_eq!(change.land().await.unwrap(), second_commit);
    assert_eq!(change.repo.read("a"), "and dirty\n");
}

#[tokio::test]
async fn a_branch_that_moved_is_refused() {
    let change = Change::new().await;
    change.repo.write("other", "o\n");
    let found = change.repo.commit("meanwhile");
    let error = change.land().await.unwrap_err();
    assert!(
        matches!(&error, RepoError::Moved { expected, found: f } if *expected == change.base && *f == found)
    );
    change.repo.git(["reset", "-q", "--hard", "HEAD^"]);
    change.repo.git(["checkout", "-q", "-b", "elsewhere"]);
    assert!(matches!(
        change.land().await,
        Err(RepoError::OtherBranch { .. })
    ));
    change.repo.git(["checkout", "-q", "--detach", "main"]);
    assert!(matches!(
        change.land().await,
        Err(RepoError::OtherBranch { .. })
    ));
}

#[tokio::test]
async fn similar_commit_is_not_our_landing() {
    let change = Change::new().await;
    change.repo.write("a", "something else\n");
    change
        .repo
        .git(["commit", "-q", "-a", "-m", &change.message]);
    assert!(matches!(change.land().await, Err(RepoError::Moved { .. })));
}

#[tokio::test]
async fn changes_of_the_user_s_are_never_lost() {
    let change = Change::new().await;
    let repo = &change.repo;
    let refused = async |what: &str, path: &str| {
        let error = change.land().await.unwrap_err();
        let is_named = matches!(&error, RepoError::Dirty { paths } if paths.iter().any(|p| p.to_str() == Some(path)));
        assert!(is_named, "{what}: {error}");
        assert_eq!(repo.oid("HEAD"), change.base, "{what}");
    };
    let clean = || {
        repo.git(["reset", "-q", "--hard"]);
        repo.git(["clean", "-q", "-fdx"]);
    };
    repo.write("a", "mine\n");
    refused("a changed file", "a").await;
    assert_eq!(repo.read("a"), "mine\n");
    clean();
    repo.write("run.sh", "mine\n");
    repo.git(["add", "run.sh"]);
    refused("a staged file", "run.sh").await;
    clean();
    repo.write("new dir/n", "mine\n");
    refused("an untracked file where a new one goes", "new dir/n").await;
    assert_eq!(repo.read("new dir/n"), "mine\n");
    clean();
    repo.write(".git/info/exclude", "new dir\n");
    repo.write("new dir/n", "mine\n");
    refused("an ignored file where a new one goes", "new dir/n").await;
    assert_eq!(repo.read("new dir/n"), "mine\n");
    clean();
    repo.write("new dir", "a file where a directory goes\n");
    refused("a file where a directory goes", "new dir/n").await;
    clean();
    repo.write(".git/info/exclude", "d2/mine\n");
    repo.write("d2/mine", "in a directory that becomes a file\n");
    refused("an ignored file in a directory that becomes a file", "d2").await;
    assert!(repo.top.join("d2/mine").exists());
    clean();
    let outside = repo.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, repo.top.join("new dir")).unwrap();
    refused("a link where a directory goes", "new dir/n").await;
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    clean();
    repo.git(["update-index", "--assume-unchanged", "a"]);
    repo.write("a", "hidden\n");
    refused("a hidden change", "a").await;
    assert_eq!(repo.read("a"), "hidden\n");
    repo.git(["update-index", "--no-assume-unchanged", "a"]);
    clean();
    repo.write(".gitattributes", "* text eol=crlf\n");
    repo.git(["add", ".gitattributes"]);
    refused("changed attributes", ".gitattributes").await;
    clean();
    // What is in nobody's way stays and does not matter.
    repo.write("notes.txt", "mine\n");
    change.land().await.unwrap();
    assert_eq!(repo.read("notes.txt"), "mine\n");
}

#[tokio::test]
async fn landing_preserves_changes_in_other_files() {
    let repo = Repo::with(
        &[
            FILES,
            &[("other", "as committed\n"), ("staged", "as committed\n")],
        ]
        .concat(),
    );
    let patch = repo.diff(edit);
    let change = Change::from_patch(repo, patch).await;
    let repo = &change.repo;
    repo.write("other", "mine\n");
    repo.write("staged", "mine, staged\n");
    repo.git(["add", "staged"]);
    change.land().await.unwrap();
    assert_eq!(
        (repo.read("other"), repo.read("staged")),
        ("mine\n".to_owned(), "mine, staged\n".to_owned())
    );
    assert_eq!(
        repo.git(["status", "--porcelain=v1"]),
        " M other\nM  staged\n"
    );
    assert_eq!(repo.git(["show", "HEAD:other"]), "as committed\n");
}

#[tokio::test]
async fn index_lock_blocks_landing_early() {
    let change = Change::new().await;
    change.repo.write(".git/index.lock", "");
    assert!(matches!(
        change.land().await,
        Err(RepoError::IndexLocked { .. })
    ));
    assert_eq!(change.repo.oid("HEAD"), change.base);
    change.repo.remove(".git/index.lock");
    let commit = change.land().await.unwrap();
    change.assert_landed(&commit.oid).await;
}

/// An interrupted landing may leave a git behind that ends a moment later.
#[tokio::test]
async fn released_index_lock_is_awaited() {
    let branch = Change::new().await.repo.git(["symbolic-ref", "HEAD"]);
    for lock in [
        "index.lock".to_owned(),
        "HEAD.lock".to_owned(),
        format!("{}.lock", branch.trim()),
    ] {
        let change = Change::new().await;
        change.repo.write(format!(".git/{lock}"), "");
        let (landed, ()) = tokio::join!(change.land(), async {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            change.repo.remove(&format!(".git/{lock}"));
        });
        let commit = landed.unwrap_or_else(|error| panic!("{lock}: {error}"));
        change.assert_landed(&commit.oid).await;
    }
}

#[tokio::test]
async fn unverified_patch_or_message_is_refused() {
    let mut change = Change::new().await;
    let tree = std::mem::replace(&mut change.tree, change.repo.oid("HEAD^{tree}"));
    assert!(matches!(
        change.land().await,
        Err(RepoError::TreeChanged { .. })
    ));
    change.tree = tree;
    let message = std::mem::replace(&mut change.message, "Fix\n".to_owned());
    assert!(matches!(
        change.land().await,
        Err(RepoError::NoTrailer { .. })
    ));
    change.message = message;
    assert_eq!(change.repo.oid("HEAD"), change.base);
    assert!(change.land().await.is_ok());
}

#[tokio::test]
async fn landing_works_in_linked_tree_and_detached() {
    let repo = Repo::with(FILES);
    let patch = repo.diff(|repo| repo.write("a", "1\ntwo\n3\n"));
    repo.git(["worktree", "add", "-q", "-b", "side", "../linked"]);
    let linked = Repo {
        top: repo.top.parent().unwrap().join("linked"),
        dir: repo.dir,
    };
    let change = Change::from_patch(linked, patch.clone()).await;
    change.land().await.unwrap();
    assert_eq!(change.repo.read("a"), "1\ntwo\n3\n");
    assert_eq!(change.repo.git(["status", "--porcelain"]), "");
    assert_eq!(change.repo.oid("main"), change.base);

    let repo = Repo::with(FILES);
    repo.git(["checkout", "-q", "--detach"]);
    let change = Change::from_patch(repo, patch).await;
    change.land().await.unwrap();
    assert_eq!(change.repo.oid("HEAD^"), change.base);
    assert_eq!(change.repo.oid("main"), change.base);
    assert_eq!(change.repo.git(["status", "--porcelain"]), "");
}

#[tokio::test]
async fn line_ends_that_git_converts_are_no_changes() {
    let repo = Repo::with(&[
        (".gitattributes", "*.txt text eol=crlf\n"),
        ("a.txt", "1\r\n2\r\n"),
    ]);
    let patch =
        b"diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n"
            .to_vec();
    let change = Change::from_patch(repo, patch).await;
    change.land().await.unwrap();
    assert_eq!(change.repo.read("a.txt"), "1\r\ntwo\r\n");
    assert_eq!(change.repo.git(["status", "--porcelain"]), "");
}

/// A git that kills the process that called it, and itself, at its n-th call.
fn stopping_git(change: &Change, at: usize) -> Environment {
    let bin = change.repo.dir.path().join(format!("bin-{at}"));
    std::fs::create_dir(&bin).unwrap();
    let count = bin.join("count");
    let real = environment(&change.repo.home())
        .find_program("git")
        .unwrap();
    let script = format!(
        "#!/bin/sh\necho x >> {count}\nif [ $(wc -l < {count}) -gt {at} ]; then kill -9 $$; fi\nexec {real} \"$@\"\n",
        count = count.display(),
        real = real.display()
    );
    std::fs::write(bin.join("git"), script).unwrap();
    std::fs::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        bin.display(),
        environment("/".as_ref()).get("PATH").unwrap()
    );
    let home = change.repo.home();
    Environment::from_pairs(
        [
            ("PATH", path.into()),
            ("HOME", home.clone()),
            ("TMPDIR", home),
        ],
        "/",
    )
}

/// Every call of git is a step that changes something or not. After any of them the world may end.
#[tokio::test]
async fn interrupted_landing_is_finished_by_retry() {
    let change = Change::new().await;
    let repo = &change.repo;
    let mut interrupted = 0;
    for at in 0.. {
        repo.git(["update-ref", "refs/heads/main", change.base.as_str()]);
        repo.git(["reset", "-q", "--hard"]);
        repo.git(["clean", "-q", "-fdx"]);
        repo.git(["prune", "--expire=now"]);
        repo.git(["reflog", "expire", "--expire=now", "--all"]);
        let env = stopping_git(&change, at);
        let result = match Git::open(sandbox(), &env, &repo.top).await {
            Ok(git) => git.land(&change.request()).await,
            Err(error) => Err(error),
        };
        let is_done = result.is_ok();
        interrupted += usize::from(!is_done);
        let commit = change
            .land()
            .await
            .unwrap_or_else(|error| panic!("stopped after {at} calls: {error}"));
        change.assert_landed(&commit.oid).await;
        if is_done {
            break;
        }
    }
    assert!(interrupted > 10, "only {interrupted} steps were seen");
}

/// The same in the middle of writing files: some are new already, one is half the user's.
#[tokio::test]
async fn partial_work_tree_is_finished_unless_edited() {
    let change = Change::new().await;
    let commit = change.land().await.unwrap().oid;
    let repo = &change.repo;
    let half_way = || {
        repo.git(["reset", "-q", "--hard", change.base.as_str()]);
        repo.git(["update-ref", "refs/heads/main", commit.as_str()]);
        repo.write("a", "1\ntwo\n3\n");
        repo.remove("gone");
        repo.remove("becomes-dir");
        std::fs::create_dir(repo.top.join("becomes-dir")).unwrap();
    };
    half_way();
    assert_eq!(
        change.land().await.unwrap(),
        Commit {
            oid: commit.clone(),
            landed: Landed::Before
        }
    );
    change.assert_landed(&commit).await;

    // git writes a file in place: killed at it, it leaves nothing, an empty file, or the beginning.
    for beginning in [None, Some(""), Some("1\ntw")] {
        half_way();
        match beginning {
            None => repo.remove("a"),
            Some(text) => repo.write("a", text),
        }
        change.land().await.unwrap();
        change.assert_landed(&commit).await;
    }
    half_way();
    repo.write("a", "1\ntwo\n3\nand mine\n");
    assert!(matches!(change.land().await, Err(RepoError::Dirty { .. })));

    half_way();
    repo.write("run.sh", "edited after the crash\n");
    assert!(
        matches!(change.land().await, Err(RepoError::Dirty { paths }) if paths[0].to_str() == Some("run.sh"))
    );
    assert_eq!(repo.read("run.sh"), "edited after the crash\n");
    assert_eq!(repo.read("dir/only"), "o\n", "nothing was touched");
    repo.write("run.sh", "#!\n");
    change.land().await.unwrap();
    change.assert_landed(&commit).await;
}
