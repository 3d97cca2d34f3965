//! Interrupted applications, and changes to the project before the next command.

use crucible_repo::{EditRecovery, RecoveredEdit};

use super::*;

const THREE: [&str; 3] = ["src/a.rs", "src/b.rs", "src/c.rs"];

/// A fixup of three files, interrupted after the first one was changed.
fn broken_off() -> (Fixture, PendingFixup) {
    let fixture = Fixture::new(&THREE.map(|path| (path, "one\ntwo\nthree\n")));
    let changes = THREE.map(|path| (path, "one\n2\nthree\n"));
    let fixup = fixture.pending(&changes, &policy());
    let edits = THREE.map(|path| (path, Some("one\ntwo\nthree\n"), Some("one\n2\nthree\n")));
    std::fs::create_dir_all(fixture.records()).unwrap();
    std::fs::write(
        fixture.record(),
        killed(&fixture, Digest::compute(&fixup.diff), &edits),
    )
    .unwrap();
    fixture.put("src/a.rs", "one\n2\nthree\n");
    fixture.put(
        &format!("src/.crucible-edit-{}-0.new", "0".repeat(32)),
        "one\ntwo\nthree\n",
    );
    (fixture, fixup)
}

/// Does the same as `git clean`.
fn tidy_up(fixture: &Fixture) {
    for entry in std::fs::read_dir(fixture.root().join("src")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().contains(".crucible-edit-") {
            std::fs::remove_file(path).unwrap();
        }
    }
}

fn codes_and_levels(applied: &AppliedFixup) -> Vec<(&str, bool)> {
    let findings = applied.verdict.findings().iter();
    findings
        .map(|finding| {
            (
                finding.subject.as_str(),
                finding.hint.contains("it was changed after"),
            )
        })
        .collect()
}

#[test]
fn deleted_temporary_files_are_recreated() {
    let (fixture, fixup) = broken_off();
    tidy_up(&fixture);
    let applied = fixture
        .apply(&fixup, &policy(), LinkPolicy::Refuse)
        .unwrap();
    assert_eq!(
        THREE.map(|path| fixture.get(path)),
        THREE.map(|_| "one\n2\nthree\n".to_owned())
    );
    assert_eq!(codes_and_levels(&applied), THREE.map(|path| (path, false)));
    assert!(!fixture.record().exists());
    assert_eq!(
        std::fs::read_dir(fixture.root().join("src"))
            .unwrap()
            .count(),
        3
    );
}

#[test]
fn unrecoverable_application_names_blocking_file() {
    let (fixture, fixup) = broken_off();
    tidy_up(&fixture);
    fixture.put("src/c.rs", "mine\n");
    let before = fixture.tree();
    for _ in 0..2 {
        let error = fixture
            .apply(&fixup, &policy(), LinkPolicy::Refuse)
            .unwrap_err();
        let message = error.to_string();
        assert!(
            matches!(error, SpecError::FixupBrokenOff { .. }),
            "{message}"
        );
        assert!(
            message.contains("undone: src/a.rs (")
                && message.contains("src/c.rs changed meanwhile"),
            "{message}"
        );
        assert!(!message.contains("no file was changed"), "{message}");
        assert_eq!(fixture.tree(), before);
        assert!(fixture.record().exists());
    }
}

#[test]
fn a_directory_that_was_moved_keeps_the_record() {
    let (fixture, fixup) = broken_off();
    std::fs::rename(fixture.root().join("src"), fixture.root().join("lib")).unwrap();
    let error = fixture
        .apply(&fixup, &policy(), LinkPolicy::Refuse)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("src/a.rs, src/b.rs, src/c.rs (the directory they are in is gone"),
        "{error}"
    );
    assert!(fixture.record().exists());
    std::fs::rename(fixture.root().join("lib"), fixture.root().join("src")).unwrap();
    fixture
        .apply(&fixup, &policy(), LinkPolicy::Refuse)
        .unwrap();
    assert_eq!(
        THREE.map(|path| fixture.get(path)),
        THREE.map(|_| "one\n2\nthree\n".to_owned())
    );
    assert_eq!(
        std::fs::read_dir(fixture.root().join("src"))
            .unwrap()
            .count(),
        3
    );
}

#[test]
fn later_edited_file_is_reported() {
    let (fixture, fixup) = broken_off();
    fixture.put("src/a.rs", "one\n2\nthree\nfour\n");
    let applied = fixture
        .apply(&fixup, &policy(), LinkPolicy::Refuse)
        .unwrap();
    assert_eq!(
        codes_and_levels(&applied),
        [("src/b.rs", false), ("src/c.rs", false), ("src/a.rs", true)]
    );
    assert_eq!(applied.files, fixup.files);
    assert_eq!(fixture.get("src/a.rs"), "one\n2\nthree\nfour\n");
    assert_eq!(fixture.get("src/c.rs"), "one\n2\nthree\n");
    // A recovery at the beginning of this same command counts as well.
    let recovered = RecoveredEdit {
        outcome: EditRecovery::Finished,
        files: THREE.map(|path| path.parse().unwrap()).to_vec(),
        edited_since: vec!["src/a.rs".parse().unwrap()],
    };
    let choice = FixupChoice {
        recovered,
        ..FixupChoice::unguarded(policy())
    };
    assert_eq!(
        codes_and_levels(&fixture.apply_as(&fixup, &choice).unwrap()),
        [("src/a.rs", true)]
    );
    // Another command finds the fixup in two of three files, and reports it.
    let error = fixture
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
    let (fixture, _) = broken_off();
    let before = (fixture.tree(), std::fs::read(fixture.record()).unwrap());
    let under_way = fixup_under_way(&fixture.store()).unwrap().unwrap();
    assert_eq!(
        under_way
            .files
            .iter()
            .map(RepoPath::as_str)
            .collect::<Vec<_>>(),
        THREE
    );
    assert_eq!(under_way.record, fixture.record());
    let found = under_way.finding();
    assert_eq!(found.finding.code.as_str(), "fixup-under-way");
    for part in [
        "src/a.rs, src/b.rs, src/c.rs",
        "crucible resume x --phase fixup --apply-fixups",
    ] {
        assert!(found.finding.hint.contains(part), "{found:?}");
    }
    assert_eq!(
        (fixture.tree(), std::fs::read(fixture.record()).unwrap()),
        before
    );
    // An invalid journal is reported, too; without a directory for journals there is none.
    std::fs::write(fixture.record(), "{").unwrap();
    let damaged = fixup_under_way(&fixture.store()).unwrap().unwrap();
    assert!(
        damaged.finding().finding.hint.contains("cannot be read"),
        "{damaged:?}"
    );
    assert_eq!(
        fixup_under_way(&SpecStore::new(&fixture.project(), "x".parse().unwrap())).unwrap(),
        None
    );
    std::fs::remove_file(fixture.record()).unwrap();
    assert_eq!(fixup_under_way(&fixture.store()).unwrap(), None);
}
