//! Finding a repository, or saying what is wrong with the place.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests break repositories by hand"
)]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crucible_host::env::Environment;
use crucible_repo::{Branch, Git, RepoError};

use crate::common::{Repo, environment, sandbox};

#[tokio::test]
async fn a_repository_is_found_from_below() {
    let repo = Repo::with(&[("src/deep/a.rs", "a\n")]);
    for below in ["", "src", "src/deep", "src/deep/a.rs", ".git"] {
        let git = repo.try_open(&repo.top.join(below)).await.unwrap();
        assert_eq!(git.top(), repo.top);
        let head = git.head().await.unwrap();
        assert_eq!(head.commit, repo.oid("HEAD"));
        assert_eq!(head.tree, repo.oid("HEAD^{tree}"));
        assert_eq!(
            git.branch().await.unwrap(),
            Branch::Named("main".to_owned())
        );
    }
    repo.git(["checkout", "-q", "--detach"]);
    assert_eq!(repo.open().await.branch().await.unwrap(), Branch::Detached);
}

#[tokio::test]
async fn invalid_repositories_have_distinct_errors() {
    let repo = Repo::empty();
    assert!(
        matches!(repo.try_open(&repo.top).await, Err(RepoError::Empty { path }) if path == repo.top)
    );
    let outside = tempfile::tempdir().unwrap();
    assert!(matches!(
        repo.try_open(outside.path()).await,
        Err(RepoError::NotARepository { .. })
    ));
    assert!(matches!(
        repo.try_open(Path::new("/no/such/place")).await,
        Err(RepoError::NotThere { .. })
    ));
    std::fs::write(outside.path().join("file"), "").unwrap();
    let below = repo.try_open(&outside.path().join("file/below")).await;
    assert!(matches!(below, Err(RepoError::NotThere { .. })));
    repo.git(["clone", "-q", "--bare", ".", "../bare.git"]);
    let bare = repo.top.parent().unwrap().join("bare.git");
    for path in [bare.clone(), bare.join("refs")] {
        assert!(
            matches!(repo.try_open(&path).await, Err(RepoError::Bare { path }) if path == bare)
        );
    }
    repo.git(["config", "core.bare", "true"]);
    assert!(matches!(
        repo.try_open(&repo.top).await,
        Err(RepoError::Bare { .. })
    ));
    for error in [
        RepoError::Empty { path: "/r".into() },
        RepoError::NotARepository { path: "/r".into() },
        RepoError::NotThere { path: "/r".into() },
        RepoError::Bare { path: "/r".into() },
    ] {
        let text = error.to_string();
        assert!(
            text.contains("/r") && text.contains(';'),
            "says where and what to do: {text}"
        );
    }
}

#[tokio::test]
async fn a_missing_or_old_git_is_named() {
    let repo = Repo::with(&[("a", "a\n")]);
    let bin = repo.dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let env = Environment::from_pairs([("PATH", bin.as_os_str())], "/");
    let error = Git::open(sandbox(), &env, &repo.top).await.unwrap_err();
    assert!(
        matches!(&error, RepoError::GitMissing { searched } if *searched == [bin.clone()]),
        "{error}"
    );

    // A git that reads no settings from its environment would run what the repository names.
    let program = bin.join("git");
    let script = "#!/bin/sh\ncase \"$*\" in *version*) echo git version 2.17.1;; *) printf 'local\\0core.bare\\nfalse\\0';; esac\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = Git::open(sandbox(), &env, &repo.top).await.unwrap_err();
    assert!(
        matches!(&error, RepoError::GitTooOld { found } if found == "git version 2.17.1"),
        "{error}"
    );
}

#[tokio::test]
async fn linked_work_tree_opens_separately() {
    let repo = Repo::with(&[("a", "a\n")]);
    repo.git(["worktree", "add", "-q", "-b", "side", "../linked"]);
    let linked = repo.top.parent().unwrap().join("linked");
    let git = repo.try_open(&linked).await.unwrap();
    assert_eq!(git.top(), linked);
    assert_eq!(
        git.branch().await.unwrap(),
        Branch::Named("side".to_owned())
    );
    assert!(git.status().await.unwrap().is_empty());
    assert_eq!(git.tracked_files().await.unwrap().len(), 1);
    // The bare repository behind a work tree is no obstacle.
    repo.git(["clone", "-q", "--bare", ".", "../bare.git"]);
    let bare = repo.top.parent().unwrap().join("bare.git");
    repo.git_in(
        &bare,
        ["worktree", "add", "-q", "-b", "other", "../of-bare"],
    );
    let git = repo
        .try_open(&repo.top.parent().unwrap().join("of-bare"))
        .await
        .unwrap();
    assert!(git.status().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_submodule_is_a_repository_of_its_own() {
    let inner = Repo::with(&[("lib", "lib\n")]);
    let outer = Repo::with(&[("a", "a\n")]);
    let source = inner.top.to_str().unwrap();
    outer.git([
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        source,
        "sub",
    ]);
    outer.commit("with a submodule");
    let git = outer.try_open(&outer.top.join("sub")).await.unwrap();
    assert_eq!(git.top(), outer.top.join("sub"));
    assert!(git.status().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_git_directory_elsewhere_is_refused() {
    let victim = Repo::with(&[("secret", "s\n")]);
    let dir = tempfile::tempdir().unwrap();
    let evil = dir.path().join("evil");
    std::fs::create_dir(&evil).unwrap();
    let refused = async || {
        matches!(
            victim.try_open(&evil).await,
            Err(RepoError::GitDirElsewhere { .. })
        )
    };

    std::fs::write(
        evil.join(".git"),
        format!("gitdir: {}/.git\n", victim.top.display()),
    )
    .unwrap();
    assert!(refused().await, "another repository's git directory");
    std::fs::write(evil.join(".git"), "gitdir: /nowhere\n").unwrap();
    assert!(refused().await, "no git directory");
    std::fs::write(evil.join(".git"), "nonsense").unwrap();
    assert!(refused().await, "nonsense");
    std::fs::remove_file(evil.join(".git")).unwrap();
    symlink(victim.top.join(".git"), evil.join(".git")).unwrap();
    assert!(refused().await, "a link");

    // A work tree that its repository knows under another path.
    victim.git(["worktree", "add", "-q", "-b", "side", "../linked"]);
    std::fs::remove_file(evil.join(".git")).unwrap();
    std::fs::copy(
        victim.top.parent().unwrap().join("linked/.git"),
        evil.join(".git"),
    )
    .unwrap();
    assert!(
        refused().await,
        "a work tree registered for another directory"
    );
}

#[tokio::test]
async fn a_common_directory_elsewhere_is_refused() {
    let victim = Repo::with(&[("secret", "s\n")]);
    let evil = Repo::with(&[("a", "a\n")]);
    std::fs::write(
        evil.top.join(".git/commondir"),
        format!("{}/.git\n", victim.top.display()),
    )
    .unwrap();
    assert!(matches!(
        evil.try_open(&evil.top).await,
        Err(RepoError::GitDirElsewhere { .. })
    ));
}

#[tokio::test]
async fn a_work_tree_elsewhere_is_refused() {
    let repo = Repo::with(&[("a", "a\n")]);
    let elsewhere = tempfile::tempdir().unwrap();
    let include = repo.home().join("included");
    std::fs::write(
        &include,
        format!("[core]\n\tworktree = {}\n", elsewhere.path().display()),
    )
    .unwrap();
    repo.git(["config", "include.path", include.to_str().unwrap()]);
    assert!(matches!(
        repo.try_open(&repo.top).await,
        Err(RepoError::WorkTreeElsewhere { .. })
    ));
    std::fs::write(&include, "[core]\n\tworktree = ..\n").unwrap();
    assert_eq!(
        repo.open().await.top(),
        repo.top,
        "one that names its own place is fine"
    );
}

#[tokio::test]
async fn users_environment_does_not_reach_git() {
    let victim = Repo::with(&[("v", "v\n")]);
    let repo = Repo::with(&[("a", "a\n")]);
    let mut pairs: Vec<_> = environment(&repo.home())
        .pairs()
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .collect();
    for (name, value) in [
        ("GIT_DIR", victim.top.join(".git")),
        ("GIT_WORK_TREE", victim.top.clone()),
        ("GIT_INDEX_FILE", "/x".into()),
    ] {
        pairs.push((name.into(), value.into()));
    }
    let git = Git::open(sandbox(), &Environment::from_pairs(pairs, "/"), &repo.top)
        .await
        .unwrap();
    assert_eq!(git.head().await.unwrap().commit, repo.oid("HEAD"));
    assert!(git.status().await.unwrap().is_empty());
}

#[tokio::test]
async fn identity_is_from_repository_or_user() {
    let repo = Repo::with(&[("a", "a\n")]);
    let identity = repo.open().await.identity().await.unwrap();
    assert_eq!(
        (identity.name.as_str(), identity.email.as_str()),
        ("A Person", "person@example.org")
    );
    repo.git(["config", "--unset", "user.name"]);
    repo.git(["config", "--unset", "user.email"]);
    assert!(matches!(
        repo.open().await.identity().await,
        Err(RepoError::NoIdentity)
    ));
    std::fs::write(
        repo.home().join(".gitconfig"),
        "[user]\n\tname = \"The <User>\"\n\temail = user@example.org\n",
    )
    .unwrap();
    let identity = repo.open().await.identity().await.unwrap();
    assert_eq!(
        (identity.name.as_str(), identity.email.as_str()),
        ("The User", "user@example.org")
    );
}

#[tokio::test]
async fn a_sha256_repository_works() {
    let repo = Repo::with(&[("a", "a\n")]);
    let other = repo.top.parent().unwrap().join("sha256");
    repo.git([
        "init",
        "-q",
        "--object-format=sha256",
        other.to_str().unwrap(),
    ]);
    std::fs::write(other.join("f"), "f\n").unwrap();
    repo.git_in(&other, ["add", "f"]);
    repo.git_in(
        &other,
        [
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@x",
            "commit",
            "-q",
            "-m",
            "m",
        ],
    );
    let git = repo.try_open(&other).await.unwrap();
    assert_eq!(git.head().await.unwrap().commit.as_str().len(), 64);
    assert_eq!(git.tracked_files().await.unwrap()[0].size, 2);
}
