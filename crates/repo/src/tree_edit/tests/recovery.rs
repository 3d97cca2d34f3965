//! Tests of recovery after a kill, with foreign changes before it: removed files, moved directories, further
//! edits.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::*;

/// How many steps no change here has.
const ALL_STEPS: u32 = 40;

/// Plays these edits and stops dead before the step of this number, as a killed process does. Whether it came so far.
fn dies(desk: &Desk, renaming: Renaming, edits: &[TreeEdit], step: u32) -> bool {
    let mut seen = 0;
    let root = renaming.open(&desk.root());
    let place = desk.journal();
    let run = AssertUnwindSafe(|| {
        edit_watched(&root, edits, &ours(&place), &mut |_| {
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

/// Kills the child at each step in turn, in a new directory and on both kinds of file systems, and calls
/// `look` on the result.
fn at_each_step(mut look: impl FnMut(&Desk, Renaming, u32)) {
    for renaming in [Renaming::Full, Renaming::Plain] {
        for step in 0.. {
            assert!(step < ALL_STEPS);
            let desk = story_desk();
            if !dies(&desk, renaming, &story(), step) {
                break;
            }
            look(&desk, renaming, step);
        }
    }
}

/// Computes the new content of a file in the scenario.
fn story_again(claim: &ClaimedEdit, old: Option<&[u8]>) -> Option<Vec<u8>> {
    assert_eq!(old.map(Digest::of), claim.before, "{claim:?}");
    story()
        .into_iter()
        .find(|edit| edit.path == claim.path)?
        .after
}

fn recovered(desk: &Desk, renaming: Renaming) -> Result<RecoveredEdit, TreeEditError> {
    let place = desk.journal();
    recover::recover_remaking(&renaming.open(&desk.root()), &ours(&place), &story_again)
}

/// What is left beside the files.
fn beside(desk: &Desk) -> Vec<PathBuf> {
    let names = desk
        .tree()
        .into_keys()
        .filter(|name| name.contains(".crucible-edit-"));
    names.map(|name| desk.at(&name)).collect()
}

fn both_ends() -> [BTreeMap<String, String>; 2] {
    let desk = story_desk();
    let before = desk.tree();
    desk.edit(&story()).unwrap();
    [before, desk.tree()]
}

/// Checks that all files have the old content or all have the new one, except the reported ones.
fn assert_told(desk: &Desk, told: &RecoveredEdit, at: &str) {
    let is_finished = told.outcome == EditRecovery::Finished;
    for edit in story() {
        if told.went_on.contains(&edit.path) {
            continue;
        }
        let now = std::fs::read(desk.at(edit.path.as_str())).ok();
        if is_finished {
            assert_eq!(now, edit.after, "{at}: {} after {told:?}", edit.path);
        } else {
            assert_eq!(
                now.as_deref().map(Digest::of),
                edit.before,
                "{at}: {} after {told:?}",
                edit.path
            );
        }
    }
    desk.assert_clean();
}

#[test]
fn removed_staging_files_leave_no_partial_change() {
    let [before, after] = both_ends();
    let mut ends = [0, 0];
    at_each_step(|desk, renaming, step| {
        for path in beside(desk) {
            // The old content set aside is the only copy of a file; removing it removes the file.
            if path.extension().is_none_or(|end| end != "old") {
                std::fs::remove_file(path).unwrap();
            }
        }
        let told = recovered(desk, renaming).unwrap();
        assert_told(desk, &told, &format!("{renaming:?}, step {step}"));
        assert_eq!(told.went_on, []);
        let tree = desk.tree();
        assert!(
            tree == before || tree == after,
            "{renaming:?}, step {step}: {tree:?}"
        );
        ends[usize::from(tree == after)] += 1;
        assert_eq!(desk.mode("src/run.sh"), 0o755);
    });
    assert!(ends[0] > 5 && ends[1] > 5, "{ends:?}");
}

#[test]
fn stuck_change_keeps_journal_and_names_files() {
    let edits = ["a.txt", "b.txt", "c.txt"].map(|path| change(path, "old", "new"));
    let fresh = || {
        let desk = Desk::new(&[("a.txt", "old"), ("b.txt", "old"), ("c.txt", "old")]);
        // Checked, noted, three staged, ready, the first one swapped.
        assert!(dies(&desk, Renaming::Full, &edits, 6));
        assert_eq!(std::fs::read(desk.at("a.txt")).unwrap(), b"new");
        for path in beside(&desk) {
            std::fs::remove_file(path).unwrap();
        }
        desk
    };
    let refused = |desk: &Desk, why: &str| {
        let before = desk.tree();
        // Again and again: it is not forgotten.
        for _ in 0..2 {
            match recover_tree_edit(&desk.root(), &ours(&desk.journal())) {
                Err(error @ TreeEditError::NotTakenBack { .. }) => {
                    let said = error.to_string();
                    let journal = desk.journal().display().to_string();
                    let names = ["undone: a.txt (", why, journal.as_str()];
                    assert!(names.iter().all(|name| said.contains(name)), "{said}");
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(desk.tree(), before);
            assert!(desk.journal().exists());
        }
    };
    let desk = fresh();
    refused(&desk, "the new content of the other files");
    // A caller that knows the content continues.
    let remade = |_: &ClaimedEdit, _: Option<&[u8]>| Some(b"new".to_vec());
    let told = recover_tree_edit_remaking(&desk.root(), &ours(&desk.journal()), &remade).unwrap();
    assert_eq!(
        (told.outcome, told.went_on),
        (EditRecovery::Finished, Vec::new())
    );
    assert!(
        desk.tree().values().all(|content| content == "new"),
        "{:?}",
        desk.tree()
    );
    desk.assert_clean();
    // What is remade has to be the very same.
    let desk = fresh();
    let wrong = |_: &ClaimedEdit, _: Option<&[u8]>| Some(b"newer".to_vec());
    let told = recover_tree_edit_remaking(&desk.root(), &ours(&desk.journal()), &wrong);
    assert!(
        matches!(told, Err(TreeEditError::NotTakenBack { .. })),
        "{told:?}"
    );
    // Another changed file prevents finishing, until the changed one is restored.
    let desk = fresh();
    desk.put("b.txt", "mine");
    refused(&desk, "b.txt changed meanwhile");
    desk.put("a.txt", "old");
    let told = recover_tree_edit(&desk.root(), &ours(&desk.journal())).unwrap();
    let mine: RepoPath = "b.txt".parse().unwrap();
    assert_eq!(
        (told.outcome, told.went_on),
        (EditRecovery::TakenBack, vec![mine])
    );
    desk.assert_clean();
}

#[test]
fn moved_directory_keeps_journal() {
    let [before, after] = both_ends();
    let mut stuck = 0;
    at_each_step(|desk, renaming, step| {
        let at = format!("{renaming:?}, step {step}");
        for is_link in [false, true] {
            let left = desk.tree();
            std::fs::rename(desk.at("src"), desk.at("lib")).unwrap();
            if is_link {
                symlink("lib", desk.at("src")).unwrap();
            }
            let there = desk.tree();
            let is_under_way = desk.journal().exists();
            match recovered(desk, renaming) {
                Err(TreeEditError::NotTakenBack { paths, .. }) => {
                    assert!(is_under_way, "{at}");
                    assert_eq!(paths, ["src/run.sh"], "{at}");
                    stuck += 1;
                }
                Ok(told) => assert!(
                    !is_under_way && told == RecoveredEdit::nothing(),
                    "{at}: {told:?}"
                ),
                other => panic!("{at}: {other:?}"),
            }
            assert_eq!(desk.journal().exists(), is_under_way, "{at}");
            assert_eq!(desk.tree(), there, "{at}");
            if is_link {
                std::fs::remove_file(desk.at("src")).unwrap();
            }
            std::fs::rename(desk.at("lib"), desk.at("src")).unwrap();
            assert_eq!(desk.tree(), left, "{at}");
        }
        let told = recovered(desk, renaming).unwrap();
        assert_eq!(told.went_on, [], "{at}");
        let tree = desk.tree();
        assert!(tree == before || tree == after, "{at}: {tree:?}");
        desk.assert_clean();
    });
    assert!(stuck > 20, "{stuck}");
}

#[test]
fn file_edited_since_is_named() {
    let mut named = 0;
    at_each_step(|desk, renaming, step| {
        let at = format!("{renaming:?}, step {step}");
        let path: RepoPath = "src/run.sh".parse().unwrap();
        // If it was set aside, a foreign file is put in its place.
        desk.put(path.as_str(), "mine");
        if !desk.journal().exists() {
            return;
        }
        let told = match recovered(desk, renaming) {
            Ok(told) => told,
            // The other files are restored, and this one's old content is only beside it.
            Err(TreeEditError::NotTakenBack { paths, .. }) => {
                assert_eq!(paths, ["src/run.sh"], "{at}");
                assert!(desk.journal().exists());
                return;
            }
            other => panic!("{at}: {other:?}"),
        };
        assert_eq!(
            std::fs::read(desk.at(path.as_str())).unwrap(),
            b"mine",
            "{at}"
        );
        let expected = if told.files.is_empty() {
            Vec::new()
        } else {
            vec![path]
        };
        assert_eq!(told.went_on, expected, "{at}");
        if told.files.is_empty() {
            desk.assert_clean();
        } else {
            assert_told(desk, &told, &at);
        }
        named += told.went_on.len();
    });
    assert!(named > 10, "{named}");
}

#[test]
fn pending_change_is_reported_read_only() {
    let under_way = |desk: &Desk| tree_edit_under_way(&desk.journal());
    let desk = story_desk();
    assert_eq!(under_way(&desk).unwrap(), None);
    assert!(dies(&desk, Renaming::Full, &story(), 8));
    let before = (desk.tree(), std::fs::read(desk.journal()).unwrap());
    let claim = under_way(&desk).unwrap().unwrap();
    assert_eq!(claim.purpose, purpose());
    let paths: Vec<&str> = claim.edits.iter().map(|edit| edit.path.as_str()).collect();
    assert_eq!(
        paths,
        ["a.txt", "new/dir/n.txt", "src/run.sh", "old/gone.txt"]
    );
    assert_eq!(
        (desk.tree(), std::fs::read(desk.journal()).unwrap()),
        before
    );
    std::fs::write(desk.journal(), "{}").unwrap();
    assert!(matches!(
        under_way(&desk),
        Err(TreeEditError::Journal { .. })
    ));
}

#[test]
fn new_directory_may_be_missing() {
    let desk = story_desk();
    let before = desk.tree();
    // All four staged, none exchanged; the change was abandoned, and the next process died after removing the
    // new directory.
    assert!(dies(&desk, Renaming::Full, &story(), 7));
    let record = std::fs::read_to_string(desk.journal())
        .unwrap()
        .replace("\"ready\"", "\"given_up\"");
    std::fs::write(desk.journal(), record).unwrap();
    std::fs::remove_dir_all(desk.at("new")).unwrap();
    assert_eq!(
        recovered(&desk, Renaming::Full).unwrap().outcome,
        EditRecovery::TakenBack
    );
    assert_eq!(desk.tree(), before);
    desk.assert_clean();
}
