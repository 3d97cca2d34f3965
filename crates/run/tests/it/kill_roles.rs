//! The kill matrix of runs in which others than one model answer: a person through `outbox/`, a model in the chair, a model
//! that asks for more files.
//!
//! One run is killed each time that it recorded something, and kept. From there, or from a second kill right before that, with the
//! artifacts written, another process takes it to its end, which is that of an undisturbed run.
//!
//! Slow because each kill takes a whole run, with its gates in the sandbox, to its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crucible_ledger::Usage;
use crucible_testkit::FakeOpenAi;

use crate::cast::{ANSWERED, RoleServers};
use crate::common::{Counted, Nothing, Place, Story, Until};
use crate::worker::{self, Kill, LAST_INSTANT};

/// A run that nothing happens to.
struct Reference {
    story: Story,
    /// How often it recorded something.
    commits: u64,
    usage: Usage,
    answered: String,
}

fn answered(place: &Place) -> String {
    std::fs::read_to_string(place.root().join(ANSWERED)).unwrap_or_default()
}

fn undisturbed(cast: RoleServers) -> Reference {
    let (place, model) = (Place::from_cast(cast), cast.model());
    let counted = Arc::new(Counted::default());
    place
        .drive(&model.base_url(), Until::Landed, counted.clone())
        .unwrap();
    let commits = counted.commits.load(Ordering::Relaxed);
    let reference = Reference {
        story: place.story(),
        commits,
        usage: place.usage(),
        answered: answered(&place),
    };
    assert_eq!(reference.usage.calls, cast.calls());
    assert_eq!(reference.story.calls.len() as u64, cast.calls());
    reference
}

fn was_killed(place: &Place, model: &FakeOpenAi, kill: Kill) -> bool {
    worker::was_killed(
        worker::start(place, &model.base_url(), kill)
            .wait()
            .unwrap(),
    )
}

/// How many steps stand in the ledger; a question that was cut off and put again is none.
fn steps(place: &Place) -> usize {
    let put_again = |key: &String| key.contains("-asked-");
    place
        .events()
        .iter()
        .filter(|event| !event.key.as_ref().is_some_and(put_again))
        .count()
}

/// Takes a killed run to its end: nobody is asked again for what was recorded, and nothing is used twice.
fn comes_to_its_end(place: &Place, model: &FakeOpenAi, reference: &Reference) {
    assert_eq!(place.ledger().verify(&[]).unwrap().findings(), []);
    let lines = place.event_lines();
    place
        .drive(&model.base_url(), Until::Landed, Arc::new(Nothing))
        .unwrap();
    assert!(
        place.event_lines().starts_with(&lines),
        "events.jsonl was rewritten"
    );
    place.assert_ended_like(&reference.story);
    assert_eq!(place.usage(), reference.usage);
    assert_eq!(answered(place), reference.answered);
}

/// One run, killed each time that it recorded something. From every second of these points it is taken to its end, and from every
/// other one it is killed once more, right before that, with all of its artifacts written, and then taken to its end.
/// Asking, answer and use follow one another in threes, so each of them meets both.
fn killed_around_each_event(cast: RoleServers) {
    let reference = undisturbed(cast);
    let (place, model) = (Place::from_cast(cast), cast.model());
    let mut before = place.keep();
    let (mut number, mut recorded) = (0, 0);
    while was_killed(&place, &model, Kill::NewEvent) {
        number += 1;
        let after = place.keep();
        let recorded_before = std::mem::replace(&mut recorded, steps(&place));
        if number % 2 == 0 {
            let instant = std::fs::read_to_string(place.root().join(LAST_INSTANT)).unwrap();
            println!(
                "before record {number}: {}",
                place.events().last().unwrap().event
            );
            place.restore(&before);
            assert!(was_killed(
                &place,
                &model,
                Kill::Instant(instant.parse().unwrap())
            ));
            assert_eq!(steps(&place), recorded_before, "something was appended");
        } else {
            println!(
                "after record {number}: {}",
                place.events().last().unwrap().event
            );
        }
        comes_to_its_end(&place, &model, &reference);
        place.restore(&after);
        before = after;
    }
    assert_eq!(number, reference.commits);
    place.assert_ended_like(&reference.story);
    assert_eq!(
        (place.usage(), answered(&place)),
        (reference.usage, reference.answered)
    );
}

#[test]
fn run_with_person_survives_kills() {
    killed_around_each_event(RoleServers::Person);
}

#[test]
fn run_with_model_roles_survives_kills() {
    killed_around_each_event(RoleServers::Chairs);
}

#[test]
fn run_with_file_requests_survives_kills() {
    assert!(
        undisturbed(RoleServers::Asks)
            .story
            .place_of("MORE_FILES_REQUESTED")
            > 1
    );
    killed_around_each_event(RoleServers::Asks);
}
