//! Two processes at one run: one works, the other is told so.
#![expect(
    clippy::disallowed_methods,
    reason = "waiting for another process needs a clock"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use crucible_host::lock::LockError;
use crucible_ledger::{EventRecord, Ledger};
use crucible_run::{RunError, RunState};
use crucible_testkit::Reply;

use crate::common::{Along, Nothing, Place, Script, Until, answering_in_order, right};
use crate::worker::{self, Kill};

#[test]
fn concurrent_advance_reports_held_run() {
    let place = Place::new();
    let model = answering_in_order([Reply::Hang, right()]);
    let mut worker = worker::start(&place, &model.base_url(), Kill::Never);
    let begun = Instant::now();
    while model.requests().is_empty() {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "the model was never asked"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    let events = place.events();
    for second in [
        place
            .drive(&model.base_url(), Until::Advanced, Arc::new(Nothing))
            .map(drop),
        place.land().map(drop),
    ] {
        let Err(RunError::Lock(LockError::Held { owner, .. })) = second else {
            panic!("not told that the run is held: {second:?}");
        };
        assert!(
            owner.contains(&worker.id().to_string()) && owner.contains("advancing"),
            "{owner}"
        );
    }
    assert_eq!(place.events(), events);
    assert_eq!(model.requests().len(), 1);

    worker.kill().unwrap();
    assert!(worker::was_killed(worker.wait().unwrap()));
    let state = place
        .drive(&model.base_url(), Until::Landed, Arc::new(Nothing))
        .unwrap();
    assert_eq!(state, RunState::Landed);
    assert_eq!(model.requests().len(), 2);
    place.assert_recorded_once();
}

/// Notes the state of the only run in the list, whenever an event is recorded.
struct ListedStates {
    ledger: std::path::PathBuf,
    seen: std::sync::Mutex<Vec<String>>,
}

impl Along for ListedStates {
    fn event(&self, _event: &EventRecord) {
        let runs = Ledger::open(&self.ledger).unwrap().runs().unwrap();
        let mut seen = self.seen.lock().unwrap();
        if seen.last() != Some(&runs[0].state) {
            seen.push(runs[0].state.clone());
        }
    }
}

#[test]
fn list_is_as_far_as_the_events() {
    let (place, model) = (Place::new(), Script::Lands.model());
    let states = Arc::new(ListedStates {
        ledger: place.ledger_path(),
        seen: std::sync::Mutex::default(),
    });
    place
        .drive(&model.base_url(), Until::Landed, states.clone())
        .unwrap();
    // What is recorded together moves the list once: from the context to the signature nothing takes long.
    let steps = ["new", "analysed", "signed", "patched", "verified", "landed"];
    assert_eq!(*states.seen.lock().unwrap(), steps);
}
