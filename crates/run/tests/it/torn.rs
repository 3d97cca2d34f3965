//! Files of a run that are cut or edited: what a crash can leave is healed, what only a hand can do is refused.
#![expect(clippy::disallowed_methods, reason = "these tests damage files")]

use std::path::PathBuf;
use std::sync::Arc;

use crucible_run::{RunDir, RunError, RunState, status};
use crucible_testkit::FakeOpenAi;
use serde_json::Value;

use crate::common::{Nothing, Place, Script, Until};
use crate::worker::{self, Kill};

/// A run that is verified and has not landed.
fn verified() -> (Place, FakeOpenAi) {
    let (place, model) = (Place::new(), Script::Lands.model());
    let state = place
        .drive(&model.base_url(), Until::Advanced, Arc::new(Nothing))
        .unwrap();
    assert_eq!(state, RunState::Verified);
    (place, model)
}

fn advance(place: &Place, model: &FakeOpenAi) -> Result<RunState, RunError> {
    place.drive(&model.base_url(), Until::Advanced, Arc::new(Nothing))
}

fn read(dir: &RunDir, name: &str) -> Vec<u8> {
    std::fs::read(dir.path(name)).unwrap()
}

fn write(dir: &RunDir, name: &str, bytes: impl AsRef<[u8]>) {
    std::fs::write(dir.path(name), bytes).unwrap();
}

fn assert_edited<T>(result: Result<T, RunError>, expected: PathBuf) {
    match result {
        Err(RunError::Edited { path } | RunError::EditedSince { path, .. }) => {
            assert_eq!(path, expected)
        }
        Err(other) => panic!("{} is told as {other}", expected.display()),
        Ok(_) => panic!("{} was taken as it is", expected.display()),
    }
}

#[test]
fn events_that_are_cut_anywhere_are_completed() {
    let (place, model) = verified();
    let dir = place.the_run();
    let full_content = read(&dir, "events.jsonl");
    let last_line = full_content[..full_content.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    for length in [
        0,
        1,
        full_content.len() / 3,
        last_line,
        last_line + 1,
        full_content.len() - 2,
        full_content.len() - 1,
    ] {
        write(&dir, "events.jsonl", &full_content[..length]);
        assert_eq!(advance(&place, &model).unwrap(), RunState::Verified);
        assert_eq!(read(&dir, "events.jsonl"), full_content, "cut at {length}");
    }
    std::fs::remove_file(dir.path("events.jsonl")).unwrap();
    place.land().unwrap();
    assert!(read(&dir, "events.jsonl").starts_with(&full_content));
    place.assert_recorded_once();
}

#[test]
fn truncated_recorded_answer_is_requested_again() {
    let reference = {
        let (place, model) = (Place::new(), Script::Lands.model());
        place
            .drive(&model.base_url(), Until::Landed, Arc::new(Nothing))
            .unwrap();
        place.story()
    };
    let (place, model) = (Place::new(), Script::Lands.model());
    let answered_twice = reference.place_of("attempt-2-answered");
    let killed = worker::start(&place, &model.base_url(), Kill::Event(answered_twice))
        .wait()
        .unwrap();
    assert!(worker::was_killed(killed));
    assert_eq!(model.requests().len(), 2);
    let dir = place.the_run();
    let full_content = read(&dir, "cassette.jsonl");
    assert_eq!(
        full_content.iter().filter(|byte| **byte == b'\n').count(),
        3
    );
    write(
        &dir,
        "cassette.jsonl",
        &full_content[..full_content.len() - 40],
    );
    place
        .drive(&model.base_url(), Until::Landed, Arc::new(Nothing))
        .unwrap();
    place.assert_ended_like(&reference);
    let requests = model.requests();
    assert_eq!(requests.len(), Script::Lands.attempts() + 1);
    assert_eq!(requests[1].body, requests[2].body);
}

#[test]
fn recording_cut_in_first_line_restarts() {
    let (place, model) = verified();
    let dir = place.the_run();
    let full_content = read(&dir, "cassette.jsonl");
    let first_line = full_content.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    write(&dir, "cassette.jsonl", &full_content[..first_line / 2]);
    assert_eq!(advance(&place, &model).unwrap(), RunState::Verified);
    assert_eq!(read(&dir, "cassette.jsonl"), full_content[..first_line]);
    assert_eq!(model.requests().len(), Script::Lands.attempts());
}

#[test]
fn edited_events_block_landing() {
    let (place, model) = verified();
    let untouched = place.repository();
    let dir = place.the_run();
    let full_text = String::from_utf8(read(&dir, "events.jsonl")).unwrap();
    let mut lines: Vec<&str> = full_text.lines().collect();
    let first = lines.remove(0);
    let edits = [
        full_text.replacen("operator", "somebody", 1),
        format!("{full_text}{first}\n"),
        format!("{}\n", lines.join("\n")),
        format!("\n{full_text}"),
    ];
    for edited in edits {
        assert_ne!(edited, full_text);
        write(&dir, "events.jsonl", &edited);
        assert_edited(advance(&place, &model), dir.path("events.jsonl"));
        assert_edited(place.land(), dir.path("events.jsonl"));
        assert_eq!(
            read(&dir, "events.jsonl"),
            edited.as_bytes(),
            "the edit is evidence and stays"
        );
        assert_eq!(place.repository(), untouched);
    }
    write(&dir, "events.jsonl", &full_text);
    place.land().unwrap();
}

/// Every file that the ledger has a digest of, and the copies of the last attempt's files.
#[test]
fn no_recorded_file_can_be_edited_without_notice() {
    let (place, model) = verified();
    let untouched = place.repository();
    let dir = place.the_run();
    let with_digest = place
        .events()
        .into_iter()
        .filter(|event| event.body.get("digest").is_some());
    let mut recorded: Vec<String> = with_digest.map(|event| event.path.unwrap()).collect();
    recorded.retain(|path| path != "failure_bundle.zip");
    let copies = [
        "artifacts/diff.patch",
        "artifacts/verify_report.json",
        "reviews/review_patch.md",
    ];
    recorded.extend(copies.map(str::to_owned));
    for needed in [
        "run.json",
        "artifacts/PLAN.md",
        "artifacts/context_pack.json",
    ] {
        assert!(
            recorded.iter().any(|path| path == needed),
            "{needed} is not recorded"
        );
    }
    for path in recorded {
        let full_content = read(&dir, &path);
        let mut edited = full_content.clone();
        edited.push(b'\n');
        write(&dir, &path, &edited);
        assert_edited(place.land(), dir.path(&path));
        assert_edited(advance(&place, &model), dir.path(&path));
        assert_eq!(place.repository(), untouched, "{path}");
        write(&dir, &path, full_content);
    }
    assert_eq!(model.requests().len(), Script::Lands.attempts());
    place.land().unwrap();
}

/// Edits with a purpose, not only a byte more.
#[test]
fn gates_and_scope_cannot_change_later() {
    let (place, model) = verified();
    let untouched = place.repository();
    let dir = place.the_run();
    for (path, from, to) in [
        ("run.json", "check.sh", "other.sh"),
        ("run.json", "\"max_calls\":8", "\"max_calls\":9"),
        (
            "artifacts/PLAN.md",
            "Scope-Allow: src/price.py",
            "Scope-Allow: src/price.py, check.sh",
        ),
        ("artifacts/context_pack.json", "return 0", "return 1"),
        ("artifacts/signature.json", "\"plan\":\"", "\"plan\":\"0"),
        (
            "reviews/review_contract.md",
            "Remarks: none",
            "Remarks: fine",
        ),
    ] {
        let full_text = String::from_utf8(read(&dir, path)).unwrap();
        let edited = full_text.replacen(from, to, 1);
        assert_ne!(edited, full_text, "{path} holds no {from}");
        write(&dir, path, &edited);
        place.land().unwrap_err();
        advance(&place, &model).unwrap_err();
        assert_eq!(place.repository(), untouched, "{path}");
        write(&dir, path, full_text);
    }
    place.land().unwrap();
}

/// Somebody who can write into the run directory, and not into the ledger, lays down an attempt that looks verified.
#[test]
fn forged_verification_does_not_land() {
    let other = {
        let (place, model) = (Place::new(), Script::Fails.model());
        place
            .drive(&model.base_url(), Until::Advanced, Arc::new(Nothing))
            .unwrap();
        place.story()
    };
    let (place, model) = (Place::new(), Script::Fails.model());
    let untouched = place.repository();
    let first_ended = other.place_of("attempt-1-bundle");
    let killed = worker::start(&place, &model.base_url(), Kill::Event(first_ended))
        .wait()
        .unwrap();
    assert!(worker::was_killed(killed));

    let dir = place.the_run();
    std::fs::create_dir(dir.path("attempts/002")).unwrap();
    for name in ["answer.txt", "diff.patch", "review_patch.md"] {
        write(
            &dir,
            &format!("attempts/002/{name}"),
            read(&dir, &format!("attempts/001/{name}")),
        );
    }
    let document = |path: &str| serde_json::from_slice::<Value>(&read(&dir, path)).unwrap();
    let mut outcome = document("attempts/001/outcome.json");
    outcome["number"] = 2.into();
    outcome["end"] = "verified".into();
    write(&dir, "attempts/002/outcome.json", outcome.to_string());
    let mut report = document("attempts/001/verify_report.json");
    report["result"] = "PASS".into();
    report["failures"] = Value::Array(Vec::new());
    write(&dir, "attempts/002/verify_report.json", report.to_string());
    write(&dir, "artifacts/verify_report.json", report.to_string());

    // The files alone look right; the ledger has not heard of them.
    let run_status = status(&dir, &place.ledger()).unwrap();
    assert_eq!(
        (run_status.state, run_status.attempts.len()),
        (RunState::Patched, 1)
    );
    let refused = place.land().unwrap_err();
    assert!(matches!(refused, RunError::NotVerified { .. }), "{refused}");
    assert_eq!(advance(&place, &model).unwrap(), RunState::Failed);
    assert_eq!(place.repository(), untouched);
    place.assert_ended_like(&other);
}
