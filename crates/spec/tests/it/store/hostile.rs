//! Links, pipes and directories in place of files: refused or replaced, never written through, and never
//! blocking.

use std::os::unix::fs::symlink;
use std::path::Path;

use crucible_spec::{FileState, LockClaim, PhaseId, PhaseStatus, ReceiptProblemKind, SpecError};

use super::common::{Fixture, fixture};

/// A directory outside of the project with a file that must stay unchanged.
fn outside(fixture: &Fixture) -> std::path::PathBuf {
    let outside = fixture.home.join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("precious"), "precious").unwrap();
    outside
}

#[track_caller]
fn assert_untouched(outside: &Path) {
    let names: Vec<_> = std::fs::read_dir(outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["precious"]);
    assert_eq!(
        std::fs::read_to_string(outside.join("precious")).unwrap(),
        "precious"
    );
}

fn pipe(path: &Path) {
    let exit_status = std::process::Command::new("mkfifo")
        .arg(path)
        .status()
        .unwrap();
    assert!(exit_status.success());
}

#[test]
fn link_instead_of_directory_is_refused() {
    for folder in ["artifacts", "receipts", "context"] {
        let fixture = fixture();
        let outside = outside(&fixture);
        std::fs::create_dir_all(fixture.store.dir()).unwrap();
        symlink(&outside, fixture.path(folder)).unwrap();
        let refused = fixture
            .try_run(PhaseId::Design, PhaseStatus::Success, "x")
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("must be a directory, not a link"),
            "{folder}: {refused}"
        );
        assert_untouched(&outside);
        assert_eq!(fixture.ledger().head().unwrap().seq, 0);
    }
}

#[test]
fn spec_behind_a_link_is_not_a_spec() {
    for (link, below) in [
        (".crucible", Some("specs/export-data")),
        (".crucible/specs", Some("export-data")),
        (".crucible/specs/export-data", None),
    ] {
        let fixture = fixture();
        let outside = outside(&fixture);
        // A complete spec is there, as in a hostile clone.
        let elsewhere = super::common::desk_at(&fixture.home.join("elsewhere"));
        elsewhere.success(PhaseId::Design);
        if let Some(below) = below {
            let planted = outside.join(below);
            std::fs::create_dir_all(planted.parent().unwrap()).unwrap();
            std::fs::rename(elsewhere.store.dir(), &planted).unwrap();
        }
        let before = tree(&outside);
        let place = fixture.home.join("project").join(link);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(&outside, &place).unwrap();
        for claim in [LockClaim::IfFree, LockClaim::Force] {
            let refused = fixture.store.lock("x", claim).unwrap_err().to_string();
            assert!(
                refused.contains("must be a directory, not a link"),
                "{link}: {refused}"
            );
        }
        for error in [
            fixture.store.state(None).unwrap_err(),
            fixture.store.history(None).unwrap_err(),
            fixture.store.exists().unwrap_err(),
            fixture.store.read("artifacts/10-design.md").unwrap_err(),
        ] {
            let message = error.to_string();
            assert!(
                matches!(error, SpecError::Unknown { .. }),
                "{link}: {message}"
            );
            assert!(
                message.contains(&place.display().to_string()) && message.contains("not a link"),
                "{message}"
            );
        }
        assert_eq!(tree(&outside), before, "{link}");
    }
}

/// Every path below a directory, with the content of files.
fn tree(dir: &Path) -> Vec<(std::path::PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path.clone());
            }
            found.push((path.clone(), std::fs::read(&path).ok()));
        }
    }
    found.sort();
    found
}

#[test]
fn link_in_place_of_output_is_replaced() {
    let fixture = fixture();
    let outside = outside(&fixture);
    std::fs::create_dir_all(fixture.path("artifacts")).unwrap();
    symlink(
        outside.join("precious"),
        fixture.path("artifacts/10-design.md"),
    )
    .unwrap();
    symlink(&outside, fixture.path("staging")).unwrap();
    symlink(&outside, fixture.path("staging.new")).unwrap();
    fixture.success(PhaseId::Design);
    assert_untouched(&outside);
    assert!(
        fixture
            .path("artifacts/10-design.md")
            .symlink_metadata()
            .unwrap()
            .is_file()
    );
    assert_eq!(fixture.names("."), ["artifacts", "lock", "receipts"]);
}

#[test]
fn link_in_place_of_lock_is_not_followed() {
    let fixture = fixture();
    let outside = outside(&fixture);
    std::fs::create_dir_all(fixture.store.dir()).unwrap();
    symlink(outside.join("precious"), fixture.path("lock")).unwrap();
    assert!(fixture.store.lock("x", LockClaim::IfFree).is_err());
    fixture.store.lock("x", LockClaim::Force).unwrap();
    assert_untouched(&outside);
}

#[test]
fn non_file_differs_and_does_not_block() {
    let fixture = fixture();
    let outside = outside(&fixture);
    for (phase, plant) in [
        (
            PhaseId::Requirements,
            (|path: &Path, _: &Path| pipe(path)) as fn(&Path, &Path),
        ),
        (PhaseId::Design, |path, outside| {
            std::fs::write(outside.join("copy"), "design").unwrap();
            symlink(outside.join("copy"), path).unwrap();
        }),
        (PhaseId::Tasks, |path, _| std::fs::create_dir(path).unwrap()),
        (PhaseId::Review, |path, _| {
            symlink("/dev/zero", path).unwrap()
        }),
    ] {
        fixture.success(phase);
        let path = fixture.path("artifacts").join(phase.artifact());
        std::fs::remove_file(&path).unwrap();
        plant(&path, &outside);
        let state = fixture.state();
        assert_eq!(
            state.phase(phase).unwrap().outputs[0].found,
            FileState::Differs,
            "{phase}"
        );
        assert!(
            fixture
                .store
                .read(&format!("artifacts/{}", phase.artifact()))
                .is_err()
        );
    }
    // A directory cannot be replaced by a file, a pipe can.
    assert!(
        fixture
            .try_run(PhaseId::Tasks, PhaseStatus::Success, "x")
            .is_err()
    );
    fixture.success(PhaseId::Requirements);
    assert_eq!(fixture.state().problems, []);
    // The whole directory of artifacts as a link to one with the same files.
    std::fs::rename(fixture.path("artifacts"), fixture.home.join("moved")).unwrap();
    symlink(fixture.home.join("moved"), fixture.path("artifacts")).unwrap();
    let state = fixture.state();
    assert_eq!(
        state.phase(PhaseId::Requirements).unwrap().outputs[0].found,
        FileState::Differs
    );
}

#[test]
fn a_receipt_that_is_no_file_is_unreadable() {
    let plants: [fn(&Path, &Path); 4] = [
        |path, _| pipe(path),
        |path, copy| symlink(copy, path).unwrap(),
        |path, _| std::fs::create_dir(path).unwrap(),
        |path, _| std::fs::write(path, vec![b' '; (1 << 20) + 1]).unwrap(),
    ];
    for plant in plants {
        let fixture = fixture();
        let receipt = fixture.success(PhaseId::Design);
        let path = fixture.path(&format!("receipts/{}.json", receipt.receipt_id));
        let copy = fixture.home.join("copy");
        std::fs::rename(&path, &copy).unwrap();
        plant(&path, &copy);
        let state = fixture.state();
        assert!(
            matches!(state.problems[0].kind, ReceiptProblemKind::Unreadable(_)),
            "{:?}",
            state.problems
        );
        assert!(state.phase(PhaseId::Design).unwrap().newest.is_none());
    }
}

#[test]
fn staging_with_pipe_or_link_is_removed() {
    let fixture = fixture();
    let outside = outside(&fixture);
    fixture.success(PhaseId::Design);
    std::fs::create_dir_all(fixture.path("staging/artifacts")).unwrap();
    pipe(&fixture.path("staging/receipt.json"));
    symlink(
        outside.join("precious"),
        fixture.path("staging/artifacts/20-tasks.md"),
    )
    .unwrap();
    symlink(&outside, fixture.path("staging/link")).unwrap();
    drop(fixture.lock());
    assert!(!fixture.path("staging").exists());
    assert_untouched(&outside);
    assert_eq!(fixture.names("artifacts"), ["10-design.md"]);
}
