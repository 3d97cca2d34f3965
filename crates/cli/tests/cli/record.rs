//! What a run's directory and the ledger are believed for: only what was recorded counts, a lost or edited ledger stops
//! everything, and a run whose budget is used up goes on when its user allows more.

use std::path::{Path, PathBuf};

use crucible_testkit::{FakeOpenAi, Reply, TestRepo};
use serde_json::Value;

use crate::support::{Fixture, GOAL, answering, good_answer, id_of, small, snapshot};

/// Where a new run of this repository lies, not advanced yet.
fn new_run(fixture: &Fixture, repo: &TestRepo) -> (String, PathBuf) {
    let status = fixture
        .call(["run", "new", GOAL, "--json", "--repo"])
        .arg(repo.path())
        .run()
        .ok()
        .json();
    let id = id_of(&status);
    (id.clone(), fixture.data().join("runs").join(id))
}

const STEPS: [&str; 10] = [
    "artifacts/analysis.json",
    "artifacts/file_request.json",
    "artifacts/context_pack.json",
    "artifacts/PLAN_draft.md",
    "artifacts/REASONS.md",
    "artifacts/EXPECTED_RESULTS.md",
    "reviews/review_contract.md",
    "reviews/review_cost.md",
    "artifacts/PLAN.md",
    "artifacts/signature.json",
];

#[test]
fn unrecorded_artifact_is_recreated() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let honest = id_of(&fixture.start(repo.path()).ok().json());
    let honest = fixture.data().join("runs").join(honest);
    let (id, dir) = new_run(&fixture, &repo);
    for step in STEPS {
        // Each reads as a whole and well-formed document, so nothing but its missing record speaks against it.
        let text = std::fs::read_to_string(honest.join(step)).unwrap();
        let forged = text
            .replace(
                "Scope-Allow: src/area.py",
                "Scope-Allow: src/area.py, check.sh, tests/area_test.sh",
            )
            .replace("return width + height", "return width - height")
            .replace("every gate of the repository passes", "nothing has to pass");
        std::fs::write(dir.join(step), forged).unwrap();
    }
    std::fs::write(dir.join("artifacts/failure.json"), "{}").unwrap();
    std::fs::write(dir.join("artifacts/landing.json"), "{}").unwrap();
    assert_eq!(
        fixture.run(["run", "status", &id, "--json"]).ok().json()["attempts"],
        Value::Array(Vec::new())
    );
    let status = fixture.run(["run", "advance", &id, "--json"]).ok().json();
    assert_eq!(status["state"], "verified");
    for step in STEPS {
        let content = std::fs::read_to_string(dir.join(step)).unwrap();
        assert_eq!(
            content,
            std::fs::read_to_string(honest.join(step)).unwrap(),
            "{step}"
        );
    }
    // What is not a part of the record keeps a run from landing until somebody has looked at it.
    let refused = fixture.run(["run", "land", &id]).exits(1);
    assert!(
        refused
            .stderr
            .contains("record-file-unrecorded artifacts/failure.json"),
        "{}",
        refused.stderr
    );
    for stray in ["artifacts/failure.json", "artifacts/landing.json"] {
        let _ = std::fs::remove_file(dir.join(stray));
    }
    fixture.run(["run", "land", &id]).ok();
}

/// Somebody who can write into the run directory, and not into the ledger, lays down an attempt that looks verified.
#[test]
fn verified_status_requires_ledger_record() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let honest = id_of(&fixture.start(repo.path()).ok().json());
    let honest = fixture.data().join("runs").join(honest);
    let (id, dir) = new_run(&fixture, &repo);
    for part in ["artifacts", "reviews", "attempts"] {
        let copied = std::process::Command::new("cp")
            .arg("-a")
            .arg(honest.join(part))
            .arg(&dir)
            .status()
            .unwrap();
        assert!(copied.success());
    }
    let status = fixture.run(["run", "status", &id, "--json"]).ok().json();
    assert_ne!(status["state"], "verified");
    assert_eq!(status["attempts"], Value::Array(Vec::new()));
    let before = snapshot(&repo, &fixture);
    let message = fixture
        .run(["run", "land", &id, "--json"])
        .exits(1)
        .message();
    assert!(message.contains("not verified"), "{message}");
    before.is_still(&snapshot(&repo, &fixture));
}

#[test]
fn a_copy_of_a_run_is_no_run() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let id = id_of(&fixture.start(repo.path()).ok().json());
    let runs = fixture.data().join("runs");
    let last = id.chars().last().unwrap();
    let other = format!(
        "{}{}",
        &id[..id.len() - 1],
        if last == '0' { '1' } else { '0' }
    );
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .arg(runs.join(&id))
        .arg(runs.join(&other))
        .status();
    assert!(copied.unwrap().success());
    let before = snapshot(&repo, &fixture);
    for command in ["land", "advance", "status"] {
        let message = fixture
            .run(["run", command, &other, "--json"])
            .exits(3)
            .message();
        assert!(
            message.contains("belongs to another directory"),
            "{command}: {message}"
        );
    }
    before.is_still(&snapshot(&repo, &fixture));
    fixture.run(["run", "land", &id]).ok();
}

/// Replaces bytes in the database itself, past everything that SQL could refuse.
fn edit(path: &Path, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let mut bytes = std::fs::read(path).unwrap();
    let places: Vec<usize> = (0..bytes.len() - from.len())
        .filter(|at| bytes[*at..].starts_with(from.as_bytes()))
        .collect();
    assert!(!places.is_empty(), "{from} is not in the database");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn nothing_lands_on_a_ledger_that_was_edited() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let id = id_of(&fixture.start(repo.path()).ok().json());
    let ledger = fixture.data().join("ledger.db");
    edit(&ledger, "\"goal\":\"make area", "\"goal\":\"MAKE area");
    let before = snapshot(&repo, &fixture);
    let message = fixture
        .run(["run", "land", &id, "--json"])
        .exits(1)
        .message();
    assert!(message.contains("ledger verification failed"), "{message}");
    before.is_still(&snapshot(&repo, &fixture));
    edit(&ledger, "\"goal\":\"MAKE area", "\"goal\":\"make area");
    fixture.run(["run", "land", &id]).ok();
}

#[test]
fn missing_ledger_is_reported_and_not_recreated() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let id = id_of(&fixture.start(repo.path()).ok().json());
    let (ledger, backup_path) = (fixture.data().join("ledger.db"), fixture.path("aside"));
    std::fs::rename(&ledger, &backup_path).unwrap();
    let before = snapshot(&repo, &fixture);
    for command in ["land", "advance", "status"] {
        let message = fixture
            .run(["run", command, &id, "--json"])
            .exits(2)
            .message();
        assert!(
            message.contains(ledger.to_str().unwrap()),
            "{command}: {message}"
        );
        assert!(!ledger.exists(), "{command} made a ledger");
    }
    before.is_still(&snapshot(&repo, &fixture));
    std::fs::rename(&backup_path, &ledger).unwrap();
    fixture.run(["run", "land", &id]).ok();
}

#[test]
fn run_without_calls_continues_with_larger_budget() {
    const CALLS: &str = "CRUCIBLE_OPENROUTER_BUDGET";
    let replies = ["no", "no", &good_answer()].map(|answer| Reply::Answer(answer.to_owned()));
    let (repo, server) = (small().build(), FakeOpenAi::start(replies));
    let fixture = Fixture::with(&server);
    let error = fixture
        .start_call(repo.path())
        .env(CALLS, "1")
        .run()
        .exits(70)
        .error();
    assert_eq!(error["budget_exhausted"], true);
    let hint = error["hints"].to_string();
    assert!(
        hint.contains(CALLS) && hint.contains("crucible run advance"),
        "{hint}"
    );

    // The default is no permission, and neither is less.
    for calls in [None, Some("1")] {
        let mut call = fixture.call(["run", "advance", "--json"]);
        if let Some(calls) = calls {
            call = call.env(CALLS, calls);
        }
        assert_eq!(call.run().exits(70).error()["budget_exhausted"], true);
    }
    assert_eq!(server.requests().len(), 1);
    let ran = fixture
        .call(["run", "advance", "--json"])
        .env(CALLS, "2")
        .run()
        .exits(70);
    assert!(
        ran.stderr.contains("call limit raised from 1 to 2"),
        "{}",
        ran.stderr
    );
    assert_eq!(server.requests().len(), 2);

    let ran = fixture
        .call(["run", "advance", "--json"])
        .env(CALLS, "5")
        .run()
        .ok();
    assert_eq!(ran.json()["state"], "verified");
    assert_eq!(server.requests().len(), 3);
    let log = fixture.run(["ledger", "log", "--json"]).ok().json();
    let events = log["events"].as_array().unwrap().iter();
    let raised: Vec<u64> = events
        .filter(|event| event["event"] == "BUDGET_RAISED")
        .map(|event| event["body"]["calls"].as_u64().unwrap())
        .collect();
    assert_eq!(raised, [2, 5]);
    // A run that has ended needs no more.
    fixture.call(["run", "advance"]).env(CALLS, "9").run().ok();
    let log = fixture
        .run(["ledger", "log", "--json"])
        .ok()
        .json()
        .to_string();
    assert_eq!(log.matches("BUDGET_RAISED").count(), 2);
    fixture.run(["run", "land", &id_of(&ran.json())]).ok();
}

#[test]
fn leftovers_of_killed_write_are_removed() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    fixture.start(repo.path()).ok();
    let run = fixture.runs()[0].clone();
    let stale = [
        ".tmp-a1b2C3",
        "artifacts/.tmp-a1b2C3",
        "attempts/001/.tmp-a1b2C3",
        "logs/.tmp-a1b2C3",
    ];
    for name in stale {
        std::fs::write(run.join(name), "half").unwrap();
    }
    std::fs::write(run.join("artifacts/mine.txt"), "mine").unwrap();
    fixture.run(["run", "advance"]).ok();
    for name in stale {
        assert!(!run.join(name).exists(), "{name} is left");
    }
    assert!(run.join("artifacts/mine.txt").exists());
}
