//! The real git has the last word: what `make_diff` writes, `git apply` takes, and it gives exactly the files asked
//! for; what git writes, `parse` reads; what `parse` reads, git does not read differently.

#![expect(
    clippy::disallowed_methods,
    reason = "these tests run git in directories of their own"
)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what cannot be set up fails its test"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use crucible_model::RepoPath;
use crucible_patch::{Change, DiffError, Proposal, apply, make_diff, parse};
use proptest::prelude::*;

type Files = BTreeMap<RepoPath, Vec<u8>>;

fn git(dir: &Path, args: &[&str]) -> Output {
    Command::new("git")
        .args([
            "-c",
            "core.autocrlf=false",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap_or(dir))
        .output()
        .expect("git is installed where these tests run")
}

fn git_ok(dir: &Path, args: &[&str]) -> Vec<u8> {
    let out = git(dir, args);
    assert!(
        out.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    out.stdout
}

fn write(dir: &Path, files: &Files) {
    for (path, content) in files {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

fn read(dir: &Path) -> Files {
    let mut files = Files::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != ".git") {
                    open.push(path);
                }
            } else {
                let name = path
                    .strip_prefix(dir)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .parse()
                    .unwrap();
                files.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    files
}

/// Applies `patch` with git to `before` and returns what is there afterwards.
fn git_apply(before: &Files, patch: &[u8]) -> Result<Files, String> {
    let home = tempfile::tempdir().unwrap();
    let tree = home.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    write(&tree, before);
    let patch_file = home.path().join("patch");
    std::fs::write(&patch_file, patch).unwrap();
    let patch_file = patch_file.to_str().unwrap();
    for args in [
        &["apply", "--check", patch_file][..],
        &["apply", "--whitespace=nowarn", patch_file],
    ] {
        let out = git(&tree, args);
        if !out.status.success() {
            return Err(String::from_utf8_lossy(&out.stderr).into_owned());
        }
    }
    Ok(read(&tree))
}

fn files(pairs: &[(&str, &[u8])]) -> Files {
    pairs
        .iter()
        .map(|(path, content)| (path.parse().unwrap(), content.to_vec()))
        .collect()
}

/// Everything that has to hold for a pair of trees.
fn check(before: &Files, after: &Files) {
    let diff = make_diff(before, after).unwrap();
    if before == after {
        assert!(diff.is_empty());
        return;
    }
    let text = String::from_utf8_lossy(&diff);
    assert!(diff.starts_with(b"diff --git "), "{text}");
    assert_eq!(git_apply(before, &diff).as_ref(), Ok(after), "{text}");
    let patch = parse(&diff).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let changed: BTreeSet<&RepoPath> = before
        .keys()
        .chain(after.keys())
        .filter(|path| before.get(*path) != after.get(*path))
        .collect();
    assert_eq!(patch.paths().into_iter().collect::<BTreeSet<_>>(), changed);
    let mut own_files = before.clone();
    for file in &patch.files {
        match file.change {
            Change::Create => assert!(!before.contains_key(&file.path)),
            Change::Delete => assert!(own_files.remove(&file.path).is_some()),
            Change::Modify => assert!(before.contains_key(&file.path)),
            Change::Rename { .. } | Change::Copy { .. } => panic!("renames are never written"),
        }
    }
    own_files.extend(apply(&Proposal::Diff(diff), before).unwrap());
    assert_eq!(&own_files, after);
}

fn name() -> impl Strategy<Value = RepoPath> {
    let segment = "[a-c]{1,2}|[a-z\"'\n\t\r é\u{1}\u{2028}$&;+-]{1,6}|a b|ab |b/a b|b";
    proptest::collection::vec(segment, 1..3)
        .prop_map(|segments| segments.join("/"))
        .prop_filter_map("not a path", |text| text.parse().ok())
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => "[ab]{0,2}".prop_map(String::into_bytes),
        1 => Just(b"++ b/x".to_vec()),
        1 => Just(b"-- a/x".to_vec()),
        1 => Just(b"diff --git a/x b/x".to_vec()),
        1 => Just(b"\\ No newline at end of file".to_vec()),
        1 => Just("\u{2028}\u{c}é\t ".as_bytes().to_vec()),
        1 => Just(b"\xff\xfe".to_vec()),
        1 => Just(b"x\r".to_vec()),
    ];
    (proptest::collection::vec(line, 0..14), any::<bool>()).prop_map(|(lines, ends)| {
        let mut out = lines.join(&b'\n');
        if ends && !out.is_empty() {
            out.push(b'\n');
        }
        out
    })
}

/// No file may stand where another file has its directory.
fn without_conflicts(files: Files, other: &Files) -> Files {
    let all: Vec<RepoPath> = files.keys().chain(other.keys()).cloned().collect();
    let is_directory = |path: &RepoPath| {
        all.iter()
            .any(|other| other.as_str().starts_with(&format!("{path}/")))
    };
    files
        .into_iter()
        .filter(|(path, _)| !is_directory(path))
        .collect()
}

fn trees() -> impl Strategy<Value = (Files, Files)> {
    let shared = proptest::collection::btree_map(name(), (content(), content()), 0..3);
    let tree = || proptest::collection::btree_map(name(), content(), 0..3);
    (shared, tree(), tree()).prop_map(|(shared, mut before, mut after)| {
        for (path, (old, new)) in shared {
            before.insert(path.clone(), old);
            after.insert(path, new);
        }
        let after = without_conflicts(after, &before);
        (without_conflicts(before, &after), after)
    })
}

/// Moves a hunk header three lines up to one line down, on both sides.
fn moved(line: &mut Vec<u8>, by: usize) {
    let Some(header) = line.strip_prefix(b"@@ -") else {
        return;
    };
    let header = std::str::from_utf8(header).unwrap();
    let (old, new) = header.split_once(" +").unwrap();
    let shift = |range: &str| {
        let end = range
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(range.len());
        let start: usize = range[..end].parse().unwrap();
        format!("{}{}", (start + by).saturating_sub(3), &range[end..])
    };
    *line = format!("@@ -{} +{}", shift(old), shift(new)).into_bytes();
}

mod properties {
    use crucible_testkit::expensive_cases;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(expensive_cases()))]

        #[test]
        fn git_applies_every_generated_diff_exactly((before, after) in trees()) {
            check(&before, &after);
        }

        /// Whatever parser and git both accept, they understand in the same way.
        #[test]
        fn damaged_diff_never_differs_from_git(
            (old, new) in (content(), content()),
            at in any::<prop::sample::Index>(),
            kind in 0usize..8,
        ) {
            let before = BTreeMap::from([("x".parse::<RepoPath>().unwrap(), old)]);
            let after = BTreeMap::from([("x".parse::<RepoPath>().unwrap(), new)]);
            let diff = make_diff(&before, &after).unwrap();
            prop_assume!(!diff.is_empty());
            let mut lines: Vec<Vec<u8>> = diff.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            let at = at.index(lines.len());
            match kind {
                0 => { lines.remove(at); }
                1 => lines.insert(at, lines[at].clone()),
                2 => lines[at][0] = b'+',
                3 => lines[at][0] = b'-',
                _ => lines.iter_mut().for_each(|line| moved(line, kind - 4)),
            }
            let damaged = lines.concat();
            if let (Ok(own_files), Ok(other_files)) = (apply(&Proposal::Diff(damaged.clone()), &before), git_apply(&before, &damaged)) {
                prop_assert_eq!(own_files, other_files, "{}", String::from_utf8_lossy(&damaged));
            }
        }
    }
}

#[test]
fn the_corners_of_files_and_names() {
    let big: Vec<u8> = (0..300)
        .flat_map(|n| format!("line {n}\n").into_bytes())
        .collect();
    let changed = String::from_utf8(big.clone())
        .unwrap()
        .replace("line 7\n", "")
        .replace("line 200\n", "new\nnew\n");
    for (before, after) in [
        (files(&[]), files(&[("e", b"")])),
        (files(&[("e", b"")]), files(&[])),
        (files(&[("e", b"")]), files(&[("e", b"x")])),
        (files(&[("e", b"x")]), files(&[("e", b"")])),
        (files(&[("e", b"x\n")]), files(&[("e", b"x")])),
        (files(&[("e", b"x\r\n")]), files(&[("e", b"x\n")])),
        (files(&[("e", b"\n\n")]), files(&[("e", b"\n")])),
        (
            files(&[("a/b c/d\te\n\"", b"x")]),
            files(&[("a/b c/d\te\n\"", b"y"), ("é", b"z"), ("a b/x", b"q\n")]),
        ),
        (files(&[("x b/x", b"1\n")]), files(&[("x b/x", b"2\n")])),
        (files(&[("a/a/x", b"1\n")]), files(&[("a/a/x", b"2\n")])),
        (
            files(&[("big", &big)]),
            files(&[("big", changed.as_bytes())]),
        ),
    ] {
        check(&before, &after);
    }
}

#[test]
fn binary_content_is_refused() {
    let path: RepoPath = "i".parse().unwrap();
    let error = Err(DiffError::Binary { path });
    assert_eq!(make_diff(&files(&[]), &files(&[("i", b"\0")])), error);
    assert_eq!(make_diff(&files(&[("i", b"x\0")]), &files(&[])), error);
    assert_eq!(
        make_diff(&files(&[("i", b"\0")]), &files(&[("i", b"\0")])),
        Ok(Vec::new())
    );
}

#[test]
fn git_generated_diff_is_parsed() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    let text: Vec<u8> = (0..40)
        .flat_map(|n| format!("line {n}\n").into_bytes())
        .collect();
    let names = [
        "a b.txt",
        "t\tab \"q\"",
        "é/ü",
        "x b/x",
        "plain",
        "gone",
        "moved from",
        "copied",
        "mode",
    ];
    write(
        dir,
        &names
            .iter()
            .map(|name| (name.parse().unwrap(), text.clone()))
            .collect(),
    );
    std::fs::write(dir.join("bin"), b"\0\x01\x02").unwrap();
    git_ok(dir, &["init", "-q"]);
    git_ok(dir, &["add", "-A"]);
    let who = ["-c", "user.name=a", "-c", "user.email=a@a"];
    git_ok(dir, &[&who[..], &["commit", "-qm", "x"]].concat());
    let changed = String::from_utf8(text)
        .unwrap()
        .replace("line 3\n", "++ b/x\ndiff --git a/q b/q\n")
        .replace("line 39\n", "end");
    for name in ["a b.txt", "t\tab \"q\"", "é/ü", "x b/x", "plain", "copied"] {
        std::fs::write(dir.join(name), &changed).unwrap();
    }
    std::fs::remove_file(dir.join("gone")).unwrap();
    std::fs::rename(dir.join("moved from"), dir.join("moved to")).unwrap();
    std::fs::write(dir.join("a copy"), &changed).unwrap();
    std::fs::write(dir.join("bin"), b"\0\x01\x03").unwrap();
    std::fs::write(dir.join("empty"), b"").unwrap();
    std::os::unix::fs::symlink("plain", dir.join("link")).unwrap();
    std::fs::set_permissions(
        dir.join("mode"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    git_ok(dir, &["add", "-A"]);
    for options in [
        &["-M"][..],
        &["-C", "--find-copies-harder"],
        &["--no-renames"],
        &["--binary"],
        &["-U0"],
        &["-B", "-M"],
    ] {
        for quote in ["core.quotePath=true", "core.quotePath=false"] {
            let args = [&["-c", quote, "diff", "--cached"][..], options].concat();
            let diff = git_ok(dir, &args);
            let patch = parse(&diff).unwrap_or_else(|error| {
                panic!("{options:?}: {error}\n{}", String::from_utf8_lossy(&diff))
            });
            let listed = git_ok(
                dir,
                &[&["diff", "--cached", "--name-only", "-z"][..], options].concat(),
            );
            let listed: BTreeSet<&str> = std::str::from_utf8(&listed)
                .unwrap()
                .split('\0')
                .filter(|name| !name.is_empty())
                .collect();
            let parsed: BTreeSet<&str> =
                patch.files.iter().map(|file| file.path.as_str()).collect();
            assert_eq!(parsed, listed, "{options:?}");
        }
    }
}
