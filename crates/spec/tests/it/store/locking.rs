//! The lock: one process at a time, and a process that lost it changes nothing.

use crucible_spec::{LockClaim, PhaseId, PhaseStatus, SpecError};

use super::common::{fixture, run_under};

#[test]
fn second_process_learns_who_holds_the_lock() {
    let fixture = fixture();
    let held = fixture
        .store
        .lock("crucible spec export-data", LockClaim::IfFree)
        .unwrap();
    match fixture.store.lock("another", LockClaim::IfFree) {
        Err(SpecError::Locked { owner }) => {
            assert!(owner.contains("crucible spec export-data"), "{owner}")
        }
        other => panic!("{other:?}"),
    }
    assert!(fixture.store.state(None).is_ok(), "looking needs no lock");
    drop(held);
    fixture.store.lock("another", LockClaim::IfFree).unwrap();
}

#[test]
fn lock_of_dead_process_is_taken_silently() {
    let fixture = fixture();
    drop(fixture.lock());
    std::fs::write(
        fixture.path("lock"),
        "process 4000000: gone\nstarted at tick 1\n",
    )
    .unwrap();
    fixture.store.lock("next", LockClaim::IfFree).unwrap();
    assert!(fixture.text("lock").contains("next"));
}

#[test]
fn process_with_lost_lock_changes_nothing() {
    let fixture = fixture();
    let old = fixture.lock();
    let mut ledger = fixture.ledger();
    run_under(
        &old,
        PhaseId::Design,
        PhaseStatus::Success,
        "first",
        &mut ledger,
    )
    .unwrap();
    let new = fixture.store.lock("forced", LockClaim::Force).unwrap();
    let lost = run_under(
        &old,
        PhaseId::Design,
        PhaseStatus::Success,
        "late",
        &mut ledger,
    );
    assert!(matches!(lost, Err(SpecError::LockLost)), "{lost:?}");
    assert!(matches!(
        old.write_context("idea.md", b"late"),
        Err(SpecError::LockLost)
    ));
    assert_eq!(fixture.text("artifacts/10-design.md"), "first");
    assert_eq!(
        (
            fixture.names("receipts").len(),
            fixture.names("context").len()
        ),
        (1, 0)
    );
    drop(old);
    assert!(matches!(
        fixture.store.lock("a third", LockClaim::IfFree),
        Err(SpecError::Locked { .. })
    ));
    run_under(
        &new,
        PhaseId::Design,
        PhaseStatus::Success,
        "second",
        &mut ledger,
    )
    .unwrap();
    assert_eq!(fixture.text("artifacts/10-design.md"), "second");
    assert_eq!(fixture.state().problems, []);
}

#[test]
fn forced_locks_keep_one_receipt_chain() {
    let fixture = fixture();
    drop(fixture.ledger());
    let stored_count: usize = std::thread::scope(|scope| {
        let work = |number: u32| {
            let fixture = &fixture;
            move || {
                let mut ledger = fixture.ledger();
                let mut kept = 0;
                for round in 0..8 {
                    let claim = if round % 2 == 0 {
                        LockClaim::Force
                    } else {
                        LockClaim::IfFree
                    };
                    let lock = match fixture.store.lock("many", claim) {
                        Ok(lock) => lock,
                        // Another process took it between our lock and our first turn.
                        Err(SpecError::LockLost) => continue,
                        Err(SpecError::Locked { .. }) if claim == LockClaim::IfFree => continue,
                        Err(other) => panic!("{claim:?}: {other}"),
                    };
                    let text = format!("{number} {round}");
                    match run_under(
                        &lock,
                        PhaseId::Design,
                        PhaseStatus::Success,
                        &text,
                        &mut ledger,
                    ) {
                        Ok(_) => kept += 1,
                        // Another process took the lock and promoted between our query of the sequence
                        // number and our turn.
                        Err(SpecError::LockLost) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                kept
            }
        };
        let threads: Vec<_> = (0..3).map(|number| scope.spawn(work(number))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert!(
        stored_count > 0,
        "who took the lock last is not disturbed any more"
    );
    let state = fixture.state();
    assert_eq!(state.problems, []);
    assert_eq!(state.receipts, stored_count as u64);
    assert_eq!(fixture.store.history(None).unwrap().0.len(), stored_count);
    assert!(fixture.ledger().verify(&[]).unwrap().passes());
}
