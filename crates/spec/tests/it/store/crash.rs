//! A killed process and a full disk: all of a promotion or none of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crucible_ledger::Ledger;
use crucible_model::Digest;
use crucible_spec::{
    FileState, LockClaim, PhaseId, PhaseOutput, PhaseStatus, ReceiptProblemKind, SpecReceipt,
};
use crucible_testkit::on_a_small_disk;

use super::common::{Fixture, desk_at, document, draft, fixture, run_under};

/// The variable with the home of a test that runs as its own child.
const CHILD: &str = "CRUCIBLE_TEST_STORE_HOME";

/// The two files of every promotion here, with the same text.
fn outputs(text: &str) -> Vec<PhaseOutput> {
    let diff = PhaseOutput {
        path: "artifacts/40-fixup.diff".to_owned(),
        bytes: text.as_bytes().to_vec(),
    };
    vec![document(PhaseId::Fixup, text), diff]
}

/// Checks that both files belong to the promotion of the newest receipt.
#[track_caller]
fn assert_whole(fixture: &Fixture) {
    let state = fixture.state();
    assert_eq!(state.problems, []);
    let phase = state.phase(PhaseId::Fixup).unwrap();
    assert_eq!(phase.newest, phase.last_success);
    if let Some(newest) = &phase.newest {
        assert_eq!(phase.outputs.len(), 2);
        assert!(
            phase
                .outputs
                .iter()
                .all(|output| output.found == FileState::Same),
            "{newest:?}"
        );
        assert_eq!(
            fixture.text("artifacts/40-fixup.md"),
            fixture.text("artifacts/40-fixup.diff")
        );
    }
    let left: Vec<String> = fixture.names(".");
    assert!(
        left.iter()
            .all(|name| ["artifacts", "context", "lock", "receipts"].contains(&name.as_str())),
        "{left:?}"
    );
    for folder in ["artifacts", "context", "receipts"] {
        assert!(
            fixture
                .names(folder)
                .iter()
                .all(|name| !name.starts_with('.')),
            "{folder}"
        );
    }
}

/// Resets the directory to a state during the last promotion.
fn as_if_killed(fixture: &Fixture, second: &SpecReceipt, moved: usize, receipt_moved: bool) {
    fixture.mark(second.digest.unwrap());
    let staging = fixture.path("staging");
    std::fs::create_dir_all(staging.join("artifacts")).unwrap();
    for (place, name) in ["40-fixup.md", "40-fixup.diff"].into_iter().enumerate() {
        if place >= moved {
            std::fs::rename(
                fixture.path("artifacts").join(name),
                staging.join("artifacts").join(name),
            )
            .unwrap();
            std::fs::write(fixture.path("artifacts").join(name), "first").unwrap();
        }
    }
    if !receipt_moved {
        let receipt = fixture.path(&format!("receipts/{}.json", second.receipt_id));
        std::fs::rename(receipt, staging.join("receipt.json")).unwrap();
    }
}

fn two_promotions(fixture: &Fixture) -> SpecReceipt {
    let lock = fixture.lock();
    let mut ledger = fixture.ledger();
    let mut last = None;
    for (place, text) in [(1, "first"), (2, "second")] {
        let receipt = draft(PhaseId::Fixup, PhaseStatus::Success, place);
        last = Some(
            lock.promote(receipt, outputs(text), &mut ledger)
                .unwrap()
                .receipt,
        );
    }
    last.unwrap()
}

#[test]
fn complete_staging_is_finished_after_kill() {
    for (moved, receipt_moved) in [(0, false), (1, false), (2, false), (2, true)] {
        let fixture = fixture();
        let second = two_promotions(&fixture);
        as_if_killed(&fixture, &second, moved, receipt_moved);
        std::fs::write(fixture.path("artifacts/.tmp-aB3dE6"), "half").unwrap();
        drop(fixture.lock());
        assert_whole(&fixture);
        assert_eq!(fixture.text("artifacts/40-fixup.md"), "second");
        assert_eq!(fixture.state().receipts, 2);
        // And the next one follows it.
        let lock = fixture.lock();
        let third = lock.promote(
            draft(PhaseId::Fixup, PhaseStatus::Success, 3),
            outputs("third"),
            &mut fixture.ledger(),
        );
        assert_eq!(
            third.unwrap().receipt.previous.unwrap().digest,
            second.digest.unwrap()
        );
        assert_whole(&fixture);
    }
}

#[test]
fn unfinished_promotion_is_reported_as_such() {
    for (moved, receipt_moved, knows) in [
        (0, false, true),
        (1, false, true),
        (2, false, true),
        (0, false, false),
        (2, true, true),
    ] {
        let fixture = fixture();
        let second = two_promotions(&fixture);
        as_if_killed(&fixture, &second, moved, receipt_moved);
        let spec_state = if knows {
            fixture.state()
        } else {
            fixture.store.state(None).unwrap()
        };
        let kinds: Vec<_> = spec_state
            .problems
            .iter()
            .map(|problem| (problem.file.clone(), problem.kind.clone()))
            .collect();
        let unfinished = (
            format!("{}.json", second.receipt_id),
            ReceiptProblemKind::PromotionUnfinished,
        );
        // After the receipt is in place, only cleanup is left.
        assert_eq!(
            kinds,
            if receipt_moved {
                Vec::new()
            } else {
                vec![unfinished]
            }
        );
        drop(fixture.lock());
        assert_whole(&fixture);
    }
    // An incomplete staging is never finished: then a file is really missing.
    let fixture = fixture();
    let second = two_promotions(&fixture);
    as_if_killed(&fixture, &second, 0, false);
    std::fs::write(fixture.path("staging/artifacts/40-fixup.md"), "other").unwrap();
    let kinds: Vec<_> = fixture
        .state()
        .problems
        .into_iter()
        .map(|problem| problem.kind)
        .collect();
    assert_eq!(kinds, [ReceiptProblemKind::LedgerKnowsNewer]);
}

#[test]
fn kill_before_ledger_is_recovered() {
    let fixture = fixture();
    let second = two_promotions(&fixture);
    std::fs::remove_dir_all(fixture.home.join("data")).unwrap();
    as_if_killed(&fixture, &second, 0, false);
    let lock = fixture.lock();
    lock.promote(
        draft(PhaseId::Fixup, PhaseStatus::Success, 3),
        outputs("third"),
        &mut fixture.ledger(),
    )
    .unwrap();
    let key =
        |path: &Path| Digest::compute(path.canonicalize().unwrap().as_os_str().as_encoded_bytes());
    let project = key(&fixture.home.join("project"));
    let known = fixture
        .ledger()
        .spec_receipts_of_id(&project, "export-data", &second.receipt_id)
        .unwrap();
    assert_eq!(known.len(), 1);
    assert_whole(&fixture);
}

#[test]
fn partial_staging_is_rolled_back() {
    let spoils: [fn(&Fixture); 6] = [
        |fixture| std::fs::rename(fixture.path("staging"), fixture.path("staging.new")).unwrap(),
        |fixture| std::fs::remove_file(fixture.path("staging/receipt.json")).unwrap(),
        |fixture| std::fs::remove_file(fixture.path("staging/artifacts/40-fixup.diff")).unwrap(),
        |fixture| std::fs::write(fixture.path("staging/artifacts/40-fixup.diff"), "other").unwrap(),
        |fixture| {
            let text = fixture
                .text("staging/receipt.json")
                .replace("\"exit_code\":0", "\"exit_code\":1");
            std::fs::write(fixture.path("staging/receipt.json"), text).unwrap();
        },
        |fixture| std::fs::write(fixture.path("staging/receipt.json"), "{").unwrap(),
    ];
    for spoil in spoils {
        let fixture = fixture();
        let second = two_promotions(&fixture);
        as_if_killed(&fixture, &second, 0, false);
        spoil(&fixture);
        drop(fixture.lock());
        assert_eq!(fixture.text("artifacts/40-fixup.md"), "first");
        assert_eq!(fixture.names("."), ["artifacts", "lock", "receipts"]);
        assert_eq!(
            (fixture.state().receipts, fixture.names("receipts").len()),
            (1, 1)
        );
    }
}

#[test]
fn an_old_staging_is_not_promoted_again() {
    let fixture = fixture();
    let second = two_promotions(&fixture);
    std::fs::create_dir_all(fixture.path("staging/artifacts")).unwrap();
    let copy = fixture.path(&format!("receipts/{}.json", second.receipt_id));
    std::fs::copy(copy, fixture.path("staging/receipt.json")).unwrap();
    for name in ["40-fixup.md", "40-fixup.diff"] {
        std::fs::copy(
            fixture.path("artifacts").join(name),
            fixture.path("staging/artifacts").join(name),
        )
        .unwrap();
    }
    let lock = fixture.lock();
    assert!(!fixture.path("staging").exists());
    lock.promote(
        draft(PhaseId::Fixup, PhaseStatus::Success, 3),
        outputs("third"),
        &mut fixture.ledger(),
    )
    .unwrap();
    assert_whole(&fixture);
}

/// This test as a separate process, with its home in the environment.
fn child(test: &str, home: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, home);
    command
}

fn home_of_child() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

#[test]
fn promotion_is_atomic_under_kill() {
    if let Some(home) = home_of_child() {
        let fixture = desk_at(&home);
        let mut ledger = fixture.ledger();
        loop {
            let lock = fixture.lock();
            let place = lock.next_sequence().unwrap();
            let receipt = draft(PhaseId::Fixup, PhaseStatus::Success, place);
            lock.write_context("idea.md", place.to_string().as_bytes())
                .unwrap();
            lock.promote(receipt, outputs(&place.to_string()), &mut ledger)
                .unwrap();
        }
    }
    let fixture = fixture();
    let name = "store::crash::promotion_is_atomic_under_kill";
    let (mut promoted, mut round) = (0, 0u32);
    while round < 40 || (promoted < 10 && round < 400) {
        let mut killed = child(name, &fixture.home)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // From before its first promotion to after some of them, and later on a busy machine.
        let pause = u64::from(round) * 1_300 % 31_000 + 4_000 + u64::from(round / 40) * 50_000;
        std::thread::sleep(Duration::from_micros(pause));
        round += 1;
        killed.kill().unwrap();
        killed.wait().unwrap();
        drop(
            fixture
                .store
                .lock("after the kill", LockClaim::IfFree)
                .unwrap(),
        );
        assert_whole(&fixture);
        let receipts = fixture.state().receipts;
        assert!(receipts >= promoted, "a receipt was lost");
        promoted = receipts;
    }
    assert!(promoted >= 10, "{promoted} promotions in {round} rounds");
    assert!(fixture.ledger().verify(&[]).unwrap().passes());
    assert_eq!(
        fixture.store.history(None).unwrap().0.len() as u64,
        promoted
    );
}

/// Fills the disk of `folder` up to some kilobytes, promotes, checks that all of it or none exists, and
/// frees the space.
fn promote_with_little_room(fixture: &Fixture, folder: &Path) {
    let ballast = folder.join("ballast");
    let mut failed = 0;
    for free in (0..=64).step_by(4) {
        let mut file = std::fs::File::create(&ballast).unwrap();
        let block = vec![0; 4096];
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(free << 10)).unwrap();
        drop(file);
        let text = format!("{free} ").repeat(2000);
        let tried = fixture.store.lock("x", LockClaim::IfFree).and_then(|lock| {
            let receipt = draft(PhaseId::Fixup, PhaseStatus::Success, lock.next_sequence()?);
            let mut ledger = Ledger::open(&fixture.home.join("data/ledger.db"))?;
            lock.promote(receipt, outputs(&text), &mut ledger)
        });
        std::fs::remove_file(&ballast).unwrap();
        let before = fixture.store.state(None).unwrap().receipts;
        drop(fixture.lock());
        assert_whole(fixture);
        assert_eq!(fixture.state().receipts, before, "what failed came back");
        match tried {
            Ok(_) => assert_eq!(fixture.text("artifacts/40-fixup.md"), text),
            Err(_) => failed += 1,
        }
    }
    assert!(failed >= 2, "the disk was never full");
    run_under(
        &fixture.lock(),
        PhaseId::Design,
        PhaseStatus::Success,
        "x",
        &mut fixture.ledger(),
    )
    .unwrap();
    assert_whole(fixture);
    assert!(fixture.ledger().verify(&[]).unwrap().passes());
}

#[test]
fn promotion_is_atomic_on_full_disk() {
    if let Some(home) = home_of_child() {
        let fixture = desk_at(&home);
        two_promotions(&fixture);
        return promote_with_little_room(&fixture, &home.join("project"));
    }
    let fixture = fixture();
    let name = "store::crash::promotion_is_atomic_on_full_disk";
    on_a_small_disk(CHILD, name, &fixture.home, "project", "512k", "");
}

#[test]
fn ledger_on_full_disk_leaves_no_promotion() {
    if let Some(home) = home_of_child() {
        let fixture = desk_at(&home);
        two_promotions(&fixture);
        return promote_with_little_room(&fixture, &home.join("data"));
    }
    let fixture = fixture();
    let name = "store::crash::ledger_on_full_disk_leaves_no_promotion";
    on_a_small_disk(CHILD, name, &fixture.home, "data", "1m", "");
}

#[test]
fn read_only_disk_is_error_but_stays_readable() {
    if let Some(home) = home_of_child() {
        let fixture = desk_at(&home);
        let message = fixture
            .try_run(PhaseId::Design, PhaseStatus::Success, "x")
            .unwrap_err()
            .to_string();
        assert!(message.contains("Read-only"), "{message}");
        assert_eq!(fixture.store.state(None).unwrap().receipts, 2);
        return;
    }
    let fixture = fixture();
    two_promotions(&fixture);
    std::fs::rename(fixture.home.join("project"), fixture.home.join("copy")).unwrap();
    let name = "store::crash::read_only_disk_is_error_but_stays_readable";
    let then = "cp -r \"$0/copy/.\" \"$0/project\" && mount -o remount,ro \"$0/project\" &&";
    on_a_small_disk(CHILD, name, &fixture.home, "project", "1m", then);
}
