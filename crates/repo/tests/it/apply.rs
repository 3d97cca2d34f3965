//! A judged patch in the user's work tree: all of its files or none, and nothing of the user's is written over.

#![expect(clippy::disallowed_methods, reason = "the tests change files by hand")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crucible_model::{Digest, RepoPath};
use crucible_patch::parse;
use crucible_repo::{
    AppliedTree, ApplyError, ChangeStatus, DirtyKind, EditObstacle, EditRecovery, MAX_TOUCHED,
    RepoError, TreeEditError,
};

use crate::common::Repo;

const PATCH: &str = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n\
    diff --git a/dir/gone.txt b/dir/gone.txt\ndeleted file mode 100644\n--- a/dir/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n\
    diff --git a/made/new.txt b/made/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/made/new.txt\n@@ -0,0 +1 @@\n+new\n";

fn repository() -> Repo {
    Repo::with(&[
        ("a.txt", "one\ntwo\n"),
        ("dir/gone.txt", "gone\n"),
        ("other.txt", "other\n"),
    ])
}

async fn apply_from(repo: &Repo, directory: &Path, patch: &str) -> Result<AppliedTree, ApplyError> {
    let git = repo.try_open(directory).await.unwrap();
    let paths: Vec<RepoPath> = parse(patch.as_bytes())
        .unwrap()
        .paths()
        .into_iter()
        .cloned()
        .collect();
    let (_, index) = git
        .patch_index(&git.opened_at().commit, &paths, MAX_TOUCHED)
        .await
        .unwrap();
    let produced = git
        .changes_after_patch(index, patch.as_bytes())
        .await
        .unwrap();
    let journal = repo.dir.path().join("journal.json");
    git.apply_to_work_tree(&produced, &journal, Digest::compute(patch.as_bytes()))
        .await
}

async fn apply(repo: &Repo, patch: &str) -> Result<AppliedTree, ApplyError> {
    apply_from(repo, &repo.top, patch).await
}

fn path(text: &str) -> RepoPath {
    text.parse().unwrap()
}

/// Every file of the work tree with its bytes and its mode.
fn work_tree(repo: &Repo) -> Vec<(String, u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![repo.top.clone()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            if path.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            if meta.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(&repo.top).unwrap().display().to_string();
            let bytes = if meta.is_symlink() {
                Vec::new()
            } else {
                std::fs::read(&path).unwrap()
            };
            found.push((name, meta.permissions().mode(), bytes));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn apply_changes_files_and_stages_nothing() {
    let repo = repository();
    let applied = apply(&repo, PATCH).await.unwrap();
    let files: Vec<_> = applied
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.status))
        .collect();
    use ChangeStatus::{Added, Deleted, Modified};
    assert_eq!(
        files,
        [
            ("a.txt", Modified),
            ("dir/gone.txt", Deleted),
            ("made/new.txt", Added)
        ]
    );
    let digests: Vec<_> = applied.files.iter().map(|file| file.after).collect();
    assert_eq!(
        digests,
        [
            Some(Digest::compute(b"ONE\ntwo\n")),
            None,
            Some(Digest::compute(b"new\n"))
        ]
    );
    assert_eq!(repo.read("a.txt"), "ONE\ntwo\n");
    assert_eq!(repo.read("made/new.txt"), "new\n");
    assert!(
        !repo.top.join("dir").exists(),
        "a directory that is empty now goes too"
    );
    assert_eq!(
        repo.git(["status", "--porcelain"]),
        " M a.txt\n D dir/gone.txt\n?? made/\n"
    );
    assert!(!repo.dir.path().join("journal.json").exists());
}

#[tokio::test]
async fn apply_works_from_subdirectory_and_linked_tree() {
    let repo = repository();
    apply_from(&repo, &repo.top.join("dir"), PATCH)
        .await
        .unwrap();
    assert_eq!(repo.read("a.txt"), "ONE\ntwo\n");

    let repo = repository();
    let linked = repo.dir.path().canonicalize().unwrap().join("linked");
    repo.git(["worktree", "add", "-q", linked.to_str().unwrap()]);
    apply_from(&repo, &linked.join("dir"), PATCH).await.unwrap();
    assert_eq!(
        std::fs::read_to_string(linked.join("a.txt")).unwrap(),
        "ONE\ntwo\n"
    );
    assert_eq!(repo.read("a.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn dirty_file_is_named_and_nothing_changes() {
    type Own = fn(&Repo);
    let cases: [(&str, &str, DirtyKind, Own); 9] = [
        ("an edit", "a.txt", DirtyKind::Changed, |repo| {
            repo.write("a.txt", "one\ntwo\nmine\n")
        }),
        ("a removal", "a.txt", DirtyKind::Changed, |repo| {
            repo.remove("a.txt")
        }),
        ("a staged edit", "a.txt", DirtyKind::Changed, |repo| {
            repo.write("a.txt", "one\ntwo\nmine\n");
            repo.git(["add", "a.txt"]);
            repo.write("a.txt", "one\ntwo\n");
        }),
        (
            "an edit of the file that goes",
            "dir/gone.txt",
            DirtyKind::Changed,
            |repo| {
                repo.write("dir/gone.txt", "mine\n");
            },
        ),
        (
            "a file that is not tracked",
            "made/new.txt",
            DirtyKind::Untracked,
            |repo| {
                repo.write("made/new.txt", "mine\n");
            },
        ),
        ("a mode", "a.txt", DirtyKind::Changed, |repo| {
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(repo.top.join("a.txt"), mode).unwrap();
        }),
        (
            "an edit that the index does not look at",
            "a.txt",
            DirtyKind::Hidden,
            |repo| {
                repo.git(["update-index", "--assume-unchanged", "a.txt"]);
                repo.write("a.txt", "one\ntwo\nmine\n");
            },
        ),
        (
            "a file out of a sparse checkout",
            "a.txt",
            DirtyKind::Hidden,
            |repo| {
                repo.git(["update-index", "--skip-worktree", "a.txt"]);
            },
        ),
        (
            "an edit of the same size and time",
            "a.txt",
            DirtyKind::Changed,
            |repo| {
                // git believes what the index says of size and time; this one says that it looked.
                let file = repo.top.join("a.txt");
                let time = file.metadata().unwrap().modified().unwrap();
                repo.git(["config", "core.trustctime", "false"]);
                repo.git(["config", "core.checkStat", "minimal"]);
                repo.write("a.txt", "eno\ntwo\n");
                std::fs::File::options()
                    .write(true)
                    .open(&file)
                    .unwrap()
                    .set_modified(time)
                    .unwrap();
            },
        ),
    ];
    for (what, at, kind, own) in cases {
        let repo = repository();
        own(&repo);
        let before = work_tree(&repo);
        match apply(&repo, PATCH).await {
            Err(ApplyError::Dirty { files }) => {
                let found: Vec<_> = files
                    .iter()
                    .map(|entry| (entry.path.to_str().unwrap(), entry.kind))
                    .collect();
                assert_eq!(found, [(at, kind)], "{what}");
            }
            other => panic!("{what}: {other:?}"),
        }
        assert_eq!(work_tree(&repo), before, "{what}");
    }
}

#[tokio::test]
async fn obstacle_blocks_apply_completely() {
    type Own = fn(&Repo);
    let cases: [(&str, &str, EditObstacle, Own); 4] = [
        (
            "a file that is ignored",
            "made/new.txt",
            EditObstacle::InTheWay,
            |repo| {
                repo.write(".git/info/exclude", "*.txt\n");
                repo.write("made/new.txt", "mine\n");
            },
        ),
        (
            "a directory behind a link",
            "made/new.txt",
            EditObstacle::Link,
            |repo| {
                std::fs::create_dir(repo.dir.path().join("elsewhere")).unwrap();
                symlink(repo.dir.path().join("elsewhere"), repo.top.join("made")).unwrap();
            },
        ),
        (
            "a file in the place of the directory",
            "made/new.txt",
            EditObstacle::InTheWay,
            |repo| {
                repo.write("made", "mine\n");
            },
        ),
        (
            "a directory in the place of the file",
            "made/new.txt",
            EditObstacle::InTheWay,
            |repo| {
                std::fs::create_dir_all(repo.top.join("made/new.txt")).unwrap();
            },
        ),
    ];
    for (what, at, expected, own) in cases {
        let repo = repository();
        own(&repo);
        let before = work_tree(&repo);
        match apply(&repo, PATCH).await {
            Err(ApplyError::Edit(TreeEditError::Blocked { path, why })) => {
                assert_eq!((path.as_str(), why), (at, expected), "{what}");
            }
            other => panic!("{what}: {other:?}"),
        }
        assert_eq!(work_tree(&repo), before, "{what}");
        let outside = repo
            .dir
            .path()
            .join("elsewhere")
            .read_dir()
            .map(Iterator::count);
        assert_eq!(outside.unwrap_or(0), 0, "{what}");
    }
}

#[tokio::test]
async fn apply_preserves_line_ends() {
    // Checked out with CRLF: the new content has CRLF too, and so has the new file.
    let repo = repository();
    repo.git(["config", "core.autocrlf", "true"]);
    for file in ["a.txt", "dir/gone.txt"] {
        repo.remove(file);
    }
    repo.git(["checkout", "-q", "--", "."]);
    assert_eq!(repo.read("a.txt"), "one\r\ntwo\r\n");
    apply(&repo, PATCH).await.unwrap();
    assert_eq!(repo.read("a.txt"), "ONE\r\ntwo\r\n");
    assert_eq!(repo.read("made/new.txt"), "new\r\n");
    assert_eq!(
        repo.git(["diff", "--numstat"]),
        "1\t1\ta.txt\n0\t1\tdir/gone.txt\n"
    );

    // The setting came after the checkout: git takes LF for unchanged, and LF stays.
    let repo = repository();
    repo.git(["config", "core.autocrlf", "true"]);
    apply(&repo, PATCH).await.unwrap();
    assert_eq!(repo.read("a.txt"), "ONE\ntwo\n");

    // Half of each: nobody can say what the new content would be.
    let repo = repository();
    repo.git(["config", "core.autocrlf", "true"]);
    repo.write("a.txt", "one\r\ntwo\n");
    let refused = apply(&repo, PATCH).await;
    assert!(
        matches!(&refused, Err(ApplyError::Dirty { files }) if files.len() == 1),
        "{refused:?}"
    );
    assert_eq!(repo.read("a.txt"), "one\r\ntwo\n");
}

#[tokio::test]
async fn apply_preserves_modes() {
    let repo = repository();
    let mode = |name: &str| repo.top.join(name).metadata().unwrap().permissions().mode() & 0o777;
    for (name, bits) in [("run.sh", 0o755), ("own.sh", 0o700)] {
        repo.write(name, "#!/bin/sh\n");
        std::fs::set_permissions(repo.top.join(name), std::fs::Permissions::from_mode(bits))
            .unwrap();
    }
    repo.commit("programs");
    let patch = "diff --git a/own.sh b/own.sh\n--- a/own.sh\n+++ b/own.sh\n@@ -1 +1,2 @@\n #!/bin/sh\n+true\n\
                 diff --git a/run.sh b/walk.sh\nsimilarity index 100%\nrename from run.sh\nrename to walk.sh\n";
    apply(&repo, patch).await.unwrap();
    assert_eq!((mode("own.sh"), mode("walk.sh")), (0o700, 0o755));
    assert!(!repo.top.join("run.sh").exists());
}

#[tokio::test]
async fn filtered_file_is_not_removed() {
    let repo = repository();
    repo.write(".git/info/attributes", "dir/* filter=lfs\n");
    let delete = PATCH
        .split("diff --git ")
        .nth(2)
        .map(|section| format!("diff --git {section}"))
        .unwrap();
    let refused = apply(&repo, &delete).await;
    assert!(
        matches!(refused, Err(ApplyError::Repo(RepoError::Rewritten { .. }))),
        "{refused:?}"
    );
    assert_eq!(repo.read("dir/gone.txt"), "gone\n");
}

/// A journal as a process leaves it that was killed while it changed `a.txt`.
fn journal(repo: &Repo, purpose: &str, stage: &str) {
    let text = serde_json::json!({
        "schema_version": "crucible-tree-edit-v1", "stage": stage, "purpose": Digest::compute(purpose.as_bytes()),
        "token": "0".repeat(32), "made": [], "entries": [{
            "path": "a.txt", "before": Digest::compute(b"one\ntwo\n"), "after": Digest::compute(b"ONE\ntwo\n"),
        }],
    });
    std::fs::write(repo.dir.path().join("journal.json"), text.to_string()).unwrap();
}

#[tokio::test]
async fn interrupted_apply_is_finished_or_undone() {
    let patch = PATCH
        .split("diff --git ")
        .nth(1)
        .map(|section| format!("diff --git {section}"))
        .unwrap();
    let beside = format!(".crucible-edit-{}-0.new", "0".repeat(32));

    // Killed after the exchange: the file is new, the old content stands beside it.
    let repo = repository();
    repo.write("a.txt", "ONE\ntwo\n");
    repo.write(&beside, "one\ntwo\n");
    journal(&repo, &patch, "ready");
    let applied = apply(&repo, &patch).await.unwrap();
    assert_eq!(applied.recovered.outcome, EditRecovery::Finished);
    assert_eq!(applied.files[0].path, path("a.txt"));
    assert_eq!(repo.git(["status", "--porcelain"]), " M a.txt\n");

    // Killed before it.
    let repo = repository();
    repo.write(&beside, "ONE\n");
    journal(&repo, &patch, "staging");
    let applied = apply(&repo, &patch).await.unwrap();
    assert_eq!(applied.recovered.outcome, EditRecovery::RolledBack);
    assert_eq!(repo.git(["status", "--porcelain"]), " M a.txt\n");

    // A record of another patch is not believed, and is kept.
    let repo = repository();
    journal(&repo, "another", "ready");
    let refused = apply(&repo, &patch).await;
    assert!(
        matches!(
            refused,
            Err(ApplyError::Edit(TreeEditError::Journal { .. }))
        ),
        "{refused:?}"
    );
    assert!(repo.dir.path().join("journal.json").exists());
    assert_eq!(repo.read("a.txt"), "one\ntwo\n");
}
