//! What git ignores, brought to a copy: packages, build output and generated files, no secrets.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests make odd files by hand"
)]

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crucible_model::ByteLimit;
use crucible_repo::{
    DependencyTree, FileContent, IgnoredFiles, IgnoredLimits, IgnoredOptions, OmitReason,
    SnapshotOptions, SplitTrees, Untracked, snapshot,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::common::Repo;

/// A content that stays out.
const MARK: &[u8] = b"this stays at home";

fn options() -> IgnoredOptions {
    IgnoredOptions {
        secret: Arc::new(|path: &Path| {
            let name = path.file_name()?.to_str()?;
            let is_file = !path.as_os_str().as_encoded_bytes().ends_with(b"/");
            let is_secret = is_file
                && (name.starts_with(".env") || name.ends_with(".pem") || name.ends_with(".key"));
            is_secret.then(|| "its name".to_owned())
        }),
        content: Arc::new(|content| {
            let FileContent::Whole(bytes) = content else {
                return Ok(None);
            };
            let found = bytes.windows(MARK.len()).any(|part| part == MARK);
            Ok(found.then(|| OmitReason::Secret("its content".to_owned())))
        }),
        limits: IgnoredLimits::STANDARD,
        split: SplitTrees::Never,
    }
}

/// The copy of the tracked files with what belongs to it, what was looked at, and what was left out.
async fn copied(
    repo: &Repo,
    options: &IgnoredOptions,
) -> (PathBuf, IgnoredFiles, Vec<(String, OmitReason)>) {
    let git = repo.open().await;
    let copy = repo.dir.path().canonicalize().unwrap().join("copy");
    let tracked = SnapshotOptions {
        untracked: Untracked::Leave,
        secret: Arc::clone(&options.secret),
    };
    snapshot(&git, &copy, &tracked).await.unwrap();
    let ignored = git.ignored_files(options).await.unwrap();
    let mut omitted = ignored.omitted.clone();
    omitted.extend(ignored.copy_to(&copy).await.unwrap());
    let omitted = omitted
        .into_iter()
        .map(|one| (one.path.to_str().unwrap().to_owned(), one.reason));
    (copy, ignored, omitted.collect())
}

fn trees(ignored: &IgnoredFiles) -> Vec<&str> {
    ignored
        .trees
        .iter()
        .map(|tree| tree.path.to_str().unwrap())
        .collect()
}

const IGNORE: &str = "node_modules\n.venv\nbuild/\ntarget\n*.o\n_version.py\n.env*\n*.key\n*.txt\n__pycache__\n.tox\nlocal/\n";

/// Cargo makes it again, and it is a large part of a target.
#[tokio::test]
async fn incremental_data_of_cargo_stays_out() {
    let repo = Repo::with(&[(".gitignore", IGNORE), ("src/incremental/a.rs", "a\n")]);
    for path in [
        "target/debug/.fingerprint/a/lib",
        "target/debug/deps/liba.rlib",
        "target/debug/incremental/a/s-1/dep-graph.bin",
        "target/doc/incremental/index.html",
    ] {
        repo.write(path, "x\n");
    }
    let (copy, _, omitted) = copied(&repo, &options()).await;
    assert_eq!(omitted, []);
    for (path, is_there) in [
        ("target/debug/deps/liba.rlib", true),
        ("target/debug/.fingerprint/a/lib", true),
        ("target/debug/incremental", false),
        ("target/doc/incremental/index.html", true),
        ("src/incremental/a.rs", true),
    ] {
        assert_eq!(copy.join(path).exists(), is_there, "{path}");
    }
}

/// Virtual environments of Poetry and of Python 3.13 hold a `.gitignore` of their own, and git lists them as ignored and as untracked.
#[tokio::test]
async fn environment_that_ignores_itself_is_shown_once() {
    let repo = Repo::with(&[("src/a.py", "a\n")]);
    for (path, content) in [
        (".venv/.gitignore", "*\n"),
        (".venv/pyvenv.cfg", "home = /usr/bin\n"),
        (".venv/lib/a.py", "a\n"),
    ] {
        repo.write(path, content);
    }
    let (_, ignored, omitted) = copied(&repo, &options()).await;
    assert_eq!(trees(&ignored), [".venv"]);
    assert_eq!(omitted, []);
}

#[tokio::test]
async fn ignored_packages_are_shown_and_outputs_are_copied() {
    let repo = Repo::with(&[
        (".gitignore", IGNORE),
        ("src/a.c", "a\n"),
        ("packages/p/package.json", "{}\n"),
    ]);
    for (path, content) in [
        (".venv/pyvenv.cfg", "home = /usr/bin\n"),
        (".venv/lib/certs/cacert.pem", "public\n"),
        (".venv/lib/certs/own.pem", "this stays at home\n"),
        ("node_modules/b/index.js", "b\n"),
        ("node_modules/b/.env", "A=1\n"),
        ("node_modules/b/.git/config", "url\n"),
        ("node_modules/.cache/tool/x", "x\n"),
        ("packages/p/node_modules/c/index.js", "c\n"),
        ("build/x/y.o", "y\n"),
        ("src/a.o", "o\n"),
        ("src/_version.py", "1\n"),
        ("src/__pycache__/a.pyc", "c\n"),
        (".tox/py/pyvenv.cfg", "home = /usr/bin\n"),
        (".tox/log", "log\n"),
        (".env", "A=1\n"),
        ("own.key", "k\n"),
        ("notes.txt", "this stays at home\n"),
        ("fine.txt", "fine\n"),
        ("local/app.sqlite3", "rows\n"),
        ("mine.rs", "neither tracked nor ignored\n"),
    ] {
        repo.write(path, content);
    }
    let (copy, ignored, omitted) = copied(&repo, &options()).await;
    assert_eq!(
        trees(&ignored),
        [
            ".tox/py",
            ".venv",
            "node_modules",
            "packages/p/node_modules"
        ]
    );
    let masked = |at: usize| {
        ignored.trees[at]
            .masked
            .iter()
            .map(|path| path.to_str().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(masked(1), [".venv/lib/certs/own.pem"]);
    assert_eq!(masked(2), ["node_modules/b/.env", "node_modules/b/.git"]);
    let written = ignored.trees.iter().map(DependencyTree::is_written);
    assert_eq!(written.collect::<Vec<_>>(), [false, false, true, true]);
    for path in [
        "build/x/y.o",
        "src/a.o",
        "src/_version.py",
        "fine.txt",
        ".tox/log",
    ] {
        assert_eq!(
            std::fs::read(copy.join(path)).unwrap(),
            std::fs::read(repo.top.join(path)).unwrap(),
            "{path}"
        );
    }
    for path in [
        ".env",
        "own.key",
        "notes.txt",
        "local/app.sqlite3",
        "src/__pycache__",
        "mine.rs",
        ".git",
    ] {
        assert!(copy.join(path).symlink_metadata().is_err(), "{path}");
    }
    for path in [
        ".venv",
        "node_modules",
        "packages/p/node_modules",
        ".tox/py",
    ] {
        assert_eq!(
            std::fs::read_dir(copy.join(path)).unwrap().count(),
            0,
            "{path} is the place of a mount"
        );
    }
    let secret = |why: &str| OmitReason::Secret(why.to_owned());
    let expected = [
        (".env", secret("its name")),
        ("local/app.sqlite3", OmitReason::Database),
        ("own.key", secret("its name")),
        ("notes.txt", secret("its content")),
    ];
    assert_eq!(
        omitted,
        expected.map(|(path, reason)| (path.to_owned(), reason))
    );
}

#[tokio::test]
async fn untracked_environment_is_shown_although_not_ignored() {
    let repo = Repo::with(&[("a", "a\n"), (".gitignore", "*.so\n")]);
    repo.write("env/pyvenv.cfg", "home = /usr/bin\n");
    repo.write("env/lib/x.so", "x\n");
    repo.write("vendor/mine", "m\n");
    repo.write("work/new", "n\n");
    let (copy, ignored, omitted) = copied(&repo, &options()).await;
    assert_eq!(trees(&ignored), ["env"]);
    assert!(omitted.is_empty() && !copy.join("work").exists() && !copy.join("vendor").exists());
    assert!(!copy.join("env/lib").exists());
}

#[tokio::test]
async fn hostile_ignored_entries_are_left_out() {
    let repo = Repo::with(&[("a", "a\n"), (".gitignore", "out/\nlink\nfifo\nother/\n")]);
    symlink("/etc/passwd", repo.top.join("link")).unwrap();
    repo.write("out/file", "f\n");
    symlink("../../home", repo.top.join("out/up")).unwrap();
    symlink("file", repo.top.join("out/fine")).unwrap();
    symlink("loop", repo.top.join("out/loop")).unwrap();
    symlink("/etc", repo.top.join("out/node_modules")).unwrap();
    for name in ["fifo", "out/fifo"] {
        mknodat(
            CWD,
            repo.top.join(name),
            FileType::Fifo,
            Mode::from_raw_mode(0o644),
            0,
        )
        .unwrap();
    }
    repo.git(["init", "-q", "out/nested"]);
    repo.write("out/nested/n", "n\n");
    // A second name of a secret.
    repo.write("other/.env", "A=1\n");
    std::fs::hard_link(repo.top.join("other/.env"), repo.top.join("other/plain")).unwrap();
    let (copy, ignored, omitted) = copied(&repo, &options()).await;
    assert!(trees(&ignored).is_empty(), "{:?}", ignored.trees);
    assert_eq!(
        std::fs::read_link(copy.join("out/fine")).unwrap(),
        Path::new("file")
    );
    let mut left: Vec<&str> = omitted.iter().map(|(path, _)| path.as_str()).collect();
    left.sort_unstable();
    let expected = [
        "link",
        "other/.env",
        "other/plain",
        "out/fifo",
        "out/loop",
        "out/nested",
        "out/node_modules",
        "out/up",
    ];
    assert_eq!(left, expected);
    for path in expected {
        assert!(copy.join(path).symlink_metadata().is_err(), "{path}");
    }
}

#[tokio::test]
async fn entries_over_limit_are_left_out() {
    let repo = Repo::with(&[("a", "a\n"), (".gitignore", "data/\nbig\n_version.py\n")]);
    for directory in 0..20 {
        std::fs::create_dir_all(repo.top.join(format!("data/{directory}"))).unwrap();
        for file in 0..1000 {
            std::fs::write(repo.top.join(format!("data/{directory}/{file}")), b"").unwrap();
        }
    }
    repo.write("_version.py", "1\n");
    repo.write("big", vec![b'x'; 5000]);
    let limits = IgnoredLimits {
        files: 10_000,
        bytes: ByteLimit(4000),
        ..IgnoredLimits::STANDARD
    };
    let (copy, _, omitted) = copied(
        &repo,
        &IgnoredOptions {
            limits,
            ..options()
        },
    )
    .await;
    assert!(
        copy.join("_version.py").exists()
            && !copy.join("data").exists()
            && !copy.join("big").exists()
    );
    let left = |path: &str| {
        omitted
            .iter()
            .find(|(left, _)| left == path)
            .unwrap()
            .1
            .clone()
    };
    assert_eq!(
        left("big"),
        OmitReason::TooMuch {
            files: 1,
            bytes: 5000
        }
    );
    assert!(
        matches!(
            left("data"),
            OmitReason::TooMuch {
                files: 10_001,
                bytes: 0
            }
        ),
        "{:?}",
        left("data")
    );
    assert_eq!(
        left("big").to_string(),
        "holds 1 files or more with 5000 bytes, too much to copy"
    );
    // With the usual limits all of it comes along.
    std::fs::remove_dir_all(&copy).unwrap();
    let (copy, _, omitted) = copied(&repo, &options()).await;
    assert!(omitted.is_empty() && copy.join("data/19/999").exists() && copy.join("big").exists());
}

#[tokio::test]
async fn without_mounts_each_package_is_a_tree() {
    let repo = Repo::with(&[
        (".gitignore", "node_modules\n"),
        ("packages/p/index.js", "p\n"),
    ]);
    repo.write("node_modules/vite/index.js", "v\n");
    repo.write("node_modules/@scope/q/index.js", "q\n");
    repo.write("node_modules/.package-lock.json", "{}\n");
    symlink("../packages/p", repo.top.join("node_modules/p")).unwrap();
    symlink("/etc", repo.top.join("node_modules/evil")).unwrap();
    let full_ignored_files = repo.open().await.ignored_files(&options()).await.unwrap();
    assert_eq!(trees(&full_ignored_files), ["node_modules"]);
    let always = IgnoredOptions {
        split: SplitTrees::Always,
        ..options()
    };
    let (copy, ignored, omitted) = copied(&repo, &always).await;
    assert_eq!(
        trees(&ignored),
        ["node_modules/@scope/q", "node_modules/vite"]
    );
    assert_eq!(
        std::fs::read(copy.join("node_modules/p/index.js")).unwrap(),
        b"p\n"
    );
    assert!(copy.join("node_modules/.package-lock.json").is_file());
    assert_eq!(
        omitted,
        [("node_modules/evil".to_owned(), OmitReason::LeavesTree)]
    );
}

#[tokio::test]
async fn links_of_pnpm_lead_into_the_mounted_store() {
    let repo = Repo::with(&[(".gitignore", "node_modules\n")]);
    repo.write(
        "node_modules/.pnpm/vitest@4.0.1/node_modules/vitest/index.js",
        "v\n",
    );
    repo.write(
        "node_modules/.pnpm/eslint@9.0.0/node_modules/eslint/bin/eslint.js",
        "e\n",
    );
    symlink(
        ".pnpm/vitest@4.0.1/node_modules/vitest",
        repo.top.join("node_modules/vitest"),
    )
    .unwrap();
    symlink(
        ".pnpm/eslint@9.0.0/node_modules/eslint",
        repo.top.join("node_modules/eslint"),
    )
    .unwrap();
    symlink(
        ".pnpm/gone@1.0.0/node_modules/gone",
        repo.top.join("node_modules/gone"),
    )
    .unwrap();
    symlink(
        ".pnpm/../../../outside",
        repo.top.join("node_modules/outside"),
    )
    .unwrap();
    let always = IgnoredOptions {
        split: SplitTrees::Always,
        ..options()
    };
    let (copy, ignored, omitted) = copied(&repo, &always).await;
    assert_eq!(trees(&ignored), ["node_modules/.pnpm"]);
    let target = |name: &str| std::fs::read_link(copy.join("node_modules").join(name)).ok();
    assert_eq!(
        target("eslint"),
        Some(".pnpm/eslint@9.0.0/node_modules/eslint".into())
    );
    assert_eq!(
        target("vitest"),
        Some(".pnpm/vitest@4.0.1/node_modules/vitest".into())
    );
    assert_eq!((target("gone"), target("outside")), (None, None));
    assert_eq!(
        omitted,
        [
            ("node_modules/gone".to_owned(), OmitReason::Dangling),
            ("node_modules/outside".to_owned(), OmitReason::LeavesTree)
        ]
    );
}

#[tokio::test]
async fn copies_keep_the_times_that_build_tools_compare() {
    let repo = Repo::with(&[
        ("src/a.c", "a\n"),
        ("new.c", "n\n"),
        (".gitignore", "*.o\n"),
    ]);
    repo.write("src/a.o", "o\n");
    repo.write("later.o", "l\n");
    let set = |path: &str, time: SystemTime| {
        std::fs::File::open(repo.top.join(path))
            .unwrap()
            .set_modified(time)
            .unwrap()
    };
    let past = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    set("src/a.c", past);
    set("src", past);
    set("src/a.o", past + Duration::from_secs(5));
    let future = SystemTime::now() + Duration::from_secs(3600);
    set("new.c", future);
    set("later.o", future);
    let (copy, ..) = copied(&repo, &options()).await;
    let time = |path: &str| {
        std::fs::metadata(copy.join(path))
            .unwrap()
            .modified()
            .unwrap()
    };
    assert_eq!(time("src/a.c"), past);
    assert_eq!(time("src/a.o"), past + Duration::from_secs(5));
    assert_eq!(time("src"), past);
    // A time in the future would make an output newer than any change.
    assert!(time("later.o") < time("new.c") && time("new.c") <= SystemTime::now());
    assert_eq!(std::fs::metadata(copy.join("later.o")).unwrap().nlink(), 1);
}
