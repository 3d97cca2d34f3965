//! Journals that are forged or belong to another owner, and file systems that lack room or an exchange.

use super::*;

#[test]
fn forged_journal_cannot_reach_git_or_crucible() {
    let digest = Digest::compute(b"a");
    let entry = |path: &str| {
        format!(
            r#"{{"schema_version":"crucible-tree-edit-v1","stage":"ready","purpose":"{}","token":"{}","made":[],"entries":[{{"path":"{path}","before":"{digest}","after":null}}]}}"#,
            purpose(),
            "0".repeat(32)
        )
    };
    let token = entry("a.txt").replace(&"0".repeat(32), "../../../../../../../../../../../../../x");
    for bad in [
        String::new(),
        "{}".to_owned(),
        entry(".git/config"),
        entry("../outside"),
        entry("/etc/passwd"),
        entry(".crucible/config.toml"),
        entry("sub/.CRUCIBLE/config.toml"),
        token,
        entry("a.txt").replace("-v1", "-v2"),
        entry("a.txt").replace("\"made\"", "\"more\":1,\"made\""),
        entry("a.txt").replace("\"made\":[]", "\"made\":[\"empty\"]"),
        entry("a.txt").replace(&purpose().to_string(), &digest.to_string()),
        entry("a.txt").replace(&format!("\"purpose\":\"{}\",", purpose()), ""),
    ] {
        let fixture = Fixture::new(&[
            ("a.txt", "a"),
            (".git/config", "a"),
            (".crucible/config.toml", "a"),
        ]);
        std::fs::write(fixture.journal(), &bad).unwrap();
        let before = fixture.tree();
        let result = fixture.edit(&[change("a.txt", "a", "A")]);
        assert!(
            matches!(result, Err(TreeEditError::Journal { .. })),
            "{bad}: {result:?}"
        );
        assert_eq!(fixture.tree(), before);
    }
}

#[test]
fn journal_requires_agreement_of_its_owner() {
    let fixture = Fixture::new(&[("a.txt", "A"), ("b.txt", "b")]);
    let edits = [change("a.txt", "a", "A"), change("b.txt", "b", "B")];
    let record = serde_json::json!({
        "schema_version": "crucible-tree-edit-v1", "stage": "ready", "purpose": purpose(), "token": "0".repeat(32), "made": [],
        "entries": edits.iter().map(|edit| serde_json::json!({
            "path": edit.path, "before": edit.before, "after": edit.after.as_deref().map(Digest::compute),
        })).collect::<Vec<_>>(),
    });
    std::fs::write(fixture.journal(), record.to_string()).unwrap();
    let beside = |index: usize| format!(".crucible-edit-{}-{index}.new", "0".repeat(32));
    fixture.put(&beside(0), "a");
    fixture.put(&beside(1), "B");
    let before = fixture.tree();
    let path = fixture.journal();
    for agrees in [
        &(|_: &EditClaim| false) as &dyn Fn(&EditClaim) -> bool,
        &|claim| claim.edits.len() == 1,
    ] {
        let refused = recover_tree_edit(
            &fixture.root(),
            &EditJournal {
                agrees,
                ..journal_at(&path)
            },
        );
        assert!(
            matches!(&refused, Err(error) if error.to_string().contains("a.txt, b.txt")),
            "{refused:?}"
        );
        assert_eq!(fixture.tree(), before);
    }
    let expected: Vec<_> = edits
        .iter()
        .map(|edit| (edit.path.clone(), edit.before))
        .collect();
    let agrees = |claim: &EditClaim| {
        claim
            .edits
            .iter()
            .map(|edit| (edit.path.clone(), edit.before))
            .collect::<Vec<_>>()
            == expected
    };
    let done = recover_tree_edit(
        &fixture.root(),
        &EditJournal {
            agrees: &agrees,
            ..journal_at(&path)
        },
    )
    .unwrap();
    assert_eq!(done.outcome, EditRecovery::Finished);
    assert_eq!(done.files, edits.map(|edit| edit.path));
    assert_eq!(std::fs::read(fixture.at("b.txt")).unwrap(), b"B");
    fixture.assert_clean();
}

#[test]
fn without_exchange_old_file_is_set_aside() {
    let fixture = Fixture::new(&[("a.txt", "a")]);
    let dir = Root::open(&fixture.root()).unwrap();
    // The state after a kill in the middle of a rename: the file has its other name, and its own is free.
    let edit = change("a.txt", "a", "A");
    let targets = [edit_target::check(&dir, &edit).unwrap()];
    let mut journal = Journal::new("0".repeat(32), purpose(), &dir, &targets).unwrap();
    journal.stage = JournalStage::Ready;
    let names = journal.names(0);
    let (spare, old) = (
        fixture.root().join(&names.swap_file),
        fixture.root().join(&names.old),
    );
    journal.write(&fixture.journal()).unwrap();
    std::fs::write(&spare, "A").unwrap();
    std::fs::rename(fixture.at("a.txt"), &old).unwrap();
    assert_eq!(
        recover_tree_edit(&fixture.root(), &journal_at(&fixture.journal()))
            .unwrap()
            .outcome,
        EditRecovery::Finished
    );
    assert_eq!(std::fs::read(fixture.at("a.txt")).unwrap(), b"A");
    fixture.assert_clean();
    // Without the new content, the change can only be undone.
    fixture.put("a.txt", "a");
    journal.write(&fixture.journal()).unwrap();
    std::fs::rename(fixture.at("a.txt"), &old).unwrap();
    assert_eq!(
        recover_tree_edit(&fixture.root(), &journal_at(&fixture.journal()))
            .unwrap()
            .outcome,
        EditRecovery::RolledBack
    );
    assert_eq!(std::fs::read(fixture.at("a.txt")).unwrap(), b"a");
    fixture.assert_clean();
}

/// This test is its own child, in a namespace with a read-only directory and another one on a full disk.
#[test]
fn full_disk_changes_nothing() {
    let name = "tree_edit::tests::journal::full_disk_changes_nothing";
    if let Some(dir) = std::env::var_os(CHILD) {
        let dir = PathBuf::from(dir);
        let full = dir.join("project/full");
        for (path, content) in [("a.txt", "a"), ("b.txt", "b")] {
            std::fs::write(full.join(path), content).unwrap();
        }
        let large = "x".repeat(600 << 10);
        for other in [
            change("ro/b.txt", "b", "B"),
            edit("ro/new.txt", None, Some("B")),
            edit("ro/b.txt", Some("b"), None),
            change("full/b.txt", "b", &large),
            edit("full/new/c.txt", None, Some(&large)),
        ] {
            let edits = [
                change("a.txt", "a", "A"),
                change("full/a.txt", "a", "A"),
                other,
            ];
            let result = edit_tree(
                &dir.join("project"),
                &edits,
                &journal_at(&dir.join("context/journal.json")),
            );
            println!("result {}", result.unwrap_err());
            let names = std::fs::read_dir(&full).unwrap().count();
            println!("full holds {names}");
        }
        return;
    }
    let fixture = Fixture::new(&[("a.txt", "a"), ("ro/b.txt", "b"), ("full/x", "x")]);
    let before = fixture.tree();
    let mut child = Command::new("bwrap");
    child
        .args(["--dev-bind", "/", "/", "--ro-bind"])
        .arg(fixture.at("ro"))
        .arg(fixture.at("ro"));
    child
        .args(["--size", "524288", "--tmpfs"])
        .arg(fixture.at("full"));
    child
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", name]);
    let output = child.env(CHILD, fixture.dir.path()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{stdout}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let results: Vec<&str> = stdout
        .lines()
        .filter(|line| line.starts_with("result "))
        .collect();
    assert_eq!(results.len(), 5, "{stdout}");
    assert!(
        results[..3]
            .iter()
            .all(|line| line.contains("Read-only file system")),
        "{stdout}"
    );
    assert!(
        results[3..]
            .iter()
            .all(|line| line.contains("No space left on device")),
        "{stdout}"
    );
    assert_eq!(stdout.matches("full holds 2\n").count(), 5, "{stdout}");
    assert_eq!(fixture.tree(), before);
    fixture.assert_clean();
}

#[test]
fn unchanged_file_is_left_alone() {
    let fixture = Fixture::new(&[("a.txt", "a")]);
    let inode = || fixture.at("a.txt").metadata().unwrap().ino();
    let before = inode();
    assert!(
        fixture
            .edit(&[change("a.txt", "a", "a"), edit("none.txt", None, None)])
            .unwrap()
            .is_empty()
    );
    assert_eq!(inode(), before);
    fixture.assert_clean();
}
