//! What a model is asked depends on the goal and the repository, and on nothing else; so a run can be repeated.
#![expect(
    clippy::disallowed_methods,
    reason = "these tests edit a recording and let time pass"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crucible_llm::{CallOutcome, Cassette};
use crucible_run::{CASSETTE, RunState};
use crucible_testkit::FakeOpenAi;

use crate::common::{Nothing, Place, Script, Until};

fn ended(place: &Place, script: Script) -> FakeOpenAi {
    let model = script.model();
    place
        .drive(&model.base_url(), Until::Landed, Arc::new(Nothing))
        .unwrap();
    model
}

fn bodies(model: &FakeOpenAi) -> Vec<String> {
    model
        .requests()
        .iter()
        .map(|request| request.body.to_string())
        .collect()
}

#[test]
fn prompts_are_independent_of_place_and_time() {
    let scratch = tempfile::tempdir().unwrap();
    let far = scratch.path().join("a directory/with another, longer name");
    std::fs::create_dir_all(&far).unwrap();
    for script in [Script::Lands, Script::Fails] {
        let (here, current_place) = (Place::new(), Place::new_in(&far));
        let first = bodies(&ended(&here, script));
        // The next run has another second in its id and in every event.
        std::thread::sleep(Duration::from_millis(1100));
        let second = bodies(&ended(&current_place, script));
        assert_eq!(first.len(), script.attempts());
        assert_eq!(first, second);
        here.story().assert_is(&current_place.story());
        for body in first {
            for (what, of) in [
                ("place", here.root()),
                ("place", current_place.root()),
                ("home", Path::new("/home/")),
            ] {
                assert!(
                    !body.contains(&of.display().to_string()),
                    "a question names a {what}: {body}"
                );
            }
        }
    }
}

#[test]
fn replay_reproduces_every_artifact_offline() {
    for (script, end) in [
        (Script::Lands, RunState::Verified),
        (Script::Fails, RunState::Failed),
    ] {
        let place = Place::new();
        let model = ended(&place, script);
        let (request_count, events, repository) =
            (model.requests().len(), place.events(), place.repository());
        let replayed = place.replay().unwrap();
        assert_eq!(replayed.different, Vec::<String>::new());
        assert_eq!(replayed.state, end);
        let compared = |path: &str| replayed.same.iter().any(|same| same == path);
        for number in 1..=script.attempts() {
            assert!(
                compared(&format!("attempts/00{number}/answer.txt")),
                "attempt {number}"
            );
            assert!(
                compared(&format!("attempts/00{number}/outcome.json")),
                "attempt {number}"
            );
        }
        assert!(
            compared("artifacts/context_pack.json") && compared("artifacts/verify_report.json")
        );
        assert_eq!(model.requests().len(), request_count);
        assert_eq!(place.events(), events);
        assert_eq!(place.repository(), repository);
    }
}

#[test]
fn edited_recorded_answer_changes_replay() {
    let place = Place::new();
    ended(&place, Script::Lands);
    let path = place.the_run().path(CASSETTE);
    let full_text = std::fs::read_to_string(&path).unwrap();
    let cassette = Cassette::parse(full_text.as_bytes()).unwrap();
    let CallOutcome::Answered(last) = &cassette.calls[3].outcome else {
        panic!("no answer")
    };
    assert!(last.raw_response.contains("sum(items)"));

    let mut lines: Vec<String> = full_text.lines().map(str::to_owned).collect();
    let answer = lines[4].find("sum(items)").unwrap();
    lines[4].replace_range(answer..answer + "sum(items)".len(), "sum(items) + 0");
    std::fs::write(&path, format!("{}\n", lines.join("\n"))).unwrap();
    let replayed = place.replay().unwrap();
    for path in [
        "attempts/004/answer.txt",
        "attempts/004/diff.patch",
        "artifacts/diff.patch",
    ] {
        assert!(
            replayed.different.iter().any(|different| different == path),
            "{path}: {replayed:?}"
        );
    }
    assert!(
        replayed
            .same
            .iter()
            .any(|same| same == "attempts/003/answer.txt")
    );
}

#[test]
fn edited_recorded_question_fails_replay() {
    let place = Place::new();
    ended(&place, Script::Lands);
    let path = place.the_run().path(CASSETTE);
    let full_text = std::fs::read_to_string(&path).unwrap();
    let edited = full_text.replacen("You change source code", "You change nothing", 1);
    assert_ne!(edited, full_text);
    std::fs::write(&path, edited).unwrap();
    let refused = place.replay().unwrap_err().0;
    assert!(
        refused.contains("line 2 of the recording is damaged"),
        "{refused}"
    );

    let first_three: Vec<&str> = full_text.lines().take(4).collect();
    std::fs::write(&path, format!("{}\n", first_three.join("\n"))).unwrap();
    let refused = place.replay().unwrap_err().0;
    assert!(
        refused.contains("does not contain this request"),
        "{refused}"
    );
}
