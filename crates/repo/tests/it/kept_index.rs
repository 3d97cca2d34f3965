//! One handle, asked again and again: it sees whatever changed in between, and asks git no more than it must.

use std::path::PathBuf;

use crucible_repo::{Branch, DirtyKind, Git, RepoError};

use crate::common::{Repo, counted};

async fn changed(git: &Git) -> Vec<(PathBuf, DirtyKind)> {
    let now = git.tracked_state().await.unwrap();
    now.changed
        .into_iter()
        .map(|entry| (entry.path, entry.kind))
        .collect()
}

#[tokio::test]
async fn flags_set_after_listing_hide_nothing() {
    let repo = Repo::with(&[("a", "a\n"), ("b", "b\n")]);
    let git = repo.open().await;
    assert_eq!(changed(&git).await, []);
    assert_eq!(git.tracked_files().await.unwrap().len(), 2);
    repo.git(["update-index", "--skip-worktree", "a"]);
    repo.write("a", "changed\n");
    assert_eq!(changed(&git).await, [("a".into(), DirtyKind::Hidden)]);
    repo.git(["update-index", "--no-skip-worktree", "a"]);
    assert_eq!(changed(&git).await, [("a".into(), DirtyKind::Changed)]);
    repo.write("c", "c\n");
    repo.git(["add", "c"]);
    assert_eq!(git.tracked_files().await.unwrap().len(), 3);
}

#[tokio::test]
async fn removed_file_of_sparse_tree_is_noticed() {
    let repo = Repo::with(&[("a", "a\n"), ("b", "b\n")]);
    repo.git(["config", "core.sparseCheckout", "true"]);
    repo.git(["update-index", "--skip-worktree", "a"]);
    let git = repo.open().await;
    // As long as the file is there, git looks at it whatever the flag says.
    assert_eq!(changed(&git).await, []);
    repo.remove("a");
    assert_eq!(changed(&git).await, [("a".into(), DirtyKind::Hidden)]);
}

#[tokio::test]
async fn checked_out_branch_of_any_name_is_found() {
    let repo = Repo::with(&[("a", "a\n")]);
    let git = repo.open().await;
    let named = |name: &str| Branch::Named(name.to_owned());
    assert_eq!(git.tracked_state().await.unwrap().branch, named("main"));
    for name in ["(detached)", "refs/heads/main", "side/\u{e9}"] {
        repo.git(["checkout", "-q", "-b", name]);
        assert_eq!(git.tracked_state().await.unwrap().branch, named(name));
    }
    repo.write("a", "b\n");
    repo.commit("second");
    repo.write("untracked", "x");
    repo.git(["checkout", "-q", "--detach"]);
    let now = git.tracked_state().await.unwrap();
    assert_eq!((now.branch, now.changed), (Branch::Detached, Vec::new()));
    assert_eq!(now.commit, git.head().await.unwrap().commit);
    assert_ne!(now.commit, git.opened_at().commit);
    repo.git(["checkout", "-q", "--orphan", "empty"]);
    assert!(matches!(
        git.tracked_state().await,
        Err(RepoError::Empty { .. })
    ));
}

#[tokio::test]
async fn unchanged_index_is_listed_once() {
    let repo = Repo::with(&[("a", "a\n"), ("dir/b", "b\n")]);
    assert_eq!(changed(&repo.open().await).await, []);
    repo.settle();
    let (git, calls) = counted(&repo, &repo.top).await;
    for _ in 0..3 {
        assert_eq!(changed(&git).await, []);
        assert_eq!(calls(), 0, "nothing differs, and the index tells");
    }
    git.tracked_files().await.unwrap();
    assert_eq!(calls(), 0);
    git.tracked_files().await.unwrap();
    git.tracked_names().await.unwrap();
    git.submodules().await.unwrap();
    assert_eq!(git.name(), "repo");
    assert_eq!(calls(), 0);
    git.guards().await;
    assert_eq!(calls(), 1, "the settings, which may have changed");
    repo.git(["config", "core.hooksPath", "tools"]);
    git.guards().await;
    assert_eq!(calls(), 1, "the settings, with the hooks that they name");
    repo.git(["update-index", "--skip-worktree", "a"]);
    changed(&git).await;
    assert_eq!(calls(), 1, "the status");
    git.identity().await.unwrap();
    assert_eq!(calls(), 1, "name and address together");
}

#[tokio::test]
async fn split_index_is_never_cached() {
    let repo = Repo::with(&[("a", "a\n")]);
    repo.git(["update-index", "--split-index"]);
    let (git, calls) = counted(&repo, &repo.top).await;
    for _ in 0..2 {
        changed(&git).await;
        assert_eq!(calls(), 2, "the status and the list");
    }
}
