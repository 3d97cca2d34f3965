//! Patches that nobody would write: whatever both the reader and git take, they take for the same change. Where they
//! would not, one of the two has to refuse.
//!
//! Each case is made of honest sections whose lines and bytes are then dropped, doubled, moved, replaced and mixed with lines that mean
//! something to git. The real git applies it to an index, which knows no settings, no work tree and no file system.

#![expect(
    clippy::disallowed_methods,
    reason = "these tests run git in directories of their own"
)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what cannot be set up fails its test"
)]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crucible_model::RepoPath;
use crucible_patch::{Change, FileMode, Patch, Proposal, apply, parse};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// Mode and content by path.
type Tree = BTreeMap<String, (String, Vec<u8>)>;

const TEXT: &str = "one\ntwo\nthree\n";

/// Names among which a careless reader loses its way.
const NAMES: [&str; 9] = [
    "x",
    "a/x",
    "b/x",
    "x b/x",
    "a/a/x",
    "y",
    "dir/z",
    "caf\u{e9}",
    "x ",
];

/// How many of them are there at first.
const THERE: usize = 7;

/// Lines that mean something to git, or nearly.
const LINES: [&str; 30] = [
    "diff --git a/x b/x",
    "diff --git a/y b/y",
    "--- a/y",
    "+++ b/y",
    "--- a/x",
    "+++ b/x",
    "--- /dev/null",
    "+++ /dev/null",
    "rename from x",
    "rename to n",
    "rename old x",
    "copy from y",
    "copy to n",
    "old mode 100644",
    "new mode 100755",
    "new mode 120000",
    "new file mode 100644",
    "new file mode 160000",
    "deleted file mode 100644",
    "index 5626abf..814f4a4 100644",
    "index 5626abf..814f4a4",
    "similarity index 100%",
    "@@ -1 +1 @@",
    "@@ -1,3 +1,3 @@ fn",
    "@@ -0,0 +1 @@",
    "\\ No newline at end of file",
    "+two",
    "-two",
    " one",
    "",
];

struct Fixture {
    dir: tempfile::TempDir,
    before: Tree,
}

impl Fixture {
    /// One repository for all cases; each begins with the same index.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q"], b"");
        for name in &NAMES[..THERE] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, TEXT).unwrap();
            if *name == "y" {
                std::fs::set_permissions(
                    &path,
                    std::os::unix::fs::PermissionsExt::from_mode(0o755),
                )
                .unwrap();
            }
        }
        assert!(git(dir.path(), &["add", "-A"], b"").status.success());
        std::fs::copy(
            dir.path().join(".git/index"),
            dir.path().join("first-index"),
        )
        .unwrap();
        let before = tree(dir.path());
        assert_eq!(before.len(), THERE);
        Self { dir, before }
    }

    /// The tree that git makes of the patch, if it takes it.
    fn theirs(&self, raw: &[u8]) -> Option<Tree> {
        let dir = self.dir.path();
        std::fs::copy(dir.join("first-index"), dir.join(".git/index")).unwrap();
        let applied = git(
            dir,
            &["apply", "--cached", "--whitespace=nowarn", "-p1", "-"],
            raw,
        );
        applied.status.success().then(|| tree(dir))
    }

    /// The tree that the patch's text says, if it is taken.
    fn ours(&self, raw: &[u8]) -> Option<Tree> {
        let patch = parse(raw).ok()?;
        let mut before = BTreeMap::new();
        for path in patch.paths() {
            if let Some((_, content)) = self.before.get(path.as_str()) {
                before.insert(path.clone(), content.clone());
            }
        }
        let after = apply(&Proposal::Diff(raw.to_vec()), &before).ok()?;
        self.said(&patch, &after)
    }

    /// What the text says of names and modes; nothing where it says of a file's mode what is not so.
    fn said(&self, patch: &Patch, after: &BTreeMap<RepoPath, Vec<u8>>) -> Option<Tree> {
        let mut tree = self.before.clone();
        for file in &patch.files {
            let source = file.change.from().unwrap_or(&file.path);
            let had = self
                .before
                .get(source.as_str())
                .map(|(mode, _)| mode.clone());
            if file
                .old_mode
                .is_some_and(|mode| Some(mode.as_str()) != had.as_deref())
            {
                return None;
            }
            if let Change::Rename { from } = &file.change {
                tree.remove(from.as_str());
            }
            if file.change == Change::Delete {
                tree.remove(file.path.as_str());
                continue;
            }
            let plain = || {
                had.clone()
                    .unwrap_or_else(|| FileMode::Regular.as_str().to_owned())
            };
            let mode = file
                .new_mode
                .map_or_else(plain, |mode| mode.as_str().to_owned());
            let content = if mode == "160000" {
                Vec::new()
            } else {
                after.get(&file.path)?.clone()
            };
            tree.insert(file.path.to_string(), (mode, content));
        }
        Some(tree)
    }
}

fn git(dir: &Path, args: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_INDEX_FILE", dir.join(".git/index"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git is installed where these tests run");
    let mut input = child.stdin.take().unwrap();
    // git may have read enough before the end.
    let _closed_early = input.write_all(stdin);
    drop(input);
    child.wait_with_output().unwrap()
}

/// What the index holds.
fn tree(dir: &Path) -> Tree {
    let listed = git(dir, &["ls-files", "--stage", "-z"], b"").stdout;
    let listed = String::from_utf8(listed).unwrap();
    let entries: Vec<(&str, &str, &str)> = listed
        .split_terminator('\0')
        .map(|entry| {
            let (head, path) = entry.split_once('\t').unwrap();
            (&head[..6], &head[7..47], path)
        })
        .collect();
    let names: String = entries
        .iter()
        .map(|(_, oid, _)| format!("{oid}\n"))
        .collect();
    let blobs = git(dir, &["cat-file", "--batch"], names.as_bytes()).stdout;
    let mut rest = blobs.as_slice();
    let mut tree = Tree::new();
    for (mode, _, path) in entries {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
        let head = std::str::from_utf8(&rest[..end]).unwrap();
        rest = &rest[end + 1..];
        // A submodule's commit is in no repository of ours.
        let Some(size) = head
            .split(' ')
            .nth(2)
            .and_then(|size| size.parse::<usize>().ok())
        else {
            tree.insert(path.to_owned(), (mode.to_owned(), Vec::new()));
            continue;
        };
        tree.insert(path.to_owned(), (mode.to_owned(), rest[..size].to_vec()));
        rest = &rest[size + 1..];
    }
    tree
}

fn quoted(prefix: &str, name: &str) -> String {
    if name.is_ascii() {
        format!("{prefix}{name}")
    } else {
        format!("\"{prefix}caf\\303\\251\"")
    }
}

/// An honest section: what happens to the file of one name, or from one name to another.
fn section(kind: usize, from: usize, to: usize) -> Vec<Vec<u8>> {
    let (from, to) = (NAMES[from % NAMES.len()], NAMES[to % NAMES.len()]);
    let (a, b) = (quoted("a/", from), quoted("b/", from));
    let moved = quoted("b/", to);
    let tab = if from.contains(' ') { "\t" } else { "" };
    let hunk = "@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n";
    let text = match kind % 8 {
        0 => format!("diff --git {a} {b}\n--- {a}{tab}\n+++ {b}{tab}\n{hunk}"),
        1 => format!(
            "diff --git {a} {b}\nindex 5626abf..814f4a4 100644\n--- {a}{tab}\n+++ {b}{tab}\n{hunk}"
        ),
        2 => format!(
            "diff --git {a} {b}\nnew file mode 100644\n--- /dev/null\n+++ {b}{tab}\n@@ -0,0 +1,2 @@\n+new\n+++ b/y\n"
        ),
        3 => format!(
            "diff --git {a} {b}\ndeleted file mode 100644\n--- {a}{tab}\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n"
        ),
        4 => format!(
            "diff --git {a} {moved}\nsimilarity index 100%\nrename from {}\nrename to {}\n",
            quoted("", from),
            quoted("", to)
        ),
        5 => format!(
            "diff --git {a} {moved}\nsimilarity index 90%\ncopy from {}\ncopy to {}\n--- {a}{tab}\n+++ {moved}\n{hunk}",
            quoted("", from),
            quoted("", to)
        ),
        6 => format!("diff --git {a} {b}\nold mode 100644\nnew mode 100755\n"),
        _ => format!(
            "diff --git {a} {b}\n--- {a}{tab}\n+++ {b}{tab}\n@@ -1,2 +1,4 @@\n one\n+++ b/y\n+diff --git a/y b/y\n two\n@@ -3 +5,2 @@\n three\n+--- a/y\n"
        ),
    };
    text.split_inclusive('\n')
        .map(|line| line.as_bytes().to_vec())
        .collect()
}

#[derive(Debug, Clone)]
enum Damage {
    Drop(prop::sample::Index),
    Double(prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
    Insert(prop::sample::Index, usize),
    Replace(prop::sample::Index, usize),
    Byte(prop::sample::Index, prop::sample::Index, u8),
    Cut(prop::sample::Index, prop::sample::Index),
    Cover(prop::sample::Index, u8),
}

impl Damage {
    fn any() -> impl Strategy<Value = Self> {
        let at = any::<prop::sample::Index>;
        let byte = prop::sample::select(b" \t\r/\"\\ab0179,-+@\0\xff\x0c.".to_vec());
        prop_oneof![
            2 => at().prop_map(Self::Drop),
            1 => at().prop_map(Self::Double),
            1 => (at(), at()).prop_map(|(a, b)| Self::Swap(a, b)),
            3 => (at(), 0..LINES.len()).prop_map(|(at, line)| Self::Insert(at, line)),
            3 => (at(), 0..LINES.len()).prop_map(|(at, line)| Self::Replace(at, line)),
            2 => (at(), at(), byte.clone()).prop_map(|(line, at, byte)| Self::Byte(line, at, byte)),
            1 => (at(), at()).prop_map(|(line, at)| Self::Cut(line, at)),
            1 => (at(), byte).prop_map(|(line, byte)| Self::Cover(line, byte)),
        ]
    }

    fn to(&self, lines: &mut Vec<Vec<u8>>) {
        lines.retain(|line| !line.is_empty());
        if lines.is_empty() {
            return;
        }
        let count = lines.len();
        let line = |index: usize| format!("{}\n", LINES[index]).into_bytes();
        match self {
            Self::Drop(at) => drop(lines.remove(at.index(count))),
            Self::Double(at) => lines.insert(at.index(count), lines[at.index(count)].clone()),
            Self::Swap(a, b) => lines.swap(a.index(count), b.index(count)),
            Self::Insert(at, index) => lines.insert(at.index(count), line(*index)),
            Self::Replace(at, index) => lines[at.index(count)] = line(*index),
            Self::Byte(at, within, byte) => {
                let line = &mut lines[at.index(count)];
                let within = within.index(line.len());
                line[within] = *byte;
            }
            Self::Cut(at, within) => {
                let line = &mut lines[at.index(count)];
                let within = within.index(line.len());
                line.remove(within);
            }
            Self::Cover(at, byte) => {
                let line = &mut lines[at.index(count)];
                let end = line.len() - 1;
                line.insert(end, *byte);
            }
        }
    }
}

/// Cases of which nothing is known but that git and the reader may both see them.
fn patches() -> impl Strategy<Value = Vec<u8>> {
    let sections = proptest::collection::vec((0usize..8, 0usize..9, 0usize..9), 1..3);
    let damages = proptest::collection::vec(Damage::any(), 0..4);
    (sections, damages).prop_map(|(sections, damages)| {
        let mut lines: Vec<Vec<u8>> = sections
            .into_iter()
            .flat_map(|(kind, from, to)| section(kind, from, to))
            .collect();
        damages.iter().for_each(|damage| damage.to(&mut lines));
        lines.concat()
    })
}

mod properties {
    use super::*;

    #[test]
    fn patch_accepted_by_both_changes_both_equally() {
        let fixture = Fixture::new();
        let taken = std::cell::Cell::new(0u32);
        let config = ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let cases = config.cases;
        TestRunner::new(config)
            .run(&patches(), |raw| {
                if let Some(ours) = fixture.ours(&raw)
                    && let Some(theirs) = fixture.theirs(&raw)
                {
                    taken.set(taken.get() + 1);
                    prop_assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(&raw));
                }
                Ok(())
            })
            .unwrap();
        assert!(
            taken.get() > cases / 50,
            "of {cases} patches both took {}: too few to prove anything",
            taken.get()
        );
    }
}

#[test]
fn honest_sections_are_taken_by_both() {
    let fixture = Fixture::new();
    for (kind, from, to) in [
        (0, 0, 0),
        (0, 3, 0),
        (1, 2, 0),
        (2, 7, 0),
        (3, 1, 0),
        (4, 0, 7),
        (5, 2, 8),
        (6, 4, 0),
        (7, 5, 0),
    ] {
        let raw = section(kind, from, to).concat();
        let text = String::from_utf8_lossy(&raw).into_owned();
        let ours = fixture.ours(&raw);
        assert!(ours.is_some(), "{text}");
        assert_eq!(ours, fixture.theirs(&raw), "{text}");
    }
}
