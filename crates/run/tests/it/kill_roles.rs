//! The kill matrix of runs in which others than one model answer: a person through `outbox/`, a model in the chair.
//!
//! One run is killed after each event, and kept. From there, or from a second kill right before the next event with its artifact
//! written, another process takes it to its end, which is that of an undisturbed run.

use std::sync::Arc;

use crucible_ledger::Usage;
use crucible_testkit::FakeOpenAi;

use crate::cast::{ANSWERED, Cast};
use crate::common::{Nothing, Place, Story, Until};
use crate::worker::{self, Kill, LAST_INSTANT};

/// A run that nothing happens to.
struct Reference {
    story: Story,
    usage: Usage,
    answered: String,
}

fn answered(place: &Place) -> String {
    std::fs::read_to_string(place.root().join(ANSWERED)).unwrap_or_default()
}

fn undisturbed(cast: Cast) -> Reference {
    let (place, model) = (Place::of(cast), cast.model());
    place.drive(&model.base_url(), Until::Landed, Arc::new(Nothing)).unwrap();
    let reference = Reference { story: place.story(), usage: place.usage(), answered: answered(&place) };
    assert_eq!(reference.usage.calls, cast.calls());
    assert_eq!(reference.story.calls.len() as u64, cast.calls());
    reference
}

fn was_killed(place: &Place, model: &FakeOpenAi, kill: Kill) -> bool {
    worker::was_killed(worker::start(place, &model.base_url(), kill).wait().unwrap())
}

/// How many steps stand in the ledger; a question that was cut off and put again is none.
fn steps(place: &Place) -> usize {
    let put_again = |key: &String| key.contains("-asked-");
    place.events().iter().filter(|event| !event.key.as_ref().is_some_and(put_again)).count()
}

/// Takes a killed run to its end: nobody is asked again for what was recorded, and nothing is used twice.
fn comes_to_its_end(place: &Place, model: &FakeOpenAi, reference: &Reference) {
    assert_eq!(place.ledger().verify(&[]).unwrap().findings(), []);
    let lines = place.event_lines();
    place.drive(&model.base_url(), Until::Landed, Arc::new(Nothing)).unwrap();
    assert!(place.event_lines().starts_with(&lines), "events.jsonl was rewritten");
    place.assert_ended_like(&reference.story);
    assert_eq!(place.usage(), reference.usage);
    assert_eq!(answered(place), reference.answered);
}

/// One run, killed after each event that it makes. From every second of these points it is taken to its end, and from every
/// other one it is killed once more, right before the next event with its artifact written, and then taken to its end.
/// Asking, answer and use follow one another in threes, so each of them meets both.
fn killed_around_each_event(cast: Cast) {
    let reference = undisturbed(cast);
    let (place, model) = (Place::of(cast), cast.model());
    let mut before = place.keep();
    let mut number = 0;
    while was_killed(&place, &model, Kill::NewEvent) {
        number += 1;
        let after = place.keep();
        if number % 2 == 0 {
            let instant = std::fs::read_to_string(place.root().join(LAST_INSTANT)).unwrap();
            println!("before event {number}: {}", place.events().last().unwrap().event);
            place.restore(&before);
            assert!(was_killed(&place, &model, Kill::Instant(instant.parse().unwrap())));
            assert_eq!(steps(&place), number - 1, "event {number} was appended");
        } else {
            println!("after event {number}: {}", place.events().last().unwrap().event);
        }
        comes_to_its_end(&place, &model, &reference);
        place.restore(&after);
        before = after;
    }
    assert_eq!(number, reference.story.steps.len());
    place.assert_ended_like(&reference.story);
    assert_eq!((place.usage(), answered(&place)), (reference.usage, reference.answered));
}

#[test]
fn a_run_with_a_person_is_killed_around_each_event() {
    killed_around_each_event(Cast::Person);
}

#[test]
fn a_run_with_a_model_in_every_seat_is_killed_around_each_event() {
    killed_around_each_event(Cast::Chairs);
}
