//! Commits and notes of any repository, also damaged ones.

#![expect(
    clippy::disallowed_methods,
    reason = "tests find git on the PATH and damage objects"
)]

use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_model::ByteLimit;
use crucible_repo::{CommitReader, Identity, Oid, ReadObject, Revisions};
use crucible_sandbox::Sandbox;
use crucible_testkit::{RepoBuilder, TestRepo};

const NOTES: &str = "refs/notes/crucible";

fn reader(repo: &TestRepo) -> CommitReader {
    reader_at(repo.path())
}

fn reader_at(path: &std::path::Path) -> CommitReader {
    let env = Environment::from_pairs([("PATH", std::env::var_os("PATH").unwrap())], "/");
    let sandbox = Arc::new(Sandbox::new(None, &env));
    CommitReader::open(sandbox, &env, path).unwrap()
}

fn oid(text: &str) -> Oid {
    text.parse().unwrap()
}

async fn note(repo: &TestRepo, commit: &Oid, limit: u64) -> ReadObject {
    let reader = reader(repo);
    let notes = reader.resolve(NOTES).await.unwrap();
    let commits = std::slice::from_ref(commit);
    let mut read = reader
        .read_notes(notes.as_ref(), commits, ByteLimit(limit))
        .await
        .unwrap();
    read.remove(0)
}

#[tokio::test]
async fn note_is_written_exactly_and_read_bounded() {
    let repo = RepoBuilder::new().file("a", "1").build();
    let commit = oid(&repo.head());
    assert_eq!(note(&repo, &commit, 99).await, ReadObject::Missing);
    let identity = Identity {
        name: "N".to_owned(),
        email: "n@example.invalid".to_owned(),
    };
    // Git would clean up white space of a message.
    let content = b"  two  \n\n\nlines \n\n";
    let at = "2026-01-31T09:30:00Z".parse().unwrap();
    for content in [&b"first\n"[..], content] {
        reader(&repo)
            .write_note(NOTES, &commit, content, &identity, at)
            .await
            .unwrap();
        assert_eq!(
            note(&repo, &commit, 99).await,
            ReadObject::Bytes(content.to_vec())
        );
    }
    assert_eq!(note(&repo, &commit, 3).await, ReadObject::TooLarge);
    assert_eq!(repo.git(["rev-list", "--count", NOTES]), "2");
    assert_eq!(repo.status(), "");
}

/// Two notes of one commit at two paths of the notes' tree both count.
#[tokio::test]
async fn second_note_of_a_commit_is_not_ignored() {
    let repo = RepoBuilder::new().file("a", "1").build();
    let head = repo.head();
    repo.write(&head, "flat\n");
    repo.write(format!("{}/{}", &head[..2], &head[2..]), "deep\n");
    repo.git(["add", "--all"]);
    repo.git(["rm", "--quiet", "--cached", "a"]);
    let tree = repo.git(["write-tree"]);
    let notes = repo.git(["commit-tree", &tree, "-m", "notes"]);
    repo.git(["update-ref", NOTES, &notes]);
    let ReadObject::Bytes(read) = note(&repo, &oid(&head), 99).await else {
        panic!("there is a note");
    };
    let text = String::from_utf8(read).unwrap();
    assert!(text.contains("flat\n") && text.contains("deep\n"), "{text}");
}

#[tokio::test]
async fn object_with_wrong_bytes_counts_as_missing() {
    let repo = RepoBuilder::new().file("a", "1").build();
    let first = repo.head();
    repo.write("a", "2");
    let second = repo.commit("Second");
    let blob = repo.git(["rev-parse", "HEAD:a"]);
    let place = |oid: &str| {
        repo.path()
            .join(".git/objects")
            .join(&oid[..2])
            .join(&oid[2..])
    };
    let names = [oid(&first), oid(&second), oid(&blob), oid(&"1".repeat(40))];
    let read = reader(&repo).read_commits(&names).await.unwrap();
    assert!(matches!(read[0], ReadObject::Bytes(_)) && matches!(read[1], ReadObject::Bytes(_)));
    assert_eq!(
        read[2..],
        [ReadObject::Missing, ReadObject::Missing],
        "a blob is not a commit"
    );
    // The second commit is overwritten with the first one's object.
    std::fs::remove_file(place(&second)).unwrap();
    std::fs::copy(place(&first), place(&second)).unwrap();
    let read = reader(&repo).read_commits(&names[..2]).await.unwrap();
    assert!(matches!(read[0], ReadObject::Bytes(_)));
    assert_eq!(read[1], ReadObject::Missing);
}

#[tokio::test]
async fn ranges_are_read_oldest_first_within_limit() {
    let repo = RepoBuilder::new().file("a", "1").build();
    let mut all = vec![oid(&repo.head())];
    for number in 0..3 {
        repo.write("a", number.to_string());
        all.push(oid(&repo.commit("More")));
    }
    let reader = reader(&repo);
    let range = Revisions::Range("HEAD~3..HEAD");
    assert_eq!(
        reader.commits(range, 3).await.unwrap(),
        Some(all[1..].to_vec())
    );
    assert_eq!(reader.commits(range, 2).await.unwrap(), None);
    assert_eq!(
        reader.commits(Revisions::Commit("HEAD"), 1).await.unwrap(),
        Some(vec![all[3].clone()])
    );
    for bad in ["nothing", "--all"] {
        assert!(
            reader.commits(Revisions::Commit(bad), 1).await.is_err(),
            "{bad}"
        );
        assert!(
            reader.commits(Revisions::Range(bad), 9).await.is_err(),
            "{bad}"
        );
    }
    // A file is not a commit.
    assert!(
        reader
            .commits(Revisions::Commit("HEAD:a"), 1)
            .await
            .is_err()
    );
    assert_eq!(
        reader.commits(Revisions::Range("HEAD:a"), 9).await.unwrap(),
        Some(Vec::new())
    );
    let tips = [all[3].clone()];
    for (known, from) in [(&all[1..2], 2), (&all[..2], 2), (&[], 0)] {
        let found = reader.new_commits(&tips, known, 9).await.unwrap();
        assert_eq!(found, Some(all[from..].to_vec()), "{from}");
    }
    assert_eq!(reader.new_commits(&tips, &[], 3).await.unwrap(), None);
}

#[tokio::test]
async fn refs_are_listed_with_what_they_lead_to() {
    let repo = RepoBuilder::new().file("a", "1").build();
    let head = repo.head();
    repo.git(["symbolic-ref", "refs/other/one", "refs/other/two"]);
    repo.git(["symbolic-ref", "refs/other/two", "refs/heads/main"]);
    repo.git(["symbolic-ref", "refs/other/none", "refs/heads/none"]);
    let refs = reader(&repo).refs().await.unwrap();
    let rows: Vec<_> = refs
        .iter()
        .map(|one| (one.name.as_str(), one.oid.as_str(), one.target.as_deref()))
        .collect();
    let target = Some("refs/heads/main");
    assert_eq!(
        rows,
        [
            ("refs/heads/main", head.as_str(), None),
            ("refs/other/one", &head, target),
            ("refs/other/two", &head, target),
        ]
    );
}

#[tokio::test]
async fn children_of_commits_are_found_in_every_branch() {
    let repo = RepoBuilder::new().file("a", "1").build();
    let base = oid(&repo.head());
    let mut oids = Vec::new();
    for name in ["one", "two"] {
        repo.git(["checkout", "--quiet", "-b", name, base.as_str()]);
        for number in 0..2 {
            repo.write("a", format!("{name}{number}"));
            oids.push(oid(&repo.commit("More")));
        }
    }
    let reader = reader(&repo);
    let found = async |bases: &[&Oid], tips: &[&Oid]| {
        let roots: Vec<Oid> = bases.iter().map(|oid| (*oid).clone()).collect();
        let tips: Vec<Oid> = tips.iter().map(|oid| (*oid).clone()).collect();
        let bases = roots.iter().cloned().collect();
        let mut found = reader.children(&bases, &roots, &tips).await.unwrap();
        found.sort();
        found
    };
    let sorted = |mut all: Vec<Oid>| {
        all.sort();
        all
    };
    let both = [&oids[1], &oids[3]];
    let expected = sorted(vec![oids[0].clone(), oids[2].clone()]);
    assert_eq!(found(&[&base], &both).await, expected);
    assert_eq!(found(&[&base], &both[..1]).await, oids[..1]);
    let expected = sorted(vec![oids[1].clone(), oids[3].clone()]);
    assert_eq!(found(&[&oids[0], &oids[2]], &both).await, expected);
    assert_eq!(found(&[&oids[1]], &both).await, []);
}

#[tokio::test]
async fn clean_merge_runs_no_driver_and_writes_nothing() {
    let repo = RepoBuilder::new()
        .files([
            ("a", "1\n2\n3\n4\n5\n"),
            (".gitattributes", "a merge=evil\n"),
        ])
        .build();
    let mark = repo.path().join("ran");
    let evil = format!("touch {}", mark.display());
    repo.git(["config", "merge.evil.driver", &evil]);
    repo.git(["checkout", "--quiet", "-b", "side"]);
    repo.write("a", "1\n2\n3\n4\nfive\n");
    let side = repo.commit("Side");
    repo.git(["checkout", "--quiet", "main"]);
    repo.write("a", "one\n2\n3\n4\n5\n");
    let main = repo.commit("Main");
    repo.git([
        "-c",
        "merge.evil.driver=true",
        "merge",
        "--quiet",
        "--no-commit",
        "side",
    ]);
    repo.write("a", "one\n2\n3\n4\nfive\n");
    repo.git(["add", "a"]);
    let tree = repo.git(["write-tree"]);
    repo.git(["merge", "--abort"]);
    let before = repo.git(["count-objects", "-v"]);
    let reader = reader(&repo);
    assert!(reader.is_clean_merge([&main, &side], &tree).await.unwrap());
    let other = repo.git(["rev-parse", "main^{tree}"]);
    assert!(!reader.is_clean_merge([&main, &side], &other).await.unwrap());
    assert!(!mark.exists());
    assert_eq!(repo.git(["count-objects", "-v"]), before);
}

#[tokio::test]
async fn missing_object_is_noticed() {
    let repo = RepoBuilder::new().file("a", "1").build();
    let reader = reader(&repo);
    let commit = |entry: &str| commit_of(&repo, &tree_of(&repo, entry));
    let blob = repo.git(["rev-parse", "HEAD:a"]);
    let complete = commit(&format!("100644 blob {blob}\tb\n"));
    let incomplete = commit(&format!("100644 blob {}\tb\n", "1".repeat(40)));
    assert!(reader.is_connected(&[]).await.unwrap());
    assert!(
        reader
            .is_connected(std::slice::from_ref(&complete))
            .await
            .unwrap()
    );
    let unknown = oid(&"2".repeat(40));
    for broken in [incomplete, unknown] {
        let tips = [complete.clone(), broken];
        assert!(!reader.is_connected(&tips).await.unwrap());
    }
    // Another failure of git is no missing object.
    std::fs::write(repo.path().join(".git/config"), "[core\n").unwrap();
    let failed = reader.is_connected(&[complete]).await.unwrap_err();
    assert!(failed.to_string().contains("bad config"), "{failed}");
}

/// A few trees that stand for ten billion entries, with files and without.
#[tokio::test]
async fn notes_with_too_many_entries_are_refused() {
    let repo = RepoBuilder::new().file("a", "1").build();
    let reader = reader(&repo);
    let blob = repo.git(["rev-parse", "HEAD:a"]);
    let hundred =
        |entry: &str| -> String { (0..100).map(|at| format!("{entry}\t{at:02}\n")).collect() };
    let sixteen =
        |entry: &str| -> String { (0..16).map(|at| format!("{entry}\t{at:x}\n")).collect() };
    let files = format!("100644 blob {blob}");
    // A million entries with short names, too.
    for (mut tree, wide) in [
        (tree_of(&repo, &hundred(&files)), true),
        (tree_of(&repo, ""), true),
        (tree_of(&repo, &sixteen(&files)), false),
    ] {
        for _ in 0..4 {
            let entry = format!("040000 tree {tree}");
            let entries = if wide {
                hundred(&entry)
            } else {
                sixteen(&entry)
            };
            tree = tree_of(&repo, &entries);
        }
        let notes = commit_of(&repo, &tree);
        let refused = reader.notes_change(None, &notes).await.unwrap_err();
        assert!(
            refused.to_string().contains("the list of the notes"),
            "{refused}"
        );
    }
    let entries: String = (0..300)
        .map(|at| format!("100644 blob {blob}\t{at:040x}\n"))
        .collect();
    let notes = commit_of(&repo, &tree_of(&repo, &entries));
    let change = reader.notes_change(None, &notes).await.unwrap();
    assert!(change.lost.is_empty() && !change.has_other_entries);
}

/// The tree of these lines of `git ls-tree`, whose objects may be missing.
fn tree_of(repo: &TestRepo, entries: &str) -> String {
    let list = repo.path().join("list");
    std::fs::write(&list, entries).unwrap();
    let tree = std::process::Command::new("git")
        .args(["mktree", "--missing"])
        .current_dir(repo.path())
        .stdin(std::fs::File::open(&list).unwrap())
        .output()
        .unwrap();
    String::from_utf8(tree.stdout).unwrap().trim().to_owned()
}

fn commit_of(repo: &TestRepo, tree: &str) -> Oid {
    oid(&repo.git(["commit-tree", tree, "-m", "New"]))
}

#[tokio::test]
async fn links_of_a_commit_are_read() {
    let repo = RepoBuilder::new()
        .file("real/check.sh", "1")
        .file("other/check.sh", "2")
        .build();
    let link = |target: &str, name: &str| {
        let path = repo.path().join(name);
        let _ = std::fs::remove_file(&path);
        std::os::unix::fs::symlink(target, path).unwrap();
    };
    link("real", "tools");
    link("real/check.sh", "check.sh");
    link("/etc/x\ny", "outside");
    link("nowhere", "dangling");
    let commit = oid(&repo.commit("Links"));
    let found = reader(&repo).links(&commit).await.unwrap();
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(path, target)| (path.as_str(), target.as_str()))
        .collect();
    let expected = [
        ("check.sh", "real/check.sh"),
        ("dangling", "nowhere"),
        ("outside", "/etc/x\ny"),
        ("tools", "real"),
    ];
    assert_eq!(found, expected);
}

/// A push can name the git directory of a work tree instead of the repository.
#[test]
fn directories_of_work_trees_are_the_shared_one() {
    let repo = RepoBuilder::new().file("a", "1").build();
    let place = tempfile::tempdir().unwrap();
    let (server, tree) = (place.path().join("server.git"), place.path().join("www"));
    let (server_text, tree_text) = (server.to_str().unwrap(), tree.to_str().unwrap());
    repo.git(["clone", "-q", "--bare", ".", server_text]);
    repo.git([
        "-C",
        server_text,
        "worktree",
        "add",
        "-q",
        "-b",
        "deploy",
        tree_text,
    ]);
    let shared = server.canonicalize().unwrap();
    for path in [&server, &server.join("worktrees/www"), &tree] {
        assert_eq!(reader_at(path).directory(), shared, "{path:?}");
    }
}
