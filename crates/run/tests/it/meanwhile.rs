//! A run's directory goes, or leads elsewhere, between two events of one process.
//!
//! Slow because each event is one whole run.
#![expect(
    clippy::disallowed_methods,
    reason = "these tests take directories away"
)]

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crucible_ledger::EventRecord;
use crucible_run::{RunError, RunState};

use crate::common::{Along, Nothing, Ordinals, Place, Script, Until};

/// Does something once, when the n-th event of the ledger has been recorded.
struct At<F> {
    event: u64,
    done: AtomicBool,
    ordinals: Ordinals,
    act: F,
}

impl<F: Fn() + Send + Sync> Along for At<F> {
    fn event(&self, event: &EventRecord) {
        if self.ordinals.ordinal(event) == Some(self.event)
            && !self.done.swap(true, Ordering::SeqCst)
        {
            (self.act)();
        }
    }
}

fn at<F: Fn() + Send + Sync + 'static>(event: u64, act: F) -> Arc<At<F>> {
    Arc::new(At {
        event,
        done: AtomicBool::new(false),
        ordinals: Ordinals::default(),
        act,
    })
}

fn undisturbed() -> (crate::common::Story, u64) {
    let (place, model) = (Place::new(), Script::Lands.model());
    place
        .drive(&model.base_url(), Until::Landed, Arc::new(Nothing))
        .unwrap();
    let story = place.story();
    let begins = story.place_of("LANDING_STARTED");
    (story, begins)
}

#[test]
fn deleted_run_directory_ends_the_run() {
    let (story, landing) = undisturbed();
    let last = story.steps.len() as u64;
    for n in (1..last).filter(|n| n % 3 == 1 || *n + 1 >= landing) {
        let (place, model) = (Place::new(), Script::Lands.model());
        let untouched = place.repository();
        let runs = place.runs();
        let taken = at(n, move || std::fs::remove_dir_all(&runs).unwrap());
        let outcome = place.drive(&model.base_url(), Until::Landed, taken.clone());
        let error = outcome.expect_err(&format!(
            "deleted after event {n}: {}",
            story.steps[n as usize - 1]
        ));
        println!("deleted after event {n}: {error}");
        assert!(taken.done.load(Ordering::SeqCst));
        assert!(
            error
                .to_string()
                .contains(&place.runs().display().to_string()),
            "{error}"
        );
        assert!(
            place.run().is_none(),
            "a run stands there again after event {n}"
        );
        assert_eq!(place.ledger().verify(&[]).unwrap().findings(), []);
        if n < landing {
            assert_eq!(place.repository(), untouched, "deleted after event {n}");
            // A new run is not in the way of what is left of the old one.
            let next = Script::Lands.model();
            let state = place
                .drive(&next.base_url(), Until::Landed, Arc::new(Nothing))
                .unwrap();
            assert_eq!(state, RunState::Landed);
        }
    }
}

#[test]
fn run_directory_linked_into_repository_is_refused() {
    let (story, landing) = undisturbed();
    for n in [
        story.place_of("CONTEXT_PACKED"),
        story.place_of("PLAN_SIGNED"),
        landing - 1,
    ] {
        let (place, model) = (Place::new(), Script::Lands.model());
        let untouched = place.repository();
        let (runs, inside) = (place.runs(), place.repo().join("runs inside"));
        let stored_path = inside.clone();
        let moved = at(n, move || {
            std::fs::rename(&runs, &stored_path).unwrap();
            symlink(&stored_path, &runs).unwrap();
        });
        let outcome = place.drive(&model.base_url(), Until::Landed, moved);
        // Wherever it stopped: from here on nothing goes on, and nothing landed.
        println!("linked after event {n}: {outcome:?}");
        assert!(matches!(
            outcome,
            Err(RunError::RunInsideRepository { .. } | RunError::RepositoryChanged { .. })
        ));
        let second_run_error = place
            .drive(&model.base_url(), Until::Landed, Arc::new(Nothing))
            .unwrap_err();
        assert!(
            matches!(second_run_error, RunError::RunInsideRepository { .. }),
            "{second_run_error}"
        );
        let again = place.land().unwrap_err();
        assert!(
            matches!(again, RunError::RunInsideRepository { .. }),
            "{again}"
        );
        // Put back, the run goes on and comes to the same end.
        std::fs::remove_file(place.runs()).unwrap();
        std::fs::rename(&inside, place.runs()).unwrap();
        assert_eq!(place.repository(), untouched);
        place
            .drive(&model.base_url(), Until::Landed, Arc::new(Nothing))
            .unwrap();
        place.assert_ended_like(&story);
    }
}

/// As where a person's data directory lies on another disk.
#[test]
fn runs_behind_link_are_identical() {
    let (story, _) = undisturbed();
    let (place, model) = (Place::new(), Script::Lands.model());
    let elsewhere = place.root().join("another disk");
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, place.runs()).unwrap();
    place
        .drive(&model.base_url(), Until::Landed, Arc::new(Nothing))
        .unwrap();
    place.assert_ended_like(&story);
    assert_eq!(place.replay().unwrap().different, Vec::<String>::new());
}
