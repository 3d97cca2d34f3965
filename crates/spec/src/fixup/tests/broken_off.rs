//! Interrupted applications, and changes to the project before the next command.

use crucible_repo::{EditRecovery, RecoveredEdit};

use super::*;

const THREE: [&str; 3] = ["src/a.rs", "src/b.rs", "src/c.rs"];

/// A fixup of three files, interrupted after the first one was changed.
fn broken_off() -> (Desk, PendingFixup) {
    let desk = Desk::new(&THREE.map(|path| (path, "one\ntwo\nthree\n")));
    let changes = THREE.map(|path| (path, "one\n2\nthree\n"));
    let fixup = desk.pending(&changes, &policy());
    let edits = THREE.map(|path| (path, Some("one\ntwo\nthree\n"), Some("one\n2\nthree\n")));
    std::fs::create_dir_all(desk.records()).unwrap();
    std::fs::write(
        desk.record(),
        killed(&desk, Digest::of(&fixup.diff), &edits),
    )
    .unwrap();
    desk.put("src/a.rs", "one\n2\nthree\n");
    desk.put(
        &format!("src/.crucible-edit-{}-0.new", "0".repeat(32)),
        "one\ntwo\nthree\n",
    );
    (desk, fixup)
}

/// Does the same as `git clean`.
fn tidy_up(desk: &Desk) {
    for entry in std::fs::read_dir(desk.root().join("src")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().contains(".crucible-edit-") {
            std::fs::remove_file(path).unwrap();
        }
    }
}

fn told(applied: &AppliedFixup) -> Vec<(&str, bool)> {
    let findings = applied.verdict.findings().iter();
    findings
        .map(|told| {
            (
                told.subject.as_str(),
                told.hint.contains("it was changed after"),
            )
        })
        .collect()
}

#[test]
fn deleted_temporary_files_are_recreated() {
    let (desk, fixup) = broken_off();
    tidy_up(&desk);
    let applied = desk.apply(&fixup, &policy(), LinkPolicy::Refuse).unwrap();
    assert_eq!(
        THREE.map(|path| desk.get(path)),
        THREE.map(|_| "one\n2\nthree\n".to_owned())
    );
    assert_eq!(told(&applied), THREE.map(|path| (path, false)));
    assert!(!desk.record().exists());
    assert_eq!(
        std::fs::read_dir(desk.root().join("src")).unwrap().count(),
        3
    );
}

#[test]
fn unrecoverable_application_names_blocking_file() {
    let (desk, fixup) = broken_off();
    tidy_up(&desk);
    desk.put("src/c.rs", "mine\n");
    let before = desk.tree();
    for _ in 0..2 {
        let error = desk
            .apply(&fixup, &policy(), LinkPolicy::Refuse)
            .unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, SpecError::FixupBrokenOff { .. }), "{said}");
        assert!(
            said.contains("undone: src/a.rs (") && said.contains("src/c.rs changed meanwhile"),
            "{said}"
        );
        assert!(!said.contains("no file was changed"), "{said}");
        assert_eq!(desk.tree(), before);
        assert!(desk.record().exists());
    }
}

#[test]
fn a_directory_that_was_moved_keeps_the_record() {
    let (desk, fixup) = broken_off();
    std::fs::rename(desk.root().join("src"), desk.root().join("lib")).unwrap();
    let error = desk
        .apply(&fixup, &policy(), LinkPolicy::Refuse)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("src/a.rs, src/b.rs, src/c.rs (the directory they are in is gone"),
        "{error}"
    );
    assert!(desk.record().exists());
    std::fs::rename(desk.root().join("lib"), desk.root().join("src")).unwrap();
    desk.apply(&fixup, &policy(), LinkPolicy::Refuse).unwrap();
    assert_eq!(
        THREE.map(|path| desk.get(path)),
        THREE.map(|_| "one\n2\nthree\n".to_owned())
    );
    assert_eq!(
        std::fs::read_dir(desk.root().join("src")).unwrap().count(),
        3
    );
}

#[test]
fn later_edited_file_is_reported() {
    let (desk, fixup) = broken_off();
    desk.put("src/a.rs", "one\n2\nthree\nfour\n");
    let applied = desk.apply(&fixup, &policy(), LinkPolicy::Refuse).unwrap();
    assert_eq!(
        told(&applied),
        [("src/b.rs", false), ("src/c.rs", false), ("src/a.rs", true)]
    );
    assert_eq!(applied.files, fixup.files);
    assert_eq!(desk.get("src/a.rs"), "one\n2\nthree\nfour\n");
    assert_eq!(desk.get("src/c.rs"), "one\n2\nthree\n");
    // A recovery at the beginning of this same command counts as well.
    let recovered = RecoveredEdit {
        outcome: EditRecovery::Finished,
        files: THREE.map(|path| path.parse().unwrap()).to_vec(),
        went_on: vec!["src/a.rs".parse().unwrap()],
    };
    let choice = FixupChoice {
        recovered,
        ..FixupChoice::unguarded(policy())
    };
    assert_eq!(
        told(&desk.apply_as(&fixup, &choice).unwrap()),
        [("src/a.rs", true)]
    );
    // Another command finds the fixup in two of three files, and reports it.
    let error = desk
        .apply(&fixup, &policy(), LinkPolicy::Refuse)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(
            "src/a.rs has changed since the fixup was made, and the fixup is already applied to \
        src/b.rs, src/c.rs"
        ),
        "{error}"
    );
}

#[test]
fn unfinished_application_is_reported_unchanged() {
    let (desk, _) = broken_off();
    let before = (desk.tree(), std::fs::read(desk.record()).unwrap());
    let under_way = fixup_under_way(&desk.store()).unwrap().unwrap();
    assert_eq!(
        under_way
            .files
            .iter()
            .map(RepoPath::as_str)
            .collect::<Vec<_>>(),
        THREE
    );
    assert_eq!(under_way.record, desk.record());
    let found = under_way.finding();
    assert_eq!(found.finding.code.as_str(), "fixup-under-way");
    for part in [
        "src/a.rs, src/b.rs, src/c.rs",
        "crucible resume x --phase fixup --apply-fixups",
    ] {
        assert!(found.finding.hint.contains(part), "{found:?}");
    }
    assert_eq!((desk.tree(), std::fs::read(desk.record()).unwrap()), before);
    // An invalid journal is reported, too; without a directory for journals there is none.
    std::fs::write(desk.record(), "{").unwrap();
    let damaged = fixup_under_way(&desk.store()).unwrap().unwrap();
    assert!(
        damaged.finding().finding.hint.contains("cannot be read"),
        "{damaged:?}"
    );
    assert_eq!(
        fixup_under_way(&SpecStore::new(&desk.project(), "x".parse().unwrap())).unwrap(),
        None
    );
    std::fs::remove_file(desk.record()).unwrap();
    assert_eq!(fixup_under_way(&desk.store()).unwrap(), None);
}
