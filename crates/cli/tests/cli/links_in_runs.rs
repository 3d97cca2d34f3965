//! What somebody plants where a run expects a person's answer or its own directories, and names that a plan and a file system can hold.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use crucible_testkit::TestRepo;
use serde_json::{Value, json};

use crate::support::{Fixture, GOOD_DIFF, codes, id_of, small};

/// A run that waits for a person.
fn waiting() -> (TestRepo, Fixture, String) {
    let (repo, fixture) = (small().build(), Fixture::new());
    let started = fixture
        .start_call(repo.path())
        .args(["--mode", "manual_outbox"])
        .run()
        .exits(1)
        .json();
    (repo, fixture, id_of(&started))
}

/// The patch that makes a file.
fn creating(path: &str) -> String {
    format!(
        "{GOOD_DIFF}diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x = 1\n"
    )
}

#[test]
fn linked_answer_is_not_followed() {
    let (_repo, fixture, id) = waiting();
    let run = fixture.runs().pop().unwrap();
    let private = fixture.path("private.txt");
    fs::write(&private, "a private word\n").unwrap();
    symlink(&private, run.join("artifacts/diff.patch")).unwrap();
    let ran = fixture.run(["run", "advance", &id]).exits(1);
    let message = format!("{}{}", ran.stdout, ran.stderr);
    assert!(
        message.contains(
            "artifacts/diff.patch is not a valid answer: the path is or contains a symbolic link"
        ),
        "{message}"
    );
    let status = fixture.run(["run", "status", &id, "--json"]).json();
    assert_eq!(
        (&status["state"], &status["budgets"]["outbox_prompts"]),
        (&json!("blocked"), &json!(1))
    );
    for name in ["answers", "attempts"] {
        assert_eq!(fs::read_dir(run.join(name)).unwrap().count(), 0, "{name}");
    }
    assert_eq!(fs::read(&private).unwrap(), b"a private word\n");
    // The file itself in its place, and the run goes on.
    fs::remove_file(run.join("artifacts/diff.patch")).unwrap();
    fs::write(run.join("artifacts/diff.patch"), GOOD_DIFF).unwrap();
    assert_eq!(
        fixture.run(["run", "advance", &id, "--json"]).ok().json()["state"],
        "verified"
    );
}

#[test]
fn oversized_answer_file_is_refused_without_costs() {
    let (_repo, fixture, id) = waiting();
    let answer = fixture.runs().pop().unwrap().join("artifacts/diff.patch");
    // Nothing could read this: it is longer than any memory.
    File::create(&answer).unwrap().set_len(1 << 42).unwrap();
    let ran = fixture.run(["run", "advance", &id]).exits(1);
    let message = format!("{}{}", ran.stdout, ran.stderr);
    assert!(
        message.contains("is not a valid answer: it has more than 2097152 bytes; write at most"),
        "{message}"
    );
    let status = fixture.run(["run", "status", &id, "--json"]).json();
    assert_eq!(
        (&status["state"], &status["budgets"]["outbox_prompts"]),
        (&json!("blocked"), &json!(1))
    );
    fs::write(&answer, GOOD_DIFF).unwrap();
    assert_eq!(
        fixture.run(["run", "advance", &id, "--json"]).ok().json()["state"],
        "verified"
    );
}

#[test]
fn linked_part_of_run_is_refused() {
    let (_repo, fixture, id) = waiting();
    let run = fixture.runs().pop().unwrap();
    for part in [
        "outbox",
        "artifacts",
        "answers",
        "attempts",
        "logs",
        "reviews",
        "cassette.jsonl",
        "events.jsonl",
    ] {
        let (there, backup_path) = (run.join(part), run.join("aside"));
        let elsewhere = fixture.path("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join(".tmp-mine"), "keep").unwrap();
        let had = fs::rename(&there, &backup_path).is_ok();
        let target = if part.ends_with(".jsonl") {
            elsewhere.join(".tmp-mine")
        } else {
            elsewhere.clone()
        };
        symlink(target, &there).unwrap();
        let ran = fixture.run(["run", "advance", &id]).exits(1);
        assert!(
            ran.stderr.contains("the path is a symbolic link"),
            "{part}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        let names: Vec<_> = fs::read_dir(&elsewhere)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, [".tmp-mine"], "{part}");
        assert_eq!(
            fs::read(elsewhere.join(".tmp-mine")).unwrap(),
            b"keep",
            "{part}"
        );
        fs::remove_file(&there).unwrap();
        if had {
            fs::rename(&backup_path, &there).unwrap();
        }
        fs::remove_dir_all(&elsewhere).unwrap();
    }
    fs::write(run.join("artifacts/diff.patch"), GOOD_DIFF).unwrap();
    assert_eq!(
        fixture.run(["run", "advance", &id, "--json"]).ok().json()["state"],
        "verified"
    );
}

#[test]
fn case_only_difference_in_new_file_is_refused() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let call = fixture.start_call(repo.path()).args([
        "--mode",
        "manual_outbox",
        "--file",
        "src/area.py",
        "--file",
        "src/Area.py",
    ]);
    let id = id_of(&call.run().exits(1).json());
    let run = fixture.runs().pop().unwrap();
    fs::write(run.join("artifacts/diff.patch"), creating("src/Area.py")).unwrap();
    let refused = fixture
        .run(["run", "advance", &id, "--json"])
        .exits(1)
        .json();
    assert_eq!(codes(&refused, 1), ["patch-name-collides"]);
    let (patch, plan) = (fixture.path("case.diff"), run.join("artifacts/PLAN.md"));
    fs::write(&patch, creating("src/Area.py")).unwrap();
    let top = repo.path().to_str().unwrap();
    let words = [
        "patch",
        "check",
        "--json",
        "--repo",
        top,
        "--patch",
        patch.to_str().unwrap(),
        "--plan",
        plan.to_str().unwrap(),
    ];
    let checked = fixture.run(words).exits(1).json();
    assert_eq!(
        checked["findings"][0]["code"], "patch-name-collides",
        "{checked}"
    );
}

#[test]
fn file_name_with_comma_can_be_named() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let unusual_text = "add, tests/add.py";
    let call = fixture.start_call(repo.path()).args([
        "--mode",
        "manual_outbox",
        "--file",
        "src/area.py",
        "--file",
        unusual_text,
    ]);
    let id = id_of(&call.run().exits(1).json());
    let run = fixture.runs().pop().unwrap();
    let plan = fs::read_to_string(run.join("artifacts/PLAN.md")).unwrap();
    assert!(plan.contains("\"add, tests/add.py\""), "{plan}");
    fs::write(run.join("artifacts/diff.patch"), creating(unusual_text)).unwrap();
    let verified: Value = fixture.run(["run", "advance", &id, "--json"]).ok().json();
    assert_eq!(verified["state"], "verified");

    let hidden = fixture
        .start_call(repo.path())
        .args(["--file", "src/a\u{200b}.py"])
        .run()
        .exits(2);
    assert!(
        hidden.stdout.contains("invisible character")
            || hidden.stderr.contains("invisible character"),
        "{}",
        hidden.stderr
    );
}
