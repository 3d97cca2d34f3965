//! Runs the patch gate on a history of real commits: an accepted commit is reproduced exactly, a refused one
//! has the expected reason.

#![expect(
    clippy::disallowed_methods,
    reason = "a test makes commits of every kind"
)]

use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_sandbox::Sandbox;
use crucible_testkit::{RepoBuilder, TestRepo};

use super::tests::codes;
use super::*;

/// A commit: its description, how it is made, the code that refuses it with all paths named, and the code
/// that refuses it without.
type Step = (
    &'static str,
    fn(&TestRepo),
    Option<&'static str>,
    &'static str,
);

const STEPS: &[Step] = &[
    (
        "an edit",
        |repo| repo.write("src/a.txt", LINES.replace("line 7\n", "seven\n")),
        None,
        "",
    ),
    (
        "a new file",
        |repo| repo.write("src/new.txt", "new\n"),
        None,
        NEW,
    ),
    (
        "an empty file",
        |repo| repo.write("src/empty.txt", ""),
        None,
        NEW,
    ),
    (
        "an empty file filled",
        |repo| repo.write("src/empty.txt", "x"),
        None,
        "",
    ),
    ("a removal", |repo| remove(repo, "src/new.txt"), None, GONE),
    ("a rename with an edit", |repo| renamed(repo), None, NEW),
    (
        "a copy",
        |repo| repo.write("src/copy.txt", LINES.replace("line 3\n", "three\n")),
        None,
        NEW,
    ),
    (
        "no newline at the end",
        |repo| repo.write("src/copy.txt", LINES.trim_end()),
        None,
        "",
    ),
    (
        "other ends of lines",
        |repo| repo.write("src/copy.txt", LINES.replace('\n', "\r\n")),
        None,
        "",
    ),
    (
        "text that is not UTF-8",
        |repo| repo.write("src/latin.txt", b"caf\xe9 \xff\n"),
        None,
        NEW,
    ),
    (
        "an edit of it",
        |repo| repo.write("src/latin.txt", b"th\xe9 \xff\n++ b/x\n"),
        None,
        "",
    ),
    (
        "odd names",
        |repo| repo.write("src/t\tab \"q\" caf\u{e9} b/x.txt", "1\n"),
        None,
        NEW,
    ),
    (
        "a file becomes a directory",
        |repo| directory(repo),
        None,
        NEW,
    ),
    (
        "an executable",
        |repo| mode(repo, "src/run.txt", "run\n", 0o755),
        None,
        MODE,
    ),
    (
        "another mode",
        |repo| mode(repo, "src/run.txt", "run\n", 0o644),
        None,
        MODE,
    ),
    (
        "another mode and an edit",
        |repo| mode(repo, "src/run.txt", "ran\n", 0o755),
        None,
        MODE,
    ),
    ("a link", |repo| link(repo, "src/link", "a.txt"), None, LINK),
    (
        "a link that turns",
        |repo| link(repo, "src/link", "../docs/a.txt"),
        None,
        LINK,
    ),
    (
        "a link to nothing yet",
        |repo| link(repo, "src/late", "../docs/later.txt"),
        None,
        LINK,
    ),
    (
        "a link that moves",
        |repo| moved(repo, "src/late", "src/later"),
        None,
        NEW,
    ),
    (
        "a link goes away",
        |repo| remove(repo, "src/later"),
        None,
        LINK,
    ),
    (
        "a link out of the tree",
        |repo| link(repo, "src/out", "../../x"),
        Some(LINK),
        LINK,
    ),
    (
        "a link that led out goes away",
        |repo| remove(repo, "src/out"),
        None,
        LINK,
    ),
    (
        "a link to the system",
        |repo| link(repo, "src/passwd", "/etc/passwd"),
        Some(LINK),
        LINK,
    ),
    (
        "a link through that link",
        |repo| link(repo, "src/through", "passwd"),
        Some(LINK),
        LINK,
    ),
    (
        "a link to git's directory",
        |repo| link(repo, "src/git", "../.git/config"),
        Some(LINK),
        LINK,
    ),
    (
        "a file becomes a link",
        |repo| link(repo, "src/latin.txt", "a.txt"),
        Some(TYPE),
        TYPE,
    ),
    (
        "a link becomes a file",
        |repo| replaced(repo, "src/latin.txt", "file\n"),
        Some(TYPE),
        TYPE,
    ),
    (
        "a binary file",
        |repo| repo.write("src/i.bin", bytes(1, 3000)),
        None,
        BINARY,
    ),
    (
        "another binary content",
        |repo| repo.write("src/i.bin", bytes(2, 3100)),
        None,
        BINARY,
    ),
    (
        "a small change of binary content",
        |repo| repo.write("src/i.bin", bytes(2, 3101)),
        None,
        BINARY,
    ),
    (
        "a binary file moves",
        |repo| moved(repo, "src/i.bin", "src/j.bin"),
        None,
        NEW,
    ),
    (
        "a binary file goes away",
        |repo| remove(repo, "src/j.bin"),
        None,
        BINARY,
    ),
    (
        "a binary file that is too large",
        |repo| repo.write("src/big.bin", bytes(3, 5000)),
        Some(BINARY),
        BINARY,
    ),
    (
        "a source that is binary",
        |repo| repo.write("src/x.py", b"x = 1\0\n"),
        Some(BINARY),
        BINARY,
    ),
    (
        "binary content becomes text",
        |repo| repo.write("src/x.py", "x = 1\n"),
        Some(BINARY),
        BINARY,
    ),
    (
        "a submodule",
        |repo| submodule_at(repo, '1'),
        Some(MODULE),
        MODULE,
    ),
    (
        "a submodule that moves on",
        |repo| submodule_at(repo, '2'),
        Some(MODULE),
        MODULE,
    ),
    (
        "a submodule and an edit",
        |repo| module_and_edit(repo),
        Some(MODULE),
        MODULE,
    ),
    (
        "a submodule goes away",
        |repo| drop(repo.git(["rm", "--quiet", "--cached", "vendor"])),
        Some(MODULE),
        MODULE,
    ),
    (
        "a file becomes a submodule",
        |repo| file_to_module(repo),
        Some(TYPE),
        TYPE,
    ),
    (
        "a name that is not UTF-8",
        |repo| odd_name(repo, b"src/\xff.txt"),
        Some(NAME),
        NAME,
    ),
    (
        "an edit beside all that",
        |repo| repo.write("src/a.txt", "short\n"),
        None,
        "",
    ),
];

const NEW: &str = "patch-new-file-unnamed";
const GONE: &str = "patch-deletes-file";
const MODE: &str = "patch-mode-change";
const LINK: &str = "patch-symlink";
const TYPE: &str = "patch-type-change";
const BINARY: &str = "patch-binary";
const MODULE: &str = "patch-gitlink";
const NAME: &str = "patch-path-not-utf8";

const LINES: &str =
    "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\nline 9\nline 10\nline 11\n";

/// How large a binary file may be here.
const MAX_BINARY: u64 = 4000;

fn remove(repo: &TestRepo, path: &str) {
    std::fs::remove_file(repo.path().join(path)).unwrap();
}

fn replaced(repo: &TestRepo, path: &str, content: &str) {
    remove(repo, path);
    repo.write(path, content);
}

fn moved(repo: &TestRepo, from: &str, to: &str) {
    std::fs::rename(repo.path().join(from), repo.path().join(to)).unwrap();
}

fn renamed(repo: &TestRepo) {
    moved(repo, "src/b.txt", "docs/b.txt");
    repo.write("docs/b.txt", LINES.replace("line 2\n", "two\n"));
}

fn directory(repo: &TestRepo) {
    replaced(repo, "src/place", "x");
    remove(repo, "src/place");
    repo.write("src/place/inner.txt", "x\n");
}

fn mode(repo: &TestRepo, path: &str, content: &str, mode: u32) {
    repo.write(path, content);
    std::fs::set_permissions(repo.path().join(path), PermissionsExt::from_mode(mode)).unwrap();
}

fn link(repo: &TestRepo, path: &str, target: &str) {
    let _none_yet = std::fs::remove_file(repo.path().join(path));
    symlink(target, repo.path().join(path)).unwrap();
}

/// Binary content that differs with `seed`.
fn bytes(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed;
    let byte = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    [0].into_iter().chain((1..length).map(byte)).collect()
}

fn submodule_at(repo: &TestRepo, digit: char) {
    let entry = format!("160000,{},vendor", digit.to_string().repeat(40));
    repo.git(["update-index", "--add", "--cacheinfo", &entry]);
}

fn module_and_edit(repo: &TestRepo) {
    submodule_at(repo, '3');
    repo.write("src/copy.txt", "copy\n");
    repo.git(["add", "src/copy.txt"]);
}

fn file_to_module(repo: &TestRepo) {
    remove(repo, "src/empty.txt");
    repo.git(["rm", "--quiet", "--cached", "src/empty.txt"]);
    let entry = format!("160000,{},src/empty.txt", "4".repeat(40));
    repo.git(["update-index", "--add", "--cacheinfo", &entry]);
}

fn odd_name(repo: &TestRepo, name: &[u8]) {
    std::fs::write(repo.path().join(OsStr::from_bytes(name)), "x\n").unwrap();
}

/// What git prints, byte for byte.
fn git_bytes(at: &Path, args: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .args(args)
        .current_dir(at)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Commits a step. A submodule has no work tree here, so `git add` does not touch its entry.
fn commit(repo: &TestRepo, what: &str) -> Oid {
    let staged = repo.git(["diff", "--cached", "--name-only"]);
    if staged.trim().is_empty() {
        let ignored = [":/", ":(exclude)vendor", ":(exclude)src/empty.txt"];
        let is_module = repo
            .git(["ls-files", "--stage", "--", "src/empty.txt"])
            .starts_with("160000");
        let has_module = repo.git(["ls-files", "--", "vendor"]).trim() == "vendor";
        match (has_module, is_module) {
            (false, false) => repo.git(["add", "--all"]),
            _ => repo.git(["add", "--all", "--"].into_iter().chain(ignored)),
        };
    }
    repo.git(["commit", "--quiet", "--message", what]);
    oid(repo, "HEAD")
}

fn oid(repo: &TestRepo, name: &str) -> Oid {
    serde_json::from_value(repo.git(["rev-parse", name]).trim().into()).unwrap()
}

/// Returns the policy that names every path of the patch, or none.
fn policy(patch: &[u8], is_named: bool) -> Policy {
    let named = match parse(patch) {
        Ok(patch) if is_named => patch.paths().into_iter().cloned().collect(),
        Ok(_) | Err(_) => Vec::new(),
    };
    Policy {
        named,
        max_binary_bytes: MAX_BINARY,
        ..Policy::for_roots(vec![PathPrefix::ALL])
    }
}

#[tokio::test]
async fn real_commits_are_reproduced_or_refused() {
    let repo = RepoBuilder::new()
        .files([
            ("src/a.txt", LINES),
            ("src/b.txt", LINES),
            ("docs/a.txt", "docs\n"),
            ("src/place", "x\n"),
        ])
        .build();
    let env = Environment::from_pairs([("PATH", std::env::var_os("PATH").unwrap())], "/");
    let (mut reproduced, mut refused) = (0, 0);
    for (what, make, code, unnamed) in STEPS {
        let base = oid(&repo, "HEAD");
        let git = Git::open(Arc::new(Sandbox::new(None, &env)), &env, repo.path())
            .await
            .unwrap();
        make(&repo);
        let commit = commit(&repo, what);
        let tree = oid(&repo, "HEAD^{tree}");
        // Patches in git's default format, and with detected renames and copies.
        for options in [&["--no-renames"][..], &["-M", "-C", "--find-copies-harder"]] {
            let args = [
                &["diff", "--binary", "--no-ext-diff"],
                options,
                &[base.as_str(), commit.as_str()],
            ];
            let patch = git_bytes(repo.path(), &args.concat());
            let judged = judge_diff(&git, &base, &policy(&patch, true), &patch)
                .await
                .unwrap();
            let found = codes(&judged.verdict);
            match code {
                None => {
                    assert_eq!(found, [""; 0], "{what} {options:?}: {:?}", judged.verdict);
                    let made = judged.change.map(|change| change.tree.tree);
                    assert_eq!(made.as_ref(), Some(&tree), "{what} {options:?}");
                    reproduced += 1;
                }
                Some(code) => {
                    assert_eq!(found, [*code], "{what} {options:?}: {:?}", judged.verdict);
                    assert!(judged.change.is_none(), "{what}");
                    refused += 1;
                }
            }
            let free = judge_diff(&git, &base, &policy(&patch, false), &patch)
                .await
                .unwrap();
            let found = codes(&free.verdict);
            assert_eq!(
                found.is_empty(),
                unnamed.is_empty(),
                "{what} {options:?}: {found:?}"
            );
            assert!(
                unnamed.is_empty() || found.iter().any(|code| code == unnamed),
                "{what} {options:?}: {found:?}"
            );
        }
    }
    println!("{reproduced} reproduced, {refused} refused");
    assert_eq!(reproduced + refused, 2 * STEPS.len());
}

/// A submodule's patch may omit what it changes.
#[tokio::test]
async fn submodule_change_is_recognised() {
    let repo = RepoBuilder::new().file("src/a.txt", LINES).build();
    submodule_at(&repo, '1');
    let base = commit(&repo, "a submodule");
    let env = Environment::from_pairs([("PATH", std::env::var_os("PATH").unwrap())], "/");
    let git = Git::open(Arc::new(Sandbox::new(None, &env)), &env, repo.path())
        .await
        .unwrap();
    let (old, new) = ("1".repeat(40), "2".repeat(40));
    let patch = format!(
        "diff --git a/vendor b/vendor\n--- a/vendor\n+++ b/vendor\n@@ -1 +1 @@\n-Subproject commit {old}\n+Subproject commit {new}\n"
    );
    for is_named in [true, false] {
        let policy = policy(patch.as_bytes(), is_named);
        let judged = judge_diff(&git, &base, &policy, patch.as_bytes())
            .await
            .unwrap();
        assert_eq!(codes(&judged.verdict), [MODULE]);
        assert_eq!(
            codes(&check_patch(&git, &policy, patch.as_bytes()).await.unwrap()),
            [MODULE]
        );
    }
}

/// Git's own result for binary content is not used: the object is the one that the text names.
#[tokio::test]
async fn binary_content_matches_named_object() {
    let repo = RepoBuilder::new()
        .file("src/i.bin", bytes(1, 100))
        .file("src/a.txt", LINES)
        .build();
    let base = oid(&repo, "HEAD");
    let env = Environment::from_pairs([("PATH", std::env::var_os("PATH").unwrap())], "/");
    let git = Git::open(Arc::new(Sandbox::new(None, &env)), &env, repo.path())
        .await
        .unwrap();
    let diff = |content: &[u8]| {
        repo.write("src/i.bin", content);
        let patch = git_bytes(repo.path(), &["diff", "--binary", "--no-ext-diff"]);
        repo.git(["checkout", "--quiet", "--", "."]);
        String::from_utf8(patch).unwrap()
    };
    let judged = async |patch: String| {
        codes(
            &judge_diff(
                &git,
                &base,
                &policy(patch.as_bytes(), true),
                patch.as_bytes(),
            )
            .await
            .unwrap()
            .verdict,
        )
    };
    let honest = diff(&bytes(2, 100));
    assert_eq!(judged(honest.clone()).await, [""; 0]);
    // Another name, a shortened name and none.
    let index = honest
        .lines()
        .find(|line| line.starts_with("index "))
        .unwrap()
        .to_owned();
    let other = format!("{}{} 100644", &index[..index.len() - 47], "7".repeat(40));
    assert!(!judged(honest.replace(&index, &other)).await.is_empty());
    assert!(
        !judged(honest.replace(&index, "index 1234567..7654321 100644"))
            .await
            .is_empty()
    );
    assert!(
        !judged(honest.replace(&format!("{index}\n"), ""))
            .await
            .is_empty()
    );
    // Content that can be read as text is given as text.
    assert_eq!(judged(diff(b"plain text\n")).await, [BINARY]);
    let omitted = honest.split("GIT binary").next().unwrap().to_owned();
    assert_eq!(
        judged(omitted + "Binary files a/src/i.bin and b/src/i.bin differ\n").await,
        [BINARY]
    );
}
