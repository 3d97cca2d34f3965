//! What differs from the last commit, what is tracked, and that nothing hides.

#![expect(clippy::disallowed_methods, reason = "the tests change files by hand")]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crucible_model::{ByteLimit, RepoPath};
use crucible_patch::FileMode;
use crucible_repo::{DirtyKind, RepoError};

use crate::common::Repo;

async fn dirty(repo: &Repo) -> Vec<(PathBuf, DirtyKind)> {
    let entries = repo.open().await.status().await.unwrap();
    entries
        .into_iter()
        .map(|entry| (entry.path, entry.kind))
        .collect()
}

fn entries(entries: &[(&str, DirtyKind)]) -> Vec<(PathBuf, DirtyKind)> {
    entries
        .iter()
        .map(|(path, kind)| (PathBuf::from(path), *kind))
        .collect()
}

#[tokio::test]
async fn every_kind_of_change_is_listed_once() {
    let repo = Repo::with(&[
        ("a", "a\n"),
        ("b", "b\n"),
        ("c", "c\n"),
        ("d/e", "e\n"),
        (".gitignore", "*.log\n"),
    ]);
    assert_eq!(dirty(&repo).await, []);
    repo.write("a", "changed\n");
    repo.write("b", "staged\n");
    repo.git(["add", "b"]);
    repo.write("b", "and again\n");
    repo.git(["rm", "-q", "c"]);
    repo.remove("d/e");
    repo.write("new dir/file", "x");
    repo.write("x.log", "ignored");
    repo.git(["mv", "a", "moved"]);
    use DirtyKind::{Changed, Untracked};
    let expected = [
        ("a", Changed),
        ("b", Changed),
        ("c", Changed),
        ("d/e", Changed),
        ("moved", Changed),
        ("new dir/file", Untracked),
    ];
    assert_eq!(dirty(&repo).await, entries(&expected));
}

#[tokio::test]
async fn status_ignores_settings_and_flags() {
    let repo = Repo::with(&[("assumed", "a\n"), ("skipped", "s\n"), ("plain", "p\n")]);
    repo.write(".git/info/exclude", "*\n");
    for (key, value) in [
        ("status.showUntrackedFiles", "no"),
        ("core.ignoreStat", "true"),
        ("core.trustctime", "false"),
        ("core.checkStat", "minimal"),
        ("core.untrackedCache", "true"),
    ] {
        repo.git(["config", key, value]);
    }
    repo.git(["update-index", "--assume-unchanged", "assumed"]);
    repo.git(["update-index", "--skip-worktree", "skipped"]);
    repo.write("assumed", "x\n");
    repo.write("skipped", "y\n");
    repo.write("plain", "q\n");
    let expected = [
        ("assumed", DirtyKind::Hidden),
        ("plain", DirtyKind::Changed),
        ("skipped", DirtyKind::Hidden),
    ];
    assert_eq!(dirty(&repo).await, entries(&expected));
    repo.write("skipped", "s\n");
    assert!(
        dirty(&repo)
            .await
            .contains(&("skipped".into(), DirtyKind::Hidden)),
        "nobody looked"
    );
}

#[tokio::test]
async fn unfinished_merge_is_reported() {
    let repo = Repo::with(&[("a", "a\n")]);
    repo.git(["checkout", "-q", "-b", "other"]);
    repo.write("a", "other\n");
    repo.commit("other");
    repo.git(["checkout", "-q", "main"]);
    repo.write("a", "main\n");
    repo.commit("main");
    let merge = std::process::Command::new("git")
        .args(["merge", "-q", "other"])
        .current_dir(&repo.top)
        .output();
    assert!(!merge.unwrap().status.success());
    assert_eq!(dirty(&repo).await, entries(&[("a", DirtyKind::Unmerged)]));
    assert_eq!(repo.open().await.tracked_files().await.unwrap().len(), 1);
}

#[tokio::test]
async fn odd_names_come_back_byte_for_byte() {
    let names: [&[u8]; 8] = [
        b"with space",
        b"new\nline",
        b"\xff\xfe",
        b"tab\there",
        b"\"quoted\"",
        b":(top)magic",
        b"-n",
        b"back\\slash",
    ];
    let repo = Repo::empty();
    for name in names {
        repo.write(OsStr::from_bytes(name), name);
    }
    // git itself does not commit a backslash under its strictest setting, and needs none of these settings here.
    repo.git(["-c", "core.protectNTFS=false", "add", "-A"]);
    repo.git(["-c", "core.protectNTFS=false", "commit", "-q", "-m", "odd"]);
    let git = repo.open().await;
    let mut expected: Vec<PathBuf> = names
        .iter()
        .map(|name| Path::new(OsStr::from_bytes(name)).to_owned())
        .collect();
    expected.sort();
    let mut tracked = git.tracked_files().await.unwrap();
    tracked.sort_by(|a, b| a.path.cmp(&b.path));
    assert_eq!(
        tracked
            .iter()
            .map(|file| file.path.clone())
            .collect::<Vec<_>>(),
        expected
    );
    for file in &tracked {
        assert_eq!(file.size, file.path.as_os_str().len() as u64);
        let content = git.read_blob(&file.oid, ByteLimit(100)).await.unwrap();
        assert_eq!(content, file.path.as_os_str().as_bytes());
    }
    for name in names {
        repo.write(OsStr::from_bytes(name), "changed");
    }
    assert_eq!(
        dirty(&repo)
            .await
            .into_iter()
            .map(|(path, _)| path)
            .collect::<Vec<_>>(),
        expected
    );
}

#[tokio::test]
async fn tracked_files_have_modes_names_and_sizes() {
    let inner = Repo::with(&[("lib", "lib\n")]);
    let repo = Repo::with(&[("plain", "12345"), ("run.sh", "#!/bin/sh\n")]);
    std::os::unix::fs::symlink("plain", repo.top.join("link")).unwrap();
    repo.git([
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        inner.top.to_str().unwrap(),
        "sub",
    ]);
    repo.git(["add", "-A"]);
    repo.git(["update-index", "--chmod=+x", "run.sh"]);
    repo.git(["commit", "-q", "-m", "all kinds"]);
    let files = repo.open().await.tracked_files().await.unwrap();
    let found: Vec<_> = files
        .iter()
        .map(|file| (file.path.to_str().unwrap(), file.mode, file.size))
        .collect();
    let modules = files[0].size;
    assert_eq!(
        found,
        [
            (".gitmodules", FileMode::Regular, modules),
            ("link", FileMode::Symlink, 5),
            ("plain", FileMode::Regular, 5),
            ("run.sh", FileMode::Executable, 10),
            ("sub", FileMode::Gitlink, 0),
        ]
    );
    assert_eq!(files[4].oid, inner.oid("HEAD"));
}

#[tokio::test]
async fn submodule_commit_is_a_change() {
    let inner = Repo::with(&[("lib", "lib\n")]);
    let repo = Repo::with(&[("a", "a\n")]);
    repo.git([
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        inner.top.to_str().unwrap(),
        "sub",
    ]);
    repo.commit("with a submodule");
    repo.git(["config", "submodule.sub.ignore", "all"]);
    repo.write("sub/lib", "edited\n");
    assert_eq!(dirty(&repo).await, []);
    repo.git_in(
        &repo.top.join("sub"),
        [
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@x",
            "commit",
            "-q",
            "-a",
            "-m",
            "m",
        ],
    );
    assert_eq!(dirty(&repo).await, entries(&[("sub", DirtyKind::Changed)]));
}

#[tokio::test]
async fn contents_are_read_within_limits() {
    let repo = Repo::with(&[("a", "aaa"), ("d/b", "bb"), ("odd [x]*", "o")]);
    let git = repo.open().await;
    let head = git.head().await.unwrap();
    let path = |text: &str| text.parse::<RepoPath>().unwrap();
    let paths = [
        path("a"),
        path("d/b"),
        path("d"),
        path("missing"),
        path("odd [x]*"),
    ];
    let files = git
        .files_at(&head.tree, &paths, ByteLimit(100))
        .await
        .unwrap();
    let found: Vec<_> = files
        .iter()
        .map(|(path, content)| (path.as_str(), content.as_slice()))
        .collect();
    assert_eq!(
        found,
        [("a", &b"aaa"[..]), ("d/b", b"bb"), ("odd [x]*", b"o")]
    );
    assert!(
        git.files_at(&head.tree, &[], ByteLimit(0))
            .await
            .unwrap()
            .is_empty()
    );

    repo.write("big", vec![b'x'; 3000]);
    let big: crucible_repo::Oid = repo
        .git(["hash-object", "-w", "big"])
        .trim()
        .parse()
        .unwrap();
    assert_eq!(
        git.read_blob(&big, ByteLimit(3000)).await.unwrap().len(),
        3000
    );
    assert!(matches!(
        git.read_blob(&big, ByteLimit(2000)).await,
        Err(RepoError::TooLarge { limit: 2000, .. })
    ));
    let none = "1".repeat(40).parse().unwrap();
    assert!(matches!(
        git.read_blob(&none, ByteLimit(9)).await,
        Err(RepoError::MissingObject { .. })
    ));
}

#[tokio::test]
async fn path_like_revision_is_a_path() {
    let plain = Repo::with(&[("a", "a\n")]);
    let commit = plain.oid("HEAD");
    // As if `git describe` had printed it, and the other forms of a revision.
    let names = [
        format!("x-g{}", &commit.as_str()[..8]),
        "a^{commit}".to_owned(),
        "a~0".to_owned(),
        "a@{0}".to_owned(),
        "d/:a".to_owned(),
        " b ".to_owned(),
    ];
    for name in &names {
        plain.write(name, name);
    }
    plain.commit("odd names");
    let git = plain.open().await;
    let head = git.head().await.unwrap();
    for base in [&head.commit, &head.tree] {
        let paths: Vec<RepoPath> = names.iter().map(|name| name.parse().unwrap()).collect();
        let files = git.files_at(base, &paths, ByteLimit(1000)).await.unwrap();
        for path in &paths {
            assert_eq!(
                files.get(path).map(Vec::as_slice),
                Some(path.as_str().as_bytes()),
                "{path}"
            );
            let alone = git
                .files_at(base, std::slice::from_ref(path), ByteLimit(1000))
                .await
                .unwrap();
            assert_eq!(alone.get(path), files.get(path), "{path}");
        }
    }
}

#[tokio::test]
async fn missing_object_is_not_missing_file() {
    let repo = Repo::with(&[("a", "a\n"), ("b", "b\n")]);
    let oid = repo.oid("HEAD:a").to_string();
    repo.remove(&format!(".git/objects/{}/{}", &oid[..2], &oid[2..]));
    let paths: Vec<RepoPath> = vec!["a".parse().unwrap(), "b".parse().unwrap()];
    let error = repo
        .open()
        .await
        .files_at(&repo.oid("HEAD"), &paths, ByteLimit(100))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, RepoError::MissingObject { oid: missing } if *missing == oid),
        "{error}"
    );
}
