//! What is read without git is what git says, in every form of a repository, and git is not even started.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests ask git itself, and lay out repositories by hand"
)]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crucible_host::env::Environment;
use crucible_model::{ByteLimit, RepoPath};
use crucible_patch::FileMode;
use crucible_repo::{Branch, DirtyKind, Git};

use crate::common::{Repo, counted, sandbox};

const LIMIT: ByteLimit = ByteLimit(1 << 20);

/// What git prints, byte for byte.
fn git_says(repo: &Repo, top: &Path, words: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .args(words)
        .current_dir(top)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", repo.home())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.trim_ascii()).into_owned()
}

/// How many processes of git the answers may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Processes {
    /// None.
    None,
    /// Any number: the form is git's to read.
    Some,
}

/// Compares every answer with git's.
async fn same_as_git(repo: &Repo, top: &Path, expected: Processes) {
    let (git, calls) = counted(repo, top).await;
    let say = |words: &[&str]| git_says(repo, top, words);
    let opened = git.opened_at().clone();
    assert_eq!(opened.commit.as_str(), line(&say(&["rev-parse", "HEAD"])));
    assert_eq!(
        opened.tree.as_str(),
        line(&say(&["rev-parse", "HEAD^{tree}"]))
    );
    assert_eq!(git.head().await.unwrap(), opened);
    assert_eq!(git.tree_of(&opened.commit).await.unwrap(), opened.tree);
    let commit = git.commit_object(&opened.commit).await.unwrap().unwrap();
    assert_eq!(commit.tree, opened.tree);
    assert_eq!(
        commit.message.trim_end(),
        line(&say(&["log", "-1", "--format=%B"]))
    );
    let branch = Command::new("git")
        .args(["symbolic-ref", "-q", "HEAD"])
        .current_dir(top)
        .output()
        .unwrap();
    match git.branch().await.unwrap() {
        Branch::Named(name) => assert_eq!(format!("refs/heads/{name}"), line(&branch.stdout)),
        Branch::Detached => assert_eq!(branch.stdout, b""),
    }

    // mode SP oid SP stage TAB path
    let mut listed: Vec<(PathBuf, FileMode, String)> = Vec::new();
    for record in say(&["ls-files", "--stage", "-z"])
        .split(|byte| *byte == 0)
        .filter(|r| !r.is_empty())
    {
        let tab = record.iter().position(|byte| *byte == b'\t').unwrap();
        let head = line(&record[..tab]);
        let mut fields = head.split(' ');
        let mode = FileMode::parse(fields.next().unwrap().as_bytes()).unwrap();
        let path = PathBuf::from(OsStr::from_bytes(&record[tab + 1..]));
        if listed.last().is_none_or(|(last, ..)| *last != path) {
            listed.push((path, mode, fields.next().unwrap().to_owned()));
        }
    }
    let tracked = git.tracked_files().await.unwrap();
    let found: Vec<_> = tracked
        .iter()
        .map(|f| (f.path.clone(), f.mode, f.oid.to_string()))
        .collect();
    assert_eq!(found, listed);
    for file in tracked.iter().filter(|file| file.mode != FileMode::Gitlink) {
        let content = say(&["cat-file", "blob", file.oid.as_str()]);
        assert_eq!(file.size, content.len() as u64, "{:?}", file.path);
        assert_eq!(git.read_blob(&file.oid, LIMIT).await.unwrap(), content);
    }

    let names = say(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD"]);
    let names: Vec<&[u8]> = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .collect();
    let paths: Vec<String> = names
        .iter()
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    assert_eq!(git.paths_at(&opened.commit).await.unwrap(), paths);
    assert_eq!(git.paths_at(&opened.tree).await.unwrap(), paths);
    let mut asked: Vec<RepoPath> = names
        .iter()
        .filter_map(|name| RepoPath::from_bytes(name).ok())
        .collect();
    let current_count = asked.len();
    asked.extend(["dir", "none", "dir/none", "a/none"].map(|path| path.parse().unwrap()));
    let files = git.files_at(&opened.tree, &asked, LIMIT).await.unwrap();
    for path in &asked[..current_count] {
        let name = format!("HEAD:{path}");
        let kind = Command::new("git")
            .args(["cat-file", "-t", &name])
            .current_dir(top)
            .output()
            .unwrap();
        let content = (kind.stdout == b"blob\n").then(|| say(&["cat-file", "blob", &name]));
        assert_eq!(files.get(path), content.as_ref(), "{path}");
    }
    assert!(
        asked[current_count..]
            .iter()
            .all(|path| !files.contains_key(path))
    );
    if expected == Processes::None {
        assert_eq!(calls(), 0, "git was asked");
    }
}

/// One repository with everything that can stand in a tree.
fn everything(repo: &Repo) {
    repo.write("a", "a\n");
    repo.write("empty", "");
    repo.write("dir/b", "b\n");
    repo.write("dir-b", "sorts between dir and dir/b\n");
    repo.write("dir.x/c", "c\n");
    repo.write("new\nline", "1");
    repo.write("tab\tquote\"", "2");
    repo.write("\u{fc}n\u{ef}code/\u{1f600}", "3");
    repo.write(Path::new(OsStr::from_bytes(b"not-\xff-utf8")), "4");
    repo.write("deep/er/and/deeper/file", "5");
    repo.write("run", "#!/bin/sh\n");
    repo.git(["add", "-A"]);
    repo.git(["update-index", "--chmod=+x", "run"]);
    std::os::unix::fs::symlink("dir/b", repo.top.join("link")).unwrap();
    std::os::unix::fs::symlink("dir", repo.top.join("link-to-dir")).unwrap();
    let commit = "3".repeat(repo.git(["hash-object", "a"]).trim().len());
    repo.git(["add", "-A"]);
    repo.git([
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{commit},sub"),
    ]);
    repo.git(["commit", "-q", "-m", "first"]);
    for round in 0..8 {
        let changed = |line| if line == 17 * round { round } else { 0 };
        let text: String = (0..300)
            .map(|line| format!("line {line} of {}\n", changed(line)))
            .collect();
        repo.write("dir/long", text);
        repo.git(["add", "dir/long"]);
        repo.git(["commit", "-q", "-m", &format!("round {round}\n\nbody\n")]);
    }
}

fn pack(repo: &Repo) {
    repo.git(["repack", "-q", "-a", "-d", "--depth=20", "--window=20"]);
    repo.git(["prune-packed", "-q"]);
}

#[tokio::test]
async fn loose_and_packed_objects_are_read_without_git() {
    let repo = Repo::empty();
    everything(&repo);
    same_as_git(&repo, &repo.top, Processes::None).await;
    pack(&repo);
    same_as_git(&repo, &repo.top, Processes::None).await;
    repo.write("a", "loose beside the pack\n");
    repo.git(["commit", "-q", "-m", "more", "a"]);
    repo.git(["repack", "-q", "-d"]);
    repo.write("a", "and again\n");
    repo.git(["commit", "-q", "-m", "more", "a"]);
    same_as_git(&repo, &repo.top, Processes::None).await;
    repo.git(["multi-pack-index", "write"]);
    repo.git(["commit-graph", "write", "--reachable"]);
    same_as_git(&repo, &repo.top, Processes::None).await;
}

#[tokio::test]
async fn sha256_repository_is_read_without_git() {
    let repo = Repo::empty();
    std::fs::remove_dir_all(repo.top.join(".git")).unwrap();
    repo.git(["init", "-q", "-b", "main", "--object-format=sha256", "."]);
    repo.git(["config", "user.name", "A Person"]);
    repo.git(["config", "user.email", "person@example.org"]);
    everything(&repo);
    same_as_git(&repo, &repo.top, Processes::None).await;
    pack(&repo);
    same_as_git(&repo, &repo.top, Processes::None).await;
}

#[tokio::test]
async fn every_index_version_is_read_in_process() {
    let repo = Repo::empty();
    everything(&repo);
    for version in ["4", "3", "2"] {
        repo.git(["update-index", "--index-version", version]);
        same_as_git(&repo, &repo.top, Processes::None).await;
    }
    repo.write("intended", "x");
    repo.git(["add", "--intent-to-add", "intended"]);
    repo.git(["update-index", "--skip-worktree", "a"]);
    repo.git(["update-index", "--assume-unchanged", "dir/b"]);
    for version in ["3", "4"] {
        repo.git(["update-index", "--index-version", version]);
        same_as_git(&repo, &repo.top, Processes::None).await;
    }
    for (key, value) in [
        ("index.skipHash", "true"),
        ("index.threads", "2"),
        ("core.untrackedCache", "true"),
    ] {
        repo.git(["config", key, value]);
        repo.git(["update-index", "--force-write-index"]);
        same_as_git(&repo, &repo.top, Processes::None).await;
    }
}

#[tokio::test]
async fn open_merge_is_read_without_git() {
    let repo = Repo::with(&[("a", "a\n"), ("dir/b", "b\n")]);
    repo.git(["checkout", "-q", "-b", "side"]);
    repo.write("a", "side\n");
    repo.commit("side");
    repo.git(["checkout", "-q", "main"]);
    repo.write("a", "main\n");
    repo.commit("main");
    let merged = Command::new("git")
        .args(["merge", "-q", "side"])
        .current_dir(&repo.top)
        .output()
        .unwrap();
    assert!(!merged.status.success());
    same_as_git(&repo, &repo.top, Processes::None).await;
    let state = repo.open().await.tracked_state().await.unwrap();
    assert_eq!(state.changed[0].kind, DirtyKind::Unmerged);
}

#[tokio::test]
async fn borrowed_objects_are_read_in_process() {
    let repo = Repo::empty();
    everything(&repo);
    pack(&repo);
    let clone = repo.dir.path().join("clone");
    repo.git(["clone", "-q", "--shared", ".", clone.to_str().unwrap()]);
    same_as_git(&repo, &clone, Processes::None).await;
    // Of a clone of the clone, whose alternate has an alternate.
    let second = repo.dir.path().join("second");
    repo.git([
        "clone",
        "-q",
        "--shared",
        clone.to_str().unwrap(),
        second.to_str().unwrap(),
    ]);
    same_as_git(&repo, &second, Processes::None).await;
    let linked = repo.dir.path().join("linked");
    repo.git([
        "worktree",
        "add",
        "-q",
        "-b",
        "topic/x",
        linked.to_str().unwrap(),
    ]);
    same_as_git(&repo, &linked, Processes::None).await;
}

#[tokio::test]
async fn head_is_resolved_in_every_reference_form() {
    let repo = Repo::empty();
    everything(&repo);
    repo.git(["tag", "-a", "-m", "tag", "v1"]);
    repo.git(["branch", "topic/deep/er"]);
    repo.git(["pack-refs", "--all", "--prune"]);
    same_as_git(&repo, &repo.top, Processes::None).await;
    repo.git(["checkout", "-q", "topic/deep/er"]);
    same_as_git(&repo, &repo.top, Processes::None).await;
    repo.write("a", "newer than the packed one\n");
    repo.git(["commit", "-q", "-m", "next", "a"]);
    same_as_git(&repo, &repo.top, Processes::None).await;
    repo.git(["checkout", "-q", "--detach", "HEAD~1"]);
    same_as_git(&repo, &repo.top, Processes::None).await;
    // A branch that leads to another one is git's to follow.
    repo.git(["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    repo.git(["symbolic-ref", "HEAD", "refs/heads/alias"]);
    same_as_git(&repo, &repo.top, Processes::Some).await;
    repo.git(["replace", "HEAD", "HEAD~2"]);
    let git = repo.open().await;
    let plain = git_says(
        &repo,
        &repo.top,
        &["--no-replace-objects", "rev-parse", "HEAD^{tree}"],
    );
    assert_eq!(git.opened_at().tree.as_str(), line(&plain));
}

#[tokio::test]
async fn unknown_forms_are_left_to_git() {
    let repo = Repo::empty();
    everything(&repo);
    repo.git(["update-index", "--split-index"]);
    same_as_git(&repo, &repo.top, Processes::Some).await;
    repo.git(["update-index", "--no-split-index"]);
    repo.git(["config", "core.repositoryFormatVersion", "1"]);
    repo.git(["config", "extensions.refStorage", "files"]);
    same_as_git(&repo, &repo.top, Processes::None).await;
    let clone = repo.dir.path().join("reftable");
    repo.git([
        "clone",
        "-q",
        "--ref-format=reftable",
        ".",
        clone.to_str().unwrap(),
    ]);
    same_as_git(&repo, &clone, Processes::Some).await;
    let sparse = repo.dir.path().join("sparse");
    repo.git(["clone", "-q", "--sparse", ".", sparse.to_str().unwrap()]);
    repo.git_in(
        &sparse,
        ["sparse-checkout", "init", "--cone", "--sparse-index"],
    );
    same_as_git(&repo, &sparse, Processes::Some).await;
}

/// The changes of a work tree as git and as we see them.
async fn same_state(repo: &Repo) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    let env = Environment::from_pairs([("PATH", path), ("HOME", repo.home().into())], "/");
    let git = Git::open(sandbox(), &env, &repo.top).await.unwrap();
    let own_paths: Vec<PathBuf> = git
        .tracked_state()
        .await
        .unwrap()
        .changed
        .into_iter()
        .map(|entry| entry.path)
        .collect();
    let bytes = git_says(
        repo,
        &repo.top,
        &[
            "-c",
            "core.fileMode=true",
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=no",
            "--no-renames",
        ],
    );
    let mut other_paths: Vec<PathBuf> = bytes
        .split(|byte| *byte == 0)
        .filter(|record| !record.is_empty())
        .map(|record| PathBuf::from(OsStr::from_bytes(&record[3..])))
        .collect();
    other_paths.sort();
    assert_eq!(own_paths, other_paths);
    own_paths.is_empty()
}

#[tokio::test]
async fn every_change_is_seen_that_git_sees() {
    let repo = Repo::with(&[
        ("a", "one\n"),
        ("dir/b", "two\n"),
        ("dir/c", "three\n"),
        ("empty", ""),
    ]);
    std::os::unix::fs::symlink("a", repo.top.join("link")).unwrap();
    repo.commit("link");
    repo.settle();
    assert!(same_state(&repo).await);
    let (git, calls) = counted(&repo, &repo.top).await;
    assert_eq!(git.tracked_state().await.unwrap().changed, []);
    assert_eq!(calls(), 0, "git was asked about a clean work tree");

    let keep = |name: &str| repo.top.join(name);
    let past = std::fs::metadata(keep("a")).unwrap().modified().unwrap();
    let set = |name: &str| {
        std::fs::File::open(keep(name))
            .unwrap()
            .set_modified(past)
            .unwrap()
    };
    // The same length and the same time: within one second of the index git sees no difference either.
    repo.write("a", "eno\n");
    set("a");
    same_state(&repo).await;
    repo.write("a", "one\n");
    set("a");
    assert!(same_state(&repo).await);

    repo.settle();
    std::fs::set_permissions(
        keep("a"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    assert!(!same_state(&repo).await);
    std::fs::set_permissions(
        keep("a"),
        std::os::unix::fs::PermissionsExt::from_mode(0o644),
    )
    .unwrap();
    repo.settle();
    repo.remove("link");
    std::os::unix::fs::symlink("dir/b", keep("link")).unwrap();
    assert!(!same_state(&repo).await);
    repo.git(["checkout", "-q", "link"]);
    repo.settle();

    // A directory that became a link to an equal one.
    std::fs::rename(keep("dir"), keep("moved")).unwrap();
    std::os::unix::fs::symlink("moved", keep("dir")).unwrap();
    assert!(!same_state(&repo).await);
    repo.remove("dir");
    std::fs::rename(keep("moved"), keep("dir")).unwrap();
    repo.settle();
    assert!(same_state(&repo).await);

    // Staged and not committed, with and without a trace in the work tree.
    repo.write("a", "staged\n");
    repo.git(["add", "a"]);
    repo.settle();
    assert!(!same_state(&repo).await);
    repo.git(["write-tree"]);
    assert!(!same_state(&repo).await);
    repo.git(["reset", "-q", "--hard"]);
    repo.settle();
    repo.git(["rm", "-q", "--cached", "dir/c"]);
    assert!(!same_state(&repo).await);
    repo.git(["reset", "-q", "--hard"]);
    repo.git(["update-index", "--force-remove", "empty"]);
    repo.git(["update-index", "--add", "empty"]);
    repo.settle();
    assert!(
        same_state(&repo).await,
        "the cached tree is gone and the entries are the same"
    );
    repo.remove("dir/b");
    assert!(!same_state(&repo).await);
}

#[tokio::test]
async fn file_as_new_as_index_is_compared() {
    let repo = Repo::with(&[("a", "one\n")]);
    let git = repo.open().await;
    // Again and again, for what counts is a race.
    for round in 0..20 {
        repo.write("a", format!("{round:03}\n"));
        repo.git(["update-index", "a"]);
        repo.write("a", format!("{:03}\n", round + 500));
        let index = std::fs::metadata(repo.top.join(".git/index"))
            .unwrap()
            .modified()
            .unwrap();
        std::fs::File::open(repo.top.join("a"))
            .unwrap()
            .set_modified(index)
            .unwrap();
        assert!(
            !git.tracked_state().await.unwrap().changed.is_empty(),
            "{round}"
        );
        assert!(!same_state(&repo).await);
    }
}

#[tokio::test]
async fn edit_in_second_of_index_is_noticed() {
    let repo = Repo::with(&[("a", "one\n")]);
    repo.settle();
    let index = repo.top.join(".git/index");
    let changed = std::fs::metadata(repo.top.join("a")).unwrap();
    let (git, calls) = counted(&repo, &repo.top).await;
    // Any later part of that second: an edit in the tick in which git looked would have left the same times.
    let same_second = std::time::UNIX_EPOCH
        + std::time::Duration::new(u64::try_from(changed.ctime()).unwrap(), 999_999_999);
    std::fs::File::open(index)
        .unwrap()
        .set_modified(same_second)
        .unwrap();
    assert_eq!(git.tracked_state().await.unwrap().changed, []);
    assert_eq!(calls(), 0, "the contents are compared here");
    repo.write(".gitattributes", "* text=auto\n");
    assert_eq!(git.tracked_state().await.unwrap().changed, []);
    assert_eq!(calls(), 1, "git knows what attributes ask for");
}

#[tokio::test]
async fn equal_times_do_not_hide_other_content() {
    let repo = Repo::with(&[("a", "one\n")]);
    let index = repo.top.join(".git/index");
    let times = std::fs::metadata(repo.top.join("a")).unwrap();
    let (before, bytes) = (
        repo.git(["rev-parse", "HEAD:a"]),
        std::fs::read(&index).unwrap(),
    );
    // The commit gets another content of the same size; then the index does, with all that it noted of the file.
    repo.write("other", "eno\n");
    let after = repo.git(["hash-object", "-w", "other"]);
    repo.remove("other");
    repo.git([
        "update-index",
        "--cacheinfo",
        &format!("100644,{},a", after.trim()),
    ]);
    let tree = repo.git(["write-tree"]);
    let commit = repo.git(["commit-tree", "-m", "other", tree.trim()]);
    repo.git(["update-ref", "HEAD", commit.trim()]);
    let raw = |name: &str| -> Vec<u8> {
        (0..40)
            .step_by(2)
            .map(|at| u8::from_str_radix(&name[at..at + 2], 16).unwrap())
            .collect()
    };
    let (before, after) = (raw(&before), raw(&after));
    let at = bytes.windows(20).position(|part| part == before).unwrap();
    let mut forged = bytes[..bytes.len() - 20].to_vec();
    forged[at..at + 20].copy_from_slice(&after);
    std::fs::write(&index, &forged).unwrap();
    let sum = Command::new("sha1sum").arg(&index).output().unwrap().stdout;
    forged.extend(raw(std::str::from_utf8(&sum).unwrap()));
    std::fs::write(&index, &forged).unwrap();
    let second = std::time::Duration::new(u64::try_from(times.mtime()).unwrap(), 999_999_999);
    std::fs::File::open(&index)
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH + second)
        .unwrap();
    let changed = repo.open().await.tracked_state().await.unwrap().changed;
    assert_eq!(
        changed
            .iter()
            .map(|entry| entry.path.as_path())
            .collect::<Vec<_>>(),
        [Path::new("a")]
    );
}
