//! Tests on real files, with hostile changes and killed processes.

#![expect(
    clippy::disallowed_methods,
    reason = "tests plant files and links, and start themselves as a child"
)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::rc::Rc;

use rustix::fs::RenameFlags;
use rustix::io::Errno;
use tempfile::TempDir;

use super::*;

mod journal;

mod any;
mod recovery;

/// What a file system can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Renaming {
    /// It exchanges names, and renames to names that are free.
    Full,
    /// It knows neither.
    Plain,
}

thread_local! {
    /// Called before a file system without exchange is asked to exchange names, or to rename to a free one.
    static BEFORE_REFUSAL: RefCell<Box<dyn FnMut(RenameFlags)>> = RefCell::new(Box::new(|_| {}));
}

impl Renaming {
    fn open(self, root: &Path) -> Root {
        let root = Root::open(root).unwrap();
        match self {
            Self::Full => root,
            Self::Plain => root.with_renaming(Self::refuse),
        }
    }

    fn refuse(
        _: BorrowedFd<'_>,
        _: &OsStr,
        _: BorrowedFd<'_>,
        _: &OsStr,
        how: RenameFlags,
    ) -> Result<(), Errno> {
        assert!(!how.is_empty());
        BEFORE_REFUSAL.with_borrow_mut(|before| before(how));
        Err(Errno::INVAL)
    }
}

/// The purpose of these changes.
fn purpose() -> Digest {
    Digest::compute(b"these tests")
}

/// The journal at this path, of a change that is ours whatever it claims.
fn journal_at(path: &Path) -> EditJournal<'_> {
    EditJournal {
        path,
        purpose: purpose(),
        agrees: &|_| true,
    }
}

/// A project and the place of its journal.
struct Fixture {
    dir: TempDir,
}

impl Fixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let fixture = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir_all(fixture.root()).unwrap();
        std::fs::create_dir_all(fixture.dir.path().join("context")).unwrap();
        files
            .iter()
            .for_each(|(path, content)| fixture.put(path, content));
        fixture
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    fn journal(&self) -> PathBuf {
        self.dir.path().join("context/journal.json")
    }

    fn put(&self, path: &str, content: &str) {
        std::fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        std::fs::write(self.at(path), content).unwrap();
    }

    fn edit(&self, edits: &[TreeEdit]) -> Result<Vec<EditedFile>, TreeEditError> {
        edit_tree(&self.root(), edits, &journal_at(&self.journal()))
    }

    fn mode(&self, path: &str) -> u32 {
        self.at(path).metadata().unwrap().permissions().mode() & 0o7777
    }

    /// Lists every path below the project with its content; links with their targets, directories without.
    fn tree(&self) -> BTreeMap<String, String> {
        let mut tree = BTreeMap::new();
        let mut open = vec![self.root()];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let name = path
                    .strip_prefix(self.root())
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                let meta = path.symlink_metadata().unwrap();
                let content = if meta.is_symlink() {
                    format!("-> {}", std::fs::read_link(&path).unwrap().display())
                } else if meta.is_dir() {
                    open.push(path);
                    "/".to_owned()
                } else if meta.is_file() {
                    String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()
                } else {
                    "?".to_owned()
                };
                tree.insert(name, content);
            }
        }
        tree
    }

    /// Nothing of the change is left anywhere.
    fn assert_clean(&self) {
        assert!(!self.journal().exists(), "the journal is left");
        let left: Vec<String> = self
            .tree()
            .into_keys()
            .filter(|name| name.contains(".crucible-edit-"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// Checks that the edits are refused for this reason and nothing changes.
    fn assert_blocked(&self, edits: &[TreeEdit], at: &str, expected: EditObstacle) {
        let before = self.tree();
        match self.edit(edits) {
            Err(TreeEditError::Blocked { path, why }) => {
                assert_eq!((path.as_str(), why), (at, expected))
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(self.tree(), before);
        self.assert_clean();
    }
}

fn change(path: &str, before: &str, after: &str) -> TreeEdit {
    edit(path, Some(before), Some(after))
}

fn edit(path: &str, before: Option<&str>, after: Option<&str>) -> TreeEdit {
    TreeEdit {
        path: path.parse().unwrap(),
        before: before.map(|text| Digest::compute(text.as_bytes())),
        after: after.map(|text| text.as_bytes().to_vec()),
        new_file: NewFile::Plain,
    }
}

#[test]
fn edits_apply_byte_for_byte() {
    let fixture = Fixture::new(&[
        ("src/crlf.txt", "a\r\nb\r\n"),
        ("src/end.txt", "no newline"),
        ("src/full.txt", "x\n"),
        ("src/empty.txt", ""),
        ("old/deep/gone.txt", "bye\n"),
        ("kept.txt", "kept\n"),
    ]);
    let edited = fixture
        .edit(&[
            change("src/crlf.txt", "a\r\nb\r\n", "a\r\nc\r\n"),
            change("src/end.txt", "no newline", "still none"),
            change("src/full.txt", "x\n", ""),
            change("src/empty.txt", "", "now\n"),
            edit("old/deep/gone.txt", Some("bye\n"), None),
            edit("new/a/b.txt", None, Some("hello\n")),
            edit("new/a/c.txt", None, Some("")),
        ])
        .unwrap();
    assert_eq!(edited.len(), 7);
    assert!(
        edited.iter().all(|file| file.notes.is_empty()),
        "{edited:?}"
    );
    let expected = [
        ("kept.txt", "kept\n"),
        ("new", "/"),
        ("new/a", "/"),
        ("new/a/b.txt", "hello\n"),
        ("new/a/c.txt", ""),
        ("src", "/"),
        ("src/crlf.txt", "a\r\nc\r\n"),
        ("src/empty.txt", "now\n"),
        ("src/end.txt", "still none"),
        ("src/full.txt", ""),
    ];
    let tree: Vec<(String, String)> = fixture.tree().into_iter().collect();
    let tree: Vec<(&str, &str)> = tree
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_str()))
        .collect();
    assert_eq!(tree, expected);
    assert_eq!(fixture.mode("new/a/b.txt"), 0o644);
    fixture.assert_clean();
}

#[test]
fn permission_bits_stay_special_bits_go() {
    let fixture = Fixture::new(&[
        ("run.sh", "a"),
        ("private", "a"),
        ("suid", "a"),
        ("twin", "a"),
    ]);
    for (path, mode) in [
        ("run.sh", 0o755),
        ("private", 0o600),
        ("suid", 0o4755),
        ("twin", 0o644),
    ] {
        std::fs::set_permissions(fixture.at(path), PermissionsExt::from_mode(mode)).unwrap();
    }
    std::fs::hard_link(fixture.at("twin"), fixture.dir.path().join("outside")).unwrap();
    let edits = ["run.sh", "private", "suid", "twin"].map(|path| change(path, "a", "b"));
    let edited = fixture.edit(&edits).unwrap();
    assert_eq!(fixture.mode("run.sh"), 0o755);
    assert_eq!(fixture.mode("private"), 0o600);
    assert_eq!(fixture.mode("suid"), 0o755);
    assert_eq!(fixture.mode("twin"), 0o644);
    let notes: Vec<&[EditNote]> = edited.iter().map(|file| file.notes.as_slice()).collect();
    assert_eq!(
        notes,
        [
            &[][..],
            &[],
            &[EditNote::SpecialBits],
            &[EditNote::OtherNames(1)]
        ]
    );
    assert_eq!(
        std::fs::read(fixture.dir.path().join("outside")).unwrap(),
        b"a",
        "another name was written through"
    );
    fixture.assert_clean();
}

#[test]
fn one_unexpected_file_blocks_all_edits() {
    let fixture = Fixture::new(&[
        ("a.txt", "a"),
        ("b.txt", "other"),
        ("dir/x", "x"),
        ("locked", "a"),
        ("file", "a"),
    ]);
    std::fs::set_permissions(fixture.at("locked"), PermissionsExt::from_mode(0o444)).unwrap();
    let pipe = fixture.at("pipe");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    let good = || change("a.txt", "a", "A");
    for (bad, why) in [
        (change("b.txt", "b", "B"), EditObstacle::Changed),
        (change("gone.txt", "b", "B"), EditObstacle::Missing),
        (change("no/where/gone.txt", "b", "B"), EditObstacle::Missing),
        (edit("gone.txt", Some("b"), None), EditObstacle::Missing),
        (edit("b.txt", None, Some("B")), EditObstacle::InTheWay),
        (edit("dir", None, Some("B")), EditObstacle::InTheWay),
        (edit("file/below", None, Some("B")), EditObstacle::InTheWay),
        (edit("pipe", None, Some("B")), EditObstacle::InTheWay),
        (change("dir", "b", "B"), EditObstacle::NoFile),
        (edit("dir", Some("b"), None), EditObstacle::NoFile),
        (change("file/below", "b", "B"), EditObstacle::NoFile),
        (change("pipe", "b", "B"), EditObstacle::NoFile),
        (change("locked", "a", "B"), EditObstacle::ReadOnly),
        (change("a.txt", "a", "again"), EditObstacle::Twice),
    ] {
        let at = bad.path.to_string();
        fixture.assert_blocked(&[good(), bad], &at, why);
    }
    std::fs::hard_link(fixture.at("a.txt"), fixture.at("alias.txt")).unwrap();
    fixture.assert_blocked(
        &[good(), change("alias.txt", "a", "B")],
        "alias.txt",
        EditObstacle::Twice,
    );
    let large = vec![b'x'; usize::try_from(MAX_EDITED_BYTES).unwrap() + 1];
    let large = TreeEdit {
        after: Some(large),
        ..good()
    };
    fixture.assert_blocked(&[large], "a.txt", EditObstacle::TooLarge);
}

#[test]
fn edits_never_follow_links() {
    let fixture = Fixture::new(&[("real/a.txt", "a"), ("first.txt", "1")]);
    let outside = fixture.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a.txt"), "a").unwrap();
    symlink(&outside, fixture.at("out")).unwrap();
    symlink("real", fixture.at("in")).unwrap();
    symlink("real/a.txt", fixture.at("link.txt")).unwrap();
    symlink("/nowhere/at/all", fixture.at("dangling")).unwrap();
    for (bad, at) in [
        (change("out/a.txt", "a", "B"), "out/a.txt"),
        (edit("out/new.txt", None, Some("B")), "out/new.txt"),
        (
            edit("out/new/deep.txt", None, Some("B")),
            "out/new/deep.txt",
        ),
        (change("in/a.txt", "a", "B"), "in/a.txt"),
        (change("link.txt", "a", "B"), "link.txt"),
        (edit("link.txt", Some("a"), None), "link.txt"),
        (edit("dangling", None, Some("B")), "dangling"),
    ] {
        fixture.assert_blocked(
            &[change("first.txt", "1", "2"), bad],
            at,
            EditObstacle::Link,
        );
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(std::fs::read(outside.join("a.txt")).unwrap(), b"a");
}

#[test]
fn link_is_followed_inside_root_on_request() {
    let fixture = Fixture::new(&[
        ("real/a.txt", "a"),
        (".git/config", "g"),
        ("deep/er/x", "x"),
    ]);
    std::fs::write(fixture.dir.path().join("secret.txt"), "s").unwrap();
    symlink("../real/a.txt", fixture.at("deep/link.txt")).unwrap();
    symlink("real", fixture.at("in")).unwrap();
    symlink("../secret.txt", fixture.at("up.txt")).unwrap();
    symlink(fixture.dir.path(), fixture.at("out")).unwrap();
    symlink(".git/config", fixture.at("git.txt")).unwrap();
    symlink("gone", fixture.at("dangling")).unwrap();
    symlink("loop", fixture.at("loop")).unwrap();
    let read = |path: &str, links| {
        read_tree_file(
            &fixture.root(),
            &path.parse().unwrap(),
            links,
            ByteLimit(10),
        )
    };
    let inside = |path| read(path, LinkPolicy::InsideProject);
    for (path, real, bytes) in [
        ("deep/link.txt", "real/a.txt", Some("a")),
        ("in/a.txt", "real/a.txt", Some("a")),
        ("in/new/b.txt", "real/new/b.txt", None),
        ("real/a.txt", "real/a.txt", Some("a")),
    ] {
        let file = inside(path).unwrap();
        assert_eq!(file.real.as_str(), real);
        assert_eq!(file.bytes.as_deref(), bytes.map(str::as_bytes));
    }
    for path in [
        "up.txt",
        "out/secret.txt",
        "out/new.txt",
        "git.txt",
        "dangling",
        "loop",
    ] {
        let found = inside(path);
        assert!(
            matches!(
                found,
                Err(TreeEditError::Blocked {
                    why: EditObstacle::LeadsOut,
                    ..
                })
            ),
            "{path}: {found:?}"
        );
        let refused = read(path, LinkPolicy::Refuse);
        assert!(
            matches!(
                refused,
                Err(TreeEditError::Blocked {
                    why: EditObstacle::Link,
                    ..
                })
            ),
            "{path}: {refused:?}"
        );
    }
    let long = read("real/a.txt", LinkPolicy::Refuse).unwrap();
    assert_eq!(long.bytes.as_deref(), Some(&b"a"[..]));
    fixture.put("long.txt", "eleven bytes");
    let long = read("long.txt", LinkPolicy::Refuse);
    assert!(
        matches!(
            long,
            Err(TreeEditError::Blocked {
                why: EditObstacle::TooLarge,
                ..
            })
        ),
        "{long:?}"
    );
}

/// Foreign changes between the check and the edit, and their results.
#[test]
fn race_after_check_is_detected() {
    type Meddle = fn(&Fixture);
    let meddling: [(EditStep, Meddle, EditObstacle); 8] = [
        (
            EditStep::Ready,
            |fixture| fixture.put("b.txt", "mine"),
            EditObstacle::Changed,
        ),
        (
            EditStep::Swapped(0),
            |fixture| fixture.put("b.txt", "mine"),
            EditObstacle::Changed,
        ),
        (
            EditStep::Ready,
            |fixture| std::fs::remove_file(fixture.at("b.txt")).unwrap(),
            EditObstacle::Missing,
        ),
        (
            EditStep::Swapped(0),
            |fixture| {
                std::fs::remove_file(fixture.at("b.txt")).unwrap();
                std::fs::write(fixture.dir.path().join("outside.txt"), "b").unwrap();
                symlink("../outside.txt", fixture.at("b.txt")).unwrap();
            },
            EditObstacle::Changed,
        ),
        (
            EditStep::Swapped(0),
            |fixture| {
                std::fs::remove_file(fixture.at("b.txt")).unwrap();
                std::fs::create_dir(fixture.at("b.txt")).unwrap();
            },
            EditObstacle::Changed,
        ),
        (
            EditStep::Swapped(1),
            |fixture| fixture.put("new.txt", "mine"),
            EditObstacle::InTheWay,
        ),
        (
            EditStep::Swapped(2),
            |fixture| fixture.put("gone.txt", "mine"),
            EditObstacle::Changed,
        ),
        (
            EditStep::Swapped(2),
            |fixture| std::fs::remove_file(fixture.at("gone.txt")).unwrap(),
            EditObstacle::Missing,
        ),
    ];
    let everywhere = meddling
        .into_iter()
        .flat_map(|one| [Renaming::Full, Renaming::Plain].map(|renaming| (renaming, one)));
    for (renaming, (at, meddle, expected)) in everywhere {
        let fixture = Fixture::new(&[("a.txt", "a"), ("b.txt", "b"), ("gone.txt", "g")]);
        let edits = [
            change("a.txt", "a", "A"),
            change("b.txt", "b", "B"),
            edit("new.txt", None, Some("N")),
            edit("gone.txt", Some("g"), None),
        ];
        let mut theirs = BTreeMap::new();
        let result = edit_with_observer(
            &renaming.open(&fixture.root()),
            &edits,
            &journal_at(&fixture.journal()),
            &mut |step| {
                if step == at {
                    meddle(&fixture);
                    theirs = fixture.tree();
                }
            },
        );
        match result {
            Err(TreeEditError::Blocked { why, .. }) => {
                assert_eq!(why, expected, "{renaming:?}, {at:?}")
            }
            other => panic!("{renaming:?}, {at:?}: {other:?}"),
        }
        // What they did stays, and everything that was changed by then is as it was.
        let mut expected = theirs;
        expected.retain(|name, _| !name.contains(".crucible-edit-"));
        expected.insert("a.txt".to_owned(), "a".to_owned());
        if matches!(at, EditStep::Swapped(1 | 2)) {
            expected.insert("b.txt".to_owned(), "b".to_owned());
        }
        if at == EditStep::Swapped(2) {
            expected.remove("new.txt");
        }
        assert_eq!(fixture.tree(), expected, "{renaming:?}, {at:?}");
        fixture.assert_clean();
        if fixture.dir.path().join("outside.txt").exists() {
            assert_eq!(
                std::fs::read(fixture.dir.path().join("outside.txt")).unwrap(),
                b"b"
            );
        }
    }
}

/// Without an exchange, there is a moment with the old file set aside and nothing in its place.
#[test]
fn race_during_set_aside_keeps_both_files() {
    let fixture = Fixture::new(&[("a.txt", "a"), ("b.txt", "b")]);
    let edits = [change("a.txt", "a", "A"), change("b.txt", "b", "B")];
    let before = fixture.tree();
    let other_path = fixture.at("b.txt");
    BEFORE_REFUSAL.set(Box::new(move |_| {
        if !other_path.exists() {
            std::fs::write(&other_path, "mine").unwrap();
        }
    }));
    let root = Renaming::Plain.open(&fixture.root());
    let result = edit_with_observer(&root, &edits, &journal_at(&fixture.journal()), &mut |_| {});
    match result {
        Err(TreeEditError::NotRolledBack { paths, .. }) => assert_eq!(paths, ["b.txt"]),
        other => panic!("{other:?}"),
    }
    assert_eq!(std::fs::read(fixture.at("b.txt")).unwrap(), b"mine");
    assert_eq!(std::fs::read(fixture.at("a.txt")).unwrap(), b"a");
    // Once the foreign file is removed, the old one is restored.
    BEFORE_REFUSAL.set(Box::new(|_| {}));
    std::fs::remove_file(fixture.at("b.txt")).unwrap();
    assert_eq!(
        recover::recover(&root, &journal_at(&fixture.journal()))
            .unwrap()
            .outcome,
        EditRecovery::RolledBack
    );
    assert_eq!(fixture.tree(), before);
    fixture.assert_clean();
}

#[test]
fn parent_turned_link_is_not_followed() {
    for at in [
        EditStep::Checked,
        EditStep::JournalWritten,
        EditStep::Staged(0),
        EditStep::Ready,
    ] {
        let fixture = Fixture::new(&[("src/a.txt", "a"), ("z.txt", "z")]);
        let outside = fixture.dir.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("a.txt"), "a").unwrap();
        let edits = [change("src/a.txt", "a", "A"), change("z.txt", "z", "Z")];
        let result = edit_with_observer(
            &Renaming::Full.open(&fixture.root()),
            &edits,
            &journal_at(&fixture.journal()),
            &mut |step| {
                if step == at {
                    std::fs::rename(fixture.at("src"), fixture.at("moved")).unwrap();
                    symlink(&outside, fixture.at("src")).unwrap();
                }
            },
        );
        assert_eq!(
            std::fs::read_dir(&outside).unwrap().count(),
            1,
            "{at:?}: {result:?}"
        );
        assert_eq!(
            std::fs::read(outside.join("a.txt")).unwrap(),
            b"a",
            "{at:?}"
        );
        if matches!(at, EditStep::Checked | EditStep::JournalWritten) {
            assert!(result.is_err(), "{at:?}");
            assert_eq!(std::fs::read(fixture.at("z.txt")).unwrap(), b"z", "{at:?}");
        }
    }
}

/// The variable that makes the test binary act as the child.
const CHILD: &str = "TREE_EDIT_OF_A_CHILD";
/// Before which step the child dies.
const DIES_AT: &str = "TREE_EDIT_DIES_AT";
/// Set if the child's file system cannot exchange names.
const IS_PLAIN: &str = "TREE_EDIT_IS_PLAIN";

fn scenario_edits() -> [TreeEdit; 4] {
    [
        change("a.txt", "a", "A"),
        edit("new/dir/n.txt", None, Some("N")),
        change("src/run.sh", "run", "RUN"),
        edit("old/gone.txt", Some("g"), None),
    ]
}

fn scenario_fixture() -> Fixture {
    let fixture = Fixture::new(&[("a.txt", "a"), ("src/run.sh", "run"), ("old/gone.txt", "g")]);
    std::fs::set_permissions(fixture.at("src/run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    fixture
}

/// Starts this test binary as a child that runs the scenario and is killed before this step. `None` if it
/// reached its end.
fn killed_at(test: &str, fixture: &Fixture, renaming: Renaming, step: u32) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "--nocapture", test]);
    child
        .env(CHILD, fixture.dir.path())
        .env(DIES_AT, step.to_string())
        .env_remove(IS_PLAIN);
    if renaming == Renaming::Plain {
        child.env(IS_PLAIN, "1");
    }
    let output = child.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() || output.status.signal() == Some(9),
        "{:?}: {stderr}",
        output.status
    );
    output.status.signal()
}

/// The child: runs the scenario in the given directory, and kills itself. `None` if this is not the child.
fn play_child() -> Option<()> {
    let dir = PathBuf::from(std::env::var_os(CHILD)?);
    let dies_at: u32 = std::env::var(DIES_AT).unwrap().parse().unwrap();
    let renaming = if std::env::var_os(IS_PLAIN).is_some() {
        Renaming::Plain
    } else {
        Renaming::Full
    };
    let steps = Rc::new(Cell::new(0));
    let step = move || {
        if steps.replace(steps.get() + 1) == dies_at {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
                .unwrap();
        }
    };
    let refused = step.clone();
    BEFORE_REFUSAL.set(Box::new(move |_| refused()));
    let root = renaming.open(&dir.join("project"));
    edit_with_observer(
        &root,
        &scenario_edits(),
        &journal_at(&dir.join("context/journal.json")),
        &mut |_| step(),
    )
    .unwrap();
    Some(())
}

/// This test is its own child, killed at each step.
#[test]
fn kill_at_any_step_is_recovered() {
    let name = "tree_edit::tests::kill_at_any_step_is_recovered";
    if play_child().is_some() {
        return;
    }
    let untouched = scenario_fixture();
    let before = untouched.tree();
    untouched.edit(&scenario_edits()).unwrap();
    let after = untouched.tree();
    for renaming in [Renaming::Full, Renaming::Plain] {
        all_or_nothing_at_each_step(name, renaming, &before, &after);
    }
}

fn all_or_nothing_at_each_step(
    name: &str,
    renaming: Renaming,
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) {
    let mut ends = [0, 0];
    for step in 0.. {
        let fixture = scenario_fixture();
        let killed = killed_at(name, &fixture, renaming, step);
        let recovery = recover::recover(
            &renaming.open(&fixture.root()),
            &journal_at(&fixture.journal()),
        )
        .unwrap()
        .outcome;
        fixture.assert_clean();
        let tree = &fixture.tree();
        assert!(
            tree == before || tree == after,
            "{renaming:?}, step {step}: {tree:?}"
        );
        ends[usize::from(tree == after)] += 1;
        match recovery {
            EditRecovery::Nothing => {
                assert!(step == 0 || killed.is_none(), "{renaming:?}, step {step}")
            }
            EditRecovery::Finished => assert_eq!(tree, after, "{renaming:?}, step {step}"),
            EditRecovery::RolledBack => assert_eq!(tree, before, "{renaming:?}, step {step}"),
        }
        assert_eq!(fixture.mode("src/run.sh"), 0o755);
        // It happened once: a second recovery finds nothing to do.
        assert_eq!(
            recover_tree_edit(&fixture.root(), &journal_at(&fixture.journal()))
                .unwrap()
                .outcome,
            EditRecovery::Nothing
        );
        if tree == before {
            fixture.edit(&scenario_edits()).unwrap();
            assert_eq!(fixture.tree(), *after);
        }
        if killed.is_none() {
            break;
        }
    }
    assert!(
        ends[0] >= 5 && ends[1] >= 8,
        "the child was not killed at all steps: {ends:?}"
    );
}

/// This test is its own child, too. Files are edited between the kill and the recovery.
#[test]
fn edit_after_kill_is_preserved() {
    let name = "tree_edit::tests::edit_after_kill_is_preserved";
    if play_child().is_some() {
        return;
    }
    for renaming in [Renaming::Full, Renaming::Plain] {
        edited_after_each_step(name, renaming);
    }
}

fn edited_after_each_step(name: &str, renaming: Renaming) {
    for step in 0.. {
        for path in ["a.txt", "src/run.sh"] {
            let fixture = scenario_fixture();
            let killed = killed_at(name, &fixture, renaming, step);
            fixture.put(path, "mine");
            let recovery = recover::recover(
                &renaming.open(&fixture.root()),
                &journal_at(&fixture.journal()),
            );
            assert!(recovery.is_ok(), "step {step}, {path}: {recovery:?}");
            assert_eq!(
                std::fs::read(fixture.at(path)).unwrap(),
                b"mine",
                "step {step}, {path}"
            );
            fixture.assert_clean();
            // The others are all old or all new.
            let a = std::fs::read(fixture.at(if path == "a.txt" {
                "src/run.sh"
            } else {
                "a.txt"
            }))
            .unwrap();
            let is_new = a.iter().all(u8::is_ascii_uppercase);
            assert_eq!(
                fixture.at("new/dir/n.txt").exists(),
                is_new,
                "step {step}, {path}: {recovery:?}"
            );
            assert_eq!(
                fixture.at("old/gone.txt").exists(),
                !is_new,
                "step {step}, {path}: {recovery:?}"
            );
            if killed.is_none() {
                return;
            }
        }
    }
}

#[test]
fn failed_change_is_not_finished_later() {
    let fixture = Fixture::new(&[("a.txt", "a"), ("b.txt", "b")]);
    let edits = [change("a.txt", "a", "A"), change("b.txt", "b", "B")];
    let before = fixture.tree();
    let mut bytes = Vec::new();
    let result = edit_with_observer(
        &Renaming::Full.open(&fixture.root()),
        &edits,
        &journal_at(&fixture.journal()),
        &mut |step| {
            if step == EditStep::Swapped(0) {
                fixture.put("b.txt", "mine");
                bytes = std::fs::read(fixture.journal()).unwrap();
            }
        },
    );
    assert!(
        matches!(result, Err(TreeEditError::Blocked { .. })),
        "{result:?}"
    );
    // As if killed after it was abandoned and before the first file was restored.
    let token = String::from_utf8(bytes)
        .unwrap()
        .replace("\"ready\"", "\"given_up\"");
    let journal: Journal = serde_json::from_str(&token).unwrap();
    std::fs::write(fixture.journal(), token).unwrap();
    fixture.put("b.txt", "b");
    for (index, path) in ["a.txt", "b.txt"].into_iter().enumerate() {
        fixture.put(
            journal.names(index).swap_file.to_str().unwrap(),
            &path[..1].to_uppercase(),
        );
    }
    std::fs::rename(
        fixture.at("a.txt"),
        fixture.root().join(journal.names(0).old),
    )
    .unwrap();
    std::fs::rename(
        fixture.root().join(journal.names(0).swap_file),
        fixture.at("a.txt"),
    )
    .unwrap();
    assert_eq!(
        recover_tree_edit(&fixture.root(), &journal_at(&fixture.journal()))
            .unwrap()
            .outcome,
        EditRecovery::RolledBack
    );
    assert_eq!(fixture.tree(), before);
    fixture.assert_clean();
}
