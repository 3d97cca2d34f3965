//! A run is killed with SIGKILL and advanced by another process: it ends as if nothing had happened.
//!
//! The points are the ones where a difference could arise: right after each event, right before each event with its
//! artifact written, and at the beginning of each long step. On top of these come kills at arbitrary instants, many to
//! one run, and kills that come while the user's repository is written.
//!
//! Slow because each kill takes a whole run, with its gates in the sandbox, to its end.
#![expect(
    clippy::disallowed_methods,
    reason = "kills at arbitrary instants are told by a clock"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crucible_testkit::FakeOpenAi;

use crate::common::{Counted, Files, Nothing, Place, Script, Story, Until};
use crate::worker::{self, Kill};

struct Reference {
    script: Script,
    story: Story,
    counted: Arc<Counted>,
}

/// A run that nothing happens to.
fn undisturbed(script: Script) -> Reference {
    let (place, model) = (Place::new(), script.model());
    let counted = Arc::new(Counted::default());
    place
        .drive(&model.base_url(), Until::Landed, counted.clone())
        .unwrap();
    let story = place.story();
    place.assert_ended_like(&story);
    assert_eq!(model.requests().len(), script.attempts());
    Reference {
        script,
        story,
        counted,
    }
}

/// Kills a worker at one point, looks at what is left, lets another process finish, and checks the end.
fn kill_and_finish(at: Kill, reference: &Reference) {
    let (place, model) = (Place::new(), reference.script.model());
    let untouched = place.repository();
    let status = worker::start(&place, &model.base_url(), at).wait().unwrap();
    assert!(worker::was_killed(status), "{at:?} was never reached");
    finish(&place, &model, &untouched, &format!("{at:?}"), reference);
    let request_count = model.requests().len();
    assert_eq!(
        request_count,
        reference.script.attempts(),
        "the model was asked again after {at:?}"
    );
}

fn finish(
    place: &Place,
    model: &FakeOpenAi,
    untouched: &Files,
    killed_at: &str,
    reference: &Reference,
) {
    println!("killed at {killed_at}");
    let lines = look_at_what_is_left(place, untouched);
    place
        .drive(&model.base_url(), Until::Landed, Arc::new(Nothing))
        .unwrap();
    assert!(
        place.event_lines().starts_with(&lines),
        "events.jsonl was rewritten"
    );
    place.assert_ended_like(&reference.story);
    if reference.script == Script::Fails {
        assert_eq!(place.repository(), *untouched);
    }
}

/// What holds at any moment: the ledger is whole, and nobody has written to the repository before a landing began.
fn look_at_what_is_left(place: &Place, untouched: &Files) -> Vec<u8> {
    assert_eq!(place.ledger().verify(&[]).unwrap().findings(), []);
    if !place.has_begun_to_land() {
        assert_eq!(place.repository(), *untouched);
    }
    place.event_lines()
}

/// Every `parts`-th point, from `part` on.
fn kill_at_each(at: fn(u64) -> Kill, script: Script, part: u64, parts: u64) {
    let reference = undisturbed(script);
    let counted = &reference.counted;
    let points = match at(0) {
        Kill::Event(_) => reference.story.steps.len() as u64,
        Kill::Instant(_) => counted.instants.load(Ordering::Relaxed),
        _ => counted.workings.load(Ordering::Relaxed),
    };
    // Up to the first question both scripts go the same way.
    let first = match script {
        Script::Lands => 1,
        Script::Fails => reference.story.place_of("MODEL_ASKED"),
    };
    assert!(points >= first + 10, "{points} points");
    for n in (first..=points).filter(|n| n % parts == part) {
        kill_and_finish(at(n), &reference);
    }
}

/// Tests that share the points of one kind among them, so that they run side by side.
macro_rules! in_parts {
    ($($name:ident: $at:expr, $script:expr, $part:literal of $parts:literal;)*) => {$(
        #[test]
        fn $name() {
            kill_at_each($at, $script, $part, $parts);
        }
    )*};
}

in_parts! {
    killed_after_each_event_part_1: Kill::Event, Script::Lands, 0 of 4;
    killed_after_each_event_part_2: Kill::Event, Script::Lands, 1 of 4;
    killed_after_each_event_part_3: Kill::Event, Script::Lands, 2 of 4;
    killed_after_each_event_part_4: Kill::Event, Script::Lands, 3 of 4;
    killed_before_each_event_part_1: Kill::Instant, Script::Lands, 0 of 4;
    killed_before_each_event_part_2: Kill::Instant, Script::Lands, 1 of 4;
    killed_before_each_event_part_3: Kill::Instant, Script::Lands, 2 of 4;
    killed_before_each_event_part_4: Kill::Instant, Script::Lands, 3 of 4;
    killed_in_each_step_part_1: Kill::Working, Script::Lands, 0 of 2;
    killed_in_each_step_part_2: Kill::Working, Script::Lands, 1 of 2;
    a_run_that_fails_killed_after_each_event: Kill::Event, Script::Fails, 0 of 1;
    a_run_that_fails_killed_before_each_event: Kill::Instant, Script::Fails, 0 of 1;
}

/// One run, killed right after each time that it records something: no process gets further than the next.
#[test]
fn run_killed_after_every_event_finishes() {
    let reference = undisturbed(Script::Lands);
    let (place, model) = (Place::new(), reference.script.model());
    let untouched = place.repository();
    let mut lines = Vec::new();
    let mut kills = 0;
    while worker::was_killed(
        worker::start(&place, &model.base_url(), Kill::NewEvent)
            .wait()
            .unwrap(),
    ) {
        kills += 1;
        assert!(
            kills <= reference.story.steps.len(),
            "the run comes to no end"
        );
        let longer = look_at_what_is_left(&place, &untouched);
        assert!(
            longer.starts_with(&lines) && longer.len() > lines.len(),
            "after kill {kills}"
        );
        lines = longer;
    }
    assert_eq!(
        kills as u64,
        reference.counted.commits.load(Ordering::Relaxed)
    );
    finish(&place, &model, &untouched, "every event", &reference);
    assert_eq!(model.requests().len(), reference.script.attempts());
}

/// However soon a run is killed: what others see is listed and goes on, and nothing stays behind.
#[test]
fn run_killed_at_creation_is_complete_or_absent() {
    let script = Script::Lands;
    let (reference, counted) = (Place::new(), Arc::new(Counted::default()));
    reference
        .drive(&script.model().base_url(), Until::Created, counted.clone())
        .unwrap();
    let begun = reference.events().len() as u64;
    let instants = counted.instants.load(Ordering::Relaxed);
    assert!(
        begun >= 2 && instants > begun,
        "{begun} events, {instants} instants"
    );
    for at in (1..=begun)
        .map(Kill::Event)
        .chain((1..=instants).map(Kill::Instant))
    {
        let (place, model) = (Place::new(), script.model());
        let status = worker::start(&place, &model.base_url(), at).wait().unwrap();
        assert!(worker::was_killed(status), "{at:?}");
        let listed = || -> Vec<String> {
            place
                .ledger()
                .runs()
                .unwrap()
                .iter()
                .map(|run| run.id.to_string())
                .collect()
        };
        let visible = place.visible();
        assert!(
            visible.iter().all(|name| listed().contains(name)),
            "{at:?}: {visible:?}"
        );
        // The next command finds the run where there is one, and makes one where there is none.
        place
            .drive(&model.base_url(), Until::Created, Arc::new(Nothing))
            .unwrap();
        assert_eq!(listed().len(), 1, "{at:?}");
        assert_eq!(place.visible(), listed(), "{at:?}");
        let all = std::fs::read_dir(place.runs()).unwrap().count();
        assert_eq!(all, 1, "{at:?}: something stayed behind");
    }
}

/// Kills one run again and again, each time a little later than it got before, then lets it end.
fn kill_at_arbitrary_instants(seed: u64) {
    let begun = Instant::now();
    let reference = undisturbed(Script::Lands);
    let full_duration = begun.elapsed();
    let (place, model) = (Place::new(), reference.script.model());
    let untouched = place.repository();
    let mut state = seed;
    let mut kills = 0;
    for round in 1..=8 {
        // A linear congruential generator: the instants differ from seed to seed and need no more than that.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let most = full_duration.as_micros() as u64 / 8 * round;
        let mut worker = worker::start(&place, &model.base_url(), Kill::Never);
        std::thread::sleep(Duration::from_micros((state >> 33) % most));
        worker.kill().unwrap();
        if worker::was_killed(worker.wait().unwrap()) {
            kills += 1;
            look_at_what_is_left(&place, &untouched);
        }
    }
    finish(
        &place,
        &model,
        &untouched,
        &format!("{kills} instants of seed {seed}"),
        &reference,
    );
    let requests = model.requests();
    let questions: BTreeSet<String> = requests
        .iter()
        .map(|request| request.body.to_string())
        .collect();
    assert_eq!(
        questions.len(),
        reference.script.attempts(),
        "a question was put in two ways"
    );
    // Only an answer that was on its way when the process died may be lost.
    assert!(
        requests.len() <= reference.script.attempts() + kills,
        "{} requests",
        requests.len()
    );
}

#[test]
fn killed_at_arbitrary_instants_of_seed_1() {
    kill_at_arbitrary_instants(1);
}

#[test]
fn killed_at_arbitrary_instants_of_seed_2() {
    kill_at_arbitrary_instants(2);
}

#[test]
fn killed_at_arbitrary_instants_of_seed_3() {
    kill_at_arbitrary_instants(3);
}

/// A landing takes some dozens of milliseconds; the same verified run is killed in it again and again, each time a
/// little later.
#[test]
fn killed_while_the_repository_is_written() {
    let reference = undisturbed(Script::Lands);
    let (place, model) = (Place::new(), reference.script.model());
    let untouched = place.repository();
    place
        .drive(&model.base_url(), Until::Advanced, Arc::new(Nothing))
        .unwrap();
    let verified = place.keep();
    let mut caught = 0;
    for wait in (0..).map(|step| Duration::from_millis(step * 6)) {
        place.restore(&verified);
        let mut worker = worker::start(&place, &model.base_url(), Kill::Never);
        while !place.has_begun_to_land() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(wait);
        worker.kill().unwrap();
        if !worker::was_killed(worker.wait().unwrap()) {
            break;
        }
        caught += 1;
        finish(
            &place,
            &model,
            &untouched,
            &format!("{wait:?} of the landing"),
            &reference,
        );
    }
    assert!(caught > 0, "no landing was caught");
}
