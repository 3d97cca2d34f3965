//! A run is killed with SIGKILL and advanced by another process: it ends as if nothing had happened.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::common::{ATTEMPTS, Counted, Nothing, Place, Story, Until, model};
use crate::worker::{self, Kill};

struct Reference {
    story: Story,
    counted: Arc<Counted>,
}

/// A run that nothing happens to.
fn undisturbed() -> Reference {
    let (place, model) = (Place::new(), model());
    let counted = Arc::new(Counted::default());
    place
        .drive(&model.base_url(), Until::Landed, counted.clone())
        .unwrap();
    let story = place.story();
    place.assert_landed_like(&story);
    assert_eq!(model.requests().len(), ATTEMPTS);
    Reference { story, counted }
}

/// Kills a worker at one point, looks at what is left, lets another process finish, and checks the end.
fn kill_and_finish(at: Kill, expected: &Story) {
    let (place, model) = (Place::new(), model());
    let untouched = place.repository();
    let status = worker::start(&place, &model.base_url(), at).wait().unwrap();
    assert!(worker::was_killed(status), "{at:?} was never reached");
    assert_eq!(place.ledger().verify(&[]).unwrap().findings(), [], "after {at:?}");
    if !place.has_begun_to_land() {
        assert_eq!(place.repository(), untouched, "after {at:?}");
    }
    let lines = place.event_lines();
    place
        .drive(&model.base_url(), Until::Landed, Arc::new(Nothing))
        .unwrap_or_else(|error| panic!("not continued after {at:?}: {error}"));
    assert!(place.event_lines().starts_with(&lines), "events.jsonl was rewritten after {at:?}");
    eprintln!("killed at {at:?}");
    place.assert_landed_like(expected);
    assert_eq!(model.requests().len(), ATTEMPTS, "the model was asked again after {at:?}");
}

/// Every `parts`-th point, from `part` on.
fn kill_at_each(at: fn(u64) -> Kill, count: fn(&Counted) -> u64, part: u64, parts: u64) {
    let Reference { story, counted } = undisturbed();
    let points = count(&counted);
    assert!(points > 20, "{points}");
    for n in (1..=points).filter(|n| n % parts == part) {
        kill_and_finish(at(n), &story);
    }
}

/// Tests that share the points of one kind among them, so that they run side by side.
macro_rules! in_parts {
    ($($name:ident: $at:expr, $count:ident, $part:literal of $parts:literal;)*) => {$(
        #[test]
        fn $name() {
            kill_at_each($at, |counted| counted.$count.load(Ordering::Relaxed), $part, $parts);
        }
    )*};
}

in_parts! {
    killed_after_an_event_part_0: Kill::Event, events, 0 of 4;
    killed_after_an_event_part_1: Kill::Event, events, 1 of 4;
    killed_after_an_event_part_2: Kill::Event, events, 2 of 4;
    killed_after_an_event_part_3: Kill::Event, events, 3 of 4;
    killed_before_an_event_part_0: Kill::Instant, instants, 0 of 4;
    killed_before_an_event_part_1: Kill::Instant, instants, 1 of 4;
    killed_before_an_event_part_2: Kill::Instant, instants, 2 of 4;
    killed_before_an_event_part_3: Kill::Instant, instants, 3 of 4;
    killed_in_a_step_part_0: Kill::Working, workings, 0 of 2;
    killed_in_a_step_part_1: Kill::Working, workings, 1 of 2;
}
