//! What is tried is what lies in the work tree afterwards, whatever git's attributes say.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests compare files by their bytes"
)]

use crucible_model::ByteLimit;
use crucible_patch::parse;
use crucible_repo::{Branch, Git, LandRequest, ProducedTree, RepoError, check_agreement};

use crate::common::Repo;

const PATCH: &[u8] = b"diff --git a/dir/a.txt b/dir/a.txt\n--- a/dir/a.txt\n+++ b/dir/a.txt\n@@ -1,2 +1,2 @@\n-one $Id$\n+ONE $Id$\n two\n\
    diff --git a/dir/new.txt b/dir/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/dir/new.txt\n@@ -0,0 +1 @@\n+new\n";

/// A repository with these attributes in a commit, checked out as they say.
fn repository(attributes: &str) -> Repo {
    let repo = Repo::with(&[
        ("dir/a.txt", "one $Id$\ntwo\n"),
        ("dir/.gitattributes", attributes),
    ]);
    refresh(&repo);
    repo
}

fn refresh(repo: &Repo) {
    std::fs::remove_file(repo.top.join("dir/a.txt")).unwrap();
    repo.git(["checkout", "-q", "HEAD", "--", "dir/a.txt"]);
}

async fn produce(repo: &Repo, patch: &[u8]) -> (Git, ProducedTree) {
    let git = repo.open().await;
    let produced = git
        .tree_after_patch(&repo.oid("HEAD"), patch)
        .await
        .unwrap();
    (git, produced)
}

async fn findings(git: &Git, produced: &ProducedTree, raw: &[u8]) -> Vec<String> {
    let patch = parse(raw).unwrap();
    let paths: Vec<_> = patch.paths().into_iter().cloned().collect();
    let before = git
        .files_at(&produced.base, &paths, ByteLimit(1 << 20))
        .await
        .unwrap();
    let verdict = check_agreement(raw, &patch, &before, produced);
    verdict
        .findings()
        .iter()
        .map(|finding| format!("{} {}", finding.code, finding.subject))
        .collect()
}

async fn land(repo: &Repo, git: &Git, produced: &ProducedTree) -> Result<(), RepoError> {
    let run = "20260131t093000z-1f2e3d4c5b6a".parse().unwrap();
    let request = LandRequest {
        run: &run,
        base: &repo.oid("HEAD"),
        branch: &Branch::Named("main".to_owned()),
        patch: PATCH,
        tree: &produced.tree,
        message: &format!("change\n\nCrucible-Run: {run}\n"),
        identity: &git.identity().await.unwrap(),
        at: "2026-01-31T09:30:00Z".parse().unwrap(),
        signature: None,
    };
    git.land(&request).await.map(drop)
}

/// Tries and lands the patch; the bytes have to be the same. Gives those of the changed file.
async fn tried_and_landed(repo: &Repo) -> String {
    let (git, produced) = produce(repo, PATCH).await;
    assert_eq!(findings(&git, &produced, PATCH).await, [""; 0]);
    let tried = produced.files_checked_out();
    land(repo, &git, &produced).await.unwrap();
    for (path, bytes) in &tried {
        assert_eq!(
            *bytes,
            std::fs::read(repo.top.join(path)).unwrap(),
            "{path}"
        );
    }
    assert_eq!(tried.len(), 2);
    assert_eq!(
        repo.git(["status", "--porcelain"])
            .replace("?? dir/.gitattributes\n", ""),
        ""
    );
    String::from_utf8(tried[&"dir/a.txt".parse().unwrap()].clone()).unwrap()
}

#[tokio::test]
async fn line_ends_are_tested_as_landed() {
    assert_eq!(
        tried_and_landed(&repository("*.md text\n")).await,
        "ONE $Id$\ntwo\n"
    );
    assert_eq!(
        tried_and_landed(&repository("*.txt text=auto\n")).await,
        "ONE $Id$\ntwo\n"
    );
    assert_eq!(
        tried_and_landed(&repository("*.txt text eol=crlf\n")).await,
        "ONE $Id$\r\ntwo\r\n"
    );
    assert_eq!(
        tried_and_landed(&repository("*.txt eol=crlf -text\n")).await,
        "ONE $Id$\ntwo\n"
    );
    let expanded = tried_and_landed(&repository("*.txt ident\n")).await;
    assert!(
        expanded.starts_with("ONE $Id: ") && expanded.ends_with(" $\ntwo\n"),
        "{expanded}"
    );
}

#[tokio::test]
async fn attributes_and_settings_outside_the_commit_count_too() {
    let crlf = "ONE $Id$\r\ntwo\r\n";
    let plain = || Repo::with(&[("dir/a.txt", "one $Id$\ntwo\n")]);
    let repo = plain();
    repo.git(["config", "core.autocrlf", "true"]);
    refresh(&repo);
    assert_eq!(tried_and_landed(&repo).await, crlf, "core.autocrlf");
    let repo = plain();
    repo.write(".git/info/attributes", "* text eol=crlf\n");
    refresh(&repo);
    assert_eq!(tried_and_landed(&repo).await, crlf, "info/attributes");
    let repo = plain();
    repo.write("dir/.gitattributes", "* text eol=crlf\n");
    refresh(&repo);
    assert_eq!(
        tried_and_landed(&repo).await,
        crlf,
        "a file that git does not track"
    );
}

#[tokio::test]
async fn filtered_or_encoded_path_is_refused() {
    for (attributes, message) in [
        ("*.txt filter=lfs diff=lfs merge=lfs -text\n", "filter=lfs"),
        (
            "* working-tree-encoding=ISO-8859-1\n",
            "working-tree-encoding=ISO-8859-1",
        ),
    ] {
        let repo = repository(attributes);
        // A tree without attributes in the place of the files would hide them.
        let empty = repo.git(["hash-object", "-t", "tree", "-w", "/dev/null"]);
        repo.git(["config", "attr.tree", empty.trim()]);
        let base = repo.oid("HEAD");
        let (git, produced) = produce(&repo, PATCH).await;
        let found = findings(&git, &produced, PATCH).await;
        assert_eq!(
            found,
            ["patch-attribute dir/a.txt", "patch-attribute dir/new.txt"],
            "{message}"
        );
        let patch = parse(PATCH).unwrap();
        let paths: Vec<_> = patch.paths().into_iter().cloned().collect();
        let before = git
            .files_at(&base, &paths, ByteLimit(1 << 20))
            .await
            .unwrap();
        assert!(
            check_agreement(PATCH, &patch, &before, &produced).findings()[0]
                .hint
                .contains(message)
        );
        let refused = land(&repo, &git, &produced).await;
        assert!(
            matches!(refused, Err(RepoError::Rewritten { .. })),
            "{message}: {refused:?}"
        );
        assert_eq!(repo.oid("HEAD"), base);
        assert!(!repo.top.join("dir/new.txt").exists());
    }
    let unset = repository("*.txt filter=lfs\n*.txt -filter\n");
    tried_and_landed(&unset).await;
}

#[tokio::test]
async fn filter_added_after_trial_stops_landing() {
    let repo = repository("*.md text\n");
    let (git, produced) = produce(&repo, PATCH).await;
    repo.write(".git/info/attributes", "*.txt filter=late\n");
    assert!(matches!(
        land(&repo, &git, &produced).await,
        Err(RepoError::Rewritten { .. })
    ));
    assert_eq!(repo.oid("HEAD"), produced.base);
}

#[tokio::test]
async fn attributes_need_a_separate_patch() {
    let alone: &[u8] = b"diff --git a/.gitattributes b/.gitattributes\nnew file mode 100644\n--- /dev/null\n+++ b/.gitattributes\n@@ -0,0 +1 @@\n+* eol=crlf\n";
    let repo = repository("*.md text\n");
    let (git, produced) = produce(&repo, alone).await;
    assert_eq!(findings(&git, &produced, alone).await, [""; 0]);
    let both = [alone, PATCH].concat();
    let (git, produced) = produce(&repo, &both).await;
    assert_eq!(
        findings(&git, &produced, &both).await,
        ["patch-attribute .gitattributes"]
    );
}
