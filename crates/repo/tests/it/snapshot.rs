//! The copy for the sandbox: everything that belongs in it, nothing that does not, and each omission said.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests make odd files by hand"
)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_repo::{
    OmitReason, RepoError, SnapshotOptions, SnapshotReport, Untracked, create_baseline, snapshot,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::common::{Repo, environment, sandbox};

fn all() -> SnapshotOptions {
    SnapshotOptions {
        untracked: Untracked::Include,
        secret: Arc::new(|_| None),
    }
}

async fn copy(repo: &Repo, options: &SnapshotOptions) -> (SnapshotReport, PathBuf) {
    let dest = repo.dir.path().join("copy");
    let report = snapshot(&repo.open().await, &dest, options).await.unwrap();
    (report, dest)
}

fn omitted(report: &SnapshotReport) -> Vec<(&str, &OmitReason)> {
    report
        .omitted
        .iter()
        .map(|omission| (omission.path.to_str().unwrap(), &omission.reason))
        .collect()
}

#[tokio::test]
async fn snapshot_has_current_work_tree_content() {
    let repo = Repo::with(&[
        ("a", "a\n"),
        ("d/e/f", "f\n"),
        ("run.sh", "#!\n"),
        ("gone", "g\n"),
        (".gitignore", "*.log\n"),
    ]);
    std::fs::set_permissions(
        repo.top.join("run.sh"),
        std::fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    repo.write("a", "changed\n");
    repo.write("untracked/u", "u\n");
    repo.write("x.log", "ignored\n");
    repo.remove("gone");
    let (report, dest) = copy(&repo, &all()).await;
    assert_eq!(std::fs::read(dest.join("a")).unwrap(), b"changed\n");
    assert_eq!(std::fs::read(dest.join("d/e/f")).unwrap(), b"f\n");
    assert_eq!(std::fs::read(dest.join("untracked/u")).unwrap(), b"u\n");
    assert!(!dest.join("x.log").exists() && !dest.join(".git").exists());
    assert_eq!(
        std::fs::metadata(dest.join("run.sh")).unwrap().mode() & 0o111,
        0o111
    );
    assert_eq!(std::fs::metadata(dest.join("a")).unwrap().mode() & 0o111, 0);
    assert_eq!((report.files, report.bytes), (5, 8 + 2 + 3 + 6 + 2));
    assert_eq!(omitted(&report), [("gone", &OmitReason::Missing)]);
    for path in ["a", "d/e/f", "run.sh", "untracked/u"] {
        let (one, other) = (
            std::fs::metadata(repo.top.join(path)).unwrap(),
            std::fs::metadata(dest.join(path)).unwrap(),
        );
        assert_ne!(
            (one.dev(), one.ino()),
            (other.dev(), other.ino()),
            "{path} is the same file"
        );
    }

    let second_snapshot_report = snapshot(&repo.open().await, &dest, &all()).await;
    assert!(matches!(
        second_snapshot_report,
        Err(RepoError::DestinationTaken { .. })
    ));
    let other = repo.dir.path().join("other");
    let tracked = SnapshotOptions {
        untracked: Untracked::Leave,
        ..all()
    };
    snapshot(&repo.open().await, &other, &tracked)
        .await
        .unwrap();
    assert!(other.join("a").exists() && !other.join("untracked").exists());
}

#[tokio::test]
async fn excluded_files_are_left_out_and_listed() {
    let inner = Repo::with(&[("lib", "lib\n")]);
    let repo = Repo::with(&[
        ("a", "a\n"),
        (".env", "KEY=1\n"),
        ("dir/key.pem", "k\n"),
        ("was/file", "w\n"),
        ("swapped", "s\n"),
    ]);
    repo.git([
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        inner.top.to_str().unwrap(),
        "sub",
    ]);
    for (link, target) in [
        ("abs", "/etc/passwd"),
        ("up", "../outside"),
        ("through", "inside/../../outside"),
        ("ok", "a"),
        ("dangling", "nowhere"),
        ("chain", "up"),
    ] {
        symlink(target, repo.top.join(link)).unwrap();
    }
    repo.write("d/x", "x\n");
    symlink("../a", repo.top.join("d/ok")).unwrap();
    repo.commit("links");
    let outside = repo.top.parent().unwrap().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("file"), "outside\n").unwrap();
    // A tracked directory became a link, a tracked file a directory, and more that git would list as untracked.
    std::fs::remove_dir_all(repo.top.join("was")).unwrap();
    symlink("../outside", repo.top.join("was")).unwrap();
    repo.remove("swapped");
    std::fs::create_dir(repo.top.join("swapped")).unwrap();
    repo.remove("a");
    mknodat(
        CWD,
        repo.top.join("a"),
        FileType::Fifo,
        Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    repo.git(["init", "-q", "nested"]);
    repo.write("nested/n", "n\n");
    let _socket = std::os::unix::net::UnixListener::bind(repo.top.join("d/x-socket")).unwrap();
    repo.remove("d/x");
    let _tracked_socket = std::os::unix::net::UnixListener::bind(repo.top.join("d/x")).unwrap();

    let secret = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        (name == ".env" || name.ends_with(".pem")).then(|| "secret-file".to_owned())
    };
    let options = SnapshotOptions {
        untracked: Untracked::Include,
        secret: Arc::new(secret),
    };
    let (report, dest) = copy(&repo, &options).await;
    let secret = OmitReason::Secret("secret-file".to_owned());
    assert_eq!(
        omitted(&report),
        [
            (".env", &secret),
            ("a", &OmitReason::Special),
            ("abs", &OmitReason::LeavesTree),
            ("chain", &OmitReason::LeavesTree),
            ("d/x", &OmitReason::Special),
            ("dir/key.pem", &secret),
            ("nested/", &OmitReason::Repository),
            ("sub", &OmitReason::Repository),
            ("swapped", &OmitReason::Directory),
            ("through", &OmitReason::LeavesTree),
            ("up", &OmitReason::LeavesTree),
            ("was", &OmitReason::LeavesTree),
            ("was/file", &OmitReason::BehindLink),
        ]
    );
    for (path, _) in omitted(&report) {
        assert!(
            !std::fs::symlink_metadata(dest.join(path)).is_ok_and(|meta| !meta.is_dir()),
            "{path}"
        );
    }
    assert_eq!(
        std::fs::read_link(dest.join("ok")).unwrap().to_str(),
        Some("a")
    );
    assert_eq!(
        std::fs::read_link(dest.join("d/ok")).unwrap().to_str(),
        Some("../a")
    );
    assert!(std::fs::symlink_metadata(dest.join("dangling")).is_ok());
}

#[tokio::test]
async fn odd_names_and_large_files_are_copied() {
    let names: [&[u8]; 6] = [
        b"with space",
        b"new\nline",
        b"\xff\xfe/\xfd",
        b"-rf",
        b"\"q\"",
        b":(glob)*",
    ];
    let repo = Repo::empty();
    for name in names {
        repo.write(OsStr::from_bytes(name), name);
    }
    let mut large: Vec<u8> = (0..100u32 << 18).flat_map(u32::to_le_bytes).collect();
    large.push(1);
    repo.write("large.bin", &large);
    repo.commit("odd");
    let (report, dest) = copy(&repo, &all()).await;
    for name in names {
        assert_eq!(
            std::fs::read(dest.join(OsStr::from_bytes(name))).unwrap(),
            name
        );
    }
    assert!(std::fs::read(dest.join("large.bin")).unwrap() == large);
    assert_eq!(report.omitted, []);
    let lengths: usize = names.iter().map(|name| name.len()).sum();
    assert_eq!(report.bytes, (large.len() + lengths) as u64);
}

#[tokio::test]
async fn writing_to_the_copy_never_reaches_the_original() {
    let repo = Repo::with(&[("a", "a\n"), ("locked", "l\n")]);
    std::fs::set_permissions(
        repo.top.join("locked"),
        std::fs::Permissions::from_mode(0o444),
    )
    .unwrap();
    let (_, dest) = copy(&repo, &all()).await;
    std::fs::write(dest.join("a"), "changed").unwrap();
    assert_eq!(
        std::fs::metadata(dest.join("locked")).unwrap().mode() & 0o200,
        0o200
    );
    std::fs::write(dest.join("locked"), "changed").unwrap();
    assert_eq!(repo.read("a"), "a\n");
    assert_eq!(repo.read("locked"), "l\n");
}

#[tokio::test]
async fn the_copy_gets_a_repository_of_its_own() {
    let repo = Repo::with(&[("a", "a\r\n"), (".gitignore", "*.log\n")]);
    repo.write("kept.log", "tracked though ignored\n");
    repo.git(["add", "-f", "kept.log"]);
    repo.git(["commit", "-q", "-m", "log"]);
    // What no git could add as it says.
    repo.write(
        ".gitattributes",
        "* text=auto filter=x working-tree-encoding=nope\n",
    );
    let (_, dest) = copy(&repo, &all()).await;
    let env = environment(&repo.home());
    let first = create_baseline(sandbox(), &env, &dest).await.unwrap();
    assert_eq!(repo.git_in(&dest, ["status", "--porcelain"]), "");
    assert_eq!(
        repo.git_in(&dest, ["ls-files"]),
        ".gitattributes\n.gitignore\na\nkept.log\n"
    );
    assert_eq!(repo.git_in(&dest, ["cat-file", "-p", "HEAD:a"]), "a\r\n");
    assert_eq!(repo.git_in(&dest, ["remote"]), "");
    assert_eq!(
        repo.git_in(&dest, ["rev-list", "--count", "--all"]).trim(),
        "1"
    );
    assert!(!dest.join(".git/hooks").exists());
    assert!(matches!(
        create_baseline(sandbox(), &env, &dest).await,
        Err(RepoError::DestinationTaken { .. })
    ));

    let second_dest = repo.dir.path().join("second");
    snapshot(&repo.open().await, &second_dest, &all())
        .await
        .unwrap();
    assert_eq!(
        create_baseline(sandbox(), &env, &second_dest)
            .await
            .unwrap(),
        first,
        "same files, same commit"
    );

    let empty = repo.dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    create_baseline(sandbox(), &env, &empty).await.unwrap();
}
