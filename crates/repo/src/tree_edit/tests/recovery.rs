//! Tests of recovery after a kill, with foreign changes before it: removed files, moved directories, further
//! edits.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::*;

/// An upper bound on the steps of a change in these tests.
const MAX_STEPS: u32 = 40;

/// Applies these edits and stops before this step, as a killed process does. Returns whether it got there.
fn apply_until_step(fixture: &Fixture, renaming: Renaming, edits: &[TreeEdit], step: u32) -> bool {
    let mut seen = 0;
    let root = renaming.open(&fixture.root());
    let place = fixture.journal();
    let run = AssertUnwindSafe(|| {
        edit_with_observer(&root, edits, &journal_at(&place), &mut |_| {
            if seen == step {
                resume_unwind(Box::new(()));
            }
            seen += 1;
        })
        .unwrap();
    });
    BEFORE_REFUSAL.set(Box::new(|_| {}));
    catch_unwind(run).is_err()
}

/// Interrupts the edits at each step in turn, in a new directory and on both kinds of file systems, and calls
/// `look` on the result.
fn at_each_step(mut look: impl FnMut(&Fixture, Renaming, u32)) {
    for renaming in [Renaming::Full, Renaming::Plain] {
        for step in 0.. {
            assert!(step < MAX_STEPS);
            let fixture = scenario_fixture();
            if !apply_until_step(&fixture, renaming, &scenario_edits(), step) {
                break;
            }
            look(&fixture, renaming, step);
        }
    }
}

/// Computes the new content of a file in the scenario.
fn scenario_content(claim: &ClaimedEdit, old: Option<&[u8]>) -> Option<Vec<u8>> {
    assert_eq!(old.map(Digest::compute), claim.before, "{claim:?}");
    scenario_edits()
        .into_iter()
        .find(|edit| edit.path == claim.path)?
        .after
}

fn recover_scenario(fixture: &Fixture, renaming: Renaming) -> Result<RecoveredEdit, TreeEditError> {
    let place = fixture.journal();
    recover::recover_with_content(
        &renaming.open(&fixture.root()),
        &journal_at(&place),
        &scenario_content,
    )
}

/// Returns the temporary files beside the edited files.
fn temporary_files(fixture: &Fixture) -> Vec<PathBuf> {
    let names = fixture
        .tree()
        .into_keys()
        .filter(|name| name.contains(".crucible-edit-"));
    names.map(|name| fixture.at(&name)).collect()
}

fn before_and_after() -> [BTreeMap<String, String>; 2] {
    let fixture = scenario_fixture();
    let before = fixture.tree();
    fixture.edit(&scenario_edits()).unwrap();
    [before, fixture.tree()]
}

/// Checks that all files have the old content or all have the new one, except the reported ones.
fn assert_recovered(fixture: &Fixture, recovered_edit: &RecoveredEdit, at: &str) {
    let is_finished = recovered_edit.outcome == EditRecovery::Finished;
    for edit in scenario_edits() {
        if recovered_edit.edited_since.contains(&edit.path) {
            continue;
        }
        let now = std::fs::read(fixture.at(edit.path.as_str())).ok();
        if is_finished {
            assert_eq!(
                now, edit.after,
                "{at}: {} after {recovered_edit:?}",
                edit.path
            );
        } else {
            assert_eq!(
                now.as_deref().map(Digest::compute),
                edit.before,
                "{at}: {} after {recovered_edit:?}",
                edit.path
            );
        }
    }
    fixture.assert_clean();
}

#[test]
fn removed_staging_files_leave_no_partial_change() {
    let [before, after] = before_and_after();
    let mut ends = [0, 0];
    at_each_step(|fixture, renaming, step| {
        for path in temporary_files(fixture) {
            // The old content set aside is the only copy of a file; removing it removes the file.
            if path.extension().is_none_or(|end| end != "old") {
                std::fs::remove_file(path).unwrap();
            }
        }
        let recovery = recover_scenario(fixture, renaming).unwrap();
        assert_recovered(fixture, &recovery, &format!("{renaming:?}, step {step}"));
        assert_eq!(recovery.edited_since, []);
        let tree = fixture.tree();
        assert!(
            tree == before || tree == after,
            "{renaming:?}, step {step}: {tree:?}"
        );
        ends[usize::from(tree == after)] += 1;
        assert_eq!(fixture.mode("src/run.sh"), 0o755);
    });
    assert!(ends[0] > 5 && ends[1] > 5, "{ends:?}");
}

#[test]
fn stuck_change_keeps_journal_and_names_files() {
    let edits = ["a.txt", "b.txt", "c.txt"].map(|path| change(path, "old", "new"));
    let fresh = || {
        let fixture = Fixture::new(&[("a.txt", "old"), ("b.txt", "old"), ("c.txt", "old")]);
        // Interrupted right after the first file was swapped.
        assert!(apply_until_step(&fixture, Renaming::Full, &edits, 6));
        assert_eq!(std::fs::read(fixture.at("a.txt")).unwrap(), b"new");
        for path in temporary_files(&fixture) {
            std::fs::remove_file(path).unwrap();
        }
        fixture
    };
    let assert_refused = |fixture: &Fixture, why: &str| {
        let before = fixture.tree();
        // A second recovery reports it again.
        for _ in 0..2 {
            match recover_tree_edit(&fixture.root(), &journal_at(&fixture.journal())) {
                Err(error @ TreeEditError::NotRolledBack { .. }) => {
                    let message = error.to_string();
                    let journal = fixture.journal().display().to_string();
                    let names = ["undone: a.txt (", why, journal.as_str()];
                    assert!(names.iter().all(|name| message.contains(name)), "{message}");
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(fixture.tree(), before);
            assert!(fixture.journal().exists());
        }
    };
    let fixture = fresh();
    assert_refused(&fixture, "the new content of the other files");
    // A caller that can regenerate the content finishes the change.
    let regenerate = |_: &ClaimedEdit, _: Option<&[u8]>| Some(b"new".to_vec());
    let recovered_edit = recover_tree_edit_with(
        &fixture.root(),
        &journal_at(&fixture.journal()),
        &regenerate,
    )
    .unwrap();
    assert_eq!(
        (recovered_edit.outcome, recovered_edit.edited_since),
        (EditRecovery::Finished, Vec::new())
    );
    assert!(
        fixture.tree().values().all(|content| content == "new"),
        "{:?}",
        fixture.tree()
    );
    fixture.assert_clean();
    // Regenerated content must be identical.
    let fixture = fresh();
    let wrong = |_: &ClaimedEdit, _: Option<&[u8]>| Some(b"newer".to_vec());
    let recovery = recover_tree_edit_with(&fixture.root(), &journal_at(&fixture.journal()), &wrong);
    assert!(
        matches!(recovery, Err(TreeEditError::NotRolledBack { .. })),
        "{recovery:?}"
    );
    // Another changed file prevents finishing, until the changed one is restored.
    let fixture = fresh();
    fixture.put("b.txt", "mine");
    assert_refused(&fixture, "b.txt changed meanwhile");
    fixture.put("a.txt", "old");
    let recovery = recover_tree_edit(&fixture.root(), &journal_at(&fixture.journal())).unwrap();
    let mine: RepoPath = "b.txt".parse().unwrap();
    assert_eq!(
        (recovery.outcome, recovery.edited_since),
        (EditRecovery::RolledBack, vec![mine])
    );
    fixture.assert_clean();
}

#[test]
fn moved_directory_keeps_journal() {
    let [before, after] = before_and_after();
    let mut stuck = 0;
    at_each_step(|fixture, renaming, step| {
        let at = format!("{renaming:?}, step {step}");
        for is_link in [false, true] {
            let original_tree = fixture.tree();
            std::fs::rename(fixture.at("src"), fixture.at("lib")).unwrap();
            if is_link {
                symlink("lib", fixture.at("src")).unwrap();
            }
            let moved_tree = fixture.tree();
            let is_under_way = fixture.journal().exists();
            match recover_scenario(fixture, renaming) {
                Err(TreeEditError::NotRolledBack { paths, .. }) => {
                    assert!(is_under_way, "{at}");
                    assert_eq!(paths, ["src/run.sh"], "{at}");
                    stuck += 1;
                }
                Ok(recovered_edit) => assert!(
                    !is_under_way && recovered_edit == RecoveredEdit::nothing(),
                    "{at}: {recovered_edit:?}"
                ),
                other => panic!("{at}: {other:?}"),
            }
            assert_eq!(fixture.journal().exists(), is_under_way, "{at}");
            assert_eq!(fixture.tree(), moved_tree, "{at}");
            if is_link {
                std::fs::remove_file(fixture.at("src")).unwrap();
            }
            std::fs::rename(fixture.at("lib"), fixture.at("src")).unwrap();
            assert_eq!(fixture.tree(), original_tree, "{at}");
        }
        let recovery = recover_scenario(fixture, renaming).unwrap();
        assert_eq!(recovery.edited_since, [], "{at}");
        let tree = fixture.tree();
        assert!(tree == before || tree == after, "{at}: {tree:?}");
        fixture.assert_clean();
    });
    assert!(stuck > 20, "{stuck}");
}

#[test]
fn file_edited_after_interruption_is_reported() {
    let mut named = 0;
    at_each_step(|fixture, renaming, step| {
        let at = format!("{renaming:?}, step {step}");
        let path: RepoPath = "src/run.sh".parse().unwrap();
        // If it was set aside, a foreign file is put in its place.
        fixture.put(path.as_str(), "mine");
        if !fixture.journal().exists() {
            return;
        }
        let recovery = match recover_scenario(fixture, renaming) {
            Ok(recovered_edit) => recovered_edit,
            // The other files are restored. The old content of this one exists only in a file beside it.
            Err(TreeEditError::NotRolledBack { paths, .. }) => {
                assert_eq!(paths, ["src/run.sh"], "{at}");
                assert!(fixture.journal().exists());
                return;
            }
            other => panic!("{at}: {other:?}"),
        };
        assert_eq!(
            std::fs::read(fixture.at(path.as_str())).unwrap(),
            b"mine",
            "{at}"
        );
        let expected = if recovery.files.is_empty() {
            Vec::new()
        } else {
            vec![path]
        };
        assert_eq!(recovery.edited_since, expected, "{at}");
        if recovery.files.is_empty() {
            fixture.assert_clean();
        } else {
            assert_recovered(fixture, &recovery, &at);
        }
        named += recovery.edited_since.len();
    });
    assert!(named > 10, "{named}");
}

#[test]
fn reporting_pending_change_writes_nothing() {
    let under_way = |fixture: &Fixture| pending_tree_edit(&fixture.journal());
    let fixture = scenario_fixture();
    assert_eq!(under_way(&fixture).unwrap(), None);
    assert!(apply_until_step(
        &fixture,
        Renaming::Full,
        &scenario_edits(),
        8
    ));
    let before = (fixture.tree(), std::fs::read(fixture.journal()).unwrap());
    let claim = under_way(&fixture).unwrap().unwrap();
    assert_eq!(claim.purpose, purpose());
    let paths: Vec<&str> = claim.edits.iter().map(|edit| edit.path.as_str()).collect();
    assert_eq!(
        paths,
        ["a.txt", "new/dir/n.txt", "src/run.sh", "old/gone.txt"]
    );
    assert_eq!(
        (fixture.tree(), std::fs::read(fixture.journal()).unwrap()),
        before
    );
    std::fs::write(fixture.journal(), "{}").unwrap();
    assert!(matches!(
        under_way(&fixture),
        Err(TreeEditError::Journal { .. })
    ));
}

#[test]
fn new_directory_may_be_missing() {
    let fixture = scenario_fixture();
    let before = fixture.tree();
    // All four staged, none exchanged; the change was abandoned, and the next process died after removing the
    // new directory.
    assert!(apply_until_step(
        &fixture,
        Renaming::Full,
        &scenario_edits(),
        7
    ));
    let record = std::fs::read_to_string(fixture.journal())
        .unwrap()
        .replace("\"ready\"", "\"given_up\"");
    std::fs::write(fixture.journal(), record).unwrap();
    std::fs::remove_dir_all(fixture.at("new")).unwrap();
    assert_eq!(
        recover_scenario(&fixture, Renaming::Full).unwrap().outcome,
        EditRecovery::RolledBack
    );
    assert_eq!(fixture.tree(), before);
    fixture.assert_clean();
}
