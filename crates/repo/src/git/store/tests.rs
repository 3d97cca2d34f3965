//! Tests of the store on repositories made by git, and on corrupted packs and indexes.

#![expect(clippy::disallowed_methods, reason = "the tests break files by hand")]

use std::fs;
use std::io::Write;
use std::sync::OnceLock;

use crucible_testkit::{RepoBuilder, TestRepo};
use proptest::prelude::*;

use super::*;
use crate::index_file;

/// Returns a repository with all objects in one pack, many of them as deltas.
fn packed() -> TestRepo {
    let repo = RepoBuilder::new()
        .files([("a", "1"), ("dir/b", "2")])
        .build();
    for round in 0..20 {
        let changed = |line| if line == 17 * round { round } else { 0 };
        let text: String = (0..400)
            .map(|line| format!("line {line} of {}\n", changed(line)))
            .collect();
        repo.write("dir/long", text);
        repo.commit(&format!("Round {round}"));
    }
    repo.git(["repack", "-a", "-d", "-q", "--depth=40", "--window=40"]);
    repo.git(["prune-packed", "-q"]);
    repo
}

fn oids(repo: &TestRepo) -> Vec<Oid> {
    let listed = repo.git([
        "cat-file",
        "--batch-all-objects",
        "--batch-check=%(objectname)",
    ]);
    listed.lines().map(|line| line.parse().unwrap()).collect()
}

fn objects(repo: &TestRepo) -> PathBuf {
    repo.path().join(".git/objects")
}

/// Copies the pack and its index into a separate object directory.
fn copy_of(repo: &TestRepo) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let pack = dir.path().join("pack");
    fs::create_dir(&pack).unwrap();
    for entry in fs::read_dir(objects(repo).join("pack")).unwrap() {
        let from = entry.unwrap().path();
        let extension = from.extension().unwrap().to_str().unwrap().to_owned();
        if ["pack", "idx"].contains(&extension.as_str()) {
            let to = pack.join(format!("pack-x.{extension}"));
            fs::write(to, fs::read(from).unwrap()).unwrap();
        }
    }
    (dir, pack.join("pack-x.pack"), pack.join("pack-x.idx"))
}

/// Puts an object into a directory of objects.
fn write_loose(objects: &Path, kind: ObjectKind, content: &[u8]) -> Oid {
    let id = gix_object::compute_hash(HashKind::Sha1, kind, content).unwrap();
    let oid = oid_from(id.as_slice()).unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    write!(zlib, "{kind} {}\0", content.len()).unwrap();
    zlib.write_all(content).unwrap();
    let (fan, name) = oid.as_str().split_at(2);
    fs::create_dir_all(objects.join(fan)).unwrap();
    fs::write(objects.join(fan).join(name), zlib.finish().unwrap()).unwrap();
    oid
}

fn chains(repo: &TestRepo) -> usize {
    let deltas = repo.git([
        "cat-file",
        "--batch-all-objects",
        "--batch-check=%(deltabase)",
    ]);
    deltas
        .lines()
        .filter(|line| !line.bytes().all(|byte| byte == b'0'))
        .count()
}

#[test]
fn packed_objects_read_as_git_reads_them() {
    let repo = &packed();
    assert!(chains(repo) > 10, "no deltas to read");
    let store = Store::new(HashKind::Sha1, objects(repo));
    let mut reader = store.reader(None).unwrap();
    for oid in oids(repo) {
        let object = reader.object(&oid, 1 << 20).unwrap();
        assert_eq!(reader.size(&oid), Ok(object.bytes.len() as u64));
        assert_eq!(
            object.kind.to_string(),
            repo.git(["cat-file", "-t", oid.as_str()]).trim()
        );
        assert_eq!(
            reader
                .object(&oid, object.bytes.len() as u64)
                .unwrap()
                .bytes,
            object.bytes
        );
        let less = (object.bytes.len() as u64).checked_sub(1);
        let cut = less.map(|less| reader.object(&oid, less).unwrap_err());
        assert!(cut.is_none_or(|cut| cut == ReadFailure::TooLarge));
    }
}

#[test]
fn objects_that_are_packed_meanwhile_are_found() {
    let repo = RepoBuilder::new().files([("a", "1")]).build();
    let store = Store::new(HashKind::Sha1, objects(&repo));
    let all = oids(&repo);
    store.reader(None).unwrap().object(&all[0], 1000).unwrap();
    repo.git(["repack", "-a", "-d", "-q"]);
    repo.git(["prune-packed", "-q"]);
    for oid in &all {
        store.reader(None).unwrap().object(oid, 1000).unwrap();
        store.reader(None).unwrap().size(oid).unwrap();
    }
    let missing: Oid = "2".repeat(40).parse().unwrap();
    assert_eq!(
        store.reader(None).unwrap().size(&missing),
        Err(ReadFailure::AskGit)
    );
    assert_eq!(
        store
            .reader(None)
            .unwrap()
            .size(&"2".repeat(64).parse().unwrap()),
        Err(ReadFailure::AskGit)
    );
}

#[test]
fn oversized_tree_is_left_to_git() {
    let repo = RepoBuilder::new().files([("a", "1")]).build();
    let mut tree: Oid = repo
        .git(["rev-parse", "HEAD^{tree}"])
        .trim()
        .parse()
        .unwrap();
    for _ in 0..12 {
        let entry = |name: u8| [&b"40000 "[..], &[b'0' + name, 0], &tree.raw()].concat();
        let content: Vec<u8> = (0..10).flat_map(entry).collect();
        tree = write_loose(&objects(&repo), ObjectKind::Tree, &content);
    }
    let store = Store::new(HashKind::Sha1, objects(&repo));
    let mut reader = store.reader(None).unwrap();
    let mut seen = 0;
    let walked = reader.each_file_within(&tree, 1 << 20, |_, _, _| {
        seen += 1;
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(walked, Err(ReadFailure::AskGit));
    assert!(seen < 1 << 20);
}

#[test]
fn differences_are_those_of_diff_tree() {
    let repo = RepoBuilder::new()
        .files([
            ("a", "1"),
            ("b/c", "2"),
            ("b-c", "3"),
            ("d", "4"),
            ("gone/x/y", "5"),
            ("same/deep/file", "6"),
        ])
        .executable("run", "x")
        .symlink("link", "a")
        .build();
    let first = repo.head();
    repo.write("a", "changed");
    fs::remove_dir_all(repo.path().join("gone")).unwrap();
    repo.write("gone", "a file now");
    fs::remove_file(repo.path().join("d")).unwrap();
    repo.write("d/e/f", "a directory now");
    repo.write("b.x", "sorts between");
    fs::remove_file(repo.path().join("link")).unwrap();
    repo.write("link", "a");
    repo.git(["update-index", "--chmod=-x", "run"]);
    let second = repo.commit("second");
    let store = Store::new(HashKind::Sha1, objects(&repo));
    let mut reader = store.reader(None).unwrap();
    for (old, new) in [(&first, &second), (&second, &first), (&first, &first)] {
        let raw = repo.git([
            "diff-tree",
            "-r",
            "--raw",
            "--no-renames",
            "--no-abbrev",
            old,
            new,
        ]);
        let trees =
            [old, new].map(|commit| reader.tree_of(&commit.trim().parse().unwrap()).unwrap());
        let found = reader.differences(&trees[0], &trees[1]).unwrap();
        let shown = |found: &Option<OwnedEntry>| match found {
            Some(OwnedEntry {
                mode: TreeMode::File(mode),
                oid,
            }) => (mode.as_str().to_owned(), oid.to_string()),
            _ => ("000000".to_owned(), "0".repeat(40)),
        };
        let mut lines: Vec<String> = found
            .iter()
            .map(|one| {
                let ((old, old_oid), (new, new_oid)) = (shown(&one.old), shown(&one.new));
                format!(
                    ":{old} {new} {old_oid} {new_oid} {}",
                    String::from_utf8_lossy(&one.path)
                )
            })
            .collect();
        // `:modes oids status TAB path`
        let theirs = raw.lines().map(|line| {
            let (head, path) = line.split_once('\t').unwrap();
            format!("{} {path}", head.rsplit_once(' ').unwrap().0)
        });
        assert_eq!(lines, theirs.collect::<Vec<_>>());
        lines.dedup();
        assert_eq!(lines.len(), found.len());
    }
}

#[test]
fn alternates_in_a_circle_end() {
    let repo = RepoBuilder::new().files([("a", "1")]).build();
    let other = RepoBuilder::new().files([("b", "2")]).build();
    for (from, to) in [(&repo, &other), (&other, &repo)] {
        fs::create_dir_all(objects(from).join("info")).unwrap();
        let text = format!("# a comment\n\n/nowhere\n{}\n", objects(to).display());
        fs::write(objects(from).join("info/alternates"), text).unwrap();
    }
    let store = Store::new(HashKind::Sha1, objects(&repo));
    for oid in oids(&other) {
        store.reader(None).unwrap().object(&oid, 1000).unwrap();
    }
    fs::write(objects(&other).join("info/alternates"), "\"/quoted\"\n").unwrap();
    assert!(
        Store::new(HashKind::Sha1, objects(&repo))
            .reader(None)
            .is_err()
    );
}

/// Returns a repository with an index of a later version, and git's listing.
fn index_of(version: &str) -> Vec<u8> {
    let repo = RepoBuilder::new()
        .files([("a", "1"), ("dir/b", "2"), ("dir/bc/d", "3"), ("e", "4")])
        .executable("run", "x")
        .symlink("link", "a")
        .build();
    repo.write("new", "x");
    repo.git(["add", "--intent-to-add", "new"]);
    repo.git(["update-index", "--index-version", version]);
    fs::read(repo.path().join(".git/index")).unwrap()
}

#[test]
fn oversized_index_is_left_to_git() {
    let entry = |path: &[u8]| {
        [
            &[0; 24][..],
            &0o100_644_u32.to_be_bytes(),
            &[0; 12],
            &[1; 20],
            &[0x0f, 0xff, 0],
            path,
            &[0],
        ]
        .concat()
    };
    let mut bytes = [
        &b"DIRC"[..],
        &4_u32.to_be_bytes(),
        &20_000_u32.to_be_bytes(),
    ]
    .concat();
    bytes.extend(entry(&vec![b'a'; 20_000]));
    (1..20_000).for_each(|_| bytes.extend(entry(b"b")));
    bytes.extend([0; 20]);
    assert_eq!(index_file::read(&bytes, HashKind::Sha1), None);
}

#[test]
fn deeply_nested_tree_extension_is_harmless() {
    let nested: Vec<u8> = b"a\0-1 1\n".iter().copied().cycle().take(7 << 20).collect();
    let length = u32::try_from(nested.len()).unwrap().to_be_bytes();
    let head = [
        &b"DIRC"[..],
        &2_u32.to_be_bytes(),
        &0_u32.to_be_bytes(),
        b"TREE",
        &length,
    ]
    .concat();
    let bytes = [&head[..], &nested, &[0; 20]].concat();
    assert_eq!(index_file::read(&bytes, HashKind::Sha1).unwrap().tree, None);
}

mod properties {
    use proptest::test_runner::TestRunner;

    use super::*;

    fn config() -> ProptestConfig {
        ProptestConfig::with_cases(crucible_testkit::expensive_cases())
    }

    /// Corrupted packs and indexes: whatever is read matches its name, and nothing panics.
    #[test]
    fn corrupted_packs_are_never_misread() {
        let repo = packed();
        let all = oids(&repo);
        let a_break = (any::<bool>(), any::<prop::sample::Index>(), any::<u8>());
        let breaks = (
            prop::collection::vec(a_break, 1..40),
            prop::option::of(any::<prop::sample::Index>()),
        );
        let read = TestRunner::new(config()).run(&breaks, |(breaks, cut)| {
            let (dir, pack, index) = copy_of(&repo);
            for (in_pack, at, byte) in breaks {
                let path = if in_pack { &pack } else { &index };
                let mut bytes = fs::read(path).unwrap();
                let at = at.index(bytes.len());
                bytes[at] = byte;
                fs::write(path, bytes).unwrap();
            }
            if let Some(cut) = cut {
                let bytes = fs::read(&pack).unwrap();
                fs::write(&pack, &bytes[..cut.index(bytes.len())]).unwrap();
            }
            let store = Store::new(HashKind::Sha1, dir.path().to_owned());
            for oid in &all {
                let mut reader = store.reader(None).unwrap();
                let _ = reader.size(oid);
                if let Ok(object) = reader.object(oid, 1 << 20) {
                    prop_assert!(has_name(oid, object.kind.as_bytes(), &object.bytes));
                }
            }
            Ok(())
        });
        read.unwrap();
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn broken_indexes_never_panic(
            version in 2..=4_u8,
            breaks in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            static WHOLE: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
            let whole = WHOLE.get_or_init(|| ["2", "3", "4"].map(index_of).to_vec());
            let mut bytes = whole[usize::from(version - 2)].clone();
            assert_eq!(index_file::read(&bytes, HashKind::Sha1).unwrap().entries.len(), 7);
            for (at, byte) in breaks {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
            let _ = index_file::read(&bytes, HashKind::Sha1);
            let _ = index_file::read(&bytes, HashKind::Sha256);
        }
    }
}
