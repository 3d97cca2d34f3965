//! Repositories that lie: what git's files hold is damaged, huge or no file at all. Nothing panics, waits or takes memory for it.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests break repositories by hand"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_model::ByteLimit;
use crucible_repo::{Git, Oid, RepoError};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::common::{Repo, counted};

const LIMIT: ByteLimit = ByteLimit(1 << 20);

fn loose(repo: &Repo, oid: &Oid) -> PathBuf {
    let (fan, name) = oid.as_str().split_at(2);
    repo.top.join(".git/objects").join(fan).join(name)
}

fn pipe(path: &Path) {
    let _ = std::fs::remove_file(path);
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

/// Fails when the answer takes long enough to have waited for somebody.
async fn soon<T>(asked: impl Future<Output = Result<T, RepoError>>) -> Result<T, RepoError> {
    tokio::time::timeout(Duration::from_secs(10), asked)
        .await
        .expect("it waits")
}

fn is_pipe_error<T: std::fmt::Debug>(answer: Result<T, RepoError>) {
    let error = answer.unwrap_err();
    assert!(error.to_string().contains("it is a pipe"), "{error}");
}

async fn blob(git: &Git, oid: &Oid) -> Result<Vec<u8>, RepoError> {
    soon(git.read_blob(oid, LIMIT)).await
}

#[tokio::test]
async fn object_under_wrong_name_is_an_error() {
    let repo = Repo::with(&[("a", "one\n"), ("b", "two\n")]);
    let (a, b) = (repo.oid("HEAD:a"), repo.oid("HEAD:b"));
    let git = repo.open().await;
    std::fs::remove_file(loose(&repo, &a)).unwrap();
    std::fs::copy(loose(&repo, &b), loose(&repo, &a)).unwrap();
    assert!(matches!(blob(&git, &a).await, Err(RepoError::DamagedObject { oid }) if oid == a));
    let files = git
        .files_at(&repo.oid("HEAD"), &["a".parse().unwrap()], LIMIT)
        .await;
    assert!(
        matches!(files, Err(RepoError::DamagedObject { .. })),
        "{files:?}"
    );
    // An overwritten commit is not a commit.
    let commit = repo.oid("HEAD");
    repo.commit("second");
    let git = repo.open().await;
    std::fs::remove_file(loose(&repo, &commit)).unwrap();
    std::fs::copy(loose(&repo, &repo.oid("HEAD")), loose(&repo, &commit)).unwrap();
    assert_eq!(git.commit_object(&commit).await.unwrap(), None);
    // A good copy elsewhere is taken.
    let copy = repo.dir.path().join("copy");
    let other = Repo::with(&[("a", "one\n")]);
    std::fs::rename(other.top.join(".git/objects"), &copy).unwrap();
    std::fs::write(
        repo.top.join(".git/objects/info/alternates"),
        format!("{}\n", copy.display()),
    )
    .unwrap();
    assert_eq!(
        repo.open().await.read_blob(&a, LIMIT).await.unwrap(),
        b"one\n"
    );
}

#[tokio::test]
async fn broken_and_missing_objects_fail_as_git_fails() {
    let repo = Repo::with(&[("a", "one\n"), ("b", "two\n"), ("c", "three\n")]);
    let (a, b, c) = (repo.oid("HEAD:a"), repo.oid("HEAD:b"), repo.oid("HEAD:c"));
    let git = repo.open().await;
    for (oid, bytes) in [(&a, &b"\x78\x01 no zlib at all"[..]), (&b, &b""[..])] {
        std::fs::remove_file(loose(&repo, oid)).unwrap();
        std::fs::write(loose(&repo, oid), bytes).unwrap();
        assert!(blob(&git, oid).await.is_err());
    }
    std::fs::remove_file(loose(&repo, &c)).unwrap();
    assert!(matches!(
        blob(&git, &c).await,
        Err(RepoError::MissingObject { .. })
    ));
    assert!(soon(git.tracked_files()).await.is_err());
}

#[tokio::test]
async fn truncated_pack_is_an_error() {
    let repo = Repo::with(&[("a", "one\n"), ("b", &"two\n".repeat(1000))]);
    let oids = [repo.oid("HEAD:a"), repo.oid("HEAD:b")];
    repo.git(["repack", "-q", "-a", "-d"]);
    let packs = repo.top.join(".git/objects/pack");
    for entry in std::fs::read_dir(&packs).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "pack")
        {
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, &bytes[..30]).unwrap();
        }
    }
    assert!(soon(repo.try_open(&repo.top)).await.is_err());
    let other = Repo::with(&[("x", "x\n")]);
    std::fs::write(
        other.top.join(".git/objects/info/alternates"),
        format!("{}\n", repo.top.join(".git/objects").display()),
    )
    .unwrap();
    let git = other.open().await;
    for oid in &oids {
        assert!(blob(&git, oid).await.is_err());
    }
}

#[tokio::test]
async fn pipe_in_git_directory_fails_at_once() {
    let repo = Repo::with(&[("a", "one\n"), ("b", "two\n")]);
    let oid = repo.oid("HEAD:a");
    let git = repo.open().await;
    pipe(&loose(&repo, &oid));
    is_pipe_error(blob(&git, &oid).await);
    is_pipe_error(soon(git.tracked_files()).await);
    let missing: Oid = "2".repeat(40).parse().unwrap();
    pipe(&repo.top.join(".git/objects/pack/pack-x.idx"));
    std::fs::write(repo.top.join(".git/objects/pack/pack-x.pack"), "").unwrap();
    is_pipe_error(blob(&repo.open().await, &missing).await);
    pipe(&repo.top.join(".git/index"));
    is_pipe_error(soon(git.tracked_names()).await);
    is_pipe_error(soon(git.tracked_state()).await);

    let repo = Repo::with(&[("a", "one\n")]);
    pipe(&repo.top.join(".git/objects/info/alternates"));
    is_pipe_error(soon(repo.try_open(&repo.top)).await);
    let repo = Repo::with(&[("a", "one\n")]);
    repo.git(["pack-refs", "--all"]);
    let git = repo.open().await;
    pipe(&repo.top.join(".git/packed-refs"));
    is_pipe_error(soon(git.head()).await);
    let repo = Repo::with(&[("a", "one\n")]);
    let git = repo.open().await;
    pipe(&repo.top.join(".git/refs/heads/main"));
    is_pipe_error(soon(git.head()).await);
    pipe(&repo.top.join(".git/HEAD"));
    is_pipe_error(soon(git.head()).await);
}

#[tokio::test]
async fn head_outside_repository_is_not_followed() {
    let repo = Repo::with(&[("a", "one\n")]);
    let commit = repo.oid("HEAD");
    std::fs::write(repo.top.join("outside"), format!("{commit}\n")).unwrap();
    for head in [
        "ref: ../outside\n",
        "ref: refs/heads/../../../outside\n",
        "ref: refs/heads/\n",
        "ref: /etc/passwd\n",
    ] {
        std::fs::write(repo.top.join(".git/HEAD"), head).unwrap();
        let opened = soon(repo.try_open(&repo.top)).await;
        assert!(opened.is_err(), "{head}");
    }
    // A link among the branches is followed by git alone, and only to where git follows it.
    std::fs::write(repo.top.join(".git/HEAD"), "ref: refs/heads/link\n").unwrap();
    std::os::unix::fs::symlink("../../../outside", repo.top.join(".git/refs/heads/link")).unwrap();
    let is_own = soon(repo.try_open(&repo.top)).await.is_ok();
    let other_output = std::process::Command::new("git")
        .args(["cat-file", "-e", "HEAD^{commit}"])
        .current_dir(&repo.top)
        .output()
        .unwrap();
    assert_eq!(is_own, other_output.status.success());
}

/// The most memory that this process has had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

/// A pack with one base of 64 KiB, a delta that makes `size` bytes of it, and a delta that makes ten bytes of those.
fn bomb(repo: &Repo, size: usize) -> (Oid, Oid) {
    let base = vec![b'x'; 0x1_0000];
    let zlib = |bytes: &[u8]| {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(bytes).unwrap();
        zlib.finish().unwrap()
    };
    let number = |mut number: usize| {
        let mut bytes = Vec::new();
        while number > 0x7f {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    };
    let header = |kind: u8, size: usize| {
        let mut bytes = vec![kind << 4 | (size & 0xf) as u8];
        if size > 0xf {
            bytes[0] |= 0x80;
            bytes.extend(number(size >> 4));
        }
        bytes
    };
    // Copies all of the base, which an instruction without a length does.
    let large = [
        number(base.len()),
        number(size),
        vec![0x80; size / base.len()],
    ]
    .concat();
    let small = [number(size), number(10), vec![0x90, 10]].concat();
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x03".to_vec();
    let first = pack.len();
    pack.extend([header(3, base.len()), zlib(&base)].concat());
    let second = pack.len();
    let distance = |from: usize, to: usize| {
        // High bits first, each further byte counting one more.
        let mut left = from - to;
        let mut bytes = vec![(left & 0x7f) as u8];
        while left > 0x7f {
            left = (left >> 7) - 1;
            bytes.insert(0, (left & 0x7f) as u8 | 0x80);
        }
        bytes
    };
    pack.extend(
        [
            header(6, large.len()),
            distance(second, first),
            zlib(&large),
        ]
        .concat(),
    );
    let third = pack.len();
    pack.extend(
        [
            header(6, small.len()),
            distance(third, second),
            zlib(&small),
        ]
        .concat(),
    );
    std::fs::write(repo.home().join("pack"), &pack).unwrap();
    let script = "f=$1; sha1sum < $f | cut -c1-40 | while read -r s; do printf \"$(echo $s | sed 's/../\\\\x&/g')\" >> $f; done";
    let summed = std::process::Command::new("bash")
        .args(["-c", script, "x"])
        .arg(repo.home().join("pack"))
        .status();
    assert!(summed.unwrap().success());
    let to = repo.top.join(".git/objects/pack/pack-bomb.pack");
    std::fs::copy(repo.home().join("pack"), &to).unwrap();
    repo.git(["index-pack", to.to_str().unwrap()]);
    std::fs::write(repo.home().join("large"), vec![b'x'; size]).unwrap();
    std::fs::write(repo.home().join("small"), "xxxxxxxxxx").unwrap();
    let name = |name: &str| {
        let path = repo.home().join(name);
        repo.git(["hash-object", "--no-filters", path.to_str().unwrap()])
            .trim()
            .parse()
            .unwrap()
    };
    (name("large"), name("small"))
}

#[tokio::test]
async fn delta_that_grows_takes_no_memory_here() {
    let repo = Repo::with(&[("a", "one\n")]);
    let (large, small) = bomb(&repo, 128 << 20);
    let git = repo.open().await;
    let before = peak();
    assert!(matches!(
        git.read_blob(&large, LIMIT).await,
        Err(RepoError::TooLarge { .. })
    ));
    assert_eq!(git.read_blob(&small, LIMIT).await.unwrap(), b"xxxxxxxxxx");
    let grown = peak() - before;
    assert!(grown < 80 << 20, "{grown} bytes for ten");
}

#[tokio::test]
async fn oversized_object_is_refused_unread() {
    let repo = Repo::empty();
    repo.write("zeros", vec![0; 64 << 20]);
    repo.commit("large");
    let (git, calls) = counted(&repo, &repo.top).await;
    let oid = repo.oid("HEAD:zeros");
    let before = peak();
    assert!(
        matches!(git.read_blob(&oid, LIMIT).await, Err(RepoError::TooLarge { limit, .. }) if limit == LIMIT.0)
    );
    let paths = ["zeros".parse().unwrap()];
    assert!(matches!(
        git.files_at(&repo.oid("HEAD"), &paths, LIMIT).await,
        Err(RepoError::TooLarge { .. })
    ));
    assert_eq!(calls(), 0);
    assert!(peak() - before < 32 << 20);
    repo.git(["repack", "-q", "-a", "-d"]);
    repo.git(["prune-packed", "-q"]);
    assert!(matches!(
        git.read_blob(&oid, LIMIT).await,
        Err(RepoError::TooLarge { .. })
    ));
    assert_eq!(git.tracked_files().await.unwrap()[0].size, 64 << 20);
    assert!(peak() - before < 32 << 20);
}
