//! The tree that a patch makes, beside the repository.

#![expect(clippy::disallowed_methods, reason = "the tests change files by hand")]

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crucible_model::RepoPath;
use crucible_patch::FileMode;
use crucible_repo::{ChangeStatus, MAX_TOUCHED, RepoError, TreeChange};

use crate::common::Repo;

/// Every file of the repository, git's own included, with its content.
fn everything(top: &Path) -> BTreeSet<(PathBuf, Vec<u8>)> {
    let mut found = BTreeSet::new();
    let mut todo = vec![top.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                todo.push(path);
            } else {
                found.insert((path.clone(), std::fs::read(&path).unwrap_or_default()));
            }
        }
    }
    found
}

#[tokio::test]
async fn produced_tree_equals_git_commit() {
    let repo = Repo::with(&[("a", "1\n2\n3\n"), ("gone", "x\n"), ("dir/b", "b\n")]);
    let base = repo.oid("HEAD");
    let patch = repo.diff(|repo| {
        repo.write("a", "1\ntwo\n3\n");
        repo.remove("gone");
        repo.write("new/c d", "c\n");
    });
    let git = repo.open().await;
    let before = everything(&repo.top);
    let produced = git.tree_after_patch(&base, &patch).await.unwrap();
    assert_eq!(everything(&repo.top), before);
    let changes: Vec<_> = produced
        .changes
        .iter()
        .map(|change| (change.path.to_str().unwrap(), change.status))
        .collect();
    use ChangeStatus::{Added, Deleted, Modified};
    assert_eq!(
        changes,
        [("a", Modified), ("gone", Deleted), ("new/c d", Added)]
    );
    let after = produced.files_after();
    assert_eq!(after[&"a".parse().unwrap()], b"1\ntwo\n3\n");
    assert!(!after.contains_key(&"gone".parse().unwrap()));

    repo.write("a", "1\ntwo\n3\n");
    repo.remove("gone");
    repo.write("new/c d", "c\n");
    repo.commit("by hand");
    assert_eq!(produced.tree, repo.oid("HEAD^{tree}"));
}

#[tokio::test]
async fn links_modes_and_submodules_are_reported() {
    let repo = Repo::with(&[("run.sh", "#!/bin/sh\n"), ("plain", "p\n")]);
    let base = repo.oid("HEAD");
    let commit = "1".repeat(40);
    let patch = format!(
        "diff --git a/evil b/evil\nnew file mode 120000\n--- /dev/null\n+++ b/evil\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n\
         diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n\
         diff --git a/plain b/plain\ndeleted file mode 100644\n--- a/plain\n+++ /dev/null\n@@ -1 +0,0 @@\n-p\n\
         diff --git a/plain b/plain\nnew file mode 120000\n--- /dev/null\n+++ b/plain\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n\
         diff --git a/sub b/sub\nnew file mode 160000\n--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n+Subproject commit {commit}\n"
    );
    let produced = repo
        .open()
        .await
        .tree_after_patch(&base, patch.as_bytes())
        .await
        .unwrap();
    let found: Vec<_> = produced
        .changes
        .iter()
        .map(|change| {
            (
                change.path.to_str().unwrap(),
                change.status,
                change.old_mode,
                change.new_mode,
            )
        })
        .collect();
    use ChangeStatus::{Added, Modified, TypeChanged};
    use FileMode::{Executable, Gitlink, Regular, Symlink};
    assert_eq!(
        found,
        [
            ("evil", Added, None, Some(Symlink)),
            ("plain", TypeChanged, Some(Regular), Some(Symlink)),
            ("run.sh", Modified, Some(Regular), Some(Executable)),
            ("sub", Added, None, Some(Gitlink)),
        ]
    );
    assert_eq!(
        produced.files_after()[&"evil".parse().unwrap()],
        b"/etc/passwd"
    );
}

#[tokio::test]
async fn git_refusal_is_quoted() {
    let repo = Repo::with(&[("a", "1\n2\n3\n")]);
    symlink("/tmp", repo.top.join("out")).unwrap();
    let base = repo.commit("a link");
    let git = repo.open().await;
    let before = everything(&repo.top);
    let patches: [&str; 8] = [
        "",
        "I would change line two.",
        "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-other\n+x\n 3\n",
        "diff --git a/missing b/missing\n--- a/missing\n+++ b/missing\n@@ -1 +1 @@\n-a\n+b\n",
        "diff --git a/../x b/../x\nnew file mode 100644\n--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/.git/hooks/post-commit b/.git/hooks/post-commit\nnew file mode 100755\n--- /dev/null\n+++ b/.git/hooks/post-commit\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/out/x b/out/x\nnew file mode 100644\n--- /dev/null\n+++ b/out/x\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n",
    ];
    for patch in patches {
        let error = git
            .tree_after_patch(&base, patch.as_bytes())
            .await
            .unwrap_err();
        assert!(
            matches!(&error, RepoError::PatchRefused { detail } if !detail.is_empty()),
            "{patch}: {error}"
        );
    }
    assert_eq!(everything(&repo.top), before);
}

#[tokio::test]
async fn patch_applies_from_subdirectory() {
    let repo = Repo::with(&[("sub/a", "1\n"), ("top", "t\n")]);
    let base = repo.oid("HEAD");
    let patch = repo.diff(|repo| repo.write("top", "T\n"));
    // From below, `git apply` on its own leaves such a patch out in silence.
    let git = repo.try_open(&repo.top.join("sub")).await.unwrap();
    assert_eq!(
        git.tree_after_patch(&base, &patch)
            .await
            .unwrap()
            .changes
            .len(),
        1
    );

    // A path that means something in git's list of alternates.
    let unusual_path = repo.dir.path().join("odd: \"place\"\n\u{e9}");
    std::fs::rename(&repo.top, &unusual_path).unwrap();
    let git = repo.try_open(&unusual_path).await.unwrap();
    assert_eq!(
        git.tree_after_patch(&base, &patch)
            .await
            .unwrap()
            .changes
            .len(),
        1
    );
}

#[tokio::test]
async fn settings_do_not_affect_patch() {
    let repo = Repo::with(&[("a", "1\n")]);
    let base = repo.oid("HEAD");
    for (key, value) in [
        ("apply.whitespace", "fix"),
        ("core.whitespace", "trailing-space,space-before-tab"),
        ("core.autocrlf", "true"),
    ] {
        repo.git(["config", key, value]);
    }
    let patch = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n 1\n+two  \t\n";
    let produced = repo
        .open()
        .await
        .tree_after_patch(&base, patch)
        .await
        .unwrap();
    assert_eq!(
        produced.files_after()[&"a".parse().unwrap()],
        b"1\ntwo  \t\n"
    );
}

/// What the index of a few paths gives has to be what the index of the whole tree gives.
async fn both_ways(repo: &Repo, patch: &str, paths: &[&str]) -> Result<Vec<TreeChange>, String> {
    let git = repo.open().await;
    let base = &git.opened_at().commit;
    let words = |error: RepoError| match error {
        RepoError::PatchRefused { .. } => "refused".to_owned(),
        other => panic!("{other}"),
    };
    let full_produced_tree = git
        .tree_after_patch(base, patch.as_bytes())
        .await
        .map_err(words);
    let paths: Vec<RepoPath> = paths.iter().map(|path| path.parse().unwrap()).collect();
    let (_, index) = git.patch_index(base, &paths, MAX_TOUCHED).await.unwrap();
    let part = git
        .changes_after_patch(index, patch.as_bytes())
        .await
        .map_err(words);
    let part_after = part.as_ref().ok().map(|part| part.after.clone());
    let whole_after = full_produced_tree
        .as_ref()
        .ok()
        .map(|whole| whole.after.clone());
    assert_eq!(part_after, whole_after, "{patch}");
    let part = part.map(|part| part.changes);
    assert_eq!(
        part,
        full_produced_tree.map(|whole| whole.changes),
        "{patch}"
    );
    part
}

#[tokio::test]
async fn partial_index_equals_whole_tree() {
    let repo = Repo::with(&[
        ("src/a.txt", "one\n"),
        ("src/deep/b.txt", "two\n"),
        ("src-b/c.txt", "three\n"),
        ("file", "four\n"),
        ("glob[a]*", "five\n"),
        (":(top)x/y", "six\n"),
    ]);
    symlink("src", repo.top.join("link")).unwrap();
    std::fs::set_permissions(
        repo.top.join("file"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    repo.git(["add", "-A"]);
    repo.git([
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{},sub", "1".repeat(40)),
    ]);
    repo.git(["commit", "-qm", "links and modules"]);
    let create = |path: &str| {
        format!(
            "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+new\n"
        )
    };
    let change = |path: &str, old: &str| {
        format!(
            "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+new\n"
        )
    };
    let rename = |from: &str, to: &str| {
        format!(
            "diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n"
        )
    };
    for (patch, paths) in [
        (change("src/a.txt", "one"), &["src/a.txt"][..]),
        (create("src/new/deep/x"), &["src/new/deep/x"]),
        (create("made/x") + &change("file", "four") + &change("src-b/c.txt", "three"), &["made/x", "file", "src-b/c.txt"]),
        (rename("file", "moved"), &["file", "moved"]),
        (rename("src/deep/b.txt", "src/deep"), &["src/deep/b.txt", "src/deep"]),
        (change("glob[a]*", "five"), &["glob[a]*"]),
        (change(":(top)x/y", "six"), &[":(top)x/y"]),
        ("diff --git a/file b/file\nold mode 100755\nnew mode 100644\n".to_owned(), &["file"]),
        ("diff --git a/file b/file\ndeleted file mode 100755\n--- a/file\n+++ /dev/null\n@@ -1 +0,0 @@\n-four\n".to_owned() + &create("file/below"), &["file", "file/below"]),
    ] {
        let changes = both_ways(&repo, &patch, paths).await;
        assert!(changes.is_ok_and(|changes| !changes.is_empty()), "{patch}");
    }
    for (patch, paths) in [
        // A directory of the tree in the place of the file, or a file in the place of the directory.
        (create("src"), &["src"][..]),
        (create("file/below"), &["file/below"]),
        (create("src/a.txt"), &["src/a.txt"]),
        (create("link/x"), &["link/x"]),
        (create("sub/x"), &["sub/x"]),
        (change("missing", "one"), &["missing"]),
        (change("src/a.txt", "other"), &["src/a.txt"]),
        (rename("missing", "moved"), &["missing", "moved"]),
        (rename("file", "src/deep"), &["file", "src/deep"]),
        // What the reader of the text did not see has no entry.
        (
            change("src/a.txt", "other") + &change("file", "four"),
            &["src/a.txt"],
        ),
    ] {
        assert_eq!(
            both_ways(&repo, &patch, paths).await,
            Err("refused".to_owned()),
            "{patch}"
        );
    }
    // Of what the reader did not see, git can make new things only, and those are found.
    let unseen = change("src/a.txt", "one") + &create("unseen");
    let changes = both_ways(&repo, &unseen, &["src/a.txt"]).await.unwrap();
    assert_eq!(
        changes
            .iter()
            .map(|change| change.path.to_str().unwrap())
            .collect::<Vec<_>>(),
        ["src/a.txt", "unseen"]
    );
    let git = repo.open().await;
    let (_, index) = git
        .patch_index(
            &git.opened_at().commit,
            &["src/a.txt".parse().unwrap()],
            MAX_TOUCHED,
        )
        .await
        .unwrap();
    let unseen = change("src/a.txt", "one") + &change("file", "four");
    let refused = git.changes_after_patch(index, unseen.as_bytes()).await;
    assert!(
        matches!(refused, Err(RepoError::PatchRefused { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn partial_index_handles_order_and_long_paths() {
    let long = format!("{0}/{0}", vec!["d".repeat(127); 16].join("/"));
    assert_eq!(long.len(), 4095);
    // Name by name `a/b` stands first, byte by byte `a-b` does.
    let paths = ["a-b", "a.b", "a/b", "a0", long.as_str()];
    let patch: String = paths
        .iter()
        .map(|path| {
            format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-old\n+new\n")
        })
        .collect();
    let repo = Repo::with(&[("a-b", "old\n")]);
    let sha256 = repo.top.parent().unwrap().join("sha256");
    repo.git([
        "init",
        "-q",
        "--object-format=sha256",
        sha256.to_str().unwrap(),
    ]);
    for top in [&repo.top, &sha256] {
        std::fs::write(top.join("a-b"), "old\n").unwrap();
        let old = repo.git_in(top, ["hash-object", "-w", "a-b"]);
        let old = old.trim();
        for path in paths {
            let entry = format!("100644,{old},{path}");
            repo.git_in(
                top,
                ["update-index", "--add", "--cacheinfo", entry.as_str()],
            );
        }
        repo.git_in(
            top,
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
        let git = repo.try_open(top).await.unwrap();
        let base = &git.opened_at().commit;
        let named: Vec<RepoPath> = paths.iter().map(|path| path.parse().unwrap()).collect();
        let (_, index) = git.patch_index(base, &named, MAX_TOUCHED).await.unwrap();
        let part = git
            .changes_after_patch(index, patch.as_bytes())
            .await
            .unwrap();
        let full_produced_tree = git.tree_after_patch(base, patch.as_bytes()).await.unwrap();
        assert_eq!(
            (part.changes.len(), &part.changes, &part.after),
            (
                paths.len(),
                &full_produced_tree.changes,
                &full_produced_tree.after
            )
        );
    }
}
