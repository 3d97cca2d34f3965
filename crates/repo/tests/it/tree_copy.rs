//! The copy of a tree by walking it, and what is different in it later.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests make odd files by hand"
)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crucible_model::{ByteLimit, Digest};
use crucible_repo::{
    CopyEntry, FileContent, OmitReason, RepoError, TreeCopy, TreeCopyOptions, TreeLimits,
    UnseenReason, WorkspaceChange, copy_tree, create_baseline,
};
use rustix::fs::{CWD, FileType, Mode, mkdirat, mknodat};

use crate::common::{environment, sandbox};

struct Setup {
    dir: tempfile::TempDir,
}

/// A content that stays out.
const MARK: &[u8] = b"this stays at home";

fn options() -> TreeCopyOptions {
    TreeCopyOptions {
        path: Arc::new(|path| {
            let is_secret = path.file_name() == Some(OsStr::new("secret"));
            is_secret.then(|| OmitReason::Secret("its name".to_owned()))
        }),
        content: Arc::new(|content| {
            let found = |bytes: &[u8]| bytes.windows(MARK.len()).any(|part| part == MARK);
            let found = match content {
                FileContent::Whole(bytes) => found(bytes),
                FileContent::Large(file) => {
                    let mut all = Vec::new();
                    file.read_to_end(&mut all)?;
                    found(&all)
                }
            };
            Ok(found.then(|| OmitReason::Secret("its content".to_owned())))
        }),
        limits: TreeLimits::STANDARD,
    }
}

impl Setup {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tree")).unwrap();
        let setup = Self { dir };
        for (path, content) in files {
            setup.write(path, content);
        }
        setup
    }

    fn top(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    fn dest(&self) -> PathBuf {
        self.dir.path().join("copy")
    }

    fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.top().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn link(&self, target: &str, path: &str) {
        symlink(target, self.top().join(path)).unwrap();
    }

    async fn try_copy(&self, options: &TreeCopyOptions) -> Result<TreeCopy, RepoError> {
        copy_tree(&self.top(), &self.dest(), options).await
    }

    async fn copy(&self) -> TreeCopy {
        self.try_copy(&options()).await.unwrap()
    }

    fn changes(&self, copy: &TreeCopy) -> Vec<WorkspaceChange> {
        let limits = TreeLimits {
            entries: 100,
            read: ByteLimit(1000),
            ..TreeLimits::STANDARD
        };
        copy.manifest
            .changes(&self.dest(), Path::new(".git"), &limits)
            .unwrap()
    }
}

fn omitted(copy: &TreeCopy) -> Vec<(String, OmitReason)> {
    let told = copy.omitted.iter();
    told.map(|omission| {
        (
            omission.path.to_string_lossy().into_owned(),
            omission.reason.clone(),
        )
    })
    .collect()
}

fn secret(why: &str) -> OmitReason {
    OmitReason::Secret(why.to_owned())
}

#[tokio::test]
async fn foreign_content_is_left_out_by_kind() {
    let sqlite: &[u8] = b"SQLite format 3\0and rows";
    let setup = Setup::new(&[
        ("src/a.py", b"a = 1\n"),
        ("ignored.log", b"git would not copy this\n"),
        (".gitignore", b"*.log\n"),
        (".git/config", b"[core]\n"),
        ("nested/.git", b"gitdir: ../elsewhere\n"),
        ("nested/kept.py", b"k\n"),
        ("other/.GIT/config", b"[core]\n"),
        ("old/.hg/store", b"h\n"),
        ("backup/HEAD", b"ref: x\n"),
        ("backup/objects/ab/cd", b"o\n"),
        ("backup/refs/heads/main", b"r\n"),
        ("env/pyvenv.cfg", b"home = /usr\n"),
        ("env/lib/site.py", b"s\n"),
        (".venv/half-made", b"v\n"),
        ("web/node_modules/x/index.js", b"j\n"),
        ("src/__pycache__/a.pyc", b"c\n"),
        (".mypy_cache/x", b"c\n"),
        (
            "renamed_cache/CACHEDIR.TAG",
            b"Signature: 8a477f597d28d172789f06886806bc55\n",
        ),
        ("renamed_cache/x", b"c\n"),
        ("no_cache/CACHEDIR.TAG", b""),
        ("notes.txt", sqlite),
        ("data.DB", b""),
        ("data.db-wal", b"x"),
        ("HEAD", b"a project's own file\n"),
    ]);
    std::fs::create_dir(setup.top().join("empty")).unwrap();
    let copy = setup.copy().await;
    use OmitReason::{Cache, Database, Packages, Repository, VirtualEnvironment};
    let expected = [
        (".git", Repository),
        (".mypy_cache", Cache),
        (".venv", VirtualEnvironment),
        ("backup", Repository),
        ("data.DB", Database),
        ("data.db-wal", Database),
        ("env", VirtualEnvironment),
        ("nested/.git", Repository),
        ("notes.txt", Database),
        ("old/.hg", Repository),
        ("other/.GIT", Repository),
        ("renamed_cache", Cache),
        ("src/__pycache__", Cache),
        ("web/node_modules", Packages),
    ];
    assert_eq!(
        omitted(&copy),
        expected
            .clone()
            .map(|(path, reason)| (path.to_owned(), reason))
    );
    for (path, _) in expected {
        assert!(
            setup.dest().join(path).symlink_metadata().is_err(),
            "{path}"
        );
    }
    for path in [
        "src/a.py",
        "ignored.log",
        "nested/kept.py",
        "no_cache/CACHEDIR.TAG",
        "HEAD",
    ] {
        assert_eq!(
            std::fs::read(setup.dest().join(path)).unwrap(),
            std::fs::read(setup.top().join(path)).unwrap()
        );
    }
    assert!(setup.dest().join("empty").is_dir());
    assert!(!setup.dest().join("backup/HEAD").exists());
}

#[tokio::test]
async fn a_secret_stays_out_under_every_name() {
    let setup = Setup::new(&[
        ("d/secret", b"by its name\n"),
        ("plain", b"words\n"),
        ("d/renamed.py", MARK),
        ("secret/inside", b"a directory of that name\n"),
    ]);
    let mut large = vec![b'x'; 3 << 20];
    large.extend(MARK);
    setup.write("d/large.bin", &large);
    std::fs::hard_link(
        setup.top().join("d/secret"),
        setup.top().join("innocent.py"),
    )
    .unwrap();
    std::fs::hard_link(setup.top().join("plain"), setup.top().join("also-plain")).unwrap();
    setup.link("d/secret", "link-to-secret");
    setup.link("secret", "link-to-directory");
    setup.link("link-to-secret", "link-to-link");
    setup.link("secret/inside", "link-inside");
    let copy = setup.copy().await;
    assert_eq!(
        omitted(&copy),
        [
            ("d/large.bin".to_owned(), secret("its content")),
            ("d/renamed.py".to_owned(), secret("its content")),
            ("d/secret".to_owned(), secret("its name")),
            (
                "innocent.py".to_owned(),
                secret("it is a hard link to a file that holds secrets")
            ),
            ("link-inside".to_owned(), OmitReason::LeadsToOmitted),
            ("link-to-directory".to_owned(), OmitReason::LeadsToOmitted),
            ("link-to-link".to_owned(), OmitReason::LeadsToOmitted),
            ("link-to-secret".to_owned(), OmitReason::LeadsToOmitted),
            ("secret".to_owned(), secret("its name")),
        ]
    );
    let mut names: Vec<_> = std::fs::read_dir(setup.dest())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["also-plain", "d", "plain"]);
    assert_eq!(
        std::fs::read_dir(setup.dest().join("d")).unwrap().count(),
        0
    );
    // Two names of one file are two files in the copy.
    assert_eq!(
        std::fs::metadata(setup.dest().join("plain"))
            .unwrap()
            .nlink(),
        1
    );
}

#[tokio::test]
async fn only_valid_inside_links_are_copied() {
    let setup = Setup::new(&[("a", b"a\n"), ("d/e/f", b"f\n")]);
    let outside = setup.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("file"), "outside\n").unwrap();
    for (target, path) in [
        ("a", "ok"),
        ("../a", "d/up"),
        ("e", "d/dir"),
        ("ok", "chain"),
        ("d/dir/f", "through"),
        ("/etc/passwd", "absolute"),
        ("../outside/file", "out"),
        ("d/../../outside/file", "out-and-deep"),
        ("d/../../tree/a", "out-and-in-again"),
        ("out", "chain-out"),
        ("nowhere", "dangling"),
        ("loop-b", "loop-a"),
        ("loop-a", "loop-b"),
        (".", "itself"),
        ("a", ".gitmodules"),
    ] {
        setup.link(target, path);
    }
    let copy = setup.copy().await;
    use OmitReason::{Dangling, LeavesTree, Repository};
    let expected = [
        (".gitmodules", Repository),
        ("absolute", LeavesTree),
        ("chain-out", LeavesTree),
        ("dangling", Dangling),
        ("loop-a", Dangling),
        ("loop-b", Dangling),
        ("out", LeavesTree),
        ("out-and-deep", LeavesTree),
        ("out-and-in-again", LeavesTree),
    ];
    assert_eq!(
        omitted(&copy),
        expected.map(|(path, reason)| (path.to_owned(), reason))
    );
    for (path, target) in [
        ("ok", "a"),
        ("d/up", "../a"),
        ("d/dir", "e"),
        ("chain", "ok"),
        ("through", "d/dir/f"),
        ("itself", "."),
    ] {
        assert_eq!(
            std::fs::read_link(setup.dest().join(path)).unwrap(),
            Path::new(target)
        );
        let entry = CopyEntry::Link {
            target: PathBuf::from(target),
        };
        assert_eq!(copy.manifest.get(Path::new(path)), Some(&entry));
    }
    assert_eq!(setup.changes(&copy), []);
}

#[tokio::test]
async fn special_files_and_special_bits_are_dropped() {
    let setup = Setup::new(&[("run.sh", b"#!\n"), ("setuid", b"s\n"), ("locked", b"l\n")]);
    let at = |path: &str| setup.top().join(path);
    mknodat(
        CWD,
        at("pipe"),
        FileType::Fifo,
        Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    for (path, mode) in [("run.sh", 0o755), ("setuid", 0o4755), ("locked", 0o444)] {
        std::fs::set_permissions(at(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let copy = setup.copy().await;
    assert_eq!(
        omitted(&copy),
        [
            ("pipe".to_owned(), OmitReason::Special),
            ("socket".to_owned(), OmitReason::Special)
        ]
    );
    let mode = |path: &str| std::fs::metadata(setup.dest().join(path)).unwrap().mode() & 0o7777;
    assert_eq!(
        (
            mode("run.sh") & 0o100,
            mode("setuid") & 0o7000,
            mode("locked") & 0o600
        ),
        (0o100, 0, 0o600)
    );
    std::fs::write(setup.dest().join("locked"), "changed").unwrap();
    assert_eq!(std::fs::read(at("locked")).unwrap(), b"l\n");
}

#[tokio::test]
async fn odd_names_and_large_files_are_copied() {
    let names: [&[u8]; 6] = [
        b"with space",
        b"new\nline",
        b"\xff\xfe/\xfd",
        b"-rf",
        b"\x1b[31mred",
        b"git~12x",
    ];
    let setup = Setup::new(&[]);
    for name in names {
        setup.write(OsStr::from_bytes(name), name);
    }
    let mut large: Vec<u8> = (0..1_u32 << 20).flat_map(u32::to_le_bytes).collect();
    large.push(1);
    setup.write("large.bin", &large);
    // At the bound between the two ways of copying.
    for extra in [0, 1] {
        setup.write(format!("edge{extra}"), vec![7; (1 << 20) + extra]);
    }
    let copy = setup.copy().await;
    for name in names {
        assert_eq!(
            std::fs::read(setup.dest().join(OsStr::from_bytes(name))).unwrap(),
            name
        );
    }
    assert!(std::fs::read(setup.dest().join("large.bin")).unwrap() == large);
    let Some(CopyEntry::File { bytes, digest, .. }) = copy.manifest.get(Path::new("large.bin"))
    else {
        panic!("no file")
    };
    assert_eq!(
        (*bytes, *digest),
        (large.len() as u64, Some(Digest::compute(&large)))
    );
    assert_eq!(omitted(&copy), []);
    assert_eq!(setup.changes(&copy), []);
    // A name that means git's directory to other file systems is no reason for git to refuse.
    std::fs::write(setup.dest().join("a:b.git "), "x").unwrap();
    create_baseline(sandbox(), &environment(setup.dir.path()), &setup.dest())
        .await
        .unwrap();
}

#[tokio::test]
async fn exceeded_limits_are_reported() {
    let setup = Setup::new(&[("a", b"12345"), ("b", b"12345"), ("c", b"123456")]);
    let with = |change: fn(&mut TreeLimits)| {
        let mut options = options();
        change(&mut options.limits);
        options
    };
    let too_large =
        |result: Result<TreeCopy, RepoError>| matches!(result, Err(RepoError::TooLarge { .. }));
    assert!(too_large(
        setup.try_copy(&with(|limits| limits.entries = 2)).await
    ));
    std::fs::remove_dir_all(setup.dest()).unwrap();
    assert!(too_large(
        setup
            .try_copy(&with(|limits| limits.total = ByteLimit(15)))
            .await
    ));
    std::fs::remove_dir_all(setup.dest()).unwrap();
    let copy = setup
        .try_copy(&with(|limits| limits.file = ByteLimit(5)))
        .await
        .unwrap();
    assert_eq!(omitted(&copy), [("c".to_owned(), OmitReason::TooLarge)]);
    assert!(matches!(
        setup.try_copy(&options()).await,
        Err(RepoError::DestinationTaken { .. })
    ));
    std::fs::remove_dir_all(setup.dest()).unwrap();
    for name in ["secret", "x/secret", "y/secret"] {
        setup.write(name, "s");
    }
    let copy = setup
        .try_copy(&with(|limits| limits.omissions = 1))
        .await
        .unwrap();
    assert_eq!((copy.omitted.len(), copy.more_omitted), (1, 2));
}

#[tokio::test]
async fn every_kind_of_change_is_seen() {
    let setup = Setup::new(&[
        ("same", b"s\n"),
        ("changed", b"abc\n"),
        ("grown", b"g\n"),
        ("mode", b"m\n"),
        ("gone/a", b"a\n"),
        ("became-dir", b"b\n"),
        ("became-link", b"b\n"),
        ("linked", b"l\n"),
    ]);
    setup.link("same", "link");
    let copy = setup.copy().await;
    assert_eq!(setup.changes(&copy), []);
    let dest = setup.dest();
    let at = |path: &str| dest.join(path);
    // As long as before, and with the times of before.
    let times = std::fs::metadata(at("changed"))
        .unwrap()
        .modified()
        .unwrap();
    std::fs::write(at("changed"), "xyz\n").unwrap();
    let file = std::fs::File::options()
        .write(true)
        .open(at("changed"))
        .unwrap();
    file.set_times(std::fs::FileTimes::new().set_modified(times))
        .unwrap();
    std::fs::write(at("grown"), vec![b'g'; 5000]).unwrap();
    std::fs::set_permissions(at("mode"), std::fs::Permissions::from_mode(0o4755)).unwrap();
    std::fs::remove_dir_all(at("gone")).unwrap();
    std::fs::remove_file(at("became-dir")).unwrap();
    std::fs::create_dir(at("became-dir")).unwrap();
    std::fs::remove_file(at("became-link")).unwrap();
    symlink("/etc/passwd", at("became-link")).unwrap();
    std::fs::hard_link(at("linked"), setup.dir.path().join("elsewhere")).unwrap();
    std::fs::remove_file(at("link")).unwrap();
    symlink("changed", at("link")).unwrap();
    std::fs::create_dir(at("empty")).unwrap();
    std::fs::write(at("new\u{1b}[2J"), "n").unwrap();
    mknodat(
        CWD,
        at("pipe"),
        FileType::Fifo,
        Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    // The copy's own repository is passed over, any other is not.
    std::fs::create_dir_all(at(".git/x")).unwrap();
    std::fs::create_dir_all(at("sub/.git")).unwrap();

    let messages: Vec<(String, &str)> = setup
        .changes(&copy)
        .iter()
        .map(|change| {
            let kind = match (&change.was, &change.now) {
                (None, Some(CopyEntry::Directory { .. })) => "made directory",
                (
                    None,
                    Some(CopyEntry::File {
                        digest: Some(_), ..
                    }),
                ) => "made file",
                (None, Some(CopyEntry::Special)) => "made special",
                (Some(_), None) => "removed",
                (Some(_), Some(CopyEntry::File { digest: None, .. })) => "too large now",
                (Some(_), Some(CopyEntry::File { mode, .. })) if mode & 0o4000 != 0 => "mode",
                (Some(_), Some(CopyEntry::File { names: 2, .. })) => "linked",
                (Some(_), Some(CopyEntry::File { .. })) => "changed",
                (Some(_), Some(CopyEntry::Directory { .. })) => "directory",
                (Some(_), Some(CopyEntry::Link { .. })) => "link",
                _ => "other",
            };
            (change.path.to_str().unwrap().to_owned(), kind)
        })
        .collect();
    let expected = [
        ("became-dir", "directory"),
        ("became-link", "link"),
        ("changed", "changed"),
        ("empty", "made directory"),
        ("gone", "removed"),
        ("gone/a", "removed"),
        ("grown", "too large now"),
        ("link", "link"),
        ("linked", "linked"),
        ("mode", "mode"),
        ("new\u{1b}[2J", "made file"),
        ("pipe", "made special"),
        ("sub", "made directory"),
        ("sub/.git", "made directory"),
    ];
    assert_eq!(
        messages,
        expected.map(|(path, kind)| (path.to_owned(), kind))
    );
}

#[tokio::test]
async fn filled_copy_is_compared_within_limits() {
    let setup = Setup::new(&[("a", b"a\n"), ("z/b", b"b\n")]);
    let copy = setup.copy().await;
    let dest = setup.dest();
    // 10 GB that nobody reads, new and in the place of a file.
    for path in ["huge", "a"] {
        let file = std::fs::File::create(dest.join(path)).unwrap();
        file.set_len(10 << 30).unwrap();
    }
    let changes = setup.changes(&copy);
    let huge = |change: &WorkspaceChange| matches!(&change.now, Some(CopyEntry::File { bytes, digest: None, .. }) if *bytes == 10 << 30);
    assert!(
        changes.len() == 2 && changes.iter().all(huge),
        "{changes:?}"
    );

    for number in 0..200 {
        std::fs::write(dest.join(format!("many-{number}")), "").unwrap();
    }
    let changes = setup.changes(&copy);
    let unseen = changes.iter().find(|change| {
        change.now
            == Some(CopyEntry::Unseen {
                why: UnseenReason::TooMany,
            })
    });
    assert_eq!(
        unseen.map(|change| change.path.as_path()),
        Some(Path::new(""))
    );
    assert!(changes.len() < 10, "{}", changes.len());
}

#[tokio::test]
async fn overlong_path_is_a_change() {
    let setup = Setup::new(&[("a", b"a\n")]);
    let copy = setup.copy().await;
    let name = "d".repeat(200);
    let mut at = std::fs::File::open(setup.dest()).unwrap();
    for _ in 0..40 {
        mkdirat(&at, name.as_str(), Mode::from_raw_mode(0o755)).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        at = rustix::fs::openat(&at, name.as_str(), flags, Mode::empty())
            .unwrap()
            .into();
    }
    let changes = setup.changes(&copy);
    let unseen = |change: &&WorkspaceChange| {
        change.now
            == Some(CopyEntry::Unseen {
                why: UnseenReason::Closed,
            })
    };
    assert_eq!(
        changes.iter().filter(unseen).count(),
        1,
        "{}",
        changes.len()
    );
}
